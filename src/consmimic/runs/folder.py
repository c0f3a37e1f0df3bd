"""A run's folder: ``logs/rsl_rl/<experiment>/<date>_<name>/`` with checkpoints, parameters, history and status."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
import yaml

from consmimic.errors import UserError
from consmimic.learner.config import from_dict
from consmimic.tasks import Method, Preset

LOGS = Path("logs") / "rsl_rl"


@dataclass(frozen=True, kw_only=True)
class RunParams:
    """What was asked for: enough to train it again."""

    task: str
    method: Method
    seed: int
    preset_name: str
    preset: Preset
    clip: str | None = None
    """Path or built-in name of the demonstration; None: the task's own."""
    command: str = ""
    commit: str | None = None
    machine: str = ""

    def same_training(self, other: RunParams) -> bool:
        """Whether both would train the same policy."""
        keys = ("task", "method", "seed", "preset_name", "clip")
        ours, theirs = (params.preset.as_used_by(params.method) for params in (self, other))
        return ours == theirs and all(getattr(self, key) == getattr(other, key) for key in keys)


class RunFolder:
    """One run on disk. Files are written aside and renamed, so a killed run leaves no broken newest file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def create(task: str, name: str, root: Path = LOGS) -> RunFolder:
        """A new folder, named by the time."""
        experiment = root / experiment_name(task)
        stamp = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        for attempt in range(100):
            path = experiment / f"{stamp}_{name}{f'-{attempt}' if attempt else ''}"
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            return RunFolder(path)
        raise UserError(f"cannot make a run folder under {experiment}")

    @staticmethod
    def open(path: Path) -> RunFolder:
        """An existing run; says what is wrong with anything else."""
        if not path.is_dir():
            raise UserError(f"no run folder at {path}")
        folder = RunFolder(path)
        if not folder._params_file.is_file():
            raise UserError(f"{path} is not a run folder: it has no {folder._params_file.relative_to(path)}")
        return folder

    @staticmethod
    def find(params: RunParams, parent: Path | None = None) -> RunFolder | None:
        """The newest run of the same training among those in a folder, by default the task's logs; finished first."""
        found = []
        parent = LOGS / experiment_name(params.task) if parent is None else parent
        for file in sorted(parent.glob("*/params/run.yaml")):
            folder = RunFolder(file.parent.parent)
            try:
                same = folder.params().same_training(params)
            except UserError:
                continue  # a run of another version; it stays where it is
            if same:
                found.append(folder)
        return max(found, key=lambda folder: (folder.finished, folder.path.name), default=None)

    # --- parameters and status

    def write_params(self, params: RunParams) -> None:
        self._params_file.parent.mkdir(exist_ok=True)
        plain = json.loads(json.dumps(asdict(params)))  # tuples to lists
        _write(self._params_file, yaml.safe_dump(plain, sort_keys=False))

    def params(self) -> RunParams:
        try:
            values = yaml.safe_load(self._params_file.read_text())
            method = from_dict(Method, values.pop("method"), f"{self._params_file}: method")
            preset_values = values.pop("preset")
        except (OSError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
            raise UserError(f"{self._params_file} cannot be read: {error}") from None
        base = Preset(num_envs=1, max_iterations=1, hidden_dims=())
        preset = base.with_changes(preset_values)
        return from_dict(RunParams, {**values, "method": method, "preset": preset}, str(self._params_file))

    def write_status(self, **status: Any) -> None:
        _write(self._status_file, json.dumps(self.status() | status, indent=1))

    def status(self) -> dict[str, Any]:
        try:
            return json.loads(self._status_file.read_text())
        except (OSError, json.JSONDecodeError):
            return {}

    @property
    def finished(self) -> bool:
        return bool(self.status().get("finished"))

    # --- checkpoints

    def checkpoints(self) -> list[Path]:
        """Newest first."""
        numbered = []
        for path in self.path.glob("model_*.pt"):
            if match := re.fullmatch(r"model_(\d+)\.pt", path.name):
                numbered.append((int(match.group(1)), path))
        return [path for _, path in sorted(numbered, reverse=True)]

    def load_checkpoint(self) -> tuple[Path, dict[str, Any]]:
        """The newest checkpoint that can be read; says which ones could not."""
        checkpoints = self.checkpoints()
        if not checkpoints:
            raise UserError(f"{self.path} has no checkpoint (model_*.pt)")
        for path in checkpoints:
            try:
                # Our own file of tensors and plain values; weights_only refuses code in it.
                return path, torch.load(path, weights_only=True, map_location="cpu")
            except Exception as error:
                reason = (str(error).splitlines() or [type(error).__name__])[0]
                print(f"{path} cannot be read ({reason}); trying the one before it", file=sys.stderr)
        raise UserError(f"none of the {len(checkpoints)} checkpoints in {self.path} can be read")

    @staticmethod
    def published(params: RunParams, parent: Path) -> RunFolder:
        """Where a training is published, which may not exist yet; another one that is there keeps its place."""
        copy = RunFolder(parent / f"{params.method.label}-s{params.seed}")
        if copy._params_file.exists():
            try:
                same = copy.params().same_training(params)
            except UserError:
                same = False  # of another version
            if not same:
                raise UserError(
                    f"{copy.path} holds a training with other settings, which is not overwritten; "
                    "give another --output, or remove it first"
                )
        return copy

    def publish(self, parent: Path) -> RunFolder:
        """A copy small enough to be kept: parameters, status, history, and the policy without what training needs."""
        _, checkpoint = self.load_checkpoint()
        params = self.params()
        copy = RunFolder.published(params, parent)
        copy.path.mkdir(parents=True, exist_ok=True)
        copy._status_file.unlink(missing_ok=True)  # of an older copy, which is whole no more
        for old in copy.checkpoints():
            old.unlink()
        copy.write_params(params)
        _write(copy.history_file, self.history_file.read_text())
        aside = copy.path / "policy.part"
        torch.save({key: checkpoint[key] for key in ("actor_state_dict", "iter", "infos")}, aside)
        os.replace(aside, copy.path / f"model_{checkpoint['iter']}.pt")
        copy.write_status(**self.status())  # last: it says that the copy is whole
        return copy

    # --- history: one row per iteration

    def read_history(self) -> dict[str, list[float]]:
        """Column → values; nan where an iteration has none."""
        rows = list(self._rows())
        columns = {name: None for row in rows for name in row}
        return {name: [float(row.get(name) or "nan") for row in rows] for name in columns}

    def truncate_history(self, iterations: int) -> None:
        """Forget what lies after a checkpoint that training goes on from."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, HISTORY_COLUMNS, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(row for row in self._rows() if int(float(row["iteration"])) <= iterations)
        _write(self.history_file, text.getvalue())

    def append_history(self, scalars: Mapping[str, Any]) -> None:
        fresh = not self.history_file.exists()
        with self.history_file.open("a", newline="") as file:
            writer = csv.DictWriter(file, HISTORY_COLUMNS, restval="", extrasaction="ignore")
            if fresh:
                writer.writeheader()
            writer.writerow({name: f"{value:.7g}" for name, value in scalars.items()})

    def _rows(self) -> Iterator[dict[str, str]]:
        if self.history_file.exists():
            with self.history_file.open(newline="") as file:
                yield from csv.DictReader(file)

    @property
    def history_file(self) -> Path:
        return self.path / "history.csv"

    @property
    def _params_file(self) -> Path:
        return self.path / "params" / "run.yaml"

    @property
    def _status_file(self) -> Path:
        return self.path / "status.json"


HISTORY_COLUMNS: tuple[str, ...] = (
    "iteration",
    "env_steps",
    "seconds",
    "v_task",
    "v_task_raw",
    "v_task_critic",
    "v_star",
    "threshold",
    "gap",
    "satisfied",
    "warmup",
    "lambda",
    "lambda_integrated",
    "sigma_lambda",
    "style_reward",
    "style_separation",
    "style_demonstration_accuracy",
    "style_policy_accuracy",
    "style_gradient_norm",
    "style_zero_share",
    "style_saturated",
    "command_range",
    "action_std",
)


def experiment_name(task: str) -> str:
    return task.lower()


def _write(path: Path, text: str) -> None:
    aside = path.with_suffix(path.suffix + ".part")
    aside.write_text(text, newline="")
    os.replace(aside, path)
