"""A job of many GPUs divided and weighed, by hand; every shipped configuration has a plan."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from train.config import read_settings
from train.job import judge_command, main, plan_job, policy_command, to_shell
from train.layout import ClusterConfig, Place, PlanError, lay_out
from train.measure import measure
from train.memory import GIB, KNOWN, Shape, activation_bytes, kv_tokens, phases, read_shape, shape_of, trainer_gib

CONFIGS = Path(__file__).parents[1] / "configs"
SHAPE = Shape(64, 128, 2, 4, 2, 16, 1000, True)
VALUES = {
    "use_peft": False,
    "lora_target_modules": None,
    "lora_r": 8,
    "dtype": None,
    "beta": 0.0,
    "per_device_train_batch_size": 2,
    "max_completion_length": 10,
    "vllm_max_model_length": 30,
    "gradient_checkpointing": True,
    "use_vllm": True,
    "vllm_mode": "colocate",
    "vllm_enable_sleep_mode": True,
    "vllm_gpu_memory_utilization": 0.5,
}


def places(layout):
    return tuple(
        [(place.node, place.gpus) for place in role] for role in (layout.judges, layout.policies, layout.trainers)
    )


ALL = tuple(range(8))
LAYOUTS = {
    "1 GPU, judge elsewhere": (ClusterConfig(), 1, 1, ([], [], [(0, (0,))])),
    "8 GPUs, judge elsewhere": (ClusterConfig(), 1, 8, ([], [], [(0, ALL)])),
    "judge on the same node": (
        ClusterConfig(judge_gpus=4, judge_tensor_parallel_size=2), 1, 8,
        ([(0, (4, 5)), (0, (6, 7))], [], [(0, (0, 1, 2, 3))]),
    ),
    "three roles on one node": (
        ClusterConfig(judge_gpus=2, policy_gpus=2), 1, 8,
        ([(0, (4,)), (0, (5,))], [(0, (6, 7))], [(0, (0, 1, 2, 3))]),
    ),
    "2 x 8, a node of judges": (
        ClusterConfig(judge_gpus=8, judge_tensor_parallel_size=4), 2, 8,
        ([(1, (0, 1, 2, 3)), (1, (4, 5, 6, 7))], [], [(0, ALL)]),
    ),
    "2 x 8, judge and policy share a node's worth": (
        ClusterConfig(judge_gpus=8, judge_tensor_parallel_size=8, policy_gpus=4), 2, 8,
        ([(0, ALL)], [(1, (4, 5, 6, 7))], [(1, (0, 1, 2, 3))]),
    ),
    "2 x 8, judges on both, so that trainers are even": (
        ClusterConfig(judge_gpus=4, judge_tensor_parallel_size=2), 2, 8,
        ([(0, (6, 7)), (1, (6, 7))], [], [(0, ALL[:6]), (1, ALL[:6])]),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("cluster", "nodes", "gpus", "expected"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_jobs_gpus_are_divided(cluster, nodes, gpus, expected):
    assert places(lay_out(cluster, nodes, gpus)) == expected


def test_8_x_8_gives_two_nodes_to_judges_and_six_to_trainers():
    layout = lay_out(ClusterConfig(judge_gpus=16, judge_tensor_parallel_size=4), 8, 8)
    assert [place.node for place in layout.judges] == [6, 6, 7, 7]
    assert [place.node for place in layout.trainers] == [0, 1, 2, 3, 4, 5]
    assert layout.num_trainers == 48


@pytest.mark.parametrize("nodes", range(1, 5))
@pytest.mark.parametrize("judges", range(0, 17, 2))
def test_no_gpu_is_given_twice_or_forgotten(nodes, judges):
    try:
        layout = lay_out(ClusterConfig(judge_gpus=judges, judge_tensor_parallel_size=2, policy_gpus=1), nodes, 8)
    except PlanError:
        return
    given = [(place.node, gpu) for place in (*layout.judges, *layout.policies, *layout.trainers) for gpu in place.gpus]
    assert sorted(given) == [(node, gpu) for node in range(nodes) for gpu in range(8)]


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        (ClusterConfig(judge_gpus=16, judge_tensor_parallel_size=16), "a server of 16 GPUs needs a node of as many"),
        (ClusterConfig(judge_gpus=16, judge_tensor_parallel_size=8), "2 x 8 GPUs leave none to train on"),
        (ClusterConfig(judge_gpus=3), "leaves 13 of 2 x 8 GPUs, which are not as many on each node with trainers; "
                                      "possible are 0, 2, 4, 6, 8,"),
    ],
    ids=["spans nodes", "none left", "uneven"],
)  # fmt: skip
def test_what_cannot_be_divided_is_refused_with_what_could(cluster, message):
    with pytest.raises(PlanError, match=message):
        lay_out(cluster, 2, 8)


def test_sizes_that_say_nothing_are_refused():
    with pytest.raises(ValueError, match="judge_gpus must be a multiple of judge_tensor_parallel_size"):
        ClusterConfig(judge_gpus=3, judge_tensor_parallel_size=2)
    with pytest.raises(ValueError, match="launch must be one of single, ddp"):
        ClusterConfig(launch="zero1")


def test_weights_are_counted():
    # embedding 1000 x 64; a layer: q, o 64 x 64, k, v 64 x 32, three of 64 x 128
    assert SHAPE.params == 64_000 + 2 * (2 * 4096 + 2 * 2048 + 3 * 8192) == 137_728
    assert SHAPE.kv_bytes == 2 * 2 * 2 * 2 * 16  # key and value, 2 bytes, 2 layers, 2 heads of 16
    known = {name.split("/")[1]: round(shape.params / 1e9, 2) for name, shape in KNOWN.items()}
    assert known == {
        "Qwen2.5-0.5B-Instruct": 0.49, "Qwen2.5-7B-Instruct": 7.62, "Qwen2.5-32B-Instruct": 32.76,
        "gemma-3-4b-it": 3.88, "gemma-3-27b-it": 27.01,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("launch", "n", "weights", "gradients", "optimiser"),
    [
        ("single", 1, 4, 4, 8),
        ("ddp", 4, 4, 4, 8),
        ("zero2", 4, 2, 0.5, 3),
        ("zero3", 4, 0.5, 0.5, 3),
        ("fsdp2", 4, 1, 1, 2),
    ],
)
def test_bytes_a_weight(launch, n, weights, gradients, optimiser):
    parts = trainer_gib(SHAPE, VALUES | {"beta": 0.1}, launch, n)
    found = [parts[name] * GIB / SHAPE.params for name in ("weights", "gradients", "optimiser", "reference")]
    assert found == pytest.approx([weights, gradients, optimiser, weights])


def test_an_adapter_is_little_and_its_own_reference():
    values = VALUES | {
        "use_peft": True,
        "beta": 0.1,
        "lora_target_modules": ["q_proj", "down_proj"],
        "dtype": "bfloat16",
    }
    parts = trainer_gib(SHAPE, values, "ddp", 4)
    trained = 2 * 8 * ((64 + 64) + (128 + 64))
    assert parts["gradients"] * GIB == pytest.approx(2 * trained)
    assert parts["weights"] * GIB == pytest.approx(2 * SHAPE.params)
    assert parts["reference"] == 0


def test_activations_by_hand():
    logits = 2 * 10 * 1000 * 10
    assert activation_bytes(SHAPE, VALUES) == 2 * 30 * (2 * 64 * 2 + 34 * 64) + logits
    assert activation_bytes(SHAPE, VALUES | {"gradient_checkpointing": False}) == 2 * 30 * 34 * 64 * 2 + logits


def test_an_engine_that_sleeps_leaves_its_memory_to_the_learner():
    parts = {"weights": 10, "gradients": 5, "optimiser": 20, "reference": 1, "activations": 7, "overhead": 3}
    assert phases(parts, VALUES, 80) == {"generate": 74, "learn": 46}
    assert phases(parts, VALUES | {"vllm_enable_sleep_mode": False}, 80) == {"generate": 74, "learn": 86}
    assert phases(parts, VALUES | {"vllm_mode": "server"}, 80) == {"generate": 34, "learn": 46}


def test_cache_is_what_the_weights_leave():
    shape = replace(SHAPE, vocab_size=0)
    room = kv_tokens(shape, 1.0, 2)
    assert room * shape.kv_bytes / 2 == pytest.approx(GIB - 2 * shape.params / 2)


def test_a_shape_is_read_where_the_model_lies(tmp_path):
    config = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_key_value_heads": 2, "vocab_size": 1000, "tie_word_embeddings": True}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps({"text_config": config}))
    assert shape_of(str(tmp_path)) == SHAPE
    assert read_shape(config | {"num_experts": 8}) is None
    assert read_shape({"hidden_size": 64}) is None
    assert shape_of("nobody/nothing") is None


PLANS = {
    "qwen7b": (1, 8, 0, 0, 8, "ddp"),
    "qwen7b_rag": (1, 8, 0, 0, 8, "ddp"),
    "qwen7b_2node": (2, 8, 4, 0, 8, "ddp"),
    "qwen32b_zero3": (4, 8, 4, 1, 16, "zero3"),
    "gemma4b_paper": (1, 8, 2, 0, 4, "zero3"),
    "gemma4b_order_only": (1, 8, 2, 0, 4, "zero3"),
    "gemma4b_decoupled": (1, 8, 2, 0, 4, "zero3"),
    "qwen0.5b_1gpu": (1, 1, 0, 0, 1, "single"),
    "mini": (1, 0, 0, 0, 1, "single"),
    "smoke": (1, 0, 0, 0, 1, "single"),
}


def planned(name, nodes, gpus, *overrides):
    settings = read_settings([str(CONFIGS / f"{name}.yaml"), *overrides, "--dry_run", "true"], lambda _: 8)
    return settings, plan_job(settings, nodes, gpus)


def test_every_shipped_configuration_has_a_plan():
    assert {path.stem for path in CONFIGS.glob("*.yaml")} == set(PLANS)


@pytest.mark.parametrize("name", PLANS)
def test_the_plan_of_a_configuration(name, capsys):
    nodes, gpus, judges, policies, trainers, launch = PLANS[name]
    arguments = [str(CONFIGS / f"{name}.yaml"), "--nodes", str(nodes), "--gpus-per-node", str(gpus)]
    assert main([*arguments, "--shell"]) == 0
    script = capsys.readouterr().out
    told = "$NUM_TRAINERS ${#JUDGE_NODES[@]} ${#POLICY_NODES[@]} $LAUNCH"
    told = subprocess.run(["bash", "-c", f"{script}\necho {told}"], capture_output=True, text=True, check=True).stdout  # noqa: S607
    assert told.split() == [str(trainers), str(judges), str(policies), launch]
    assert (CONFIGS / "accelerate" / f"{launch}.yaml").is_file()
    assert main(arguments) == 0
    assert "a generation:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "nodes", "gpus", "overrides", "message"),
    [
        ("gemma4b_paper", 1, 8, ("--judge_tensor_parallel_size", "1", "--gpu_memory_gib", "40"),
         "does not fit on 1 GPUs of 40 GiB .* judge_tensor_parallel_size: 2 would do"),
        ("qwen7b", 1, 8, ("--use_peft", "false", "--lora_target_modules", "null", "--lora_r", "16",
                          "--lora_alpha", "32", "--lora_dropout", "0.05"),
         "a trainer needs .* it would fit with launch: \"zero2\"|launch: \"zero3\""),
        ("qwen7b", 1, 8, ("--vllm_enable_sleep_mode", "false", "--vllm_gpu_memory_utilization", "0.6"),
         'it would fit with vllm_enable_sleep_mode: true'),
        ("qwen7b", 1, 8, ("--vllm_gpu_memory_utilization", "0.2"), "raise vllm_gpu_memory_utilization"),
        ("qwen7b", 1, 8, ("--policy_gpus", "2"), "policy_gpus: 2 needs vllm_mode: server"),
        ("qwen7b", 1, 8, ("--launch", "zero2"), "launch: zero2 undoes dtype: float32"),
        ("qwen7b", 1, 8, ("--launch", "single"), "launch: single is one process, and 8 GPUs are to train"),
        ("qwen0.5b_1gpu", 1, 8, (), "one node with --gpus-per-node 1 has no more than it takes, or launch: ddp"),
        ("qwen0.5b_1gpu", 1, 8, ("--judge_gpus", "1"), "7 GPUs are to train: one node with --gpus-per-node 2 has"),
        ("qwen0.5b_1gpu", 1, 0, (), "say with --gpus-per-node how many there are, or use_cpu: true"),
        ("qwen32b_zero3", 1, 8, ("--judge_gpus", "0"), "take more nodes, or fewer policy_gpus"),
        ("mini", 1, 2, ("--judge_gpus", "1"), "judge_gpus: 1 needs judge: endpoint"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_with_what_would(name, nodes, gpus, overrides, message):
    with pytest.raises(PlanError, match=message):
        planned(name, nodes, gpus, *overrides)


def test_the_command_refuses_with_a_message_and_status_2(capsys):
    assert main([str(CONFIGS / "qwen7b_2node.yaml"), "--gpus-per-node", "8"]) == 2
    assert "leave none to train on" in capsys.readouterr().err
    assert main([str(CONFIGS / "qwen7b.yaml"), "--learning_rat", "1"]) == 2
    assert "did you mean learning_rate" in capsys.readouterr().err


def test_servers_are_told_what_the_yaml_says():
    settings, plan = planned("qwen32b_zero3", 4, 8)
    policy, judge = policy_command(settings), judge_command(settings)
    assert policy[policy.index("--data-parallel-size") + 1] == "2"
    assert json.loads(policy[policy.index("--weight-transfer-config") + 1]) == {"backend": "nccl"}
    assert judge[judge.index("--model") + 1] == "google/gemma-3-27b-it"
    assert Place(3, ALL) in plan.layout.policies
    assert "guidance" in to_shell(plan, settings)


def test_a_cpu_job_hands_weights_over_by_file_and_writes_each_completion_alone(monkeypatch):
    settings, plan = planned("smoke", 1, 0, "--vllm_mode", "server", "--policy_gpus", "1")
    policy = policy_command(settings)
    assert policy[-1] == '{"backend": "file"}'
    assert policy[policy.index("--max-num-seqs") + 1] == "1"
    assert "--no-enable-prefix-caching" in policy
    assert plan.layout.num_trainers == 1
    assert "export OMP_NUM_THREADS=" in to_shell(plan, settings)


def test_help_is_quick_and_has_an_example():
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "train.plan", "--help"], capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    assert "python -m train.plan configs/" in done.stdout


def test_a_plan_is_held_against_what_a_run_measured(tmp_path, capsys):
    settings, plan = planned("qwen7b", 1, 8)
    rows = [{"step": 1, "loss": 0.1, "memory/peak_gib": 41.0, "completions/mean_length": 700.0, "time/judge_s": 4.0},
            {"step": 2, "loss": 0.1, "memory/peak_gib": 43.0, "completions/mean_length": 800.0, "time/judge_s": 2.0},
            {"step": 2, "train_runtime": 9.0}]  # fmt: skip
    found = {name: values for name, *values in measure(plan.step, plan.figures, rows)}
    assert found["GiB of a trainer's GPU"] == [pytest.approx(60.0, abs=0.1), 43.0]
    assert found["tokens written a generation"] == [256 * 3072, 256 * 750]
    assert found["time/judge_s"] == [None, 3.0]
    (tmp_path / "config.yaml").write_text(settings.to_yaml())
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["--measure", str(tmp_path)]) == 0
    assert "786,432" in capsys.readouterr().out


def test_without_gpus_a_plan_and_a_measure_are_of_one_process(tmp_path, capsys):
    assert main([str(CONFIGS / "smoke.yaml")]) == 0
    assert "1 in all, launch: single" in capsys.readouterr().out
    (tmp_path / "config.yaml").write_text(read_settings([str(CONFIGS / "smoke.yaml"), "--dry_run", "true"]).to_yaml())
    assert main(["--measure", str(tmp_path)]) == 2
    assert f"{tmp_path}/metrics.jsonl is missing: nothing was measured yet" in capsys.readouterr().err
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 0.1, "completions/mean_length": 10.0}\n')
    assert main(["--measure", str(tmp_path)]) == 0
    words = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("tokens written")).split()
    assert words[-2:] == ["256", "160"]  # 16 completions of at most 16, of 10 in the mean
    (tmp_path / "metrics.jsonl").write_text("{]\n")
    assert main(["--measure", str(tmp_path)]) == 2
    assert "metrics.jsonl, line 1: not JSON" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((str(CONFIGS / "qwen7b.yaml"), "--json", str(CONFIGS)), "argument --json: must be a file, and"),
        ((str(CONFIGS / "qwen7b.yaml"), "--measure", "run"), "--measure prints a table of RUN_DIR and its config.yaml"),
        ((), "name the run's YAML, such as configs/qwen7b.yaml"),
        (("--measure", "run", "--json", "figures.json"), "no YAML, --shell or --json beside it"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(arguments, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([*arguments])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("options", [("--nodes", "0"), ("--nodes", "100000"), ("--gpus-per-node", "256")])
def test_a_cluster_that_nobody_has_is_refused(options):
    with pytest.raises(SystemExit):
        main([str(CONFIGS / "qwen7b.yaml"), *options])
