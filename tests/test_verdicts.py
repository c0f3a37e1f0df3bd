"""Verdicts on hand-worked numbers: what is shown, what is shown to be false, and what is left open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from consmimic.evaluation.results import PolicyRecord, Results, Row
from consmimic.evaluation.statistics import Interval
from consmimic.evaluation.verdicts import (
    Settling,
    Tail,
    above,
    by_method,
    check_all,
    compare,
    imitates_better,
    kept,
    on_target,
    positive,
    settled,
    share_kept,
    share_kept_bootstrap,
    shares,
    tail,
    within,
)

REACH = 4.302653 * math.sqrt(4 / 3)  # t at 2 degrees of freedom × standard error of (m − 2, m, m + 2)


def row(seed: int = 0, **changes: Any) -> Row:
    cells: dict[str, Any] = {
        "task": "Franka-Reach",
        "method": "task-only",
        "style_weight": None,
        "mix": None,
        "alpha": None,
        "seed": seed,
        "preset": "laptop",
        "value": 100.0,
        "tracking": 0.9,
        "imitation": 0.6,
        "imitation_per_frame": 0.07,
        "episodes": 256,
        "imitation_window_s": 4.0,
        "imitation_rate_hz": 30.0,
        "imitation_scale": 20.0,
        "env_steps": 1000,
        "wall_s": 1.0,
        "command": "",
        "commit": None,
        "machine": "",
    }
    return Row(**(cells | changes))


def valued(*values: float, **changes: Any) -> list[Row]:
    return [row(seed, value=value, **changes) for seed, value in enumerate(values)]


def imitating(*scores: float | None) -> list[Row]:
    return [row(seed, imitation=score) for seed, score in enumerate(scores)]


def fixed(weight: float, *values: float) -> list[Row]:
    return valued(*values, method="fixed", style_weight=weight, mix="rewards")


def consmimic(alpha: float, *values: float, **changes: Any) -> list[Row]:
    return valued(*values, method="consmimic", alpha=alpha, **changes)


EXACT = valued(100.0, 100.0, 100.0)  # a task-only value without scatter: the share's interval is Student's


# ---------------------------------------------------------------- claims about an interval


@pytest.mark.parametrize(
    ("low", "high", "is_above", "is_positive", "is_within"),
    [
        (0.1, 0.3, True, True, True),  # at the bound and up to it
        (0.2, 0.4, True, True, None),
        (-0.1, 0.2, None, None, None),
        (-0.3, -0.1, False, False, False),
        (0.0, 0.05, False, None, False),
        (-0.1, 0.0, False, False, False),
        (math.nan, math.nan, None, None, None),
        (-math.inf, math.inf, None, None, None),
    ],
)
def test_a_claim_needs_the_whole_interval(low, high, is_above, is_positive, is_within):
    interval = Interval(0.0, low, high, 3, 0.95)
    assert above(interval, 0.1) is is_above
    assert positive(interval) is is_positive
    assert within(interval, 0.1, 0.3) is is_within


# ---------------------------------------------------------------- the task


def test_the_share_kept_has_students_interval_where_the_best_value_is_exact():
    share = share_kept(valued(88.0, 90.0, 92.0), EXACT)
    assert_allclose((share.mean, share.low, share.high), (0.9, 0.9 - REACH / 100, 0.9 + REACH / 100), rtol=1e-6)


@pytest.mark.parametrize(("alpha", "word"), [(0.85, "yes"), (0.9, "not shown"), (0.95, "no")])
def test_kept_compares_the_interval_with_alpha(alpha, word):
    assert kept(valued(88.0, 90.0, 92.0), EXACT, alpha).word == word  # [0.8503, 0.9497]


@pytest.mark.parametrize(
    ("alpha", "margin", "word"),
    [(0.9, 0.05, "yes"), (0.9, 0.03, "not shown"), (0.8, 0.03, "no"), (1.0, 0.03, "no")],
)
def test_on_target_needs_the_interval_inside_the_margin(alpha, margin, word):
    assert on_target(valued(88.0, 90.0, 92.0), EXACT, alpha, margin).word == word


def test_the_spread_of_the_task_only_runs_widens_the_interval():
    certain = share_kept(valued(88.0, 90.0, 92.0), EXACT)
    uncertain = share_kept(valued(88.0, 90.0, 92.0), valued(95.0, 100.0, 105.0))
    assert uncertain.low < certain.low < certain.high < uncertain.high


def test_a_negative_value_keeps_less_the_lower_it_is():
    baseline = valued(-100.0, -100.0, -100.0)
    rows = valued(-112.0, -110.0, -108.0)
    share = share_kept(rows, baseline)
    assert_allclose((share.mean, share.low, share.high), (0.9, 0.9 - REACH / 100, 0.9 + REACH / 100), rtol=1e-6)
    assert_allclose(shares(rows, baseline), [0.88, 0.90, 0.92])
    bootstrap = share_kept_bootstrap(rows, baseline, np.random.default_rng(0))
    assert bootstrap.mean == pytest.approx(0.9)
    assert_allclose((bootstrap.low, bootstrap.high), (0.88, 0.92))  # the range of three seeds


def test_one_seed_shows_nothing():
    verdict = kept(valued(120.0), valued(100.0), 0.9)
    assert verdict.interval.mean == pytest.approx(1.2)
    assert math.isnan(verdict.interval.low)
    assert verdict.word == "not shown"
    assert on_target(valued(90.0), EXACT, 0.9).holds is None


# ---------------------------------------------------------------- style


def test_better_imitation_has_welchs_interval():
    verdict = imitates_better(imitating(0.70, 0.72, 0.74), imitating(0.6, 0.6, 0.6))
    assert verdict is not None
    found = verdict.interval
    assert_allclose((found.mean, found.low, found.high), (0.12, 0.12 - REACH / 100, 0.12 + REACH / 100), rtol=1e-6)
    assert verdict.word == "yes"


@pytest.mark.parametrize(
    ("ours", "theirs", "word"),
    [
        ((0.6, 0.6, 0.6), (0.70, 0.72, 0.74), "no"),
        ((0.6, 0.7, 0.8), (0.58, 0.68, 0.78), "not shown"),
        ((0.6, 0.6), (0.6, 0.6), "no"),  # the same is not better
        ((0.9,), (0.1,), "not shown"),
    ],
)
def test_better_imitation_is_shown_or_not(ours, theirs, word):
    verdict = imitates_better(imitating(*ours), imitating(*theirs))
    assert verdict is not None
    assert verdict.word == word


def test_without_scores_there_is_no_verdict_and_missing_ones_are_left_out():
    assert imitates_better(imitating(None, None), imitating(0.6, 0.6)) is None
    assert imitates_better([], imitating(0.6, 0.6)) is None
    verdict = imitates_better(imitating(0.7, None, 0.9), imitating(0.6, 0.6))
    assert verdict is not None
    assert verdict.interval.mean == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("ours", "theirs", "is_rival"),
    [
        ((90.0, 90.1, 90.2), (70.0, 70.1, 70.2), False),  # it is shown to keep less
        ((90.0, 90.1, 90.2), (95.0, 95.1, 95.2), True),
        ((80.0, 90.0, 100.0), (79.0, 89.0, 99.0), True),  # less, but not shown
        ((90.0,), (89.0,), False),  # one seed: by the means
        ((90.0,), (90.0,), True),
    ],
)
def test_a_rival_is_not_shown_to_keep_less(ours, theirs, is_rival):
    comparison = compare(consmimic(0.9, *ours), fixed(0.2, *theirs))
    assert comparison.is_rival is is_rival


# ---------------------------------------------------------------- the multiplier


def history(*end: float, before: float = 1.0) -> dict[str, np.ndarray]:
    """100 iterations, the last 20 of which end as given."""
    last = np.interp(np.arange(20), np.linspace(0, 19, len(end)), end)
    return {"sigma_lambda": np.concatenate([np.full(80, before), last])}


@pytest.mark.parametrize(
    ("end", "state"),
    [
        ((0.4, 0.4), "settled"),
        ((0.03, 0.03), "settled"),
        ((0.97, 0.97), "settled"),
        ((0.45, 0.35), "settled"),
        ((0.9, 0.3), "drifting"),
        ((0.3, 0.9), "drifting"),
        ((0.5, 0.99, 0.99, 0.5), "reached 1"),
        ((0.5, 0.01, 0.01, 0.5), "reached 0"),
        ((1.0, 1.0), "reached 1"),  # the warm-up was never left
    ],
)
def test_the_state_of_sigma_is_that_of_the_last_fifth(end, state):
    last = tail(history(*end))
    assert last is not None
    assert last.state == state
    assert settled(history(*end)) is (state == "settled")


def test_what_came_before_the_tail_does_not_count():
    assert settled(history(0.4, 0.4, before=0.0))


def test_the_tail_is_summed_up():
    steps = {"sigma_lambda": np.array([1.0] * 16 + [0.2, 0.3, 0.4, 0.5])}
    last = tail(steps)
    assert last is not None
    assert_allclose((last.mean, last.low, last.high, last.drift), (0.35, 0.2, 0.5, 0.2))


def test_without_sigma_nothing_has_settled():
    assert tail({}) is None
    assert tail({"sigma_lambda": np.full(10, np.nan)}) is None
    assert not settled({})


def test_settling_is_shown_by_all_seeds_or_by_none():
    rests, sticks = Tail(0.4, 0.3, 0.5, 0.0), Tail(1.0, 1.0, 1.0, 0.0)
    assert Settling([rests, rests]).word == "yes"
    assert Settling([sticks, sticks]).word == "no"
    assert Settling([rests, sticks, rests]).word == "not shown"
    assert Settling([]).word == "not shown"
    assert Settling([rests, sticks, rests]).states() == {"settled": 2, "reached 1": 1}


# ---------------------------------------------------------------- all together


def results(rows: Sequence[Row]) -> Results:
    path = np.zeros((4, 3))
    records = [PolicyRecord(row=r, history=history(0.4, 0.4), showcase=path[None]) for r in rows]
    return Results(records=records, demonstration=path, goals=path[:1])


def test_methods_come_in_one_order_whatever_the_order_of_the_rows():
    rows = [
        *consmimic(0.8, 80.0),
        *fixed(0.5, 60.0),
        *consmimic(1.0, 99.0),
        *fixed(0.2, 90.0),
        *reversed(EXACT),
    ]
    groups = by_method(rows)
    assert list(groups) == ["task-only", "ω^s=0.2", "ω^s=0.5", "ConsMimic α=1", "ConsMimic α=0.8"]
    assert [r.seed for r in groups["task-only"]] == [0, 1, 2]


def test_every_alpha_is_checked_against_its_own_rivals():
    rows = [
        *EXACT,
        *fixed(0.2, 94.0, 95.0, 96.0),
        *fixed(0.5, 59.0, 60.0, 61.0),
        *consmimic(0.8, 79.9, 80.0, 80.1, imitation=0.8),
        *consmimic(0.9, 89.9, 90.0, 90.1, imitation=0.7),
    ]
    first, second = check_all(results(rows))
    assert (first.alpha, second.alpha) == (0.9, 0.8)
    assert first.on_target is not None
    assert first.on_target.word == "yes"
    assert first.settling.word == "yes"
    assert first.over_task_only is not None
    assert first.over_task_only.word == "yes"
    assert [rival.others[0].label for rival in first.rivals] == ["ω^s=0.2"]
    assert first.over_stricter is None
    assert second.over_stricter is not None
    assert second.over_stricter.value.mean == pytest.approx(-10.0)
    assert second.over_stricter.imitation is not None
    assert second.over_stricter.imitation.interval.mean == pytest.approx(0.1)


def test_without_task_only_runs_nothing_is_said_of_the_share():
    (checks,) = check_all(results(consmimic(0.9, 89.0, 90.0)))
    assert checks.kept is None
    assert checks.on_target is None
    assert checks.over_task_only is None
    assert checks.rivals == []


def test_without_consmimic_there_is_nothing_to_check():
    assert check_all(results(EXACT)) == []
