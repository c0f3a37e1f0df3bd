"""The paper's robots: one MuJoCo model each, written here from published figures, and its named figures."""

from consmimic.errors import unknown
from consmimic.robots.anymal_d import ANYMAL_D
from consmimic.robots.panda import PANDA
from consmimic.robots.robot import Robot

__all__ = ["ROBOTS", "Robot", "robot_by_name"]

ROBOTS: dict[str, Robot] = {robot.name: robot for robot in (PANDA, ANYMAL_D)}


def robot_by_name(name: str) -> Robot:
    if name not in ROBOTS:
        raise unknown("robot", name, ROBOTS)
    return ROBOTS[name]
