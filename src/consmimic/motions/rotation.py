"""Rotations of whole motions: quaternions wxyz as numpy arrays over the last axis, for files and generators.

Those of running simulations are torch tensors: :mod:`consmimic.rotations`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

UP = np.array([0.0, 0.0, 1.0])


def product(a: Array, b: Array) -> Array:
    """First b, then a."""  # (…, 4), (…, 4) → (…, 4)
    aw, av, bw, bv = a[..., :1], a[..., 1:], b[..., :1], b[..., 1:]
    scalar = aw * bw - (av * bv).sum(axis=-1, keepdims=True)
    return np.concatenate([scalar, aw * bv + bw * av + np.cross(av, bv)], axis=-1)


def inverse(quaternion: Array) -> Array:
    return quaternion * np.array([1.0, -1.0, -1.0, -1.0])


def rotate(quaternion: Array, vector: Array) -> Array:
    """A vector of the turned frame, as the world sees it."""  # (…, 4), (…, 3) → (…, 3)
    w, axis = quaternion[..., :1], quaternion[..., 1:]
    turned = 2.0 * np.cross(axis, vector)
    return vector + w * turned + np.cross(axis, turned)


def about(axis: Array, angle: Array) -> Array:
    """Turn by an angle about a unit axis."""  # (3,), (…,) → (…, 4)
    half = 0.5 * np.asarray(angle)[..., None]
    return np.concatenate([np.cos(half), np.sin(half) * axis], axis=-1)


def from_yaw(yaw: Array) -> Array:
    return about(UP, yaw)


def from_yrp(yaw: Array, roll: Array, pitch: Array) -> Array:
    """Turn about y by pitch, then about the fixed x by roll, then about the fixed z by yaw."""
    lean = about(np.array([1.0, 0.0, 0.0]), roll)
    return product(product(from_yaw(yaw), lean), about(np.array([0.0, 1.0, 0.0]), pitch))


def yrp(quaternion: Array) -> tuple[Array, Array, Array]:
    """The angles that :func:`from_yrp` takes: well defined however far a foot points down, for its axis is level."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    yaw = np.arctan2(2.0 * (w * z - x * y), 1.0 - 2.0 * (x * x + z * z))
    roll = np.arcsin(np.clip(2.0 * (y * z + w * x), -1.0, 1.0))
    pitch = np.arctan2(2.0 * (w * y - x * z), 1.0 - 2.0 * (x * x + y * y))
    return yaw, roll, pitch


def yaw_of(quaternion: Array) -> Array:
    return yrp(quaternion)[0]


def heading(quaternion: Array) -> Array:
    """Where the x axis points, seen from above."""  # (…, 4) → (…,)
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    return np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def angle_between(a: Array, b: Array) -> Array:
    """Angle of the rotation from a to b, in [0, π]."""  # (…, 4), (…, 4) → (…,)
    return 2.0 * np.arccos(np.clip(np.abs((a * b).sum(axis=-1)), 0.0, 1.0))


def exp(rotation_vector: Array) -> Array:
    angle = np.linalg.norm(rotation_vector, axis=-1, keepdims=True)
    share = 0.5 * np.sinc(angle / (2.0 * np.pi))  # sin(angle / 2) / angle
    return np.concatenate([np.cos(0.5 * angle), share * rotation_vector], axis=-1)


def log(quaternion: Array) -> Array:
    """Rotation vector, of at most half a turn."""  # (…, 4) → (…, 3)
    shorter = np.where(quaternion[..., :1] < 0.0, -quaternion, quaternion)
    sine = np.linalg.norm(shorter[..., 1:], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, shorter[..., :1])
    return shorter[..., 1:] * np.where(sine > 1e-12, angle / np.maximum(sine, 1e-12), 2.0)


def unwound(quaternions: Array) -> Array:
    """Signs chosen so that neighbours in time are near each other."""  # (T, 4) → (T, 4)
    flips = np.sign((quaternions[1:] * quaternions[:-1]).sum(axis=-1))
    signs = np.concatenate([[1.0], np.cumprod(np.where(flips == 0.0, 1.0, flips))])
    return quaternions * signs[:, None]


def mean_angle(angles: Array) -> float:
    return float(np.arctan2(np.sin(angles).mean(), np.cos(angles).mean()))
