"""A task as data: what is sensed, observed, rewarded, asked for and demonstrated.

Environments read these records; the files in ``tasks/`` fill them in, row by row of the paper's tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, TypeVar

from torch import Generator, Tensor

from consmimic.envs.layout import Layout
from consmimic.motions.clip import Clip
from consmimic.robots.robot import Robot
from consmimic.sim.physics import Physics


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What the policy was asked and what it did, beside the physics."""

    command: Tensor  # (N, C)
    action: Tensor  # (N, A)
    previous_action: Tensor  # (N, A)

    def at(self, ids: Tensor) -> Inputs:
        """The rows of the given environments."""
        return replace(self, **{f.name: getattr(self, f.name)[ids] for f in fields(self)})


@dataclass(frozen=True, slots=True)
class Observation:
    """One named entry of an observation group."""

    name: str
    width: int
    read: Callable[[Any], Tensor]
    noise: float = 0.0
    """Half width of the uniform noise that the policy sees; other groups see the truth."""


@dataclass(frozen=True, slots=True)
class RewardTerm:
    """One row of a reward table; the weight is per second, as in Isaac Lab."""

    name: str
    function: Callable[[Any], Tensor]
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstrated:
    """A named part of the demonstration features Φ(s), read from the robot and from a clip."""

    name: str
    width: int
    from_state: Callable[[Any], Tensor]  # → (N, width)
    from_clip: Callable[[Clip], Tensor]  # → (T, width)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingStyle:
    """Style as tracking of the clip, in step with the episode (Eq. 1)."""

    weights: Mapping[str, float]
    """w_i of each demonstrated part."""
    quaternions: tuple[str, ...] = ()
    """Parts whose sign means nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Showcase:
    """The episodes that figures show: one start, K goals."""

    joint_pos: tuple[float, ...]  # (J,)
    commands: Tensor  # (K, C)
    goals: Tensor  # (K, d), where the trajectory is to end


class Command(Protocol):
    @property
    def layout(self) -> Layout: ...

    def sample(self, count: int, generator: Generator) -> Tensor: ...


S = TypeVar("S")


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything that makes an environment, apart from how many robots there are."""

    name: str
    summary: str
    robot: Robot
    timestep: float
    decimation: int
    episode_seconds: float
    command: Command
    sense: Callable[[Physics, Inputs, Tensor | None], Any]
    """(physics, inputs, ids or None for all) → the state record that the functions below read."""
    reset: Callable[[Tensor, int, Generator], Tensor]
    """(joint limits (J, 2), count, generator) → joint positions, (count, J)."""
    observations: tuple[Observation, ...]
    rewards: tuple[RewardTerm, ...]
    demonstrated: tuple[Demonstrated, ...]
    style: TrackingStyle
    demonstration: Callable[[], Clip]
    """The built-in clip; made, not downloaded."""
    tracking: Callable[[Any], Tensor]
    """The share of the task done in a step, 0 to 1: averaged over an episode it is the tracking score."""
    trajectory: Callable[[Any], Tensor]
    """What the imitation score compares with the clip, (N, d)."""
    clip_trajectory: Callable[[Clip], Tensor]
    """The same, read from a clip, (T, d)."""
    imitation_scale: float
    """η of Eq. 12."""
    showcase: Showcase
    terminated: Callable[[Any], Tensor] | None = None
    """Failure, (N,) bool; None: episodes only ever time out."""

    @property
    def step_seconds(self) -> float:
        return self.timestep * self.decimation

    @property
    def episode_steps(self) -> int:
        return round(self.episode_seconds / self.step_seconds)

    @property
    def layout(self) -> Layout:
        """The policy's observation, by name."""
        return Layout({entry.name: entry.width for entry in self.observations})

    @property
    def features(self) -> Layout:
        """The demonstration features Φ(s), by name."""
        return Layout({part.name: part.width for part in self.demonstrated})
