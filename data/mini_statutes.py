"""Written law for the mini world: ordinances of towns, whose numbers decide an issue and stand in no other place.

A case happens in a town. One issue of each kind of claim holds if the number in the facts is greater than the one in
that town's ordinance. Towns of held-out cases occur in no other split, and all numbers vary with the seed, so nobody
can know them by heart: they must be looked up. Without the ordinance the facts say nothing of the issue.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from data.mini_law import Kind, Role, Told, kinds

TOWNS: Mapping[str, tuple[str, ...]] = {
    "lesson": ("바다", "나무", "구름", "하늘", "호수", "모래", "안개", "언덕"),
    "train": ("강물", "바람", "들판", "노을", "소나무", "이슬", "절벽", "샘물"),
    "validation": ("폭포", "동굴", "연못", "서리"),
    "test": ("무지개", "소금", "벌판", "단풍", "갈대", "바위", "눈꽃", "포구"),
}
SET, TOLD = (3, 9), (4, 6, 8)  # numbers that ordinances set, and that facts tell
WORDS = {3: "삼", 4: "사", 5: "오", 6: "육", 7: "칠", 8: "팔", 9: "구"}
_RULES = {
    Role.ELEMENT: "{name} 주장이 옳지 않으면 {kind} 청구를 모두 기각한다.",
    Role.DEFENCE: "{name} 주장이 옳으면 {kind} 청구를 모두 기각한다.",
    Role.PARTIAL: "{name} 주장이 옳으면 {kind} 청구를 일부만 받아들인다.",
    Role.COUNTER: "{name} 주장이 옳으면 {kind} 청구에 대한 그 항변은 받아들이지 않는다.",
    Role.ADMISSIBILITY: "{name} 주장이 옳지 않으면 {kind} 청구를 모두 각하한다.",
}


@dataclass(frozen=True, slots=True)
class Ordinance:
    """What towns settle for a kind of claim: the issue, and the sentences of the ordinance and of the facts."""

    issue_id: str
    text: str
    fact: str


@dataclass(frozen=True, slots=True)
class LawBook:
    """All written law of one seed: the number that each town's ordinance sets for each kind of claim."""

    numbers: Mapping[tuple[str, str], int]

    def choose(self, rng: random.Random, kind: Kind, told: Told, split: str) -> tuple[str, str | None]:
        """A town of the split and the fact that its law makes to hold or fail; no fact where the issue is left open.

        The fact is drawn before the town, so that it says nothing by itself.
        """
        number = rng.choice(TOLD)
        towns = [town for town in TOWNS[split] if (number > self.numbers[town, kind.name]) is (told is Told.HOLDS)]
        if told is Told.UNCLEAR:
            return rng.choice(TOWNS[split]), None
        return rng.choice(towns), f"{ordinances()[kind.name].fact.replace('{m}', WORDS[number])}."

    def ordinance(self, town: str, kind: str) -> tuple[str, str]:
        """Citation and text of a town's ordinance for a kind of claim."""
        number = WORDS[self.numbers[town, kind]]
        return f"{town}시 {kind} 조례 제1조", ordinances()[kind].text.replace("{n}", number)

    def laws(self) -> Iterator[dict[str, str]]:
        """The whole book, a row for each law: the ordinances of all towns, and the rules that hold everywhere."""
        for town, kind in self.numbers:
            citation, text = self.ordinance(town, kind)
            yield {"citation": citation, "text": text}
        for one in kinds():
            for issue in one.issues:
                rule = _RULES[issue.role].replace("{kind}", one.name).replace("{name}", issue.name)
                yield {"citation": issue.statute, "text": rule}


def law_book(seed: int) -> LawBook:
    """The law of a seed; in each split and for each kind of claim, every number is set by equally many towns."""
    rng = random.Random(f"mini statutes, {seed}")
    numbers: dict[tuple[str, str], int] = {}
    for towns in TOWNS.values():
        for kind in ordinances():
            spread = [SET[place % len(SET)] for place in range(len(towns))]
            numbers |= {(town, kind): n for town, n in zip(towns, rng.sample(spread, len(spread)), strict=True)}
    return LawBook(numbers)


@cache
def ordinances() -> Mapping[str, Ordinance]:
    """Kind of claim -> its ordinance, as mini_statutes.yaml has them."""
    import yaml

    entries = yaml.safe_load(Path(__file__).with_name("mini_statutes.yaml").read_text(encoding="utf-8"))
    return {kind: Ordinance(entry["issue"], entry["ordinance"], entry["fact"]) for kind, entry in entries.items()}
