"""The command line from end to end: what it refuses and how, what it leaves on disk, and how it goes on."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
import torch
import tyro
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensordict import TensorDict

from consmimic.cli import main, reproduce
from consmimic.cli.reproduce import Reproduce, command
from consmimic.cli.train import Train
from consmimic.errors import UserError
from consmimic.evaluation.results import Results
from consmimic.runs import RunFolder, train
from consmimic.runs.training import load_policy
from consmimic.tasks import task_entry, task_names

TASK = "Franka-Reach"
TINY = ("--num-envs", "8", "--threads", "1", "--progress", "none", "--set", "save_interval=1")
SMALL_STYLE = ("style.hidden_dims=[8]", "style.updates=2", "style.batch_size=16", "hidden_dims=[8]")  # after TINY
STEPS = 8 * 24  # environment steps an iteration


@dataclass
class Called:
    code: int
    out: str
    err: str

    @property
    def run(self) -> Path:
        """The run folder that a training prints."""
        return Path(self.out.strip().splitlines()[-1])


@pytest.fixture
def call(tmp_path, monkeypatch, capfd) -> Callable[..., Called]:
    """Call the command line in an empty working folder."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")

    def run(*words: str | Path) -> Called:
        capfd.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main([str(word) for word in words])
        return Called(int(exit_.value.code or 0), *capfd.readouterr())

    return run


def rows(run: Path) -> list[dict[str, str]]:
    with (run / "history.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def iterations(run: Path) -> list[int]:
    return [int(row["iteration"]) for row in rows(run)]


def status(run: Path) -> dict[str, Any]:
    return json.loads((run / "status.json").read_text())


def checkpoint(run: Path, number: int) -> dict[str, Any]:
    return torch.load(run / f"model_{number}.pt", weights_only=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def same_bits(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_bits(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same_bits(x, y) for x, y in zip(a, b, strict=True))
    return a == b


# ---------------------------------------------------------------- help


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), ["list", "train", "evaluate", "reproduce", "motions", "bench"]),
        (("list",), ["alpha", "presets"]),
        (("train",), ["--alpha", "--method", "--resume", "--set", "--clip"]),
        (("evaluate",), ["--episodes", "--output"]),
        (("reproduce",), ["--seeds", "--alphas", "--style-weights", "--dry-run"]),
        (("bench",), ["--preset", "--rounds"]),
    ],
)
def test_every_command_has_help_that_names_its_options(call, words, named):
    called = call(*words, "--help")
    assert called.code == 0
    assert called.err == ""
    assert [name for name in named if name not in called.out] == []


