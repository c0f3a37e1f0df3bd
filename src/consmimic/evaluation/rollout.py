"""Whole episodes of a deterministic policy, and what is measured on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict
from torch import Tensor

from consmimic.envs import Layout, Task, TaskEnv
from consmimic.envs.task import Showcase
from consmimic.errors import UserError
from consmimic.evaluation.dtw import relaxed_dtw_batch
from consmimic.evaluation.scores import imitation_score
from consmimic.motions import Clip

Policy = Callable[[TensorDict], Tensor]

EVALUATION_SEED = 20_000
"""The same episodes for every policy: starts and targets do not add to the differences between methods."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Rollout:
    """E episodes from their start to their end; T steps at most."""

    returns: NDArray[np.float64]  # (E,), undiscounted task return
    tracking: NDArray[np.float64]  # (E,), mean over the episode
    style_reward: NDArray[np.float64]  # (E,), mean over the episode; NaN where the environment gives none
    lengths: NDArray[np.int64]  # (E,), steps
    failed: NDArray[np.bool_]  # (E,)
    start: NDArray[np.float64]  # (E, d), where the trajectory begins, before the first step
    trajectory: NDArray[np.float64]  # (E, T, d), what imitation is measured on; NaN after the end
    terms: dict[str, float]  # mean weighted sum per episode of each reward term


def roll_out(env: TaskEnv, policy: Policy) -> Rollout:
    """One episode in every environment, from a reset."""
    task, count, steps = env.task, env.num_envs, env.task.episode_steps
    sums = {name: torch.zeros(count, dtype=torch.float64) for name in ("returns", "tracking", "style")}
    terms = torch.zeros(len(task.rewards), dtype=torch.float64)
    lengths = torch.zeros(count, dtype=torch.long)
    failed = torch.zeros(count, dtype=torch.bool)
    alive = torch.ones(count, dtype=torch.bool)
    unknown = torch.full((count,), torch.nan)
    trajectory: Tensor | None = None
    start = task.trajectory(env.last_state).double().numpy()
    obs = env.get_observations()
    with torch.inference_mode():
        for step in range(steps):
            obs, rewards, dones, extras = env.step(policy(obs))
            state, weighted = env.last_state, env.last_terms
            if trajectory is None:
                trajectory = torch.full((count, steps, task.trajectory(state).shape[1]), torch.nan)
            trajectory[alive, step] = task.trajectory(state)[alive]
            sums["returns"][alive] += rewards[alive]
            sums["tracking"][alive] += task.tracking(state)[alive]
            sums["style"][alive] += extras.get("style_reward", unknown)[alive]
            terms += weighted[alive].sum(dim=0) / count
            lengths[alive] += 1
            failed |= alive & dones & ~extras["time_outs"]
            alive &= ~dones
    assert trajectory is not None
    return Rollout(
        returns=sums["returns"].numpy(),
        tracking=(sums["tracking"] / lengths).numpy(),
        style_reward=(sums["style"] / lengths).numpy(),
        lengths=lengths.numpy(),
        failed=failed.numpy(),
        start=start,
        trajectory=trajectory.double().numpy(),
        terms={term.name: float(value) for term, value in zip(task.rewards, terms, strict=True)},
    )


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The cells of a results row that a rollout fills."""

    value: float
    tracking: float
    imitation: float | None
    imitation_per_frame: float | None
    style_reward: float | None
    falls: float | None


def score(task: Task, clip: Clip, rollout: Rollout) -> Scores:
    """Task and imitation of a rollout; only episodes with the whole window are compared with the clip."""
    demonstration = task.clip_trajectory(clip.resampled(1.0 / task.step_seconds)).double().numpy()
    first, last = (round(seconds / task.step_seconds) for seconds in imitation_window(task))
    complete = rollout.lengths >= last
    imitation = per_frame = None
    if complete.any():
        distances = relaxed_dtw_batch(rollout.trajectory[complete, first:last], demonstration)
        imitation = float(np.mean(imitation_score(distances, task.imitation_scale)))
        per_frame = float(distances.mean() / (last - first))
    return Scores(
        value=float(rollout.returns.mean()),
        tracking=float(rollout.tracking.mean()),
        imitation=imitation,
        imitation_per_frame=per_frame,
        style_reward=known_or_none(rollout.style_reward.mean()),
        falls=None if task.terminated is None else float(rollout.failed.mean()),
    )


def imitation_window(task: Task) -> tuple[float, float]:
    """From when to when in an episode its motion is compared with the clip, s."""
    return task.imitation_span or (0.0, task.episode_seconds)


def known_or_none(value: float) -> float | None:
    """As a cell of a row: what is NaN was not measured."""
    return None if np.isnan(value) else float(value)


def evaluation_env(task: Task, clip: Clip | None, episodes: int, threads: int | None) -> TaskEnv:
    if episodes < 1:
        raise UserError(f"episodes is {episodes}; at least 1 is needed")
    return TaskEnv(task, episodes, seed=EVALUATION_SEED, threads=threads, clip=clip, growing=False)


def showcase_env(task: Task, showcase: Showcase, clip: Clip | None, threads: int | None) -> TaskEnv:
    """One robot for each of the showcase's goals."""
    start = showcase.start
    staged = replace(task, reset=lambda limits, count, generator: start.repeated(count))  # noqa: ARG005
    return commanded_env(staged, showcase.commands, clip, threads)


def commanded_env(task: Task, commands: Tensor, clip: Clip | None, threads: int | None) -> TaskEnv:
    """One robot for each command, which it keeps. What a robot is asked for after its first episode means nothing."""
    staged = replace(task, command=_Given(layout=task.command.layout, commands=commands))
    return evaluation_env(staged, clip, len(commands), threads)


@dataclass(frozen=True, kw_only=True)
class _Given:
    """Commands that are not drawn."""

    layout: Layout
    commands: Tensor
    resample_seconds: None = None

    def sample(self, count: int, generator: torch.Generator, share: float = 1.0) -> Tensor:  # noqa: ARG002
        return self.commands[:count]
