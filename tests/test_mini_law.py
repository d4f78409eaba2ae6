"""The written rules of the mini world."""

import pytest

from data.mini_law import Outcome, Role, Told, conclude, decidable, find, kinds, outcome, possible_outcomes

KINDS = {kind.name: kind for kind in kinds()}


def part(kind, *ids):
    return tuple(issue for issue in KINDS[kind].issues if issue.id in ids)


def test_there_are_six_kinds_of_eight_issues():
    assert list(KINDS) == ["대여금", "보증금", "매매대금", "부당이득", "임금", "과세처분"]
    assert {len(kind.issues) for kind in kinds()} == {8}


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_every_tree_is_well_formed(kind):
    seen = {""}
    for issue in kind.issues:
        assert issue.id.rpartition(".")[0] in seen  # a parent stands before its children
        seen.add(issue.id)
    roles = {issue.id: issue.role for issue in kind.issues}
    assert roles["1"] is Role.ELEMENT
    for id, role in roles.items():
        parent = roles.get(id.rpartition(".")[0])
        assert (
            parent
            in {
                Role.ELEMENT: {None},
                Role.ADMISSIBILITY: {None},
                Role.DEFENCE: {Role.ELEMENT},
                Role.PARTIAL: {Role.ELEMENT},
                Role.COUNTER: {Role.DEFENCE, Role.PARTIAL},
            }[role]
        )
    assert len({issue.name for issue in kind.issues}) == len(kind.issues)


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_a_sentence_tells_one_thing(kind):
    sentences = [s for issue in kind.issues for told in Told for s in issue.sentences[told]]
    assert len(set(sentences)) == len(sentences)
    assert all(len(issue.sentences[told]) >= 2 for issue in kind.issues for told in Told)


@pytest.mark.parametrize(
    ("kind", "findings", "accepted", "order"),
    [
        pytest.param("대여금", {"1": True}, {"1"}, Outcome.GRANTED, id="an element alone"),
        pytest.param("대여금", {"1": False}, set(), Outcome.DISMISSED, id="no element"),
        pytest.param("대여금", {"1": True, "2": False}, {"1"}, Outcome.DISMISSED, id="one element of two"),
        pytest.param("대여금", {"1": True, "1.1": True}, {"1", "1.1"}, Outcome.DISMISSED, id="a defence"),
        pytest.param("대여금", {"1": True, "1.1": False}, {"1"}, Outcome.GRANTED, id="a defence without facts"),
        pytest.param(
            "대여금",
            {"1": True, "1.1": True, "1.1.1": True},
            {"1", "1.1.1"},
            Outcome.GRANTED,
            id="a counter-defence defeats the defence",
        ),
        pytest.param(
            "대여금",
            {"1": True, "1.1": True, "1.1.1": True, "1.2": True},
            {"1", "1.1.1", "1.2"},
            Outcome.DISMISSED,
            id="a counter-defence answers its own defence only",
        ),
        pytest.param("대여금", {"1": True, "1.3": True}, {"1", "1.3"}, Outcome.PARTIAL, id="a partial defence"),
        pytest.param(
            "대여금",
            {"1": True, "1.1": True, "1.3": True},
            {"1", "1.1", "1.3"},
            Outcome.DISMISSED,
            id="a full defence before a partial one",
        ),
        pytest.param(
            "보증금",
            {"1": True, "1.1": True, "1.1.1": True},
            {"1", "1.1.1"},
            Outcome.GRANTED,
            id="a counter-defence to a partial defence",
        ),
        pytest.param(
            "대여금", {"1": False, "3": False}, set(), Outcome.INADMISSIBLE, id="inadmissible before dismissed"
        ),
        pytest.param("과세처분", {"1": True, "2": True, "3": True}, {"1", "2", "3"}, Outcome.GRANTED, id="admissible"),
        pytest.param(
            "과세처분", {"1": True, "2": True, "3": False}, {"1", "2"}, Outcome.INADMISSIBLE, id="one of two wanting"
        ),
    ],
)
def test_conclusions_and_order_follow_from_the_findings(kind, findings, accepted, order):
    issues = part(kind, *findings)
    concluded = conclude(issues, findings)
    assert {id for id, is_accepted in concluded.items() if is_accepted} == accepted
    assert outcome(issues, concluded) is order


@pytest.mark.parametrize(
    ("told", "settled", "order_settled"),
    [
        pytest.param({"1": "holds", "1.1": "fails"}, {"1", "1.1"}, True, id="all told"),
        pytest.param({"1": "unclear", "1.1": "fails"}, {"1.1"}, False, id="an open element"),
        pytest.param({"1": "unclear", "1.1": "holds"}, {"1.1"}, True, id="a defence makes the open element idle"),
        pytest.param(
            {"1": "holds", "1.1": "holds", "1.1.1": "unclear"}, {"1"}, False, id="an open counter opens its defence"
        ),
        pytest.param(
            {"1": "holds", "1.1": "fails", "1.1.1": "unclear"}, {"1", "1.1"}, True, id="unless the defence fails anyway"
        ),
        pytest.param(
            {"1": "holds", "1.1": "unclear", "1.1.1": "holds"}, {"1", "1.1", "1.1.1"}, True, id="or is answered anyway"
        ),
    ],
)
def test_what_the_facts_settle(told, settled, order_settled):
    states = {id: Told(state) for id, state in told.items()}
    assert decidable(part("대여금", *told), states) == (frozenset(settled), order_settled)


def test_the_coin_decides_only_what_is_open():
    told = {"1": Told.HOLDS, "1.1": Told.FAILS, "1.2": Told.UNCLEAR}
    assert find(told, {"1": False, "1.1": True, "1.2": True}) == {"1": True, "1.1": False, "1.2": True}


def test_possible_outcomes_need_their_issues():
    assert possible_outcomes(part("대여금", "1")) == (Outcome.GRANTED, Outcome.DISMISSED)
    assert possible_outcomes(KINDS["대여금"].issues) == tuple(Outcome)
