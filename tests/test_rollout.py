"""Telling of completions one by one changes nothing about them: real vLLM, and TRL's client on a scripted server."""

import asyncio
import json
import re
import threading
import time
from functools import partial
from types import SimpleNamespace

import pytest

from data.cases import Case, Issue
from rewards.early import EarlyJudge
from rewards.gates import GateConfig
from rewards.judge import JudgeConfig, judge_batch, load_judge
from tests.fake_llm_server import HANGING, FakeLLM, payload, verdict
from tests.tiny_policy import write_policy
from tests.training_runs import Workshop
from train.rollout import EarlyStart, Watch, ignore
from train.stopping import Preempted, Stopping

pytestmark = pytest.mark.slow

LENGTHS = [40, 4, 12, 1, 24]
PROMPTS = [[10 + n, 20, 30 + n] for n in range(len(LENGTHS))]


def go_on():
    """No end is asked for."""


def seed_of(index, ids):
    return 100 * index


@pytest.fixture(scope="module")
def llm(tmp_path_factory):
    from eval.engine import prepare_environment

    prepare_environment()
    from vllm import LLM

    return LLM(
        str(write_policy(tmp_path_factory.mktemp("policy"))),
        max_model_len=128,
        enforce_eager=True,
        logprobs_mode="processed_logprobs",
    )


def written(outputs):
    return [
        (
            output.prompt_token_ids,
            output.outputs[0].token_ids,
            [next(iter(lp.values())).logprob for lp in output.outputs[0].logprobs],
        )
        for output in outputs
    ]


def test_a_colocated_engine_tells_of_each_completion_and_returns_what_it_did(llm):
    from vllm import SamplingParams

    sampling = [SamplingParams(temperature=0, max_tokens=n, logprobs=0, ignore_eos=True) for n in LENGTHS]
    prompts = [{"prompt_token_ids": ids} for ids in PROMPTS]
    expected = written(llm.generate(prompts, sampling_params=sampling, use_tqdm=False))
    told = []
    Watch(lambda index, ids: told.append((index, list(ids))), go_on, seed_of).over(
        SimpleNamespace(mode="colocate", llm=llm)
    )
    assert written(llm.generate(prompts, sampling_params=sampling, use_tqdm=False)) == expected
    assert [index for index, _ in told] == [3, 1, 2, 4, 0]  # the shortest first
    assert all(ids == list(expected[index][1]) for index, ids in told)


