"""One law is one document, and what a test must not know is refused."""

import json

import pytest

from data.cases import Case, Issue
from data.jsonl import JsonlError
from data.law import (
    LawError,
    Passage,
    case_passages,
    check_no_leak,
    known_laws,
    own_documents,
    passage_of,
    read_corpus,
    to_documents,
    write_corpus,
)
from data.law_file import MAX_CHARS, law_file_passages

UNJUST = "법률상 원인 없이 타인의 재산으로 이익을 얻은 자는 그 이익을 반환하여야 한다."
DEPOSIT = "보증금은 임차인의 모든 채무를 담보하므로 목적물을 돌려받을 때 그 채무액이 당연히 공제된다"
PROOF = "등기가 원인 없이 마쳐졌다는 사정은 그 말소를 구하는 사람이 증명하여야 한다."


def case(id: str, *laws: str, question: str = "") -> Case:
    root, issue = Issue("", "", (), "기각한다."), Issue("1", "쟁점", (), "이유 없다.", tuple(laws))
    return Case(id, question or f"{id}의 질문", (root, issue), "easy")


def documents(*texts: str):
    return to_documents(map(passage_of, texts))


def test_however_it_is_cited_a_law_is_one_document():
    found, tally = documents(
        f"민법 제741조: {UNJUST}", f"민법  제741조는 “{UNJUST}”라고 정하고 있다.", f"「민법」 제741조: {UNJUST}"
    )
    assert [(doc.id, doc.kind, doc.citation) for doc in found] == [("민법 제741조", "statute", "민법 제741조")]
    assert tally["num_near_duplicates"] == 2


def test_what_else_is_said_of_a_law_joins_its_document_the_most_frequent_first():
    other = "민법 제741조: 선의의 수익자는 그 받은 이익이 현존한 한도에서 반환할 책임을 진다."
    (document,), _ = documents(f"민법 제741조: {UNJUST}", other, other)
    assert document.text == f"{other}\n민법 제741조: {UNJUST}"


def test_a_full_document_takes_no_more_and_says_so():
    words = [f"{'가나다라마바사아자차카타'[place]}{place}번째 " * 80 for place in range(4)]
    (document,), tally = documents(*(f"민법 제1조: {text}" for text in words))
    assert len(document.text) <= 1200
    assert tally["num_left_out"] == 4 - len(document.text.split("\n"))


def test_a_precedent_is_known_by_its_number_and_a_principle_by_its_words():
    found, _ = documents(f"{DEPOSIT}(대법원 2005. 9. 28. 선고 2005다8323, 8330 판결 등 참조).", PROOF, f"{PROOF} ")
    assert [(doc.id.split()[0], doc.kind) for doc in found] == [("대법원", "precedent"), ("법리", "principle")]
    assert found[0].citation == "대법원 2005. 9. 28. 선고 2005다8323 판결"
    assert found[1].citation == ""


@pytest.mark.parametrize("first", [0, 1])
def test_a_principle_that_is_worded_like_a_precedent_belongs_to_it(first):
    texts = [DEPOSIT, f"{DEPOSIT}(대법원 2005다8323 판결)."]
    found, _ = documents(texts[first], texts[1 - first])
    assert [doc.id for doc in found] == ["대법원 2005다8323"]


def test_bare_citations_and_short_words_are_no_documents():
    found, tally = documents("민법 제664조, 제492조 제1항, 제493조", "짧은 말", f"민법 제741조: {UNJUST}")
    assert [doc.id for doc in found] == ["민법 제741조"]
    assert (tally["num_passages"], tally["num_short"]) == (3, 2)


def test_a_corpus_is_what_was_written_and_its_stamp_is_of_its_content(tmp_path):
    cases = [case("a", f"민법 제741조: {UNJUST}"), case("b", PROOF)]
    written, _ = write_corpus(tmp_path / "one", cases)
    again, _ = write_corpus(tmp_path / "two", [*cases, case("c")])
    assert read_corpus(tmp_path / "one") == written
    assert written.stamp == again.stamp != write_corpus(tmp_path / "three", cases[:1])[0].stamp
    path = tmp_path / "one" / "corpus.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("반환", "배상"), encoding="utf-8")
    with pytest.raises(LawError, match="not what it was"):
        read_corpus(tmp_path / "one")


