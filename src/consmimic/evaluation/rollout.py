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
    style_reward: NDArray[np.float64]  # (E,), mean over the episode
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
            sums["style"][alive] += extras["style_reward"][alive]
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
    imitation: float
    imitation_per_frame: float
    style_reward: float
    falls: float | None


def score(task: Task, clip: Clip, rollout: Rollout) -> Scores:
    """Task and imitation of a rollout; only episodes that ran their full length are compared with the clip."""
    demonstration = task.clip_trajectory(clip.resampled(1.0 / task.step_seconds)).double().numpy()
    complete = rollout.lengths == task.episode_steps
    imitation = per_frame = float("nan")
    if complete.any():
        distances = relaxed_dtw_batch(rollout.trajectory[complete], demonstration)
        imitation = float(np.mean(imitation_score(distances, task.imitation_scale)))
        per_frame = float(distances.mean() / task.episode_steps)
    return Scores(
        value=float(rollout.returns.mean()),
        tracking=float(rollout.tracking.mean()),
        imitation=imitation,
        imitation_per_frame=per_frame,
        style_reward=float(rollout.style_reward.mean()),
        falls=None if task.terminated is None else float(rollout.failed.mean()),
    )


def showcase_env(task: Task, clip: Clip | None, threads: int | None) -> TaskEnv:
    """One robot for each of the showcase's goals."""
    shown = task.showcase
    start = torch.tensor(shown.joint_pos)
    staged = replace(
        task,
        command=_Given(layout=task.command.layout, commands=shown.commands),
        reset=lambda limits, count, generator: start.repeat(count, 1),  # noqa: ARG005
    )
    return TaskEnv(staged, len(shown.commands), seed=EVALUATION_SEED, threads=threads, clip=clip)


@dataclass(frozen=True, kw_only=True)
class _Given:
    """Commands that are not drawn."""

    layout: Layout
    commands: Tensor

    def sample(self, count: int, generator: torch.Generator) -> Tensor:  # noqa: ARG002
        return self.commands[:count]


def evaluation_env(task: Task, clip: Clip | None, episodes: int, threads: int | None) -> TaskEnv:
    if episodes < 1:
        raise UserError(f"episodes is {episodes}; at least 1 is needed")
    return TaskEnv(task, episodes, seed=EVALUATION_SEED, threads=threads, clip=clip)
