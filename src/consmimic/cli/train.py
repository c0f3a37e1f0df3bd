"""``consmimic train``."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
import yaml

from consmimic.cli.options import KeyValues, OptionalClip, OptionalInt, OptionalName, OptionalPath, OptionalShare
from consmimic.cli.progress import shown
from consmimic.envs import Task
from consmimic.errors import UserError
from consmimic.motions import Clip
from consmimic.runs import RunFolder, RunParams, TrainingStopped, train
from consmimic.runs.provenance import commit, machine
from consmimic.tasks import Method, Preset, task_entry


@dataclass(frozen=True)
class Train:
    """Train a policy. The run's folder is printed at the end; every run can be resumed.

    Try:

      consmimic train Franka-Reach --alpha 0.8 --seed 1
      consmimic train Franka-Reach --method fixed --style-weight 0.2
      consmimic train Franka-Reach --set entropy_coef=0.01 constraint.multiplier_lr=0.5
      consmimic train --resume logs/rsl_rl/franka-reach/2026-01-31_12-00-00_consmimic-a0.8-s1 --iterations 200
    """

    task: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="TASK", help_behavior_hint="")] = None
    """Name of a task; `consmimic list` shows them. Not needed with --resume."""
    method: Literal["consmimic", "task-only", "fixed"] = "consmimic"
    """consmimic keeps the task by a constraint; task-only ignores the clip; fixed is the common weighted sum."""
    alpha: OptionalShare = None
    """consmimic: share of the task-only optimum to keep, 0 to 1. Default: the paper's for the task."""
    style_weight: OptionalShare = None
    """fixed: share of the style in the reward, 0 to 1 (the paper's baselines: 0.2 and 0.5)."""
    mix: Literal["rewards", "advantages"] = "rewards"
    """fixed: one critic on the weighted sum of rewards, or two critics and a weighted sum of advantages."""
    seed: int = 0
    """Seed of everything random. The same seed gives the same bits at any number of threads."""
    preset: str = "laptop"
    """laptop: minutes on a CPU. paper: the paper's tables to the letter."""
    iterations: OptionalInt = None
    """Learning iterations; with --resume additional ones. Default: the preset's."""
    num_envs: OptionalInt = None
    """Robots simulated at once. Default: the preset's."""
    threads: OptionalInt = None
    """Threads of the physics. Default: the cores that this process may use."""
    clip: OptionalClip = None
    """Your demonstration (npz), or the name of one that comes with the task. Default: the task's first."""
    symmetry: bool = True
    """Whether an adversarial style knows the robot's mirrors (the paper's symmetry-augmented style)."""
    resume: OptionalPath = None
    """Go on with this run folder, from its newest checkpoint."""
    config: OptionalPath = None
    """A YAML file of preset keys to change; `--set` goes on top."""
    set: KeyValues = ()
    """Preset keys to change, KEY=VALUE; a wrong key lists the valid ones."""
    name: OptionalName = None
    """Last part of the run folder's name. Default: method and seed."""
    progress: Literal["bar", "json", "none"] = "bar"
    """json: one line per iteration on the standard output, for other programs."""

    def run(self) -> int:
        if self.threads is not None and self.threads < 1:
            raise UserError(f"threads is {self.threads}; at least 1 is needed")
        if self.iterations is not None and self.iterations < 1:
            raise UserError(f"iterations is {self.iterations}; at least 1 is needed")
        if self.resume is not None:
            folder = self._resumed()
            additional = self.iterations
        else:
            params = self.params()
            folder = RunFolder.create(params.task, self.name or f"{params.method.label}-s{params.seed}")
            folder.write_params(params)
            additional = None
        try:
            with shown(self.progress) as show:
                train(folder, iterations=additional, threads=self.threads, on_progress=show)
        except TrainingStopped:
            print(f"stopped and saved. Go on with: consmimic train --resume {folder.path}", file=sys.stderr)
            return 130
        if self.progress != "json":
            print(folder.path)
        return 0

    def params(self) -> RunParams:
        """What is to be trained; everything is checked here, before anything is written."""
        if self.task is None:
            raise UserError("name a task to train, or --resume a run; `consmimic list` shows the tasks")
        entry = task_entry(self.task)
        alpha = self.alpha
        if self.method == "consmimic" and alpha is None:
            alpha = entry.default_alpha
        method = Method(
            name=self.method, alpha=alpha, style_weight=self.style_weight, mix=self.mix, symmetry=self.symmetry
        )
        preset = self._preset(entry.preset(self.preset))
        if preset.policy_symmetry and not entry.task.mirrors:
            raise UserError(f"preset key policy_symmetry is true, but {self.task} has no mirrors; set it false")
        clip = self.clip
        if clip is not None and clip not in entry.task.other_demonstrations:
            clip = str(Path(clip).resolve())
            _check_clip(Path(clip), entry.task)
        if self.name is not None and Path(self.name).name != self.name:
            raise UserError(f"name is '{self.name}'; it is a part of a folder's name, without /")
        return RunParams(
            task=self.task,
            method=method,
            seed=self.seed,
            preset_name=self.preset,
            preset=preset,
            clip=clip,
            command=shlex.join(["consmimic", *sys.argv[1:]]),
            commit=commit(),
            machine=machine(),
        )

    def _preset(self, preset: Preset) -> Preset:
        changes: dict[str, Any] = {}
        if self.config is not None:
            changes |= _read_yaml(self.config)
        for item in self.set:
            key, equals, value = item.partition("=")
            if not equals:
                raise UserError(f"--set {item}: write KEY=VALUE")
            try:
                changes[key] = yaml.safe_load(value)
            except yaml.YAMLError as error:
                raise UserError(f"--set {item}: {error}") from None
        if self.iterations is not None:
            changes["max_iterations"] = self.iterations
        if self.num_envs is not None:
            changes["num_envs"] = self.num_envs
        changed = preset.with_changes(changes)
        if changed.constraint.alpha != preset.constraint.alpha:
            raise UserError("constraint.alpha is not a preset's: give --alpha")
        return changed

    def _resumed(self) -> RunFolder:
        assert self.resume is not None
        settled = (
            "method",
            "alpha",
            "style_weight",
            "mix",
            "seed",
            "preset",
            "num_envs",
            "clip",
            "symmetry",
            "config",
            "set",
            "name",
        )
        given = [f"--{key.replace('_', '-')}" for key in settled if getattr(self, key) != getattr(Train, key)]
        if given:
            raise UserError(f"{', '.join(given)}: a run goes on as it was started; --resume takes none of these")
        folder = RunFolder.open(self.resume)
        if self.task is not None and self.task != folder.params().task:
            raise UserError(f"{self.resume} is a run of {folder.params().task}, not of {self.task}")
        if not folder.checkpoints():
            raise UserError(f"{self.resume} has no checkpoint (model_*.pt) to go on from")
        return folder


def _check_clip(path: Path, task: Task) -> None:
    """Whether it has every joint of the robot, and what the task takes from a demonstration."""
    clip = Clip.load(path)
    try:
        clip.with_joints(task.robot.joint_names)
        for part in task.demonstrated:
            part.from_clip(clip)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"config {path} cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise UserError(f"config {path} must be a mapping of preset keys to values")
    return values
