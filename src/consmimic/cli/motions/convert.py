"""``consmimic motions convert``."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from consmimic.cli.motions.common import NewPath, RobotName, Words, names, save_clip
from consmimic.cli.options import OptionalName, OptionalPath
from consmimic.errors import UserError
from consmimic.motions.convert import conversion_budget, convert, read_mapping, write_table
from consmimic.motions.dialects import ReadOptions, read_motion
from consmimic.motions.files import check_is_new
from consmimic.robots import robot_by_name

OptionalRate = Annotated[float | None, tyro.conf.arg(metavar="HZ", help_behavior_hint="")]
OptionalOrder = Annotated[Literal["wxyz", "xyzw"] | None, tyro.conf.arg(metavar="{wxyz,xyzw}", help_behavior_hint="")]
OptionalUp = Annotated[Literal["z", "y"] | None, tyro.conf.arg(metavar="{z,y}", help_behavior_hint="")]


@dataclass(frozen=True)
class Convert:
    """Read a motion in any format and write it as a clip of a robot (.npz), or as a table (.csv).

    What was taken for granted is printed: the format, the order of quaternions, whether velocities fit. Formats:
    mjlab/BeyondMimic npz, Isaac Lab's humanoid npz, loco-mujoco npz, CSV (x y z qx qy qz qw q...), retargeted LAFAN1,
    AMP_for_hardware, motion_imitation and DeepMimic texts, amp-rsl-rl npy.

    Try:

      consmimic motions convert walk.csv --robot anymal_d --fps 30 --joint-names robot walk.npz
      consmimic motions convert a1_trot.txt --robot anymal_d --mapping a1_to_anymal.yaml trot.npz
      consmimic motions convert walk.npz --robot anymal_d walk.csv
    """

    input: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="IN")]
    """The motion."""
    output: NewPath
    """A new file: .npz for a clip, .csv for a table without a header."""
    robot: RobotName
    """Whose motion it is to be: panda, anymal_d or gr1."""
    fps: OptionalRate = None
    """Frame rate of the file, if it does not say so or is wrong."""
    joint_names: Words = None
    """Names of the file's joints, in its order, if it has none. "robot": the robot's own order."""
    mapping: OptionalPath = None
    """YAML or JSON, a line per joint that has another name in the file: "file_name: robot_name"."""
    resample: OptionalRate = None
    """Frame rate of the output. Default: the file's."""
    bodies: Words = None
    """Bodies of the robot to put into the clip. Default: all."""
    dialect: OptionalName = None
    """The format, if it is not found out rightly: mjlab, isaaclab, loco-mujoco, amp_for_hardware, motion_imitation,
    deepmimic, amp-rsl-rl, lafan1 or csv."""
    quat_order: OptionalOrder = None
    """Order of quaternions in the file. Default: the format's, unless the robot would lie down."""
    up: OptionalUp = None
    """Which axis points up in the file. Default: the format's, unless the robot would lie down."""
    allow_pickle: Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")] = False
    """Read pickled files (amp-rsl-rl). Only numbers, texts and arrays are read; nothing in them is run."""

    def run(self) -> int:
        robot = robot_by_name(self.robot)
        if self.output.suffix not in (".npz", ".csv"):
            raise UserError(f"{self.output} ends in '{self.output.suffix}'; valid are .npz and .csv")
        check_is_new(self.output)
        mapping = None if self.mapping is None else read_mapping(self.mapping)
        joint_names = robot.joint_names if self.joint_names == "robot" else names(self.joint_names)
        options = ReadOptions(
            fps=self.fps,
            joint_names=joint_names,
            quat_order=self.quat_order,
            up=self.up,
            allow_pickle=self.allow_pickle,
        )
        reading = read_motion(self.input, options, self.dialect)
        print(f"{self.input}: {reading.dialect.name} ({reading.dialect.summary}); {reading.why}")
        model = robot.model(visuals=False)
        converted = convert(
            reading.recording,
            model,
            robot=robot.name,
            joint_names=robot.joint_names,
            bodies=names(self.bodies),
            mapping=mapping,
            fps=self.resample,
            most_bytes=conversion_budget(self.input),
        )
        for note in converted.notes:
            print(f"  {note}")
        for warning in converted.warnings:
            print(f"  warning: {warning}")
        if self.output.suffix == ".npz":
            save_clip(converted.clip, self.output)
            return 0
        write_table(converted.clip, model, self.output)
        back = ["consmimic", "motions", "convert", str(self.output), "--robot", robot.name]
        back += ["--fps", f"{converted.clip.fps:.17g}", "--joint-names", "robot"]
        print(f"{self.output}: {len(converted.clip)} rows: x y z qx qy qz qw {' '.join(converted.clip.joint_names)}")
        print(f"  the way back: {shlex.join(back)} OUT.npz")
        return 0
