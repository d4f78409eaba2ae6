"""Fine-tunes a dense retriever on training cases: python train/retriever.py configs/retriever/X.yaml [--key value]."""

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.cases import Case
from data.command import run_command
from data.law import Corpus, LawError, own_documents, read_corpus
from data.loading import load_cases
from data.retrieval import DEPTH, Search, open_bm25, prefixes
from train.options import UNKNOWN, options_of, suggest
from train.yaml_file import ConfigError, read_flat_yaml, read_value

if TYPE_CHECKING:
    from datasets import Dataset

Triple = tuple[str, str, str]  # a question, a law that the court applied, one that only looks as if it could have


@dataclass(frozen=True, kw_only=True)
class TuningConfig:
    """What the retriever learns from, and how."""

    cases: str = field(metadata={"help": "Training cases with relevant_law."})
    index: str = field(metadata={"help": "Their law index (data/retrieve.py index); its BM25 finds the negatives."})
    model: str = field(metadata={"help": "The embedding model to start from: a folder or hub id."})
    output_dir: str = field(metadata={"help": "Where the fine-tuned model goes."})
    num_epochs: float = field(default=3.0, metadata={"help": "Passes over all pairs of a question and a law."})
    batch_size: int = field(default=64, metadata={"help": "Pairs a step; the others' laws are negatives too."})
    learning_rate: float = field(default=1e-4, metadata={"help": "Its peak, after a tenth of the steps."})
    seed: int = field(default=0, metadata={"help": "Of the order and of the negatives."})

    def __post_init__(self) -> None:
        for name in ("num_epochs", "batch_size", "learning_rate"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")


def triples(cases: Sequence[Case], corpus: Corpus, search: Search, seed: int) -> list[Triple]:
    """One triple for each law of each case that the corpus has, with a negative from the best that words find.

    Raises:
        LawError: no case has a law in the corpus.
    """
    rng = random.Random(seed)
    own = own_documents(corpus, cases)
    texts = {document.id: document.shown for document in corpus.documents}
    found: list[Triple] = []
    for case, hits in zip(cases, search([case.question for case in cases], DEPTH), strict=True):
        positives = own[case.id][0]
        negatives = [id for id in (corpus.documents[place].id for place, _ in hits) if id not in positives]
        if negatives:
            found += [(case.question, texts[id], texts[rng.choice(negatives)]) for id in sorted(positives)]
    if not found:
        raise LawError("none of the cases' own laws is in the corpus: index these cases, and take no others")
    return found


def tune(config: TuningConfig) -> None:
    """Train, and save the model where `data/retrieve.py index --model` takes it from."""
    cases, corpus = load_cases(config.cases), read_corpus(config.index)
    rows = triples(cases, corpus, open_bm25(corpus, Path(config.index)), config.seed)
    print(f"{len(rows):,} pairs of {len(cases):,} cases", file=sys.stderr)

    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    model = SentenceTransformer(config.model)
    model.max_seq_length = min(model.max_seq_length or 512, 512)
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(Path(config.output_dir) / "trainer"),
        num_train_epochs=config.num_epochs,
        per_device_train_batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        warmup_steps=0.1,
        batch_sampler="no_duplicates",  # or a law would be a negative of the question beside it
        seed=config.seed,
        save_strategy="no",
        report_to="none",
    )
    loss = MultipleNegativesRankingLoss(model)
    SentenceTransformerTrainer(model, arguments, train_dataset=_dataset(rows, config.model), loss=loss).train()
    model.save(config.output_dir)
    print(f"index with it: python data/retrieve.py index --out {config.index} --model {config.output_dir}")


def _dataset(rows: Sequence[Triple], model: str) -> "Dataset":
    from datasets import Dataset

    of_query, of_law = prefixes(model)
    names, before = ("anchor", "positive", "negative"), (of_query, of_law, of_law)
    texts = zip(*rows, strict=True)
    return Dataset.from_dict(
        {n: [b + text for text in of_one] for n, b, of_one in zip(names, before, texts, strict=True)}
    )


def read_config(path: Path, overrides: Sequence[str]) -> TuningConfig:
    """The configuration of a YAML file with `--key value` behind it.

    Raises:
        ConfigError: with every problem.
    """
    raw, _ = read_flat_yaml(path)
    for name, value in zip(overrides[::2], [*overrides[1::2], "true"], strict=False):
        raw[name.removeprefix("--")] = read_value(value)
    options = options_of(Path(__file__), TuningConfig.__name__)
    problems = [f"unknown key {name}{suggest(name, options)}" for name in raw if name not in options]
    problems += [f"{name} must be set" for name, one in options.items() if one.default is UNKNOWN and name not in raw]
    values: dict[str, Any] = {}
    for name in raw.keys() & options.keys():
        try:
            values[name] = options[name].accept(raw[name])
        except ValueError as error:
            problems.append(f"{name} {error}")
    if problems:
        raise ConfigError(problems)
    try:
        return TuningConfig(**values)
    except ValueError as error:
        raise ConfigError([str(error)]) from error


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 when trained, 2 for wrong input."""
    keys = "; ".join(f"{one.name}: {one.metadata['help']}" for one in fields(TuningConfig))
    parser = argparse.ArgumentParser(
        description=f"Fine-tune an embedding model to find the laws that courts apply, on training cases. Keys: {keys}",
        epilog="example: python train/retriever.py configs/retriever/mcontriever.yaml --batch_size 32",
    )
    parser.add_argument("config", type=Path, help="the YAML file")
    parser.add_argument("overrides", nargs=argparse.REMAINDER, help="--key value, for any key of it")
    return run_command(parser, _work, argv)


def _work(args: Any) -> None:
    tune(read_config(args.config, args.overrides))


if __name__ == "__main__":
    sys.exit(main())
