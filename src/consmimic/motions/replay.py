"""A clip put on its robot, frame by frame: where the bodies are, and how low the soles of its feet."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from consmimic.motions import kinematics, rotation
from consmimic.motions.forward import poses

Array = NDArray[np.float64]

_AT_ONCE = 1000
"""Frames; a robot has hundreds of points, and clips may last for hours."""
_RIM = 8
"""Points that stand for the rim of a cylinder."""


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
        return body_pos[:, self.bodies] + rotation.rotate(body_quat[:, self.bodies], self.offsets)


@dataclass(frozen=True, eq=False)
class Replay:
    """The robot in the poses of the clip. All bodies of the model, in its order."""

    fps: float
    qpos: Array  # (T, nq)
    body_pos: Array  # (T, nbody, 3)
    body_quat: Array  # (T, nbody, 4)

    @staticmethod
    def of(model: mujoco.MjModel, qpos: Array, fps: float) -> Replay:
        body_pos, body_quat = poses(model, qpos)
        return Replay(fps, qpos, body_pos, body_quat)

    def heights(self, soles: Soles) -> Array:
        """Of the lowest point of each ball above z = 0."""  # (T, P)
        heights = np.empty((len(self.qpos), len(soles.radii)))
        for start in range(0, len(heights), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            heights[part] = soles.centres(self.body_pos[part], self.body_quat[part])[..., 2] - soles.radii
        return heights

    def sole_velocities(self, soles: Soles) -> Array:
        """Of the lowest material point of each ball: 0 for a wheel that rolls."""  # (T, P, 3)
        centres = kinematics.linear_velocity(soles.centres(self.body_pos, self.body_quat), self.fps)
        spin = kinematics.angular_velocity(self.body_quat[:, np.unique(soles.bodies)], self.fps)
        spin = spin[:, np.searchsorted(np.unique(soles.bodies), soles.bodies)]
        down = np.zeros_like(centres)
        down[..., 2] = -soles.radii
        return centres + np.cross(spin, down)


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
