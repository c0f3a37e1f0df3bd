"""``consmimic motions reset-states``."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from consmimic.cli.motions.common import ClipPaths, NewFile, RobotName, load_clip
from consmimic.motions.files import check_is_new
from consmimic.motions.forward import is_floating, root_of
from consmimic.motions.operations import reset_states
from consmimic.robots import robot_by_name


@dataclass(frozen=True)
class ResetStates:
    """Draw states from clips to start episodes in: joints and base with their velocities, as an npz."""

    clips: ClipPaths
    """Clips of the robot."""
    output: NewFile
    """A new .npz."""
    robot: RobotName
    """Whose clips they are."""
    count: int = 1000
    """States; every second of motion is as likely as any other."""
    seed: int = 0
    """The same seed draws the same states."""

    def run(self) -> int:
        robot = robot_by_name(self.robot)
        check_is_new(self.output)
        model = robot.model(visuals=False)
        root = root_of(model, robot.joint_names)
        clips = [load_clip(path).with_joints(robot.joint_names) for path in self.clips]
        states = reset_states(
            clips, root if is_floating(model, root) else None, self.count, torch.Generator().manual_seed(self.seed)
        )
        states.save(self.output)
        print(f"{self.output}: {self.count} states of {len(clips)} clips")
        return 0