def test_a_colocated_engine_has_completions_judged_while_it_writes_others(llm):
    from vllm import SamplingParams

    arrivals = []

    def script(_):
        arrivals.append(time.perf_counter())
        return verdict(True, True)

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    case = Case("c", "질문", (Issue("", "", (), "결론"), Issue("1", "쟁점", (), "결론")))
    with FakeLLM(script) as server:
        config = JudgeConfig(judge_base_url=server.base_url, judge_model="fake", judge_repeat_frac=0.0)
        early = EarlyJudge(load_judge(config), 60)
        generation = SimpleNamespace(mode="colocate", llm=llm, tensor_parallel_size=1)
        tokenizer = SimpleNamespace(decode=lambda ids, **_: f"기각한다 {len(ids)}")
        trainer = SimpleNamespace(async_loop=loop, processing_class=tokenizer, vllm_generation=generation)
        start = EarlyStart(
            trainer, early, cases={"c": case}, gates=GateConfig(gate_truncated=False), end_token_ids=set()
        )
        Watch(start.finished, go_on, seed_of).over(generation)
        start.begin_batch(["c"] * len(LENGTHS))
        sampling = [SamplingParams(temperature=0, max_tokens=n, ignore_eos=True) for n in (2, 2, 2, 2, 120)]
        llm.generate([{"prompt_token_ids": ids} for ids in PROMPTS], sampling_params=sampling, use_tqdm=False)
        ended = time.perf_counter()
        items = [(case, "기각한다 2"), (case, "기각한다 120")]
        verdicts = asyncio.run_coroutine_threadsafe(judge_batch(early, items, 30), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    assert all(judgment for by_issue in verdicts for judgment in by_issue.values())
    assert len(arrivals) == 4  # four alike are judged once
    assert sum(arrival < ended for arrival in arrivals) >= 2


def served(request):
    """What vLLM's /v1/completions answers: token 100 + n to the prompt that begins with 10 + n, later for a small n."""
    (ids,) = request.body["prompt"]
    token = f"token_id:{90 + ids[0]}"
    logprobs = {"tokens": [token], "token_logprobs": [-0.5], "top_logprobs": [{token: -0.5}]}
    choice = {"prompt_token_ids": ids, "token_ids": [90 + ids[0]], "logprobs": logprobs}
    return payload({"choices": [choice]}, delay_s=0.2 * (15 - ids[0]))


def test_a_server_is_asked_for_each_completion_by_the_process_that_needs_it():
    from trl.generation.vllm_client import VLLMClient

    settings = {
        "mode": "server", "server_base_url": None, "repetition_penalty": 1.0, "temperature": 0.7, "top_p": 1.0,
        "top_k": 0, "min_p": None, "max_completion_length": 9, "logprobs": 0, "structured_outputs_regex": None,
        "generation_kwargs": {"presence_penalty": 0.5},
    }  # fmt: skip
    waited, told = [], []
    accelerator = SimpleNamespace(is_main_process=True, process_index=1, wait_for_everyone=lambda: waited.append(True))
    with FakeLLM(served) as server:
        client = VLLMClient(base_url=server.base_url.removesuffix("/v1"))
        generation = SimpleNamespace(vllm_client=client, accelerator=accelerator, **settings)
        Watch(lambda index, ids: told.append((index, ids)), go_on, seed_of).over(generation)
        prompts, completions, logprobs, token_ids = generation.generate(
            prompts=PROMPTS, images=None, num_generations=5, profiler=None
        )
    assert waited == [True]
    assert prompts == PROMPTS
    assert completions == [[100], [101], [102], [103], [104]]
    assert logprobs == [[[-0.5]]] * 5
    assert token_ids == [[ids] for ids in completions]
    assert told == [(n, [100 + n]) for n in (4, 3, 2, 1, 0)]
    body = server.requests[0].body
    asked = {
        name: body[name]
        for name in ("n", "temperature", "top_p", "min_p", "max_tokens", "logprobs", "presence_penalty")
    }
    assert asked == {
        "n": 1, "temperature": 0.7, "top_p": 1.0, "min_p": 0.0, "max_tokens": 9, "logprobs": 0, "presence_penalty": 0.5
    }  # fmt: skip
    seeds = {request.body["prompt"][0][0]: request.body["seed"] for request in server.requests}
    assert seeds == {10 + n: 100 * (5 + n) for n in range(5)}  # the places after those of rank 0


def test_a_generation_is_given_up_when_the_run_is_to_end():
    from trl.generation.vllm_client import VLLMClient

    stopping = Stopping()
    accelerator = SimpleNamespace(is_main_process=True, process_index=0, wait_for_everyone=lambda: None)
    settings = dict.fromkeys(
        ("server_base_url", "repetition_penalty", "temperature", "top_p", "top_k", "min_p", "max_completion_length",
         "logprobs", "structured_outputs_regex"), None)  # fmt: skip
    with FakeLLM(lambda _: HANGING) as server:
        client = VLLMClient(base_url=server.base_url.removesuffix("/v1"))
        generation = SimpleNamespace(
            mode="server", vllm_client=client, accelerator=accelerator, generation_kwargs={}, **settings
        )
        Watch(ignore, partial(stopping.look, 1), seed_of).over(generation)
        threading.Timer(0.3, stopping.ask, [Preempted("SIGTERM")]).start()
        with pytest.raises(Preempted):
            generation.generate(prompts=PROMPTS, images=None, num_generations=5)


@pytest.mark.parametrize("overlaps", [True, False], ids=["overlap", "barrier"])
def test_the_rewards_of_a_run_are_the_same_either_way(tmp_path_factory, overlaps, rewards_seen):
    def script(request):  # by the text alone, so that both ways hear the same
        draw = sum(re.sub("[0-9a-f]{8,}", "", request.text).encode()) % 4  # but for the run's own marks around it
        return verdict(draw % 2 == 0, draw < 2)

    workshop = Workshop.build(tmp_path_factory.mktemp("workshop"))
    with FakeLLM(script) as server:
        judge = (
            "--judge",
            "endpoint",
            "--judge_base_url",
            server.base_url,
            "--judge_model",
            "fake",
            "--judge_preflight",
            "false",
        )
        run = workshop.run("run", *judge, "--gate_truncated", "false", "--overlap_judge", json.dumps(overlaps))
    assert run.returncode == 0, run.err
    assert max(gap for _, gap in run.parity()) < 1e-4
    assert max(row["sampling/sampling_logp_difference/max"] for row in run.metrics().values()) < 1e-4
    rewards_seen.append([(row["score/total"], row["score/coverage"], row["loss"]) for row in run.metrics().values()])
    assert rewards_seen[0] == rewards_seen[-1]


@pytest.fixture(scope="module")
def rewards_seen():
    return []
