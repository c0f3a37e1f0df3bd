"""``consmimic motions retarget``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from consmimic.cli.options import OptionalName, OptionalRate
from consmimic.errors import UserError, unknown
from consmimic.motions import Clip
from consmimic.motions.retarget import (
    Retargeting,
    SourceMotion,
    correspondence_of,
    from_robot,
    read_source,
    retarget,
)
from consmimic.robots import ROBOTS, Robot


@dataclass(frozen=True)
class Retarget:
    """Carry a motion over from a skeleton, or from another robot, to one of ours, and say what had to be bent.

    Feet that stand keep their place and stay out of the ground, joints keep their limits, a loop closes. Needs mink:
    pip install 'consmimic[retarget]'.

    Try:

      consmimic motions retarget humanoid3d_walk.txt walk.npz --robot gr1
      consmimic motions retarget laikago_walk.txt trot.npz --robot anymal_d --laps 4
      consmimic motions retarget my_clip.npz again.npz --robot anymal_d --from-robot anymal_d
    """

    motion: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="IN")]
    """DeepMimic, motion_imitation, AMP_for_hardware text, Isaac Lab humanoid npz; with --from-robot a clip of ours."""
    output: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT.npz")]
    """The clip. The report goes beside it, as OUT.json."""
    robot: str
    """Whose clip it becomes: gr1 (from humans), anymal_d (from quadrupeds)."""
    skeleton: OptionalName = None
    """Whose motion it is: deepmimic, isaaclab, laikago, laikago-model, a1. Default: what the file looks like."""
    from_robot: OptionalName = None
    """The robot of ours that the clip IN is of."""
    source_fps: OptionalRate = None
    """Frames per second of IN, where it does not say."""
    fps: float = 50.0
    """Frames per second of the clip."""
    laps: int = 1
    """How often a loop is run through."""
    loop: Literal["auto", "yes", "no"] = "auto"
    """Whether the motion repeats. auto: what the file says."""
    cutoff: float = 8.0
    """Hz; what is faster is smoothed away. 0: nothing is."""
    max_slow_down: float = 1.5
    """How many times longer the clip may take where joints are too slow for it."""

    def run(self) -> int:
        report_path = self.output.with_suffix(".json")
        for path in (self.output, report_path):
            if path.exists():
                raise UserError(f"{path} exists; choose another name or remove it first")
        if self.output.suffix != ".npz":
            raise UserError(f"the clip would be {self.output}; name it with .npz at the end")
        if self.cutoff < 0.0:
            raise UserError(f"cutoff is {self.cutoff}; it must be more than 0 Hz, or 0 for no smoothing")
        settings = Retargeting(
            fps=self.fps, laps=self.laps, cutoff=self.cutoff or None, max_slow_down=self.max_slow_down
        )
        robot = _robot(self.robot)
        pairs = correspondence_of(self.robot)
        source = self._source()
        done = retarget(
            source,
            robot=robot.name,
            model=robot.model(visuals=False),
            pairs=pairs,
            joint_names=robot.joint_names,
            default_joint_pos=robot.default_joint_pos,
            joint_velocity_limits=robot.joint_velocity_limits,
            settings=settings,
        )
        done.clip.save(self.output)
        done.report.save(report_path)
        Console().print(done.report.table())
        for remark in done.report.remarks():
            print(f"- {remark}")
        print(f"{self.output}  ({len(done.clip)} frames, {done.clip.seconds:.2f} s; report: {report_path})")
        return 0

    def _source(self) -> SourceMotion:
        if self.from_robot is None:
            source, why = read_source(self.motion, self.skeleton, self.source_fps)
            print(f"read as {why}")
        elif self.skeleton is not None:
            raise UserError("--skeleton and --from-robot both say whose motion it is; give one of them")
        else:
            robot = _robot(self.from_robot)
            angles = dict(zip(robot.joint_names, robot.default_joint_pos, strict=True))
            clip = Clip.load(self.motion)
            source = from_robot(clip, robot.model(visuals=False), correspondence_of(robot.name), angles)
        return source if self.loop == "auto" else replace(source, loops=self.loop == "yes")


def _robot(name: str) -> Robot:
    if name not in ROBOTS:
        raise unknown("robot", name, ROBOTS)
    return ROBOTS[name]
