"""From run folders to results: roll out each policy, score it, gather its history and its showcase."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

import numpy as np

from consmimic.envs import Task
from consmimic.errors import UserError
from consmimic.evaluation.locomotion import evaluate_walking
from consmimic.evaluation.results import Array, PolicyRecord, Results, Row
from consmimic.evaluation.rollout import Policy, evaluation_env, imitation_window, roll_out, score, showcase_env
from consmimic.motions import Clip
from consmimic.runs import RunFolder, RunParams
from consmimic.runs.training import load_clip, load_policy
from consmimic.tasks import task_entry

EPISODES = 256


def evaluate_run(folder: RunFolder, *, episodes: int = EPISODES, threads: int | None = None) -> PolicyRecord:
    """One run's row (its ratio still open), history, showcase and, of a legged robot, its walking."""
    params, status = folder.params(), folder.status()
    entry = task_entry(params.task)
    task = entry.task
    policy = load_policy(folder)
    clip = load_clip(task, params.clip)
    env = evaluation_env(task, clip, episodes, threads)
    rollout = roll_out(env, policy)
    scores = score(task, env.clip, rollout)
    begin, end = imitation_window(task)
    history = {name: np.array(values) for name, values in folder.read_history().items()}
    row = Row(
        task=params.task,
        method=params.method.name,
        style_weight=params.method.style_weight,
        mix=params.method.mix if params.method.name == "fixed" else None,
        alpha=params.method.alpha,
        mirrored=_mirrored(params, task),
        seed=params.seed,
        preset=params.preset_name,
        value=scores.value,
        tracking=scores.tracking,
        imitation=scores.imitation,
        imitation_per_frame=scores.imitation_per_frame,
        style_reward=scores.style_reward,
        falls=scores.falls,
        episodes=episodes,
        imitation_window_s=end - begin,
        imitation_rate_hz=1.0 / task.step_seconds,
        imitation_scale=task.imitation_scale,
        terms=rollout.terms,
        warmup_end=_warmup_end(history),
        env_steps=int(status.get("env_steps", 0)),
        wall_s=float(status.get("seconds", 0.0)),
        command=params.command,
        commit=params.commit,
        machine=params.machine,
    )
    record = PolicyRecord(row=row, history=history, showcase=_showcase(task, policy, env.clip, threads))
    if task.walking is None:
        return record
    gait, walk = evaluate_walking(task, task.walking, policy, env.clip, threads)
    return replace(record, row=replace(row, **asdict(gait)), walking=walk)


def _showcase(task: Task, policy: Policy, clip: Clip, threads: int | None) -> Array:
    """(K, T + 1, d); empty for a task without a showcase."""
    if task.showcase is None:
        return np.empty((0, 0, task.clip_trajectory(clip).shape[1]))
    shown = roll_out(showcase_env(task, task.showcase, clip, threads), policy)
    return np.concatenate([shown.start[:, None], shown.trajectory], axis=1)


def gather(records: Sequence[PolicyRecord], clip: Clip | None = None) -> Results:
    """Results of one task: value ratios filled in, and what the showcase was."""
    tasks = {record.row.task for record in records}
    if len(tasks) != 1:
        raise UserError(f"the runs are of several tasks ({', '.join(sorted(tasks))}); evaluate one task at a time")
    task = task_entry(tasks.pop()).task
    clip = clip or task.demonstration()
    demonstration = task.clip_trajectory(clip.resampled(1.0 / task.step_seconds)).double().numpy()
    goals = np.empty((0, demonstration.shape[1])) if task.showcase is None else task.showcase.goals.double().numpy()
    return Results(records=with_ratios(records), demonstration=demonstration, goals=goals)


def with_ratios(records: Iterable[PolicyRecord]) -> list[PolicyRecord]:
    """``value_ratio``: to the mean task-only value of the same task and preset; None without a task-only run."""
    records = list(records)
    filled = []
    for record in records:
        row = record.row
        baseline = [
            r.row.value
            for r in records
            if r.row.method == "task-only" and (r.row.task, r.row.preset) == (row.task, row.preset)
        ]
        ratio = row.value / float(np.mean(baseline)) if baseline else None
        filled.append(replace(record, row=replace(row, value_ratio=ratio)))
    return filled


def _mirrored(params: RunParams, task: Task) -> bool | None:
    if params.method.name == "task-only" or not task.mirrors:
        return None
    return params.method.symmetry and params.preset.style.symmetry


def _warmup_end(history: dict[str, Array]) -> int | None:
    """The last iteration of the warm-up, if the run had one and left it."""
    if "warmup" not in history:
        return None
    joint = np.flatnonzero(history["warmup"] == 0.0)
    return int(history["iteration"][joint[0]]) if len(joint) else None
