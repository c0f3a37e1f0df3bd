"""``consmimic motions concat``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consmimic.cli.motions.common import ClipPaths, NewFile, RobotName, load_clip, save_clip
from consmimic.errors import UserError
from consmimic.motions.files import check_is_new
from consmimic.motions.forward import is_floating, root_of
from consmimic.motions.operations import joined
from consmimic.robots import robot_by_name


@dataclass(frozen=True)
class Concat:
    """Join clips, one after the other: each goes on where the base was, in the direction it had.

    What does not fit at a seam is printed.
    """

    clips: ClipPaths
    """Clips of the robot, in their order."""
    output: NewFile
    """A new .npz."""
    robot: RobotName
    """Whose clips they are."""

    def run(self) -> int:
        robot = robot_by_name(self.robot)
        check_is_new(self.output)
        if len(self.clips) < 2:
            raise UserError("name at least two clips to join")
        model = robot.model(visuals=False)
        root = root_of(model, robot.joint_names)
        clips = [load_clip(path).with_joints(robot.joint_names) for path in self.clips]
        clip, seams = joined(clips, root if is_floating(model, root) else None)
        save_clip(clip, self.output)
        for seam in seams:
            print(
                f"  seam at {seam.second:.2f} s: {seam.joint} jumps by {seam.joint_jump:.3f} rad, the base by "
                f"{1000 * seam.height_jump:.0f} mm in height and {np.degrees(seam.tilt_jump):.1f}° in tilt"
            )
        return 0
