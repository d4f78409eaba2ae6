"""Four sets on the same cases: what each of two things brings, on hand-worked scores."""

import json
from pathlib import Path

import pytest
from graded_cases import by_key, make_case, make_grade

from data.command import InputError
from data.jsonl import write_json
from data.records import to_record
from eval.four_way import effects, main
from eval.graded import GradedSet

CASES = {name: make_case(name, "1", "2") for name in "ab"}
VERDICTS = {  # scores of a and b: 0 and 0, 5 and 0, 5 and 2.5, 10 and 10
    "base": ("wnn", "wnn"),
    "+RAG": ("rnn", "wnn"),
    "+RL": ("rnn", "wrn"),
    "+RAG+RL": ("rrr", "rrr"),
}


def graded(name: str) -> GradedSet:
    grades = (make_grade(CASES[id], letters) for id, letters in zip("ab", VERDICTS[name], strict=True))
    return GradedSet(name, Path(name), None, by_key(*grades), {})


def test_effects_are_paired_sums_of_sets():
    told, num_cases = effects([graded(name) for name in VERDICTS])
    assert num_cases == 2
    assert {name: one["score"].centre for name, one in told.items()} == pytest.approx(
        {
            "RAG, before RL": (5 + 0) / 2,
            "RAG, after RL": (5 + 7.5) / 2,
            "RL, without RAG": (5 + 2.5) / 2,
            "RL, with RAG": (5 + 10) / 2,
            "both": 10,
            "more than the sum": (0 + 7.5) / 2,  # a: 10 - 5 - 5 + 0, b: 10 - 2.5 - 0 + 0
        }
    )
    assert (told["both"]["score"].low, told["both"]["score"].high) == (10, 10)
    with pytest.raises(InputError, match="no case is scored"):
        effects([graded("base")] * 3 + [GradedSet("none", Path("none"), None, {}, {})])


def test_one_command_over_graded_sets(tmp_path, capsys):
    cases = tmp_path / "cases.jsonl"
    cases.write_text("".join(json.dumps(to_record(case)) + "\n" for case in CASES.values()), encoding="utf-8")
    sets = []
    for number, name in enumerate(VERDICTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        lines = (json.dumps(grade.to_record(), ensure_ascii=False) + "\n" for grade in graded(name).grades.values())
        (folder / "grades.jsonl").write_text("".join(lines), encoding="utf-8")
        write_json(folder / "grades.meta.json", {"judge": "mini"})
        sets.append(f"{name}={folder}")
    figures = tmp_path / "figures.json"
    assert main([*sets, "--cases", str(cases), "--json", str(figures), "--latex", str(tmp_path / "t.tex")]) == 0
    told = json.loads(figures.read_text(encoding="utf-8"))
    assert (told["rag_rl/mean/score"], told["more_than_the_sum/score"]) == (10, 3.75)
    assert "RAG, after RL" in capsys.readouterr().out
    assert main([*sets[:3], "--cases", str(cases)]) == 2
    assert "four sets are needed" in capsys.readouterr().err
