"""Written law in the mini world: what it settles cannot be known without it, and it changes nothing where it is off."""

import asyncio
import hashlib
import json
from collections import Counter
from functools import cache

import pytest

from data.citations import find_laws
from data.mini import generate, gold_answer, main
from data.mini_statutes import SET, TOLD, TOWNS, WORDS, law_book, ordinances
from data.records import from_record
from rewards.mini_judge import MiniJudge

NUMBERS = {word: number for number, word in WORDS.items()}
SEED = 7


@cache
def train():
    return generate(0, "train", 1500, statutes=SEED)


def settled(record) -> dict:
    """What the ordinance's issue is told as, with the numbers of both, and the town."""
    town = record["question"].partition("시에서")[0]
    kind = record["mini"]["kind"]
    citation, text = law_book(SEED).ordinance(town, kind)
    (issue,) = [issue for issue in record["issues"] if issue["relevant_law"] == [f"{citation}: {text}"]]
    rule = ordinances()[kind]
    before, after = rule.fact.split("{m}")
    told = issue["analysis"][0].removeprefix(before).removesuffix(f"{after}.")
    number = law_book(SEED).numbers[town, kind]
    return {
        "town": town,
        "kind": kind,
        "told": record["mini"]["issues"][issue["id"]]["told"],
        "set": number,
        "fact": told,
    }


@cache
def all_settled():
    return [settled(record) for record in train()]


def test_without_a_law_book_the_world_is_what_it_was():
    text = json.dumps([generate(3, split, 400, undecidable_frac=0.2) for split in ("lesson", "train", "test")])
    assert hashlib.sha256(text.encode()).hexdigest()[:12] == "3b44f66e174d"


def test_the_ordinance_decides_by_its_number():
    told = [one for one in all_settled() if one["told"] != "unclear"]
    assert all((NUMBERS[one["fact"]] > one["set"]) is (one["told"] == "holds") for one in told)
    assert {(NUMBERS[one["fact"]], one["set"]) for one in told} == {(m, n) for m in TOLD for n in SET}


def test_the_facts_alone_say_nothing():
    counts = Counter((one["kind"], one["fact"], one["told"]) for one in all_settled() if one["told"] != "unclear")
    for kind in ordinances():
        for number in TOLD:
            holds, fails = (counts[kind, WORDS[number], told] for told in ("holds", "fails"))
            assert 0.25 < holds / (holds + fails) < 0.75


def test_towns_of_the_splits_are_apart_and_every_number_is_as_frequent():
    assert {one["town"] for one in all_settled()} == set(TOWNS["train"])
    towns = [town for split in TOWNS.values() for town in split]
    assert len(set(towns)) == len(towns)
    for split in TOWNS.values():
        for kind in ordinances():
            counts = Counter(law_book(SEED).numbers[town, kind] for town in split)
            assert set(counts.values()) == {len(split) // len(SET)}


def test_the_numbers_vary_with_the_seed():
    assert law_book(1).numbers != law_book(2).numbers
    assert law_book(1) == law_book(1)


@pytest.mark.parametrize("split", ["lesson", "validation", "test"])
def test_records_are_official_and_judged_as_ever(split):
    for record in generate(1, split, 40, statutes=SEED):
        case = from_record(record)
        assert case.question.partition("시에서")[0] in TOWNS[split]
        judgments = asyncio.run(MiniJudge().judge_case(case, gold_answer(case.answer, record["mini"])))
        assert all(judgment.correct_conclusion for judgment in judgments.values())


def test_the_law_book_is_written_beside_the_cases(tmp_path):
    main(["--out", str(tmp_path), "--test", "5", "--statutes", str(SEED)])
    rows = [json.loads(line) for line in (tmp_path / "laws.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 28 * 6 + 6 * 8
    keys = Counter(law.key for row in rows for law in find_laws(row["citation"])[:1])
    ordinance_keys = [key for key in keys if "조례" in key]
    assert len(ordinance_keys) == 28 * 6  # each town's own
    assert "무지개시대여금조례 제1조" in ordinance_keys
