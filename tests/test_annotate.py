"""Annotation workbooks: nothing of a response is lost or evaluated, and nothing that a rater filled in either."""

import json
import shutil
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import load_workbook
from simulated_raters import write_lines

from data.cases import Case, Claim, Issue
from eval.annotate import main
from eval.annotation import assign, choose, merge
from eval.cell_text import MAX_LINES, num_lines_of, split_text
from eval.raters import read_rater
from eval.results import Response
from eval.workbook import label
from rewards.score import Judgment

DANGEROUS = '=HYPERLINK("http://example.invalid","눌러")\n+1\n-1\n@SUM(A1)\n\t=2\n_x0041_ \x00\x07\ufffe\ud800 끝'
LONG = "가나다라 " * 9000 + "\n" + "끝" * 50
RIGHT, WRONG, ABSENT = Judgment(True, True), Judgment(True, False), Judgment(False, False)


def case_record(number: int) -> dict:
    issues = [
        {"id": id, "summary": f"쟁점 {id}", "claim": [{"claimer": "원고", "content": "주장"}], "conclusion": "인정"}
        for id in ("", "1", "1.10", "1.2")
    ]
    issues[3]["conclusion"] = "=1+1 " + "아주 긴 결론이다. " * (4000 if number == 0 else 1)
    difficulty = ("easy", "medium", "hard")[number % 3]
    record = {"doc_id": f"사건-{number}", "question": "=사실관계", "answer": "인정", "issues": issues}
    return record | {"difficulty": difficulty}


@pytest.fixture
def folder(tmp_path):
    """Six cases with two generators' responses."""
    return make_inputs(tmp_path)


