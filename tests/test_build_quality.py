"""Built trees are held against hand-made ones: figures worked out by hand on small trees, then through the builder."""

import json
from statistics import fmean

import pytest
from fake_llm_server import FakeLLM, completion
from judgment_replay import known, known_in, replay, stage_of

from benchmarks.build_quality import compare, main, partners, says_the_same, tree_distance
from data.cases import Case, Claim, Issue
from data.records import to_record

PRICE = Issue(
    "1",
    "매매대금을 지급할 의무가 있는지 여부",
    (Claim("원고", "물건을 인도하였다."),),
    "대금 300만 원을 지급할 의무가 있다.",
)
PAID = Issue("1.1", "변제하였는지 여부", (Claim("피고", "전부 갚았다."),), "변제하였다고 인정할 증거가 없다.")
BARRED = Issue("1.2", "소멸시효가 완성되었는지 여부", (Claim("피고", "3년이 지났다."),), "소멸시효가 완성되지 않았다.")
COSTS = Issue(
    "2",
    "운송비를 부담하기로 하였는지 여부",
    (Claim("원고", "피고가 운송비를 내기로 하였다."),),
    "그러한 약정이 있었다.",
)


def case(*issues: Issue) -> Case:
    return Case("가-1", "질문", (Issue("", "", (), "주문"), *issues))


def moved(issue: Issue, id: str) -> Issue:
    return Issue(id, issue.summary, issue.claims, issue.conclusion)


GOLD = case(PRICE, PAID, BARRED, COSTS)


@pytest.mark.parametrize(
    ("built", "edits"),
    [
        (GOLD, 0),
        (case(PRICE, PAID, BARRED), 1),  # one is missing
        (case(PRICE, PAID, BARRED, COSTS, Issue("3", "날씨가 맑았는지 여부", (), "맑았다.")), 1),  # one too many
        (case(PRICE, PAID, Issue("1.2", "날씨가 맑았는지 여부", (), "맑았다."), COSTS), 1),  # one for another
        (case(PRICE, PAID, moved(BARRED, "2"), moved(COSTS, "3")), 2),  # one that hangs elsewhere: out and in again
        (case(moved(PAID, "1"), moved(BARRED, "2"), moved(COSTS, "3")), 1),  # the parent is missing
        (case(Issue("1", "날씨가 맑았는지 여부", (), "맑았다.")), 4),
    ],
    ids=["alike", "missing", "too many", "another", "elsewhere", "no parent", "nothing alike"],
)
def test_a_tree_is_as_far_from_another_as_it_takes_edits(built, edits):
    pairs = {(one.id, other.id) for one, other in partners(built, GOLD)}
    assert tree_distance(built, GOLD, pairs) == edits
    assert tree_distance(GOLD, built, {(other, one) for one, other in pairs}) == edits


def test_partners_are_found_whatever_their_ids():
    built = case(moved(COSTS, "1"), moved(BARRED, "2"), moved(PRICE, "3"))
    assert [(one.id, other.id) for one, other in partners(built, GOLD)] == [("1", "2"), ("2", "1.2"), ("3", "1")]


def test_precision_recall_distance_and_agreement_worked_by_hand():
    wrong = Issue("1.2", BARRED.summary, BARRED.claims, "소멸시효가 완성되었다.")
    built = case(PRICE, PAID, wrong, Issue("3", "날씨가 맑았는지 여부", (), "맑았다."))
    quality = compare(to_record(built), GOLD, is_valid=False)
    assert (quality.precision, quality.recall) == (3 / 4, 3 / 4)
    assert quality.agreement == pytest.approx(2 / 3)  # of three pairs, one says the opposite
    assert quality.distance == 1 / 8  # the fourth issue is changed for another
    assert quality.grounding is None
    assert compare({"doc_id": "가-1"}, GOLD, is_valid=False).recall == 0


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("피고의 항변은 이유 없다.", "피고의 항변은 이유 있다.", False),
        ("대금 300만 원을 지급할 의무가 있다.", "대금 200만 원을 지급할 의무가 있다.", False),
        ("피고의 시효 항변은 받아들이지 않는다.", "시효 항변은 받아들일 수 없다.", True),
        ("날씨가 맑았다.", "대금을 지급할 의무가 있다.", False),
    ],
)
def test_conclusions_agree_in_numbers_and_in_yes_or_no(one, other, alike):
    assert says_the_same(one, other) is alike


def measure(tmp_path, script) -> dict[str, float]:
    path = tmp_path / "figures.json"
    with FakeLLM(script) as server:
        assert (
            main(["--out", str(tmp_path / "out"), "--json", str(path), "--base-url", server.base_url, "--model", "m"])
            == 0
        )
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_model_that_knows_the_trees_by_heart_gets_full_marks(tmp_path):
    assert measure(tmp_path, replay) == {
        "num_built": 10,
        "num_valid": 10,
        "mean/precision": 1,
        "mean/recall": 1,
        "mean/distance": 0,
        "mean/agreement": 1,
        "mean/grounding": 1,
    }


def test_what_a_model_forgets_and_makes_up_is_seen(tmp_path):
    """Every tree loses its last leaf, and its first issue becomes one that no judgment bears out."""
    moon = {"summary": "달까지 갈 수 있는지 여부", "claims": [], "relevant_law": [], "analysis": []}

    def careless(request):
        if stage_of(request) not in ("tree", "refine"):
            return replay(request)
        first, *others = known_in(request).replies["tree"]["issues"][:-1]
        first = {"id": first["id"], "conclusion": "우주선의 궤도를 계산하면 로켓은 거기까지 날아간다.", **moon}
        return completion(json.dumps({"issues": [first, *others]}, ensure_ascii=False))

    figures = measure(tmp_path, careless)
    sizes = [len(one.case["issues"]) - 1 for one in known().values()]
    assert figures["num_valid"] == 0
    assert figures["mean/precision"] == pytest.approx(fmean((n - 2) / (n - 1) for n in sizes), abs=1e-4)
    assert figures["mean/recall"] == pytest.approx(fmean((n - 2) / n for n in sizes), abs=1e-4)
    assert figures["mean/distance"] == pytest.approx(fmean(2 / (2 * n - 1) for n in sizes), abs=1e-4)
    assert figures["mean/agreement"] == 1
    assert 0.9 < figures["mean/grounding"] < 1
