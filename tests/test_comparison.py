"""Two sets on the same cases: who is better, by how much, and is it chance."""

import json
import shutil
from pathlib import Path

import pytest
from graded_cases import by_key, make_case, make_grade
from simulated_run import write_simulated_run

from data.command import InputError
from eval.compare import case_link, main
from eval.comparison import check_comparable, compare_sets, sign_test
from eval.graded import GradedSet

CASES = {name: make_case(name, "1", "2") for name in "abcd"}
JUDGE = {"judge_model": "big", "judge_temperature": 0.0}


def make_set(name: str, judge=JUDGE, **verdicts: str) -> GradedSet:
    grades = [
        make_grade(CASES[case_id], letters, sample=sample)
        for case_id, samples in verdicts.items()
        for sample, letters in enumerate(samples.split())
    ]
    return GradedSet(name, Path(name), None, by_key(*grades), judge)


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([], (0, 0, 0, 1.0)),
        ([0, 1e-12], (0, 0, 2, 1.0)),  # the rounding of sums decides nothing
        ([1] * 8, (8, 0, 0, 2 / 2**8)),
        ([1, -1], (1, 1, 0, 1.0)),
        ([0.1] * 3 + [-5] * 9, (3, 9, 0, 2 * (1 + 12 + 66 + 220) / 2**12)),
        ([1] * 3000, (3000, 0, 0, 0.0)),  # 2 ** 3000 is no float
    ],
    ids=["nothing", "ties", "all better", "even", "3 of 12", "thousands"],
)
def test_the_sign_test_is_exact(differences, expected):
    sign = sign_test(differences)
    assert (sign.better, sign.worse, sign.tied) == expected[:3]
    assert sign.p == pytest.approx(expected[3], abs=1e-12)


def test_differences_pair_the_cases():
    first = make_set("first", a="wnn", b="rrr", c="wwn", d="r?r")
    second = make_set("second", a="rrn", b="rrr", c="wnn", d="rrr")
    comparison = compare_sets(first, second)
    # a: 0 -> 5 + 1 + 1.5; b: 10 -> 10; c: 1 -> 0; d is unscored in the first
    assert comparison.figures["diff/score"] == pytest.approx((7.5 + 0 - 1) / 3)
    assert comparison.figures["num_pairs"] == 3
    assert comparison.figures["sign/score/better"] == comparison.figures["sign/score/worse"] == 1
    assert comparison.figures["sign/score/tied"] == 1
    assert comparison.figures["sign/score/p"] == 1
    assert {change.case_id: change.flip for change in comparison.changes} == {"a": 1, "b": 0, "c": 0}


def test_an_order_flips_when_half_of_the_samples_turn():
    first = make_set("first", a="rrr wrr", b="rrr rrr", c="wnn wnn")
    second = make_set("second", a="wrr wrr", b="rrr wrr", c="rnn wnn")
    assert {change.case_id: change.flip for change in compare_sets(first, second).changes} == {"a": -1, "b": 0, "c": 1}