def make_inputs(tmp_path):
    write_lines(tmp_path / "cases.jsonl", map(case_record, range(6)))
    for generator in ("secret-a", "secret-b"):
        texts = (DANGEROUS, f"<think>생각</think>{LONG}", *("답안" for _ in range(4)))
        records = [{"doc_id": f"사건-{n}", "response": text} for n, text in enumerate(texts)]
        (tmp_path / f"{generator}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    return tmp_path


@pytest.fixture(scope="module")
def workbooks(tmp_path_factory):
    """What `export` makes of all responses: writing it takes a while, and most tests only want a copy."""
    folder = make_inputs(tmp_path_factory.mktemp("exported"))
    assert export(folder) == 0
    return folder


@pytest.fixture
def exported(workbooks, tmp_path):
    """The folder with a fresh copy of the workbooks in out/."""
    shutil.copytree(workbooks, tmp_path, dirs_exist_ok=True)
    return tmp_path


def export(folder, *options) -> int:
    responses = [str(folder / f"secret-{end}.jsonl") for end in "ab"]
    command = [
        "export",
        "--cases",
        str(folder / "cases.jsonl"),
        "--out",
        str(folder / "out"),
        "--responses",
        *responses,
    ]
    return main([*command, *options])


def fill(path, answers) -> None:
    """Put (contains, correct, comment) into each issue's row, by sheet and label; what is not there stays blank."""
    book = load_workbook(path)
    for sheet in book.worksheets[1:]:
        for row in sheet.iter_rows(min_row=2):
            filled = answers(sheet.title, row[0].value)
            if str(row[0].value).startswith(("쟁점", "주문")) and filled is not None:
                for cell, value in zip(row[4:7], filled, strict=True):
                    cell.value = value
    book.save(path)


def texts_of(path) -> dict[str, str]:
    """The text of the response on each sheet: the rows below the first bar."""
    found = {}
    for sheet in load_workbook(path).worksheets[1:]:
        rows = list(sheet.iter_rows(min_row=3, values_only=True))
        end = next(place for place, row in enumerate(rows) if row[4] == "1. 판단하였는가")
        text = "".join(row[1] or "" for row in rows[:end])
        found[sheet.title] = text.replace("_x005F_", "_")  # how the file format writes the underscore of "_x0041_"
    return found


@given(st.text(alphabet="가a \n", max_size=400), st.integers(1, 30))
def test_split_text_loses_nothing_and_every_piece_can_be_seen(text, width):
    pieces = split_text(text, width)
    assert "".join(pieces) == text
    assert all(num_lines_of(piece, width) <= MAX_LINES for piece in pieces)


def test_the_whole_response_is_there_as_inert_text(exported):
    key = json.loads((exported / "out" / "key.json").read_text())["responses"]
    for name, text in texts_of(exported / "out" / "rater-1.xlsx").items():
        if key[name]["doc_id"] == "사건-0":
            assert text == '=HYPERLINK("http://example.invalid","눌러")\n+1\n-1\n@SUM(A1)\n\t=2\n_x0041_ \ufffd 끝'
        if key[name]["doc_id"] == "사건-1":
            assert text == LONG
    for sheet in load_workbook(exported / "out" / "rater-1.xlsx").worksheets[1:]:
        assert len(sheet.title) <= 31
        for row in sheet.iter_rows():
            for cell in row[:7]:
                formula_of_ours = cell.data_type == "f" and cell.coordinate == "B1"
                assert cell.data_type != "f" or formula_of_ours, cell.value
                assert len(str(cell.value or "")) < 32_767
                assert cell.data_type != "s" or cell.quotePrefix or cell.column > 4


def test_long_conclusions_are_whole_too(folder):
    export(folder, "--limit", "1", "--num-responses", "1")
    sheet = load_workbook(folder / "out" / "rater-1.xlsx").worksheets[1]
    rows = list(sheet.iter_rows(values_only=True))
    start = next(place for place, row in enumerate(rows) if row[0] == "쟁점 1.2")
    end = next(place for place, row in enumerate(rows) if place > start and row[0])
    assert "".join(row[3] or "" for row in rows[start:end]) == case_record(0)["issues"][3]["conclusion"]


def test_only_the_answers_can_be_changed_and_generators_are_hidden(exported):
    book = load_workbook(exported / "out" / "rater-1.xlsx")
    assert book.security.lockStructure
    for sheet in book.worksheets:
        assert sheet.protection.sheet
        unlocked = {cell.column_letter for row in sheet.iter_rows() for cell in row if not cell.protection.locked}
        assert unlocked == (set("EFG") if sheet.title != "안내" else set())
        said = " ".join(str(cell.value) for row in sheet.iter_rows() for cell in row)
        assert "secret" not in said
        assert "사건-" not in said
    sheet = book.worksheets[1]
    (choice,) = sheet.data_validations.dataValidation
    assert choice.formula1 == '"예,아니오"'
    labels = [row[0] for row in sheet.iter_rows(values_only=True) if str(row[0]).startswith(("쟁점", "주문"))]
    assert labels == ["주문", "쟁점 1", "쟁점 1.2", "쟁점 1.10"]


def test_marks_come_back_as_grades_that_agreement_reads(folder, capsys):
    export(folder, "--num-responses", "4")
    path = folder / "out" / "rater-1.xlsx"
    given_by = {"주문": ("예", "예", None), "쟁점 1": ("예", "아니오", "애매하다"), "쟁점 1.2": ("아니오", None, None)}
    fill(path, lambda _, name: given_by.get(name, (" 아니오 ", "아니오", None)))
    sheet_marks = read_rater(str(path), {}).marks
    assert main(["import", str(path)]) == 0
    assert "16 of 16 issues marked" in capsys.readouterr().out
    found = read_rater(str(folder / "out" / "rater-1"), {})
    assert found.name == "rater-1"
    assert found.marks == sheet_marks
    assert {item.generator for item in found.marks} == {"secret-a", "secret-b"}
    for marks in found.marks.values():
        assert marks == {"": RIGHT, "1": Judgment(True, False, "애매하다"), "1.2": ABSENT, "1.10": ABSENT}
    assert set(found.stored_scores.values()) == {5 + 2 / 3}


def test_every_blank_or_impossible_cell_is_named_and_the_others_are_kept(folder, capsys):
    export(folder, "--num-responses", "1")
    path = folder / "out" / "rater-2.xlsx"
    bad = {
        "주문": ("예", None, "모르겠다"),
        "쟁점 1": ("아니오", "예", None),
        "쟁점 1.2": ("맞음", "예", None),
        "쟁점 1.10": ("예", "예", None),
    }
    fill(path, lambda _, name: bad.get(name))
    assert main(["import", str(path)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert "R001!F" in lines[0]
    assert "주문: unanswered (comment: 모르겠다)" in lines[0]
    assert "쟁점 1: impossible" in lines[1]
    assert "쟁점 1.2: impossible: '맞음'" in lines[2]
    (marks,) = read_rater(str(folder / "out" / "rater-2"), {}).marks.values()
    assert marks == {"": None, "1": None, "1.2": None, "1.10": RIGHT}


def test_a_later_import_adds_and_never_overwrites(folder, capsys):
    export(folder, "--num-responses", "1")
    path = folder / "out" / "rater-1.xlsx"
    fill(path, lambda _, name: ("예", "예", None) if name in ("주문", "쟁점 1") else None)
    main(["import", str(path)])
    fill(path, lambda _, name: ("예", "아니오", None) if name != "주문" else (None, None, None))
    capsys.readouterr()
    assert main(["import", str(path)]) == 1
    assert "issue '1': contradicts an earlier import; the earlier one is kept" in capsys.readouterr().err
    kept = {"": RIGHT, "1": RIGHT, "1.2": WRONG, "1.10": WRONG}
    assert list(read_rater(str(folder / "out" / "rater-1"), {}).marks.values()) == [kept]
    main(["import", str(path), "--replace"])
    assert list(read_rater(str(folder / "out" / "rater-1"), {}).marks.values()) == [kept | {"1": WRONG}]
    assert not (folder / "out" / "rater-2").exists()


def test_an_import_of_some_sheets_keeps_the_others(exported):
    path = exported / "out" / "rater-1.xlsx"
    fill(path, lambda _, __: ("예", "예", None))
    main(["import", str(path)])
    before = read_rater(str(exported / "out" / "rater-1"), {}).marks
    book = load_workbook(path)
    for name in book.sheetnames[3:]:
        del book[name]
    book.save(path)
    main(["import", str(path)])
    assert read_rater(str(exported / "out" / "rater-1"), {}).marks == before


def test_an_import_goes_on_with_grades_whose_texts_have_line_separators_and_whose_end_is_cut_off(exported):
    path = exported / "out" / "rater-1.xlsx"
    fill(path, lambda _, __: ("예", "예", None))
    main(["import", str(path)])
    before = read_rater(str(exported / "out" / "rater-1"), {}).marks
    for file in (exported / "out" / "rater-1").rglob("grades.jsonl"):
        records = [json.loads(line) | {"response": "가\u2028나"} for line in file.read_bytes().splitlines()]
        lines = [json.dumps(record, ensure_ascii=False) for record in records]
        file.write_text("\n".join([*lines, '{"doc_id": "사']), encoding="utf-8")
    book = load_workbook(path)
    for name in book.sheetnames[3:]:
        del book[name]
    book.save(path)
    assert main(["import", str(path)]) == 0
    assert read_rater(str(exported / "out" / "rater-1"), {}).marks == before


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda path: path.write_bytes(b"no workbook"), "no annotation workbook"),
        (lambda path: path.with_name("key.json").unlink(), "key.json"),
        (lambda path: edit_cell(path, "B3", "0123456789ab"), "of export '0123456789ab', the key of export"),
        (lambda path: edit_cell(path, "B3", None), "rater-1.xlsx: the sheet 안내 was changed: B2 says 'rater-1'"),
        (lambda path: edit_cell(path, "B2", "홍길동"), "B2 says '홍길동', it must name the rater (rater-1, rater-2)"),
        (lambda path: rename_guide(path), "the sheet 안내, which names the rater, is gone"),
    ],
    ids=["damaged", "no key", "another export", "no export", "a rater nobody knows", "no guide"],
)
def test_a_workbook_that_does_not_belong_is_refused(exported, capsys, spoil, problem):
    path = exported / "out" / "rater-1.xlsx"
    spoil(path)
    assert main(["import", str(path)]) == 2
    assert problem in capsys.readouterr().err
    assert not (exported / "out" / "rater-1").exists()


