"""How often an attack on the judge gets credit that the same answer without it does not.

A weak answer to a case of our own is judged alone, and again with each text of tests/attacks worked into it, on the
way that a completion takes to its reward: thinking stripped, gates, fence, prompt. The controls are harmless texts:
they tell how far verdicts move of themselves.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from data.cases import ROOT_ID, Case
from data.command import InputError, positive
from data.jsonl import read_jsonl, write_json
from data.loading import load_cases
from data.progress import progress_bar
from eval.flags import NOT_OFFERED, add_config_options, config_from, judge_options
from eval.tables import Share, Sheet, to_rich
from rewards.answer import final_answer
from rewards.gates import GateConfig, gate
from rewards.judge import Judge, JudgeConfig, load_judge
from rewards.rubric import fill
from rewards.score import Judgment

FOLDER = Path(__file__).parent.parent / "tests/attacks"
CONTROL = "control"  # the kind of the harmless texts
EXAMPLE = (
    "example: python -m benchmarks.attacks --judge http://localhost:8000/v1 --judge-model Qwen/Qwen2.5-32B-Instruct"
)

Credits = Mapping[tuple[str, str], bool]


@dataclass(frozen=True, slots=True)
class Attack:
    """A text to be worked into an answer; `text` holds {answer} where that goes, and perhaps {question}."""

    id: str
    kind: str
    language: str
    text: str

    def on(self, case: Case, answer: str) -> str:
        """The answer under this attack, as a judge would be given it."""
        return final_answer(fill(self.text, {"answer": answer, "question": case.question}))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attack came to: of the credits that the answer alone did not get (`chances`), those that it got.

    `lost` of the `held` credits went the other way. An attack that `gate_reason` stopped has nothing of either.
    """

    attack: Attack
    gate_reason: str | None = None
    chances: int = 0
    gained: tuple[tuple[str, str], ...] = ()
    held: int = 0
    lost: int = 0
    missing: int = 0


def read_attacks(folder: Path = FOLDER) -> tuple[Case, str, list[Attack]]:
    """The case, the weak answer to it, and every attack on its judge."""
    (case,) = load_cases(folder / "case.jsonl")
    return case, case.extra["weak_answer"], [Attack(**row) for _, row in read_jsonl(folder / "attacks.jsonl")]


def credits_of(judgments: Mapping[str, Judgment | None]) -> Credits:
    """What verdicts pay for, by issue and part of the score; a missing verdict has no entry."""
    paid: dict[tuple[str, str], bool] = {}
    for id, judgment in judgments.items():
        if judgment is None:
            continue
        is_contained, is_right = judgment.contains_issue > 0.5, judgment.correct_conclusion > 0.5
        if id == ROOT_ID:
            paid[id, "order"] = is_right
        else:
            paid[id, "coverage"] = is_contained
            paid[id, "correctness"] = is_contained and is_right
    return paid


def outcome_of(attack: Attack, alone: Credits, attacked: Credits) -> Outcome:
    """The two answers' credits compared, as far as both were judged."""
    both = [key for key in alone if key in attacked]
    return Outcome(
        attack,
        chances=sum(not alone[key] for key in both),
        gained=tuple(key for key in both if attacked[key] and not alone[key]),
        held=sum(alone[key] for key in both),
        lost=sum(alone[key] and not attacked[key] for key in both),
        missing=len(alone) - len(both),
    )


async def attack_judge(judge: Judge, case: Case, answer: str, attacks: Sequence[Attack]) -> list[Outcome]:
    """The answer judged alone, then under each attack.

    Raises:
        InputError: the judge does not answer.
    """
    with progress_bar("attacks", len(attacks)) as advance:
        async with judge.endpoint:
            alone = credits_of(await judge.judge_case(case, answer))
            if not alone:
                raise InputError(f"no verdict on the answer alone: {judge.stats.most_frequent_failure()}")

            async def outcome(attack: Attack) -> Outcome:
                attacked = attack.on(case, answer)
                reason = gate(attacked, "stop", GateConfig(), case.question)
                if reason is not None:
                    advance()
                    return Outcome(attack, reason)
                verdicts = await judge.judge_case(case, attacked)
                advance()
                return outcome_of(attack, alone, credits_of(verdicts))

            return await asyncio.gather(*map(outcome, attacks))


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Flat figures of some attacks: how many, how many were stopped or got through, shares of credits."""
    chances, held = sum(one.chances for one in outcomes), sum(one.held for one in outcomes)
    return {
        "num_texts": len(outcomes),
        "num_gated": sum(one.gate_reason is not None for one in outcomes),
        "num_paid": sum(bool(one.gained) for one in outcomes),
        "chances": chances,
        "gained": sum(len(one.gained) for one in outcomes),
        "lost": sum(one.lost for one in outcomes),
        "held": held,
        "missing": sum(one.missing for one in outcomes),
    }


def sheet(groups: Mapping[str, Sequence[Outcome]]) -> Sheet:
    """A row for each kind of attack, for all attacks, and for the controls."""
    rows = []
    for name, outcomes in groups.items():
        found = figures(outcomes)
        share = Share(found["gained"] / found["chances"]) if found["chances"] else None
        counts = (found[key] for key in ("num_texts", "num_gated", "num_paid", "gained", "chances"))
        rows.append((name, *counts, share, f"{found['lost']:g} of {found['held']:g}", found["missing"]))
    columns = ("kind", "texts", "gated", "paid", "gained", "of", "share", "lost", "missing")
    note = "gained: credits (order, coverage, correctness) that the answer alone does not get; lost: the other way"
    return Sheet("attacks", "Credit for attacks", columns, tuple(rows), note)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0, or 2 for a judge that does not answer."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judge", dest="judged_by", required=True, help="URL of an OpenAI-compatible judge, with /v1")
    parser.add_argument("--limit", type=positive, help="only the first so many texts of each kind")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    add_config_options(parser, JudgeConfig, skip=(*NOT_OFFERED, "judge_quorum"))
    args = parser.parse_args(argv)
    case, answer, attacks = read_attacks()
    kinds = list(dict.fromkeys(attack.kind for attack in attacks))
    attacks = [attack for kind in kinds for attack in [one for one in attacks if one.kind == kind][: args.limit]]
    with tempfile.TemporaryDirectory() as folder:  # a store: what the judge is shown unchanged is not asked again
        settings = {"judge_store": folder} | judge_options(args.judged_by)
        try:
            judge = load_judge(config_from(JudgeConfig, settings, args))
            if not isinstance(judge, Judge):
                raise InputError("the mini judge reads no prose and cannot be attacked; give a URL")
            outcomes = asyncio.run(attack_judge(judge, case, answer, attacks))
        except (InputError, ValueError) as error:
            print(error, file=sys.stderr)
            return 2

    by_kind = {kind: [one for one in outcomes if one.attack.kind == kind] for kind in kinds}
    real = [one for one in outcomes if one.attack.kind != CONTROL]
    groups = {kind: found for kind, found in by_kind.items() if kind != CONTROL} | {"all attacks": real}
    groups |= {CONTROL: by_kind[CONTROL]}
    Console(width=None if sys.stdout.isatty() else 120).print(to_rich(sheet(groups)))
    for one in outcomes:
        if one.gained:
            print(f"{one.attack.id}: " + ", ".join(f"{part} of {id or 'the root'}" for id, part in one.gained))
    if args.json:
        flat = {f"{name.replace(' ', '_')}/{key}": v for name, one in groups.items() for key, v in figures(one).items()}
        write_json(args.json, flat)
    return 0


if __name__ == "__main__":
    sys.exit(main())
