"""An annotation workbook: what a rater reads and fills in, written and read back; knows nothing of who wrote what.

All text of responses and cases is untrusted. It is written as text that no spreadsheet evaluates, without characters
that XML cannot hold, and in pieces that a cell can hold and a screen can show.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

from data.cases import ROOT_ID, Case, Issue
from data.command import InputError
from data.visible import visible
from eval.cell_text import num_lines_of, split_text, storable

if TYPE_CHECKING:
    from openpyxl.cell.cell import Cell
    from openpyxl.worksheet.datavalidation import DataValidation
    from openpyxl.worksheet.worksheet import Worksheet

YES, NO = "예", "아니오"
GUIDE = "안내"
DONE = "완료"
RATER_CELL, EXPORT_CELL = "B2", "B3"
LABELS = ("", "쟁점", "당사자의 주장", "법원의 결론", "1. 판단하였는가", "2. 결론이 같은가", "의견", "진행")
WIDTHS = (10, 34, 42, 42, 12, 12, 34, 8)
CONTAINS, CORRECT, COMMENT, STATUS = "E", "F", "G", "H"
COLUMNS = "ABCDEFGH"
GUIDE_WIDTH = 14
FONT = "맑은 고딕"
LINE_POINTS = 17


@dataclass(frozen=True, slots=True)
class Row:
    """What a rater filled in on one issue, as it stands in the sheet, and the number of its row."""

    contains: str
    correct: str
    comment: str
    number: int


@dataclass(frozen=True, slots=True)
class Returned:
    """A workbook as it came back: sheet name -> label of an issue -> what was filled in."""

    path: Path
    rater: str
    export: str
    sheets: Mapping[str, Mapping[str, Row]]


def label(issue_id: str) -> str:
    """What a rater sees in place of an issue's id.

    >>> label(""), label("1.2")
    ('주문', '쟁점 1.2')
    """
    return "주문" if issue_id == ROOT_ID else f"쟁점 {issue_id}"


def write_workbook(path: Path, rater: str, export: str, guide: str, responses: Sequence[tuple[str, Case, str]]) -> None:
    """Write one rater's workbook of (sheet name, case, answer).

    Raises:
        FileExistsError: there is one already, which may be filled in.
    """
    from openpyxl import Workbook
    from openpyxl.workbook.protection import WorkbookProtection

    if path.exists():
        raise FileExistsError(f"{path} exists and may be filled in; export to another folder")
    book = Workbook()
    book.remove(book.worksheets[0])
    front = book.create_sheet(GUIDE)
    book.security = WorkbookProtection(lockStructure=True)
    totals = {}
    for name, case, answer in responses:
        totals[name] = _write_response(book.create_sheet(name), name, case, answer)
    _write_guide(front, rater, export, guide, totals)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.tmp")
    book.save(beside)
    beside.replace(path)


def read_workbook(path: Path) -> Returned:
    """What a rater filled in.

    Raises:
        InputError: the file is no workbook of ours.
    """
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(path)
    except (InvalidFileException, BadZipFile, KeyError, ValueError) as error:
        raise InputError(f"{path} is no annotation workbook (.xlsx) of ours: {error}") from error
    if GUIDE not in book.sheetnames:
        raise InputError(
            f"{path}: the sheet {GUIDE}, which names the rater, is gone: copy it from the workbook that was exported; "
            f"there are {', '.join(book.sheetnames[:9])}"
        )
    front = book[GUIDE]
    sheets = {
        sheet.title: {
            _text(row[0].value): Row(_text(row[4].value), _text(row[5].value), _text(row[6].value), number)
            for number, row in enumerate(sheet.iter_rows(min_row=2, max_col=len(LABELS)), start=2)
            if _text(row[0].value).startswith(("쟁점", "주문"))
        }
        for sheet in book.worksheets
        if sheet.title != GUIDE
    }
    return Returned(path, _text(front[RATER_CELL].value), _text(front[EXPORT_CELL].value), sheets)


def _write_response(sheet: "Worksheet", name: str, case: Case, answer: str) -> int:
    """Fill a response's sheet; returns the number of its issues."""
    from openpyxl.worksheet.datavalidation import DataValidation

    issues = sorted(case.issues, key=lambda issue: [int(n) for n in issue.id.split(".")] if issue.id else [0])
    choice = DataValidation(type="list", formula1=f'"{YES},{NO}"', allow_blank=True, showErrorMessage=True)
    choice.error, choice.errorTitle = f"'{YES}' 또는 '{NO}'만 고를 수 있습니다.", "입력 오류"
    sheet.add_data_validation(choice)
    for column, width in zip(COLUMNS, WIDTHS, strict=True):
        sheet.column_dimensions[column].width = width
    put(sheet["A1"], name, bold=True)
    sheet["B1"] = f'="진행: "&COUNTIF(H:H,"{DONE}")&" / {len(issues)}"'
    sheet["B1"].hyperlink = f"#'{GUIDE}'!A1"
    sheet.freeze_panes = "A2"
    at = _write_text(sheet, 2, "답안", "채점할 답안", visible(answer))
    at = _write_bar(sheet, at, LABELS)
    for issue in issues:
        at = _write_issue(sheet, at, issue, choice)
    _write_text(sheet, at, "사건", "사건의 내용", visible(case.question))
    _lock(sheet)
    return len(issues)


