"""What the seeds show of the method's promises, and what they leave open: functions of rows and histories.

A check says yes or no only where an interval lies on one side of the bound; everything else is "not shown".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from consmimic.evaluation.results import Array, Results, Row
from consmimic.evaluation.statistics import Interval, bootstrap_ratio, fieller_ratio, welch_difference

MARGIN = 0.03
"""A share within ± this of α counts as α."""
INSIDE = (0.02, 0.98)
"""σ(λ) between these: both task and style are heard."""
TAIL = 0.2
"""The last part of a training, in which σ(λ) is to have settled."""
DRIFT = 0.1
"""More than this between the two halves of the tail: σ(λ) is still on its way."""


@dataclass(frozen=True)
class Verdict:
    """One claim about a mean, a difference or a ratio."""

    interval: Interval
    holds: bool | None
    """None: the seeds show neither the claim nor its contrary."""

    @property
    def word(self) -> str:
        return word(self.holds)


def word(holds: bool | None) -> str:
    return {True: "yes", False: "no", None: "not shown"}[holds]


# ---------------------------------------------------------------- claims about an interval


def above(interval: Interval, bound: float) -> bool | None:
    """Whether the truth is >= the bound."""
    if interval.low >= bound:
        return True
    return False if interval.high < bound else None  # NaN bounds end here: None


def positive(interval: Interval) -> bool | None:
    """Whether the truth is > 0."""
    if interval.low > 0:
        return True
    return False if interval.high <= 0 else None


def within(interval: Interval, low: float, high: float) -> bool | None:
    """Whether the truth lies in [low, high]."""
    if interval.low >= low and interval.high <= high:
        return True
    return False if interval.high < low or interval.low > high else None


# ---------------------------------------------------------------- the task


def share_kept(rows: Sequence[Row], baseline: Sequence[Row]) -> Interval:
    """1 + (v − v*)/|v*| of the mean values, that is v/v* for v* > 0, with Fieller's interval."""
    return _share(fieller_ratio(_values(rows), _values(baseline)), baseline)


def share_kept_bootstrap(rows: Sequence[Row], baseline: Sequence[Row], generator: np.random.Generator) -> Interval:
    """The same, with the percentile bootstrap."""
    return _share(bootstrap_ratio(_values(rows), _values(baseline), generator), baseline)


def shares(rows: Sequence[Row], baseline: Sequence[Row]) -> Array:
    """Each row's own share of the mean task-only value, (n,)."""
    best = float(np.mean(_values(baseline)))
    return 1 + (np.array(_values(rows)) - best) / abs(best)


def kept(rows: Sequence[Row], baseline: Sequence[Row], alpha: float) -> Verdict:
    """The promise: at least α of the task-only value. Where the constraint binds, an interval straddles α."""
    share = share_kept(rows, baseline)
    return Verdict(share, above(share, alpha))


def on_target(rows: Sequence[Row], baseline: Sequence[Row], alpha: float, margin: float = MARGIN) -> Verdict:
    """Whether the share is α, give or take the margin: what is expected where the constraint binds."""
    share = share_kept(rows, baseline)
    return Verdict(share, within(share, alpha - margin, alpha + margin))


# ---------------------------------------------------------------- style


def imitates_better(rows: Sequence[Row], others: Sequence[Row]) -> Verdict | None:
    """S_imit above that of the others; None where one side has no score."""
    return exceeds(rows, others, "imitation")


