"""Feet that stand keep their place; between two places they move as the source's foot did."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from consmimic.motions import rotation
from consmimic.motions.kinematics import runs
from consmimic.motions.retarget.contacts import Flags

Array = NDArray[np.float64]


def planted(track: Array, stance: Flags) -> Array:
    """The track, held at its mean in each stance; in between it leaves and arrives at rest."""  # (T, D) → (T, D)
    stands = runs(stance)
    if not stands:
        return track
    step = np.diff(track, axis=0)
    correction = np.zeros_like(track)
    for first, end in stands:
        correction[first:end] = track[first:end].mean(axis=0) - track[first:end]
    for first, end in runs(~stance):
        before, after = first - 1, end
        if before < 0:  # the clip begins in the air
            correction[first:end] = correction[after]
        elif after == len(track):
            correction[first:end] = correction[before]
        else:
            s = ((np.arange(first, end) - before) / (after - before))[:, None]
            slips = step[max(before - 1, 0)], step[min(after, len(step) - 1)]  # still in the stances
            slopes = (-(after - before) * slip for slip in slips)
            correction[first:end] = _hermite(s, correction[before], correction[after], *slopes)
    return track + correction


def swing_share(stance: Flags) -> Array:
    """0 while the foot stands, rising to 1 in the middle of a swing."""
    share = np.zeros(len(stance))
    for first, end in runs(~stance):
        begins, ends = first > 0, end < len(stance)
        s = (np.arange(first, end) - first + 1) / (end - first + 1)
        if not begins:
            s = 0.5 + 0.5 * s if ends else np.full_like(s, 0.5)
        elif not ends:
            s = 0.5 * s
        share[first:end] = np.sin(np.pi * s) ** 2
    return share


def rolling(quaternions: Array, stance: Flags, radius: float) -> Array:
    """How far a ball's centre is from its mean place in each stance because it turns on the ground.

    A point of the ball that touches the ground is at rest, so the centre moves at ω × r ẑ.
    """  # (T, 4) → (T, 3)
    turns = rotation.log(rotation.product(quaternions[1:], rotation.inverse(quaternions[:-1])))
    way = np.concatenate([np.zeros((1, 3)), np.cumsum(np.cross(turns, radius * rotation.UP), axis=0)])
    offset = np.zeros_like(way)
    stands = runs(stance)
    for first, end in stands:
        offset[first:end] = way[first:end] - way[first:end].mean(axis=0)
    for (_, before), (after, _) in itertools.pairwise(stands):
        s = ((np.arange(before, after) - before + 1) / (after - before + 1))[:, None]
        offset[before:after] = _hermite(s, offset[before - 1], offset[after], 0.0, 0.0)
    if stands:
        offset[: stands[0][0]] = offset[stands[0][0]]
        offset[stands[-1][1] :] = offset[stands[-1][1] - 1]
    return offset


def _hermite(s: Array, start: Array, end: Array, start_slope: Array | float, end_slope: Array | float) -> Array:
    return (
        (1.0 + 2.0 * s) * (1.0 - s) ** 2 * start
        + s * (1.0 - s) ** 2 * start_slope
        + s**2 * (3.0 - 2.0 * s) * end
        + s**2 * (s - 1.0) * end_slope
    )
