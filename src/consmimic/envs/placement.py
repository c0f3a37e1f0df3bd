"""From a named start to MuJoCo's generalized coordinates."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

from consmimic.envs.task import Start
from consmimic.errors import UserError
from consmimic.robots.robot import Robot


class Placement:
    """Where a robot's joints and its floating base are in ``qpos`` and ``qvel``."""

    def __init__(self, robot: Robot, model: mujoco.MjModel) -> None:
        self._robot = robot.name
        self._rest = torch.from_numpy(model.qpos0.astype(np.float32))
        self._nv = int(model.nv)
        self._positions = torch.from_numpy(robot.joint_qpos_indices(model))
        self._velocities = torch.from_numpy(robot.joint_qvel_indices(model))
        free = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
        self._root = (int(model.jnt_qposadr[free[0]]), int(model.jnt_dofadr[free[0]])) if len(free) else None

    def coordinates(self, start: Start) -> tuple[Tensor, Tensor]:  # (N, nq), (N, nv)
        count = len(start.joint_pos)
        qpos, qvel = self._rest.repeat(count, 1), torch.zeros(count, self._nv)
        qpos[:, self._positions] = start.joint_pos
        if start.joint_vel is not None:
            qvel[:, self._velocities] = start.joint_vel
        root = (start.root_pos, start.root_quat, start.root_lin_vel, start.root_ang_vel)
        if self._root is None:
            if any(part is not None for part in root):
                raise UserError(f"robot '{self._robot}' has a fixed base; its start must not place the root")
            return qpos, qvel
        q, v = self._root
        slots = (qpos[:, q : q + 3], qpos[:, q + 3 : q + 7], qvel[:, v : v + 3], qvel[:, v + 3 : v + 6])
        for slot, values in zip(slots, root, strict=True):
            if values is not None:
                slot.copy_(values)
        return qpos, qvel
