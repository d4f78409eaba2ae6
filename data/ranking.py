"""How well a ranking finds what is relevant: recall, NDCG and reciprocal rank, with intervals over cases; pure."""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from data.bootstrap import bootstrap_means, interval
from data.cases import by_level


@dataclass(frozen=True, slots=True)
class Ranked:
    """A case's ranking: ids of documents, the best first, and which documents are relevant, found or not."""

    ids: Sequence[str]
    relevant: Set[str]
    difficulty: str | None = None


def recall_at(ranked: Ranked, k: int) -> float:
    """The share of all relevant documents that is among the first k.

    >>> recall_at(Ranked(["b", "x", "a"], {"a", "b", "c"}), 2)
    0.3333333333333333
    """
    return len(ranked.relevant & set(ranked.ids[:k])) / len(ranked.relevant)


def ndcg_at(ranked: Ranked, k: int) -> float:
    """Discounted gain of the first k over that of the best ranking that there could be.

    A relevant document at rank i gains 1 / log2(i + 1). The best ranking begins with all relevant documents, also
    those that were not found, as far as k places hold them.

    >>> round(ndcg_at(Ranked(["x", "a"], {"a", "b"}), 10), 4)  # (1 / log2 3) / (1 / log2 2 + 1 / log2 3)
    0.3869
    """
    gain = sum(1 / math.log2(i + 1) for i, id in enumerate(ranked.ids[:k], start=1) if id in ranked.relevant)
    return gain / sum(1 / math.log2(i + 1) for i in range(1, min(k, len(ranked.relevant)) + 1))


def reciprocal_rank(ranked: Ranked) -> float:
    """1 / the rank of the first relevant document, 0 where none was found.

    >>> reciprocal_rank(Ranked(["x", "a"], {"a"})), reciprocal_rank(Ranked(["x"], {"a"}))
    (0.5, 0.0)
    """
    return next((1 / i for i, id in enumerate(ranked.ids, start=1) if id in ranked.relevant), 0.0)


def figures(rankings: Mapping[str, Ranked], k: int) -> dict[str, float]:
    """`recall@k`, `ndcg@k` and `mrr`, each with `/low` and `/high`, over the cases that have a relevant document.

    The same below `difficulty/easy/...` for each difficulty there is. `num_cases` stand behind the means,
    `num_without_relevant` have nothing that could be found and are left out.
    """
    able = {id: ranked for id, ranked in rankings.items() if ranked.relevant}
    told: dict[str, float] = {"num_cases": len(able), "num_without_relevant": len(rankings) - len(able)}
    groups = {"": list(able.values())}
    for level in sorted({ranked.difficulty for ranked in able.values() if ranked.difficulty}, key=by_level):
        groups[f"difficulty/{level}/"] = [ranked for ranked in able.values() if ranked.difficulty == level]
    names = (f"recall@{k}", f"ndcg@{k}", "mrr")
    for prefix, group in groups.items():
        if not group:
            continue
        rows = np.array([[recall_at(one, k), ndcg_at(one, k), reciprocal_rank(one)] for one in group])
        low, high = interval(bootstrap_means(rows))
        for column, name in enumerate(names):
            told[prefix + name] = float(rows[:, column].mean())
            told[f"{prefix}{name}/low"], told[f"{prefix}{name}/high"] = float(low[column]), float(high[column])
        told[f"{prefix}num_cases"] = len(group)
    return told
