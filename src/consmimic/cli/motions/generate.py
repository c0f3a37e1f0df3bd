"""``consmimic motions generate``: the built-in demonstrations, with other parameters. One line for each below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from consmimic.cli.motions.common import NewPath, RobotName, save_clip
from consmimic.errors import UserError
from consmimic.motions.files import check_is_new
from consmimic.motions.forward import root_of
from consmimic.motions.reach import SinusoidalReach, generate_reach
from consmimic.motions.trot import Trot, generate_trot
from consmimic.motions.walk import Walk, generate_walk
from consmimic.robots import Robot, robot_by_name
from consmimic.tasks.franka_reach import COMMAND, POINTING_DOWN


@dataclass(frozen=True)
class Reach:
    """An arm's hand that sways to its goal on a sinusoid. In m and s."""

    output: NewPath
    """A new .npz."""
    path: Annotated[SinusoidalReach, tyro.conf.arg(name="")] = SinusoidalReach()  # noqa: RUF009 - immutable
    robot: RobotName = "panda"
    """An arm."""
    goal: tuple[float, float, float] = COMMAND.centre
    """Where the hand goes, in m."""
    goal_quat: tuple[float, float, float, float] = POINTING_DOWN
    """How it is turned there, wxyz."""

    def run(self) -> int:
        robot = robot_by_name(self.robot)
        check_is_new(self.output)
        if robot.end_effector is None:
            raise UserError(f"robot {robot.name} is no arm: it has no end effector to reach with")
        clip = generate_reach(
            robot.model(visuals=False),
            joint_names=robot.joint_names,
            start_joint_pos=robot.default_joint_pos,
            end_effector=robot.end_effector,
            goal_pos=self.goal,
            goal_quat=self.goal_quat,
            path=self.path,
        )
        save_clip(clip, self.output)
        return 0


@dataclass(frozen=True)
class TrotClip:
    """A quadruped that trots straight ahead at changing speeds, with a limp where asked. In m and s."""

    output: NewPath
    """A new .npz."""
    trot: Annotated[Trot, tyro.conf.arg(name="")] = Trot()  # noqa: RUF009 - immutable
    robot: RobotName = "anymal_d"
    """A robot with four feet."""

    def run(self) -> int:
        robot = robot_by_name(self.robot)
        check_is_new(self.output)
        if len(robot.feet) != 4:
            raise UserError(f"robot {robot.name} has {len(robot.feet)} feet; a trot needs four")
        save_clip(generate_trot(**_legged(robot), trot=self.trot), self.output)
        return 0


@dataclass(frozen=True)
class WalkClip:
    """A humanoid that walks straight ahead as people do, at one speed. In m, rad and s."""

    output: NewPath
    """A new .npz."""
    walk: Annotated[Walk, tyro.conf.arg(name="")] = Walk()  # noqa: RUF009 - immutable
    robot: RobotName = "gr1"
    """A humanoid."""

    def run(self) -> int:
        robot = robot_by_name(self.robot)
        check_is_new(self.output)
        if len(robot.feet) != 2:
            raise UserError(f"robot {robot.name} has {len(robot.feet)} feet; a walk needs two")
        save_clip(generate_walk(**_legged(robot), walk=self.walk), self.output)
        return 0


def _legged(robot: Robot) -> dict[str, Any]:
    """What the generators of gaits ask of a robot."""
    model = robot.model(visuals=False)
    return {
        "model": model,
        "root": root_of(model, robot.joint_names),
        "feet": robot.feet,
        "joint_names": robot.joint_names,
        "default_joint_pos": robot.default_joint_pos,
        "joint_velocity_limits": robot.joint_velocity_limits,
    }


Generator = (
    Annotated[Reach, tyro.conf.subcommand("reach")]
    | Annotated[TrotClip, tyro.conf.subcommand("trot")]
    | Annotated[WalkClip, tyro.conf.subcommand("walk")]
)


@dataclass(frozen=True)
class Generate:
    """Make a motion; no file is needed.

    Try:

      consmimic motions generate walk walk.npz --speed 1.2
      consmimic motions generate trot slow.npz --speeds 0.3 0.6 --asymmetry 0.5
      consmimic motions generate reach reach.npz --amplitude 0.05
    """

    generator: Annotated[Generator, tyro.conf.arg(name="")]

    def run(self) -> int | None:
        return self.generator.run()