def test_list_shows_every_task_with_its_presets(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    called = call("list")
    assert called.code == 0
    for name in task_names():
        entry = task_entry(name)
        assert f"{entry.default_alpha:g}" in called.out
        assert all(word in called.out for word in (name, entry.task.summary, *entry.presets))


# ---------------------------------------------------------------- bad input: one line, exit code 2, nothing written


@pytest.fixture
def bad(tmp_path) -> Path:
    """A folder of inputs that each have one thing wrong."""
    folder = tmp_path / "bad"
    folder.mkdir()
    clip = task_entry(TASK).task.demonstration()
    replace(
        clip,
        joint_names=clip.joint_names[1:],
        joint_pos=clip.joint_pos[:, 1:],
        joint_vel=clip.joint_vel[:, 1:],
    ).save(folder / "joint.npz")
    replace(clip, body_names=("gripper",)).save(folder / "body.npz")
    clip.save(folder / "good.npz")
    with np.load(folder / "good.npz") as file:
        members = {name: file[name] for name in file.files}
    nan = members["joint_pos"].copy()
    nan[7, 0] = np.nan
    np.savez(folder / "nan.npz", **(members | {"joint_pos": nan}))
    empty = {name: values[:0] if values.ndim > 1 else values for name, values in members.items()}
    np.savez(folder / "empty.npz", **empty)
    (folder / "clip.txt").write_text("no clip")
    (folder / "key.yaml").write_text("learning_rat: 0.001\n")
    (folder / "list.yaml").write_text("- learning_rate\n")
    (folder / "syntax.yaml").write_text("learning_rate: [1,\n")
    (folder / "bytes.yaml").write_bytes(b"\xff\xfe\xff")
    (folder / "alpha.yaml").write_text("constraint: {alpha: 0.5}\n")
    (folder / "no-run").mkdir()
    run = RunFolder(folder / "no-checkpoint")
    run.path.mkdir()
    run.write_params(Train(task=TASK).params())
    (folder / "damaged" / "params").mkdir(parents=True)
    (folder / "damaged" / "params" / "run.yaml").write_text("task: [\n")
    return folder


BAD = {
    "unknown task": ("train Franka-Rech", ["'Franka-Rech'", "Valid: Franka-Reach"]),
    "no task": ("train", ["name a task", "consmimic list"]),
    "alpha above 1": (f"train {TASK} --alpha 1.5", ["alpha is 1.5", "0 to 1"]),
    "alpha below 0": (f"train {TASK} --alpha -0.1", ["alpha is -0.1", "0 to 1"]),
    "alpha that is no number": (f"train {TASK} --alpha nan", ["alpha is nan", "0 to 1"]),
    "alpha for another method": (f"train {TASK} --method task-only --alpha 0.9", ["alpha", "task-only"]),
    "style weight for another method": (f"train {TASK} --style-weight 0.2", ["style weight", "consmimic"]),
    "no style weight": (f"train {TASK} --method fixed", ["--style-weight", "0 to 1"]),
    "style weight above 1": (
        f"train {TASK} --method fixed --style-weight 2",
        ["style weight is 2", "0 to 1"],
    ),
    "unknown preset": (f"train {TASK} --preset desktop", ["'desktop'", "laptop, paper"]),
    "no threads": (f"train {TASK} --threads 0", ["threads is 0", "at least 1"]),
    "no iterations": (f"train {TASK} --iterations 0", ["iterations is 0", "at least 1"]),
    "no robots": (f"train {TASK} --num-envs 0", ["num_envs is 0", "at least 1"]),
    "name with a folder": (f"train {TASK} --name a/b", ["'a/b'"]),
    "missing clip": (f"train {TASK} --clip BAD/gone.npz", ["no clip at", "gone.npz"]),
    "clip without a joint": (
        f"train {TASK} --clip BAD/joint.npz",
        ["joint.npz", "lacks joint joint1", "joint7"],
    ),
    "clip without a body": (f"train {TASK} --clip BAD/body.npz", ["body.npz", "'hand'", "gripper"]),
    "clip with NaN": (f"train {TASK} --clip BAD/nan.npz", ["nan.npz", "joint_pos", "frame 7"]),
    "clip without frames": (f"train {TASK} --clip BAD/empty.npz", ["empty.npz", "no frames"]),
    "clip that is none": (f"train {TASK} --clip BAD/clip.txt", ["clip.txt", "not an npz file"]),
    "missing config": (f"train {TASK} --config BAD/gone.yaml", ["gone.yaml", "cannot be read"]),
    "unknown key in a config": (f"train {TASK} --config BAD/key.yaml", ["'learning_rat'", "learning_rate"]),
    "config that is no mapping": (f"train {TASK} --config BAD/list.yaml", ["list.yaml", "must be a mapping"]),
    "config that is no YAML": (f"train {TASK} --config BAD/syntax.yaml", ["syntax.yaml", "cannot be read"]),
    "config that is no text": (f"train {TASK} --config BAD/bytes.yaml", ["bytes.yaml", "cannot be read"]),
    "alpha in a config": (f"train {TASK} --config BAD/alpha.yaml", ["give --alpha"]),
    "unknown key": (f"train {TASK} --set learning_rat=1", ["'learning_rat'", "constraint.multiplier_lr"]),
    "unknown nested key": (f"train {TASK} --set constraint.beta=1", ["'beta'", "multiplier_lr"]),
    "part of a key that has none": (f"train {TASK} --set gamma.x=1", ["'gamma.x'", "gamma"]),
    "key that has parts": (f"train {TASK} --set constraint=1", ["constraint has parts", "multiplier_lr"]),
    "key without a value": (f"train {TASK} --set gamma", ["--set gamma", "KEY=VALUE"]),
    "value that is no YAML": (f"train {TASK} --set hidden_dims=[1", ["--set hidden_dims=[1"]),
    "word for a number": (f"train {TASK} --set gamma=high", ["gamma is 'high'", "finite number"]),
    "NaN for a number": (f"train {TASK} --set clip_param=.nan", ["clip_param is nan", "finite number"]),
    "word for a nested number": (
        f"train {TASK} --set constraint.multiplier_lr=x",
        ["multiplier_lr is 'x'", "number"],
    ),
    "fraction for a whole number": (f"train {TASK} --set num_envs=2.5", ["num_envs is 2.5", "whole number"]),
    "number for a list": (f"train {TASK} --set hidden_dims=64", ["hidden_dims is 64", "[64, 64]"]),
    "number for yes or no": (f"train {TASK} --set obs_normalization=3", ["true or false"]),
    "value out of range": (
        f"train {TASK} --set constraint.value_smoothing=2",
        ["value_smoothing is 2", "to 1"],
    ),
    "discount of 1": (f"train {TASK} --set gamma=1", ["gamma is 1", "0 to 1"]),
    "no interval": (f"train {TASK} --set save_interval=0", ["save_interval is 0", "at least 1"]),
    "unknown activation": (f"train {TASK} --set activation=elo", ["'elo'", "elu"]),
    "unknown schedule": (f"train {TASK} --set schedule=cosine", ["'cosine'", "adaptive, fixed"]),
    "more batches than samples": (
        f"train {TASK} --num-envs 1 --set num_mini_batches=25",
        ["is 25", "24 samples"],
    ),
    "missing run": ("train --resume BAD/gone", ["no run folder at", "gone"]),
    "folder that is no run": ("train --resume BAD/no-run", ["no-run is not a run folder", "params/run.yaml"]),
    "run without a checkpoint": ("train --resume BAD/no-checkpoint", ["no checkpoint (model_*.pt)"]),
    "run with damaged parameters": ("train Franka-Reach --resume BAD/damaged", ["run.yaml cannot be read"]),
    "run of another task": ("train Other --resume BAD/no-checkpoint", [f"run of {TASK}, not of Other"]),
    "change to a run": (
        "train --resume BAD/no-checkpoint --alpha 0.5 --seed 1",
        ["--alpha, --seed", "as it was started"],
    ),
    "nothing to evaluate": ("evaluate", ["at least one run folder"]),
    "missing run to evaluate": ("evaluate BAD/gone", ["no run folder at"]),
    "no run to evaluate": ("evaluate BAD/no-run", ["not a run folder"]),
    "no checkpoint to evaluate": ("evaluate BAD/no-checkpoint", ["no checkpoint (model_*.pt)"]),
    "unknown task to reproduce": ("reproduce Nothing", ["'Nothing'", "Valid: Franka-Reach"]),
    "no seeds": (f"reproduce {TASK} --seeds 0", ["seeds is 0", "at least 1"]),
    "no jobs": (f"reproduce {TASK} --jobs 0", ["jobs is 0", "at least 1"]),
    "no episodes": (f"reproduce {TASK} --episodes 0", ["episodes is 0", "at least 1"]),
    "alpha in a plan": (f"reproduce {TASK} --alphas 0.9 2", ["alpha is 2", "0 to 1"]),
    "key in a plan": (f"reproduce {TASK} --set nothing=1", ["'nothing'", "gamma"]),
    "mix in a plan": (f"reproduce {TASK} --mix sums", ["'sums'", "rewards, advantages"]),
    "unknown task to measure": ("bench Nothing", ["'Nothing'", "Valid: Franka-Reach"]),
    "no rounds": ("bench --rounds 0", ["rounds is 0", "at least 1"]),
    "no threads to measure": ("bench --threads 0", ["threads is 0", "at least 1"]),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_gives_one_clear_line_and_exit_code_2_and_leaves_nothing(call, bad, what):
    words, named = BAD[what]
    before = contents(bad)
    called = call(*(word.replace("BAD", str(bad)) for word in words.split()))
    assert called.code == 2
    assert called.err.startswith("consmimic: ")
    assert len(called.err.splitlines()) == 1
    assert [name for name in named if name not in called.err] == []
    assert called.out == ""
    assert list(Path.cwd().iterdir()) == []
    assert contents(bad) == before


@pytest.mark.parametrize("words", ["", "trian", "train --alfa 1", "train --alpha high", "train --method magic"])
def test_words_that_cannot_be_parsed_are_refused_with_exit_code_2(call, words):
    called = call(*words.split())
    assert called.code == 2
    assert called.err != ""
    assert list(Path.cwd().iterdir()) == []


# ---------------------------------------------------------------- parameters


def test_preset_keys_may_be_set_by_file_and_on_top_by_word(tmp_path):
    config = tmp_path / "keys.yaml"
    config.write_text("learning_rate: 1e-4\nentropy_coef: 0\nconstraint:\n  multiplier_lr: 2\n  update_interval: 3\n")
    words = (
        "learning_rate=5e-4",
        "hidden_dims=[16, 8]",
        "constraint.multiplier_lr=1e-1",
        "obs_normalization=false",
    )
    preset = Train(task=TASK, config=config, set=words, iterations=7, num_envs=9).params().preset
    assert preset.learning_rate == 5e-4
    assert preset.entropy_coef == 0.0
    assert type(preset.entropy_coef) is float
    assert preset.hidden_dims == (16, 8)
    assert preset.obs_normalization is False
    assert (preset.constraint.multiplier_lr, preset.constraint.update_interval) == (0.1, 3)
    assert (preset.max_iterations, preset.num_envs) == (7, 9)
    untouched = task_entry(TASK).preset("laptop")
    assert preset.gamma == untouched.gamma
    assert preset.constraint.multiplier_init == untouched.constraint.multiplier_init


def test_parameters_are_read_from_a_run_folder_as_they_were_written(tmp_path, bad):
    for number, training in enumerate(
        (
            Train(
                task=TASK,
                alpha=0.7,
                seed=3,
                clip=bad / "good.npz",
                set=("gamma=0.98", "constraint.multiplier_lr=2"),
            ),
            Train(task=TASK, method="fixed", style_weight=0.5, mix="advantages", preset="paper"),
            Train(task=TASK, method="task-only", num_envs=4),
        )
    ):
        params = training.params()
        folder = RunFolder(tmp_path / str(number))
        folder.path.mkdir()
        folder.write_params(params)
        assert RunFolder.open(folder.path).params() == params


def test_the_default_alpha_is_the_tasks():
    assert Train(task=TASK).params().method.alpha == 0.9  # Table 10
    assert Train(task=TASK, method="task-only").params().method.alpha is None


def test_a_run_is_found_again_only_by_the_same_training(tmp_path):
    params = Train(task=TASK, seed=1).params()
    runs = tmp_path / "franka-reach"
    assert RunFolder.find(params, runs) is None
    first = RunFolder.create(TASK, "first", tmp_path)
    first.write_params(replace(params, command="another command", machine="another machine"))
    found = RunFolder.find(params, runs)
    assert found is not None
    assert found.path == first.path
    for other in (
        Train(task=TASK, seed=2),
        Train(task=TASK, seed=1, alpha=0.8),
        Train(task=TASK, seed=1, num_envs=4),
    ):
        assert RunFolder.find(other.params(), runs) is None

    finished = RunFolder.create(TASK, "finished", tmp_path)
    finished.write_params(params)
    finished.write_status(finished=True)
    newest = RunFolder.create(TASK, "zz-newest", tmp_path)
    newest.write_params(params)
    found = RunFolder.find(params, runs)
    assert found is not None
    assert found.path == finished.path

    of_another_version = RunFolder.create(TASK, "other", tmp_path)
    of_another_version.write_params(params)
    file = of_another_version.path / "params" / "run.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"unheard_of": 1}))
    with pytest.raises(UserError, match="unheard_of"):
        of_another_version.params()
    assert RunFolder.find(params, runs) is not None


@pytest.mark.parametrize(
    ("method", "same"),
    [
        ({"method": "consmimic", "alpha": 0.8}, {"constraint.margin": False, "style.updates": False, "gamma": False}),
        ({"method": "fixed", "style_weight": 0.2}, {"constraint.margin": True, "style.updates": False, "gamma": False}),
        ({"method": "task-only"}, {"constraint.margin": True, "style.updates": True, "gamma": False}),
    ],
    ids=lambda value: value.get("method"),
)
def test_a_baseline_stays_the_same_training_when_what_it_has_no_use_for_changes(method, same):
    values = {"constraint.margin": 0.2, "style.updates": 3, "gamma": 0.9}
    one = Train(task="Anymal-Forward", **method).params()
    for key, value in values.items():
        other = Train(task="Anymal-Forward", **method, set=(f"{key}={value}",)).params()
        assert one.same_training(other) == other.same_training(one) == same[key]


# ---------------------------------------------------------------- train, resume


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> dict[str, Path]:
    """A ConsMimic and a task-only run of three iterations. Tests take copies."""
    folders = {}
    for method in ("consmimic", "task-only"):
        params = Train(task=TASK, method=method, num_envs=8, iterations=3, set=("save_interval=1",)).params()
        folder = RunFolder.create(TASK, method, tmp_path_factory.mktemp("logs"))
        folder.write_params(params)
        train(folder, threads=1)
        folders[method] = folder.path
    return folders


@pytest.fixture
def run(trained, tmp_path) -> Path:
    return shutil.copytree(trained["consmimic"], tmp_path / "run")


def test_a_training_leaves_a_run_folder_and_prints_it(call):
    called = call("train", TASK, "--iterations", "3", "--seed", "5", "--name", "mine", *TINY)
    assert called.code == 0
    assert called.run.parent == Path("logs/rsl_rl/franka-reach")
    assert called.run.name.endswith("_mine")
    assert [int(row["iteration"]) for row in rows(called.run)] == [1, 2, 3]
    assert [int(row["env_steps"]) for row in rows(called.run)] == [STEPS, 2 * STEPS, 3 * STEPS]
    seconds = [float(row["seconds"]) for row in rows(called.run)]
    assert seconds == sorted(seconds)
    assert status(called.run) == {
        "finished": True,
        "iterations": 3,
        "env_steps": 3 * STEPS,
        "seconds": pytest.approx(seconds[-1]),
    }
    files = {path.name for path in called.run.iterdir()}
    assert {"model_0.pt", "model_1.pt", "model_2.pt", "params", "history.csv", "status.json"} <= files
    assert [name for name in files if name.endswith(".part")] == []
    params = RunFolder.open(called.run).params()
    assert (params.task, params.seed, params.preset_name) == (TASK, 5, "laptop")
    assert list(Path.cwd().iterdir()) == [Path.cwd() / "logs"]


def test_progress_as_json_is_one_line_an_iteration_and_nothing_else(call):
    called = call("train", TASK, "--iterations", "2", *TINY[:-4], "--progress", "json")
    lines = [json.loads(line) for line in called.out.splitlines()]
    assert [(line["iteration"], line["total"]) for line in lines] == [(1, 2), (2, 2)]
    assert {"seconds", "v_task", "style_reward", "sigma_lambda"} <= set(lines[0])


def test_a_resumed_run_is_the_uninterrupted_one_to_the_bit(call, run):
    seconds_before = status(run)["seconds"]
    resumed = call("train", "--resume", run, "--iterations", "2", "--threads", "2", "--progress", "none")
    assert resumed.code == 0
    assert resumed.run == run
    assert iterations(run) == [1, 2, 3, 4, 5]
    assert [int(row["env_steps"]) for row in rows(run)] == [k * STEPS for k in range(1, 6)]
    seconds = [float(row["seconds"]) for row in rows(run)]
    assert seconds == sorted(seconds)
    assert seconds[2] == pytest.approx(seconds_before)
    after = status(run)
    assert (after["finished"], after["iterations"], after["env_steps"]) == (True, 5, 5 * STEPS)
    assert after["seconds"] == pytest.approx(seconds[-1])
    assert after["seconds"] > seconds_before

    uninterrupted = call("train", TASK, "--iterations", "5", *TINY).run
    a, b = checkpoint(run, 4), checkpoint(uninterrupted, 4)
    assert a["iter"] == b["iter"] == 4
    for key in ("actor_state_dict", "critic_state_dict", "optimizer_state_dict", "consmimic"):
        assert same_bits(a[key], b[key])
    for ours, theirs in zip(rows(run), rows(uninterrupted), strict=True):
        del ours["seconds"], theirs["seconds"]
        assert ours == theirs
    assert not same_bits(checkpoint(run, 3)["actor_state_dict"], a["actor_state_dict"])


def test_a_resumed_run_with_a_discriminator_is_the_uninterrupted_one_to_the_bit(call):
    """Walking robots: pushed, of different bodies, with commands that grow; and a discriminator that learns."""
    short = ("constraint.warmup_min_iterations=1", "constraint.warmup_max_iterations=1")
    words = ("Anymal-Forward", *TINY, *SMALL_STYLE, *short)
    run = call("train", *words, "--iterations", "2").run
    assert call("train", "--resume", run, "--iterations", "2", "--threads", "2", "--progress", "none").code == 0
    uninterrupted = call("train", *words, "--iterations", "4").run
    a, b = checkpoint(run, 3), checkpoint(uninterrupted, 3)
    for key in ("actor_state_dict", "critic_state_dict", "optimizer_state_dict", "consmimic"):
        assert same_bits(a[key], b[key])
    health = ("separation", "demonstration_accuracy", "policy_accuracy", "gradient_norm", "zero_share", "saturated")
    assert all(row[f"style_{name}"] for row in rows(run) for name in health)
    source = a["consmimic"]["style_source"]
    assert source["health_iterations"] == 4  # the warm-up's, too, in which style has a share
    assert not same_bits(source["discriminator"], checkpoint(run, 1)["consmimic"]["style_source"]["discriminator"])
    for ours, theirs in zip(rows(run), rows(uninterrupted), strict=True):
        del ours["seconds"], theirs["seconds"]
        assert ours == theirs


def test_resuming_a_finished_run_trains_nothing_more(call, run):
    before = contents(run)
    called = call("train", "--resume", run, "--progress", "none")
    assert called.code == 0
    after = contents(run)
    for name in ("model_2.pt", "history.csv", "status.json"):
        assert after[name] == before[name]
    assert sorted(name for name in after if name.startswith("model_")) == [
        "model_0.pt",
        "model_1.pt",
        "model_2.pt",
    ]


def test_a_truncated_newest_checkpoint_falls_back_to_the_one_before_and_says_so(call, run):
    whole = checkpoint(run, 2)
    truncate(run / "model_2.pt")
    called = call("train", "--resume", run, "--iterations", "1", "--progress", "none")
    assert called.code == 0
    assert "model_2.pt cannot be read" in called.err
    assert "trying the one before it" in called.err
    assert iterations(run) == [1, 2, 3]
    assert same_bits(checkpoint(run, 2)["actor_state_dict"], whole["actor_state_dict"])  # the third iteration again


@pytest.mark.parametrize("words", [("train", "--resume"), ("evaluate",)])
def test_when_no_checkpoint_can_be_read_nothing_is_trained_or_evaluated(call, run, words):
    for path in run.glob("model_*.pt"):
        truncate(path)
    before = contents(run)
    called = call(*words, run)
    assert called.code == 2
    assert "consmimic: none of the 3 checkpoints" in called.err
    assert len([line for line in called.err.splitlines() if "cannot be read" in line]) == 3
    assert contents(run) == before
    assert list(Path.cwd().iterdir()) == []


def test_a_checkpoint_is_never_code(call, run, tmp_path):
    (run / "model_9.pt").write_bytes((run / "model_2.pt").read_bytes())
    torch.save({"actor_state_dict": _Code(tmp_path / "it-ran")}, run / "model_9.pt")
    called = call("train", "--resume", run, "--iterations", "1", "--progress", "none")
    assert "model_9.pt cannot be read" in called.err
    assert not (tmp_path / "it-ran").exists()


class _Code:
    """Unpickling this leaves a trace."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_run_that_crashed_goes_on_from_its_newest_checkpoint(run, trained):
    """Its status and history never tell of more than that checkpoint knows, once it goes on."""
    for path in run.glob("model_[12].pt"):
        path.unlink()
    (run / "status.json").unlink()

    def crash(progress: Any) -> None:
        if progress.iteration == 3:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        train(RunFolder(run), threads=1, on_progress=crash)
    assert status(run)["iterations"] == 2  # model_1.pt; the third was never saved
    assert status(run)["finished"] is False
    assert not (run / "model_2.pt").exists()
    train(RunFolder(run), threads=1)
    assert iterations(run) == [1, 2, 3]
    assert status(run)["finished"] is True
    whole = checkpoint(trained["consmimic"], 2)["actor_state_dict"]
    assert same_bits(checkpoint(run, 2)["actor_state_dict"], whole)


def test_a_clip_of_ones_own_is_trained_on_and_found_again(call, bad):
    call("train", TASK, "--iterations", "1", "--clip", bad / "good.npz", "--name", "own", *TINY)
    call("train", TASK, "--iterations", "1", "--name", "built-in", *TINY)
    own, built_in = sorted(Path("logs/rsl_rl/franka-reach").iterdir(), key=lambda path: "built-in" in path.name)
    assert RunFolder.open(own).params().clip == str(bad / "good.npz")
    # The same motion, saved and read: what is learned from it is the same to the bit.
    assert same_bits(checkpoint(own, 0)["actor_state_dict"], checkpoint(built_in, 0)["actor_state_dict"])
    (bad / "good.npz").unlink()
    called = call("train", "--resume", own, "--iterations", "1")
    assert called.code == 2
    assert "no clip at" in called.err


# ---------------------------------------------------------------- processes: interrupts and kills


def start(cwd: Path, *words: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "consmimic", *words],
        cwd=cwd,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 120) -> None:
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        if process.poll() is not None:
            break
        time.sleep(0.02)
    process.kill()
    raise AssertionError(f"it never came to that: {process.communicate()[1][-2000:]}")


def test_an_interrupt_saves_and_says_how_to_go_on(call):
    words = ("train", TASK, "--num-envs", "8", "--threads", "1", "--iterations", "5000", "--progress", "json")
    process = start(Path.cwd(), *words)
    assert process.stdout is not None
    for _ in range(3):
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    (run,) = Path("logs/rsl_rl/franka-reach").iterdir()
    assert err.strip().splitlines()[-1] == f"stopped and saved. Go on with: consmimic train --resume {run}"
    done = status(run)["iterations"]
    assert 3 <= done < 5000
    assert status(run)["finished"] is False
    assert iterations(run) == list(range(1, done + 1))
    assert checkpoint(run, done - 1)["consmimic"]["iteration"] == done
    events = EventAccumulator(str(run))
    events.Reload()
    assert len(events.Scalars("ConsMimic/v_task")) >= done - 1  # the last iteration is stopped before it is logged

    go_on = shlex.split(err.strip().splitlines()[-1].partition("Go on with: consmimic ")[2])
    assert call(*go_on, "--iterations", "1", "--progress", "none").code == 0
    assert iterations(run) == list(range(1, done + 2))
    assert status(run)["env_steps"] == (done + 1) * STEPS


# ---------------------------------------------------------------- publish


def test_a_published_run_has_all_but_what_training_needs(run, tmp_path):
    logged = RunFolder.open(run)
    copy = logged.publish(tmp_path / "runs")
    assert copy.path == tmp_path / "runs" / "consmimic-a0.9-s0"
    assert sorted(contents(copy.path)) == ["history.csv", "model_2.pt", "params/run.yaml", "status.json"]
    assert copy.params() == logged.params()
    assert copy.status() == logged.status()
    assert copy.read_history()["v_task"] == logged.read_history()["v_task"]
    assert checkpoint(copy.path, 2).keys() == {"actor_state_dict", "iter", "infos"}
    assert same_bits(checkpoint(copy.path, 2)["actor_state_dict"], checkpoint(run, 2)["actor_state_dict"])
    assert (copy.path / "model_2.pt").stat().st_size < 0.4 * (run / "model_2.pt").stat().st_size
    obs = task_entry(TASK).task.layout.width
    seen = TensorDict({"policy": torch.randn(5, obs)}, batch_size=[5])
    with torch.inference_mode():
        assert torch.equal(load_policy(copy)(seen), load_policy(logged)(seen))


def test_a_published_run_takes_the_place_of_an_older_one_and_is_whole_only_at_the_end(run, tmp_path, monkeypatch):
    logged, published = RunFolder.open(run), tmp_path / "runs"
    copy = logged.publish(published)
    (copy.path / "model_2.pt").rename(copy.path / "model_7.pt")  # of a longer training
    copy.write_status(of_older=True)
    logged.publish(published)
    assert [path.name for path in copy.checkpoints()] == ["model_2.pt"]
    assert copy.status() == logged.status()

    monkeypatch.setattr(torch, "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        logged.publish(published)
    found = RunFolder.find(logged.params(), published)
    assert found is None or not found.finished


def test_a_published_run_is_not_overwritten_by_a_training_with_other_settings(run, tmp_path, call):
    published = RunFolder.open(run).publish(tmp_path / "results" / "runs")
    before = contents(published.path)
    words = ("reproduce", TASK, "--seeds", "1", "--alphas", "0.9", "--style-weights", "--iterations", "1")
    refused = call(*words, "--output", str(tmp_path / "results"))
    assert refused.code == 2
    assert "consmimic-a0.9-s0 holds a training with other settings" in refused.err
    assert not Path("logs").exists()
    assert contents(published.path) == before


# ---------------------------------------------------------------- evaluate

CONTRACT = {
    *("task", "method", "style_weight", "alpha", "seed", "preset", "command", "commit", "machine"),
    *("value", "value_ratio", "tracking", "imitation", "imitation_per_frame", "symmetry", "w_mech", "t_air"),
    *("falls", "env_steps", "wall_s"),
}


def test_evaluate_writes_a_row_for_each_policy_and_a_report(call, trained, tmp_path):
    output = tmp_path / "out"
    called = call("evaluate", *trained.values(), "--episodes", "6", "--threads", "1", "--output", output)
    assert called.code == 0
    assert str(output / "report.html") in called.out
    summary = json.loads((output / "summary.json").read_text())
    assert [row["method"] for row in summary] == ["consmimic", "task-only"]
    for row, run in zip(summary, trained.values(), strict=True):
        assert row.keys() >= CONTRACT
        assert (row["task"], row["preset"], row["seed"], row["episodes"]) == (TASK, "laptop", 0, 6)
        assert row["alpha"] == (0.9 if row["method"] == "consmimic" else None)
        assert row["style_weight"] is row["symmetry"] is row["w_mech"] is row["t_air"] is row["falls"] is None
        assert (row["env_steps"], row["wall_s"]) == (3 * STEPS, status(run)["seconds"])
        assert sum(row["terms"].values()) == pytest.approx(row["value"], rel=1e-4)
        assert 0 <= row["tracking"] <= 1
        assert 0 <= row["imitation"] <= 1
    assert summary[1]["value_ratio"] == 1.0
    assert summary[0]["value_ratio"] == pytest.approx(summary[0]["value"] / summary[1]["value"])
    report = (output / "report.html").read_text()
    assert report.lstrip().lower().startswith("<!doctype html>")
    assert "task-only" in report
    assert list(Path.cwd().iterdir()) == []

    again = tmp_path / "again"
    call("evaluate", *trained.values(), "--episodes", "6", "--threads", "2", "--output", again)
    assert (again / "summary.json").read_text() == (output / "summary.json").read_text()


def test_evaluate_of_one_run_reports_into_it_and_without_a_baseline_knows_no_ratio(call, run):
    assert call("evaluate", run, "--episodes", "2").code == 0
    (row,) = json.loads((run / "report" / "summary.json").read_text())
    assert row["value_ratio"] is None
    assert (run / "report" / "report.html").is_file()


def test_evaluate_of_a_walking_robot_measures_its_gait_and_draws_its_map(call):
    run = call("train", "Anymal-Forward", *TINY, *SMALL_STYLE, "--iterations", "2").run
    called = call("evaluate", run, "--episodes", "4", "--threads", "1")
    assert called.code == 0
    (row,) = json.loads((run / "report" / "summary.json").read_text())
    assert (row["task"], row["alpha"]) == ("Anymal-Forward", 0.7)
    assert (row["imitation_window_s"], row["imitation_rate_hz"], row["imitation_scale"]) == (2.0, 50.0, 100.0)
    assert 0.0 <= row["falls"] <= 1.0
    assert 0.0 <= row["gait_falls"] <= 1.0
    assert row["gait_seconds"] == 8.0
    walked = row["gait_falls"] < 1.0
    for name in ("symmetry", "w_mech", "w_mech_absolute", "gait_speed"):
        assert (row[name] is not None) == walked
    assert row["w_mech_per_metre"] is None  # after two iterations nobody gets anywhere
    assert [figure.name for figure in sorted((run / "report" / "figures").glob("*"))] == [
        *("constraint.png", "gait.png", "scores.png", "speed-map.png", "training.png")
    ]
    walking = Results.load(run / "report").records[0].walking
    assert walking["speed_error"].shape == walking["turn_error"].shape == (9, 13)
    assert walking["contact"].shape == ((400, 4) if walked else (0, 4))
    assert "Which foot is on the ground" in (run / "report" / "report.html").read_text()


@pytest.mark.parametrize(("option", "words"), [("--episodes", "episodes is 0"), ("--threads", "threads is 0")])
def test_evaluate_refuses_no_episodes_and_no_threads(call, run, option, words):
    before = contents(run)
    called = call("evaluate", run, option, "0")
    assert called.code == 2
    assert words in called.err
    assert contents(run) == before


# ---------------------------------------------------------------- reproduce


def test_a_plan_is_commands_that_can_be_run_alone():
    plan = Reproduce(
        task=TASK,
        seeds=2,
        iterations=5,
        num_envs=8,
        set=("gamma=0.98", "save_interval=2"),
        mix=("rewards", "advantages"),
    )
    trainings = plan.trainings(threads=2)
    assert len(trainings) == len(set(trainings)) == 2 * (1 + 4 + 3)
    for training in trainings:
        words = command(training)
        assert words[:2] == ["consmimic", "train"]
        assert tyro.cli(Train, args=words[2:]) == training


def test_a_dry_run_prints_the_plan_seed_by_seed_and_does_nothing(call):
    called = call("reproduce", TASK, "--seeds", "2", "--alphas", "0.9", "0.90", "--style-weights", "0.5", "--dry-run")
    assert called.code == 0
    lines = called.out.splitlines()
    assert [(line.split()[4], line.split("--seed ")[1].split()[0]) for line in lines[:-1]] == [
        (method, seed) for seed in "01" for method in ("task-only", "fixed", "consmimic")
    ]
    assert lines[-1].startswith("consmimic evaluate ")
    assert list(Path.cwd().iterdir()) == []


def plan_words(jobs: int) -> Sequence[str]:
    fixed = ("reproduce", TASK, "--seeds", "1", "--alphas", "0.9", "--style-weights", "--iterations", "30")
    return (*fixed, "--num-envs", "8", "--set", "save_interval=5", "--episodes", "4", "--jobs", str(jobs))


def works_in(process: Path) -> Path | None:
    try:
        return (process / "cwd").readlink()
    except OSError:  # another user's, or gone
        return None


def processes_in(folder: Path) -> list[int]:
    """Who else works there, where the system can tell."""
    pids = [int(process.name) for process in Path("/proc").glob("[0-9]*") if works_in(process) == folder]
    return [pid for pid in pids if pid != os.getpid()]


@contextlib.contextmanager
def interrupt_when(condition: Callable[[], bool]) -> Iterator[None]:
    """Ctrl-C to this process as soon as the condition holds."""
    over = Event()

    def watch() -> None:
        while not over.wait(0.02):
            if condition():
                os.kill(os.getpid(), signal.SIGINT)
                return

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def test_a_plan_that_was_stopped_or_killed_goes_on_where_it_was(call, monkeypatch):
    cwd = Path.cwd()
    logs = cwd / "logs" / "rsl_rl" / "franka-reach"

    def runs() -> dict[str, Path]:
        return {path.name.split("_", maxsplit=2)[2]: path for path in logs.glob("*")}

    # Ctrl-C: what trains saves and stops. A terminal sends it to the whole session; the trainings are in others, or
    # it would reach them twice, and the second time means at once.
    sessions: set[int] = set()

    def has_trained() -> bool:
        if "task-only-s0" not in runs() or not (runs()["task-only-s0"] / "history.csv").is_file():
            return False
        for pid in processes_in(cwd):
            with contextlib.suppress(ProcessLookupError):  # gone meanwhile, as those that ask git for the commit are
                sessions.add(os.getsid(pid))
        return True

    with interrupt_when(has_trained):
        called = call(*plan_words(jobs=1))
    assert called.code == 130
    assert "the same command goes on from here" in called.err
    assert os.getsid(0) not in sessions
    first = runs()["task-only-s0"]
    stopped_at = status(first)["iterations"]
    assert 0 < stopped_at < 30
    assert iterations(first) == list(range(1, stopped_at + 1))
    assert (first / f"model_{stopped_at - 1}.pt").is_file()

    # A kill leaves no time for that: the newest checkpoint counts.
    plan = start(cwd, *plan_words(jobs=1))
    wait_until(lambda: "consmimic-a0.9-s0" in runs() and any(runs()["consmimic-a0.9-s0"].glob("model_*.pt")), plan)
    plan.kill()
    plan.communicate()
    for _ in range(500):
        if not processes_in(cwd):
            break
        time.sleep(0.02)
    assert processes_in(cwd) == []  # what it had started does not outlive it
    assert status(first)["finished"] is True
    assert iterations(first) == list(range(1, 31))
    second = runs()["consmimic-a0.9-s0"]
    assert status(second)["finished"] is False
    finished = {name: values for name, values in contents(first).items() if name.startswith(("model_", "history"))}

    called = call(*plan_words(jobs=1))
    assert called.code == 0
    assert "1 of 2 trainings are finished already" in called.out
    assert len(runs()) == len(list(logs.iterdir())) == 2
    assert iterations(second) == list(range(1, 31))
    assert {name: values for name, values in contents(first).items() if name in finished} == finished
    results = cwd / "results" / "franka-reach"
    summary = json.loads((results / "summary.json").read_text())
    assert [row["method"] for row in summary] == ["task-only", "consmimic"]
    assert [row["env_steps"] for row in summary] == [30 * STEPS] * 2
    assert (results / "report.html").is_file()

    evaluated: list[Path] = []
    monkeypatch.setattr(reproduce, "evaluate_all", lambda folders, *_, **__: evaluated.extend(f.path for f in folders))
    models = {path: path.stat().st_mtime_ns for path in logs.glob("*/model_*.pt")}
    called = call(*plan_words(jobs=2))  # other jobs, the same trainings
    assert called.code == 0
    assert "2 of 2 trainings are finished already" in called.out
    assert {path: path.stat().st_mtime_ns for path in logs.glob("*/model_*.pt")} == models
    published = [results / "runs" / name for name in ("task-only-s0", "consmimic-a0.9-s0")]
    assert [path.resolve() for path in evaluated] == published

    # The published runs are enough to go on from, and to score the policies again; not to train them further.
    shutil.rmtree(logs)
    called = call(*plan_words(jobs=2))
    assert called.code == 0
    assert "2 of 2 trainings are finished already" in called.out
    assert not logs.exists()
    monkeypatch.undo()
    monkeypatch.chdir(cwd)
    called = call("evaluate", *map(str, published), "--episodes", "4", "--output", "again")
    assert called.code == 0
    again = json.loads((cwd / "again" / "summary.json").read_text())
    assert again == summary
    refused = call("train", "--resume", str(published[0]))
    assert refused.code == 2
    assert "holds a published policy" in refused.err
