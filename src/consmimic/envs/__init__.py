"""From physics to a learning problem: named layouts, commands, rewards, and the vectorised environment."""

from consmimic.envs.env import TaskEnv
from consmimic.envs.layout import Layout
from consmimic.envs.task import Demonstrated, Observation, RewardTerm, Showcase, Task, TrackingStyle

__all__ = [
    "Demonstrated",
    "Layout",
    "Observation",
    "RewardTerm",
    "Showcase",
    "Task",
    "TaskEnv",
    "TrackingStyle",
]
