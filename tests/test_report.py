"""The report: what the file holds, and what a browser makes of it."""

import base64
import gzip
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from simulated_run import write_simulated_run

from data.jsonl import read_jsonl, write_jsonl
from eval.graded import GradedSet, Inputs, read_inputs
from eval.phases import MEANING, PHASES
from eval.report import _home, column_axis, flat_figures, main, packed, render_page
from eval.report_data import analyse, most_changed
from eval.tables import Change, Sheet
from eval.tallies import Estimate

SECONDS = (6.0, 1.5, 0.3, 4.2, 0.0, 0.0)  # of each step, in the order of PHASES: 12, half of it to generate
HOSTILE = "</script><script>window.caught = 1</script><img src=x onerror='window.caught = 2'> {{ 7 * 7 }} \ud83d"


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """A simulated run; on one case the last checkpoint writes what would break a careless page."""
    path = write_simulated_run(tmp_path_factory.mktemp("report") / "run", num_cases=24)
    grades = path / "eval/checkpoint-100/greedy/grades.jsonl"
    record, *others = (record for _, record in read_jsonl(grades))
    record["response"] = f"<think>{HOSTILE}</think>{HOSTILE}"
    record["evaluation_result"][""]["rationales"] = HOSTILE
    write_jsonl(grades, [record, *others])
    times = {f"time/{phase}_s": seconds for phase, seconds in zip(PHASES, SECONDS, strict=True)}
    write_jsonl(path / "metrics.jsonl", [{"step": step, "loss": 0.1, **times} for step in range(1, 101)])
    return path


@pytest.fixture(scope="module")
def analysis(run_dir):
    return analyse(read_inputs([str(run_dir)], None))


@pytest.fixture(scope="module")
def page(run_dir):
    assert main([str(run_dir), "--title", "simulated & run"]) == 0
    return run_dir / "eval" / "report.html"


def unpack(html: str, name: str) -> str:
    match = re.search(rf'id="{name}">([A-Za-z0-9+/=]+)</script>', html)
    return gzip.decompress(base64.b64decode(match[1])).decode("utf-8")


def test_the_page_holds_everything_and_asks_for_nothing(page):
    html = page.read_text(encoding="utf-8")
    assert "<h1>simulated &amp; run</h1>" in html
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", html)
    assert "vegaEmbed" in unpack(html, "vega")
    data = json.loads(unpack(html, "data"))
    assert [graded["step"] for graded in data["sets"]] == [0, 20, 40, 60, 80, 100]
    assert len(data["cases"]) == len(data["answers"]) == 24
    assert all(len(samples) == 1 for case in data["answers"] for samples in case)


def test_what_a_policy_wrote_stands_only_in_the_packed_data(page):
    html = page.read_text(encoding="utf-8")
    assert "window.caught" not in html
    (answer,) = json.loads(unpack(html, "data"))["answers"][0][-1]
    said = HOSTILE.replace("\ud83d", "?")
    assert answer["text"] == said
    assert answer["thinking"] == f"<think>{said}</think>"
    assert answer["verdicts"][0][2] == said


def test_its_tables_say_what_the_figures_say(page, analysis):
    html, figures = page.read_text(encoding="utf-8"), flat_figures(analysis)
    for name in ("base", "checkpoint-100"):
        assert f"<b>{figures[f'{name}/mean/score']:.2f}</b>" in html
    assert f"<b>{figures['checkpoint-100/diff/coverage']:+.2f}</b>".replace("-", "−") in html
    assert re.search(r'<span class="\w+">\s*correctness (rose|fell|did not clearly change)', html)
    assert figures["base/by/depth/1/coverage"] is not None
    assert figures["base/outcome/right"] is not None
    (first, *_), _ = most_changed(analysis.comparisons[-1])
    links = [parse_qs(link) for link in re.findall(r'href="#(case=[^"]+)"', html.replace("&amp;", "&"))]
    assert links[0] == {"case": [first.case_id], "set": ["checkpoint-100"]}