def test_other_judges_and_other_cases_are_refused():
    first = make_set("first", a="rrr", b="rrr")
    check_comparable([first, make_set("second", a="wnn", b="rrr")])
    with pytest.raises(InputError, match=r"judge_model \('big' and 'small'\).*agreement"):
        check_comparable([first, make_set("second", judge=JUDGE | {"judge_model": "small"}, a="rrr", b="rrr")])
    with pytest.raises(InputError, match=r"1 only in first \(b\); 2 only in second \(c, d\).*--common"):
        check_comparable([first, make_set("second", a="rrr", c="rrr", d="rrr")])
    check_comparable([first, make_set("second", a="rrr", c="rrr")], on_common_cases=True)
    with pytest.raises(InputError, match="no case in common"):
        check_comparable([first, make_set("second", c="rrr")], on_common_cases=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_simulated_run(tmp_path_factory.mktemp("run"), num_cases=12, num_checkpoints=2)


def test_two_sets_give_every_part_with_its_test(run, tmp_path, capsys):
    sets = [f"before={run}/eval/base/greedy", f"after={run}/eval/checkpoint-40/greedy"]
    path, latex = tmp_path / "c.json", tmp_path / "c.tex"
    assert main([*sets, "--json", str(path), "--latex", str(latex), "--report", "report.html"]) == 0
    shown, figures = capsys.readouterr().out, json.loads(path.read_text(encoding="utf-8"))
    assert "after against before, 12 cases" in shown
    assert figures["after/mean/score"] - figures["before/mean/score"] == pytest.approx(figures["diff/score"])
    assert figures["diff/order/low"] <= figures["diff/order"] <= figures["diff/order/high"]
    num_flipped = len(figures["flipped/to_right"]) - len(figures["flipped/to_wrong"])
    assert figures["diff/order"] == pytest.approx(num_flipped / 12)
    assert case_link("report.html", figures["flipped/to_right"][0], "after")[:40] in shown
    assert r"\toprule" in latex.read_text(encoding="utf-8")


def test_more_sets_give_one_table_against_the_first(run, tmp_path, capsys):
    path = tmp_path / "c.json"
    base, first, second = (run / "eval" / name / "greedy" for name in ("base", "checkpoint-20", "checkpoint-40"))
    folders = (base, first, shutil.copytree(base, tmp_path / "copy"), second)
    sets = [f"{name}={folder}" for name, folder in zip(("base", "+RAG", "+RL", "+RAG+RL"), folders, strict=True)]
    assert main([*sets, "--json", str(path)]) == 0
    figures = json.loads(path.read_text(encoding="utf-8"))
    assert "4 sets, each against base" in capsys.readouterr().out
    assert figures["+RL/diff/score"] == figures["+RL/diff/score/high"] == 0
    assert figures["+RAG+RL/mean/score"] - figures["base/mean/score"] == pytest.approx(figures["+RAG+RL/diff/score"])


def test_a_run_is_compared_within_itself_and_with_another_by_its_last_checkpoint(run, tmp_path, capsys):
    assert main([str(run)]) == 0
    assert "3 sets, each against base" in capsys.readouterr().out
    assert main([f"one={run}", f"two={shutil.copytree(run, tmp_path / 'other')}"]) == 0
    assert "two against one" in capsys.readouterr().out


def test_common_cases_must_be_asked_for(run, tmp_path, capsys):
    few = tmp_path / "few"
    few.mkdir()
    lines = (run / "eval/base/greedy/grades.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (few / "grades.jsonl").write_text("".join(lines[:7]), encoding="utf-8")
    (few / "grades.meta.json").write_bytes((run / "eval/base/greedy/grades.meta.json").read_bytes())
    arguments = [f"{run}/eval/checkpoint-40/greedy", f"few={few}", "--cases", str(run / "simulated_test.jsonl")]
    assert main(arguments) == 2
    assert "5 only in checkpoint-40" in capsys.readouterr().err
    assert main([*arguments, "--common"]) == 0
    assert "few against checkpoint-40, 7 cases" in capsys.readouterr().out


@pytest.mark.parametrize("first", [True, False], ids=["the first", "the second"])
def test_a_set_without_its_meta_file_is_told_so(run, tmp_path, capsys, first):
    (tmp_path / "grades.jsonl").write_bytes((run / "eval/base/greedy/grades.jsonl").read_bytes())
    sets = [f"bare={tmp_path}", f"{run}/eval/checkpoint-40/greedy"]
    assert main([*(sets if first else sets[::-1]), "--cases", str(run / "simulated_test.jsonl")]) == 2
    told = capsys.readouterr().err
    assert f"{tmp_path / 'grades.jsonl'}: grades.meta.json is missing beside it" in told
    assert "None" not in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{run}/eval/base/greedy"], "one graded set only"),
        (["{run}", "wandb:a/b/c"], "cannot be compared"),
        (["wandb:{run}", "wandb:{run}/eval"], "no offline run"),
        (["wandb:a/b/c", "wandb:a/b/c"], "a/b/c is given twice"),
        (["wandb:", "wandb:{run}"], "wandb: names no run"),
    ],
    ids=["one set", "set and W&B run", "no W&B run", "one W&B run twice", "no name"],
)
def test_what_cannot_be_compared_is_said(run, capsys, arguments, message):
    assert main([argument.format(run=run) for argument in arguments]) == 2
    assert message in capsys.readouterr().err
