"""A data set has no dispute on two sides of a split, and says what is in it."""

import json
import random
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from data.cases import Case, Claim, Issue
from data.loading import load_cases, to_record
from data.prepare import PrepareError, describe, families, main, split_cases

SAMPLES = sorted((Path(__file__).parents[1] / "data" / "samples").glob("*.jsonl"))


def case(doc_id: str, num_issues: int = 3, question: str = "", **extra) -> Case:
    rng = random.Random(doc_id)
    words = question or " ".join("".join(rng.choices("가나다라마바사아자차카타파하", k=4)) for _ in range(60))
    issues = [Issue("", "", (Claim("원고", "지급하라"),), "기각한다.")]
    issues += [Issue(str(n), f"쟁점 {n}", (), "그렇다.", ("민법 제1조",)) for n in range(1, num_issues)]
    return Case(doc_id, words, tuple(issues), extra=extra)


def write(path, cases):
    path.write_text("".join(json.dumps(to_record(c), ensure_ascii=False) + "\n" for c in cases), encoding="utf-8")
    return str(path)


def told(issue: Issue) -> str:
    """The claims as the lines that a verl row has; where one ends, some lists of claimers leave open."""
    return "\n".join(f"{claim.claimer}: {claim.content}" for claim in issue.claims)


def ids(cases) -> list[str]:
    return [case.id for case in cases]


def test_nearly_the_same_question_and_a_shared_case_number_make_a_family():
    first = case("법원-2020가합1", case_numbers=["2020가합1"])
    appeal = case("법원-2021나2", case_numbers=["2021나2", "2020가합1"])
    copy = case("다른 법원-2020가합9", question=first.question + " 끝")
    alone = case("법원-2020가합3")
    found = {frozenset(ids(family)) for family in families([first, alone, appeal, copy])}
    assert found == {frozenset({first.id, appeal.id, copy.id}), frozenset({alone.id})}


def test_the_test_set_has_so_many_of_each_difficulty_and_families_stay_together():
    cases = [case(f"e{n}", 3) for n in range(30)] + [case(f"m{n}", 6) for n in range(30)]
    cases += [case(f"h{n}", 12, case_numbers=[f"family {n // 3}"]) for n in range(30)]
    splits = split_cases(cases, {"easy": 5, "medium": 4, "hard": 6}, valid_frac=0.2, seed=1)
    assert Counter(name[0] for name in ids(splits["test"])) == {"e": 5, "m": 4, "h": 6}
    assert sum(map(len, splits.values())) == 90
    assert len(splits["valid"]) == 15
    where = {name: split for split, part in splits.items() for name in ids(part)}
    assert all(len({where[f"h{n}"] for n in range(start, start + 3)}) == 1 for start in range(0, 30, 3))


def test_the_split_depends_on_the_seed_and_not_on_the_order_of_the_source():
    cases = [case(f"c{n}") for n in range(40)]
    sizes = {"easy": 10, "medium": 0, "hard": 0}
    one = split_cases(cases, sizes, 0.0, seed=1)
    assert ids(split_cases(cases[::-1], sizes, 0.0, seed=1)["test"]) == ids(one["test"])
    assert set(ids(split_cases(cases, sizes, 0.0, seed=2)["test"])) != set(ids(one["test"]))


def test_a_test_set_that_cannot_be_is_an_error_that_says_what_is_there():
    with pytest.raises(PrepareError, match=r"lacks \{'hard': 3\}: of 5 cases \{'easy': 5\} are there"):
        split_cases([case(f"c{n}") for n in range(5)], {"easy": 1, "medium": 0, "hard": 3}, 0.0, 0)


def test_figures_are_means_and_maxima():
    figures = describe([case("a", 3), case("b", 9)], count_tokens=len)
    assert figures["num_cases"] == 2
    assert (figures["num_easy"], figures["num_medium"], figures["num_hard"]) == (1, 0, 1)
    assert (figures["issues/mean"], figures["issues/max"]) == (6.0, 9)
    assert (figures["depth/mean"], figures["laws/mean"], figures["claims/max"]) == (1.0, 5.0, 0)
    assert figures["question_tokens/max"] == figures["question_chars/max"]


