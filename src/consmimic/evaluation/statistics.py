"""Intervals for results of a few training seeds, by the bootstrap and by Student's t.

One value is one trained policy; episodes of the same policy are not independent runs of the method. Every
interval comes in two kinds, to be printed side by side. The percentile bootstrap assumes no shape but cannot
see beyond the seeds it was given: at 3 to 5 seeds it is too narrow. Student's t has the stated confidence
from 2 seeds up, by being wide, as long as seeds scatter roughly like a normal distribution. Where one seed in
a few collapses, neither can be trusted at such numbers: show every seed.
Measured coverage of all of them: docs/metrics.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from consmimic.errors import UserError

Array = NDArray[np.float64]

NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval.

    NaN bounds: too few seeds to say. Infinite bounds: the seeds rule no value out.
    """

    mean: float  # the estimate: a mean, a ratio of means, or a difference of means
    low: float
    high: float
    n: int  # seeds; of the smaller group where two are compared
    level: float


# ---------------------------------------------------------------- percentile bootstrap


def bootstrap_mean(
    values: ArrayLike, generator: np.random.Generator, level: float = 0.95, resamples: int = 10_000
) -> Interval:
    """Percentile bootstrap of the mean over seeds (Efron 1979)."""
    x = _seeds("values", values)
    return _percentile(float(x.mean()), _resampled_means(x, generator, resamples), len(x), level)


def bootstrap_difference(
    first: ArrayLike,
    second: ArrayLike,
    generator: np.random.Generator,
    level: float = 0.95,
    resamples: int = 10_000,
) -> Interval:
    """Percentile bootstrap of mean(first) − mean(second), each group resampled on its own."""
    x, y = _seeds("first", first), _seeds("second", second)
    draws = _resampled_means(x, generator, resamples) - _resampled_means(y, generator, resamples)
    return _percentile(float(x.mean() - y.mean()), draws, min(len(x), len(y)), level)


def bootstrap_ratio(
    numerator: ArrayLike,
    denominator: ArrayLike,
    generator: np.random.Generator,
    level: float = 0.95,
    resamples: int = 10_000,
) -> Interval:
    """Percentile bootstrap of mean(numerator) / mean(denominator), each group resampled on its own.

    Unbounded where the denominator's seeds do not agree on a sign: a resampled mean may then be next to 0.
    """
    x, y = _seeds("numerator", numerator), _seeds("denominator", denominator)
    estimate, n = _ratio(x, y), min(len(x), len(y))
    if n < 2:
        return _undefined(estimate, n, level)
    if y.min() <= 0 <= y.max():
        return Interval(estimate, -math.inf, math.inf, n, _level(level))
    draws = _resampled_means(x, generator, resamples) / _resampled_means(y, generator, resamples)
    return _percentile(estimate, draws, n, level)


# ---------------------------------------------------------------- Student's t


def student_mean(values: ArrayLike, level: float = 0.95) -> Interval:
    """x̄ ± t_{n−1} s / √n."""
    x = _seeds("values", values)
    mean, n = float(x.mean()), len(x)
    if n < 2:
        return _undefined(mean, n, level)
    reach = _t(level, n - 1) * math.sqrt(_variance_of_mean(x))
    return Interval(mean, mean - reach, mean + reach, n, level)


def welch_difference(first: ArrayLike, second: ArrayLike, level: float = 0.95) -> Interval:
    """x̄ − ȳ ± t √(s_x²/n_x + s_y²/n_y), with the degrees of freedom of Welch and Satterthwaite."""
    x, y = _seeds("first", first), _seeds("second", second)
    difference, n = float(x.mean() - y.mean()), min(len(x), len(y))
    if n < 2:
        return _undefined(difference, n, level)
    v_x, v_y = _variance_of_mean(x), _variance_of_mean(y)
    reach = _t(level, _welch_degrees(v_x, len(x), v_y, len(y))) * math.sqrt(v_x + v_y)
    return Interval(difference, difference - reach, difference + reach, n, level)


def fieller_ratio(numerator: ArrayLike, denominator: ArrayLike, level: float = 0.95) -> Interval:
    """The ratios ρ for which x̄ − ρ ȳ does not differ significantly from 0 (Fieller 1954), independent groups.

    They solve (x̄ − ρ ȳ)² <= t² (v_x + ρ² v_y), v being the variance of a mean; t has the degrees of freedom
    of Welch and Satterthwaite at ρ = x̄/ȳ. Where the denominator itself does not differ significantly from 0,
    no bounded set of ratios has the stated confidence, and the interval is (−∞, ∞).
    """
    x, y = _seeds("numerator", numerator), _seeds("denominator", denominator)
    ratio, n = _ratio(x, y), min(len(x), len(y))
    if n < 2:
        return _undefined(ratio, n, level)
    v_x, v_y, bottom = _variance_of_mean(x), _variance_of_mean(y), float(y.mean())
    unbounded = Interval(ratio, -math.inf, math.inf, n, _level(level))
    if bottom == 0:
        return unbounded
    t = _t(level, _welch_degrees(v_x, len(x), ratio**2 * v_y, len(y)))
    g = t**2 * v_y / bottom**2
    if g >= 1:  # the denominator may be 0
        return unbounded
    reach = t / abs(bottom) * math.sqrt(v_x * (1 - g) + ratio**2 * v_y)
    return Interval(ratio, (ratio - reach) / (1 - g), (ratio + reach) / (1 - g), n, level)


