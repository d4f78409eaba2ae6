"""One real vLLM engine that changes its weights writes token by token what a fresh engine of those weights writes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_policy import merge_adapter, write_adapter, write_policy

ROOT = Path(__file__).parents[1]
GENERATE = """
import json, sys
from eval.engine import Engine, Prompts, find_policy, lora_rank

policies = [find_policy(name) for name in sys.argv[2:]]
prompts = Prompts(policies[0])
# Longer than a block of the cache, and alike at the start: a cache that was kept would show.
questions = ["원고는 피고에게 돈을 빌려주었다. " * 5 + f"{i}?" for i in range(8)]
ids = [prompts.encode([{"role": "user", "content": question}]) for question in questions]
ranks = [lora_rank(policy.adapter) for policy in policies if policy.adapter]
engine = Engine(policies[0], max_model_len=max(map(len, ids)) + 24, max_lora_rank=max(ranks, default=0))
texts = []
for policy in policies:
    engine.load(policy)
    written = sorted(engine.generate(ids, temperature=0.0, max_tokens=24), key=lambda completion: completion.index)
    texts.append([completion.text for completion in written])
with open(sys.argv[1], "w") as file:
    json.dump(texts, file)
"""


def generate(out: Path, *policies: Path) -> list[list[str]]:
    """What one engine, in a process of its own, writes with each of the policies in turn."""
    subprocess.run(
        [sys.executable, "-c", GENERATE, str(out), *map(str, policies)], check=True, cwd=ROOT, env=ENVIRONMENT
    )
    return json.loads(out.read_text())


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policies")
    for seed, name in enumerate(("base", "other")):
        write_policy(folder / name, seed)
    for seed, name in enumerate(("first", "second")):
        write_adapter(folder / name, folder / "base", seed)
    merge_adapter(folder / "first", folder / "merged")
    return folder


@pytest.fixture(scope="module")
def in_turn(folder):
    """Full weights, loaded in place one after another."""
    return generate(folder / "in_turn.json", *(folder / name for name in ("base", "other", "merged", "base")))


@pytest.mark.slow
def test_weights_loaded_in_place_write_what_a_fresh_engine_writes(folder, in_turn):
    (fresh,) = generate(folder / "fresh.json", folder / "other")
    base, other, _, base_again = in_turn
    assert other == fresh
    assert base == base_again
    assert base != other


@pytest.mark.slow
def test_an_adapter_writes_what_its_merged_weights_write(folder, in_turn):
    adapters = generate(
        folder / "adapters.json", *(folder / name for name in ("base", "first", "second", "first", "base"))
    )
    base, first, second, first_again, base_again = adapters
    assert first == in_turn[2] == first_again
    assert base == in_turn[0] == base_again
    assert second not in (first, base)
