"""``consmimic motions show``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from consmimic.cli.options import OptionalPath
from consmimic.errors import UserError
from consmimic.evaluation.motion_page import FORMATS, write_motion_page
from consmimic.evaluation.viewer import has_screen, play
from consmimic.motions import Clip
from consmimic.robots import robot_by_name


@dataclass(frozen=True)
class Show:
    """Show a clip on a robot: filmstrip, joints against their limits, path, feet, and what is wrong with it.

    Try:

      consmimic motions show walk.npz --robot anymal_d
      consmimic motions show walk.npz --robot anymal_d --output walk.png --frames 16
      consmimic motions show walk.npz --robot anymal_d --viewer web
    """

    clip: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CLIP")]
    """An npz; `consmimic motions convert` makes one of other formats."""
    robot: Annotated[str, tyro.conf.arg(metavar="ROBOT")]
    """The robot whose clip it is: panda, anymal_d or gr1."""
    output: OptionalPath = None
    """Page (.html, self-contained) or picture (.png). Default: the clip's name with .html."""
    frames: int = 8
    """Pictures in the filmstrip."""
    viewer: Literal["no", "auto", "window", "web"] = "no"
    """Play the clip instead, in MuJoCo's window or in its web viewer, which whoever reaches its port can open;
    auto: a window where there is a screen."""

    def run(self) -> int:
        robot = robot_by_name(self.robot)
        output = self.output or self.clip.with_suffix(".html")
        if output.suffix not in FORMATS:
            raise UserError(f"output is '{output}'; its name must end in one of {', '.join(FORMATS)}")
        clip = Clip.load(self.clip)
        if self.viewer != "no":
            if self.viewer == "window" and not has_screen():
                raise UserError("there is no screen for a window (DISPLAY is not set); use --viewer web")
            window = self.viewer == "window" or (self.viewer == "auto" and has_screen())
            play(clip, robot, "window" if window else "web")
            return 0
        excuse = write_motion_page(clip, robot, output, frames=self.frames)
        if excuse is not None:
            print(f"drawn as stick figures: {excuse}", file=sys.stderr)
        print(output)
        return 0
