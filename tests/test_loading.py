import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.loading import InvalidCasesError, Problem, load_cases, to_record

ROOT_FOLDER = Path(__file__).parent.parent
ORDER = "1. 원고의 청구를 기각한다.\n2. 소송비용은 원고가 부담한다."


def record_of(doc_id: Any = "가-1", **others: Any) -> dict[str, Any]:
    issue = {
        "summary": "변제",
        "claim": [{"claimer": "피고", "content": "갚았다."}],
        "relevant_law": [],
        "analysis": [],
    }
    issues = [issue | {"id": "", "summary": "", "conclusion": ORDER}, issue | {"id": "1", "conclusion": "이유 있다."}]
    return {"doc_id": doc_id, "question": "결과는?", "answer": ORDER, "issues": issues, "difficulty": "easy"} | others


def line_of(*args: Any, **others: Any) -> bytes:
    return json.dumps(record_of(*args, **others), ensure_ascii=False).encode() + b"\n"


def rubric_of(summary: str, claims: str, conclusion: str) -> str:
    issue = f"summary: {summary}\nclaims:\n{claims}\nconclusion:\n{conclusion}"
    return f"판단하시오.\n{{response}}\n<ISSUE>\n{issue}\n</ISSUE>"


def verl_row(question: str) -> dict[str, Any]:
    rubrics = [rubric_of("", "원고: 지급하라.", ORDER), rubric_of("변제", "피고: 갚았다.", "이유 있다.")]
    prompt = [{"role": "user", "content": question}]
    return {"data_source": "legit", "prompt": prompt, "extra_info": {"index": 0, "rubrics": rubrics}}


@pytest.fixture
def write(tmp_path):
    def write(content: bytes, name: str = "cases.jsonl") -> Path:
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write


def problems_of(source: str | Path, **options: Any) -> list[tuple[int | None, str | None, str | None]]:
    with pytest.raises(InvalidCasesError) as caught:
        load_cases(source, **options)
    for problem in caught.value.problems:
        assert str(problem) in str(caught.value)
    assert str(source) in str(caught.value)
    return [(problem.line, problem.doc_id, problem.issue_id) for problem in caught.value.problems]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(line_of("가-1") + line_of("가-2"), id="plain"),
        pytest.param(b"\xef\xbb\xbf" + line_of("가-1") + line_of("가-2"), id="byte order mark"),
        pytest.param((line_of("가-1") + line_of("가-2")).replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(line_of("가-1") + line_of("가-2").strip(), id="no newline at the end"),
        pytest.param(b"\n" + line_of("가-1") + b" \n\n" + line_of("가-2") + b"\n\n", id="blank lines"),
    ],
)
def test_every_record_of_a_file_becomes_a_case(write, content):
    cases = load_cases(write(content))
    assert [case.id for case in cases] == ["가-1", "가-2"]
    assert [to_record(case) for case in cases] == [record_of("가-1"), record_of("가-2")]


def test_other_keys_of_a_record_are_kept(write):
    mini = {"kind": "loan", "decidable": {"1": False}}
    (case,) = load_cases(str(write(line_of(issue_id="", mini=mini))))
    assert case.extra == {"issue_id": "", "mini": mini}


def test_a_parquet_file_tells_the_same_cases(tmp_path):
    records = [record_of("가-1", note="참고"), record_of("가-2", difficulty=None)]
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "cases.parquet")
    cases = load_cases(tmp_path / "cases.parquet")
    assert [to_record(case) for case in cases] == [
        records[0],
        {key: value for key, value in record_of("가-2").items() if key != "difficulty"},
    ]


@pytest.mark.parametrize("name", ["train.parquet", "train.jsonl"])
def test_verl_rows_are_told_by_their_shape(tmp_path, name):
    rows = [verl_row("첫째 사건"), verl_row("둘째 사건")]
    if name.endswith("parquet"):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name)
    else:
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    first, second = load_cases(tmp_path / name)
    assert (first.question, second.question) == ("첫째 사건", "둘째 사건")
    assert not first.has_tree
    assert (first.answer, first.sub_issues[0].conclusion) == (ORDER, "이유 있다.")
    assert first.sub_issues[0].claims[0].claimer == "피고"
    assert first.extra == {"data_source": "legit", "extra_info": {"index": 0}}


