"""Loops unrolled, and jumps healed: where a loop closes, and where a clip was cut together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from consmimic.motions import rotation
from consmimic.motions.retarget.source import SourceMotion

Array = NDArray[np.float64]


def period_of(motion: SourceMotion) -> int:
    """Frames after which a loop repeats: where its last frame is its first again, one less than there are.

    Files do not say which; the period is taken that continues the motion best.
    """
    frames = len(motion)
    doubled = {period: _unrolled(motion, 2, period) for period in (frames - 1, frames)}
    return min(doubled, key=lambda period: steps_off(_all_points(doubled[period]))[period - 1])


def unrolled(motion: SourceMotion, laps: int) -> tuple[SourceMotion, int]:
    """The loop run through `laps` times, each lap carried on to where the last one ended; and the period."""
    period = period_of(motion)
    return _unrolled(motion, laps, period), period


def jumps(motion: SourceMotion) -> Array:
    """:func:`steps_off` of all points of the motion."""
    return steps_off(_all_points(motion))


def steps_off(points: Array) -> Array:
    """How far the step from each frame to the next is off the mean of those beside it, at the worst point."""
    step = np.diff(points, axis=0)  # (T, P, 3) → (T − 1,)
    beside = np.pad(step, ((1, 1), (0, 0), (0, 0)), mode="edge")
    return np.linalg.norm(step - 0.5 * (beside[:-2] + beside[2:]), axis=-1).max(axis=-1)


def healed(motion: SourceMotion, at: NDArray[np.intp], *, window: float) -> SourceMotion:
    """Close the jump after each frame of `at`: each side goes half the way, over `window` seconds."""
    reach = max(2, round(window * motion.fps))

    def position(track: Array) -> Array:
        return _closed(track, at, reach, gap=_linear_gap, shift=np.add)

    def turning(track: Array) -> Array:
        return _closed(track, at, reach, gap=_angular_gap, shift=_turned)

    return motion.with_arrays(
        position(motion.root_pos),
        turning(motion.root_quat),
        {name: position(track) for name, track in motion.points.items()},
        {name: turning(track) for name, track in motion.turns.items()},
    )


def _unrolled(motion: SourceMotion, laps: int, period: int) -> SourceMotion:
    """`laps` × `period` frames and the first of the next lap."""
    ahead, turn = _stride(motion, period)
    copies: dict[str, list[Array]] = {}
    spot, heading = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    for lap in range(laps + 1):
        frames = slice(0, period if lap < laps else 1)
        for name, track in _positions(motion).items():
            copies.setdefault(name, []).append(spot + rotation.rotate(heading, track[frames]))
        for name, track in _orientations(motion).items():
            copies.setdefault(name, []).append(
                rotation.product(np.broadcast_to(heading, track[frames].shape), track[frames])
            )
        spot, heading = spot + rotation.rotate(heading, ahead), rotation.product(heading, turn)
    joined = {name: np.concatenate(parts) for name, parts in copies.items()}
    return motion.with_arrays(
        joined["root_pos"],
        joined["root_quat"],
        {name: joined[name] for name in motion.points},
        {name: joined[f"turn {name}"] for name in motion.turns},
    )


def _stride(motion: SourceMotion, period: int) -> tuple[Array, Array]:
    """How one lap moves the world: p → ahead + turn p. Level: height and lean come back to what they were."""
    last = min(period, len(motion) - 1)
    turn = rotation.from_yaw(rotation.yaw_of(motion.root_quat[last]) - rotation.yaw_of(motion.root_quat[0]))
    if period > last:  # one more step, like those beside it
        step = 0.5 * (motion.root_pos[1] - motion.root_pos[0] + motion.root_pos[-1] - motion.root_pos[-2])
    else:
        step = np.zeros(3)
    ahead = motion.root_pos[last] + step - rotation.rotate(turn, motion.root_pos[0])
    return ahead * np.array([1.0, 1.0, 0.0]), turn


def _positions(motion: SourceMotion) -> dict[str, Array]:
    return {"root_pos": motion.root_pos, **motion.points}


def _orientations(motion: SourceMotion) -> dict[str, Array]:
    return {"root_quat": motion.root_quat, **{f"turn {name}": track for name, track in motion.turns.items()}}


def _all_points(motion: SourceMotion) -> Array:
    return np.stack(list(_positions(motion).values()), axis=1)


def _closed(
    track: Array,
    at: NDArray[np.intp],
    reach: int,
    *,
    gap: Callable[[Array, int], Array],
    shift: Callable[[Array, Array], Array],
) -> Array:
    frames = np.arange(len(track))
    for frame in at:
        distance = frames - (frame + 0.5)
        share = 0.5 * np.cos(0.5 * np.pi * np.clip(distance / reach, -1.0, 1.0)) ** 2 * -np.sign(distance)
        track = shift(track, share[:, None] * gap(track, int(frame)))
    return track


def _linear_gap(track: Array, frame: int) -> Array:
    """Of the step after a frame: what it has more than the mean of the two beside it."""
    step = np.diff(track, axis=0)
    return step[frame] - 0.5 * (step[max(frame - 1, 0)] + step[min(frame + 1, len(step) - 1)])


def _angular_gap(track: Array, frame: int) -> Array:
    step = rotation.log(rotation.product(track[1:], rotation.inverse(track[:-1])))
    return step[frame] - 0.5 * (step[max(frame - 1, 0)] + step[min(frame + 1, len(step) - 1)])


def _turned(track: Array, rotation_vectors: Array) -> Array:
    return rotation.product(rotation.exp(rotation_vectors), track)
