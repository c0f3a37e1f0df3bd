"""The paper's robots: one MuJoCo model each, written here from published figures, and its named figures."""

from consmimic.robots.anymal_d import ANYMAL_D
from consmimic.robots.gr1 import GR1
from consmimic.robots.panda import PANDA
from consmimic.robots.robot import Robot

__all__ = ["ROBOTS", "Robot"]

ROBOTS: dict[str, Robot] = {robot.name: robot for robot in (PANDA, ANYMAL_D, GR1)}
