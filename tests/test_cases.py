import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.cases import ROOT_ID, Case, CaseError, Claim, Issue

IDS = ("", "1", "1.1", "1.1.1", "1.2", "2", "10", "10.1")


def case_of(*ids: str) -> Case:
    return Case(
        "가상-1", "원고의 청구는?", tuple(Issue(id, "쟁점", (Claim("원고", "주장"),), "이유 있다") for id in ids)
    )


@pytest.fixture
def tree() -> Case:
    return case_of(*IDS)


@pytest.mark.parametrize(
    ("issue_id", "parent_id", "depth"),
    [("", None, 0), ("1", "", 1), ("10", "", 1), ("1.2", "1", 2), ("1.2.10", "1.2", 3), ("10.1", "10", 2)],
)
def test_an_id_tells_parent_and_depth(issue_id, parent_id, depth):
    issue = Issue(issue_id, "", (), "")
    assert (issue.parent_id, issue.depth) == (parent_id, depth)


@pytest.mark.parametrize(
    ("issue_id", "children", "descendants", "ancestors"),
    [
        ("", ["1", "2", "10"], ["1", "1.1", "1.1.1", "1.2", "2", "10", "10.1"], []),
        ("1", ["1.1", "1.2"], ["1.1", "1.1.1", "1.2"], [""]),
        ("1.1.1", [], [], ["", "1", "1.1"]),
        ("10", ["10.1"], ["10.1"], [""]),
    ],
)
def test_one_is_not_above_ten(tree, issue_id, children, descendants, ancestors):
    issue = next(issue for issue in tree.issues if issue.id == issue_id)
    assert [i.id for i in tree.children(issue)] == children
    assert [i.id for i in tree.descendants(issue)] == descendants
    assert [i.id for i in tree.ancestors(issue)] == ancestors
    assert all(tree.parent(child) is issue for child in tree.children(issue))


def test_leaves_are_what_nothing_hangs_on(tree):
    assert [issue.id for issue in tree.leaves()] == ["1.1.1", "1.2", "2", "10.1"]


def test_the_root_is_the_order_and_no_sub_issue(tree):
    assert tree.root.id == ROOT_ID
    assert tree.parent(tree.root) is None
    assert tree.answer == "이유 있다"
    assert [issue.id for issue in tree.sub_issues] == list(IDS[1:])


@pytest.mark.parametrize(
    ("ids", "complaint"),
    [
        (("1",), "no root"),
        (("",), "no issue besides the root"),
        (("", "1", "1"), "issue '1': the id occurs twice"),
        (("", "1", "2.1"), "issue '2.1': its parent '2' is missing"),
        (("", "1", "1.a"), "issue '1.a': the id must be numbers"),
        (("", "1", "１"), "the id must be numbers"),
        (("", "1", "1."), "the id must be numbers"),
        (("", "1", " 1"), "the id must be numbers"),
    ],
)
def test_a_broken_tree_is_refused_by_name(ids, complaint):
    with pytest.raises(CaseError, match=r"case '가상-1'") as error:
        case_of(*ids)
    assert complaint in str(error.value)


def test_every_problem_is_told_at_once():
    issues = (Issue("", "", (), "기각"), Issue("1", "", (), " "), Issue("3.1", "쟁점", (), "인용"))
    with pytest.raises(CaseError) as error:
        Case("가상-1", "\n", issues)
    assert error.value.problems == [
        (None, "the question is empty"),
        ("1", "the conclusion is empty"),
        ("1", "neither summary nor claim: the issue cannot be told"),
        ("3.1", "its parent '3' is missing"),
    ]


@given(st.lists(st.lists(st.integers(1, 12), max_size=4), unique_by=tuple))
def test_ancestry_agrees_with_the_path_of_numbers(paths):
    issues = [Issue(".".join(map(str, path)), "", (), "") for path in paths]
    for path, issue in zip(paths, issues, strict=True):
        for other_path, other in zip(paths, issues, strict=True):
            is_prefix = len(path) < len(other_path) and other_path[: len(path)] == path
            assert issue.is_ancestor_of(other) == is_prefix


def test_the_four_rooms_resolve_to_this_checkout(tmp_path):
    """`python -I` ignores the working directory and PYTHONPATH: only the installation counts."""
    code = "import data, rewards, train, eval; print(*(m.__file__ for m in (data, rewards, train, eval)), sep='\\n')"
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    import data

    root = data.__file__.removesuffix("data/__init__.py")
    assert done.stdout.split() == [f"{root}{name}/__init__.py" for name in ("data", "rewards", "train", "eval")]
