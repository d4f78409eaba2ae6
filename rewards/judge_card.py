"""Judge cards: what a check against experts found of one judge, kept where training and reports look it up."""

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from data.jsonl import write_json, write_text
from data.language import DEFAULT_LANGUAGE
from data.store import Store
from rewards.grouping import group_prompt_version
from rewards.judge_config import JudgeConfig
from rewards.rubric import prompt_version

CARDS_FOLDER = Path("judge_cards")
VERDICT_SETTINGS = (
    "judge",
    "judge_model",
    "judge_temperature",
    "judge_rationales",
    "judge_verdict",
    "judge_votes",
    "judge_issues_per_call",
)


class JudgeCardError(ValueError):
    """A file in the folder of cards is no card; says which and why."""


@dataclass(frozen=True, slots=True)
class JudgeCard:
    """One check of one judge: `settings` as `verdict_settings` makes them, the day, the figures and their verdict.

    `experts` are ids, never names; `figures` are flat, as the command that made them prints them with --json.
    """

    settings: Mapping[str, Any]
    date: str
    experts: tuple[str, ...]
    verdict: tuple[str, ...]
    figures: Mapping[str, float | str | None]

    def __str__(self) -> str:
        alpha = self.figures.get("judge/alpha/score")
        agreement = "alpha undefined" if alpha is None else f"alpha {alpha:.2f}"
        return f"judge card of {self.date}: {agreement} with {len(self.experts)} expert(s)"


def verdict_settings(config: JudgeConfig, languages: Iterable[str] = (DEFAULT_LANGUAGE,)) -> dict[str, Any]:
    """What a judge's verdicts depend on: not where it runs, how patiently it is asked or how long it may write.

    Args:
        languages: of the cases: each is judged by a prompt of its own.
    """
    if config.judge == "mini":
        return {"judge": "mini"}
    told = sorted(languages)
    settings = {name: getattr(config, name) for name in VERDICT_SETTINGS}
    settings["prompt_version"] = "+".join(map(prompt_version, told))
    if config.judge_issues_per_call != 1:
        settings["group_prompt"] = "+".join(map(group_prompt_version, told))
    return settings


def find_card(cards: Iterable[JudgeCard], settings: Mapping[str, Any]) -> JudgeCard | None:
    """The latest card of the judge with exactly these settings (`verdict_settings`), None if it has none.

    >>> card = JudgeCard({"judge_model": "m", "prompt_version": "1"}, "2030-01-01", ("a",), (), {})
    >>> find_card([card], {"judge_model": "m", "prompt_version": "1"}) is card
    True
    >>> find_card([card], {"judge_model": "m", "prompt_version": "2"}) is None
    True
    """
    return max((card for card in cards if card.settings == settings), key=lambda card: card.date, default=None)


def read_cards(folder: str | Path = CARDS_FOLDER) -> list[JudgeCard]:
    """All cards of a folder; none where there is no such folder.

    Raises:
        JudgeCardError: a JSON file there is no card.
    """
    cards = []
    for path in sorted(Path(folder).glob("*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            content |= {name: tuple(content[name]) for name in ("experts", "verdict")}
            cards.append(JudgeCard(**content))
        except (ValueError, KeyError, TypeError) as error:
            raise JudgeCardError(f"{path} is no judge card ({error}); move it elsewhere") from error
    return cards


def write_card(card: JudgeCard, body: str, folder: str | Path = CARDS_FOLDER) -> Path:
    """Write a card as JSON, and `body`, its Markdown, beside it; returns the Markdown's path.

    A second check of the same judge on the same day takes the first one's place.
    """
    name = str(card.settings.get("judge_model") or card.settings["judge"])
    slug = re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", name)).strip("-.")[:80]
    stem = Path(folder) / f"{slug}-{Store.key(**card.settings)[:8]}-{card.date}"
    write_json(stem.with_name(stem.name + ".json"), asdict(card))
    page = stem.with_name(stem.name + ".md")
    write_text(page, body)
    return page


def card_notice(config: JudgeConfig, languages: Collection[str], folder: str | Path = CARDS_FOLDER) -> str | None:
    """What to tell a user of this judge before a run: its card in one line, or a warning that it has none.

    For cases of several languages a card of a check in all of them, or else a line on each. None for the exact judge
    of the mini world, which needs no check.
    """
    if config.judge == "mini":
        return None
    try:
        cards = read_cards(folder)
    except JudgeCardError as error:
        return f"warning: {error}"
    if card := find_card(cards, verdict_settings(config, languages)):
        return str(card)
    found = {language: find_card(cards, verdict_settings(config, [language])) for language in sorted(languages)}
    return "\n".join(
        f"{card}, for cases in {language}"
        if card
        else f"warning: the judge {config.judge_model} has no judge card in {folder} for cases in {language}: with "
        "these settings and this prompt it has not been checked against experts (eval/agreement.py EXPERTS --judge URL "
        "...; docs/check-your-judge.md)"
        for language, card in found.items()
    )
