"""The laws that graded responses cite: how many exist, how many are the court's, how many of the court's are cited."""

from collections.abc import Mapping, Set

from data.cases import Case
from data.language import DEFAULT_LANGUAGE
from eval.results import Grade, Key
from eval.tables import Sheet
from eval.tallies import Tally, estimate, flat
from rewards.answer import final_answer
from rewards.citations import citations_of

_NAMES = {
    "per_response": "laws cited per response",
    "existing": "of them in the corpus",
    "precision": "of them the case's own",
    "recall": "of the case's own cited",
}


def citation_figures(
    grades: Mapping[Key, Grade], cases: Mapping[str, Case], known: Set[str] | None
) -> dict[str, float | None]:
    """`citations/per_response`, `/precision`, `/recall` and, where a corpus's laws are given, `/existing`.

    Rates over all laws of all responses, with `/low` and `/high` by resampled cases; a rate of nothing is absent.
    """
    tally = Tally[str]()
    for (case_id, _), grade in grades.items():
        if cases[case_id].language != DEFAULT_LANGUAGE:
            continue  # whose citations nobody reads yet
        told = citations_of(cases[case_id], final_answer(grade.response.text))
        tally.add("per_response", case_id, len(told.cited))
        tally.add("precision", case_id, told.num_own, len(told.cited))
        tally.add("recall", case_id, told.num_own, len(told.own))
        if known is not None:
            tally.add("existing", case_id, told.num_known(known), len(told.cited))
    figures: dict[str, float | None] = {}
    for name, one in tally.estimates().items():
        figures |= flat(f"citations/{name}", one)
    return figures


def citation_sheet(figures: Mapping[str, float | None]) -> Sheet:
    """The figures as a table; without rows where no law is cited, nor any to cite."""
    rows = tuple(
        (label, estimate(figures, f"citations/{name}"))
        for name, label in _NAMES.items()
        if f"citations/{name}" in figures
    )
    return Sheet("citations", "Citations of law", ("", "rate"), rows, Sheet.INTERVALS)