def edit_cell(path, cell, value) -> None:
    book = load_workbook(path)
    book["안내"][cell] = value
    book.save(path)


def rename_guide(path) -> None:
    book = load_workbook(path)
    book["안내"].title = "표지"
    book.save(path)


def test_filled_in_workbooks_are_never_exported_over(exported, capsys):
    before = (exported / "out" / "rater-1.xlsx").read_bytes()
    assert export(exported) == 2
    assert "may be filled in" in capsys.readouterr().err
    assert (exported / "out" / "rater-1.xlsx").read_bytes() == before


def test_responses_that_are_given_twice_are_not_exported_twice(folder, capsys):
    file = str(folder / "secret-a.jsonl")
    options = ["--cases", str(folder / "cases.jsonl"), "--responses", file, file, "--out", str(folder / "out")]
    assert main(["export", *options]) == 2
    assert f"{file} is given twice: give each once" in capsys.readouterr().err
    assert not (folder / "out").exists()


def pairs(num_cases: int, generators=("a", "b")) -> list[tuple[Case, Response]]:
    issues = tuple(Issue(id, "쟁점", (Claim("원고", "주장"),), "인정") for id in ("", "1"))
    cases = [Case(f"c{n}", "q", issues, difficulty=("easy", "medium", "hard")[n % 3]) for n in range(num_cases)]
    return [(case, Response(case.id, "답", generator)) for case in cases for generator in generators]


