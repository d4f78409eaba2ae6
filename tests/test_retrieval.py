"""Searches over a law corpus, on real libraries; the commands around them."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_encoder import write_encoder

from data.cases import Case, Claim, Issue
from data.contexts import RetrievalConfig, contexts_for, drop_some, fit, heeded, rank_documents
from data.law import Document, LawError, passage_of, write_corpus
from data.records import to_record
from data.retrieval import best, build_bm25, build_dense, dense_stamp, fuse, hybrid, morphemes, open_bm25, open_dense
from data.retrieve import main

LAWS = [
    "민법 제741조: 법률상 원인 없이 타인의 재산으로 이익을 얻은 자는 그 이익을 반환하여야 한다.",
    "민법 제618조: 임대차는 차임을 지급할 것을 약정함으로써 효력이 생기는 계약이다.",
    "민법 제162조: 채권은 십 년간 행사하지 아니하면 소멸시효가 완성한다.",
    "근로기준법 제36조: 사용자는 근로자가 퇴직한 때부터 십사 일 이내에 임금을 지급하여야 한다.",
]


def case(id: str, question: str, *claims: str, laws: tuple[str, ...] = ()) -> Case:
    said = tuple(Claim("원고", claim) for claim in claims)
    root, issue = Issue("", "", (), "기각한다."), Issue("1", "쟁점", said, "이유 없다.", laws)
    return Case(id, question, (root, issue), "easy")


WAGES = case(
    "임금", "원고는 퇴직한 근로자인데 사용자가 임금을 주지 않는다.", "임금을 달라", "시효가 지났다", laws=(LAWS[3],)
)
TRAINED = case("학습", "학습에만 쓰는 질문", laws=tuple(LAWS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("law")
    corpus, _ = write_corpus(path, [], map(passage_of, LAWS))
    build_bm25(corpus, path)
    return path


@pytest.fixture(scope="module")
def corpus(folder):
    from data.law import read_corpus

    return read_corpus(folder)


def bm25(folder, **options) -> RetrievalConfig:
    return RetrievalConfig(retriever="bm25", retriever_index=str(folder), **options)


def test_what_nobody_sees_changes_no_word():
    assert morphemes(["\u200b임대차\u200b 차\u202e임"]) == morphemes(["임대차 차임"])


def test_words_are_what_carries_meaning():
    (words,) = morphemes(["피고는 KBS에게 3억 원을 갚지 않았다."])
    assert {"피고", "KBS", "갚"} <= set(words)
    assert not {"는", "에게", "을", "."} & set(words)


def test_words_find_the_law_that_has_them(corpus, folder):
    search = open_bm25(corpus, folder)
    found = search(["퇴직한 근로자의 임금", "소멸시효", "xyzzy", ""], 2)
    assert [[corpus.documents[place].id for place, _ in hits[:1]] for hits in found] == [
        ["근로기준법 제36조"],
        ["민법 제162조"],
        [],
        [],
    ]
    assert all(score > 0 for hits in found for _, score in hits)
    assert len(search(["민법"], 100)[0]) == 3  # no more than there are


def test_an_index_of_another_corpus_is_refused(folder, tmp_path):
    other, _ = write_corpus(tmp_path, [], map(passage_of, LAWS[:2]))
    with pytest.raises(LawError, match="of another corpus"):
        open_bm25(other, folder)
    with pytest.raises(LawError, match="is no index"):
        open_bm25(other, tmp_path)
    with pytest.raises(LawError, match="is no index"):
        open_dense(other, tmp_path, "some/model")


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=12), st.integers(1, 15))
def test_the_best_are_those_of_a_full_sort(scores, k):
    ranked = sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:k]
    assert [place for place, _ in best(np.array(scores), k)] == ranked


def test_fused_lists_put_first_what_stands_high_in_both():
    one, other = [(1, 9.0), (2, 8.0), (3, 7.0)], [(4, 0.9), (2, 0.8), (1, 0.1)]
    # 1: 1/61 + 1/63, 2: 2/62, 4: 1/61, 3: 1/63
    assert [place for place, _ in fuse([one, other], 3)] == [1, 2, 4]
    both = hybrid([lambda queries, k: [one[:k]] * len(queries), lambda queries, k: [other[:k]] * len(queries)])
    assert both(["a", "b"], 2) == [fuse([one, other], 2)] * 2
    assert both([], 2) == []


def test_a_case_is_searched_for_by_its_question_or_by_each_claim(corpus, folder):
    search = open_bm25(corpus, folder)
    by_question = rank_documents([WAGES], bm25(folder, retriever_k=1), search, corpus)
    assert [document.id for document in by_question["임금"]] == ["근로기준법 제36조"]
    by_claim = rank_documents([WAGES], bm25(folder, retriever_query="claims", retriever_k=2), search, corpus)
    assert {document.id for document in by_claim["임금"]} == {"근로기준법 제36조", "민법 제162조"}
    with pytest.raises(LawError, match=r"'없음' has no claim"):
        rank_documents([case("없음", "질문")], bm25(folder, retriever_query="claims"), search, corpus)


def test_contexts_are_computed_once_and_carry_the_stamp(corpus, folder):
    config = bm25(folder, retriever_k=2)
    first = contexts_for([WAGES], config, held_out=True)
    (path,) = (folder / "contexts").glob("*.jsonl")
    header, row = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert header["stamp"] == corpus.stamp
    row["laws"] = ["민법 제618조"]
    path.write_text(json.dumps(header) + "\n" + json.dumps(row) + "\n", encoding="utf-8")
    assert [law.id for law in contexts_for([WAGES], config, held_out=True)["임금"]] == ["민법 제618조"]
    path.write_text(json.dumps({"stamp": "other"}) + "\n", encoding="utf-8")
    with pytest.raises(LawError, match="of another corpus"):
        contexts_for([WAGES], config, held_out=True)
    path.unlink()
    assert contexts_for([WAGES], config, held_out=True) == first


def test_the_upper_bound_is_the_cases_own_law_and_none_is_none(folder):
    gold = contexts_for([WAGES, case("b", "질문")], RetrievalConfig(retriever="gold"), held_out=True)
    assert [[law.text for law in laws] for laws in gold.values()] == [[LAWS[3]], []]
    assert contexts_for([WAGES], RetrievalConfig(), held_out=True) == {}


def test_held_out_cases_must_not_have_made_the_corpus(tmp_path):
    corpus, _ = write_corpus(tmp_path, [TRAINED])
    build_bm25(corpus, tmp_path)
    assert contexts_for([TRAINED], bm25(tmp_path), held_out=False)
    with pytest.raises(LawError, match="would leak into the test"):
        contexts_for([TRAINED], bm25(tmp_path), held_out=True)


def law(id: str, text: str) -> Document:
    return Document(id, "statute", id, text)


def test_laws_are_fitted_whole_from_the_best_down():
    laws = [law("a", "가" * 4), law("b", "나" * 9), law("c", "다" * 3)]
    # "1. a: 가가가가" and its line end are 11 characters, the others 16 and 10
    assert [one.id for one in fit(laws, 37, len)] == ["a", "b", "c"]
    assert [one.id for one in fit(laws, 36, len)] == ["a", "b"]
    assert [one.id for one in fit(laws, 21, len)] == ["a", "c"]  # no room for b: the next one gets it
    assert fit(laws, 9, len) == ()


def test_what_finds_no_room_is_told(folder, capsys):
    contexts_for([WAGES], bm25(folder, retriever_k=2, retriever_query="claims", retriever_max_tokens=60), held_out=True)
    assert "1 of 2 laws are left out" in capsys.readouterr().err


def test_dropout_takes_the_law_of_the_same_cases_whoever_else_there_is():
    contexts = {str(number): (law("a", "가"),) for number in range(1000)}
    kept = drop_some(contexts, 0.3, seed=0)
    assert 650 < sum(map(bool, kept.values())) < 750
    assert drop_some({"7": contexts["7"]}, 0.3, seed=0)["7"] == kept["7"]
    assert drop_some(contexts, 0.0, seed=0) == contexts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retriever": "bm52"}, "none, bm25, dense, hybrid, gold; got|got 'bm52'"),
        ({"retriever": "bm25"}, "retriever_index must be set"),
        ({"retriever": "dense", "retriever_index": "x"}, "retriever_model must be set"),
        ({"retriever_query": "poem"}, "question, claims"),
        ({"retriever_k": 0}, "at least 1"),
        (
            {"retriever": "bm25", "retriever_index": "x", "retriever_model": "m"},
            "retriever_model has no effect with retriever bm25: take retriever dense or hybrid, or leave it out",
        ),
        ({"retriever": "gold", "retriever_index": "x"}, "retriever_index has no effect with retriever gold"),
        ({"retriever": "gold", "retriever_k": 3}, "retriever_k has no effect with retriever gold"),
        (
            {"retriever_index": "x", "retriever_tokenizer": "t"},
            "retriever_index has no effect with retriever none, nor has retriever_tokenizer: take retriever bm25 or",
        ),
    ],
)
def test_impossible_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RetrievalConfig(**options)


def cases_file(path: Path, *cases: Case) -> str:
    path.write_text("".join(json.dumps(to_record(one), ensure_ascii=False) + "\n" for one in cases), encoding="utf-8")
    return str(path)


def test_the_commands(tmp_path, capsys):
    train, test = cases_file(tmp_path / "train.jsonl", TRAINED), cases_file(tmp_path / "test.jsonl", WAGES)
    index = str(tmp_path / "law")
    assert main(["index", "--cases", train, "--held-out", test, "--out", index]) == 0
    assert "4 documents" in capsys.readouterr().out
    assert main(["inspect", "--index", index, "-k", "1", "소멸시효"]) == 0
    assert "민법 제162조" in capsys.readouterr().out
    found = tmp_path / "found.jsonl"
    assert main(["search", "--index", index, "--cases", test, "--out", str(found)]) == 0
    line = json.loads(found.read_text(encoding="utf-8"))
    assert (line["doc_id"], line["laws"][0]["id"]) == ("임금", "근로기준법 제36조")
    figures = tmp_path / "figures.json"
    assert main(["evaluate", "--index", index, "--cases", test, "-k", "1", "--json", str(figures)]) == 0
    assert json.loads(figures.read_text(encoding="utf-8"))["recall@1"] == 1.0


def test_a_leak_into_a_train_index_is_refused(tmp_path, capsys):
    train, test = cases_file(tmp_path / "train.jsonl", TRAINED, WAGES), cases_file(tmp_path / "test.jsonl", WAGES)
    index = str(tmp_path / "law")
    assert main(["index", "--cases", train, "--held-out", test, "--out", index]) == 2
    assert "would leak into the test" in capsys.readouterr().err
    assert not (tmp_path / "law").exists()
    assert main(["index", "--cases", train, "--out", index]) == 0  # who does not say what is held out is told later
    assert main(["evaluate", "--index", index, "--cases", test]) == 2
    assert "--include-test" in capsys.readouterr().err
    assert main(["index", "--cases", train, "--include-test", test, "--out", index]) == 0
    assert "LEAKING" in capsys.readouterr().out
    assert main(["evaluate", "--index", index, "--cases", test]) == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["index", "--out", "law"], "would be empty"),
        (["inspect", "--index", "law", "말"], "holds no law corpus"),
        (["inspect", "--index", "law", "--retriever", "dense", "말"], "retriever_model must be set"),
    ],
)
def test_wrong_input_is_told_in_a_line(tmp_path, monkeypatch, capsys, argv, message):
    monkeypatch.chdir(tmp_path)
    assert main(argv) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_meaning_finds_the_same_text_and_another_models_index_is_refused(corpus, tmp_path):
    saved = write_encoder(tmp_path, LAWS)
    build_dense(corpus, tmp_path, saved)
    search = open_dense(corpus, tmp_path, saved)
    hits = search([document.shown for document in corpus.documents], 2)
    assert [found[0][0] for found in hits] == [0, 1, 2, 3]
    assert all(found[0][1] == pytest.approx(1, abs=1e-2) for found in hits)
    with pytest.raises(LawError, match="is no index"):
        open_dense(corpus, tmp_path, "another/model")


def test_searching_by_words_leaves_the_process_fit_for_vllm():
    """Where llvmlite is loaded, vLLM's engine does not start: it looks through all modules and stumbles over it."""
    program = (
        "import sys; from data.retrieval import _bm25s; bm25 = _bm25s().BM25(); bm25.index([['a'], ['b']]); "
        "assert 'llvmlite' not in sys.modules and 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("name", "content"),
    [("about.json", b""), ("about.json", b"[]"), ("vocab.index.json", b'{"a"'), ("data.csc.index.npy", b"\x93NUMPY")],
)
def test_a_damaged_index_is_named(folder, corpus, tmp_path, name, content):
    shutil.copytree(folder, tmp_path / "law")
    path = tmp_path / "law" / "bm25" / name
    assert path.exists()
    path.write_bytes(content)
    with pytest.raises(LawError, match="bm25 is damaged"):
        open_bm25(corpus, tmp_path / "law")


