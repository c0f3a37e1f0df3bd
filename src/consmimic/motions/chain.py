"""A limb as a chain of hinges: where its tip is, and which angles put it there. All frames of a motion at once."""

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
class Chain:
    """Offsets lead from joint to joint in the root's frame while all angles are 0; the last one leads to the tip."""

    joints: tuple[str, ...]
    axes: Array  # (J, 3)
    offsets: Array  # (J + 1, 3)

    @staticmethod
    def of(model: mujoco.MjModel, *, root: str, tip: str) -> Chain:
        """The hinges between two bodies of a model."""
        joints, offsets, offset = [], [], np.zeros(3)
        body, end = model.body(tip).id, model.body(root).id
        while body not in (0, end) and model.body_parentid[body] != 0:
            if not np.allclose(model.body_quat[body], [1.0, 0.0, 0.0, 0.0]):
                raise UserError(f"no chain ends in '{tip}': '{model.body(body).name}' is turned against its parent")
            first = model.body_jntadr[body]
            for joint in reversed(range(first, first + model.body_jntnum[body])):
                if model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_HINGE or np.any(model.jnt_pos[joint]):
                    raise UserError(f"no chain ends in '{tip}': '{model.joint(joint).name}' is no hinge at its body")
                joints.append(joint)
                offsets.append(offset)
                offset = np.zeros(3)
            offset = offset + model.body_pos[body]
            body = model.body_parentid[body]
        if body != end or not joints:
            raise UserError(f"no chain leads from '{root}' to '{tip}'")
        return Chain(
            joints=tuple(model.joint(joint).name for joint in joints[::-1]),
            axes=model.jnt_axis[joints[::-1]].copy(),
            offsets=np.array([offset, *offsets[::-1]]),
        )

    def tip(self, angles: Array) -> tuple[Array, Array]:
        """Position and orientation in the root's frame."""  # (T, J) → (T, 3), (T, 3, 3)
        position, rotation, _, _ = self._walked(angles)
        return position, rotation

    def angles(self, position: Array, rotation: Array, start: Array) -> Array:
        """Newton's method from `start`, damped while far from the solution; for six joints."""
        # (T, 3), (T, 3, 3), (T, 6) → (T, 6)
        angles, error = start.copy(), np.full((len(start), 6), np.inf)
        for _ in range(50):
            found, turned, anchors, axes = self._walked(angles)
            error = np.concatenate([position - found, rotation_vector(rotation @ np.swapaxes(turned, -1, -2))], axis=-1)
            if np.abs(error).max() < 1e-12:
                break
            jacobian = np.swapaxes(np.concatenate([np.cross(axes, found[:, None] - anchors), axes], axis=-1), -1, -2)
            transposed = np.swapaxes(jacobian, -1, -2)
            damping = np.maximum(1e-3 * np.square(error).sum(axis=-1), 1e-12)[:, None, None] * np.eye(len(self.joints))
            step = np.squeeze(np.linalg.solve(transposed @ jacobian + damping, transposed @ error[..., None]), axis=-1)
            angles += np.clip(step, -0.3, 0.3)
        else:
            worst = int(np.linalg.norm(error[:, :3], axis=-1).argmax())
            raise UserError(
                f"{self.joints[-1]}: the tip cannot be where it should, {np.round(position[worst], 3).tolist()} m from "
                f"the root; it comes to within {1000 * np.linalg.norm(error[worst, :3]):.0f} mm"
            )
        return angles

    def _walked(self, angles: Array) -> tuple[Array, Array, Array, Array]:
        """Tip, its orientation, and each joint's anchor and axis, in the root's frame."""
        frames = len(angles)
        position, rotation = np.tile(self.offsets[0], (frames, 1)), np.tile(np.eye(3), (frames, 1, 1))
        anchors, axes = np.empty((frames, len(self.joints), 3)), np.empty((frames, len(self.joints), 3))
        for joint, (axis, offset) in enumerate(zip(self.axes, self.offsets[1:], strict=True)):
            anchors[:, joint], axes[:, joint] = position, rotation @ axis
            rotation = rotation @ rotation_about(axis, angles[:, joint])
            position = position + rotation @ offset
        return position, rotation, anchors, axes


def rotation_about(axis: Array, angles: Array) -> Array:
    """Rodrigues' formula."""  # (3,), (…,) → (…, 3, 3)
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    angles = np.asarray(angles)[..., None, None]
    return np.eye(3) + np.sin(angles) * cross + (1.0 - np.cos(angles)) * (cross @ cross)


def rotation_vector(rotation: Array) -> Array:
    """Axis times angle, for angles below π."""  # (…, 3, 3) → (…, 3)
    twice_sine = np.stack(
        [
            rotation[..., 2, 1] - rotation[..., 1, 2],
            rotation[..., 0, 2] - rotation[..., 2, 0],
            rotation[..., 1, 0] - rotation[..., 0, 1],
        ],
        axis=-1,
    )
    cosine = 0.5 * (np.trace(rotation, axis1=-2, axis2=-1) - 1.0)
    sine = 0.5 * np.linalg.norm(twice_sine, axis=-1)
    angle = np.arctan2(sine, cosine)
    scale = np.where(sine > 1e-9, angle / np.maximum(sine, 1e-12), 1.0)
    return 0.5 * twice_sine * scale[..., None]
