"""Train one run: make the environment and rsl_rl's runner, go on from a checkpoint if there is one, save safely."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from rsl_rl.runners import OnPolicyRunner

from consmimic.envs import Task, TaskEnv
from consmimic.errors import UserError
from consmimic.learner import ConsMimicPPO, IterationReport
from consmimic.motions import Clip
from consmimic.runs.folder import RunFolder, RunParams
from consmimic.tasks import runner_config, task_entry


class TrainingStopped(Exception):  # noqa: N818 - not an error
    """Someone asked to stop; the run is saved and can go on."""


class CheckpointedRunner(OnPolicyRunner):
    """rsl_rl's runner, whose checkpoints are written aside and renamed."""

    def save(self, path: str, infos: dict[str, Any] | None = None) -> None:
        super().save(f"{path}.part", infos)
        os.replace(f"{path}.part", path)


@dataclass(frozen=True)
class Progress:
    """Where a training stands after an iteration."""

    iteration: int
    total: int
    env_steps: int
    seconds: float
    """Of training, over all sessions of the run."""
    scalars: dict[str, float]


def load_clip(task: Task, clip: str | None) -> Clip:
    """A run's demonstration: the task's own (None), another of its built-in ones by name, or an npz by path."""
    if clip is None:
        return task.demonstration()
    if clip in task.other_demonstrations:
        return task.other_demonstrations[clip]()
    return Clip.load(Path(clip)).with_joints(task.robot.joint_names)


def make_env(params: RunParams, num_envs: int, seed: int, threads: int | None) -> TaskEnv:
    """The run's environment, with the clip it was trained on."""
    task = task_entry(params.task).task
    return TaskEnv(task, num_envs, seed=seed, threads=threads, clip=load_clip(task, params.clip))


def make_runner(params: RunParams, env: TaskEnv, log_dir: Path | None) -> OnPolicyRunner:
    """rsl_rl's runner with ConsMimicPPO; everything random follows the run's seed."""
    torch.set_num_threads(params.preset.torch_threads)
    torch.manual_seed(params.seed)
    config = runner_config(params.preset, params.method)
    return CheckpointedRunner(env, config, None if log_dir is None else str(log_dir), "cpu")


def train(
    folder: RunFolder,
    *,
    iterations: int | None = None,
    threads: int | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Train the run in the folder, from its newest checkpoint if it has one.

    ``iterations`` are additional ones, as in rsl_rl; by default as many as its preset still lacks.
    """
    params = folder.params()
    preset = params.preset
    resumed = bool(folder.checkpoints())
    path, checkpoint = folder.load_checkpoint() if resumed else (None, {})
    if resumed and "optimizer_state_dict" not in checkpoint:
        raise UserError(f"{folder.path} holds a published policy, without what training needs to go on from it")
    env = make_env(params, preset.num_envs, params.seed, threads)
    with (folder.path / "train.log").open("a") as log, contextlib.redirect_stdout(log):
        runner = make_runner(params, env, folder.path)
        alg = runner.alg
        assert isinstance(alg, ConsMimicPPO)
        seconds_before = 0.0
        if resumed:
            runner.load(str(path))
            # The next iteration: rsl_rl itself would do the last one's number again.
            runner.current_learning_iteration = checkpoint["iter"] + 1
            seconds_before = float(checkpoint["infos"]["seconds"])
            folder.truncate_history(alg.iteration)
        total = alg.iteration + iterations if iterations is not None else max(preset.max_iterations, alg.iteration)
        steps = preset.num_envs * preset.num_steps_per_env
        started = time.perf_counter()
        infos = {"seconds": seconds_before}

        def note_status() -> None:
            folder.write_status(
                finished=alg.iteration >= preset.max_iterations,
                iterations=alg.iteration,
                env_steps=alg.iteration * steps,
                seconds=infos["seconds"],
            )

        _after_each_checkpoint(runner, infos, note_status)
        runner.logger.tot_timesteps = alg.iteration * steps
        runner.logger.tot_time = seconds_before

        with _stop_on_interrupt() as stop_requested:

            def report(iteration: IterationReport) -> None:
                seconds = infos["seconds"] = seconds_before + time.perf_counter() - started
                progress = Progress(
                    iteration=iteration.iteration,
                    total=total,
                    env_steps=iteration.iteration * steps,
                    seconds=seconds,
                    scalars=iteration.scalars,
                )
                std = alg.get_policy().distribution.std_param.mean().item()  # type: ignore[union-attr]
                row = {"iteration": progress.iteration, "env_steps": progress.env_steps, "seconds": seconds}
                folder.append_history(row | {"action_std": std} | iteration.scalars)
                on_progress(progress)
                if stop_requested():
                    raise TrainingStopped

            alg.on_iteration = report
            try:
                if total > alg.iteration:
                    runner.learn(total - alg.iteration, init_at_random_ep_len=not resumed)
            except TrainingStopped:
                runner.current_learning_iteration = alg.iteration - 1
                runner.save(str(folder.path / f"model_{alg.iteration - 1}.pt"))
                runner.logger.stop_logging_writer()
                raise
        note_status()


def load_policy(folder: RunFolder) -> Callable[[Any], torch.Tensor]:
    """The deterministic policy of the newest readable checkpoint: observations in, actions out."""
    params = folder.params()
    path, _ = folder.load_checkpoint()
    env = make_env(params, 1, seed=0, threads=1)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        runner = make_runner(params, env, None)
        try:
            runner.load(str(path), load_cfg={"actor": True})
        except (RuntimeError, KeyError) as error:
            raise UserError(f"{path} does not fit the run's own parameters: {error}") from None
    return runner.get_inference_policy("cpu")


def _after_each_checkpoint(runner: OnPolicyRunner, infos: dict[str, float], then: Callable[[], None]) -> None:
    """Have every checkpoint of the runner carry the infos, and do something after it."""
    save = runner.save

    def save_and_then(path: str, _: dict[str, Any] | None = None) -> None:
        save(path, dict(infos))
        then()

    runner.save = save_and_then  # type: ignore[method-assign]


@contextlib.contextmanager
def _stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Ctrl-C asks to stop after the iteration; a second one stops at once."""
    asked = False

    def ask(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, before)

    try:
        before = signal.signal(signal.SIGINT, ask)
    except ValueError:  # not the main thread: the caller stops us otherwise
        yield lambda: False
        return
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
