"""Forward kinematics of a free robot's motion."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def body_poses(
    model: mujoco.MjModel,
    bodies: tuple[str, ...],
    joint_names: tuple[str, ...],
    joint_pos: Array,
    base_pos: Array,
    base_quat: Array,
) -> tuple[Array, Array]:
    """Of each body in each frame; the first body is the free one. A single `base_quat` is that of all frames."""
    # (T, J), (T, 3), (T, 4) or (4,) → (T, B, 3), (T, B, 4)
    data = mujoco.MjData(model)
    ids = [model.body(name).id for name in bodies]
    root = int(model.jnt_qposadr[model.body_jntadr[ids[0]]])
    addresses = [int(model.joint(name).qposadr[0]) for name in joint_names]
    quaternions_of_base = np.broadcast_to(base_quat, (len(joint_pos), 4))
    positions, quaternions = np.empty((len(joint_pos), len(ids), 3)), np.empty((len(joint_pos), len(ids), 4))
    for frame in range(len(joint_pos)):
        data.qpos[root : root + 7] = [*base_pos[frame], *quaternions_of_base[frame]]
        data.qpos[addresses] = joint_pos[frame]
        mujoco.mj_kinematics(model, data)
        positions[frame], quaternions[frame] = data.xpos[ids], data.xquat[ids]
    return positions, quaternions
