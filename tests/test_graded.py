"""Graded sets as users name them."""

import json

import pytest
from graded_cases import make_case, make_grade
from simulated_run import write_simulated_run

from data.command import InputError
from data.jsonl import Appender, write_json
from data.loading import to_record
from eval import compare, errors, four_way, report
from eval.comparison import check_comparable
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
    three = write_set("three", make_grade(CASE, "rr"))
    inputs = read_inputs([f"+RAG+RL={one}", str(three / "grades.jsonl"), str(tmp_path / "two=2")], cases)
    assert [graded.name for graded in inputs.sets] == ["+RAG+RL", str(three), str(tmp_path / "two=2")]
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


def run(command, *arguments):
    """The exit status, whoever sets it."""
    try:
        return command.main([str(argument) for argument in arguments])
    except SystemExit as leaving:  # argparse's own way
        return leaving.code


@pytest.mark.parametrize("command", [compare, errors, report], ids=["compare", "errors", "report"])
@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda line: line[:0], "holds no grade"),
        (lambda line: line[:50], "holds no grade"),
        (lambda line: line + line, "line 2: case '가합1': \"sample\" 0 is graded a second time"),
        (lambda line: line.replace("true", '"yes"'), "line 1: case '가합1': issue '': \"contains_issue\" must be"),
        (lambda line: line.replace("true", "1e400"), "line 1: case '가합1': issue '': \"contains_issue\" must be"),
        (lambda line: line[:50] + "\n" + line, "line 1: not JSON"),
    ],
    ids=["empty", "cut off", "doubled", "yes", "1e400", "cut within"],
)
def test_damaged_grades_are_one_message(cases, write_set, capsys, command, spoil, problem):
    whole, folder = write_set("whole", make_grade(CASE, "rr")), write_set("one", make_grade(CASE, "rr"))
    path = folder / "grades.jsonl"
    path.write_text(spoil(path.read_text(encoding="utf-8")), encoding="utf-8")
    assert run(command, whole, folder, "--cases", cases) == 2
    told = capsys.readouterr().err
    assert str(path) in told
    assert problem in told


@pytest.mark.parametrize("command", [compare, errors, report], ids=["compare", "errors", "report"])
def test_grades_without_a_verdict_are_an_error(cases, write_set, capsys, command):
    whole, folder = write_set("whole", make_grade(CASE, "rr")), write_set("one", make_grade(CASE, "??"))
    assert run(command, whole, folder, "--cases", cases) == 2
    assert f"{folder / 'grades.jsonl'}: none of its 1 grades holds a verdict" in capsys.readouterr().err


def test_sets_of_which_no_case_is_scored_in_both_are_not_compared(cases, write_set, capsys):
    one, other = (write_set(name, make_grade(CASE, verdicts)) for name, verdicts in (("one", "rr"), ("other", "?r")))
    assert run(compare, one, other, "--cases", cases) == 2
    assert "no case is scored in both" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [compare, errors, four_way, report], ids=["compare", "errors", "four_way", "report"]
)
@pytest.mark.parametrize("again", ["a/grades.jsonl", "b/../a"], ids=["its file", "a way round"])
def test_a_set_that_is_given_twice_is_refused(cases, write_set, tmp_path, capsys, command, again):
    for name in "abc":
        write_set(name, make_grade(CASE, "rr"))
    sets = [tmp_path / "a", *((tmp_path / "b", tmp_path / "c") if command is four_way else ()), f"{tmp_path}/{again}"]
    assert run(command, *sets, "--cases", cases) == 2
    assert "a/grades.jsonl" in (told := capsys.readouterr().err)
    assert told.endswith("give each once\n")
    assert not (tmp_path / "a/report.html").exists()


def test_a_run_and_its_own_last_checkpoint_are_one_set(tmp_path, capsys):
    folder = write_simulated_run(tmp_path / "run", num_cases=2, num_checkpoints=1)
    assert run(compare, folder, f"RL={folder}/eval/checkpoint-20/greedy") == 2
    assert "checkpoint-20/greedy/grades.jsonl is given twice: give each once" in capsys.readouterr().err


@pytest.mark.parametrize("command", [compare, four_way, report], ids=["compare", "four_way", "report"])
def test_sets_that_were_drawn_in_different_ways_are_refused(cases, write_set, tmp_path, capsys, command):
    folders = [write_set(name, make_grade(CASE, "rr")) for name in ("a", "b", "c", "d")]
    sets = [f"{folder.name}={folder}" for folder in (folders if command is four_way else folders[:2])]
    options = ["--cases", cases, *(["--out", tmp_path / "page.html"] if command is report else [])]
    write_json(folders[0] / "grades.sampling.json", {"temperature": 0.0})
    assert run(command, *sets, *options) == 0  # of the second nobody knows
    write_json(folders[1] / "responses.meta.json", {"temperature": 1.0, "max_tokens": 9})
    assert run(command, *sets, *options) == 2
    told = capsys.readouterr().err
    assert "a and b were not sampled alike: temperature (0.0 and 1.0)" in told
    assert "--temperature" in told
    write_json(folders[1] / "grades.sampling.json", {"temperature": 0})  # counts before what lies there besides
    assert run(command, *sets, *options) == 0
    write_json(folders[1] / "grades.sampling.json", {"temperature": 0, "top_p": 0.9})
    assert run(command, *sets, *options) == 2
    assert "top_p (None and 0.9)" in capsys.readouterr().err


def test_where_the_first_set_does_not_tell_the_others_are_held_against_each_other(cases, write_set):
    folders = [write_set(name, make_grade(CASE, "rr")) for name in ("a", "b", "c", "d")]
    for folder, temperature in zip(folders[1:3], (0.0, 1.0), strict=True):
        write_json(folder / "grades.sampling.json", {"temperature": temperature})
    inputs = read_inputs([f"{folder.name}={folder}" for folder in folders], cases)
    with pytest.raises(InputError, match="b and c were not sampled alike"):
        check_comparable(inputs.sets)
