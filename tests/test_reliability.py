"""Agreement against published worked examples, against other packages, and against raters of known error rates."""

import krippendorff
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from eval.estimates import Panel, estimate
from eval.reliability import (
    all_pairs,
    cohen_kappa,
    difference,
    fleiss_kappa,
    interval_alpha,
    lead,
    mean,
    mean_over_pairs,
    nominal_alpha,
    ordinal_alpha,
    pearson,
    raw_agreement,
    rows,
    spearman,
)

NAN = np.nan
# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), example C: four observers, twelve units.
KRIPPENDORFF_2011 = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
)
# Wikipedia, "Fleiss' kappa", worked example: ten subjects, fourteen raters, five categories; counts by category.
FLEISS_COUNTS = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip
ALPHAS = {"nominal": nominal_alpha, "ordinal": ordinal_alpha, "interval": interval_alpha}
STATISTICS = [nominal_alpha, ordinal_alpha, interval_alpha, fleiss_kappa, raw_agreement, mean, lead]
OF_TWO = [cohen_kappa, pearson, spearman]


def value(statistic, values) -> float:
    return float(statistic(np.asarray(values, dtype=float), np.ones((1, np.shape(values)[1])))[0])


def panel(values, cases=None) -> Panel:
    values = np.asarray(values, dtype=float)
    names = tuple(f"rater-{row}" for row in range(len(values)))
    return Panel(names, tuple(cases or (f"case-{unit}" for unit in range(values.shape[1]))), values)


def of_table(table) -> np.ndarray:
    """The marks of two raters from the table of how often each pair of marks occurred."""
    pairs = [(row, column) for row, line in enumerate(table) for column, num in enumerate(line) for _ in range(num)]
    return np.array(pairs, dtype=float).T


@st.composite
def marks(draw):
    shape = draw(st.integers(2, 4)), draw(st.integers(3, 12))
    cell = st.sampled_from([0.0, 1.0, 2.0, NAN])
    return np.array([[draw(cell) for _ in range(shape[1])] for _ in range(shape[0])])


