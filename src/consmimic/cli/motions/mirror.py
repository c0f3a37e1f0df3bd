"""``consmimic motions mirror``."""

from __future__ import annotations

from dataclasses import dataclass

from consmimic.cli.motions.common import ClipPath, NewPath, RobotName, load_clip, save_clip
from consmimic.errors import UserError, unknown
from consmimic.motions.files import check_is_new
from consmimic.motions.operations import mirrored
from consmimic.robots import robot_by_name
from consmimic.robots.mirror import reflection_of


@dataclass(frozen=True)
class Mirror:
    """Swap left and right (or another pair of sides) of a motion, by the mirror that the robot's model has."""

    clip: ClipPath
    """A clip of the robot."""
    output: NewPath
    """A new .npz."""
    robot: RobotName
    """Whose clip it is."""
    plane: str = "left_right"
    """The sides that change places; a quadruped has front_back too."""

    def run(self) -> int:
        robot = robot_by_name(self.robot)
        check_is_new(self.output)
        if not robot.mirror_planes:
            raise UserError(f"robot {robot.name} has no mirror")
        planes = {plane.name: plane for plane in robot.mirror_planes}
        if self.plane not in planes:
            raise unknown(f"mirror of {robot.name}", self.plane, planes)
        clip = load_clip(self.clip)
        reflection = reflection_of(robot.model(visuals=False), planes[self.plane], clip)
        save_clip(mirrored(clip, reflection), self.output)
        return 0
