"""The demonstration of Franka-Reach, made, not recorded: a hand that sways to its goal on a sinusoid.

It is imperfect on purpose: it takes its time and a detour, so following it costs task reward; and it knows one start
and one goal, where the task has many.
"""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.motions import kinematics
from consmimic.motions.clip import Clip

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SinusoidalReach:
    """The parameters of the path; lengths in m, times in s."""

    seconds: float = 1.5
    """Time to arrive."""
    amplitude: float = 0.12
    """Sideways sway (y) of the hand."""
    cycles: float = 1.0
    """Sways on the way."""
    blend_seconds: float = 0.4
    """Time to speed up at the start and to slow down at the end."""
    hold_seconds: float = 2.5
    """Time at rest at the goal."""
    fps: float = 30.0
    """Frames per second."""

    def __post_init__(self) -> None:
        if not 0.0 < self.blend_seconds <= 0.5 * self.seconds:
            raise UserError(
                f"blend_seconds is {self.blend_seconds}; the path of {self.seconds} s speeds up and slows down for "
                f"that long: valid are 0 (exclusive) to {0.5 * self.seconds}"
            )

    def progress(self, times: Array) -> Array:
        """Share of the way, 0 to 1, at constant speed between the blends."""  # (T,) → (T,)
        blend = self.blend_seconds
        speed = 1.0 / (self.seconds - blend)
        t = np.clip(times, 0.0, self.seconds)
        left = self.seconds - t
        starting = 0.5 * speed * t**2 / blend
        cruising = speed * (t - 0.5 * blend)
        ending = 1.0 - 0.5 * speed * left**2 / blend
        return np.where(t < blend, starting, np.where(left < blend, ending, cruising))

    def positions(self, start: Array, goal: Array) -> Array:
        """The hand's path, (T, 3)."""
        count = round((self.seconds + self.hold_seconds) * self.fps) + 1
        share = self.progress(np.arange(count) / self.fps)[:, None]
        sway = self.amplitude * np.sin(2.0 * np.pi * self.cycles * share)
        return start + share * (goal - start) + sway * np.array([0.0, 1.0, 0.0])


def generate_reach(
    model: mujoco.MjModel,
    *,
    joint_names: tuple[str, ...],
    start_joint_pos: tuple[float, ...],
    end_effector: str,
    goal_pos: tuple[float, float, float],
    goal_quat: tuple[float, float, float, float],
    path: SinusoidalReach,
) -> Clip:
    """A clip of the arm following the path from its start pose, turning to the goal's orientation on the way."""
    addresses = np.array([int(model.joint(name).qposadr[0]) for name in joint_names])
    body = model.body(end_effector).id
    data = mujoco.MjData(model)
    data.qpos[addresses] = start_joint_pos
    mujoco.mj_kinematics(model, data)

    positions = path.positions(data.xpos[body].copy(), np.array(goal_pos))
    ends = np.stack([data.xquat[body], np.array(goal_quat)])
    orientations = kinematics.slerp(ends, path.progress(np.arange(len(positions)) / path.fps))

    joint_pos = np.empty((len(positions), len(joint_names)))
    reached_pos, reached_quat = np.empty_like(positions), np.empty_like(orientations)
    for frame, (position, orientation) in enumerate(zip(positions, orientations, strict=True)):
        error = _solve_pose(model, data, body, addresses, position, orientation, rest=np.array(start_joint_pos))
        if error > 1e-3:
            raise UserError(
                f"the sinusoidal path leaves the arm's reach in frame {frame} (off by {error:.3f}); "
                f"lessen the amplitude ({path.amplitude} m) or move the goal {goal_pos}"
            )
        joint_pos[frame] = data.qpos[addresses]
        reached_pos[frame], reached_quat[frame] = data.xpos[body], data.xquat[body]
    return Clip(
        fps=path.fps,
        joint_names=joint_names,
        joint_pos=joint_pos,
        joint_vel=kinematics.linear_velocity(joint_pos, path.fps),
        body_names=(end_effector,),
        body_pos_w=reached_pos[:, None],
        body_quat_w=reached_quat[:, None],
        body_lin_vel_w=kinematics.linear_velocity(reached_pos, path.fps)[:, None],
        body_ang_vel_w=kinematics.angular_velocity(reached_quat, path.fps)[:, None],
        source=f"generated: {path}",
    )


def _solve_pose(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    body: int,
    addresses: NDArray[np.intp],
    position: Array,
    orientation: Array,
    rest: Array,
    iterations: int = 100,
) -> float:
    """Damped least squares from where the arm is, drawn to its rest pose in the null space; returns what is left."""
    dofs = model.jnt_dofadr[[int(np.flatnonzero(model.jnt_qposadr == a)[0]) for a in addresses]]
    ranges = model.jnt_range[[int(np.flatnonzero(model.jnt_qposadr == a)[0]) for a in addresses]]
    jacobian, error, inverse, turn = np.zeros((6, model.nv)), np.zeros(6), np.zeros(4), np.zeros(4)
    for _ in range(iterations):
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        error[:3] = position - data.xpos[body]
        mujoco.mju_negQuat(inverse, data.xquat[body])
        mujoco.mju_mulQuat(turn, orientation, inverse)
        mujoco.mju_quat2Vel(error[3:], turn, 1.0)
        if np.abs(error).max() < 1e-6:
            break
        mujoco.mj_jacBody(model, data, jacobian[:3], jacobian[3:], body)
        J = jacobian[:, dofs]
        pseudo_inverse = J.T @ np.linalg.inv(J @ J.T + 1e-5 * np.eye(6))
        null_space = np.eye(len(dofs)) - pseudo_inverse @ J
        change = pseudo_inverse @ error + null_space @ (0.02 * (rest - data.qpos[addresses]))
        data.qpos[addresses] = np.clip(data.qpos[addresses] + change, ranges[:, 0], ranges[:, 1])
    return float(np.abs(error).max())