def test_every_problem_of_a_file_is_named_at_once(write):
    orphan = record_of("가-6")
    orphan["issues"][1] |= {"id": "2.1", "conclusion": " "}
    content = [
        line_of("가-1"),
        b'{"doc_id": "\xb0\xa1"}\n',
        line_of("가-3", question=None),
        b"[]\n",
        line_of("가-1"),
        json.dumps(orphan).encode() + b"\n",
        line_of(7),
        json.dumps(verl_row("물음") | {"doc_id": "가-8", "extra_info": {}}).encode() + b"\n",
        line_of("가-9")[:-40],
    ]
    assert problems_of(write(b"".join(content))) == [
        (2, None, None),
        (3, "가-3", None),
        (4, None, None),
        (5, "가-1", None),
        (6, "가-6", "2.1"),
        (6, "가-6", "2.1"),
        (7, None, None),
        (8, "가-8", None),
        (9, None, None),
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(
            line_of("가-1") + b'{"a": "\xb0\xa1"}\n', f"offset {len(line_of('가-1')) + 7} of the", id="not UTF-8"
        ),
        pytest.param(line_of("가-1")[:-9], "the file ends within this line", id="truncated last line"),
        pytest.param(line_of("가-1") + line_of("가-1"), "the doc_id occurs twice, first in line 1", id="duplicate"),
        pytest.param(line_of(answer="1. 원고의 청구를 각하한다."), "is not the record's answer", id="another answer"),
        pytest.param(b"{}\n", "key 'issues' is missing", id="no key"),
        pytest.param(b'{"a": NaN, "doc_id": "x"}\n', "key 'question' is missing", id="NaN"),
    ],
)
def test_a_problem_says_what_is_wrong(write, content, reason):
    with pytest.raises(InvalidCasesError) as caught:
        load_cases(write(content))
    assert reason in str(caught.value)
    assert 'set on_invalid to "skip"' in str(caught.value)


def test_a_doc_id_is_the_same_however_its_letters_are_composed(write):
    assert problems_of(write(line_of("가-1") + line_of("\u1100\u1161-1"))) == [(2, "\u1100\u1161-1", None)]


def test_an_order_retyped_in_the_answer_loses_no_record(write):
    assert len(load_cases(write(line_of(answer=ORDER.replace("\n", " \n").replace("다.", "다 ."))))) == 1


def test_skipping_leaves_out_invalid_records_and_lists_them(write, capsys):
    content = line_of("가-1") + b"{\n" + line_of("가-3", question="") + line_of("가-1") + line_of("가-5")
    assert [case.id for case in load_cases(write(content), on_invalid="skip")] == ["가-1", "가-5"]
    listed = capsys.readouterr().err
    assert "3 problems in 3 of 5 records" in listed
    for place in ("line 2:", "line 3, doc_id '가-3':", "line 4, doc_id '가-1':"):
        assert place in listed


def test_a_long_list_of_problems_is_cut_in_the_message_only(write):
    with pytest.raises(InvalidCasesError) as caught:
        load_cases(write(line_of("가-1") * 1000))
    assert len(caught.value.problems) == 999
    assert "and 799 more" in str(caught.value)
    assert str(caught.value).count("\n") < 210


def test_valid_files_are_loaded_in_silence(write, capsys):
    load_cases(write(line_of()), on_invalid="skip")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"", "holds no record; it is empty", id="empty"),
        pytest.param(b"\xef\xbb\xbf\n\n", "holds no record; it is empty", id="blank"),
        pytest.param(line_of(question=""), "the question is empty", id="no valid case"),
        pytest.param(b"PAR1 and then nothing", "is a damaged Parquet file", id="damaged Parquet"),
        pytest.param(json.dumps([record_of()], indent=1).encode(), "as the lines of JSON Lines are", id="JSON array"),
        pytest.param(os.urandom(1000).replace(b"\n", b" ") + b"\xff\n" + b"\xff\n" * 30, "as the lines", id="binary"),
    ],
)
@pytest.mark.parametrize("on_invalid", ["error", "skip"])
def test_a_file_without_any_case_is_an_error_in_any_mode(write, content, reason, on_invalid):
    with pytest.raises(InvalidCasesError) as caught:
        load_cases(write(content), on_invalid=on_invalid)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param("cases.jsonk", "no such file or folder", id="absent"),
        pytest.param("cases.jsonk", "there is cases.jsonl", id="misspelled"),
        pytest.param("folder/cases", "no such file", id="like a hub id, but the folder is here"),
        pytest.param("C:\\data\\cases.jsonl", "like a path of Windows", id="Windows"),
        pytest.param("C:/data/cases.jsonl", "like a path of Windows", id="Windows with slashes"),
        pytest.param("no/such/folder/cases.jsonl", "no such file or folder", id="absent folder"),
        pytest.param("", "no such file or folder", id="nothing"),
        pytest.param("x" * 300, "is no usable path", id="too long a name"),
        pytest.param("a\0b", "no such file or folder", id="impossible name"),
    ],
)
def test_a_source_that_is_not_there_is_explained(write, monkeypatch, source, reason):
    path = write(line_of())
    (path.parent / "folder").mkdir()
    monkeypatch.chdir(path.parent)
    with pytest.raises(InvalidCasesError) as caught:
        load_cases(source)
    assert reason in str(caught.value)


