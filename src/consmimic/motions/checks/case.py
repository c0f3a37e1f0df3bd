"""A clip on a robot, and what several checks want to know of it."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.method.symmetry import SignedPermutation
from consmimic.motions.clip import Clip
from consmimic.motions.forward import clip_positions, floating_base
from consmimic.motions.gait import cycle_frames
from consmimic.motions.inverse_dynamics import Effort, effort
from consmimic.motions.replay import Replay, Soles

Array = NDArray[np.float64]

STANDING_HEIGHT = 0.01  # m above where the feet usually are: more is a step
BEARING_HEIGHT = 0.002  # m above the lowest foot of the moment: more bears no weight. Feet may swing as low as 3 mm
STANDING_SPEED = 0.15  # m/s up or down: a foot that is set down or lifted is faster
LEFT_OVER = 0.2  # of the weight: with more that nothing exerts, a frame's torques mean little
SLOWEST_FPS, FASTEST_FPS = 1.0, 10_000.0
SHORTEST_FRAMES = 5
"""Fewer have no accelerations."""


class CheckedRobot(Protocol):
    """What of a robot is asked; ``consmimic.robots.Robot`` has it all."""

    @property
    def name(self) -> str: ...
    @property
    def joint_names(self) -> tuple[str, ...]: ...
    @property
    def joint_velocity_limits(self) -> tuple[float, ...]: ...
    @property
    def feet(self) -> tuple[str, ...]: ...
    def model(self, *, visuals: bool = True) -> mujoco.MjModel: ...


@dataclass(frozen=True, eq=False)
class Case:
    """A clip on a robot, and what several checks want to know of it."""

    clip: Clip  # with the robot's joints, in its order
    robot: CheckedRobot
    model: mujoco.MjModel
    replay: Replay
    feet: Soles
    left_right: SignedPermutation | None

    @staticmethod
    def of(clip: Clip, robot: CheckedRobot, left_right: SignedPermutation | None) -> Case:
        if not SLOWEST_FPS <= clip.fps <= FASTEST_FPS:
            raise UserError(f"clip '{clip.source}': fps is {clip.fps:g}; valid are {SLOWEST_FPS:g} to {FASTEST_FPS:g}")
        model = robot.model(visuals=False)
        clip = clip.with_joints(robot.joint_names)
        replay = Replay.of(model, clip_positions(model, clip, robot.joint_names), clip.fps)
        feet = Soles.of(model, [model.body(foot).id for foot in robot.feet])
        return Case(clip, robot, model, replay, feet, left_right)

    @property
    def base(self) -> str | None:
        return floating_base(self.model)

    @property
    def too_short(self) -> bool:
        return len(self.clip) < SHORTEST_FRAMES

    @cached_property
    def level(self) -> float:
        """Where the feet are when they are low, m."""
        return float(np.percentile(self.replay.heights(self.feet).min(axis=1), 5))

    @cached_property
    def standing(self) -> NDArray[np.bool_]:
        """Which points of the feet bear weight, (T, P): low ones that move neither up nor down, of the lowest feet."""
        if not len(self.feet.radii):
            return np.zeros((len(self.clip), 0), dtype=bool)
        heights, vertical = self.replay.heights(self.feet), self.replay.sole_velocities(self.feet)[..., 2]
        low = (heights < self.level + STANDING_HEIGHT) & (np.abs(vertical) < STANDING_SPEED)
        lowest = heights.min(axis=1, keepdims=True)
        of_foot = self.feet.bodies[:, None] == self.feet.bodies  # (P, P)
        bearing = (low & (heights < lowest + BEARING_HEIGHT)) @ of_foot
        return low & bearing

    @cached_property
    def effort(self) -> Effort:
        return effort(self.model, self.replay, self.robot.joint_names, self.feet, self.standing)

    @cached_property
    def cycle(self) -> int | None:
        return cycle_frames(self.clip.joint_pos, self.clip.fps)

    def at(self, frame: int) -> str:
        return f"after {frame / self.clip.fps:.2f} s (frame {frame})"

    def worst_joint(self, values: Array) -> tuple[float, str, int]:
        """The largest value, (T, J), whose it is, and in which frame."""
        frame, joint = np.unravel_index(int(values.argmax()), values.shape)
        return float(values[frame, joint]), self.robot.joint_names[joint], int(frame)