def student_t_quantile(probability: float, degrees: float) -> float:
    """The t below which Student's distribution with ``degrees`` >= 1 of freedom holds ``probability``.

    With t = √ν tan θ the distribution is F = 1/2 + Γ((ν+1)/2) / (√π Γ(ν/2)) ∫₀^θ cos^{ν−1}, a smooth
    integrand on a bounded range: Gauss–Legendre integrates it, bisection inverts it.
    """
    if not 0 < probability < 1:
        raise UserError(f"probability must be between 0 and 1, found {probability}")
    if not degrees >= 1:
        raise UserError(f"degrees of freedom must be >= 1, found {degrees}")
    if probability < 0.5:
        return -student_t_quantile(1 - probability, degrees)
    log_norm = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(math.pi)
    norm = math.exp(log_norm)

    def upper_half(theta: float) -> float:  # F − 1/2
        angles = theta / 2 * (NODES + 1)
        return norm * theta / 2 * float(NODE_WEIGHTS @ np.cos(angles) ** (degrees - 1))

    low, high = 0.0, math.atan(1 / math.sqrt(degrees))
    while high < math.pi / 2 and upper_half(high) < probability - 0.5:  # never far beyond the bulk: the nodes see it
        low, high = high, min(2 * high, math.pi / 2)
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if upper_half(middle) < probability - 0.5 else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


# ---------------------------------------------------------------- summaries that outliers cannot move far


def iqm(values: ArrayLike) -> float:
    """Interquartile mean: ⌊n/4⌋ values cut from each end (Agarwal et al. 2021). Of 3 or fewer, the mean."""
    x = np.sort(_seeds("values", values))
    cut = len(x) // 4
    return float(x[cut : len(x) - cut].mean())


def probability_of_improvement(first: ArrayLike, second: ArrayLike) -> float:
    """P(X > Y) + P(X = Y) / 2 over all pairs: the Mann–Whitney U of ``first`` over n_x n_y."""
    x, y = _seeds("first", first), _seeds("second", second)
    above, equal = x[:, None] > y, x[:, None] == y
    return float((above + 0.5 * equal).mean())


# ---------------------------------------------------------------- parts


def _resampled_means(x: Array, generator: np.random.Generator, resamples: int) -> Array:
    return x[generator.integers(len(x), size=(resamples, len(x)))].mean(axis=1)


def _percentile(estimate: float, draws: Array, n: int, level: float) -> Interval:
    if n < 2:
        return _undefined(estimate, n, level)
    tail = (1 - _level(level)) / 2
    low, high = np.quantile(draws, (tail, 1 - tail))
    return Interval(estimate, float(low), float(high), n, level)


def _undefined(estimate: float, n: int, level: float) -> Interval:
    return Interval(estimate, math.nan, math.nan, n, _level(level))


def _ratio(x: Array, y: Array) -> float:
    bottom = float(y.mean())
    return float(x.mean()) / bottom if bottom else math.nan


def _variance_of_mean(x: Array) -> float:
    return float(x.var(ddof=1)) / len(x)


def _welch_degrees(v_x: float, n_x: int, v_y: float, n_y: int) -> float:
    """(v_x + v_y)² / (v_x²/(n_x−1) + v_y²/(n_y−1)), never below the smaller group's degrees."""
    parts = v_x**2 / (n_x - 1) + v_y**2 / (n_y - 1)
    fewest = min(n_x, n_y) - 1
    return max((v_x + v_y) ** 2 / parts, fewest) if parts else fewest


def _t(level: float, degrees: float) -> float:
    return student_t_quantile((1 + _level(level)) / 2, degrees)


def _level(level: float) -> float:
    if not 0 < level < 1:
        raise UserError(f"level must be between 0 and 1, found {level}")
    return level


def _seeds(name: str, values: ArrayLike) -> Array:
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or x.size == 0:
        raise UserError(f"{name} has shape {x.shape}; expected one value per seed, (n,), at least one")
    if not np.isfinite(x).all():
        raise UserError(f"{name} holds NaN or infinity: {x}")
    return x
