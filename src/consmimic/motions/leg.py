"""A quadruped's leg: hip abduction about x, hip and knee flexion about y, a round foot. Both ways in closed form."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Leg:
    """Offsets lead from joint to joint in the root's frame while all angles are 0."""

    joints: tuple[str, ...]  # abduction, hip flexion, knee flexion
    signs: Array  # (3,), of the joints' axes
    hip: Array  # from the root to abduction
    upper: Array  # … to hip flexion
    thigh: Array  # … to knee flexion
    shank: Array  # … to the centre of the foot
    foot_radius: float

    @staticmethod
    def of(model: mujoco.MjModel, *, root: str, foot: str) -> Leg:
        """The leg between two bodies of a model."""
        geom = _round_geom(model, foot)
        offset, offsets, joints = model.geom_pos[geom].copy(), [], []
        body = model.body(foot).id
        while body not in (0, model.body(root).id):
            if not np.allclose(model.body_quat[body], [1.0, 0.0, 0.0, 0.0]):
                raise UserError(f"no leg ends in '{foot}': '{model.body(body).name}' is turned against its parent")
            for joint in range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body]):
                joints.append(joint)
                offsets.append(offset)
                offset = np.zeros(3)
            offset = offset + model.body_pos[body]
            body = model.body_parentid[body]
        axes = model.jnt_axis[joints[::-1]]
        if len(joints) != 3 or not np.allclose(np.abs(axes), [[1, 0, 0], [0, 1, 0], [0, 1, 0]]):
            raise UserError(f"no leg ends in '{foot}': it needs joints about x, y and y, and has {axes.tolist()}")
        shank, thigh, upper = offsets
        return Leg(
            joints=tuple(model.joint(joint).name for joint in joints[::-1]),
            signs=axes.sum(axis=1),
            hip=offset,
            upper=upper,
            thigh=thigh,
            shank=shank,
            foot_radius=float(model.geom_size[geom, 0]),
        )

    @property
    def lengths(self) -> tuple[float, float]:
        """Of thigh and shank, in the plane in which they move."""
        return float(np.hypot(*self.thigh[[0, 2]])), float(np.hypot(*self.shank[[0, 2]]))

    def foot(self, angles: Array) -> Array:
        """Centre of the foot in the root's frame."""  # (…, 3) → (…, 3)
        abduction, flexion, knee = np.moveaxis(self.signs * angles, -1, 0)
        below = self.upper + _about_y(self.thigh + _about_y(self.shank, knee), flexion)
        c, s = np.cos(abduction), np.sin(abduction)
        x, y, z = np.moveaxis(below, -1, 0)
        return self.hip + np.stack([x, c * y - s * z, s * y + c * z], axis=-1)

    def pitch(self, angles: Array) -> Array:
        """How far the shank is turned about y, in the plane of the leg."""  # (…, 3) → (…,)
        return (self.signs * angles)[..., 1:].sum(axis=-1)

    def bend(self, angles: Array) -> Array:
        """Angle from the thigh to the shank, 0 when the leg is straight."""  # (…, 3) → (…,)
        knee = (self.signs * angles)[..., 2]
        return _wrapped(knee + _direction(self.shank) - _direction(self.thigh))

    def angles(self, foot: Array, *, knee_side: float) -> Array:
        """Joint angles that put the centre of the foot there, below the hip; `knee_side` is the sign of the bend."""
        x, y, z = np.moveaxis(foot - self.hip, -1, 0)
        sideways = self.upper[1] + self.thigh[1] + self.shank[1]
        downward = -np.sqrt(np.maximum(y**2 + z**2 - sideways**2, 0.0))
        abduction = np.arctan2(z, y) - np.arctan2(downward, sideways)

        x, z = x - self.upper[0], downward - self.upper[2]
        thigh, shank = self.lengths
        cosine = (x**2 + z**2 - thigh**2 - shank**2) / (2.0 * thigh * shank)
        if np.abs(cosine).max() > 1.0:
            distance = np.hypot(x, z).flat[np.abs(cosine).argmax()]
            raise UserError(
                f"{self.joints[-1]}: the foot would be {distance:.3f} m from the hip; "
                f"the leg reaches {abs(thigh - shank):.3f} to {thigh + shank:.3f} m"
            )
        knee = knee_side * np.arccos(cosine) + _direction(self.thigh) - _direction(self.shank)
        straight = self.thigh + _about_y(self.shank, knee)
        flexion = np.arctan2(x, z) - np.arctan2(straight[..., 0], straight[..., 2])
        return self.signs * _wrapped(np.stack([abduction, flexion, knee], axis=-1))


def _round_geom(model: mujoco.MjModel, body: str) -> int:
    """The sphere of the body that touches."""
    first = model.body(body).geomadr[0]
    for geom in range(first, first + model.body(body).geomnum[0]):
        touches = model.geom_contype[geom] or model.geom_conaffinity[geom]
        if touches and model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SPHERE:
            return geom
    raise UserError(f"'{body}' is no round foot: it has no sphere that touches")


def _about_y(vector: Array, angle: Array) -> Array:
    """The vector turned about y."""  # (…, 3), (…,) → (…, 3)
    c, s = np.cos(angle), np.sin(angle)
    x, y, z = np.moveaxis(vector, -1, 0)
    return np.stack(np.broadcast_arrays(c * x + s * z, y, c * z - s * x), axis=-1)


def _direction(vector: Array) -> float:
    """The angle about y that turns +z to the vector's part in the xz plane."""
    return float(np.arctan2(vector[0], vector[2]))


def _wrapped(angle: Array) -> Array:
    return (angle + np.pi) % (2.0 * np.pi) - np.pi
