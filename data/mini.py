"""The mini world: unlimited small cases of a law in which everything is known (its rules: mini_law.py)."""

import argparse
import hashlib
import random
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from data.cases import difficulty
from data.command import InputError, output_folder, run_command
from data.jsonl import write_jsonl
from data.mini_law import (
    Kind,
    LegalIssue,
    Outcome,
    Role,
    Told,
    conclude,
    decidable,
    find,
    kinds,
    outcome,
    possible_outcomes,
)
from data.mini_statutes import LawBook, law_book, ordinances

Split = Literal["lesson", "train", "validation", "test"]

WORLD_VERSION = 1  # a change to the law, the texts or the drawing of cases makes another world
ACCEPTED, REJECTED = "인정", "부정"
ORDER_NAME = "주문"
REQUEST = "쟁점마다 판단하고 주문을 내라."

MAX_TRIES = 500  # at telling one tree: a small one may have no telling that is in the split and leads to the order
MAX_LOCAL_TRIES = 20  # with an issue that is settled already, many orders have none
NUM_ISSUES_WEIGHTS = {3: 5, 4: 6, 5: 5, 6: 4, 7: 3, 8: 2}  # mean 5.0
SPLIT_BUCKETS: dict[Split, range] = {  # "lesson" is for the base model, so that training meets no case it was taught
    "lesson": range(40),
    "train": range(40, 80),
    "validation": range(80, 90),
    "test": range(90, 100),
}


def generate(
    seed: int,
    split: str,
    num_cases: int,
    *,
    undecidable_frac: float = 0.25,
    order_first: bool = False,
    statutes: int | None = None,
) -> list[dict[str, Any]]:
    """Official records of `num_cases` different mini cases, the same for the same arguments.

    Kinds of claim, and within a kind the possible orders, are equally frequent. What is disputed and what is told
    of it, apart from the wording, decides the split, so no case occurs in two splits, whatever the seeds. A record's
    key "mini" holds what the exact judge and the well-formed answer need.

    Args:
        split: "lesson", "train", "validation" or "test".
        undecidable_frac: how often the facts leave an issue open. The court decides it by a coin, which falls the
            same way whenever the same text is told.
        order_first: whether the well-formed answer begins with the order instead of ending with it.
        statutes: the seed of a law book (`data.mini_statutes`): one issue of each case then hangs on a number that
            only the book has.
    """
    if split not in SPLIT_BUCKETS:
        raise ValueError(f"split must be one of {', '.join(get_args(Split))}, got {split!r}")
    if not 0 <= undecidable_frac < 1:
        raise ValueError(f"undecidable_frac must lie in [0, 1), got {undecidable_frac}")
    if num_cases < 0:
        raise ValueError(f"num_cases must be >= 0, got {num_cases}")
    rng = random.Random(f"mini world {WORLD_VERSION}, {split}, {seed}")
    book = None if statutes is None else law_book(statutes)
    records: dict[str, dict[str, Any]] = {}
    kind: Kind | None = None
    fixed: dict[str, Told] = {}  # what a book settles is drawn before the order, so that either finding is as frequent
    while len(records) < num_cases:
        if kind is None or not fixed:
            kind = rng.choice(kinds())
            fixed = {ordinances()[kind.name].issue_id: _draw_told(rng, undecidable_frac)} if book else {}
        target = rng.choice(possible_outcomes(kind.issues))
        issues = _draw_tree(rng, kind, target, fixed)
        for _ in range(MAX_LOCAL_TRIES if book else MAX_TRIES):
            told = {issue.id: _draw_told(rng, undecidable_frac) for issue in issues} | fixed
            if _bucket(kind, told) not in SPLIT_BUCKETS[split]:
                continue
            facts = [f"{rng.choice(issue.sentences[told[issue.id]])}." for issue in issues]
            if book:
                issues, facts = _under_local_law(rng, book, kind, split, issues, told, facts)
            question = " ".join((*facts, f"{rng.choice(kind.purposes)}.", REQUEST))
            accepted = conclude(issues, find(told, _coins(question, told)))
            if outcome(issues, accepted) is target:
                record = _record(kind, issues, told, facts[-len(issues) :], question, accepted, order_first)
                records.setdefault(record["doc_id"], record)
                fixed = {}
                break
    return list(records.values())


