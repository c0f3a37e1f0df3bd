"""What forces a motion needs: joint torques, and what the ground has to give.

Assumption, since contact forces are not in a clip: the ground pushes, within the friction pyramid, at the points that
stand on it, and shares what the base needs among them by least squares; among equal solutions, the one of least force,
which is the most even one. What the ground cannot give that way is left over, as a force on the base that nothing
exerts. Torques of frames with much of it mean little.
"""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import copy
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from consmimic.motions.forward import floating_base
from consmimic.motions.replay import Replay, Soles

Array = NDArray[np.float64]

FRICTION = 0.8  # rubber on a floor
_EVENNESS = 1e-4  # of the squared forces against the squared error, both in units of weight
SMOOTHING_SECONDS = 0.04  # accelerations are those of a parabola over ± this


@dataclass(frozen=True, eq=False)
class Effort:
    """For every frame."""

    torque: Array  # (T, J), by joint as named
    joint_vel: Array  # (T, J)
    left_over: Array  # (T,), force on the base that nothing exerts, as a share of the weight; 0 for a fixed base
    seconds_per_frame: float

    @property
    def work(self) -> float:
        """∫ |τ · q̇| dt, joint by joint: what is taken back is not got back."""
        return float(np.abs(self.torque * self.joint_vel).sum() * self.seconds_per_frame)


def effort(
    model: mujoco.MjModel, replay: Replay, joint_names: tuple[str, ...], soles: Soles, standing: NDArray[np.bool_]
) -> Effort:
    """``standing``: which of the soles' points bear weight, (T, P)."""
    free = copy.copy(model)
    free.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(free)
    qvel, qacc = derivatives(free, replay.qpos, replay.fps)
    centres = soles.centres(replay.body_pos, replay.body_quat)
    base = floating_base(free)
    root = None if base is None else int(free.body_dofadr[free.body(base).id])
    dofs = [int(free.joint(name).dofadr[0]) for name in joint_names]
    weight = float(free.body_mass.sum() * np.linalg.norm(free.opt.gravity))

    torque, left_over = np.empty((len(qvel), len(dofs))), np.zeros(len(qvel))
    for frame in range(len(qvel)):
        data.qpos[:], data.qvel[:], data.qacc[:] = replay.qpos[frame], qvel[frame], qacc[frame]
        mujoco.mj_inverse(free, data)
        needed = data.qfrc_inverse.copy()
        if root is not None:
            points = np.flatnonzero(standing[frame])
            places = centres[frame, points] - soles.radii[points, None] * np.array([0.0, 0.0, 1.0])
            needed -= _ground(free, data, root, places, soles.bodies[points], needed, weight)
            left_over[frame] = np.linalg.norm(needed[root : root + 3]) / weight
        torque[frame] = needed[dofs]
    return Effort(torque, qvel[:, dofs], left_over, 1.0 / replay.fps)


def derivatives(model: mujoco.MjModel, qpos: Array, fps: float) -> tuple[Array, Array]:
    """``qvel`` and ``qacc`` from a straight line through the velocities of the frames around; level at the ends."""
    frames, reach = len(qpos), max(1, round(SMOOTHING_SECONDS * fps))
    between = np.zeros((frames + 2 * reach - 1, model.nv))  # velocities from each frame to the next
    for frame in range(frames - 1):
        mujoco.mj_differentiatePos(model, between[reach + frame], 1.0 / fps, qpos[frame], qpos[frame + 1])
    if frames > 1:
        between[:reach], between[reach + frames - 1 :] = between[reach], between[reach + frames - 2]
    times = (np.arange(2 * reach) - reach + 0.5) / fps
    windows = np.lib.stride_tricks.sliding_window_view(between, 2 * reach, axis=0)  # (T, nv, 2·reach)
    return windows.mean(axis=-1), windows @ times / (times**2).sum()


def torque_limits(model: mujoco.MjModel, joint_names: tuple[str, ...]) -> Array:
    """Of the joints' actuators, by joint; inf where the model has none."""
    limits = np.full(len(joint_names), np.inf)
    for index, name in enumerate(joint_names):
        joint, actuator = model.joint(name), model.actuator(name)
        if model.actuator_forcelimited[actuator.id]:
            limits[index] = np.abs(model.actuator_forcerange[actuator.id]).max() * abs(float(actuator.gear[0]))
        if model.jnt_actfrclimited[joint.id]:
            limits[index] = min(limits[index], np.abs(model.jnt_actfrcrange[joint.id]).max())
    return limits


def _ground(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    root: int,
    places: Array,
    bodies: NDArray[np.intp],
    needed: Array,
    weight: float,
) -> Array:
    """The generalized forces of the contacts that give the base what it needs, as far as they can."""  # (nv,)
    if not len(places):
        return np.zeros(model.nv)
    edges = np.array([[FRICTION, 0, 1], [-FRICTION, 0, 1], [0, FRICTION, 1], [0, -FRICTION, 1]]).T  # (3, 4)
    pushes = np.empty((model.nv, 4 * len(places)))
    jacobian = np.zeros((3, model.nv))
    for index, (place, body) in enumerate(zip(places, bodies, strict=True)):
        mujoco.mj_jac(model, data, jacobian, None, place, int(body))
        pushes[:, 4 * index : 4 * index + 4] = jacobian.T @ edges
    lever = max(float(np.linalg.norm(places - data.qpos[root : root + 3], axis=1).max()), 0.1)
    scale = np.array([1.0, 1.0, 1.0, 1.0 / lever, 1.0 / lever, 1.0 / lever])
    A, b = scale[:, None] * pushes[root : root + 6], scale * needed[root : root + 6] / weight
    H, g = A.T @ A + _EVENNESS * np.eye(A.shape[1]), -A.T @ b
    return pushes @ _not_negative(H, g) * weight


def _not_negative(H: Array, g: Array) -> Array:
    """argmin ½ xᵀHx + gᵀx over x ≥ 0."""
    count = len(g)
    found, factor = np.zeros(count), np.zeros((count, count + 7))
    low, high = np.zeros(count), np.full(count, 1e6)
    mujoco.mju_boxQP(found, factor, np.zeros(count, dtype=np.int32), H, g, low, high)
    return found
