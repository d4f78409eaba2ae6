"""Texts that are nearly the same are found among many."""

import random
from pathlib import Path

from data.near_duplicates import near_duplicates, signature, similarity

TEXTS = [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).with_name("judgments").glob("*.txt"))]


def test_different_judgments_are_no_duplicates():
    assert list(near_duplicates([signature(text) for text in TEXTS])) == []


def test_a_judgment_with_other_names_or_without_its_end_is_one():
    renamed = TEXTS[0].replace("김OO", "이XX").replace("주식회사 A", "주식회사 Z")
    shortened = TEXTS[3][: int(0.9 * len(TEXTS[3]))]
    signatures = [signature(text) for text in (*TEXTS, renamed, shortened)]
    assert list(near_duplicates(signatures)) == [(0, 12), (3, 13)]


def test_white_space_and_widths_do_not_matter():
    assert signature("가 나\n다라마 １２３") == signature("가나다라마123")


def test_the_estimate_is_near_the_true_similarity():
    words = [f"낱말{number:03}" for number in range(300)]
    rng = random.Random(0)
    one = "".join(words)
    other = "".join(word if rng.random() < 0.9 else "바뀐말" for word in words)
    shingles = [{text[i : i + 5] for i in range(len(text) - 4)} for text in (one, other)]
    true = len(shingles[0] & shingles[1]) / len(shingles[0] | shingles[1])
    assert abs(similarity(signature(one), signature(other)) - true) < 0.15


def test_a_lower_threshold_finds_more():
    part = TEXTS[0][: len(TEXTS[0]) * 65 // 100]
    signatures = [signature(TEXTS[0]), signature(part)]
    assert list(near_duplicates(signatures)) == []
    assert list(near_duplicates(signatures, min_similarity=0.5)) == [(0, 1)]
