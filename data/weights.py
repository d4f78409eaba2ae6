"""Whether the files of a model or a checkpoint are whole, by sizes and headers: no weight is read."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

ADAPTER_CONFIG = "adapter_config.json"
_INDEX = "model.safetensors.index.json"


def damage_of(path: Path) -> str | None:
    """What is wrong with a file of that name: missing, cut off, unreadable; None where nothing is to be seen.

    Seen are safetensors shorter or longer than their header says, archives of torch.save without an end, and broken
    JSON; of other files that they are there.

    >>> damage_of(Path("no/such/model.safetensors"))
    'model.safetensors is missing'
    """
    if not path.is_file():
        return f"{path.name} is missing"
    if path.suffix == ".safetensors":
        found = _safetensors_damage(path)
    elif path.suffix in (".pt", ".pth", ".bin"):
        found = None if zipfile.is_zipfile(path) else f"is cut off or no file of torch ({path.stat().st_size:,} bytes)"
    elif path.suffix == ".json":
        found = _json_damage(path)
    else:
        found = None
    return found and f"{path.name} {found}"


def weight_files(directory: Path) -> Iterator[Path]:
    """The files that must be there for a folder to hold a model or an adapter, as its config and its index say.

    Raises:
        ValueError: the index is no index.
    """
    if (directory / ADAPTER_CONFIG).is_file():
        yield directory / "adapter_model.safetensors"
        return
    yield directory / "config.json"
    if not (directory / _INDEX).is_file():
        yield directory / "model.safetensors"
        return
    try:
        shards = set(json.loads((directory / _INDEX).read_text(encoding="utf-8"))["weight_map"].values())
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{_INDEX} is damaged ({type(error).__name__}: {error})") from error
    if not shards or not all(isinstance(shard, str) for shard in shards):
        raise ValueError(f"{_INDEX} is damaged: its weight_map must name files")
    yield from (directory / shard for shard in sorted(shards))


def damage_of_weights(directory: Path) -> str | None:
    """What is wrong with the first file of a folder's weights that is not whole; None if all are."""
    try:
        return next(filter(None, map(damage_of, weight_files(directory))), None)
    except ValueError as error:
        return str(error)


def _safetensors_damage(path: Path) -> str | None:
    size = path.stat().st_size
    with path.open("rb") as file:
        header_size = int.from_bytes(file.read(8), "little")
        if size < 8 + header_size:
            return f"is cut off within its header ({size:,} bytes)"
        try:
            header = json.loads(file.read(header_size))
            ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
            expected = 8 + header_size + max(ends, default=0)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return "has a header that cannot be read"
    return None if size == expected else f"has {size:,} bytes, and {expected:,} by its header"


def _json_damage(path: Path) -> str | None:
    text = path.read_bytes()
    try:
        json.loads(text.decode("utf-8"))  # as whoever loads it will read it
    except (ValueError, RecursionError) as error:
        return f"is no JSON ({error})" if text.strip() else "is empty"
    return None
