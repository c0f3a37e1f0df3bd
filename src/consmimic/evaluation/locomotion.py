"""How a legged robot walks: its gait at one speed, and how well it follows all the speeds that it may be asked for.

What is measured, and where that misleads: docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from consmimic.envs import Task, TaskEnv
from consmimic.envs.task import VELOCITIES, Walking
from consmimic.errors import UserError
from consmimic.evaluation.dtw import relaxed_dtw_batch
from consmimic.evaluation.rollout import Policy, commanded_env
from consmimic.evaluation.scores import (
    Array,
    mechanical_work,
    phase_difference,
    swing_durations,
    symmetry_score,
)
from consmimic.method.symmetry import SignedPermutation
from consmimic.motions import Clip

GAIT_ROBOTS = 16
GAIT_SECONDS, GAIT_SETTLING_SECONDS = 10.0, 2.0
SYMMETRY_SECONDS = 2.0
SHORTEST_SWING_SECONDS = 0.06
"""Less is a bounce, which would count as a step of its own in the phases."""
SHORTEST_WALK = 0.25
"""Share of the commanded distance without which work per metre means nothing."""
MAP_SECONDS, MAP_SETTLING_SECONDS = 6.0, 3.0


# ---------------------------------------------------------------- recording


@dataclass(frozen=True, kw_only=True, eq=False)
class Walk:
    """N robots for T steps; after a fall the numbers are of the robot's next episode."""

    contact: NDArray[np.bool_]  # (T, N, F)
    velocity: Array  # (T, N, 3)
    torque: Array  # (T, N, J)
    joint_vel: Array  # (T, N, J)
    trajectory: Array  # (T, N, d)
    fell: NDArray[np.bool_]  # (N,)
    step_seconds: float

    def after(self, seconds: float) -> Walk:
        """Without the first seconds."""
        return self._of_each(lambda values: values[self.steps(seconds) :])

    def upright(self) -> Walk:
        """Of the robots that did not fall."""
        return replace(self._of_each(lambda values: values[:, ~self.fell]), fell=self.fell[~self.fell])

    def steps(self, seconds: float) -> int:
        return round(seconds / self.step_seconds)

    @property
    def seconds(self) -> float:
        return len(self.contact) * self.step_seconds

    def _of_each(self, part: Callable[[NDArray[Any]], NDArray[Any]]) -> Walk:
        recorded = [f.name for f in fields(self) if f.name not in ("fell", "step_seconds")]
        return replace(self, **{name: part(getattr(self, name)) for name in recorded})


def record_walk(env: TaskEnv, policy: Policy, walking: Walking, seconds: float) -> Walk:
    """Every robot from its reset on."""
    task, steps = env.task, round(seconds / env.task.step_seconds)
    if steps > task.episode_steps:
        raise UserError(
            f"a walk of {seconds:g} s is to be recorded, but an episode of {task.name} has {task.episode_seconds:g} s"
        )
    read = {
        "contact": walking.contact,
        "velocity": walking.velocity,
        "torque": walking.torque,
        "joint_vel": walking.joint_vel,
        "trajectory": task.trajectory,
    }
    recorded: dict[str, list[Tensor]] = {name: [] for name in read}
    fell = torch.zeros(env.num_envs, dtype=torch.bool)
    obs = env.get_observations()
    with torch.inference_mode():
        for _ in range(steps):
            obs, _, dones, extras = env.step(policy(obs))
            for name, function in read.items():
                recorded[name].append(function(env.last_state))
            fell |= dones & ~extras["time_outs"]
    arrays = {name: torch.stack(values) for name, values in recorded.items()}
    return Walk(
        contact=arrays.pop("contact").bool().numpy(),
        **{name: values.double().numpy() for name, values in arrays.items()},
        fell=fell.numpy(),
        step_seconds=task.step_seconds,
    )


# ---------------------------------------------------------------- gait


@dataclass(frozen=True, kw_only=True)
class GaitScores:
    """The cells of a results row that a recorded gait fills: means over the robots that did not fall."""

    symmetry: float | None = None
    w_mech: float | None = None
    w_mech_absolute: float | None = None
    w_mech_per_metre: float | None = None
    t_air: float | None = None
    diagonal_phase: float | None = None
    front_phase: float | None = None
    gait_speed: float | None = None
    gait_seconds: float
    gait_falls: float


def gait_scores(walk: Walk, walking: Walking, eta: float) -> GaitScores:
    """``walk`` is at the gait command and begins when the robots are on their way."""
    falls, seconds = float(walk.fell.mean()), walk.seconds
    if walk.fell.all():
        return GaitScores(gait_seconds=seconds, gait_falls=falls)
    walk = walk.upright()
    work = mechanical_work(walk.torque, walk.joint_vel, walk.step_seconds)  # (N,)
    metres = _progress(walk, walking)
    wanted = seconds * float(np.linalg.norm(walking.gait_command[:2]))
    swings = np.concatenate([swing_durations(robot, walk.step_seconds) for robot in _robots(walk.contact)])
    return GaitScores(
        symmetry=_symmetry(walk, walking.mirrors, eta) if walking.mirrors else None,
        w_mech=float(work.mean()),
        w_mech_absolute=float(mechanical_work(walk.torque, walk.joint_vel, walk.step_seconds, absolute=True).mean()),
        w_mech_per_metre=float(work.sum() / metres.sum()) if metres.mean() >= SHORTEST_WALK * wanted else None,
        t_air=float(swings.mean()) if len(swings) else None,
        diagonal_phase=_mean_known(_phases(walk, walking, walking.diagonal_pairs)),
        front_phase=_mean_known(_phases(walk, walking, [walking.front_pair] if walking.front_pair else [])),
        gait_speed=float(metres.mean() / seconds),
        gait_seconds=seconds,
        gait_falls=falls,
    )