def test_the_time_of_the_run_is_shown_where_its_log_is(run_dir, page, tmp_path):
    html = page.read_text(encoding="utf-8")
    assert re.findall(r"</i>(\w+) ([\d.]+) %", html) == [
        ("generate", "50.0"),
        ("judge", "12.5"),
        ("sync", "2.5"),
        ("learn", "35.0"),
        ("evaluate", "0.0"),
        ("save", "0.0"),
    ]
    assert MEANING in html
    assert "1,200 s in steps 1 to 100" in html
    bars = json.loads(unpack(html, "data"))["bars"]
    assert [bars[0], bars[-1]] == [
        {"first": 1, "last": 3, "seconds": [*SECONDS]},
        {"first": 100, "last": 100, "seconds": [*SECONDS]},
    ]
    grades = shutil.copytree(run_dir / "eval/base/greedy", tmp_path / "grades")
    of_none = ["--cases", str(run_dir / "simulated_test.jsonl"), "--out", str(tmp_path / "report.html")]
    for other in ([], [str(run_dir / "eval/checkpoint-20/greedy")]):
        assert main([str(grades), *other, *of_none]) == 0
        html = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert 'id="phase-chart"' not in html
        assert MEANING not in html


def test_a_single_set_has_no_changes(run_dir, tmp_path):
    inputs = read_inputs([f"only={run_dir}/eval/base/greedy"], None)
    html = render_page(analyse(inputs), "one")
    assert "Most changed" not in html
    assert 'max="0"' in html


@pytest.mark.slow
def test_tables_and_pictures_for_a_paper(run_dir, tmp_path):
    arguments = ["--out", tmp_path / "r.html", "--latex", tmp_path / "t.tex", "--pictures", tmp_path / "p"]
    assert main([str(run_dir), *map(str, arguments), "--json", str(tmp_path / "f.json")]) == 0
    latex = (tmp_path / "t.tex").read_text(encoding="utf-8")
    labels = re.findall(r"\\label\{tab:([\w-]+)\}", latex)
    assert labels[:3] == ["headline", "comparison", "outcomes"]
    assert {"last-by-difficulty", "last-by-depth", "last-parents", "last-origins"} <= set(labels)
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == [
        "curves.png",
        "curves.svg",
        "heat_map.png",
        "heat_map.svg",
        "phases.png",
        "phases.svg",
    ]
    assert "checkpoint-40/parent/children/all right" in json.loads((tmp_path / "f.json").read_text(encoding="utf-8"))


def test_other_judges_are_no_page(run_dir, tmp_path, capsys):
    folder = shutil.copytree(run_dir / "eval/base/greedy", tmp_path / "other")
    (folder / "grades.meta.json").write_text('{"judge": "endpoint"}')
    cases = str(run_dir / "simulated_test.jsonl")
    assert main([f"{run_dir}/eval/base/greedy", f"other={folder}", "--cases", cases, "--out", str(tmp_path / "r")]) == 2
    assert "not judged alike" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_grades_with_few_folders_above_them_are_no_runs():
    for path, home in (("/g", ("/", "")), ("/set/g", ("/set", "set")), ("/run/eval/base/t1/g", ("/run/eval", "run"))):
        folder, name = _home(Inputs((GradedSet("a", Path(path), None, {}, {}),), {}, ""))
        assert (str(folder), name) == home


def test_packing_is_the_same_for_the_same_content():
    assert packed(HOSTILE) == packed(HOSTILE)
    assert "<" not in packed(HOSTILE)


