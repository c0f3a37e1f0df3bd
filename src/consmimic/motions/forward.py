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


def floating_base(model: mujoco.MjModel) -> str | None:
    """The body that moves freely in the world; None where the robot is bolted down."""
    free = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    return str(model.body(int(model.jnt_bodyid[free[0]])).name) if len(free) else None


def base_qpos(model: mujoco.MjModel, base: str) -> slice:
    """Where the pose of a floating base is in `qpos`."""
    start = int(model.jnt_qposadr[model.body_jntadr[model.body(base).id]])
    return slice(start, start + 7)


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
    qpos = generalized_positions(model, joint_names, joint_pos, base_pos, base_quat)
    return poses(model, qpos, [model.body(name).id for name in bodies])


def generalized_positions(
    model: mujoco.MjModel,
    joint_names: Sequence[str],
    joint_pos: Array,
    base_pos: Array | None = None,
    base_quat: Array | None = None,
) -> Array:
    """``qpos`` of each frame; what is said of :func:`body_poses` holds."""  # (T, J), (T, 3), (T, 4) or (4,) → (T, nq)
    root = root_of(model, joint_names)
    qpos = np.tile(model.qpos0, (len(joint_pos), 1))
    if is_floating(model, root):
        if base_pos is None or base_quat is None:
            raise UserError(f"'{root}' moves freely, and where it is nobody says")
        base = base_qpos(model, root)
        qpos[:, base][:, :3], qpos[:, base][:, 3:] = base_pos, base_quat
    qpos[:, [int(model.joint(name).qposadr[0]) for name in joint_names]] = joint_pos
    return qpos


def clip_positions(model: mujoco.MjModel, clip: Clip, joint_names: Sequence[str]) -> Array:
    """``qpos`` of each frame of a clip of the robot."""  # (T, nq)
    joint_pos, root = clip.with_joints(tuple(joint_names)).joint_pos, root_of(model, joint_names)
    if not is_floating(model, root):
        return generalized_positions(model, joint_names, joint_pos)
    if root not in clip.body_names:
        raise UserError(
            f"clip '{clip.source}' does not say where the robot is: it lacks body '{root}'; "
            f"it has {', '.join(clip.body_names) or 'no bodies'}"
        )
    column = clip.body(root)
    return generalized_positions(model, joint_names, joint_pos, clip.body_pos_w[:, column], clip.body_quat_w[:, column])


def poses(model: mujoco.MjModel, qpos: Array, bodies: Sequence[int] | slice = slice(None)) -> tuple[Array, Array]:
    """Positions and orientations of bodies, by their numbers."""  # (T, nq) → (T, B, 3), (T, B, 4)
    data, count = mujoco.MjData(model), len(np.arange(model.nbody)[bodies])
    positions, quaternions = np.empty((len(qpos), count, 3)), np.empty((len(qpos), count, 4))
    for frame, pose in enumerate(qpos):
        data.qpos[:] = pose
        mujoco.mj_kinematics(model, data)
        positions[frame], quaternions[frame] = data.xpos[bodies], data.xquat[bodies]
    return positions, quaternions
