"""A motion at another frame rate, without what is faster than a limb moves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from consmimic.motions import rotation
from consmimic.motions.retarget.source import SourceMotion

Array = NDArray[np.float64]


def resampled(motion: SourceMotion, times: Array, *, fps: float, cutoff: float | None) -> SourceMotion:
    """At the times given (s after the first frame), by cubic interpolation, then low-passed."""
    frames = times * motion.fps

    def position(track: Array) -> Array:
        smooth = _cubic(track, frames)
        return smooth if cutoff is None else low_pass(smooth, fps, cutoff)

    def turning(track: Array) -> Array:
        mixed = position(rotation.unwound(track))
        return mixed / np.linalg.norm(mixed, axis=-1, keepdims=True)

    moved = motion.with_arrays(
        position(motion.root_pos),
        turning(motion.root_quat),
        {name: position(track) for name, track in motion.points.items()},
        {name: turning(track) for name, track in motion.turns.items()},
    )
    return moved.at_rate(fps)


def repeats(motion: SourceMotion) -> int:
    """How many times each frame comes in a row: more than once in files that were blown up to a higher rate."""
    moves = np.any(np.abs(np.diff(motion.touching(), axis=0)) > 1e-9, axis=(1, 2))
    changes = np.flatnonzero(moves) + 1
    if len(changes) < 3:
        return 1
    return int(np.gcd.reduce(np.diff(changes)))


def without_repeats(motion: SourceMotion, copies: int) -> SourceMotion:
    """One of each, at the rate at which they are new."""
    if copies == 1:
        return motion
    moves = np.any(np.abs(np.diff(motion.touching(), axis=0)) > 1e-9, axis=(1, 2))
    first = int(np.flatnonzero(moves)[0] + 1) % copies
    frames = slice(first, None, copies)
    return motion.with_arrays(
        motion.root_pos[frames],
        motion.root_quat[frames],
        {name: track[frames] for name, track in motion.points.items()},
        {name: track[frames] for name, track in motion.turns.items()},
    ).at_rate(motion.fps / copies)


def low_pass(track: Array, fps: float, cutoff: float) -> Array:
    """1/(1 + (f/cutoff)⁴) of each frequency, without delay: a Butterworth there and back, as gait laboratories do."""
    frames = len(track)
    start, end = 2.0 * track[:1] - track[:0:-1], 2.0 * track[-1:] - track[-2::-1]  # odd about both ends
    extended = np.concatenate([start, track, end])
    trend = np.linspace(extended[0], extended[-1], len(extended))  # the transform takes the signal to be periodic
    spectrum = np.fft.rfft(extended - trend, axis=0)
    frequency = np.fft.rfftfreq(len(extended), 1.0 / fps)
    kept = 1.0 / (1.0 + (frequency / cutoff) ** 4)
    filtered = np.fft.irfft(spectrum * kept[:, None], n=len(extended), axis=0) + trend
    return filtered[frames - 1 : 2 * frames - 1]


def _cubic(track: Array, frames: Array) -> Array:
    """Through the samples, with the slopes of their central differences."""  # (T, D), (K,) → (K, D)
    slope = np.gradient(track, axis=0)
    lower = np.clip(np.floor(frames + 1e-9).astype(np.intp), 0, len(track) - 2)
    s = np.clip(frames - lower, 0.0, 1.0)[:, None]
    a, b, da, db = track[lower], track[lower + 1], slope[lower], slope[lower + 1]
    return (
        (1.0 + 2.0 * s) * (1.0 - s) ** 2 * a
        + s * (1.0 - s) ** 2 * da
        + s**2 * (3.0 - 2.0 * s) * b
        + s**2 * (s - 1.0) * db
    )