def strata(chosen) -> Counter:
    return Counter((case.difficulty, response.model) for case, response in chosen)


def test_a_choice_is_balanced_and_spread_over_cases():
    chosen = choose(pairs(30), 24, seed=1)
    assert set(strata(chosen).values()) == {4}
    assert len({case.id for case, _ in chosen}) == 24
    assert chosen == choose(pairs(30)[::-1], 24, seed=1) != choose(pairs(30), 24, seed=2)


@pytest.mark.parametrize("overlap", [0.0, 0.25, 1.0])
def test_raters_share_the_overlap_and_divide_the_rest_evenly(overlap):
    chosen = choose(pairs(30), 48, seed=1)
    first, second = assign(chosen, 2, overlap, seed=1)
    assert len(set(first) & set(second)) == round(overlap * 48)
    assert set(first) | set(second) == set(range(48))
    assert abs(len(first) - len(second)) <= 1
    for share in (first, second):
        counts = strata(chosen[place] for place in share)
        assert max(counts.values()) - min(counts.values()) <= 1
    assert overlap == 0 or first[:6] != second[:6]  # an order of its own


def test_merging_keeps_what_only_one_has():
    merged, contradicting = merge({"": RIGHT, "1": None}, {"": None, "1": WRONG}, replace=False)
    assert (merged, contradicting) == ({"": RIGHT, "1": WRONG}, [])
    commented = Judgment(True, True, "의견")
    assert merge({"": RIGHT}, {"": commented}, replace=False) == ({"": commented}, [])
    assert merge({"": commented}, {"": RIGHT}, replace=False) == ({"": commented}, [])


def test_labels_tell_issues_apart():
    assert [label(id) for id in ("", "1", "1.10")] == ["주문", "쟁점 1", "쟁점 1.10"]
