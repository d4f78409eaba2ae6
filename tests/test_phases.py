"""Where the time of a run went: hand-worked seconds, and lines in the form that training logs them in."""

import json

import pytest

from data.command import InputError
from data.jsonl import write_jsonl
from eval.phases import PHASES, Span, joined, read_spans, shares, windows


def line(step: int, *seconds: float) -> dict:
    """A line of metrics.jsonl after a step, in short."""
    names = ("generate", "judge", "sync", "evaluate", "save", "learn")  # as train/throughput.py orders them
    times = {f"time/{name}_s": value for name, value in zip(names, seconds, strict=True)}
    return {"step": step, "loss": 0.1, "step_time": 9.9, **times, "throughput/mfu": None}


LINES = [
    {"step": 0, "eval_score": 3.5},
    line(1, 1.0, 0.5, 0.0, 2.0, 0.0, 0.5),
    {"step": 1, "eval_score": 3.6},
    line(2, 3.0, 0.5, 0.5, 0.0, 1.0, 1.0),
    {"step": 2, "train_runtime": 10.5, "train_loss": 0.1},
]


def test_shares_are_of_all_time_and_add_up_to_one(tmp_path):
    write_jsonl(tmp_path / "metrics.jsonl", LINES)
    spans = read_spans(tmp_path / "metrics.jsonl")
    assert spans == [Span(1, 1, (1.0, 0.5, 0.0, 0.5, 2.0, 0.0)), Span(2, 2, (3.0, 0.5, 0.5, 1.0, 0.0, 1.0))]
    # 4 + 6 seconds: generate 4, judge 1, sync 0.5, learn 1.5, evaluate 2, save 1
    expected = {"generate": 0.4, "judge": 0.1, "sync": 0.05, "learn": 0.15, "evaluate": 0.2, "save": 0.1}
    assert shares(spans) == pytest.approx(expected)


def test_a_line_of_several_steps_weighs_as_many(tmp_path):
    # logging_steps: 10 and logging_first_step, 14 steps in all
    rows = [line(1, 1, 0, 0, 0, 0, 3), line(10, 1, 0, 0, 0, 0, 1), line(14, 0, 0, 0, 0, 2, 2)]
    write_jsonl(tmp_path / "metrics.jsonl", rows)
    spans = read_spans(tmp_path / "metrics.jsonl")
    assert [(span.first, span.last) for span in spans] == [(1, 1), (2, 10), (11, 14)]
    assert joined(spans) == Span(1, 14, (1 + 9, 0, 0, 3 + 9 + 8, 0, 8))
    assert shares(spans)["generate"] == 10 / 38
    assert spans[2].of_a_step == (0, 0, 0, 2, 0, 2)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([1, 2, 3, 2, 3, 4], [(1, 1), (2, 2), (3, 3), (4, 4)]),  # steps 2 and 3 done again after a resume
        ([61, 62], [(61, 61), (62, 62)]),  # gone on with in another folder
        ([10, 20, 30], [(1, 10), (11, 20), (21, 30)]),
        ([], []),
    ],
)
def test_steps_count_once(tmp_path, steps, expected):
    path = tmp_path / "metrics.jsonl"
    write_jsonl(path, [line(step, place, 0, 0, 0, 0, 1) for place, step in enumerate(steps)])
    with path.open("a") as file:
        file.write('{"step": 99, "time/gen')  # what a killed run was writing
    spans = read_spans(path)
    assert [(span.first, span.last) for span in spans] == expected
    if steps == [1, 2, 3, 2, 3, 4]:
        assert [span.seconds[0] for span in spans] == [0, 3, 4, 5]


def test_many_steps_share_a_bar():
    spans = [Span(step, step, (float(step), 0, 0, 1, 0, 0)) for step in range(1, 12)]
    bars = windows(spans, most=4)
    assert [(bar.first, bar.last) for bar in bars] == [(1, 3), (4, 6), (7, 9), (10, 11)]
    assert [bar.seconds[0] for bar in bars] == [6, 15, 24, 21]
    assert bars[3].of_a_step == (10.5, 0, 0, 1, 0, 0)
    assert shares(bars) == shares(spans)
    assert windows(spans, most=11) == spans
    assert windows([]) == []


def test_no_log_and_a_log_without_times_have_no_spans(tmp_path):
    assert read_spans(tmp_path / "metrics.jsonl") == []
    write_jsonl(tmp_path / "metrics.jsonl", [{"step": 1, "loss": 0.1, "step_time": 2.0}])
    assert read_spans(tmp_path / "metrics.jsonl") == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"time/judge_s": None}, 'line 2: "time/judge_s" must be seconds, a number from 0, got None'),
        ({"time/judge_s": True}, '"time/judge_s" must be seconds'),
        ({"time/learn_s": -0.5}, '"time/learn_s" must be seconds, a number from 0, got -0.5'),
        ({"time/save_s": float("nan")}, '"time/save_s" must be seconds'),
        ({"step": 0}, 'line 2: "step" must be a whole number from 1, got 0'),
        ({"step": "2"}, "\"step\" must be a whole number from 1, got '2'"),
        ({f"time/{phase}_s": 0 for phase in PHASES}, "line 2: a step of no time"),
    ],
)
def test_what_is_no_time_is_named(tmp_path, change, complaint):
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (LINES[1], LINES[3] | change)))
    with pytest.raises(InputError) as caught:
        read_spans(path)
    assert str(path) in str(caught.value)
    assert complaint in str(caught.value)


@pytest.mark.slow
def test_the_phases_are_those_that_training_logs():
    from train.throughput import figures

    names = {name for name in figures({}, 1.0, written=1, learnt=1, flops=1.0) if name.startswith("time/")}
    assert names == {f"time/{phase}_s" for phase in PHASES}
