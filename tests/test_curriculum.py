"""Which cases a generation takes: hand-worked, the same on every rank and after a resume."""

import json
from itertools import pairwise
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.jsonl import JsonlError
from tests.test_evaluation import TWO_RANKS
from tests.training_runs import Workshop
from train.curriculum import Curriculum, CurriculumConfig, graded_rewards, loader_lag

IDS = tuple("가나다라마바")


def curriculum(*, size=2, lag=1, known=MappingProxyType({}), seed=0, **config):
    return Curriculum(IDS, CurriculumConfig(curriculum="skip", **config), size=size, lag=lag, seed=seed, known=known)


def ids_of(subject, generation):
    return [IDS[place] for place in subject.cases_of(generation)]


def learn(subject, generation, rewards):
    """The rewards by case id, 5 and 0 for what is not told."""
    subject.learn(generation, [rewards.get(id, [5.0, 0.0]) for id in ids_of(subject, generation)])


def test_where_all_cases_teach_something_each_comes_once_a_round():
    subject = curriculum()
    for generation in range(6):
        assert len(set(ids_of(subject, generation))) == 2
        learn(subject, generation, {})
    first, second = ([id for one in places for id in ids_of(subject, one)] for places in (range(3), range(3, 6)))
    assert sorted(first) == sorted(second) == sorted(IDS)
    assert first != second


def test_what_all_solved_or_all_failed_rests_and_comes_back():
    subject = curriculum(size=1, curriculum_rest=7)
    flat = {"나": [10.0, 10.0], "라": [0.0, -5.0]}
    seen = []
    for generation in range(24):
        seen.append(*ids_of(subject, generation))
        learn(subject, generation, flat)
    for id in flat:
        places = [place for place, other in enumerate(seen) if other == id]
        assert len(places) >= 2
        assert all(later - earlier > 7 for earlier, later in pairwise(places))
    for id in set(IDS) - flat.keys():
        assert seen.count(id) >= 4
    assert subject.resting_frac(24) in (0, 1 / 6, 2 / 6)


def test_where_too_few_are_awake_those_that_wake_soonest_fill_up():
    known = {"가": [10.0, 10.0], "나": [0.0, 0.0], "다": [10.0, 10.0], "라": [0.0, 0.0], "마": [0.0, 0.0]}
    subject = curriculum(size=3, known=known)
    assert ids_of(subject, 0) == ["바", "가", "나"]
    assert subject.resting_frac(0) == 5 / 6


def test_grades_of_the_base_policy_count_before_the_first_generation():
    subject = curriculum(size=5, known={"다": [0.0, 0.0], "가": [0.0], "나": []})
    assert sorted(ids_of(subject, 0)) == ["가", "나", "라", "마", "바"]


def test_easy_first_goes_from_the_highest_rewards_to_the_lowest():
    known = {id: [float(number), float(number) + 0.2] for number, id in enumerate(IDS)}
    config = CurriculumConfig(curriculum="easy_first")
    subject = Curriculum(IDS, config, size=3, lag=2, seed=0, known=known)
    assert [ids_of(subject, one) for one in (0, 1)] == [["바", "마", "라"], ["다", "나", "가"]]


def test_unscored_completions_are_no_failures():
    subject = curriculum(size=6)
    subject.learn(0, [[float("nan"), 0.0]] * 5 + [[0.0, 0.0]])
    assert subject.resting_frac(1) == 0
    subject.cases_of(1)
    assert subject.resting_frac(1) == 1 / 6


def test_cases_are_not_told_before_the_rewards_they_depend_on():
    subject = curriculum(lag=2)
    subject.cases_of(1)
    with pytest.raises(KeyError):
        subject.cases_of(2)


REWARDS = st.lists(st.sampled_from([-5.0, 0.0, 4.0, 10.0]), min_size=2, max_size=3)


@given(
    rewards=st.lists(st.lists(REWARDS, min_size=2, max_size=2), min_size=12, max_size=12),
    lag=st.integers(1, 4),
    stop=st.integers(1, 11),
    seed=st.integers(0, 3),
)
def test_a_resumed_run_and_another_rank_find_the_same_cases(tmp_path_factory, rewards, lag, stop, seed):
    def new():
        return curriculum(lag=lag, seed=seed, curriculum_rest=3)

    whole, other_rank, resumed = new(), new(), new()
    path = tmp_path_factory.mktemp("run") / "curriculum.jsonl"
    stale = {"generation": 0, "rewards": {id: [10.0, 10.0] for id in IDS}}
    rows = [stale]
    for generation, groups in enumerate(rewards):
        assert other_rank.cases_of(generation) == whole.cases_of(generation)
        rows.append({"generation": generation, "rewards": whole.learn(generation, groups)})
        other_rank.learn(generation, groups)
    kept = rows[: 2 + stop]  # one more than the checkpoint, which stands at `stop`
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept), encoding="utf-8")
    resumed.remember(path)
    for generation in range(stop, 12):
        assert resumed.cases_of(generation) == whole.cases_of(generation)
        resumed.learn(generation, rewards[generation])


