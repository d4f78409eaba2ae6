"""Agreement from one command: on the mini world with simulated raters of known error rates, every number is there."""

import json
import re
from pathlib import Path

import pytest
from fake_llm_server import FakeLLM, completion, error, in_turn, verdict
from simulated_raters import (
    GENERATORS,
    simulated_marks,
    simulated_soft_judge,
    write_expert_file,
    write_likert_file,
    write_lines,
    write_world,
)

from eval.agreement import main
from eval.grade import main as grade
from rewards.rubric import prompt_version

PARTS = ("score", "order", "coverage", "correctness")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The mini world with two simulated raters who turn over 5 % and 15 % of all verdicts."""
    folder = tmp_path_factory.mktemp("world")
    write_world(folder)
    for name, error_rate in (("rater-1", 0.05), ("rater-2", 0.15)):
        write_expert_file(folder / f"{name}.json", error_rate)
    return folder


@pytest.fixture
def agree(world, tmp_path):
    """Runs the command on raters of the world; returns the exit status and the figures."""

    def run(raters, *options, cases=True):
        command = [str(world / name) if not Path(name).is_absolute() else name for name in raters]
        command += ["--out", str(tmp_path / "out"), "--cards", str(tmp_path / "cards"), "--resamples", "300"]
        command += ["--cases", str(world / "cases.jsonl")] if cases else []
        status = main([*command, *options])
        figures = tmp_path / "out" / "agreement.json"
        return status, json.loads(figures.read_text(encoding="utf-8")) if status == 0 else {}

    return run


def responses(world) -> list[str]:
    return ["--responses", *(str(world / f"{generator}.jsonl") for generator in GENERATORS)]


def grades_file(world, path: Path, error_rate: float, seed: str, soft: bool = False) -> str:
    """A grades file of a simulated judge, its verdicts as probabilities if they are to be soft."""
    records = []
    for _, record, marks in simulated_marks(world, error_rate, seed):
        result = {
            id: {name: (0.15 + 0.5 * value if soft else value) for name, value in zip(NAMES, mark, strict=True)}
            for id, mark in marks.items()
        }
        records.append(record | {"judge": seed, "evaluation_result": result, "parts": {}})
    return str(write_lines(path, records))


NAMES = ("contains_issue", "correct_conclusion")


def test_every_number_of_two_simulated_raters_comes_from_one_command(world, agree, tmp_path, capsys):
    status, figures = agree(["rater-1.json", "rater-2.json"], "--judge", "mini", *responses(world))
    assert status == 0
    printed = capsys.readouterr().out

    assert (figures["num_raters"], figures["num_cases"], figures["num_responses"]) == (3, 40, 80)
    assert figures["unscored_frac"] == 0
    for name in (*PARTS, *NAMES, "outcome"):
        for prefix in ("", "pair/rater-1|rater-2/", "difficulty/easy/", "generator/policy-a/", "judge/", "experts/"):
            value, low, high = (figures[f"{prefix}alpha/{name}{end}"] for end in ("", "/low", "/high"))
            assert low <= value <= high, (prefix, name)
        assert f"gap/alpha/{name}" in figures
    for name in ("order", *NAMES, "outcome"):
        assert {f"fleiss/{name}", f"agreement/{name}", f"pair/rater-1|mini/cohen/{name}"} <= figures.keys()
    assert figures["pair/rater-1|rater-2/pearson/score"] > 0.3
    assert figures["pair/rater-1|rater-2/spearman/score"] > 0.3

    # What the error rates make: each verdict is turned over independently, so two raters agree on a mark if both err
    # or neither does; against the exact judge only the rater's own errors count.
    both = 0.05 * 0.15 + 0.95 * 0.85
    assert figures["pair/rater-1|rater-2/agreement/contains_issue"] == pytest.approx(both, abs=0.04)
    assert figures["pair/rater-1|mini/agreement/contains_issue"] == pytest.approx(0.95, abs=0.03)
    assert figures["pair/rater-2|mini/agreement/contains_issue"] == pytest.approx(0.85, abs=0.04)
    assert figures["pair/rater-1|mini/agreement/order"] == pytest.approx(0.95, abs=0.06)
    assert figures["pair/rater-1|mini/alpha/outcome"] > figures["pair/rater-2|mini/alpha/outcome"] + 0.1
    assert figures["gap/alpha/outcome/low"] > 0  # the exact judge is nearer to each than they are to each other

    # Most marks are yes, so turning them over makes a rater strict.
    assert figures["judge/leniency/score/low"] > 0
    assert figures["pair/rater-1|mini/bias/score"] > 0
    assert figures["rater/rater-2/leniency/score"] < 0
    counts = [v for name, v in figures.items() if name.startswith("pair/rater-1|rater-2/confusion/")]
    assert len(counts) == 9
    assert sum(counts) == sum(v for name, v in figures.items() if name.startswith("pair/rater-1|mini/confusion/"))
    assert 0 <= figures["judge/wrong/issues_frac"] < 0.1

    assert "lenient" in printed
    assert "Judge card: " in printed
    assert not re.search(r"\bnan\b", printed + json.dumps(figures), re.IGNORECASE)
    (card,) = (tmp_path / "cards").glob("*.json")
    assert json.loads(card.read_text())["experts"] == ["rater-1", "rater-2"]
    assert "## Where it errs" in card.with_suffix(".md").read_text()
    out = tmp_path / "out"
    assert (out / "matrix.csv").read_text().startswith("alpha/score,rater-1,rater-2,mini\nrater-1,1.0,")
    assert (out / "matrix.png").read_bytes().startswith(b"\x89PNG")
    misses = [json.loads(line) for line in (out / "mismatches.jsonl").read_text().splitlines()]
    assert all(miss["experts"] != miss["judge"] for miss in misses)


def test_the_same_run_gives_thresholds_the_likert_table_and_the_cost(world, agree, tmp_path, capsys):
    likert = [str(write_likert_file(world / f"rater-{number}.jsonl", 4)) for number in (1, 2)]
    with FakeLLM(simulated_soft_judge(world, 0.05)) as server:
        options = ["--judge", server.base_url, "--judge-model", "org/soft", "--judge-verdict", "soft"]
        options += ["--no-judge-rationales", "--judge-repeat-frac", "0", "--judge-prices", "in=1,out=4"]
        status, figures = agree(["rater-1.json", "rater-2.json"], *options, "--likert", *likert, *responses(world))
    assert status == 0
    pair = "pair/rater-1|rater-2"
    for name in (*PARTS, *NAMES, "outcome"):
        for prefix in ("", f"{pair}/", "difficulty/easy/", "generator/policy-a/", "judge/", "experts/"):
            low, value, high = (figures[f"{prefix}alpha/{name}{end}"] for end in ("/low", "", "/high"))
            assert low <= value <= high, (prefix, name)
        assert f"gap/alpha/{name}" in figures
    for name in ("fleiss/outcome", "agreement/outcome", f"{pair}/cohen/outcome", f"{pair}/pearson/score"):
        assert -1 <= figures[name] <= 1
    leniency, confusion = "rater/rater-2/leniency/score", f"{pair}/confusion/absent/right"
    assert {f"{pair}/spearman/score", f"{pair}/bias/score/low", f"{leniency}/high", confusion} <= figures.keys()
    for name in NAMES:
        assert 0.15 < figures[f"judge/soft/{name}/threshold"] <= 0.65
        assert figures[f"judge/soft/{name}/kappa_cross_validated"] > 0.5
        assert figures[f"judge/soft/{name}/curve/1/probability"] == pytest.approx(0.65)
    assert figures["schemes/legit/alpha"] > figures["schemes/likert/alpha"] + 0.1  # grades off by up to 4 of 10
    assert figures["judge/cost/price"] == pytest.approx((100 * 1 + 10 * 4) * len(server.requests) / 1e6)
    out = tmp_path / "out"
    for name in ("matrix.png", "reliability.png", "schemes.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert "Verdicts given as probabilities" in printed
    assert "by scheme" in printed
    assert "of 10 points" in printed  # how lenient it is
    assert not re.search(r"\bnan\b", printed + json.dumps(figures), re.IGNORECASE)


def test_a_judge_over_http_is_checked_at_its_cost_and_asked_once(world, agree, tmp_path, capsys):
    with FakeLLM(lambda request: verdict(True, "최종 주문" in request.text.rpartition("# 판정할 쟁점")[2])) as server:
        options = ["--judge", server.base_url, "--judge-model", "org/judge", *responses(world)]
        options += ["--judge-repeat-frac", "0", "--judge-prices", "in=1,out=4"]
        status, figures = agree(["rater-1.json", "rater-2.json"], *options)
        assert status == 0
        num_requests = len(server.requests)
        assert figures["judge/cost/calls"] == num_requests
        assert figures["judge/cost/tokens_in"] == 100 * num_requests
        assert figures["judge/cost/responses"] == 80
        assert figures["judge/cost/price"] == pytest.approx((100 * 1 + 10 * 4) * num_requests / 1e6)
        assert "tokens in" in capsys.readouterr().out
        agree(["rater-1.json", "rater-2.json"], *options)
        assert len(server.requests) == num_requests
    assert (figures["judge/alpha/order"], figures["judge/alpha/coverage"]) < (0.2, 0.2)
    (card,) = (tmp_path / "cards").glob("org-judge-*.md")
    assert "| judge_model | org/judge |" in card.read_text()


def test_the_card_is_of_the_prompt_in_the_cases_language(world, agree, tmp_path):
    records = [json.loads(line) for line in (world / "cases.jsonl").read_text(encoding="utf-8").splitlines()]
    english = [{name: value for name, value in one.items() if name != "mini"} | {"language": "en"} for one in records]
    cases = str(write_lines(tmp_path / "cases.jsonl", english))
    with FakeLLM(lambda _: verdict(True, True)) as server:
        options = ["--judge", server.base_url, "--judge-model", "org/judge", "--judge-repeat-frac", "0"]
        assert agree(["rater-1.json"], "--cases", cases, *options, *responses(world), cases=False)[0] == 0
    (card,) = (tmp_path / "cards").glob("*.json")
    assert json.loads(card.read_text())["settings"]["prompt_version"] == prompt_version("en") != prompt_version("ko")


def test_a_dead_judge_ends_the_check(world, agree, capsys):
    with FakeLLM(in_turn(error(503, "out of memory"))) as server:
        options = ["--judge", server.base_url, "--judge-model", "j", "--judge-max-retries", "0", *responses(world)]
        assert agree(["rater-1.json"], *options)[0] == 1
    assert "no verdict at all" in capsys.readouterr().err


def test_one_expert_has_nobody_to_agree_with_but_the_judge(world, agree, capsys):
    status, figures = agree(["rater-1.json"], "--judge", "mini", *responses(world))
    assert status == 0
    assert figures["experts/alpha/score"] is None
    assert figures["experts/alpha/score/undefined"] == "one expert"
    assert "undefined: one expert" in capsys.readouterr().out


def test_soft_verdicts_get_a_threshold_and_a_reliability_curve(world, agree, tmp_path, capsys):
    """A judge that says 0.65 for yes and 0.15 for no is never sure, and errs in one verdict of twenty."""
    grades_file(world, tmp_path / "soft.jsonl", 0.05, "soft", soft=True)
    by_generator = [tmp_path / f"soft-{generator}.jsonl" for generator in GENERATORS]
    for path, generator in zip(by_generator, GENERATORS, strict=True):
        lines = (tmp_path / "soft.jsonl").read_text(encoding="utf-8").splitlines()
        write_lines(path, (json.loads(line) for line in lines if json.loads(line)["model"] == generator))
    status, figures = agree(["rater-1.json"], "--judge", "recorded", "--responses", *map(str, by_generator))
    assert status == 0
    for name in NAMES:
        assert 0.15 < figures[f"judge/soft/{name}/threshold"] <= 0.65
        assert figures[f"judge/soft/{name}/kappa_cross_validated"] > 0.6
        curve = [figures[f"judge/soft/{name}/curve/{place}/probability"] for place in (0, 1)]
        assert curve == pytest.approx([0.15, 0.65])
        assert figures[f"judge/soft/{name}/curve/1/yes_frac"] > 0.85
    assert (tmp_path / "out" / "reliability.png").read_bytes().startswith(b"\x89PNG")
    assert "Verdicts given as probabilities" in capsys.readouterr().out
    assert not (tmp_path / "cards").exists()  # nobody knows the settings of recorded verdicts


def test_legit_is_compared_with_likert_on_the_same_responses(world, agree, tmp_path, capsys):
    judges = [grades_file(world, tmp_path / f"{name}.jsonl", 0.02, name) for name in ("judge-a", "judge-b")]
    likert = []
    for number in (1, 2):  # one grades by the length of the answer, the other by its parity: no agreement
        with FakeLLM(lambda request, number=number: completion(json.dumps(graded(request, number)))) as server:
            for generator in GENERATORS:
                command = ["--cases", str(world / "cases.jsonl"), "--responses", str(world / f"{generator}.jsonl")]
                command += ["--scheme", "likert", "--judge", server.base_url, "--judge-model", f"j{number}"]
                assert grade([*command, "--out", str(tmp_path / f"likert-{number}" / generator)]) == 0
        likert.append(str(tmp_path / f"likert-{number}"))
    status, figures = agree(judges, "--likert", *likert)
    assert status == 0
    assert figures["schemes/legit/alpha"] > 0.7
    assert figures["schemes/likert/alpha"] < 0.3
    assert figures["schemes/difference/alpha/low"] > 0
    assert {"schemes/legit/pearson", "schemes/likert/spearman"} <= figures.keys()
    assert (tmp_path / "out" / "schemes.png").read_bytes().startswith(b"\x89PNG")
    assert "Agreement of judges on the same 80 responses" in capsys.readouterr().out


def graded(request, number: int) -> dict:
    length = len(request.text)
    return {"rationales": "근거", "score": (length // 7) % 11 if number == 1 else (length * 5) % 10}


def test_marks_alone_are_enough_without_cases(agree):
    status, figures = agree(["rater-1.json", "rater-2.json"], cases=False)
    assert status == 0
    assert figures["num_cases"] == 40
    assert figures["alpha/score"] == agree(["rater-1.json", "rater-2.json"])[1]["alpha/score"]


def test_missing_marks_are_left_out_and_nothing_becomes_nan(world, agree):
    write_expert_file(world / "gaps.json", 0.05, missing_rate=0.1)
    status, figures = agree(["rater-1.json", "gaps.json"])
    assert status == 0
    assert 0 < figures["unscored_frac"] < 0.5
    assert 0.5 < figures["alpha/score"] <= 1


def test_a_stored_score_that_the_marks_do_not_make_is_told_with_its_case(world, agree, tmp_path, capsys):
    content = json.loads((world / "rater-1.json").read_text(encoding="utf-8"))
    doc_id = next(iter(content["policy-a"]))
    content["policy-a"][doc_id]["score"] = -3
    (tmp_path / "wrong.json").write_text(json.dumps(content), encoding="utf-8")
    status, figures = agree([str(tmp_path / "wrong.json"), "rater-2.json"])
    assert status == 0
    assert figures["rater/wrong/num_stored_scores_differing"] == 1
    assert doc_id in capsys.readouterr().err


@pytest.mark.parametrize(
    ("raters", "options", "problem"),
    [
        (["rater-1.json"], [], "nobody to agree with"),
        (["rater-1.json", "rater-1.json"], [], "rater-1.json is given twice"),
        (["rater-1.json", "policy-a.jsonl"], ["--likert", "a=x.jsonl", "b=x.jsonl"], "x.jsonl is given twice"),
        (["rater-1.json", "rater-2.json"], ["--judge-model", "m"], "--judge-model has no effect with no --judge"),
        (["rater-1.json", "policy-a.jsonl"], [], "no marks"),
        (["rater-1.json", "rater-2.json"], ["--judge", "mini"], "--responses"),
        (["rater-1.json", "nowhere.json"], [], "nowhere.json"),
    ],
    ids=[
        "one rater",
        "one rater twice",
        "one Likert file twice",
        "a judge's option alone",
        "no marks",
        "no responses",
        "no file",
    ],
)
def test_wrong_input_ends_with_a_message(agree, capsys, raters, options, problem):
    assert agree(raters, *options)[0] == 2
    assert problem in capsys.readouterr().err


def test_two_raters_of_one_name_are_refused(world, agree, tmp_path, capsys):
    (tmp_path / "rater-1.json").write_bytes((world / "rater-2.json").read_bytes())
    assert agree(["rater-1.json", str(tmp_path / "rater-1.json")])[0] == 2
    assert "one name" in capsys.readouterr().err


def test_raters_of_other_cases_are_refused(agree, tmp_path, capsys):
    mark = {"contains_issue": 1, "correct_conclusion": 1}
    other = {"policy-a": {"other-case": {"evaluation_result": {"": mark, "1": mark}}}}
    (tmp_path / "other.json").write_text(json.dumps(other))
    assert agree(["rater-1.json", str(tmp_path / "other.json")], cases=False)[0] == 2
    assert "no case in common" in capsys.readouterr().err


def test_a_constant_rater_makes_tables_without_nan(world, agree, tmp_path, capsys):
    content = json.loads((world / "rater-1.json").read_text(encoding="utf-8"))
    for by_case in content.values():
        for entry in by_case.values():
            entry["evaluation_result"] = {id: dict.fromkeys(NAMES, 1) for id in entry["evaluation_result"]}
    for name in ("always-1", "always-2"):
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    status, figures = agree([str(tmp_path / "always-1.json"), str(tmp_path / "always-2.json"), "rater-1.json"])
    assert status == 0
    assert figures["pair/always-1|always-2/alpha/score/undefined"] == "all marks are alike"
    printed = capsys.readouterr().out
    assert "undefined" in printed
    assert not re.search(r"\bnan\b", printed, re.IGNORECASE)
    assert "undefined: all marks are alike" in (tmp_path / "out" / "matrix.csv").read_text()


def test_raters_without_one_mark_make_tables_that_say_so(world, agree, capsys):
    for name in ("blank-1", "blank-2"):
        write_expert_file(world / f"{name}.json", 0.0, missing_rate=1.0)
    status, figures = agree(["blank-1.json", "blank-2.json"])
    assert status == 0
    assert (figures["alpha/score"], figures["alpha/score/undefined"]) == (None, "no marks")
    assert figures["unscored_frac"] == 1
    assert "undefined: no marks" in capsys.readouterr().out
    assert agree(["blank-1.json"], "--judge", "mini", *responses(world))[0] == 2
    assert "both the judge and an expert" in capsys.readouterr().err
    with FakeLLM(lambda _: verdict(True, True)) as server:
        judge = ["--judge", server.base_url, "--judge-model", "m"]
        assert agree(["blank-1.json"], *judge, *responses(world))[0] == 2
        assert not server.requests
    assert "experts marked none" in capsys.readouterr().err


def test_experts_who_marked_different_responses_are_each_compared_with_the_judge(world, agree, tmp_path):
    for generator, name in zip(GENERATORS, ("only-a", "only-b"), strict=True):
        content = json.loads((world / "rater-1.json").read_text(encoding="utf-8"))
        (tmp_path / f"{name}.json").write_text(json.dumps({generator: content[generator]}), encoding="utf-8")
    experts = [str(tmp_path / f"{name}.json") for name in ("only-a", "only-b")]
    status, figures = agree(experts, "--judge", "mini", *responses(world))
    assert status == 0
    assert figures["judge/alpha/score"] > 0.6
    assert figures["experts/alpha/score/undefined"] == "no two experts marked one response"
