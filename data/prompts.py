"""What the policy is asked."""

from collections.abc import Sequence
from typing import Literal, get_args

from data.cases import Case
from data.language import read_text
from data.law import Document

PromptStyle = Literal["court", "bare"]
PROMPT_STYLES: tuple[PromptStyle, ...] = get_args(PromptStyle)


def build_prompt(case: Case, style: PromptStyle = "court", laws: Sequence[Document] = ()) -> list[dict[str, str]]:
    """The chat messages that put a case to the policy, in the case's language; nothing of its issues or of the court's
    order is in them.

    Args:
        style: "court" asks, in the role of the presiding judge, for reasoning issue by issue and then for the order
            in full; "bare" is the question alone, for the mini world, whose small models know no instructions.
        laws: what retrieval has found, the best first; it stands numbered before the question.
    """
    listed = "\n".join(f"{number}. {law.shown}" for number, law in enumerate(laws, start=1))
    if style == "court":
        names = ("court_system", "court_user", "court_law")
        system, user, law = (read_text(name, case.language).strip() for name in names)
        law = law.replace("{laws}", listed) + "\n\n" if laws else ""
        question = user.replace("{question}", case.question)
        return [{"role": "system", "content": system}, {"role": "user", "content": law + question}]
    if style == "bare":
        return [{"role": "user", "content": f"{listed}\n{case.question}" if laws else case.question}]
    raise ValueError(f"the prompt's style must be one of {', '.join(PROMPT_STYLES)}; got {style!r}")