@pytest.mark.parametrize(
    ("passes_per_update", "passes_per_generation", "num_prefetched"),
    [(1, 1, 0), (8, 8, 0), (8, 2, 0), (2, 8, 0), (3, 2, 0), (4, 4, 4), (1, 4, 2)],
)
def test_the_loader_asks_for_no_case_before_its_rewards_are_known(
    passes_per_update, passes_per_generation, num_prefetched
):
    """Before the first pass of an update those of the whole update are asked for, one more and the prefetched."""
    lag = loader_lag(passes_per_update, passes_per_generation, num_prefetched)
    for update in range(40):
        asked = ((update + 1) * passes_per_update + num_prefetched) // passes_per_generation
        last_done = (update * passes_per_update - 1) // passes_per_generation
        assert asked - lag <= last_done


def test_grades_are_paid_as_the_run_pays(tmp_path):
    path = tmp_path / "grades.jsonl"
    parts = {"order": 1.0, "coverage": 0.5, "correctness": 0.25}
    rows = [
        {"doc_id": "가", "score": 6.75, "parts": parts},
        {"doc_id": "가", "score": None, "parts": dict.fromkeys(parts)},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert graded_rewards(path, [5.0, 2.0, 3.0]) == {"가": [6.75]}
    assert graded_rewards(path, [10.0, 0.0, 0.0]) == {"가": [10.0]}
    path.write_text('{"doc_id": "가"}\n', encoding="utf-8")
    with pytest.raises(JsonlError, match="line 1"):
        graded_rewards(path, [5.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "wrong", [{"curriculum": "hard_first"}, {"curriculum_failed": 10.0}, {"curriculum_rest": 0}], ids=str
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        CurriculumConfig(**wrong)


@pytest.mark.slow
def test_two_ranks_stop_by_a_rule_and_one_goes_on_with_the_same_cases(tmp_path):
    """An epoch has 4 generations, the run 6: stopped after the third, and resumed.

    By one process, for torch cannot load the optimiser of several on a CPU; the batch is the same.
    """
    import pyarrow.parquet

    workshop = Workshop.build(tmp_path)
    rest = ("--curriculum", "skip", "--curriculum_rest", "2", "--curriculum_failed", "-1", "--max_steps", "6")
    how = ("--use_vllm", "false", "--save_steps", "6")
    table = ("--log_completions", "true", "--num_completions_to_print", "0")

    def train(*options, launcher=(), **environ):
        options = (*rest, *how, *table, *options)
        with workshop.start("run", *options, launcher=launcher, OMP_NUM_THREADS="1", **environ) as process:
            _, err = process.communicate(timeout=400)
        return process.returncode, err

    def rows(name):
        return [json.loads(line) for line in (tmp_path / name).read_text(encoding="utf-8").splitlines()]

    alerts = ("--alerts", "[stop if epoch > 0.7, warn if epoch > 0.2 for 2 logs]")
    half = ("--per_device_train_batch_size", "4")
    status, err = train(*alerts, *half, launcher=TWO_RANKS, ACCELERATE_USE_CPU="true")
    assert status == 1
    assert "stopped by alerts: epoch is 0.75, above 0.7: stop if epoch > 0.7" in err, err
    assert [(row["step"], row["action"], row["value"]) for row in rows("run/alerts.jsonl")] == [
        (2, "warn", 0.5),
        (3, "stop", 0.75),
    ]
    assert (tmp_path / "run/checkpoint-3/trainer_state.json").is_file()
    status, err = train("--alerts", "[]", "--resume_from_checkpoint", "latest")
    assert status == 0, err

    taken = rows("run/curriculum.jsonl")
    assert [row["generation"] for row in taken] == [0, 1, 2, 3, 4, 5]
    ids = [row["doc_id"] for row in rows("train.jsonl")]
    config = CurriculumConfig(curriculum="skip", curriculum_rest=2, curriculum_failed=-1)
    uninterrupted = Curriculum(ids, config, size=4, lag=2, seed=42, known={})
    for row, path in zip(taken, sorted((tmp_path / "run/completions").glob("*.parquet")), strict=True):
        places = uninterrupted.cases_of(row["generation"])
        assert [ids[place] for place in places] == list(row["rewards"])
        uninterrupted.learn(row["generation"], list(row["rewards"].values()))
        doc_ids = pyarrow.parquet.read_table(path, columns=["doc_id"]).to_pydict()["doc_id"]
        assert list(dict.fromkeys(doc_ids)) == list(row["rewards"])
    assert any(row.get("curriculum/resting_frac", 0) > 0 for row in rows("run/metrics.jsonl"))
