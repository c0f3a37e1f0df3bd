"""Where a robot's bodies are when its joints are given: forward kinematics by its model, frame by frame."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError, unknown
from consmimic.motions import kinematics
from consmimic.motions.clip import Clip

Array = NDArray[np.float64]


def root_of(model: mujoco.MjModel, joint_names: Sequence[str]) -> str:
    """The body that all the others of the robot hang on."""
    return str(model.body(int(model.body_rootid[model.joint(joint_names[0]).bodyid[0]])).name)


def is_floating(model: mujoco.MjModel, root: str) -> bool:
    """Whether the root moves freely, or is bolted to the world."""
    body = model.body(root)
    return bool(body.jntnum[0]) and int(model.jnt_type[body.jntadr[0]]) == int(mujoco.mjtJoint.mjJNT_FREE)


def bodies_of(model: mujoco.MjModel, root: str) -> tuple[str, ...]:
    """The root and all that hangs on it, in the model's order."""
    return tuple(
        str(model.body(body).name)
        for body in range(1, model.nbody)
        if int(model.body_rootid[body]) == model.body(root).id and model.body(body).name
    )


def posed_clip(
    model: mujoco.MjModel,
    *,
    fps: float,
    joint_names: tuple[str, ...],
    joint_pos: Array,  # (T, J)
    base_pos: Array | None,  # (T, 3); not of a robot that is bolted down
    base_quat: Array | None,  # (T, 4)
    bodies: tuple[str, ...],
    source: str,
) -> Clip:
    """A clip of the bodies by forward kinematics, all velocities by differences."""
    positions, quaternions = body_poses(model, bodies, joint_names, joint_pos, base_pos, base_quat)
    linear, angular = np.empty_like(positions), np.empty_like(positions)
    for body in range(len(bodies)):  # one at a time: hours of motion are large
        linear[:, body] = kinematics.linear_velocity(positions[:, body], fps)
        angular[:, body] = kinematics.angular_velocity(quaternions[:, body], fps)
    return Clip(
        fps=fps,
        joint_names=joint_names,
        joint_pos=joint_pos,
        joint_vel=kinematics.linear_velocity(joint_pos, fps),
        body_names=bodies,
        body_pos_w=positions,
        body_quat_w=quaternions,
        body_lin_vel_w=linear,
        body_ang_vel_w=angular,
        source=source,
    )


def body_poses(
    model: mujoco.MjModel,
    bodies: Sequence[str],
    joint_names: Sequence[str],
    joint_pos: Array,
    base_pos: Array | None = None,
    base_quat: Array | None = None,
) -> tuple[Array, Array]:
    """Of each body in each frame; joints that are not named stay where the model has them.

    A base that moves freely needs its pose; a single `base_quat` is that of all frames.
    """
    # (T, J), (T, 3), (T, 4) or (4,) → (T, B, 3), (T, B, 4)
    known = [str(model.body(body).name) for body in range(model.nbody)]
    for name in bodies:
        if name not in known:
            raise unknown("body of the robot", name, known[1:])
    root = root_of(model, joint_names)
    data, ids = mujoco.MjData(model), [model.body(name).id for name in bodies]
    addresses = [int(model.joint(name).qposadr[0]) for name in joint_names]
    qpos = np.tile(data.qpos, (len(joint_pos), 1))
    if is_floating(model, root):
        if base_pos is None or base_quat is None:
            raise UserError(f"'{root}' moves freely, and where it is nobody says")
        start = int(model.jnt_qposadr[model.body_jntadr[model.body(root).id]])
        qpos[:, start : start + 3], qpos[:, start + 3 : start + 7] = base_pos, base_quat
    qpos[:, addresses] = joint_pos
    positions, quaternions = np.empty((len(joint_pos), len(ids), 3)), np.empty((len(joint_pos), len(ids), 4))
    for frame in range(len(joint_pos)):
        data.qpos[:] = qpos[frame]
        mujoco.mj_kinematics(model, data)
        positions[frame], quaternions[frame] = data.xpos[ids], data.xquat[ids]
    return positions, quaternions