def exceeds(rows: Sequence[Row], others: Sequence[Row], score: str) -> Verdict | None:
    """A score above that of the others; None where one side has none."""
    ours, theirs = known(rows, score), known(others, score)
    if not (ours and theirs):
        return None
    difference = welch_difference(ours, theirs)
    return Verdict(difference, positive(difference))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One method's value and imitation against another's."""

    others: Sequence[Row]
    value: Interval
    """Ours − theirs."""
    imitation: Verdict | None
    """Ours − theirs."""

    @property
    def is_rival(self) -> bool:
        """It is not shown to keep less of the task than we do; by the means alone where there is one seed."""
        if math.isnan(self.value.low):
            return self.value.mean <= 0
        return self.value.low <= 0


def compare(rows: Sequence[Row], others: Sequence[Row]) -> Comparison:
    return Comparison(
        others=others,
        value=welch_difference(_values(rows), _values(others)),
        imitation=imitates_better(rows, others),
    )


# ---------------------------------------------------------------- the multiplier


@dataclass(frozen=True)
class Tail:
    """σ(λ) over the last part of a training."""

    mean: float
    low: float
    high: float
    drift: float
    """Mean of its second half − mean of its first half."""

    @property
    def state(self) -> str:
        if self.high >= INSIDE[1]:
            return "reached 1"
        if self.low <= INSIDE[0]:
            return "reached 0"
        return "settled" if abs(self.drift) <= DRIFT else "drifting"


def tail(history: Mapping[str, Array], share: float = TAIL) -> Tail | None:
    """None where σ(λ) was not logged."""
    logged = np.asarray(history.get("sigma_lambda", []), dtype=np.float64)
    sigma = logged[len(logged) - math.ceil(share * len(logged)) :]
    sigma = sigma[np.isfinite(sigma)]
    if not len(sigma):
        return None
    middle = len(sigma) // 2
    drift = float(sigma[middle:].mean() - sigma[:middle].mean()) if middle else 0.0
    return Tail(float(sigma.mean()), float(sigma.min()), float(sigma.max()), drift)


def settled(history: Mapping[str, Array]) -> bool:
    """Whether σ(λ) came to rest strictly between task and style: the constraint binds."""
    last = tail(history)
    return last is not None and last.state == "settled"


@dataclass(frozen=True)
class Settling:
    """σ(λ) at the end of each seed's training."""

    tails: Sequence[Tail]

    @property
    def count(self) -> int:
        return sum(tail.state == "settled" for tail in self.tails)

    @property
    def holds(self) -> bool | None:
        """Yes in every seed, no in none, otherwise open."""
        if not self.tails or 0 < self.count < len(self.tails):
            return None
        return self.count > 0

    @property
    def word(self) -> str:
        return word(self.holds)

    def states(self) -> dict[str, int]:
        """How many seeds ended how."""
        names = [tail.state for tail in self.tails]
        return {name: names.count(name) for name in dict.fromkeys(names)}


# ---------------------------------------------------------------- all checks of an α


@dataclass(frozen=True, kw_only=True)
class Checks:
    """What became of one α."""

    alpha: float
    rows: Sequence[Row]
    kept: Verdict | None
    """None, as below: there is no task-only run to compare with."""
    on_target: Verdict | None
    settling: Settling
    over_task_only: Verdict | None
    over_fixed: Sequence[Comparison]
    over_stricter: Comparison | None
    """Against the next higher α: what giving up task value bought; None for the highest."""
    over_no_mirrors: Verdict | None
    """S_sym against the same α without mirrors (Eqs. 10, 11); None where there is none."""

    @property
    def rivals(self) -> list[Comparison]:
        """The fixed weights not shown to keep less of the task."""
        return [comparison for comparison in self.over_fixed if comparison.is_rival]


def check_all(results: Results) -> list[Checks]:
    """One entry for each α, the strictest first."""
    groups = by_method(results.rows)
    baseline = task_only(results.rows)
    fixed = [rows for rows in groups.values() if rows[0].method == "fixed"]
    found: list[Checks] = []
    for label, rows in groups.items():
        alpha = rows[0].alpha
        if rows[0].method != "consmimic" or alpha is None:
            continue
        stricter = [checks for checks in found if checks.alpha > alpha and checks.rows[0].note == rows[0].note]
        unmirrored = [
            row for row in results.rows if row.method == "consmimic" and row.alpha == alpha and row.mirrored is False
        ]
        tails = [tail(record.history) for record in results.records if record.row.label == label]
        found.append(
            Checks(
                alpha=alpha,
                rows=rows,
                kept=kept(rows, baseline, alpha) if baseline else None,
                on_target=on_target(rows, baseline, alpha) if baseline else None,
                settling=Settling([last for last in tails if last is not None]),
                over_task_only=imitates_better(rows, baseline),
                over_fixed=[compare(rows, others) for others in fixed],
                over_stricter=compare(rows, stricter[-1].rows) if stricter else None,
                over_no_mirrors=exceeds(rows, unmirrored, "symmetry") if rows[0].mirrored else None,
            )
        )
    return found


# ---------------------------------------------------------------- rows


def by_method(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Label → rows by seed: task-only, fixed weights from the lightest, ConsMimic from the strictest α."""
    kinds = ("task-only", "fixed", "consmimic")
    groups: dict[str, list[Row]] = {}
    for row in sorted(
        rows,
        key=lambda r: (kinds.index(r.method), r.note, r.style_weight or 0.0, -(r.alpha or 0.0), r.seed),
    ):
        groups.setdefault(row.label, []).append(row)
    return groups


def task_only(rows: Iterable[Row]) -> list[Row]:
    """The runs that v* is the mean of."""
    return [row for row in rows if row.method == "task-only"]


def known(rows: Iterable[Row], name: str) -> list[float]:
    """A column's values that were measured."""
    return [value for row in rows if (value := getattr(row, name)) is not None]


def _values(rows: Sequence[Row]) -> list[float]:
    return [row.value for row in rows]


def _share(ratio: Interval, baseline: Sequence[Row]) -> Interval:
    if np.mean(_values(baseline)) >= 0:
        return ratio
    return Interval(2 - ratio.mean, 2 - ratio.high, 2 - ratio.low, ratio.n, ratio.level)