def test_the_samples_become_a_data_set_that_loads_again(tmp_path, capsys):
    out = tmp_path / "set"
    options = ["--out", str(out), "--test-sizes", "2", "2", "2", "--valid-frac", "0.2", "--verl"]
    assert main([*map(str, SAMPLES), *options, "--json", str(tmp_path / "figures.json")]) == 0
    whole = {case.id: case for path in SAMPLES for case in load_cases(path)}
    loaded = {split: load_cases(out / f"{split}.jsonl") for split in ("train", "valid", "test")}
    assert {name: len(cases) for name, cases in loaded.items()} == {"train": 24, "valid": 6, "test": 6}
    assert {case.id: case for cases in loaded.values() for case in cases} == whole
    for split, cases in loaded.items():
        table = load_cases(out / f"{split}.parquet")
        assert [(case.id, case.question, case.issues, case.difficulty) for case in table] == [
            (case.id, case.question, case.issues, case.difficulty) for case in cases
        ]
        assert [case.language for case in table] == [case.language for case in cases]
        for row, case in zip(load_cases(out / "verl" / f"{split}.parquet"), cases, strict=True):
            assert (row.id, row.question, row.answer, row.has_tree) == (case.id, case.question, case.answer, False)
            assert row.language == case.language
            assert [i.conclusion for i in row.issues] == [i.conclusion for i in case.issues]
            assert [told(issue) for issue in row.issues] == [told(issue) for issue in case.issues]
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["test/num_hard"] == 2
    assert figures == json.loads((out / "statistics.json").read_text())
    assert (out / "statistics.png").read_bytes().startswith(b"\x89PNG")
    card = (out / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlanguage:\n- en\n- ja\n- ko\n")
    assert "  - split: valid\n    path: valid.parquet\n" in card
    assert "| num_cases | 24 | 6 | 6 |" in card
    assert "num_cases" in capsys.readouterr().out


def test_too_few_cases_no_file_and_one_file_twice_are_one_message(tmp_path, capsys):
    path = write(tmp_path / "a.jsonl", [case("a")])
    assert main([path, "--out", str(tmp_path / "set")]) == 2
    assert "ask for fewer with --test-sizes" in capsys.readouterr().err
    assert main([str(tmp_path / "b.jsonl"), "--out", str(tmp_path / "set")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main([path, path, "--out", str(tmp_path / "set"), "--test-sizes", "0", "0", "0"]) == 2
    assert f"{path} is given twice" in capsys.readouterr().err


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as an upload needs."""

    requests: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.requests.append((self.path, body))
        reply: dict = {}
        if self.path.endswith("/create"):
            reply = {"url": f"http://{self.headers['Host']}/datasets/me/set", "id": "me/set"}
        elif "/preupload/" in self.path:
            names = [file["path"] for file in json.loads(body)["files"]]
            reply = {"files": [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]}
        elif "/commit/" in self.path:
            reply = {
                "commitUrl": f"http://{self.headers['Host']}/datasets/me/set/commit/1",
                "commitOid": "1",
                "pullRequestUrl": None,
            }
        self._reply(reply)

    def do_GET(self) -> None:
        self.requests.append((self.path, b""))
        self._reply({"id": "me/set", "sha": "0", "siblings": []})

    def _reply(self, reply: dict) -> None:
        content = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.slow
def test_pushing_uploads_the_folder_and_nothing_is_pushed_unasked(tmp_path):
    path = write(tmp_path / "a.jsonl", [case(f"c{n}") for n in range(4)])
    Hub.requests = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    script = Path(__file__).parents[1] / "data" / "prepare.py"
    command = [sys.executable, str(script), path, "--out", str(tmp_path / "set"), "--test-sizes", "1", "0", "0"]
    environment = {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_TOKEN": "hf_x", "PATH": "/usr/bin:/bin"}
    environment |= {"HOME": str(tmp_path), "HF_HUB_DISABLE_XET": "1"}
    subprocess.run(command, check=True, env=environment, capture_output=True)
    assert Hub.requests == []
    pushed = subprocess.run([*command, "--push-to-hub", "me/set"], env=environment, capture_output=True, text=True)
    assert pushed.returncode == 0, pushed.stderr[-3000:]
    server.shutdown()
    created = json.loads(next(body for path, body in Hub.requests if path.endswith("/create")))
    assert created["visibility"] == "private"
    commit = next(body for path, body in Hub.requests if "/datasets/me/set/commit/" in path)
    uploaded = {json.loads(line)["value"]["path"] for line in commit.splitlines()[1:]}
    assert {"README.md", "train.parquet", "train.jsonl", "test.parquet"} <= uploaded
