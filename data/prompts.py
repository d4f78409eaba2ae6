"""What the policy is asked."""

from functools import cache
from pathlib import Path
from typing import Literal, get_args

from data.cases import Case

PromptStyle = Literal["court", "bare"]
PROMPT_STYLES: tuple[PromptStyle, ...] = get_args(PromptStyle)


def build_prompt(case: Case, style: PromptStyle = "court") -> list[dict[str, str]]:
    """The chat messages that put a case to the policy; nothing of its issues or of the court's order is in them.

    Args:
        style: "court" asks, in the role of the presiding judge, for reasoning issue by issue and then for the order
            in full; "bare" is the question alone, for the mini world, whose small models know no instructions.
    """
    if style == "court":
        return [
            {"role": "system", "content": _template("court_system")},
            {"role": "user", "content": _template("court_user").replace("{question}", case.question)},
        ]
    if style == "bare":
        return [{"role": "user", "content": case.question}]
    raise ValueError(f"the prompt's style must be one of {', '.join(PROMPT_STYLES)}; got {style!r}")


@cache
def _template(name: str) -> str:
    return (Path(__file__).parent / "prompts" / f"{name}.txt").read_text(encoding="utf-8").strip()
