"""A robot: its MuJoCo model and the named figures that a task needs of it."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from consmimic.errors import UserError, unknown
from consmimic.method.symmetry import SignedPermutation
from consmimic.robots.mirror import MirrorPlane, mirror_of


@dataclass(frozen=True, kw_only=True)
class Robot:
    """Figures listed by joint are in the order of `joint_names`, whatever the order in the MJCF."""

    name: str
    mjcf: Path
    joint_names: tuple[str, ...]  # the actuated hinges; each has a position actuator of the same name
    default_joint_pos: tuple[float, ...]  # rad
    action_scale: float  # joint target = default_joint_pos + action_scale * action
    joint_velocity_limits: tuple[float, ...]  # rad/s
    end_effector: str | None = None  # a body
    root_height: float | None = None  # m, of a free base above the ground, standing in the default pose
    feet: tuple[str, ...] = ()  # bodies
    mirror_planes: tuple[MirrorPlane, ...] = ()

    def __post_init__(self) -> None:
        if not self.mjcf.is_file():
            raise UserError(f"robot '{self.name}': no model at {self.mjcf}")
        if len(set(self.joint_names)) != len(self.joint_names):
            raise UserError(f"robot '{self.name}': a joint is named twice in {', '.join(self.joint_names)}")
        for field in ("default_joint_pos", "joint_velocity_limits"):
            if len(getattr(self, field)) != len(self.joint_names):
                raise UserError(
                    f"robot '{self.name}': {field} has {len(getattr(self, field))} values for "
                    f"{len(self.joint_names)} joints: {', '.join(self.joint_names)}"
                )

    def model(self, *, visuals: bool = True) -> mujoco.MjModel:
        """Compile a new model. Without `visuals` it moves and touches alike, and steps faster."""
        spec = mujoco.MjSpec.from_file(str(self.mjcf))
        spec.compiler.discardvisual = not visuals
        model = spec.compile()
        self._check(model)
        return model

    def joint_qpos_indices(self, model: mujoco.MjModel) -> np.ndarray:
        """Where each joint's angle is in `qpos`."""
        return np.array([int(model.joint(name).qposadr[0]) for name in self.joint_names])

    def joint_qvel_indices(self, model: mujoco.MjModel) -> np.ndarray:
        """Where each joint's velocity is in `qvel`."""
        return np.array([int(model.joint(name).dofadr[0]) for name in self.joint_names])

    def actuator_indices(self, model: mujoco.MjModel) -> np.ndarray:
        """Where each joint's target is in `ctrl`."""
        return np.array([model.actuator(name).id for name in self.joint_names])

    def left_right(self, model: mujoco.MjModel) -> SignedPermutation | None:
        """What the mirror does to the joints; None where no joint has a partner on the other side, as in an arm."""
        planes = [plane for plane in self.mirror_planes if plane.name == "left_right" and plane.swapped]
        return mirror_of(model, planes[0], self.joint_names).joints if planes else None

    def _check(self, model: mujoco.MjModel) -> None:
        joints = [model.joint(i).name for i in range(model.njnt)]
        actuators = [model.actuator(i).name for i in range(model.nu)]
        bodies = [model.body(i).name for i in range(model.nbody)]
        for name, angle in zip(self.joint_names, self.default_joint_pos, strict=True):
            if name not in joints:
                raise unknown(f"joint of robot {self.name}", name, joints)
            if name not in actuators:
                raise unknown(f"actuator of robot {self.name}", name, actuators)
            low, high = model.joint(name).range
            if model.joint(name).limited[0] and not low <= angle <= high:
                raise UserError(
                    f"robot '{self.name}': default_joint_pos of {name} is {angle}. Valid: {low} to {high} rad"
                )
        if self.end_effector is not None and self.end_effector not in bodies:
            raise unknown(f"end effector of robot {self.name}", self.end_effector, bodies)
        for foot in self.feet:
            if foot not in bodies:
                raise unknown(f"foot of robot {self.name}", foot, bodies)
