"""A clip put on its robot, frame by frame: poses in MuJoCo's coordinates, where the bodies then are, what is low."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.motions import kinematics
from consmimic.motions.clip import Clip

Array = NDArray[np.float64]

_RIM = 8
"""Points that stand for the rim of a cylinder."""


def floating_base(model: mujoco.MjModel) -> str | None:
    """The body that moves freely in the world; None where the robot is bolted down."""
    free = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    return str(model.body(int(model.jnt_bodyid[free[0]])).name) if len(free) else None


def generalized_positions(model: mujoco.MjModel, clip: Clip, joint_names: Sequence[str]) -> Array:
    """``qpos`` of every frame; joints that are not named stay where the model has them."""  # (T, nq)
    joint_pos = clip.with_joints(tuple(joint_names)).joint_pos
    base = floating_base(model)
    if base is None:
        return placed(model, joint_names, joint_pos)
    if base not in clip.body_names:
        raise UserError(
            f"clip '{clip.source}' does not say where the robot is: it lacks body '{base}'; "
            f"it has {', '.join(clip.body_names) or 'no bodies'}"
        )
    column = clip.body(base)
    return placed(model, joint_names, joint_pos, clip.body_pos_w[:, column], clip.body_quat_w[:, column])


def placed(
    model: mujoco.MjModel,
    joint_names: Sequence[str],
    joint_pos: Array,  # (T, J)
    base_pos: Array | None = None,  # (T, 3), of a floating base
    base_quat: Array | None = None,  # (T, 4)
) -> Array:
    """``qpos`` of every frame."""  # (T, nq)
    qpos = np.tile(model.qpos0, (len(joint_pos), 1))
    qpos[:, [int(model.joint(name).qposadr[0]) for name in joint_names]] = joint_pos
    base = floating_base(model)
    if base is not None and base_pos is not None and base_quat is not None:
        start = int(model.jnt_qposadr[model.body_jntadr[model.body(base).id]])
        qpos[:, start : start + 7] = np.concatenate([base_pos, base_quat], axis=1)
    return qpos


@dataclass(frozen=True, eq=False)
class Soles:
    """Balls that stand for the shapes of some bodies: a round foot is one, a box has one of no size at each corner."""

    bodies: NDArray[np.intp]  # (P,), ids in the model
    offsets: Array  # (P, 3), in the body's frame
    radii: Array  # (P,)

    @staticmethod
    def of(model: mujoco.MjModel, bodies: Sequence[int]) -> Soles:
        """Of everything on these bodies that can touch."""
        ids, offsets, radii = [], [], []
        for body in bodies:
            first = int(model.body_geomadr[body])
            for geom in range(first, first + int(model.body_geomnum[body])):
                if not (model.geom_contype[geom] or model.geom_conaffinity[geom]):
                    continue
                points, radius = _shape(model, geom)
                turned = np.empty(9)
                mujoco.mju_quat2Mat(turned, model.geom_quat[geom])
                offsets += list(model.geom_pos[geom] + points @ turned.reshape(3, 3).T)
                ids += [body] * len(points)
                radii += [radius] * len(points)
        return Soles(np.array(ids, dtype=np.intp), np.array(offsets).reshape(-1, 3), np.array(radii))

    def centres(self, body_pos: Array, body_quat: Array) -> Array:
        """World positions, (T, P, 3), from those of all bodies of the model."""
        return body_pos[:, self.bodies] + rotated(body_quat[:, self.bodies], self.offsets)


@dataclass(frozen=True, eq=False)
class Replay:
    """The robot in the poses of the clip. All bodies of the model, in its order."""

    fps: float
    qpos: Array  # (T, nq)
    body_pos: Array  # (T, nbody, 3)
    body_quat: Array  # (T, nbody, 4)

    @staticmethod
    def of(model: mujoco.MjModel, qpos: Array, fps: float) -> Replay:
        data = mujoco.MjData(model)
        body_pos, body_quat = np.empty((len(qpos), model.nbody, 3)), np.empty((len(qpos), model.nbody, 4))
        for frame, pose in enumerate(qpos):
            data.qpos[:] = pose
            mujoco.mj_kinematics(model, data)
            body_pos[frame], body_quat[frame] = data.xpos, data.xquat
        return Replay(fps, qpos, body_pos, body_quat)

    def heights(self, soles: Soles) -> Array:
        """Of the lowest point of each ball above z = 0."""  # (T, P)
        return soles.centres(self.body_pos, self.body_quat)[..., 2] - soles.radii

    def sole_velocities(self, soles: Soles) -> Array:
        """Of the lowest material point of each ball: 0 for a wheel that rolls."""  # (T, P, 3)
        centres = kinematics.linear_velocity(soles.centres(self.body_pos, self.body_quat), self.fps)
        spin = kinematics.angular_velocity(self.body_quat[:, np.unique(soles.bodies)], self.fps)
        spin = spin[:, np.searchsorted(np.unique(soles.bodies), soles.bodies)]
        down = np.zeros_like(centres)
        down[..., 2] = -soles.radii
        return centres + np.cross(spin, down)


def rotated(quaternions: Array, vectors: Array) -> Array:
    """Vectors of the turned frame, as the world sees them."""  # (…, 4), (…, 3) → (…, 3)
    axis = quaternions[..., 1:]
    turned = 2.0 * np.cross(axis, vectors)
    return vectors + quaternions[..., :1] * turned + np.cross(axis, turned)


def _shape(model: mujoco.MjModel, geom: int) -> tuple[Array, float]:
    """Points in the geom's frame, and the radius of the ball about each."""
    kind, size = int(model.geom_type[geom]), model.geom_size[geom]
    shapes = mujoco.mjtGeom
    if kind == shapes.mjGEOM_SPHERE:
        return np.zeros((1, 3)), float(size[0])
    if kind == shapes.mjGEOM_CAPSULE:
        return np.array([[0.0, 0.0, -size[1]], [0.0, 0.0, size[1]]]), float(size[0])
    if kind == shapes.mjGEOM_CYLINDER:
        turn = np.arange(_RIM) * 2.0 * np.pi / _RIM
        rim = np.stack([size[0] * np.cos(turn), size[0] * np.sin(turn), np.full(_RIM, size[1])], axis=1)
        return np.concatenate([rim, rim * [1.0, 1.0, -1.0]]), 0.0
    if kind == shapes.mjGEOM_ELLIPSOID:
        return np.concatenate([np.diag(size), -np.diag(size)]), 0.0
    if kind == shapes.mjGEOM_MESH:
        mesh = int(model.geom_dataid[geom])
        first = int(model.mesh_vertadr[mesh])
        return model.mesh_vert[first : first + int(model.mesh_vertnum[mesh])].astype(np.float64), 0.0
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=np.float64)
    return corners * size, 0.0