@pytest.mark.parametrize(("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_that_of_krippendorffs_own_example(level, published):
    assert value(ALPHAS[level], KRIPPENDORFF_2011) == pytest.approx(published, abs=5e-4)


@pytest.mark.parametrize(
    ("table", "published"),
    [([[20, 5], [10, 15]], 0.40), ([[45, 15], [25, 15]], 0.1304), ([[25, 35], [5, 35]], 0.2593)],
    ids=["grant proposals", "same accuracy, one", "same accuracy, two"],
)
def test_cohens_kappa_is_that_of_the_examples_in_wikipedia(table, published):
    """Wikipedia, "Cohen's kappa": the simple example, and the two of "same percentages but different numbers"."""
    assert value(cohen_kappa, of_table(table)) == pytest.approx(published, abs=5e-5)


def test_fleiss_kappa_is_that_of_the_example_in_wikipedia():
    raters = np.array([np.repeat(range(5), counts) for counts in FLEISS_COUNTS], dtype=float).T
    assert value(fleiss_kappa, raters) == pytest.approx(0.210, abs=5e-4)


@given(marks())
def test_alpha_is_that_of_the_krippendorff_package(values):
    twice = (~np.isnan(values)).sum(axis=0) >= 2
    for level, statistic in ALPHAS.items():
        found = value(statistic, values)
        if twice.any() and len(np.unique(values[:, twice][~np.isnan(values[:, twice])])) > 1:
            assert found == pytest.approx(krippendorff.alpha(values, level_of_measurement=level), abs=1e-9)
        else:
            assert np.isnan(found)


def test_of_yes_and_no_the_interval_alpha_is_the_nominal_one():
    values = np.random.default_rng(0).integers(0, 2, (3, 40)).astype(float)
    assert value(interval_alpha, values) == pytest.approx(value(nominal_alpha, values), abs=1e-12)


def test_correlations_are_those_of_scipy():
    rng = np.random.default_rng(1)
    values = np.round(rng.normal(size=(2, 30)), 1)  # with ties
    assert value(pearson, values) == pytest.approx(scipy.stats.pearsonr(*values).statistic)
    assert value(spearman, values) == pytest.approx(scipy.stats.spearmanr(*values).statistic)


@given(marks(), st.data())
def test_a_weight_is_how_often_a_unit_is_there(values, data):
    num_units = values.shape[1]
    times = data.draw(st.lists(st.integers(0, 3), min_size=num_units, max_size=num_units).filter(any))
    weights, repeated = np.array([times], dtype=float), np.repeat(values, times, axis=1)
    for statistic in STATISTICS:
        assert statistic(values, weights)[0] == pytest.approx(value(statistic, repeated), abs=1e-9, nan_ok=True)
    two, two_repeated = values[:2], np.repeat(values[:2], times, axis=1)
    assert cohen_kappa(two, weights)[0] == pytest.approx(value(cohen_kappa, two_repeated), abs=1e-9, nan_ok=True)


def test_a_weighted_rank_is_the_rank_among_repeated_units():
    values, times = np.array([[1.0, 2, 2, 5, 3], [2, 1, 3, 4, 4]]), [2, 0, 1, 3, 1]
    repeated = np.repeat(values, times, axis=1)
    found = spearman(values, np.array([times], dtype=float))[0]
    assert found == pytest.approx(scipy.stats.spearmanr(*repeated).statistic)


@pytest.mark.parametrize(
    ("values", "statistic", "reason"),
    [
        ([[NAN, NAN], [NAN, NAN]], interval_alpha, "no marks"),
        ([[1, NAN], [NAN, 2]], interval_alpha, "no unit was marked by two raters"),
        ([[1, 1, 1], [1, 1, 1]], interval_alpha, "all marks are alike"),
        ([[1, 1, 1], [1, 1, 1]], nominal_alpha, "all marks are alike"),
        ([[1, 1, 1], [1, 1, 1]], cohen_kappa, "all marks are alike"),
        ([[1, 1, 1], [1, 1, 1]], fleiss_kappa, "all marks are alike"),
        ([[1, 1, 1], [1, 2, 3]], pearson, "one rater's marks are all alike"),
        ([[1, 2], [1, 2]], spearman, "too few marks in common (2)"),
    ],
    ids=lambda item: getattr(item, "__name__", None),
)
def test_what_is_not_defined_says_why(values, statistic, reason):
    found = estimate(panel(values), statistic)
    assert (found.value, found.low, found.high, found.undefined) == (None, None, None, reason)
    assert str(found) == f"undefined: {reason}"
    assert found.figures("alpha")["alpha/undefined"] == reason


def test_a_constant_rater_beside_a_varied_one_has_an_alpha():
    assert estimate(panel([[1, 1, 1, 1], [1, 0, 1, 0]]), nominal_alpha).value == pytest.approx(-1 / 6)


def test_one_case_has_a_value_and_no_interval():
    found = estimate(panel([[1, 2, 3], [1, 2, 4]], cases=["only"] * 3), interval_alpha)
    assert (round(found.value, 4), found.low, found.undefined) == (0.878, None, "one case")
    assert str(found) == "0.88 [one case]"


def test_an_interval_from_lucky_draws_alone_is_none():
    """Of two cases one varies: half of the draws have nothing to agree or disagree on."""
    found = estimate(panel([[1, 0, 1, 1], [1, 0, 1, 1]], cases=["a", "a", "b", "b"]), nominal_alpha)
    assert found.value == 1
    assert found.low is None
    assert found.undefined.startswith("defined in ")


def test_cases_are_drawn_whole():
    """A hundred copies of each mark in its case narrow nothing."""
    rng = np.random.default_rng(3)
    few = rng.integers(0, 2, (2, 30)).astype(float)
    many = np.repeat(few, 100, axis=1)
    narrow = estimate(panel(many, cases=np.repeat(range(30), 100).astype(str).tolist()), raw_agreement)
    wide = estimate(panel(few, cases=[str(n) for n in range(30)]), raw_agreement)
    assert narrow.low == pytest.approx(wide.low, abs=0.03)
    assert narrow.high == pytest.approx(wide.high, abs=0.03)


def simulated(rng, num_units: int, share: float, error_rates) -> np.ndarray:
    truth = rng.random(num_units) < share
    return np.array([truth ^ (rng.random(num_units) < rate) for rate in error_rates], dtype=float)


@pytest.mark.parametrize(("share", "rates"), [(0.5, (0.1, 0.1)), (0.7, (0.05, 0.2)), (0.9, (0.02, 0.02))])
def test_simulated_raters_of_known_error_rates_agree_as_calculated(share, rates):
    first, second = rates
    agree = first * second + (1 - first) * (1 - second)
    said = [share * (1 - rate) + (1 - share) * rate for rate in rates]  # how often each says yes
    by_chance = said[0] * said[1] + (1 - said[0]) * (1 - said[1])
    both = sum(said) / 2
    values = simulated(np.random.default_rng(0), 200_000, share, rates)
    assert value(raw_agreement, values) == pytest.approx(agree, abs=0.005)
    assert value(cohen_kappa, values) == pytest.approx((agree - by_chance) / (1 - by_chance), abs=0.01)
    assert value(nominal_alpha, values) == pytest.approx(1 - (1 - agree) / (2 * both * (1 - both)), abs=0.01)
    assert value(lead, values) == pytest.approx(said[0] - said[1], abs=0.005)


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    truth = 1 - (1 - 0.82) / 0.5  # two raters who err on one mark in ten, of which half are yes
    held = 0
    for seed in range(100):
        values = simulated(np.random.default_rng(seed), 120, 0.5, (0.1, 0.1))
        found = estimate(panel(values), nominal_alpha, num_resamples=400, seed=seed)
        held += found.low <= truth <= found.high
    assert 88 <= held <= 100


def test_pairs_ranges_and_differences_are_of_the_same_draws():
    values = np.random.default_rng(5).integers(0, 3, (4, 50)).astype(float)
    assert all_pairs(3) == [(0, 1), (0, 2), (1, 2)]
    pairwise = [value(nominal_alpha, values[[0, other]]) for other in (1, 2)]
    assert value(mean_over_pairs(nominal_alpha, [(0, 1), (0, 2)]), values) == pytest.approx(np.mean(pairwise))
    same = difference(rows(nominal_alpha, 0, 2), mean_over_pairs(nominal_alpha, [(0, 1)]))
    assert estimate(panel(values), same).high == 0


def test_lead_is_over_the_mean_of_whoever_marked_the_unit():
    assert value(lead, [[4, 4, 4], [2, NAN, NAN], [4, 5, NAN]]) == pytest.approx((1 - 1) / 2)
