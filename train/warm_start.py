"""The base model of the demo: built from nothing, taught the mini world, then made careless by noisy answers.

What reinforcement learning can show with it: that it brings out a skill which the noise has hidden. The machinery is
on trial there, not legal reasoning.
"""

import argparse
import hashlib
import json
import random
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.cases import Case
from data.command import output_folder
from data.law import Document
from data.mini import generate, gold_answer, issue_line, join_answer
from data.mini_law import kinds
from data.mini_statutes import law_book
from data.progress import progress_bar
from data.prompts import build_prompt
from data.records import from_record
from train.mini_model import CHAT_TEMPLATE, SHAPE, build_model, build_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Example = tuple[list[int], list[int]]  # token ids of a prompt and of its answer

STAMP_NAME = "warm_start.json"
NUM_STAMPED_CASES = 100  # a change to the mini world shows in one of them
LESSON_BOOKS, CASES_A_BOOK, LAW_FRAC = 1_000_000, 40, 2 / 3  # seeds of law books beyond those of any test
IGNORED = -100  # the label that the loss leaves out


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """All that the base model depends on, besides the mini world and the model's shape."""

    seed: int = 0
    num_clean_steps: int = 1350
    num_noisy_steps: int = 450  # from the first step on, noise leaves a model whose decisions nothing improves
    undecidable_frac: float = 0.25
    order_first: bool = False
    noisy_kept_frac: float = 0.5
    noisy_right_frac: float = 0.4
    batch_size: int = 8  # the number of steps matters more than what is in them
    learning_rate: float = 4e-3
    vocab_size: int = 1408
    statutes: bool = False

    def __post_init__(self) -> None:
        for name in ("num_clean_steps", "num_noisy_steps"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be >= 0, got {getattr(self, name)}")
        if self.num_clean_steps + self.num_noisy_steps == 0:
            raise ValueError("num_clean_steps and num_noisy_steps are both 0: nothing would be taught")


def warm_start(settings: WarmStart, out: Path) -> bool:
    """Makes `out` an ordinary Hugging Face model folder; False if it holds this very warm start already.

    Raises:
        ValueError: `out` exists and no warm start wrote it.
    """
    stamp = _stamp(settings)
    stamp_path = out / STAMP_NAME
    if stamp_path.is_file() and json.loads(stamp_path.read_text(encoding="utf-8")) == stamp:
        return False
    if out.exists() and not stamp_path.is_file():
        raise ValueError(f"{out} exists, but no warm start wrote it (it has no {STAMP_NAME}): choose another folder")
    unfinished = out.with_name(f"{out.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    teach(settings, unfinished)
    (unfinished / STAMP_NAME).write_text(json.dumps(stamp, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.rmtree(out, ignore_errors=True)
    unfinished.rename(out)
    return True


def teach(settings: WarmStart, path: Path) -> None:
    """Builds the model and its tokenizer, teaches it the lessons in one pass, and saves both in the folder."""
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.set_num_threads(1)  # more gain nothing with so small a model, and one thread always sums in the same order
    pairs = lessons(settings)
    tokenizer = build_tokenizer(
        (text for case, answer in pairs for text in (case.question, answer)), settings.vocab_size
    )
    model = build_model(tokenizer, settings.seed)
    batches = _batches([_example(tokenizer, case, answer) for case, answer in pairs], settings)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, settings.learning_rate, total_steps=len(batches) + 1, pct_start=0.03, cycle_momentum=False
    )
    model.train()
    with progress_bar("warm start", len(batches)) as advance:
        for batch in batches:
            loss = model(**_padded(batch, tokenizer.pad_token_id)).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            advance()
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)


def lessons(settings: WarmStart) -> list[tuple[Case, str]]:
    """Cases of the split "lesson", each once, with the answer to teach: right ones first, noisy ones last."""
    num_clean = settings.num_clean_steps * settings.batch_size
    num_noisy = settings.num_noisy_steps * settings.batch_size
    world: dict[str, Any] = {"undecidable_frac": settings.undecidable_frac, "order_first": settings.order_first}
    if settings.statutes:
        cases = _lessons_with_law(settings.seed, num_clean + num_noisy, world)
    else:
        cases = [from_record(record) for record in generate(settings.seed, "lesson", num_clean + num_noisy, **world)]
    rng = random.Random(settings.seed)
    clean = [(case, gold_answer(case.answer, case.extra["mini"])) for case in cases[:num_clean]]
    return clean + [(case, noisy_answer(case, rng, settings)) for case in cases[num_clean:]]


def _lessons_with_law(seed: int, num_cases: int, world: Mapping[str, Any]) -> list[Case]:
    """Cases under many law books, so that no number can be learned, two of three with the law that settles them.

    It stands before the question as retrieval puts it there.
    """
    rng = random.Random(f"lessons with law, {seed}")
    cases: list[Case] = []
    while len(cases) < num_cases:
        statutes = LESSON_BOOKS + rng.randrange(LESSON_BOOKS)
        book = law_book(statutes)
        for record in generate(statutes, "lesson", CASES_A_BOOK, statutes=statutes, **world):
            case = from_record(record)
            own, kind = case.question.partition("시에서")[0], case.extra["mini"]["kind"]
            law = Document("", "statute", *book.ordinance(own, kind))
            shown = [law] if rng.random() < LAW_FRAC else ()
            cases.append(replace(case, question=build_prompt(case, "bare", shown)[0]["content"]))
    return cases[:num_cases]


def noisy_answer(case: Case, rng: random.Random, settings: WarmStart) -> str:
    """A well-formed but careless answer.

    Each issue stays with probability `noisy_kept_frac`. What is decided on it, and the order, are the court's with
    probability `noisy_right_frac`, else thrown among all possibilities, the right one included.
    """
    mini = case.extra["mini"]
    orders = next(kind.orders for kind in kinds() if kind.name == mini["kind"])

    def is_careful() -> bool:
        return rng.random() < settings.noisy_right_frac

    lines = [
        issue_line(issue["name"], issue["accepted"] if is_careful() else rng.random() < 0.5)
        for issue in mini["issues"].values()
        if rng.random() < settings.noisy_kept_frac
    ]
    order = case.answer if is_careful() else rng.choice(list(orders.values()))
    return join_answer(lines, order, order_first=mini["order_first"])


def _stamp(settings: WarmStart) -> dict[str, Any]:
    """What tells one warm start from another: its settings, the model's shape, and a sample of the world."""
    sample = json.dumps(generate(settings.seed, "lesson", NUM_STAMPED_CASES), sort_keys=True)
    world = hashlib.sha256(sample.encode()).hexdigest()
    told = {name: value for name, value in asdict(settings).items() if name != "statutes" or value}
    return {**told, "shape": SHAPE, "chat_template": CHAT_TEMPLATE, "world": world}


def _example(tokenizer: "PreTrainedTokenizerFast", case: Case, answer: str) -> Example:
    prompt = tokenizer.apply_chat_template(build_prompt(case, "bare"), add_generation_prompt=True, tokenize=False)
    return tokenizer(prompt)["input_ids"], [*tokenizer(answer)["input_ids"], tokenizer.eos_token_id]


def _batches(examples: Sequence[Example], settings: WarmStart) -> list[Sequence[Example]]:
    """The examples in their order, but sorted by length among neighbours, so that little is spent on padding."""
    size, rng = settings.batch_size, random.Random(settings.seed)
    batches: list[Sequence[Example]] = []
    for start in range(0, len(examples), 8 * size):
        near = sorted(examples[start : start + 8 * size], key=lambda example: len(example[0]) + len(example[1]))
        alike = [near[i : i + size] for i in range(0, len(near), size)]
        batches += rng.sample(alike, len(alike))
    return batches


def _padded(batch: Sequence[Example], pad_id: int) -> dict[str, Any]:
    """The model's inputs: filled up on the right, hence no mask, for a causal model never looks there."""
    import torch

    width = max(len(prompt) + len(answer) for prompt, answer in batch)
    ids, labels = [], []
    for prompt, answer in batch:
        num_pads = width - len(prompt) - len(answer)
        ids.append(prompt + answer + [pad_id] * num_pads)
        labels.append([IGNORED] * len(prompt) + answer + [IGNORED] * num_pads)
    return {"input_ids": torch.tensor(ids), "labels": torch.tensor(labels)}


def main(argv: Sequence[str] | None = None) -> None:
    """Writes the base model, or says that it is there."""
    parser = argparse.ArgumentParser(
        description="Build a small language model and teach it the mini world: right answers first, then careless ones "
        "that leave issues out and guess. Takes about 90 seconds on one CPU core. With the same settings a second call "
        "does nothing.",
        epilog="example: python train/warm_start.py --out outputs/mini/base --seed 0",
    )
    parser.add_argument(
        "--out", type=output_folder, required=True, help="the model's folder; another warm start there gives way"
    )
    parser.add_argument("--seed", type=int, default=WarmStart.seed)
    parser.add_argument("--num-clean-steps", type=int, default=WarmStart.num_clean_steps, help="steps on right answers")
    parser.add_argument("--num-noisy-steps", type=int, default=WarmStart.num_noisy_steps, help="steps on careless ones")
    parser.add_argument(
        "--undecidable-frac",
        type=float,
        default=WarmStart.undecidable_frac,
        help="how often the facts leave an issue open",
    )
    parser.add_argument(
        "--statutes", action="store_true", help="teach to read the law before a question, see data/mini.py"
    )
    parser.add_argument("--order-first", action="store_true", help="teach to begin with the order instead of ending so")
    args = vars(parser.parse_args(argv))
    out: Path = args.pop("out")
    start = time.perf_counter()
    try:
        is_new = warm_start(WarmStart(**args), out)
    except ValueError as error:
        parser.error(str(error))
    said = f"taught in {time.perf_counter() - start:.0f} s" if is_new else "taught before with these settings: kept"
    print(f"{out}: {said}", file=sys.stderr)


if __name__ == "__main__":
    main()
