"""From physics to a learning problem: named layouts, commands, rewards, and the vectorised environment."""

from consmimic.envs.env import TaskEnv
from consmimic.envs.layout import Layout
from consmimic.envs.task import (
    AdversarialStyle,
    Demonstrated,
    Growth,
    Memory,
    Observation,
    Pushes,
    RewardTerm,
    Showcase,
    Start,
    Task,
    TrackingStyle,
    Walking,
)

__all__ = [
    "AdversarialStyle",
    "Demonstrated",
    "Growth",
    "Layout",
    "Memory",
    "Observation",
    "Pushes",
    "RewardTerm",
    "Showcase",
    "Start",
    "Task",
    "TaskEnv",
    "TrackingStyle",
    "Walking",
]
