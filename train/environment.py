"""What a training process needs of its environment before it loads anything heavy."""

import netrc
import os
import socket
from collections.abc import MutableMapping
from pathlib import Path
from urllib.parse import urlsplit

from data.environment import set_defaults


def prepare_environment(use_cpu: bool, environ: MutableMapping[str, str] = os.environ) -> None:
    """Set what a run needs before it loads anything heavy; what the user has set stays.

    A process that no launcher has given a rank gets a port of its own: two runs on one machine would meet on 29500,
    which torch takes by default and TRL tries first.
    """
    set_defaults(use_cpu, {"TRL_EXPERIMENTAL_SILENCE": "1"}, environ)
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
