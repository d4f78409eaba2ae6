"""Cases of the mini world."""

import asyncio
import json
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

from data.cases import Case, Claim, Issue
from data.mini import SPLIT_BUCKETS, generate, gold_answer, main
from data.mini_law import Told, kinds
from rewards.mini_judge import MiniJudge, count_extra_issues
from rewards.score import score_case

NUM_CASES = 3000


@cache
def train():
    return generate(0, "train", NUM_CASES)


def as_case(record):
    issues = tuple(
        Issue(
            id=issue["id"],
            summary=issue["summary"],
            claims=tuple(Claim(**claim) for claim in issue["claim"]),
            conclusion=issue["conclusion"],
            relevant_law=tuple(issue["relevant_law"]),
            analysis=tuple(issue["analysis"]),
        )
        for issue in record["issues"]
    )
    return Case(record["doc_id"], record["question"], issues, record["difficulty"], extra={"mini": record["mini"]})


def content(record):
    """What is disputed and what is told of it, in whatever words."""
    mini = record["mini"]
    return (mini["kind"], *((issue["name"], issue["told"]) for issue in mini["issues"].values()))


def sub_issues(records):
    return [issue for record in records for issue in record["mini"]["issues"].values()]


def test_records_are_official_and_valid():
    keys = {"doc_id", "question", "answer", "issues", "difficulty", "mini"}
    for record in train():
        assert record.keys() == keys
        case = as_case(record)  # validates the tree
        assert case.answer == record["answer"]
        assert record["mini"]["issues"].keys() == {issue.id for issue in case.sub_issues}
    assert json.loads(json.dumps(train(), ensure_ascii=False)) == train()


def test_the_same_arguments_give_the_same_cases():
    assert generate(0, "train", 50) == train()[:50]
    assert generate(1, "train", 50) != train()[:50]


def test_no_case_occurs_twice():
    assert len({record["doc_id"] for record in train()}) == NUM_CASES
    assert len({record["question"] for record in train()}) == NUM_CASES


def test_no_case_occurs_in_two_splits_whatever_the_seed_and_the_wording():
    seen = {
        split: {content(record) for seed in (0, 1) for record in generate(seed, split, 300)} for split in SPLIT_BUCKETS
    }
    seen["train"] |= {content(record) for record in train()}
    for one, other in combinations(seen, 2):
        assert not seen[one] & seen[other], (one, other)


def test_a_text_is_decided_alike_whatever_the_seed():
    by_question = {}
    num_met_again = 0
    for seed in range(2):
        for record in generate(seed, "train", 1000, undecidable_frac=0.8):
            num_met_again += record["question"] in by_question
            assert by_question.setdefault(record["question"], record) == record
    assert num_met_again > 0


def test_trees_have_three_to_eight_issues_and_all_depths_and_difficulties():
    sizes = Counter(len(record["issues"]) - 1 for record in train())
    assert set(sizes) == {3, 4, 5, 6, 7, 8}
    assert {record["difficulty"] for record in train()} == {"easy", "medium", "hard"}
    assert max(id.count(".") for record in train() for id in record["mini"]["issues"]) == 2


def test_ids_count_without_gaps():
    for record in train():
        for id in record["mini"]["issues"]:
            parent, _, number = id.rpartition(".")
            siblings = [other for other in record["mini"]["issues"] if other.rpartition(".")[0] == parent]
            assert [other.rpartition(".")[2] for other in siblings] == [str(n + 1) for n in range(len(siblings))]
            assert int(number) <= len(siblings)


def test_kinds_and_orders_are_balanced():
    by_kind = {kind.name: Counter() for kind in kinds()}
    for record in train():
        by_kind[record["mini"]["kind"]][record["answer"]] += 1
    for name, orders in by_kind.items():
        num = orders.total()
        assert num == pytest.approx(NUM_CASES / 6, rel=0.2), name
        assert len(orders) == (4 if name in ("대여금", "과세처분") else 3)
        assert all(count / num == pytest.approx(1 / len(orders), abs=0.07) for count in orders.values()), name


