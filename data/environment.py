"""Settings that torch, vLLM and their like read from the environment once, when they are loaded."""

import os
from collections.abc import Mapping, MutableMapping

QUIET = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "TOKENIZERS_PARALLELISM": "false",  # tokenizers warn at every fork otherwise
}
ON_CPU = {
    "OMP_NUM_THREADS": "1",  # threads that wait for one another cost a small model more than they bring
    "TORCHDYNAMO_DISABLE": "1",  # compiling takes half a minute at each start and saves a small model nothing
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; vLLM would reserve most of the machine's memory
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # two engines would be bound to the same cores
    "VLLM_USE_AOT_COMPILE": "0",
}


def set_defaults(
    on_cpu: bool, further: Mapping[str, str] | None = None, environ: MutableMapping[str, str] = os.environ
) -> None:
    """Set what is to hold before anything heavy is loaded; what the user has set stays."""
    for name, value in {**QUIET, **(ON_CPU if on_cpu else {}), **(further or {})}.items():
        environ.setdefault(name, value)
