"""The judge put to what experts have marked, through the same grading as eval/grade.py; and its card."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from data.cases import Case
from data.command import InputError
from data.jsonl import read_jsonl, write_jsonl
from eval.agreement_report import card_text, draw_reliability
from eval.flags import RECORDED
from eval.grading import COSTS
from eval.judge_check import JudgeCheck
from eval.judging import grade_file
from eval.raters import Item, Marks, Rater, item_of
from eval.results import read_some_responses
from rewards.gates import GateConfig
from rewards.judge import JudgeConfig
from rewards.judge_card import JudgeCard, verdict_settings, write_card


def grade_annotated(
    experts: Sequence[Rater],
    cases: Mapping[str, Case],
    response_files: Sequence[Path],
    out: Path,
    config: JudgeConfig | None,
    aliases: Mapping[str, str],
) -> tuple[Rater, dict[str, float], list[str]]:
    """The judge as a rater of the responses that experts have marked, what it cost, and a note for what is missing.

    Without a config, the verdicts are those that the response files bring. Grades go to a folder of their own for each
    response file, under `out`; a second call asks only what is lacking.
    `cost` sums over all calls that were ever paid for there; it is empty for a judge that is not asked over a network.

    Raises:
        InputError: experts have marked nothing, or none of the responses; or as `grade_file` does.
        DeadJudgeError: the judge gives nothing.
    """
    wanted = {item for expert in experts for item, marks in expert.marks.items() if any(marks.values())}
    if not wanted:
        raise InputError(
            "No issue was marked by both the judge and an expert: experts marked none. Are their sheets filled in?"
        )
    marks: dict[Item, Marks] = {}
    cost: Counter[str] = Counter()
    for path in response_files:
        file = read_some_responses(path)
        items = {response.key: item_of(response, aliases) for response in file.responses}
        chosen = tuple(response for response in file.responses if items[response.key] in wanted)
        if not chosen:
            continue
        folder = out / f"{path.parent.name}-{path.stem}".strip("-")
        grades = grade_file(cases, replace(file, responses=chosen), folder, config, GateConfig(), path.stem)
        marks |= {items[key]: grade.judgments for key, grade in grades.items()}
        for _, line in read_jsonl(folder / "cost.jsonl") if (folder / "cost.jsonl").exists() else ():
            cost.update({name: line[name] for name in (*COSTS, "latency_s")})
    if not marks:
        models = sorted({item.generator for item in wanted})
        raise InputError(
            "None of the --responses is one that the experts marked. They marked responses of "
            f"{', '.join(models)}; a response file names its model, or else its own name must be the model's"
        )
    notes = [f"{len(wanted - marks.keys())} marked responses are not in --responses"] if wanted - marks.keys() else []
    name = RECORDED if config is None else config.judge_model or config.judge
    told: dict[str, float] = {**cost, "responses": len(marks)} if cost else {}
    price = None if config is None else config.cost((cost["tokens_in"], cost["tokens_cached"], cost["tokens_out"]))
    return Rater(name, marks, {}), told if price is None else {**told, "price": price}, notes


def keep_check(
    check: JudgeCheck,
    said: Sequence[str],
    config: JudgeConfig | None,
    languages: Set[str],
    experts: Sequence[str],
    out: Path,
    cards: Path,
) -> Path | None:
    """Write the mismatches, the reliability curve and the judge's card; returns the path of the card's page.

    A card is of the prompts in the `languages` of the cases. Recorded verdicts get none: nobody knows the settings that
    they were given with.
    """
    write_jsonl(out / "mismatches.jsonl", (miss.to_record() for miss in check.mismatches))
    if check.calibrations:
        draw_reliability(check, out / "reliability.png")
    if config is None:
        return None
    date = datetime.now(UTC).date().isoformat()
    settings = verdict_settings(config, languages)
    card = JudgeCard(settings, date, tuple(experts), tuple(said), check.figures())
    return write_card(card, card_text(settings, date, said, check), cards)
