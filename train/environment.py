"""Settings that torch, vLLM, W&B and their like read from the environment once, when they are loaded."""

import netrc
import os
import socket
from collections.abc import MutableMapping
from pathlib import Path
from urllib.parse import urlsplit

QUIET = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "TOKENIZERS_PARALLELISM": "false",  # tokenizers warn at every fork otherwise
    "TRL_EXPERIMENTAL_SILENCE": "1",
}
ON_CPU = {
    "OMP_NUM_THREADS": "1",  # threads that wait for one another cost a small model more than they bring
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; vLLM would reserve most of the machine
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # two runs must not be bound to the same cores
    "TORCHDYNAMO_DISABLE": "1",  # compiling takes half a minute at each start and saves a small model nothing
    "VLLM_USE_AOT_COMPILE": "0",
}


def prepare_environment(use_cpu: bool, environ: MutableMapping[str, str] = os.environ) -> None:
    """Set what a run needs before it loads anything heavy; what the user has set stays.

    A process that no launcher has given a rank gets a port of its own: two runs on one machine would meet on 29500,
    which torch takes by default and TRL tries first.
    """
    for name, value in (QUIET | ON_CPU if use_cpu else QUIET).items():
        environ.setdefault(name, value)
    if "RANK" not in environ:
        environ["MASTER_PORT"] = str(_free_port())


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def has_wandb_key(environ: MutableMapping[str, str] = os.environ) -> bool:
    """Whether W&B could log in without asking: by WANDB_API_KEY, or by what `wandb login` has left in netrc."""
    if environ.get("WANDB_API_KEY"):
        return True
    host = urlsplit(environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname
    path = Path(environ.get("NETRC", "~/.netrc")).expanduser()
    try:
        return bool(host and path.is_file() and netrc.netrc(str(path)).authenticators(host))
    except (netrc.NetrcParseError, OSError):
        return False
