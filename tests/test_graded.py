"""Graded sets as users name them."""

import json

import pytest
from graded_cases import make_case, make_grade
from simulated_run import write_simulated_run

from data.command import InputError
from data.jsonl import Appender, write_json
from data.loading import to_record
from eval import compare, errors, report
from eval.graded import named, read_inputs

CASE, OTHER = make_case("가합1", "1"), make_case("가합2", "1")


@pytest.fixture
def cases(tmp_path):
    path = tmp_path / "cases.jsonl"
    with Appender(path) as file:
        for case in (CASE, OTHER):
            file.append(to_record(case))
    return str(path)


@pytest.fixture
def write_set(tmp_path):
    """Writes a folder as eval/grade.py leaves it."""

    def write(name, *grades, judge="small"):
        folder = tmp_path / name
        write_json(folder / "grades.meta.json", {"judge_model": judge, "judge_quorum": 0.5})
        with Appender(folder / "grades.jsonl") as file:
            for grade in grades:
                file.append(grade.to_record())
        return folder

    return write


def test_a_run_is_its_base_and_its_checkpoints_by_step(tmp_path):
    run = write_simulated_run(tmp_path / "run", num_cases=3, num_checkpoints=6)
    inputs = read_inputs([str(run)], None)
    assert [(graded.name, graded.step) for graded in inputs.sets] == [
        ("base", 0),
        *((f"checkpoint-{step}", step) for step in (20, 40, 60, 80, 100, 120)),  # and not 100, 120, 20
    ]
    assert inputs.sets[0].judge == {"judge": "mini", "judged by": "mini"}
    assert len(inputs.cases) == 3
    assert inputs.source == str(run / "simulated_test.jsonl")
    assert [graded.name for graded in read_inputs([str(run)], None, last_only=True).sets] == ["checkpoint-120"]
    assert read_inputs([str(run / "eval")], None).sets[-1].step == 120
    assert read_inputs([str(run / "eval/base/greedy")], None).sets[0].step == 0


def test_the_sampling_is_chosen_and_what_was_set_aside_is_not_there(tmp_path):
    run = write_simulated_run(tmp_path / "run", num_cases=2, num_checkpoints=1, num_samples=2)
    assert len(read_inputs([str(run)], None).sets[0].grades) == 4  # t1 is the only one
    write_simulated_run(tmp_path / "run", num_cases=2, num_checkpoints=1)
    assert len(read_inputs([str(run)], None).sets[0].grades) == 2  # greedy before t1
    assert len(read_inputs([str(run)], None, sampling="t1").sets[0].grades) == 4
    (run / "eval/base/greedy").rename(run / "eval/base/greedy.old-1")
    assert [graded.name for graded in read_inputs([str(run)], None).sets] == ["checkpoint-20"]
    with pytest.raises(InputError, match=r"sampling 'warm'; there is .*greedy"):
        read_inputs([str(run)], None, sampling="warm")


def test_files_and_folders_may_have_names_of_their_own(cases, write_set, tmp_path):
    one = write_set("one", make_grade(CASE, "rr"))
    write_set("two=2", make_grade(CASE, "rr"))
    inputs = read_inputs([f"+RAG+RL={one}", str(one / "grades.jsonl"), str(tmp_path / "two=2")], cases)
    assert [graded.name for graded in inputs.sets] == ["+RAG+RL", str(one), str(tmp_path / "two=2")]
    assert [graded.name for graded in read_inputs([str(one)], cases).sets] == ["model"]
    assert list(inputs.cases) == ["가합1"]  # nobody answered the other


def test_a_named_checkpoint_is_no_point_of_a_curve(tmp_path):
    run = write_simulated_run(tmp_path / "run", num_cases=2, num_checkpoints=1)
    (named,) = read_inputs([f"RL={run}/eval/checkpoint-20/greedy"], None).sets
    assert (named.name, named.step) == ("RL", None)


def test_scores_keep_to_the_quorum_of_their_grading(cases, write_set):
    case = make_case("가합3", "1", "2", "3")
    with Appender(cases) as file:
        file.append(to_record(case))
    (graded,) = read_inputs([str(write_set("one", make_grade(case, "rrr?")))], cases).sets
    assert graded.grades["가합3", 0].score.total == 10  # two of three verdicts are enough for a quorum of 0.5


def test_grades_of_other_cases_are_counted(cases, write_set):
    folder = write_set("one", make_grade(CASE, "rr"), make_grade(make_case("unknown", "1"), "rr"))
    (graded,) = read_inputs([str(folder)], cases).sets
    assert (len(graded.grades), graded.num_foreign) == (1, 1)
    folder = write_set("two", make_grade(make_case("unknown", "1"), "rr"))
    with pytest.raises(InputError, match="none of its grades is of a case of"):
        read_inputs([str(folder)], cases)


def test_nothing_there_is_told_with_what_was_looked_for(tmp_path, cases, write_set):
    with pytest.raises(InputError, match=r"grades\.jsonl.*<checkpoint>/<sampling>"):
        read_inputs([str(tmp_path / "nowhere")], cases)
    folder = write_set("one", make_grade(CASE, "rr"))
    with pytest.raises(InputError, match="--cases"):
        read_inputs([str(folder)], None)
    record = json.loads((folder / "grades.jsonl").read_text(encoding="utf-8"))
    assert record["doc_id"] == "가합1"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"judge": ', "must hold one object"),
        ("[1]", "must hold one object"),
        ('{"judge": "mini", "judge_quorum": "x"}', '"judge_quorum" must be a number in (0, 1]'),
        ('{"judge": "mini", "judge_quorum": NaN}', '"judge_quorum" must be a number in (0, 1]'),
    ],
    ids=["cut off", "list", "quorum a text", "quorum NaN"],
)
@pytest.mark.parametrize("command", [compare, errors, report], ids=["compare", "errors", "report"])
def test_a_damaged_meta_file_is_one_message(cases, write_set, capsys, command, content, problem):
    folder = write_set("one", make_grade(CASE, "rr"))
    (folder / "grades.meta.json").write_text(content)
    assert command.main([str(folder), "--cases", cases]) == 2
    told = capsys.readouterr().err
    assert str(folder / "grades.meta.json") in told
    assert problem in told


@pytest.mark.parametrize("argument", ["", "a=", "="])
def test_a_name_without_a_path_is_refused(argument):
    with pytest.raises(InputError, match="names no path"):
        named(argument)