@pytest.mark.parametrize("key", ["stamp", "vectors"])
def test_a_damaged_index_by_meaning_is_named(corpus, tmp_path, key):
    about = {"stamp": corpus.stamp, "model": "m", "vectors": "v"}
    (tmp_path / "dense-m").mkdir()
    (tmp_path / "dense-m" / "about.json").write_text(json.dumps(about))
    assert dense_stamp(corpus, tmp_path, "m") == "v"
    del about[key]
    (tmp_path / "dense-m" / "about.json").write_text(json.dumps(about))
    with pytest.raises(LawError, match=f"dense-m is damaged \\('{key}'\\): index again"):
        dense_stamp(corpus, tmp_path, "m")


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda lines: lines[:0], r"line 1: \"stamp\" is None, of another corpus"),
        (lambda lines: lines[:1], "line 2: case '임금' has no line: the file ends too early"),
        (lambda lines: [*lines[:1], lines[1][:9]], "line 2: case '임금' has no line: the file ends too early"),
        (lambda lines: [lines[0], "{\n", lines[1]], "line 2: not JSON"),
        (lambda lines: [lines[0], '{"doc_id": ["임금"], "laws": []}\n'], 'line 2: "doc_id" must be the id of a case'),
        (lambda lines: [lines[0], '{"doc_id": "임금", "laws": {}}\n'], "case '임금': \"laws\" must be a list, got {}"),
        (lambda lines: [lines[0], '{"doc_id": "임금"}\n'], "case '임금': \"laws\" must be a list, got null"),
        (lambda lines: [lines[0], '{"doc_id": "임금", "laws": [[1]]}\n'], r"\"laws\" has \[1\], which the corpus"),
        (lambda lines: [lines[0], '{"doc_id": "임금", "laws": ["민법 제1조"]}\n'], 'has "민법 제1조", which'),
        (lambda lines: [*lines, lines[1]], "line 3: case '임금' stands there twice"),
    ],
    ids=["empty", "one line", "cut off", "no JSON", "id", "object", "none", "list in list", "unknown", "twice"],
)
def test_a_damaged_file_of_contexts_is_named(folder, tmp_path, spoil, problem):
    shutil.copytree(folder, tmp_path / "law", ignore=shutil.ignore_patterns("contexts"))
    contexts_for([WAGES], bm25(tmp_path / "law", retriever_k=1), held_out=True)
    (path,) = (tmp_path / "law" / "contexts").iterdir()
    path.write_text("".join(spoil(path.read_text(encoding="utf-8").splitlines(keepends=True))), encoding="utf-8")
    with pytest.raises(LawError, match=f"{re.escape(str(path))}, .*{problem}.*delete it"):
        contexts_for([WAGES], bm25(tmp_path / "law", retriever_k=1), held_out=True)


def test_of_a_runs_settings_those_count_that_another_retriever_heeds():
    settings = {"retriever": "dense", "retriever_model": "m", "retriever_index": "x", "retriever_k": 3}
    assert heeded(settings) == settings
    assert heeded(settings, "bm25") == {"retriever": "bm25", "retriever_index": "x", "retriever_k": 3}
    assert heeded(settings, "none") == {"retriever": "none"}
    assert heeded({}) == {"retriever": "none"}
