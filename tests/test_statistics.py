"""Intervals for a few seeds: known answers, degenerate cases, and how often they cover the truth."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

from consmimic.errors import UserError
from consmimic.evaluation.statistics import (
    Interval,
    bootstrap_difference,
    bootstrap_mean,
    bootstrap_ratio,
    fieller_ratio,
    iqm,
    probability_of_improvement,
    student_mean,
    student_t_quantile,
    welch_difference,
)

SEEDS = np.array([0.91, 0.87, 0.95, 0.90, 0.93])
OTHERS = np.array([1.02, 0.98, 1.05, 1.00, 0.96])


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def bounds(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


# ---------------------------------------------------------------- Student's t


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (8, 2.3060), (30, 2.0423)]
)
def test_t_quantiles_are_those_of_the_printed_table(degrees, quantile):
    assert_allclose(student_t_quantile(0.975, degrees), quantile, atol=5e-5)


@pytest.mark.parametrize("p", [0.001, 0.2, 0.5, 0.75, 0.9, 0.975, 0.9995])
def test_t_quantiles_have_a_closed_form_at_1_and_2_degrees(p):
    assert_allclose(student_t_quantile(p, 1), math.tan(math.pi * (p - 0.5)), rtol=1e-10, atol=1e-15)
    assert_allclose(student_t_quantile(p, 2), (2 * p - 1) / math.sqrt(2 * p * (1 - p)), rtol=1e-9, atol=1e-15)


def test_t_becomes_normal():
    assert_allclose(student_t_quantile(0.975, 1e6), 1.959966, atol=2e-6)


def test_t_quantiles_agree_with_scipy_between_whole_degrees():
    peer = pytest.importorskip("scipy.stats").t
    for degrees in (1.0, 1.2, 2.5, 3.7, 7.9, 51.3):
        for p in (0.05, 0.6, 0.95, 0.975, 0.995):
            assert_allclose(student_t_quantile(p, degrees), peer.ppf(p, degrees), rtol=1e-9)


def test_student_mean_by_hand():
    """1, 2, 3: s = 1, so 2 ± 4.3027/√3."""
    interval = student_mean([1, 2, 3])
    assert_allclose((interval.mean, *bounds(interval)), (2, 2 - 2.48414, 2 + 2.48414), atol=1e-5)
    assert (interval.n, interval.level) == (3, 0.95)


def test_welch_difference_by_hand():
    """Variances 1 and 4 of 3 seeds each: v = 1/3 + 4/3, degrees (5/3)² / ((1/9 + 16/9)/2) = 50/17."""
    interval = welch_difference([1, 2, 3], [0, 2, 4])
    reach = student_t_quantile(0.975, 50 / 17) * math.sqrt(5 / 3)
    assert_allclose((interval.mean, *bounds(interval)), (0, -reach, reach), atol=1e-12)


def test_student_intervals_agree_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    ours, peer = student_mean(SEEDS), stats.ttest_1samp(SEEDS, 0).confidence_interval(0.95)
    assert_allclose(bounds(ours), (peer.low, peer.high), rtol=1e-9)
    ours, peer = (
        welch_difference(SEEDS, OTHERS),
        stats.ttest_ind(SEEDS, OTHERS, equal_var=False).confidence_interval(),
    )
    assert_allclose(bounds(ours), (peer.low, peer.high), rtol=1e-9)


def test_fieller_bounds_are_the_ratios_at_which_welchs_test_turns():
    """The definition: at either bound ρ the difference x − ρ y lies exactly t standard errors from 0."""
    interval = fieller_ratio(SEEDS, OTHERS)
    v_x, v_y = SEEDS.var(ddof=1) / 5, OTHERS.var(ddof=1) / 5
    a, b = v_x, interval.mean**2 * v_y
    t = student_t_quantile(0.975, (a + b) ** 2 / ((a**2 + b**2) / 4))
    for rho in bounds(interval):
        errors = abs(SEEDS.mean() - rho * OTHERS.mean()) / math.sqrt(v_x + rho**2 * v_y)
        assert_allclose(errors, t, rtol=1e-9)


def test_fieller_without_doubt_about_the_denominator_is_the_scaled_student_interval():
    ratio, mean = fieller_ratio(SEEDS, [2.0] * 5), student_mean(SEEDS)
    assert_allclose(bounds(ratio), np.array(bounds(mean)) / 2, rtol=1e-12)


def test_fieller_leans_to_the_side_where_the_denominator_may_be_small():
    interval = fieller_ratio([1.0, 1.0, 1.0], [0.9, 1.0, 1.1])
    assert interval.high - 1 > 1 - interval.low > 0


@pytest.mark.parametrize("denominator", [[-1.0, 0.1, 1.2], [-1.0, 0.0, 1.0]])
def test_a_denominator_that_may_be_0_rules_no_ratio_out(denominator):
    for interval in (
        fieller_ratio([1, 2, 3], denominator),
        bootstrap_ratio([1, 2, 3], denominator, generator()),
    ):
        assert bounds(interval) == (-math.inf, math.inf)


def test_negative_groups_are_handled_like_positive_ones():
    assert_allclose(bounds(fieller_ratio(-SEEDS, -OTHERS)), bounds(fieller_ratio(SEEDS, OTHERS)))
    low, high = bounds(fieller_ratio(SEEDS, OTHERS))
    assert_allclose(bounds(fieller_ratio(SEEDS, -OTHERS)), (-high, -low))


# ---------------------------------------------------------------- bootstrap


def test_bootstrap_of_two_seeds_is_known_exactly():
    """Means 0, 1/2, 1 in a quarter, half and quarter of the resamples."""
    assert bounds(bootstrap_mean([0, 1], generator())) == (0.0, 1.0)
    assert bounds(bootstrap_mean([0, 1], generator(), level=0.3)) == (0.5, 0.5)


def test_with_three_seeds_the_95_percent_bootstrap_is_just_the_range():
    """The smallest seed is drawn three times over in 1/27 > 2.5 % of the resamples."""
    assert bounds(bootstrap_mean([3.0, 1.0, 2.0], generator())) == (1.0, 3.0)


def test_bootstrap_of_many_values_is_the_normal_interval():
    values = generator(1).normal(5, 2, size=2000)
    interval = bootstrap_mean(values, generator(), resamples=4000)
    reach = 1.96 * values.std() / math.sqrt(2000)
    assert_allclose(bounds(interval), (values.mean() - reach, values.mean() + reach), atol=0.1 * reach)


def test_the_ratio_of_a_group_to_itself_is_1():
    for interval in (bootstrap_ratio(SEEDS, SEEDS, generator()), fieller_ratio(SEEDS, SEEDS)):
        assert interval.mean == 1.0
        assert interval.low < 1.0 < interval.high


def test_ratio_and_difference_with_a_fixed_second_group_follow_the_mean():
    mean = np.array(bounds(bootstrap_mean(SEEDS, generator())))
    assert_allclose(bounds(bootstrap_ratio(SEEDS, [4.0], generator())), (np.nan, np.nan))
    assert_allclose(bounds(bootstrap_ratio(SEEDS, [4.0] * 2, generator())), mean / 4)
    assert_allclose(bounds(bootstrap_difference(SEEDS, [4.0] * 2, generator())), mean - 4)


def test_the_groups_are_resampled_independently():
    """Paired, the ratio of a group to itself would be 1 in every resample and the interval a point."""
    interval = bootstrap_ratio(SEEDS, SEEDS, generator())
    assert interval.high - interval.low > 0.02


def test_same_generator_same_interval():
    assert bootstrap_mean(SEEDS, generator(3)) == bootstrap_mean(SEEDS, generator(3))
    assert bootstrap_mean(SEEDS, generator(3), resamples=50) != bootstrap_mean(SEEDS, generator(4), resamples=50)


# ---------------------------------------------------------------- degenerate cases of both kinds

ONE_GROUP: list[Callable[..., Interval]] = [student_mean, lambda x: bootstrap_mean(x, generator())]
TWO_GROUPS: list[Callable[..., Interval]] = [
    welch_difference,
    fieller_ratio,
    lambda x, y: bootstrap_difference(x, y, generator()),
    lambda x, y: bootstrap_ratio(x, y, generator()),
]


@pytest.mark.parametrize("interval_of", ONE_GROUP)
def test_one_seed_has_a_mean_and_no_interval(interval_of):
    interval = interval_of([0.7])
    assert (interval.mean, interval.n) == (0.7, 1)
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)


@pytest.mark.parametrize("interval_of", TWO_GROUPS)
@pytest.mark.parametrize(("first", "second"), [([2.0], [1.0, 3.0]), ([1.0, 3.0], [2.0]), ([2.0], [0.0])])
def test_one_seed_on_either_side_leaves_no_interval(interval_of, first, second):
    interval = interval_of(first, second)
    assert interval.n == 1
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)


@pytest.mark.parametrize("interval_of", ONE_GROUP)
def test_seeds_that_agree_give_a_point(interval_of):
    assert bounds(interval_of([0.75, 0.75, 0.75])) == (0.75, 0.75)


@pytest.mark.parametrize(("interval_of", "point"), list(zip(TWO_GROUPS, [-0.5, 0.75, -0.5, 0.75], strict=True)))
def test_groups_that_agree_give_a_point(interval_of, point):
    assert bounds(interval_of([1.5, 1.5, 1.5], [2.0, 2.0])) == (point, point)


def test_n_is_that_of_the_smaller_group():
    assert {interval_of(SEEDS, OTHERS[:3]).n for interval_of in TWO_GROUPS} == {3}


@pytest.mark.parametrize("interval_of", ONE_GROUP)
@pytest.mark.parametrize("values", [[], [[1.0, 2.0]], [1.0, np.nan], [np.inf]])
def test_bad_values_are_named(interval_of, values):
    with pytest.raises(UserError, match="values "):
        interval_of(values)


def test_bad_levels_are_named():
    with pytest.raises(UserError, match="level must be between 0 and 1, found 95"):
        student_mean(SEEDS, level=95)
    with pytest.raises(UserError, match="level must be between 0 and 1, found 95"):
        bootstrap_mean(SEEDS, generator(), level=95)
    with pytest.raises(UserError, match="probability"):
        student_t_quantile(1.0, 3)
    with pytest.raises(UserError, match="degrees"):
        student_t_quantile(0.9, 0.5)


# ---------------------------------------------------------------- coverage: the tables of docs/metrics.md


def coverage(interval_of: Callable[[], Interval], truth: float, trials: int = 600) -> float:
    intervals = [interval_of() for _ in range(trials)]
    return sum(i.low <= truth <= i.high for i in intervals) / trials


@pytest.mark.parametrize(("n", "expected"), [(3, 0.75), (5, 0.83), (10, 0.90)])
def test_the_bootstrap_of_few_normal_seeds_covers_less_than_it_says(n, expected):
    rng = generator(n)
    covered = coverage(lambda: bootstrap_mean(rng.normal(1, 0.1, n), rng, resamples=500), 1.0)
    assert_allclose(covered, expected, atol=0.05)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_student_intervals_of_few_normal_seeds_cover_what_they_say(n):
    rng = generator(n)
    assert coverage(lambda: student_mean(rng.normal(1, 0.1, n)), 1.0) > 0.92


@pytest.mark.parametrize("n", [3, 5])
def test_fieller_covers_what_it_says_and_the_bootstrap_ratio_does_not(n):
    rng = generator(n)

    def groups() -> tuple[np.ndarray, np.ndarray]:
        return rng.normal(0.9, 0.05, n), rng.normal(1.0, 0.05, n)

    assert coverage(lambda: fieller_ratio(*groups()), 0.9) > 0.92
    assert coverage(lambda: bootstrap_ratio(*groups(), rng, resamples=500), 0.9) < 0.91


# ---------------------------------------------------------------- summaries


def test_iqm_is_the_mean_of_the_middle_half():
    assert iqm([100, 2, 3, -50]) == 2.5
    assert iqm([1, 2, 3, 4, 100]) == 3.0
    assert iqm([0, 0, 1, 2, 3, 4, 9, 99]) == 2.5
    assert iqm([1, 2, 9]) == 4.0  # too few to cut any


def test_iqm_agrees_with_scipys_trimmed_mean():
    trim_mean = pytest.importorskip("scipy.stats").trim_mean
    for n in range(1, 20):
        values = generator(n).normal(size=n)
        assert_allclose(iqm(values), trim_mean(values, 0.25))


def test_probability_of_improvement_by_hand():
    assert probability_of_improvement([2, 3], [1, 3]) == (1 + 0 + 1 + 0.5) / 4
    assert probability_of_improvement([5, 6], [1, 2, 3]) == 1.0
    assert probability_of_improvement(SEEDS, SEEDS) == 0.5
    assert probability_of_improvement(SEEDS, OTHERS) + probability_of_improvement(OTHERS, SEEDS) == 1.0


def test_probability_of_improvement_is_mann_whitneys_u_over_all_pairs():
    mannwhitneyu = pytest.importorskip("scipy.stats").mannwhitneyu
    x, y = generator(1).integers(0, 6, 12), generator(2).integers(1, 7, 9)
    assert_allclose(probability_of_improvement(x, y), mannwhitneyu(x, y).statistic / (12 * 9))