def test_axes_span_their_column_and_differences_show_zero():
    up = Change(Estimate(2, 1, 3))
    sheet = Sheet("s", "t", ("", "a", "b", "c"), (("x", Estimate(0.5, 0.25, 1), up, None), ("y", None, None, 3)))
    assert [column_axis(sheet, column) for column in range(4)] == [(0, 1), (0.25, 1), (0, 3), (0, 1)]
    level = Sheet("s", "t", ("a",), ((Estimate(1, 1, 1),),))
    assert column_axis(level, 0) == (0.5, 1.5)


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium of the system; CI, which is root there, installs it."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None and os.environ.get("CI") == "true":
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium", "fonts-nanum"]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"no chromium, and {' '.join(command)} failed: {done.stderr[-300:]}")
        found = shutil.which("chromium")
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(names)} is installed (Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser, page):
    """Opens the page at a width, with a place in it; at the end nothing may have complained or gone to the network."""
    complaints = []
    contexts = []

    def open_page(place="", width=1440, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on(
            "request",
            lambda request: (
                complaints.append(request.url) if request.url[:5] not in ("file:", "data:", "blob:") else None
            ),
        )
        tab.goto(f"file://{page}{place}")
        tab.wait_for_selector("html[data-ready]")
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def first_case(tab) -> str:
    return tab.locator("#case h3").inner_text()


@pytest.mark.slow
def test_it_opens_with_charts_cases_and_tree(opened):
    tab = opened()
    assert tab.locator(".panels svg").count() == 4
    assert tab.locator("#path-chart svg").count() == tab.locator("#outcome-chart svg").count() == 1
    assert tab.locator("#phase-chart svg .mark-rect path").count() == 34 * len(PHASES)  # 100 steps, three a bar
    assert tab.locator("#list li").count() == 24
    assert tab.locator("#set-name").inner_text() == "checkpoint-100"
    assert tab.locator(".tree .issue").count() >= 3
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tab.evaluate("window.caught") is None
    assert "window.caught = 1" in tab.locator(".answer").inner_text()
    assert "window.caught = 1" in tab.locator(".rationale").first.inner_text()


@pytest.mark.slow
def test_the_slider_goes_through_the_checkpoints(opened):
    tab = opened()
    after = tab.locator(".answer .chip").first.inner_text()
    tab.locator("#set").fill("0")
    assert tab.locator("#set-name").inner_text() == "base"
    assert tab.locator(".strip [aria-pressed=true]").inner_text().startswith("base")
    assert tab.locator(".for-set[data-set='0']").first.is_visible()
    assert not tab.locator(".for-set[data-set='5']").first.is_visible()
    tab.locator("#set").evaluate("slider => slider.blur()")
    for _ in range(7):  # two more than there are
        tab.keyboard.press("ArrowRight")
    assert tab.locator("#set-name").inner_text() == "checkpoint-100"
    assert tab.locator(".answer .chip").first.inner_text() == after


@pytest.mark.slow
def test_filters_narrow_the_list(opened, analysis):
    tab = opened()
    tab.select_option("#verdict", "gained")
    num_gained = sum(change.flip == 1 for change in analysis.comparisons[-1].changes)
    assert tab.locator("#list li").count() == num_gained
    assert tab.locator("#count").inner_text() == f"{num_gained} of 24 cases"
    tab.select_option("#verdict", "any")
    tab.select_option("#difficulty", "easy")
    assert tab.locator("#list li").count() == sum(case.difficulty == "easy" for case in analysis.inputs.cases.values())
    tab.select_option("#difficulty", "")
    case = list(analysis.inputs.cases.values())[7]
    tab.locator("#search").fill(case.id.upper())
    assert tab.locator("#list .doc").all_inner_texts() == [case.id]
    tab.locator("#search").fill("no case says this")
    assert tab.locator("#list li").count() == 0
    tab.locator("#search").fill("")
    tab.select_option("#sort", "gain")
    gained, _ = most_changed(analysis.comparisons[-1])
    assert tab.locator("#list .change").first.inner_text() == f"{gained[0].change:+.2f}"


@pytest.mark.slow
def test_a_link_leads_to_its_case_checkpoint_and_issue(opened, analysis):
    case = list(analysis.inputs.cases.values())[9]
    tab = opened(f"#case={case.id}&set=checkpoint-20&issue=1")
    assert first_case(tab) == case.id
    assert tab.locator("#set-name").inner_text() == "checkpoint-20"
    assert tab.locator(".issue.aim .id").inner_text() == "1"
    assert tab.locator(".issue.aim .more").is_visible()
    tab.locator(".changed a").first.click()
    gained, _ = most_changed(analysis.comparisons[-1])
    assert first_case(tab) == gained[0].case_id
    tab.reload()
    tab.wait_for_selector("html[data-ready]")
    assert first_case(tab) == gained[0].case_id


@pytest.mark.slow
def test_the_keyboard_is_enough(opened):
    tab = opened()
    before = first_case(tab)
    tab.keyboard.press("j")
    assert first_case(tab) != before
    tab.keyboard.press("k")
    assert first_case(tab) == before
    num_open = tab.locator(".issue .more:visible").count()
    tab.keyboard.press("e")
    assert tab.locator(".issue .more:visible").count() == tab.locator(".issue").count() > num_open
    tab.keyboard.press("/")
    tab.keyboard.type("jjj")
    assert first_case(tab) == before
    assert tab.locator("#search").input_value() == "jjj"
    tab.keyboard.press("Escape")
    tab.keyboard.press("?")
    assert tab.locator("#keys").is_visible()


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 800, 1440])
def test_nothing_runs_out_of_a_narrow_or_dark_page(opened, width):
    tab = opened(width=width, color_scheme="dark")
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.select_option("#grouping", "difficulty")
    tab.wait_for_selector("#legend li")
    assert tab.locator("#legend li").count() >= 2