def shown_contact(walk: Walk, walking: Walking) -> NDArray[np.bool_]:
    """The steps of one robot, (T, F): of those that did not fall, the one with the median diagonal phase."""
    if walk.fell.all():
        return walk.contact[:, 0][:0]
    walk = walk.upright()
    phases = _phases(walk, walking, walking.diagonal_pairs)
    ranked, known = np.argsort(phases, kind="stable"), int(np.isfinite(phases).sum())  # NaN last
    return walk.contact[:, ranked[max(0, known - 1) // 2]]


def _progress(walk: Walk, walking: Walking) -> Array:
    """Metres in the commanded direction, as the base sees it, (N,)."""
    wanted = np.array(walking.gait_command[:2])
    return (walk.velocity[..., :2] @ wanted).sum(axis=0) * walk.step_seconds / np.linalg.norm(wanted)


def _phases(walk: Walk, walking: Walking, pairs: Sequence[tuple[str, str]]) -> Array:
    """Mean phase difference of the pairs that have one, for each robot, (N,); NaN where none has."""
    shortest = max(1, walk.steps(SHORTEST_SWING_SECONDS))
    feet = walking.feet
    return np.array(
        [
            _mean_known(
                [
                    phase_difference(robot[:, feet.index(a)], robot[:, feet.index(b)], shortest_swing=shortest)
                    for a, b in pairs
                ]
            )
            for robot in _robots(walk.contact)
        ],
        dtype=np.float64,
    )


def _symmetry(walk: Walk, mirrors: Sequence[SignedPermutation], eta: float) -> float:
    """Eq. 13 over the first ``SYMMETRY_SECONDS``."""
    motion = walk.trajectory[: walk.steps(SYMMETRY_SECONDS)].transpose(1, 0, 2)  # (N, T, d)
    images = [mirror(torch.from_numpy(motion)).numpy() for mirror in mirrors]
    distances = np.stack([relaxed_dtw_batch(motion, image) for image in images])  # (|G|, N)
    return float(symmetry_score(distances, eta).mean())


# ---------------------------------------------------------------- map


def speed_errors(walk: Walk, commands: Array) -> tuple[Array, Array]:
    """Mean |v − v*| in the plane (m/s) and |ω − ω*| (rad/s), (N,) each; NaN for robots that fell."""
    error = walk.velocity - commands  # (T, N, 3)
    planar, turning = np.linalg.norm(error[..., :2], axis=-1).mean(axis=0), np.abs(error[..., 2]).mean(axis=0)
    return np.where(walk.fell, np.nan, planar), np.where(walk.fell, np.nan, turning)


def demonstrated_range(walking: Walking, clip: Clip) -> Array:
    """From the least to the most that the clip shows of what the map varies, (2, 2): across, up."""
    shown = walking.clip_velocity(clip).double().numpy()  # (T, 3)
    columns = shown[:, [VELOCITIES.index(name) for name, _ in (walking.across, walking.up)]]
    return np.stack([columns.min(axis=0), columns.max(axis=0)], axis=1)


# ---------------------------------------------------------------- both


def evaluate_walking(
    task: Task, walking: Walking, policy: Policy, clip: Clip, threads: int | None
) -> tuple[GaitScores, Mapping[str, NDArray[Any]]]:
    """The cells of the row, and ``PolicyRecord.walking``. Robots start as the task's do, and nobody pushes them."""
    task = replace(task, pushes=None)
    wanted = torch.tensor(walking.gait_command).repeat(GAIT_ROBOTS, 1)
    gait = record_walk(commanded_env(task, wanted, clip, threads), policy, walking, GAIT_SECONDS)
    gait = gait.after(GAIT_SETTLING_SECONDS)

    commands = walking.map_commands
    follow = record_walk(commanded_env(task, commands, clip, threads), policy, walking, MAP_SECONDS)
    speed_error, turn_error = speed_errors(follow.after(MAP_SETTLING_SECONDS), commands.double().numpy())
    (across, columns), (up, rows) = walking.across, walking.up
    shape = len(rows), len(columns)
    return gait_scores(gait, walking, task.imitation_scale), {
        "contact": shown_contact(gait, walking),
        "feet": np.array(walking.feet),
        "step_seconds": np.array(task.step_seconds),
        "gait_command": np.array(walking.gait_command),
        "map_axes": np.array([across, up]),
        "map_across": columns.double().numpy(),
        "map_up": rows.double().numpy(),
        "speed_error": speed_error.reshape(shape),
        "turn_error": turn_error.reshape(shape),
        "demonstrated": demonstrated_range(walking, clip),
    }


def _robots(contact: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Robot by robot: (T, N, F) → (N, T, F)."""
    return contact.swapaxes(0, 1)


def _mean_known(values: Sequence[float] | Array) -> float | None:
    """Of those that are not NaN; None where all are."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else None
