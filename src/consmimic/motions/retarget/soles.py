"""What of a robot's foot touches the ground, and where a foot is that rolls over heel and toe without slipping."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.motions import rotation

Array = NDArray[np.float64]

_FLAT = 0.003
"""m. Corners this little above the lowest one belong to the sole."""


@dataclass(frozen=True, eq=False)
class Sole:
    """A flat sole, or a ball: then all corners are its centre. In the frame of the foot's body."""

    corners: Array  # (K, 3)
    radius: float  # of the edge around the corners

    @staticmethod
    def of(model: mujoco.MjModel, body: str) -> Sole:
        """From the shapes of the body that touch: spheres, capsules, boxes, cylinders."""
        first = model.body(body).geomadr[0]
        geoms = [
            geom
            for geom in range(first, first + model.body(body).geomnum[0])
            if model.geom_contype[geom] or model.geom_conaffinity[geom]
        ]
        if not geoms:
            raise UserError(f"'{body}' is no foot: nothing of it touches")
        corners, radii = (
            np.concatenate(parts) for parts in zip(*(_corners(model, geom) for geom in geoms), strict=True)
        )
        bottom = corners[:, 2] - radii
        lowest = bottom < bottom.min() + _FLAT
        radius = float(radii[lowest].max())
        return Sole(corners[lowest], radius)

    @property
    def height(self) -> float:
        """Of the body's origin above the ground while the sole is flat on it."""
        return float(self.radius - self.corners[:, 2].min())

    @property
    def heel(self) -> float:
        """How far ahead of the body's origin."""
        return float(self.corners[:, 0].min())

    @property
    def toe(self) -> float:
        return float(self.corners[:, 0].max())

    @property
    def centre(self) -> Array:
        """Of a ball."""
        return self.corners.mean(axis=0)

    def rolled_forward(self, pitch: Array) -> Array:
        """How far ahead of its place when flat the body's origin is, the toe (pitch > 0) or heel staying in contact."""
        edge = np.where(pitch > 0.0, self.toe, self.heel)
        below = self.radius - self.height
        return edge + self.radius * pitch - (np.cos(pitch) * edge + np.sin(pitch) * below)

    def resting_height(self, pitch: Array, roll: Array) -> Array:
        """Of the body's origin, when the lowest corner touches the ground."""
        turn = rotation.from_yrp(np.zeros_like(pitch), roll, pitch)
        return self.radius - rotation.rotate(turn[..., None, :], self.corners)[..., 2].min(axis=-1)

    def lowest(self, position: Array, quaternion: Array) -> Array:
        """Height of the lowest corner's edge above the ground."""  # (T, 3), (T, 4) → (T,)
        return self.world_corners(position, quaternion)[..., 2].min(axis=-1) - self.radius

    def world_corners(self, position: Array, quaternion: Array) -> Array:
        return position[..., None, :] + rotation.rotate(quaternion[..., None, :], self.corners)  # (T, K, 3)


def _corners(model: mujoco.MjModel, geom: int) -> tuple[Array, Array]:
    """Points, in the body's frame, whose surroundings within a radius the shape is spanned by."""
    size, kind = model.geom_size[geom], model.geom_type[geom]
    shapes = mujoco.mjtGeom
    ends = np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
    if kind == shapes.mjGEOM_SPHERE:
        points, radius = np.zeros((1, 3)), size[0]
    elif kind == shapes.mjGEOM_CAPSULE:
        points, radius = ends * size[1], size[0]
    elif kind == shapes.mjGEOM_CYLINDER:
        around = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
        ring = np.stack([size[0] * np.cos(around), size[0] * np.sin(around), np.zeros_like(around)], axis=1)
        points, radius = np.concatenate([ring + ends[0] * size[1], ring + ends[1] * size[1]]), 0.0
    elif kind == shapes.mjGEOM_BOX:
        signs = np.stack(np.meshgrid([-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]), axis=-1).reshape(-1, 3)
        points, radius = signs * size, 0.0
    else:
        body = model.body(model.geom_bodyid[geom]).name
        raise UserError(f"the foot '{body}' touches with a shape that is no sphere, capsule, cylinder or box")
    turned = rotation.rotate(model.geom_quat[geom], points)
    return model.geom_pos[geom] + turned, np.full(len(points), radius)
