"""Law in training: the same prompts as in evaluation, and a retriever that learns from the training cases."""

import json

import pytest
from tiny_encoder import write_encoder

from data.cases import Case, Issue
from data.command import InputError
from data.contexts import RetrievalConfig
from data.law import LawError, write_corpus
from data.prompts import build_prompt
from data.records import to_record
from data.retrieval import build_bm25, open_bm25
from rewards.gates import GateConfig
from train.config import DataConfig
from train.inputs import asker, find_law
from train.retriever import TuningConfig, main, read_config, triples, tune
from train.yaml_file import ConfigError

LAWS = {
    "부당이득": "민법 제741조: 법률상 원인 없이 타인의 재산으로 이익을 얻은 자는 그 이익을 반환하여야 한다.",
    "차임": "민법 제618조: 임대차는 차임을 지급할 것을 약정함으로써 효력이 생기는 계약이다.",
    "소멸시효": "민법 제162조: 채권은 십 년간 행사하지 아니하면 소멸시효가 완성한다.",
}


def case(id: str, question: str, *laws: str) -> Case:
    issue = Issue("1", "쟁점", (), "이유 없다.", laws)
    return Case(id, question, (Issue("", "", (), "기각한다."), issue))


TRAIN = [case(word, f"{word}의 이익과 채권, 계약에 관한 질문", law) for word, law in LAWS.items()]
TEST = [case("시험", "소멸시효에 관한 시험 질문")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("law")
    corpus, _ = write_corpus(path, TRAIN)
    build_bm25(corpus, path)
    return path


@pytest.fixture
def retrieval(folder):
    return RetrievalConfig(retriever="bm25", retriever_index=str(folder), retriever_k=2)


def test_training_and_evaluation_put_a_case_alike(retrieval):
    laws = find_law(DataConfig(), retrieval, GateConfig(), TRAIN, TEST)
    ask = asker("court", laws)
    assert ask(TEST[0]) == build_prompt(TEST[0], "court", laws["시험"])
    assert "민법 제162조" in ask(TEST[0])[-1]["content"]
    assert all(laws[one.id] for one in TRAIN)


def test_dropout_leaves_evaluation_alone(retrieval):
    laws = find_law(DataConfig(retriever_dropout=1.0), retrieval, GateConfig(), TRAIN, TEST)
    assert [bool(laws[one.id]) for one in (*TRAIN, *TEST)] == [False, False, False, True]
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        DataConfig(retriever_dropout=1.5)


def test_without_a_retriever_prompts_are_the_questions():
    laws = find_law(DataConfig(), RetrievalConfig(), GateConfig(), TRAIN, TEST)
    assert asker("bare", laws)(TRAIN[0]) == build_prompt(TRAIN[0], "bare")


def test_what_cannot_be_trained_with_is_told_before_anything_loads(retrieval, tmp_path):
    with pytest.raises(ConfigError, match="would leak into the test"):
        find_law(DataConfig(), retrieval, GateConfig(), TRAIN, [TRAIN[0]])
    with pytest.raises(ConfigError, match="holds no law corpus"):
        find_law(
            DataConfig(), RetrievalConfig(retriever="bm25", retriever_index=str(tmp_path)), GateConfig(), TRAIN, []
        )
    with pytest.raises(ConfigError, match="holds no law corpus"):
        find_law(DataConfig(), RetrievalConfig(), GateConfig(gate_precedents=str(tmp_path)), TRAIN, [])


def test_negatives_are_what_words_find_and_the_court_did_not_apply(folder):
    from data.law import read_corpus

    corpus = read_corpus(folder)
    found = triples(TRAIN, corpus, open_bm25(corpus, folder), seed=0)
    assert [(question, law) for question, law, _ in found] == [
        (one.question, one.issues[1].relevant_law[0]) for one in TRAIN
    ]
    assert all(negative in LAWS.values() and negative != law for _, law, negative in found)
    with pytest.raises(LawError, match="none of the cases' own laws"):
        triples(TEST, corpus, open_bm25(corpus, folder), seed=0)


YAML = "cases: c.jsonl\nindex: law\nmodel: m\noutput_dir: out\n"


def test_a_configuration_is_checked(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(YAML, encoding="utf-8")
    assert read_config(path, ["--batch_size", "8"]) == TuningConfig(
        cases="c.jsonl", index="law", model="m", output_dir="out", batch_size=8
    )
    path.write_text("cases: c.jsonl\nindx: law\nbatch_size: many\nmodel: m\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"(?s)indx: did you mean index.*output_dir must be set.*batch_size must be"):
        read_config(path, [])
    path.write_text(YAML + "num_epochs: 0\n", encoding="utf-8")
    with pytest.raises(InputError, match="num_epochs must be above 0"):
        read_config(path, [])


def test_wrong_input_is_told_in_a_line(tmp_path, capsys):
    assert main([str(tmp_path / "nothing.yaml")]) == 2
    assert "nothing.yaml" in capsys.readouterr().err


@pytest.mark.slow
def test_a_tuned_retriever_can_be_indexed_with(folder, tmp_path, monkeypatch):
    from data.retrieve import main as retrieve

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    cases = tmp_path / "train.jsonl"
    cases.write_text("".join(json.dumps(to_record(one), ensure_ascii=False) + "\n" for one in TRAIN), encoding="utf-8")
    model = write_encoder(tmp_path, [*LAWS.values(), *(one.question for one in TRAIN)])
    tuned = str(tmp_path / "tuned")
    tune(TuningConfig(cases=str(cases), index=str(folder), model=model, output_dir=tuned, batch_size=2, num_epochs=1))
    assert retrieve(["index", "--out", str(folder), "--model", tuned]) == 0
    assert retrieve(["inspect", "--index", str(folder), "--retriever", "hybrid", "--model", tuned, "소멸시효"]) == 0
