"""The cycle of a periodic motion, found in the joints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SHORTEST_SECONDS, LONGEST_SECONDS = 0.2, 2.5
"""Of a gait cycle: a small dog's gallop, a slow walk."""
_REPEATS = 0.25
"""A motion comes again where it differs from itself by less than this share of how unlike itself it can be."""


def cycle_frames(joint_pos: Array, fps: float) -> int | None:
    """After how many frames the joints are where they were, for the first time; None where they never are.

    The mean squared change after a lag is 0 at a cycle, and twice the variance where nothing comes again.
    """  # (T, J)
    moving = joint_pos - joint_pos.mean(axis=0)
    variance = float((moving**2).sum(axis=1).mean())
    first, last = max(2, round(SHORTEST_SECONDS * fps)), min(round(LONGEST_SECONDS * fps), (2 * len(moving)) // 3)
    if variance < 1e-8 or last <= first + 1:
        return None
    lags = np.arange(first - 1, last + 1)
    unlike = np.array([((moving[lag:] - moving[:-lag]) ** 2).sum(axis=1).mean() for lag in lags]) / (2.0 * variance)
    lowest = (unlike[1:-1] <= unlike[:-2]) & (unlike[1:-1] < unlike[2:]) & (unlike[1:-1] < _REPEATS)
    return int(lags[1:-1][lowest][0]) if lowest.any() else None


def over_a_cycle(values: Array, cycle: int) -> Array:
    """Means over every stretch of that many frames."""  # (T, d) → (T − cycle + 1, d); at least one
    cycle = min(max(cycle, 1), len(values))
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    return (sums[cycle:] - sums[:-cycle]) / cycle
