"""The ground under a motion, and when its feet stand on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from consmimic.motions import kinematics
from consmimic.motions.kinematics import runs
from consmimic.motions.retarget.source import SourceMotion

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

GRAVITY = 9.81
_STILL_SHARE = 0.2
"""This share of all samples of touching points, the slowest, are taken to be on the ground."""
_HYSTERESIS = 2.0
"""A foot that stands may be this many times higher and faster before it counts as lifted."""
_BRIDGED_SECONDS = 0.06
"""A foot that leaves the ground for less time does not."""
_SHORTEST_SECONDS = 0.08
"""A foot that stands for less time does not."""


@dataclass(frozen=True)
class Ground:
    """What the slowest samples say. Recorded ground may tilt along the way; what is made of that is `slope`."""

    slope: float  # m/s, that the ground under the source rises with time
    height_noise: float  # m
    still_speed: float  # m/s


def levelled(motion: SourceMotion) -> tuple[SourceMotion, Ground]:
    """The motion with its ground at height 0."""
    points = motion.touching()
    speed = np.linalg.norm(kinematics.linear_velocity(points, motion.fps), axis=-1)
    still = speed <= np.quantile(speed, _STILL_SHARE)
    times = np.broadcast_to(np.arange(len(motion))[:, None] / motion.fps, speed.shape)[still]
    heights = points[still][:, 2] - motion.touch_radius
    slope = 0.0 if motion.loops else _slope(times, heights)
    offset = float(np.median(heights - slope * times))
    down = np.zeros((len(motion), 3))
    down[:, 2] = offset + slope * np.arange(len(motion)) / motion.fps
    level = motion.with_arrays(
        motion.root_pos - down,
        motion.root_quat,
        {name: track - down for name, track in motion.points.items()},
        motion.turns,
    )
    spread = heights - slope * times - offset
    noise = 1.4826 * float(np.median(np.abs(spread)))  # of a normal distribution this is its deviation
    return level, Ground(slope, noise, float(np.median(speed[still])))


def stances(motion: SourceMotion, ground: Ground, *, leg_length: float, slowed: float = 1.0) -> dict[str, Flags]:
    """For each foot, the frames in which it stands: low and slow, with hysteresis. Ground at height 0."""
    height = motion.touch_height + 1.5 * ground.height_noise
    speed = 0.06 * np.sqrt(GRAVITY * leg_length) / slowed + 1.5 * ground.still_speed
    found = {}
    for foot, points in motion.feet.items():
        touches = np.zeros(len(motion), dtype=bool)
        for point in points:
            track = motion.point(point)
            heights = track[:, 2] - motion.touch_radius
            speeds = np.linalg.norm(kinematics.linear_velocity(track, motion.fps), axis=-1)
            starts = (heights < height) & (speeds < speed)
            stays = (heights < _HYSTERESIS * height) & (speeds < _HYSTERESIS * speed)
            touches |= with_hysteresis(starts, stays)
        found[foot] = without_short(touches, motion.fps)
    return found


def with_hysteresis(starts: Flags, stays: Flags) -> Flags:
    """The runs of `stays` in which `starts` holds somewhere."""
    kept = np.zeros_like(stays)
    for first, end in runs(stays):
        kept[first:end] = starts[first:end].any()
    return kept


def without_short(flags: Flags, fps: float) -> Flags:
    """Without gaps and then without runs that are too short; those that the ends cut off stay as they are."""
    flags = flags.copy()
    for wanted, seconds in ((False, _BRIDGED_SECONDS), (True, _SHORTEST_SECONDS)):
        for first, end in runs(flags == wanted):
            if first > 0 and end < len(flags) and (end - first) / fps < seconds:
                flags[first:end] = not wanted
    return flags


def _slope(times: Array, heights: Array) -> float:
    """Median of the slopes between pairs of samples a good part of the motion apart; 0 where it explains little."""
    order = np.argsort(times)
    times, heights = times[order], heights[order]
    half = len(times) // 2
    apart = times[half:] - times[: len(times) - half]
    far = apart > 0.25 * (times[-1] - times[0])
    if far.sum() < 10:
        return 0.0
    slope = float(np.median((heights[half:] - heights[: len(times) - half])[far] / apart[far]))
    spread = [float(np.median(np.abs(h - np.median(h)))) for h in (heights, heights - slope * times)]
    return slope if spread[1] < 0.6 * spread[0] else 0.0