def test_about_a_quarter_of_the_issues_cannot_be_decided():
    issues = sub_issues(train())
    assert sum(not issue["decidable"] for issue in issues) / len(issues) == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("frac", [0.0, 0.5])
def test_the_share_of_open_issues_can_be_set(frac):
    issues = sub_issues(generate(0, "train", 500, undecidable_frac=frac))
    assert sum(issue["told"] == "unclear" for issue in issues) / len(issues) == pytest.approx(frac, abs=0.03)
    if frac == 0:
        assert all(issue["decidable"] for issue in issues)


def test_the_question_tells_every_issue_in_one_of_its_wordings():
    law = {kind.name: {issue.name: issue for issue in kind.issues} for kind in kinds()}
    wordings = set()
    for record in train()[:300]:
        sentences = re.split(r"(?<=\.) ", record["question"])
        told = list(record["mini"]["issues"].values())
        assert len(sentences) == len(told) + 2  # the purpose and the request
        for sentence, issue in zip(sentences, told, strict=False):
            known = law[record["mini"]["kind"]][issue["name"]].sentences[Told(issue["told"])]
            assert sentence.removesuffix(".") in known
            wordings.add(sentence)
    assert len(wordings) > 200


def test_conclusions_are_sentences_with_the_right_particle():
    conclusions = {issue["conclusion"] for record in train() for issue in record["issues"][1:]}
    assert {"변제를 인정한다.", "변제를 인정하지 않는다.", "소비대차 성립을 인정한다."} <= conclusions


def test_the_well_formed_answer_earns_ten_and_names_nothing_else():
    for record in train()[:500]:
        case = as_case(record)
        answer = gold_answer(record["answer"], record["mini"])
        assert score_case(case, asyncio.run(MiniJudge().judge_case(case, answer))).total == pytest.approx(10)
        assert count_extra_issues(case, answer) == 0


def test_the_order_stands_last_or_first():
    last, first = generate(0, "test", 1)[0], generate(0, "test", 1, order_first=True)[0]
    assert last["question"] == first["question"]
    last_lines = gold_answer(last["answer"], last["mini"]).split("\n")
    first_lines = gold_answer(first["answer"], first["mini"]).split("\n")
    assert last_lines[-1] == f"주문: {last['answer']}"
    assert first_lines == [last_lines[-1], *last_lines[:-1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "dev"}, "split must be one of lesson, train, validation, test, got 'dev'"),
        ({"undecidable_frac": 1.0}, r"undecidable_frac must lie in \[0, 1\), got 1.0"),
        ({"num_cases": -1}, "num_cases must be >= 0, got -1"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        generate(**{"seed": 0, "split": "train", "num_cases": 1, **arguments})


def test_the_command_writes_the_wanted_splits(tmp_path):
    main(["--out", str(tmp_path / "mini"), "--train", "30", "--test", "10"])
    assert sorted(path.name for path in (tmp_path / "mini").iterdir()) == ["test.jsonl", "train.jsonl"]
    lines = (tmp_path / "mini" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == train()[:30]


def test_a_folder_in_the_place_of_a_split_is_told(tmp_path, capsys):
    (tmp_path / "train.jsonl").mkdir()
    assert main(["--out", str(tmp_path), "--train", "1"]) == 2
    assert capsys.readouterr().err == f"{tmp_path / 'train.jsonl'} is a folder, and must be a file\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to write"),
        (["--train", "5", "--undecidable-frac", "2"], "undecidable_frac must lie in"),
    ],
    ids=["no split", "wrong share"],
)
def test_the_command_says_what_is_wrong_and_exits_2(tmp_path, arguments, message):
    script = Path(__file__).parents[1] / "data" / "mini.py"
    ended = subprocess.run(
        [sys.executable, script, "--out", tmp_path, *arguments], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