def gold_answer(order: str, mini: Mapping[str, Any]) -> str:
    """The well-formed answer: a line "name: 인정" or "name: 부정" for each issue, and one for the order.

    >>> loan = {"order_first": False, "issues": {"1": {"name": "변제", "accepted": True}}}
    >>> print(gold_answer("원고의 청구를 기각한다.", loan))
    변제: 인정
    주문: 원고의 청구를 기각한다.
    """
    lines = [issue_line(issue["name"], issue["accepted"]) for issue in mini["issues"].values()]
    return join_answer(lines, order, order_first=mini["order_first"])


def issue_line(name: str, accepted: bool) -> str:
    """The line of an answer that decides one issue."""
    return f"{name}: {ACCEPTED if accepted else REJECTED}"


def join_answer(lines: Sequence[str], order: str, *, order_first: bool = False) -> str:
    """An answer made of the issues' lines and the order's, which stands last unless `order_first`."""
    order_line = f"{ORDER_NAME}: {order}"
    return "\n".join((order_line, *lines) if order_first else (*lines, order_line))


def _under_local_law(
    rng: random.Random,
    book: LawBook,
    kind: Kind,
    split: str,
    issues: tuple[LegalIssue, ...],
    told: Mapping[str, Told],
    facts: Sequence[str],
) -> tuple[tuple[LegalIssue, ...], list[str]]:
    """The issues and facts as a town has them: where it happened, and a number in place of what proves the issue."""
    settled = ordinances()[kind.name].issue_id
    town, fact = book.choose(rng, kind, told[settled], split)
    statute = ": ".join(book.ordinance(town, kind.name))
    local = tuple(replace(issue, statute=statute) if issue.id == settled else issue for issue in issues)
    told_facts = [fact or old if issue.id == settled else old for issue, old in zip(issues, facts, strict=True)]
    return local, [f"{town}시에서 있은 일이고, {town}시 조례를 따른다.", *told_facts]


def _draw_tree(rng: random.Random, kind: Kind, target: Outcome, needed: Collection[str] = ()) -> tuple[LegalIssue, ...]:
    """A part of the kind's tree, closed upwards, with the first element and `needed`, that can lead to the target."""
    while True:
        size = rng.choices(list(NUM_ISSUES_WEIGHTS), list(NUM_ISSUES_WEIGHTS.values()))[0]
        chosen = {kind.issues[0].id}
        while len(chosen) < size:
            parents = {"", *chosen}
            reachable = [i.id for i in kind.issues if i.id.rpartition(".")[0] in parents and i.id not in chosen]
            chosen.add(rng.choice(reachable))
        issues = tuple(issue for issue in kind.issues if issue.id in chosen)
        if target in possible_outcomes(issues) and chosen.issuperset(needed):
            return issues


def _draw_told(rng: random.Random, undecidable_frac: float) -> Told:
    if rng.random() < undecidable_frac:
        return Told.UNCLEAR
    return rng.choice((Told.HOLDS, Told.FAILS))


def _coins(question: str, told: Mapping[str, Told]) -> dict[str, bool]:
    court = hashlib.sha256(f"court: {question}".encode()).digest()
    return {id: byte < 128 for id, byte in zip(told, court, strict=False)}


def _bucket(kind: Kind, told: Mapping[str, Told]) -> int:
    content = f"{kind.name}: " + ", ".join(f"{id} {state}" for id, state in told.items())
    return int.from_bytes(hashlib.sha256(content.encode()).digest()[:8], "big") % 100


def _record(
    kind: Kind,
    issues: tuple[LegalIssue, ...],
    told: Mapping[str, Told],
    facts: Sequence[str],
    question: str,
    accepted: Mapping[str, bool],
    order_first: bool,
) -> dict[str, Any]:
    settled, order_decidable = decidable(issues, told)
    ids = _renumbered(issues)
    order = kind.orders[outcome(issues, accepted)]
    purposes = [
        {"claimer": "원고", "content": f"“{kind.orders[Outcome.GRANTED]}”라는 판결을 구한다."},
        {"claimer": "피고", "content": f"“{kind.orders[Outcome.DISMISSED]}”라는 판결을 구한다."},
    ]
    root = {"id": "", "summary": "", "claim": purposes, "relevant_law": [], "analysis": [], "conclusion": order}
    return {
        "doc_id": f"mini-{hashlib.sha256(question.encode()).hexdigest()[:16]}",
        "question": question,
        "answer": order,
        "issues": [
            root,
            *(
                _issue_record(issue, ids[issue.id], fact, told[issue.id], accepted[issue.id])
                for issue, fact in zip(issues, facts, strict=True)
            ),
        ],
        "difficulty": difficulty(len(issues) + 1),
        "mini": {
            "version": WORLD_VERSION,
            "kind": kind.name,
            "order_first": order_first,
            "order_decidable": order_decidable,
            "issues": {
                ids[issue.id]: {
                    "name": issue.name,
                    "role": issue.role.value,
                    "told": told[issue.id].value,
                    "accepted": accepted[issue.id],
                    "decidable": issue.id in settled,
                }
                for issue in issues
            },
        },
    }


