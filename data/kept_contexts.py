"""The file of what was retrieved for cases: a line that says how, then one a case with the ids of its laws."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from data.jsonl import JsonlError, read_jsonl, write_text
from data.law import Corpus, Document, LawError


def write_contexts(path: Path, about: Mapping[str, Any], found: Mapping[str, Sequence[Document]]) -> None:
    """Keep the documents of each case, by case id; `about` has the corpus's stamp."""
    lines = ({"doc_id": id, "laws": [document.id for document in of_case]} for id, of_case in found.items())
    write_text(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in (about, *lines)))


def read_contexts(path: Path, corpus: Corpus, case_ids: Sequence[str]) -> dict[str, list[Document]]:
    """The documents of each of the cases.

    Raises:
        LawError: the file is of another corpus or damaged; names line, case and key.
    """
    by_id = {document.id: document for document in corpus.documents}
    laws: dict[str, list[Document]] = {}
    try:
        lines = read_jsonl(path)
        line, about = next(lines, (1, {}))
        if about.get("stamp") != corpus.stamp:
            raise JsonlError(path, line, f'"stamp" is {about.get("stamp")!r}, of another corpus than {corpus.stamp!r}')
        for line, row in lines:
            case_id, documents = _read(path, line, row, by_id)
            if case_id in laws:
                raise JsonlError(path, line, f"case {case_id!r} stands there twice")
            laws[case_id] = documents
        if lost := [case_id for case_id in case_ids if case_id not in laws]:
            raise JsonlError(path, line + 1, f"case {lost[0]!r} has no line: the file ends too early")
    except JsonlError as error:
        raise LawError(f"{error}. The file is of no use: delete it, it is made anew") from error
    return {case_id: laws[case_id] for case_id in case_ids}


def _read(path: Path, line: int, row: Mapping[str, Any], by_id: Mapping[str, Document]) -> tuple[str, list[Document]]:
    case_id, ids = row.get("doc_id"), row.get("laws")
    if not isinstance(case_id, str):
        raise JsonlError(path, line, f'"doc_id" must be the id of a case, got {_shown(case_id)}')
    if not isinstance(ids, list):
        raise JsonlError(path, line, f'case {case_id!r}: "laws" must be a list, got {_shown(ids)}')
    if strange := [id for id in ids if not isinstance(id, str) or id not in by_id]:
        raise JsonlError(path, line, f'case {case_id!r}: "laws" has {_shown(strange[0])}, which the corpus has not')
    return case_id, [by_id[id] for id in ids]


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:40]
