"""A robot's mirrors, derived from its compiled model: which joint mirrors which, and with which sign."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from consmimic.errors import UserError, unknown
from consmimic.method.symmetry import Normal, SignedPermutation, renamed
from consmimic.motions.clip import Clip
from consmimic.motions.operations import Reflection

POSITION_TOLERANCE = 1e-3
"""m. Published figures may be off by half a millimetre between the sides; a wrong pair is off by centimetres."""
AXIS_TOLERANCE = 1e-3
HINGE, SLIDE = int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)


@dataclass(frozen=True, kw_only=True)
class MirrorPlane:
    """A plane through the robot's base, and how names change sides."""

    name: str
    normal: Normal
    swapped: tuple[tuple[str, str], ...]
    """Words that change places, as ("left", "right"); a word is what stands between the underscores of a name."""

    def __post_init__(self) -> None:
        words = [word for pair in self.swapped for word in pair]
        if len(set(words)) != len(words):
            raise UserError(f"mirror '{self.name}': a word changes places with two others in {self.swapped}")

    def partner(self, name: str) -> str:
        """What the name becomes; without any of the words it stays as it is."""
        words = dict(self.swapped) | {b: a for a, b in self.swapped}
        return re.sub(r"[A-Za-z0-9]+", lambda word: words.get(word.group(), word.group()), name)


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """What a plane does to numbers listed by joint, and to those listed by body."""

    plane: MirrorPlane
    joints: SignedPermutation
    bodies: SignedPermutation


def reflection(normal: Normal) -> np.ndarray:
    """M = I − 2nnᵀ, of vectors in the base's frame."""  # (3, 3)
    n = np.eye(3)["xyz".index(normal)]
    return np.eye(3) - 2.0 * np.outer(n, n)


def mirror_of(
    model: mujoco.MjModel, plane: MirrorPlane, joint_names: Sequence[str], body_names: Sequence[str] = ()
) -> Mirror:
    """Derive the mirror from where joints and bodies are, in the base's frame, while every joint is at 0.

    A hinge's axis a is an axial vector: its image −M a is the partner's axis times the sign. A slide's is polar: M a.
    That partners are images of one another is checked, not believed.
    """
    M = reflection(plane.normal)
    data = _at_zero(model)
    joint_partners = _partners(plane, joint_names, "joint")
    body_partners = _partners(plane, body_names, "body")
    signs = {}
    for source, target in joint_partners.items():
        _check_is_image(plane, f"joint '{source}'", M @ _anchor(data, source), target, _anchor(data, target))
        turns = _is_hinge(model, source)
        image, axis = (-M if turns else M) @ _axis(data, source), _axis(data, target)
        signs[target] = 1 if image @ axis > 0 else -1
        if turns != _is_hinge(model, target) or not np.allclose(image, signs[target] * axis, atol=AXIS_TOLERANCE):
            raise UserError(
                f"mirror '{plane.name}': the axis of joint '{source}' becomes {_shown(image)}, "
                f"which is not ± that of '{target}', {_shown(axis)}"
            )
    for source, target in body_partners.items():
        _check_is_image(plane, f"body '{source}'", M @ _origin(data, source), target, _origin(data, target))
    return Mirror(
        plane=plane, joints=renamed(joint_names, joint_partners, signs), bodies=renamed(body_names, body_partners)
    )


def reflection_of(model: mujoco.MjModel, plane: MirrorPlane, clip: Clip) -> Reflection:
    """What the plane does to a clip of the robot, for :func:`consmimic.motions.operations.mirrored`.

    A body's frame F becomes M F M, which is a rotation again, but need not be its partner's frame. What it lacks is
    the same in every pose, so it is what it is while every joint is at 0.
    """
    for kind, count, names in (("joint", model.njnt, clip.joint_names), ("body", model.nbody, clip.body_names)):
        known = [getattr(model, kind)(i).name for i in range(count)]
        for name in names:
            if name not in known:
                raise unknown(f"{kind} of the robot in clip '{clip.source}'", name, known)
    mirror = mirror_of(model, plane, clip.joint_names, clip.body_names)
    M = reflection(plane.normal)
    data = _at_zero(model)
    frames = np.array([_frame(data, name) for name in clip.body_names])  # (B, 3, 3), in the base's
    images = M @ frames[mirror.bodies.index.numpy()] @ M
    turns = np.empty((len(frames), 4))
    for turn, image, frame in zip(turns, images, frames, strict=True):
        mujoco.mju_mat2Quat(turn, (image.T @ frame).ravel())
    return Reflection(plane.normal, mirror.joints, mirror.bodies, turns)


def _frame(data: mujoco.MjData, body: str) -> np.ndarray:
    base = data.model.body_rootid[data.model.body(body).id]
    return data.xmat[base].reshape(3, 3).T @ data.body(body).xmat.reshape(3, 3)


def _partners(plane: MirrorPlane, names: Sequence[str], kind: str) -> dict[str, str]:
    partners = {name: plane.partner(name) for name in names}
    for name, partner in partners.items():
        if partner not in names:
            raise unknown(f"{kind}, the partner of '{name}' in mirror '{plane.name}',", partner, names)
    return partners


def _at_zero(model: mujoco.MjModel) -> mujoco.MjData:
    data = mujoco.MjData(model)
    for joint in range(model.njnt):
        if model.jnt_type[joint] in (HINGE, SLIDE):
            data.qpos[model.jnt_qposadr[joint]] = 0.0
    mujoco.mj_kinematics(model, data)
    return data


def _is_hinge(model: mujoco.MjModel, joint: str) -> bool:
    kind = model.joint(joint).type[0]
    if kind not in (HINGE, SLIDE):
        raise UserError(f"joint '{joint}' is neither a hinge nor a slide, so it has no axis to be mirrored")
    return kind == HINGE


def _axis(data: mujoco.MjData, joint: str) -> np.ndarray:
    base = data.model.body_rootid[data.model.joint(joint).bodyid[0]]
    return data.xmat[base].reshape(3, 3).T @ data.joint(joint).xaxis


def _anchor(data: mujoco.MjData, joint: str) -> np.ndarray:
    return _in_base(data, data.model.joint(joint).bodyid[0], data.joint(joint).xanchor)


def _origin(data: mujoco.MjData, body: str) -> np.ndarray:
    return _in_base(data, data.model.body(body).id, data.body(body).xpos)


def _in_base(data: mujoco.MjData, body: int, position: np.ndarray) -> np.ndarray:
    base = data.model.body_rootid[body]
    return data.xmat[base].reshape(3, 3).T @ (position - data.xpos[base])


def _check_is_image(plane: MirrorPlane, source: str, image: np.ndarray, target: str, found: np.ndarray) -> None:
    if np.linalg.norm(image - found) > POSITION_TOLERANCE:
        raise UserError(
            f"mirror '{plane.name}': the image of {source} is at {_shown(image)} in the base's frame, "
            f"but '{target}' is at {_shown(found)}"
        )


def _shown(vector: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in vector) + ")"