def _issue_record(issue: LegalIssue, id: str, fact: str, told: Told, accepted: bool) -> dict[str, Any]:
    claimer = "피고" if issue.role in (Role.DEFENCE, Role.PARTIAL) else "원고"
    name_as_object = (
        f"{issue.name}{'을' if (ord(issue.name[-1]) - ord('가')) % 28 else '를'}"  # 28: with final consonant
    )
    finding = "증거로 정할 수 없어 법원이 가린다" if told is Told.UNCLEAR else "증거로 알 수 있다"
    return {
        "id": id,
        "summary": f"{issue.name} 여부",
        "claim": [{"claimer": claimer, "content": f"{name_as_object} 주장한다."}],
        "relevant_law": [issue.statute],
        "analysis": [fact, f"{issue.name} 여부는 {finding}."],
        "conclusion": f"{name_as_object} {'인정한다' if accepted else '인정하지 않는다'}.",
    }


def _renumbered(issues: tuple[LegalIssue, ...]) -> dict[str, str]:
    """Id in the law -> id in the case, which counts without gaps: "1", "1.2", "1.2.1" become "1", "1.1", "1.1.1"."""
    ids = {"": ""}
    num_children: dict[str, int] = {}
    for issue in issues:
        parent = ids[issue.id.rpartition(".")[0]]
        num_children[parent] = num_children.get(parent, 0) + 1
        ids[issue.id] = f"{parent}.{num_children[parent]}".lstrip(".")
    return ids


def write(args: argparse.Namespace) -> None:
    """Write the splits that were asked for, and the law book."""
    wanted = {split: num_cases for split in SPLIT_BUCKETS if (num_cases := getattr(args, split))}
    if not wanted:
        raise InputError("nothing to write: give --train, --test or another split a number of cases")
    variant = {name: getattr(args, name) for name in ("undecidable_frac", "order_first", "statutes")}
    if args.statutes is not None:
        write_jsonl(args.out / "laws.jsonl", law_book(args.statutes).laws())
    for split, num_cases in wanted.items():
        try:
            records = generate(args.seed, split, num_cases, **variant)
        except ValueError as error:
            raise InputError(str(error)) from error
        path = args.out / f"{split}.jsonl"
        write_jsonl(path, records)
        print(f"{path}: {num_cases} cases", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 when the splits are written, as JSON Lines files of official records, 2 for wrong input."""
    parser = argparse.ArgumentParser(
        description="Write cases of the mini world: a small procedural law whose conclusions all follow from written "
        "rules, for trying the whole loop without a judge model. No case occurs in two splits, whatever the seeds.",
        epilog="example: python data/mini.py --out outputs/mini --seed 0 --train 4000 --test 200",
    )
    parser.add_argument(
        "--out", type=output_folder, required=True, help="folder for one file a split, such as train.jsonl"
    )
    parser.add_argument("--seed", type=int, default=0)
    for split in SPLIT_BUCKETS:
        parser.add_argument(f"--{split}", type=int, default=0, metavar="N", help=f"number of {split} cases")
    parser.add_argument("--undecidable-frac", type=float, default=0.25, help="how often the facts leave an issue open")
    parser.add_argument(
        "--statutes", type=int, metavar="SEED", help="hang an issue of each case on a number that only a law book has, "
        "that of this seed, written beside the cases: laws.jsonl"
    )  # fmt: skip
    parser.add_argument("--order-first", action="store_true", help="the well-formed answer begins with the order")
    return run_command(parser, write, argv)


if __name__ == "__main__":
    sys.exit(main())
