"""Time: interpolation, differences and stretches of sampled motions. Quaternions are wxyz."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from consmimic.motions import rotation

Array = NDArray[np.float64]


def interpolate(samples: Array, frames: Array) -> Array:
    """Linear interpolation at fractional frame numbers."""  # (T, …), (K,) → (K, …)
    lower, fraction = _bracket(samples, frames)
    return samples[lower] + fraction * (samples[np.minimum(lower + 1, len(samples) - 1)] - samples[lower])


def slerp(quaternions: Array, frames: Array) -> Array:
    """Spherical interpolation, along the shorter way, at fractional frame numbers."""  # (T, …, 4), (K,) → (K, …, 4)
    lower, fraction = _bracket(quaternions, frames)
    a, b = quaternions[lower], quaternions[np.minimum(lower + 1, len(quaternions) - 1)]
    cosine = (a * b).sum(axis=-1, keepdims=True)
    b = np.where(cosine < 0, -b, b)
    angle = np.arccos(np.clip(np.abs(cosine), 0.0, 1.0))
    small = angle < 1e-6
    sine = np.where(small, 1.0, np.sin(angle))
    weight_a = np.where(small, 1.0 - fraction, np.sin((1.0 - fraction) * angle) / sine)
    weight_b = np.where(small, fraction, np.sin(fraction * angle) / sine)
    mixed = weight_a * a + weight_b * b
    return mixed / np.linalg.norm(mixed, axis=-1, keepdims=True)


def linear_velocity(positions: Array, fps: float) -> Array:
    """Central differences, one-sided at the ends."""  # (T, …) → (T, …)
    if len(positions) == 1:
        return np.zeros_like(positions)
    return np.gradient(positions, 1.0 / fps, axis=0)


def angular_velocity(quaternions: Array, fps: float) -> Array:
    """World-frame angular velocity by central differences."""  # (T, …, 4) → (T, …, 3)
    frames = len(quaternions)
    before, after = np.maximum(np.arange(frames) - 1, 0), np.minimum(np.arange(frames) + 1, frames - 1)
    turn = rotation.product(quaternions[after], rotation.inverse(quaternions[before]))
    span = ((after - before) / fps).reshape(-1, *[1] * (quaternions.ndim - 1))
    return rotation.log(turn) / np.maximum(span, 1e-12)


def runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First frame of each run of true ones and the frame after its last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def _bracket(samples: Array, frames: Array) -> tuple[NDArray[np.intp], Array]:
    """The frame at or before each time, and how far beyond it, shaped to multiply samples."""
    lower = np.clip(np.floor(frames).astype(np.intp), 0, len(samples) - 1)
    fraction = np.clip(frames - lower, 0.0, 1.0)
    return lower, fraction.reshape(-1, *[1] * (samples.ndim - 1))