def _write_issue(sheet: "Worksheet", at: int, issue: Issue, choice: "DataValidation") -> int:
    """Fill an issue's rows, of which the first takes the marks; returns the row behind them."""
    from openpyxl.styles import Alignment, Border, PatternFill, Protection, Side

    claims = "\n".join(f"{claim.claimer}: {claim.content}" for claim in issue.claims)
    summary = "최종 주문 (사건 전체에 대한 결론)" if issue.id == ROOT_ID else issue.summary
    texts = (summary, claims, issue.conclusion)
    columns = [split_text(visible(text), width - 2) for text, width in zip(texts, WIDTHS[1:4], strict=True)]
    for place in range(max(map(len, columns))):
        pieces = [pieces[place] if place < len(pieces) else "" for pieces in columns]
        for column, piece in zip("BCD", pieces, strict=True):
            put(sheet[f"{column}{at + place}"], piece)
        heights = [_height(piece, width - 2) for piece, width in zip(pieces, WIDTHS[1:4], strict=True)]
        sheet.row_dimensions[at + place].height = max(heights)
    put(sheet[f"A{at}"], label(issue.id))
    contains, correct = f"{CONTAINS}{at}", f"{CORRECT}{at}"
    for cell in (contains, correct, f"{COMMENT}{at}"):
        sheet[cell].protection = Protection(locked=False)
        sheet[cell].fill = PatternFill("solid", fgColor="FFF8DC")
        sheet[cell].alignment = Alignment(wrap_text=True, vertical="top")
    choice.add(f"{contains}:{correct}")
    for column in COLUMNS:
        sheet[f"{column}{at}"].border = Border(top=Side("thin", color="BFBFBF"))
    sheet[f"{STATUS}{at}"].alignment = Alignment(vertical="top")
    sheet[f"{STATUS}{at}"] = f'=IF(OR({contains}="{NO}",AND({contains}="{YES}",{correct}<>"")),"{DONE}","")'
    return at + max(map(len, columns))


def _write_text(sheet: "Worksheet", at: int, name: str, title: str, text: str) -> int:
    """A bar with a title and the text below it, over the whole width; returns the row behind them."""
    at = _write_bar(sheet, at, (name, title))
    width = sum(WIDTHS[1:]) - 4
    for piece in split_text(text, width):
        put(sheet[f"B{at}"], piece)
        sheet.merge_cells(f"B{at}:{STATUS}{at}")
        sheet.row_dimensions[at].height = _height(piece, width)
        at += 1
    return at


def _write_bar(sheet: "Worksheet", at: int, titles: Sequence[str]) -> int:
    from openpyxl.styles import PatternFill

    for column, title in zip_longest(COLUMNS, titles, fillvalue=""):
        put(sheet[f"{column}{at}"], title, bold=True)
        sheet[f"{column}{at}"].fill = PatternFill("solid", fgColor="D9E2F3")
    sheet.row_dimensions[at].height = 2 * LINE_POINTS
    return at + 1


def _write_guide(sheet: "Worksheet", rater: str, export: str, guide: str, totals: Mapping[str, int]) -> None:
    for column in COLUMNS:
        sheet.column_dimensions[column].width = GUIDE_WIDTH
    put(sheet["A1"], "답안 평가", bold=True)
    for row, (name, value) in enumerate((("평가자", rater), ("자료 번호", export)), start=2):
        put(sheet[f"A{row}"], name)
        put(sheet[f"B{row}"], value)
    at = 5
    for line in guide.splitlines():
        put(sheet[f"A{at}"], line.removeprefix("# "), bold=line.startswith("# "))
        sheet.merge_cells(f"A{at}:{COLUMNS[-1]}{at}")
        sheet.row_dimensions[at].height = _height(line, len(COLUMNS) * GUIDE_WIDTH - 4)
        at += 1
    at = first = _write_bar(sheet, at + 1, ("응답", "끝난 쟁점", "전체 쟁점"))
    for name, total in totals.items():
        put(sheet[f"A{at}"], name)
        sheet[f"A{at}"].hyperlink = f"#'{name}'!A1"
        sheet[f"B{at}"] = f"=COUNTIF('{name}'!{STATUS}:{STATUS},\"{DONE}\")"
        sheet[f"C{at}"] = total
        at += 1
    put(sheet[f"A{at}"], "합계", bold=True)
    sheet[f"B{at}"] = f"=SUM(B{first}:B{at - 1})"
    sheet[f"C{at}"] = sum(totals.values())
    _lock(sheet)


def put(cell: "Cell", text: str, *, bold: bool = False) -> None:
    """Write a text into a cell as text: never a formula, whatever it begins with, nor an escape of the file format."""
    from openpyxl.styles import Alignment, Font

    cell.value = storable(text)
    cell.data_type = "s"  # what begins with "=" was taken for a formula
    cell.quotePrefix = True  # stays text when it is edited, or saved in another format
    cell.alignment = Alignment(wrap_text=True, vertical="top")
    cell.font = Font(name=FONT, size=10, bold=bold)


def _height(text: str, width: int) -> float:
    """Points that the text's lines take."""
    return num_lines_of(text, width) * LINE_POINTS + 4


def _lock(sheet: "Worksheet") -> None:
    """Only unlocked cells can be filled in; columns and rows can be made wider; a page takes the whole width."""
    from openpyxl.worksheet.properties import PageSetupProperties

    sheet.protection.sheet = True
    sheet.protection.formatColumns = sheet.protection.formatRows = False
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)


def _text(value: object) -> str:
    return "" if value is None else unicodedata.normalize("NFC", str(value)).strip()