def test_a_relative_path_written_on_windows_is_found(write, monkeypatch):
    path = write(line_of())
    monkeypatch.chdir(path.parent.parent)
    assert len(load_cases(f".\\{path.parent.name}\\cases.jsonl")) == 1


def test_a_file_has_no_split(write):
    with pytest.raises(InvalidCasesError, match="leave split out"):
        load_cases(write(line_of()), split="train")


def test_on_invalid_takes_two_words(write):
    with pytest.raises(ValueError, match='must be "error" or "skip"'):
        load_cases(write(line_of()), on_invalid="ignore")


def test_a_file_without_the_right_to_read_it_is_named(write):
    path = write(line_of())
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(InvalidCasesError, match="cannot be read"):
        load_cases(path)


def test_a_problem_is_placed_as_far_as_is_known():
    assert str(Problem(3, "가-1", "1.2", "why")) == "line 3, doc_id '가-1', issue '1.2': why"
    assert str(Problem(3, None, None, "why")) == "line 3: why"
    assert str(Problem(None, None, None, "why")) == "why"


@settings(deadline=None)
@given(content=st.binary(max_size=200) | st.text(alphabet='{}[]":,\n가a1\\', max_size=60).map(str.encode))
def test_any_bytes_give_cases_or_an_error_that_names_the_file(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("bytes") / "cases.jsonl"
    path.write_bytes(content)
    with pytest.raises(InvalidCasesError, match=r"cases\.jsonl"):
        load_cases(path)


def in_a_new_process(folder: Path, *sources: tuple[str, str | None]) -> list[str]:
    """What loading the sources gives, one line each; apart, for the hub's client reads its settings when imported."""
    program = (
        "import json, sys\n"
        "from data.loading import InvalidCasesError, load_cases\n"
        "for source, split in json.loads(sys.argv[1]):\n"
        "    try:\n"
        "        print([case.question for case in load_cases(source, split)])\n"
        "    except InvalidCasesError as error:\n"
        "        print(' '.join(str(error).split()))\n"
        "assert 'torch' not in sys.modules\n"
    )
    settings = {"HF_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT_FOLDER)}
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(sources)],
        cwd=folder, env=os.environ | settings, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


def test_a_data_set_of_the_hub_is_loaded_by_split(tmp_path):
    pytest.importorskip("datasets")
    copy = tmp_path / "jinulee-v" / "legit_ko_verl" / "data"  # where a program finds its copy of the hub's files
    copy.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([verl_row("가"), verl_row("나")]), copy / "train-00000-of-00001.parquet")
    pq.write_table(pa.Table.from_pylist([verl_row("다")]), copy / "valid-00000-of-00001.parquet")
    (tmp_path / "one").mkdir()
    pq.write_table(pa.Table.from_pylist([record_of()]), tmp_path / "one" / "cases.parquet")
    (tmp_path / "bare").mkdir()
    (tmp_path / "mixed").mkdir()
    for name, others in (("a", {}), ("b", {"language": "en"})):
        (tmp_path / "mixed" / f"{name}.jsonl").write_bytes(line_of(name, **others))
    (tmp_path / "files").mkdir()
    for split in ("train", "valid"):
        pq.write_table(pa.Table.from_pylist([verl_row(split)]), tmp_path / "files" / f"{split}.parquet")

    hub_id = "jinulee-v/legit_ko_verl"
    train, valid, unnamed, unknown, only, bare, absent, file, mixed = in_a_new_process(
        tmp_path,
        (hub_id, "train"), (hub_id, "valid"), (hub_id, None), (hub_id, "test"), ("one", None), ("bare", None),
        ("somebody/absent", "train"), ("files", "valid"),
        ("mixed", None),
    )  # fmt: skip
    assert train == "['가', '나']"
    assert valid == "['다']"
    assert "has several splits, name one: train, valid" in unnamed
    assert "cannot be loaded from the folder" in unknown
    assert "['train', 'valid']" in unknown
    assert only == "['결과는?']"
    assert bare.startswith("bare: cannot be loaded from the folder")
    assert absent.startswith("somebody/absent: cannot be loaded from the hub")
    assert file == "['valid']"
    assert mixed == (
        "mixed: cannot be loaded from the folder: its records have not all the same keys; name one of its files, whose "
        "records may differ"
    )