def test_laws_of_held_out_cases_in_a_corpus_are_a_leak_under_whatever_id(tmp_path):
    tested = case("test-1", f"민법 제741조: {UNJUST}", question="돈을  돌려 달라.")
    renamed = case("other-id", question="돈을 돌려\n달라.")
    corpus, _ = write_corpus(tmp_path, [case("train-1", PROOF), tested])
    with pytest.raises(LawError, match=r"laws of 1 held-out cases, 'other-id'.*--include-test"):
        check_no_leak(corpus, [case("test-2"), renamed], tmp_path)
    check_no_leak(corpus, [case("test-2")], tmp_path)
    marked, _ = write_corpus(tmp_path, [case("train-1", PROOF)], test_cases=[tested])
    assert read_corpus(tmp_path).is_leaking
    check_no_leak(marked, [renamed], tmp_path)


def test_cases_that_tell_no_law_make_no_corpus(tmp_path):
    with pytest.raises(LawError, match=r"would be empty: 1 cases state 1 laws.*relevant_law"):
        write_corpus(tmp_path, [case("a", "민법 제741조")])
    with pytest.raises(LawError, match="holds no law corpus"):
        read_corpus(tmp_path)


def test_laws_of_a_users_own_file(tmp_path):
    path = tmp_path / "laws.jsonl"
    rows = [
        {"citation": "민법 제741조", "text": UNJUST},
        {"citation": "내부 지침 7", "text": PROOF},
        {"text": f"민법 제742조: {DEPOSIT}"},
    ]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    corpus, _ = write_corpus(tmp_path / "law", [], law_file_passages(path))
    assert [(doc.id, doc.kind, doc.shown[:10]) for doc in corpus.documents] == [
        ("민법 제741조", "statute", "민법 제741조: "),
        ("내부지침7", "statute", "내부 지침 7: 등"),
        ("민법 제742조", "statute", "민법 제742조: "),
    ]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({}, "key 'text' is missing or empty"),
        ({"text": " "}, "key 'text' is missing or empty"),
        ({"text": None}, "key 'text' must be a string, got 'None'"),
        ({"text": 1}, "key 'text' must be a string, got '1'"),
        ({"text": ["가"]}, "key 'text' must be a string"),
        ({"text": "가", "kind": "poem"}, "key 'kind' must be one of statute, precedent, principle, got 'poem'"),
        ({"text": "가", "kind": ["statute"]}, "key 'kind' must be one of"),
        ({"text": "가", "citation": 1}, "key 'citation' must be a string, got '1'"),
        ({"text": "가", "citation": []}, "key 'citation' must be a string"),
        ({"text": UNJUST + "\ud83d"}, "key 'text' holds half a surrogate pair"),
        ({"text": UNJUST, "citation": "\udfff"}, "key 'citation' holds half a surrogate pair"),
        ({"text": UNJUST + "\0"}, "key 'text' holds a NUL character"),
        ({"text": UNJUST, "citation": "\0"}, "key 'citation' holds a NUL character"),
        ({"text": "가" * (MAX_CHARS["text"] + 1)}, "key 'text' has 100,001 characters, the most are 100,000"),
        ({"text": UNJUST, "citation": "가" * (MAX_CHARS["citation"] + 1)}, "key 'citation' has 1,001 characters"),
    ],
)
def test_a_line_that_is_no_law_is_named(tmp_path, row, problem):
    path = tmp_path / "laws.jsonl"
    rows = [{"citation": "민법 제741조", "text": UNJUST}, row]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    with pytest.raises(JsonlError, match=rf"laws\.jsonl, line 2: no law: {problem}"):
        list(law_file_passages(path))


def test_a_cases_own_documents_are_found_by_key_or_by_words(tmp_path):
    corpus, _ = write_corpus(tmp_path, [case("a", f"민법 제741조: {UNJUST}", PROOF)])
    asked = case("b", "민법 제741조, 제742조", PROOF.replace("한다.", "함"))
    own, num_own = own_documents(corpus, [asked])["b"]
    assert own == {doc.id for doc in corpus.documents}
    assert num_own == 3
    assert own_documents(corpus, [case("c")])["c"] == (frozenset(), 0)


def test_a_corpus_knows_the_laws_that_its_texts_name(tmp_path):
    write_corpus(tmp_path, [case("a", f"{DEPOSIT}. 민법 제618조 참조(대법원 2005다8323 판결).")])
    assert known_laws(str(tmp_path)) == {"대법원 2005다8323", "민법 제618조"}


def test_each_passage_of_a_case_once():
    assert list(case_passages(case("a", PROOF, f" {PROOF}", ""))) == [Passage(None, "principle", "", PROOF)]
