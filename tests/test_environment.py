"""What is set before anything heavy loads, and the one tracked run of a folder."""

import pytest

from data.environment import ON_CPU
from train.environment import has_wandb_key, prepare_environment
from train.tracking import RUN_ID_NAME, run_id


def test_a_cpu_run_gets_its_settings_and_the_user_keeps_his():
    environ = {"OMP_NUM_THREADS": "4"}
    prepare_environment(use_cpu=True, environ=environ)
    assert environ["OMP_NUM_THREADS"] == "4"
    assert environ["VLLM_CPU_KVCACHE_SPACE"] == ON_CPU["VLLM_CPU_KVCACHE_SPACE"]


def test_a_gpu_run_keeps_its_threads_and_compiles():
    environ = {}
    prepare_environment(use_cpu=False, environ=environ)
    assert not ON_CPU.keys() & environ.keys()
    assert environ["HF_HUB_DISABLE_TELEMETRY"] == environ["VLLM_NO_USAGE_STATS"] == "1"


def test_only_a_process_without_a_launcher_gets_a_port_of_its_own():
    ports = {"29500"}
    for _ in range(3):
        alone = {"MASTER_PORT": "29500"}
        prepare_environment(use_cpu=True, environ=alone)
        ports.add(alone["MASTER_PORT"])
    assert len(ports) > 1
    launched = {"MASTER_PORT": "29500", "RANK": "1"}
    prepare_environment(use_cpu=True, environ=launched)
    assert launched["MASTER_PORT"] == "29500"


@pytest.mark.parametrize(
    ("environ", "login", "has_key"),
    [
        ({}, None, False),
        ({"WANDB_API_KEY": "k"}, None, True),
        ({}, "api.wandb.ai", True),
        ({}, "wandb.example.org", False),
        ({"WANDB_BASE_URL": "https://wandb.example.org"}, "wandb.example.org", True),
    ],
)
def test_a_key_is_found_where_wandb_would_find_it(tmp_path, environ, login, has_key):
    netrc = tmp_path / "netrc"
    if login:
        netrc.write_text(f"machine {login} login user password secret\n")
    assert has_wandb_key({**environ, "NETRC": str(netrc)}) is has_key


def test_a_folder_keeps_its_run_id(tmp_path):
    first = run_id(tmp_path / "a")
    assert run_id(tmp_path / "a") == first
    assert (tmp_path / "a" / RUN_ID_NAME).read_text().strip() == first
    assert run_id(tmp_path / "b") != first
