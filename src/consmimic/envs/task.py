"""A task as data: what is sensed, observed, rewarded, asked for and demonstrated.

Environments read these records; the files in ``tasks/`` fill them in, row by row of the paper's tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, TypeVar

import torch
from torch import Generator, Tensor

from consmimic.envs.layout import Layout
from consmimic.errors import UserError, unknown
from consmimic.method.symmetry import SignedPermutation
from consmimic.motions.clip import Clip
from consmimic.robots.robot import Robot
from consmimic.sim.physics import Physics


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What the policy was asked and what it did, beside the physics."""

    command: Tensor  # (N, C)
    action: Tensor  # (N, A)
    previous_action: Tensor  # (N, A)
    memory: Tensor  # (N, M), what the task noted after the last step; zero after a reset

    def at(self, ids: Tensor) -> Inputs:
        """The rows of the given environments."""
        return replace(self, **{f.name: getattr(self, f.name)[ids] for f in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where episodes begin. Velocities that are not given are zero; a fixed base has no root."""

    joint_pos: Tensor  # (N, J)
    joint_vel: Tensor | None = None  # (N, J)
    root_pos: Tensor | None = None  # (N, 3)
    root_quat: Tensor | None = None  # (N, 4)
    root_lin_vel: Tensor | None = None  # (N, 3), world
    root_ang_vel: Tensor | None = None  # (N, 3), in the root's own frame

    def repeated(self, count: int) -> Start:
        """The one start of one robot, for many."""
        given = {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None}
        return Start(**{name: value.repeat(count, 1) for name, value in given.items()})


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
class AdversarialStyle:
    """Style as likeness of single transitions to the clip's, judged by a discriminator (Eqs. 2, 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the rewards of a step need of the step before it."""

    layout: Layout
    note: Callable[[Any], Tensor]
    """State record → (N, width)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Commands that start small and grow while they are followed: an exp kernel gives no gradient from afar."""

    start: float
    """Share of the full range in the beginning."""
    following: Callable[[Any], Tensor]
    """State record → how well each robot follows its command, (N,), 0 to 1."""
    standing: Callable[[Any], Tensor]
    """State record → how well it would if it stood still."""
    enough: float
    """The range grows while the robots are at least this share of the way from standing still to following exactly."""
    seconds: float
    """Simulated time to grow from nothing to the full range, if all goes well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushes:
    """Now and then the base's horizontal velocity is set to a random one."""

    interval: tuple[float, float]  # s
    speed: float  # m/s, each axis within ± this


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMirror:
    """L_g of Eqs. 10 and 11 for everything that a policy deals in."""

    name: str
    observation: SignedPermutation
    action: SignedPermutation
    features: SignedPermutation  # of Φ(s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Showcase:
    """The episodes that figures show: one start, K goals."""

    start: Start  # of one robot
    commands: Tensor  # (K, C)
    goals: Tensor  # (K, d), where the trajectory is to end


VELOCITIES = ("v_x", "v_y", "omega_z")
"""What a robot is asked for, in this order, in its base's frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walking:
    """How to look at a robot's walk: what to ask for, and what to read. Velocities are those of ``VELOCITIES``."""

    gait_command: tuple[float, float, float]
    """At which the gait is recorded."""
    across: tuple[str, Tensor]
    """One of ``VELOCITIES`` and its values, (A,), in the map of errors; what is on neither axis is 0."""
    up: tuple[str, Tensor]
    velocity: Callable[[Any], Tensor]  # state record → (N, 3)
    clip_velocity: Callable[[Clip], Tensor]  # → (T, 3)
    torque: Callable[[Any], Tensor]  # → (N, J)
    joint_vel: Callable[[Any], Tensor]  # → (N, J)
    contact: Callable[[Any], Tensor]  # → (N, F) bool
    feet: tuple[str, ...]
    """Short names, in the order of ``contact``."""
    diagonal_pairs: tuple[tuple[str, str], ...] = ()
    front_pair: tuple[str, str] | None = None
    mirrors: tuple[SignedPermutation, ...] = ()
    """G of Eq. 13, of ``Task.trajectory``: those that leave ``gait_command`` as it is; others ask for another walk."""

    def __post_init__(self) -> None:
        for name, _ in (self.across, self.up):
            if name not in VELOCITIES:
                raise unknown("velocity", name, VELOCITIES)
        for pair in (*self.diagonal_pairs, *([self.front_pair] if self.front_pair else [])):
            for foot in pair:
                if foot not in self.feet:
                    raise unknown("foot", foot, self.feet)
        if not any(self.gait_command[:2]):
            raise UserError(f"gait_command is {self.gait_command}; v_x or v_y must not be 0: a gait needs a walk")

    @property
    def map_commands(self) -> Tensor:
        """Row by row, (U·A, 3)."""
        (across, columns), (up, rows) = self.across, self.up
        commands = torch.zeros(len(rows), len(columns), len(VELOCITIES))
        commands[..., VELOCITIES.index(across)] = columns
        commands[..., VELOCITIES.index(up)] = rows.unsqueeze(1)
        return commands.flatten(0, 1)


class Command(Protocol):
    @property
    def layout(self) -> Layout: ...

    @property
    def resample_seconds(self) -> float | None:
        """A new one this often; None: one an episode."""
        ...

    def sample(self, count: int, generator: Generator, share: float = 1.0) -> Tensor:
        """Commands from this share of the full range, (count, C)."""
        ...


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
    reset: Callable[[Tensor, int, Generator], Start]
    """(joint limits (J, 2), count, generator) → where that many episodes begin."""
    observations: tuple[Observation, ...]
    rewards: tuple[RewardTerm, ...]
    demonstrated: tuple[Demonstrated, ...]
    style: TrackingStyle | AdversarialStyle
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
    imitation_span: tuple[float, float] | None = None
    """From when to when in an episode its motion is compared with the clip, s; None: all of it."""
    other_demonstrations: Mapping[str, Callable[[], Clip]] = field(default_factory=dict)
    """Further built-in clips, by name."""
    showcase: Showcase | None = None
    walking: Walking | None = None
    mirrors: tuple[TaskMirror, ...] = ()
    memory: Memory | None = None
    growth: Growth | None = None
    pushes: Pushes | None = None
    randomise: Callable[[Physics, Generator], None] | None = None
    """Gives every robot a body of its own, once."""
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
