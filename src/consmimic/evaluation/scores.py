"""The scores of the paper's evaluation: S_imit (Eq. 12), S_sym (Eq. 13), W_mech and T_air (under Q4); and which
feet step together, which tells a trot from other gaits.

Each is a pure function of recorded arrays, time first. Their meaning and their limits: docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from consmimic.errors import UserError

Array = NDArray[np.float64]

ETA: Mapping[str, float] = MappingProxyType({"manipulation": 20.0, "locomotion": 100.0})
"""η of Eqs. 12 and 13, from the text below Eq. 12. It goes with one window, rate and set of joints."""


def imitation_score(distance: ArrayLike, eta: float) -> Array:
    """S_imit = max{0, 1 − DTW(τ^π, τ^M) / η}  (Eq. 12), for each distance given."""
    return np.maximum(0.0, 1.0 - _distances(distance) / _positive("eta", eta))


def symmetry_score(distances: ArrayLike, eta: float) -> Array:
    """S_sym = max{0, 1 − (1/|G|) Σ_g DTW(τ^π, L_g(τ^π)) / η}  (Eq. 13): distances (|G|, ...) -> (...).

    G leaves out the identity, as in Eqs. 10 and 11: its distance is 0 and would only raise the score.
    """
    D = _distances(distances)
    if D.ndim == 0:
        raise UserError("distances is one number; expected (|G|, ...), one distance for each mirror g in G")
    return np.maximum(0.0, 1.0 - D.mean(axis=0) / _positive("eta", eta))


def mechanical_work(torque: ArrayLike, joint_velocity: ArrayLike, timestep: float, *, absolute: bool = False) -> Array:
    """W_mech = Σ_t τ_t · q̇_t Δt in joules over one episode: (T, ..., joints) -> (...).

    As the paper writes it: braking counts as negative. ``absolute`` sums |τ_j q̇_j| Δt over time and joints
    instead, for motors that recover nothing. Steps after an episode's end: cut off, or with zero torque.
    """
    tau, velocity = np.asarray(torque, dtype=np.float64), np.asarray(joint_velocity, dtype=np.float64)
    if tau.shape != velocity.shape or tau.ndim < 2:
        raise UserError(
            f"torque has shape {tau.shape} and joint_velocity {velocity.shape}; expected one (T, ..., joints)"
        )
    if not (np.isfinite(tau).all() and np.isfinite(velocity).all()):
        raise UserError("torque or joint_velocity holds NaN or infinity")
    power = tau * velocity  # (T, ..., joints)
    return (np.abs(power) if absolute else power).sum(axis=(0, -1)) * _positive("timestep", timestep)


def swing_durations(contact: ArrayLike, timestep: float) -> Array:
    """Seconds in the air of every completed swing, (K,), foot by foot: contact (T, feet) of one episode.

    A swing counts when the foot is seen both leaving and touching the ground: one that is cut off by the
    start or the end of the recording does not.
    """
    C = np.asarray(contact)
    if C.ndim != 2 or C.dtype != np.bool_:
        raise UserError(f"contact has shape {C.shape} and type {C.dtype}; expected booleans (T, feet)")
    frames_off = [np.diff(np.flatnonzero(foot)) - 1 for foot in C.T]  # between one contact and the next
    steps = np.concatenate(frames_off) if frames_off else np.empty(0)
    return steps[steps > 0] * _positive("timestep", timestep)


def mean_air_time(contact: ArrayLike, timestep: float) -> float:
    """T_air, the average foot-air time of a step in seconds, or NaN without one: contact (T, feet).

    All steps of all feet weigh the same. Over several episodes, average the joined ``swing_durations``.
    """
    durations = swing_durations(contact, timestep)
    return float(durations.mean()) if len(durations) else float("nan")


def touch_downs(contact: ArrayLike, *, shortest_swing: int = 1) -> NDArray[np.intp]:
    """The frames in which a foot comes down, (K,): contact (T,) of one foot.

    Only after at least ``shortest_swing`` frames in the air: a bounce is no step.
    """
    C = np.asarray(contact)
    if C.ndim != 1 or C.dtype != np.bool_:
        raise UserError(f"contact has shape {C.shape} and type {C.dtype}; expected booleans (T,)")
    on_ground = np.flatnonzero(C)
    frames_off = np.diff(on_ground, prepend=-1) - 1  # before each frame on the ground
    return on_ground[frames_off >= _positive("shortest_swing", shortest_swing)]


def phase_difference(contact_a: ArrayLike, contact_b: ArrayLike, *, shortest_swing: int = 1) -> float:
    """How far apart two feet step, in cycles, 0 (together) to 0.5 (in turns): contact (T,) of each.

    The circular median of where b's touch-downs lie in the cycles of a, which go from touch-down to touch-down.
    NaN where a foot comes down fewer than three times, or b never within a cycle of a.
    """
    a, b = (touch_downs(contact, shortest_swing=shortest_swing) for contact in (contact_a, contact_b))
    if min(len(a), len(b)) < 3:
        return float("nan")
    cycle = np.searchsorted(a, b, side="right") - 1
    within = (cycle >= 0) & (cycle < len(a) - 1)
    if not within.any():
        return float("nan")
    begin, end = a[cycle[within]], a[cycle[within] + 1]
    offset = circular_median((b[within] - begin) / (end - begin))
    return min(offset, 1.0 - offset)


def circular_median(phases: ArrayLike) -> float:
    """The phase, of those given in [0, 1), with the smallest sum of distances to the others around the circle."""
    x = np.asarray(phases, dtype=np.float64)
    apart = np.abs((x[:, None] - x + 0.5) % 1.0 - 0.5)
    return float(x[apart.sum(axis=1).argmin()])


def _distances(values: ArrayLike) -> Array:
    distances = np.asarray(values, dtype=np.float64)
    if distances.size == 0 or not np.isfinite(distances).all() or (distances < 0).any():
        raise UserError(f"distances must be finite and >= 0, and at least one; found {distances}")
    return distances


def _positive(name: str, value: float) -> float:
    if not (np.isfinite(value) and value > 0):
        raise UserError(f"{name} must be finite and > 0, found {value}")
    return value
