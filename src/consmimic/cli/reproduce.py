"""``consmimic reproduce``: a plan of trainings and their evaluation, as commands that can be run alone."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from threading import Thread
from typing import IO, Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from consmimic.cli.evaluate import evaluate_all
from consmimic.cli.options import KeyValues, OptionalClip, OptionalInt, OptionalPath
from consmimic.cli.train import Train
from consmimic.errors import UserError
from consmimic.evaluation.evaluate import EPISODES
from consmimic.runs import RunFolder, RunParams
from consmimic.runs.folder import experiment_name
from consmimic.sim import available_threads
from consmimic.tasks import task_entry


@dataclass(frozen=True)
class Reproduce:
    """The paper's comparison on a task: train every method with every seed, evaluate, write rows and figures.

    The plan is a list of ordinary commands (--dry-run prints them). Trainings that are finished are not repeated,
    and a plan that was stopped or killed goes on where it was: run the same command again.
    """

    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")]
    """Name of a task; `consmimic list` shows them."""
    seeds: int = 5
    """Seeds 0 to SEEDS - 1 of every method."""
    alphas: Annotated[tuple[float, ...] | None, tyro.conf.arg(metavar="[SHARE ...]", help_behavior_hint="")] = None
    """ConsMimic with each of these. Default: the paper's for the task."""
    style_weights: tuple[float, ...] = (0.2, 0.5)
    """Fixed-weight baselines with each of these; task-only is always there."""
    mix: tuple[str, ...] = ("rewards",)
    """How the fixed weights mix: rewards, advantages, or both."""
    symmetry: Literal["with", "without", "both"] = "with"
    """ConsMimic with the robot's mirrors in its style, without, or both (the paper's table of symmetry scores)."""
    clip: OptionalClip = None
    """As for `consmimic train`."""
    preset: str = "laptop"
    """As for `consmimic train`."""
    iterations: OptionalInt = None
    """Of every training. Default: the preset's."""
    num_envs: OptionalInt = None
    """Robots in every training. Default: the preset's."""
    set: KeyValues = ()
    """Preset keys to change in every training, KEY=VALUE."""
    output: OptionalPath = None
    """Folder of the results. Default: results/TASK."""
    episodes: int = EPISODES
    """Episodes for each policy's evaluation."""
    jobs: OptionalInt = None
    """Trainings at once, each on its share of the cores. Default: as many as keep every core busy."""
    dry_run: bool = False
    """Print the commands and stop."""

    def run(self) -> int:
        cores = available_threads()
        jobs = max(1, cores // self._threads_of_one()) if self.jobs is None else self.jobs
        for name, number in (("jobs", jobs), ("seeds", self.seeds), ("episodes", self.episodes)):
            if number < 1:
                raise UserError(f"{name} is {number}; at least 1 is needed")
        trainings = self.trainings(threads=max(1, cores // jobs))
        planned = [(training, training.params()) for training in trainings]  # checks them all
        output = self.output or Path("results") / experiment_name(self.task)
        if self.dry_run:
            for training in trainings:
                print(shlex.join(command(training)))
            print(f"consmimic evaluate <the runs above> --episodes {self.episodes} --output {output}")
            return 0
        for _, params in planned:
            RunFolder.published(params, output / "runs")  # refuses now what it would refuse after the training
        folders = Plan(planned, jobs, output / "runs").run()
        evaluate_all(folders, output, episodes=self.episodes)
        return 0

    def _threads_of_one(self) -> int:
        """How many cores one training keeps busy while it learns."""
        return task_entry(self.task).preset(self.preset).torch_threads

    def trainings(self, threads: int) -> list[Train]:
        """Seed by seed, so that a plan that is stopped early has every method."""
        entry = task_entry(self.task)
        alphas = self.alphas if self.alphas is not None else entry.compared_alphas or (entry.default_alpha,)
        common: dict[str, Any] = {
            "task": self.task,
            "preset": self.preset,
            "iterations": self.iterations,
            "num_envs": self.num_envs,
            "clip": self.clip,
            "set": self.set,
            "threads": threads,
        }
        methods: list[dict[str, Any]] = [{"method": "task-only"}]
        methods += [
            {"method": "fixed", "style_weight": weight, "mix": mix} for mix in self.mix for weight in self.style_weights
        ]
        methods += [
            {"method": "consmimic", "alpha": alpha, "symmetry": symmetry}
            for alpha in alphas
            for symmetry in {"with": (True,), "without": (False,), "both": (True, False)}[self.symmetry]
        ]
        wanted = (Train(**common, **method, seed=seed) for seed in range(self.seeds) for method in methods)
        return list(dict.fromkeys(wanted))


def command(training: Train) -> list[str]:
    """The training as words of a command line."""
    words = ["consmimic", "train"]
    default = Train()
    for field in fields(Train):
        value = getattr(training, field.name)
        if value == getattr(default, field.name) and field.name not in ("method", "seed"):
            continue
        if field.name == "task":
            words.append(str(value))
        elif isinstance(value, bool):
            words.append(_flag(field.name) if value else _flag(f"no_{field.name}"))
        elif isinstance(value, tuple):
            words += [_flag(field.name), *map(str, value)]
        else:
            words += [_flag(field.name), str(value)]
    return words


class Plan:
    """Runs trainings as processes of their own, some at a time, and shows one line over all of them.

    What each one made is published, so that a results folder is enough to go on from, without the logs.
    """

    def __init__(self, planned: Sequence[tuple[Train, RunParams]], jobs: int, published: Path) -> None:
        self._planned = planned
        self._jobs = jobs
        self._published = published
        self._done = [0.0] * len(planned)  # share of each training that is done
        self._errors: dict[int, IO[str]] = {}
        self._words = ""

    def run(self) -> list[RunFolder]:
        """Every training's folder, in the plan's order."""
        waiting = []
        for index, (_, params) in enumerate(self._planned):
            if self._is_published(params):
                self._done[index] = 1.0
            else:
                waiting.append(index)
        already = len(self._planned) - len(waiting)
        if already:
            print(f"{already} of {len(self._planned)} trainings are finished already")
        running: dict[int, subprocess.Popen[str]] = {}
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[words]}"),
        )
        try:
            with Progress(*columns, console=Console(file=sys.stderr), speed_estimate_period=300) as bars:
                row = bars.add_task("", total=len(self._planned), completed=already, words="")
                while waiting or running:
                    while waiting and len(running) < self._jobs:
                        index = waiting.pop(0)
                        running[index] = self._start(index)
                    finished = sum(share >= 1.0 for share in self._done)
                    description = f"trainings {finished}/{len(self._planned)}"
                    bars.update(row, completed=sum(self._done), description=description, words=self._words)
                    time.sleep(0.5)
                    for index, process in list(running.items()):
                        if process.poll() is not None:
                            del running[index]
                            self._check(index, process)
                bars.update(row, completed=len(self._planned), words="")
        except BaseException:
            _stop(list(running.values()))
            print("stopped; the same command goes on from here", file=sys.stderr)
            raise
        return [self._folder(params) for _, params in self._planned]

    def _start(self, index: int) -> subprocess.Popen[str]:
        training, params = self._planned[index]
        folder = RunFolder.find(params)
        if folder is not None and folder.checkpoints():
            words = ["consmimic", "train", "--resume", str(folder.path), "--threads", str(training.threads)]
        else:
            words = command(training)
        self._errors[index] = tempfile.TemporaryFile("w+")  # noqa: SIM115 - read when the process has ended
        process = subprocess.Popen(
            [sys.executable, "-m", *words, "--progress", "json"],
            stdout=subprocess.PIPE,
            stderr=self._errors[index],
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(params.preset.torch_threads)},
            start_new_session=True,  # the terminal's Ctrl-C is for us; _stop passes one on
        )
        Thread(target=self._listen, args=(index, process), daemon=True).start()
        return process

    def _listen(self, index: int, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        method = self._planned[index][1].method.label
        for line in process.stdout:
            try:
                progress = json.loads(line)
                self._done[index] = min(progress["iteration"] / progress["total"], 0.999)
                self._words = f"{method}: style {progress['style_reward']:.2f} σ(λ) {progress['sigma_lambda']:.2f}"
            except (ValueError, KeyError, TypeError):
                continue

    def _check(self, index: int, process: subprocess.Popen[str]) -> None:
        if process.returncode == 0:
            self._done[index] = 1.0
            assert self._is_published(self._planned[index][1])
            return
        self._errors[index].seek(0)
        last = self._errors[index].read().strip().splitlines()[-1:] or ["no message"]
        words = shlex.join(command(self._planned[index][0]))
        raise UserError(f"a training failed (exit code {process.returncode}): {words}: {last[0]}")

    def _is_published(self, params: RunParams) -> bool:
        """Whether the training is finished; if only its logs say so, they are published now."""
        published = RunFolder.find(params, self._published)
        if published is not None and published.finished:
            return True
        logged = RunFolder.find(params)
        if logged is None or not logged.finished:
            return False
        logged.publish(self._published)
        return True

    def _folder(self, params: RunParams) -> RunFolder:
        folder = RunFolder.find(params, self._published)
        assert folder is not None
        return folder


def _stop(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Ask the trainings to save and stop, and wait for them."""
    for process in processes:
        process.send_signal(signal.SIGINT)
    for process in processes:
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
