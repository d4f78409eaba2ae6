"""Texts that are nearly the same: MinHash signatures, put side by side by bands (LSH). Pure."""

import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from data.page_text import fold

NUM_PERMUTATIONS = 64
MIN_SIMILARITY = 0.7  # of two texts' sets of five-character runs (Jaccard), as the signatures estimate it
_ROWS = 4  # of a band: pairs above a similarity of about 0.5 are compared
_SHINGLE_CHARS = 5
_PRIME = np.uint64(4294967311)  # the first above 2**32
_FACTORS, _SHIFTS = np.random.default_rng(0).integers(1, 2**31, (2, NUM_PERMUTATIONS, 1), dtype=np.uint64)

Signature = Sequence[int]


def signature(text: str) -> Signature:
    """The text's MinHash: two texts agree in a place as often as they share five-character runs."""
    bare = re.sub(r"\s+", "", fold(text)).encode("utf-32-le", "surrogatepass")
    width = 4 * _SHINGLE_CHARS
    shingles = {bare[i : i + width] for i in range(0, max(4, len(bare) - width + 1), 4)}
    hashes = np.fromiter(map(zlib.crc32, shingles), dtype=np.uint64, count=len(shingles))
    return tuple(((_FACTORS * hashes + _SHIFTS) % _PRIME).min(axis=1).tolist())


def similarity(one: Signature, other: Signature) -> float:
    """The estimated share of five-character runs that two texts have in common."""
    return sum(a == b for a, b in zip(one, other, strict=True)) / NUM_PERMUTATIONS


def near_duplicates(
    signatures: Sequence[Signature], min_similarity: float = MIN_SIMILARITY
) -> Iterator[tuple[int, int]]:
    """The pairs of places (earlier, later) whose texts are at least so much alike, in the order of the later one."""
    near: dict[int, set[int]] = defaultdict(set)
    for start in range(0, NUM_PERMUTATIONS, _ROWS):
        bands: dict[Signature, list[int]] = defaultdict(list)  # of one band at a time, for they take much memory
        for place, own in enumerate(signatures):
            alike = bands[tuple(own[start : start + _ROWS])]
            if alike:
                near[place].update(alike)
            alike.append(place)
    for place in sorted(near):
        for other in sorted(near[place]):
            if similarity(signatures[other], signatures[place]) >= min_similarity:
                yield other, place
