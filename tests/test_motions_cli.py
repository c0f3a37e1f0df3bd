"""``consmimic motions``: every subcommand from end to end, what it refuses and how, and what it leaves on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml
from numpy.testing import assert_allclose

from consmimic.cli import main
from consmimic.motions import Clip
from consmimic.motions.dialects import DIALECTS
from consmimic.robots import ROBOTS
from consmimic.tasks.anymal import demonstration
from consmimic.tasks.franka_reach import demonstration as reach_demonstration
from motion_files import A1_TO_ANYMAL, ANYMAL, ROBOT_DIALECTS, deepmimic_text, human, known


@dataclass
class Called:
    code: int
    out: str
    err: str


@pytest.fixture
def call(tmp_path, monkeypatch, capfd) -> Callable[..., Called]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(words: str) -> Called:
        capfd.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main(["motions", *words.split()])
        return Called(int(exit_.value.code or 0), *capfd.readouterr())

    return run


@pytest.fixture
def clip(tmp_path) -> Clip:
    """Saved as clip.npz."""
    clip = known(frames=51)
    clip.save(tmp_path / "clip.npz")
    return clip


# ---------------------------------------------------------------- help


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("", ["convert", "generate", "mirror", "trim", "concat", "slow-down", "reset-states", "bench"]),
        ("convert", ["--robot", "--fps", "--joint-names", "--mapping", "--quat-order", "--allow-pickle", "LAFAN1"]),
        ("generate", ["reach", "trot", "walk"]),
        ("generate walk", ["--speed", "--strides", "--robot"]),
        ("check", ["--robot", "--loop", "--json"]),
        ("show", ["--output", "--viewer"]),
        ("coverage", ["--task", "--mirrors"]),
        ("retarget", ["--skeleton", "--from-robot", "--laps", "--source-fps"]),
        ("generate trot", ["--speeds", "--asymmetry", "--robot"]),
        ("generate reach", ["--amplitude", "--goal"]),
        ("mirror", ["--plane"]),
        ("trim", ["--start", "--end"]),
        ("concat", ["--output"]),
        ("slow-down", ["--factor"]),
        ("reset-states", ["--count", "--seed"]),
        ("bench", ["--hours"]),
    ],
)
def test_every_subcommand_has_help_that_names_its_options(call, words, named):
    called = call(f"{words} --help")
    assert (called.code, called.err) == (0, "")
    assert [name for name in named if name not in called.out] == []


def test_the_help_of_convert_names_every_dialect(call):
    text = call("convert --help").out
    assert [name for name in DIALECTS if name not in text] == []


# ---------------------------------------------------------------- what they make


def test_convert_goes_from_npz_to_csv_and_back_as_it_says(call, clip):
    there = call("convert clip.npz clip.csv --robot anymal_d")
    assert there.code == 0, there.err
    assert "mjlab" in there.out
    way_back = next(line for line in there.out.splitlines() if "the way back" in line)
    words = way_back.partition("consmimic motions ")[2].replace("OUT.npz", "again.npz")
    back = call(words)
    assert back.code == 0, back.err
    assert "quaternions xyzw" in back.out
    again = Clip.load(Path("again.npz"))
    for name in ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w"):
        assert_allclose(getattr(again, name), getattr(clip, name), atol=1e-6)


def test_convert_takes_a_mapping_another_rate_and_some_bodies(call, tmp_path, clip):
    ROBOT_DIALECTS["amp_for_hardware"](tmp_path, clip)
    Path("names.yaml").write_text(yaml.safe_dump(A1_TO_ANYMAL))
    called = call(
        "convert amp.txt out.npz --robot anymal_d --mapping names.yaml --resample 25 --bodies base,LF_FOOT,RF_FOOT"
    )
    assert called.code == 0, called.err
    assert all(words in called.out for words in ("61 numbers", "velocities", "resampled from 50 to 25 Hz"))
    made = Clip.load(Path("out.npz"))
    assert (made.fps, made.body_names, made.joint_names) == (25.0, ("base", "LF_FOOT", "RF_FOOT"), ANYMAL.joint_names)
    assert_allclose(made.joint_pos, clip.joint_pos[::2], atol=1e-8)


def test_convert_prints_what_to_look_at(call, clip):
    table = np.concatenate([clip.body_pos_w[:, 0], clip.body_quat_w[:, 0], clip.joint_pos], axis=1)  # wxyz
    np.savetxt("wxyz.csv", table, delimiter=",")
    called = call("convert wxyz.csv out.npz --robot anymal_d --fps 50 --joint-names robot")
    assert called.code == 0
    assert "warning: the base's pose is not as this format has it; it was read as wxyz" in called.out
    assert_allclose(Clip.load(Path("out.npz")).body_pos_w, clip.body_pos_w, atol=1e-9)


def test_generate_makes_the_built_in_demonstrations(call):
    for words, expected in (("reach reach.npz", reach_demonstration()), ("trot trot.npz", demonstration())):
        called = call(f"generate {words}")
        assert called.code == 0, called.err
        made = Clip.load(Path(words.split()[1]))
        assert_allclose(made.joint_pos, expected.joint_pos)
        assert made.body_names == expected.body_names
    called = call("generate walk walk.npz --speed 1.2 --strides 2")
    assert called.code == 0, called.err
    walk = Clip.load(Path("walk.npz"))
    assert walk.joint_names == ROBOTS["gr1"].joint_names
    assert (walk.body_pos_w[-1] - walk.body_pos_w[0])[0, 0] == pytest.approx(1.2 * walk.seconds)
    called = call("generate trot slow.npz --speeds 0.2 --hold-seconds 1 --fps 25")
    assert called.code == 0
    assert Clip.load(Path("slow.npz")).fps == 25.0


def test_clips_are_mirrored_trimmed_joined_and_slowed_down(call, clip):
    for words in (
        "mirror clip.npz mirrored.npz --robot anymal_d",
        "mirror mirrored.npz twice.npz --robot anymal_d",
        "trim clip.npz first.npz --end 0.4",
        "trim clip.npz second.npz --start 0.4",
        "concat first.npz second.npz --robot anymal_d --output whole.npz",
        "slow-down clip.npz slow.npz --factor 3",
    ):
        called = call(words)
        assert called.code == 0, called.err
    assert "seam at 0.40 s" in call("concat first.npz second.npz --robot anymal_d --output again.npz").out
    for name in ("twice.npz", "whole.npz"):
        made = Clip.load(Path(name))
        assert_allclose(made.joint_pos, clip.joint_pos, atol=1e-12)
        assert_allclose(made.body_pos_w, clip.body_pos_w, atol=1e-9)
    assert Clip.load(Path("slow.npz")).seconds == pytest.approx(3.0)
    assert call("mirror clip.npz back.npz --robot anymal_d --plane front_back").code == 0


def test_reset_states_are_drawn_from_all_clips_as_the_seed_says(call, clip):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        called = call(f"reset-states clip.npz clip.npz --robot anymal_d --count 30 --seed {seed} --output {name}.npz")
        assert called.code == 0, called.err
    a, b, c = (np.load(f"{name}.npz")["joint_pos"] for name in "abc")
    assert a.shape == (30, 12)
    assert (a == b).all()
    assert not (a == c).all()
    assert a.min() >= clip.joint_pos.min()
    assert call("generate reach reach.npz").code == 0
    assert call("reset-states reach.npz --robot panda --output arm.npz").code == 0


def test_the_bench_measures_a_small_library(call):
    called = call("bench --hours 0.01 --batch 100000 --rounds 1 --threads 1")
    assert called.code == 0, called.err
    assert all(words in called.out for words in ("opened in", "transitions:", "per second"))


# ---------------------------------------------------------------- what they refuse


BAD = {
    "unknown robot": ("convert clip.npz out.npz --robot anymal", ["unknown robot 'anymal'", "panda, anymal_d"]),
    "no file": ("convert gone.csv out.npz --robot anymal_d", ["no motion at gone.csv"]),
    "a folder": ("convert folder out.npz --robot anymal_d", ["folder is not a file"]),
    "output of another kind": ("convert clip.npz out.txt --robot anymal_d", ["'.txt'", ".npz and .csv"]),
    "output that is there": ("convert clip.npz clip.npz --robot anymal_d", ["clip.npz exists"]),
    "no folder for the output": ("convert clip.npz none/out.npz --robot anymal_d", ["there is no folder none"]),
    "another robot": ("convert clip.npz out.npz --robot panda", ["joint1", "consmimic motions retarget"]),
    "a human": ("convert human.txt out.npz --robot anymal_d", ["human skeleton", "consmimic motions retarget"]),
    "a pickle": ("convert amp_rsl_rl.npy out.npz --robot anymal_d", ["--allow-pickle"]),
    "no frame rate": ("convert table.csv out.npz --robot anymal_d", ["--fps"]),
    "no joint names": ("convert table.csv out.npz --robot anymal_d --fps 50", ["--joint-names"]),
    "too few joint names": ("convert table.csv out.npz --robot anymal_d --fps 50 --joint-names a,b", ["2 names"]),
    "unknown body": ("convert clip.npz out.npz --robot anymal_d --bodies tail", ["'tail'", "base"]),
    "unknown dialect": ("convert clip.npz out.npz --robot anymal_d --dialect bvh", ["'bvh'", "deepmimic"]),
    "no mapping file": ("convert clip.npz out.npz --robot anymal_d --mapping gone.yaml", ["gone.yaml"]),
    "frame rate": ("convert clip.npz out.npz --robot anymal_d --resample 0", ["valid are 1 to 10000"]),
    "far too many frames": ("convert clip.npz out.npz --robot anymal_d --fps 1 --resample 10000", ["would take"]),
    "no clip to mirror": ("mirror gone.npz out.npz --robot anymal_d", ["no clip at gone.npz"]),
    "no clip of ours": ("mirror table.csv out.npz --robot anymal_d", ["not an npz", "consmimic motions convert"]),
    "unknown mirror": ("mirror clip.npz out.npz --robot anymal_d --plane up_down", ["'up_down'", "left_right"]),
    "mirror of another robot": ("mirror clip.npz out.npz --robot panda", ["LF_HAA"]),
    "trim to nothing": ("trim clip.npz out.npz --start 3", ["lasts from 0 to 1 s"]),
    "factor": ("slow-down clip.npz out.npz --factor 0", ["valid are 0.05 to 20"]),
    "one clip to join": ("concat clip.npz --robot anymal_d --output out.npz", ["at least two"]),
    "joined on another robot": ("concat clip.npz clip.npz --robot panda --output out.npz", ["joint1"]),
    "no states": ("reset-states clip.npz --robot anymal_d --count 0 --output out.npz", ["at least 1"]),
    "states of no clip": ("reset-states --robot anymal_d --output out.npz", ["name the clips"]),
    "trot of an arm": ("generate trot out.npz --robot panda", ["0 feet; a trot needs four"]),
    "walk of a quadruped": ("generate walk out.npz --robot anymal_d", ["4 feet; a walk needs two"]),
    "walk too fast": ("generate walk out.npz --speed 3.5", ["walk at 3.5 m/s", "the speed"]),
    "retarget of a clip": ("retarget clip.npz out.npz --robot gr1", ["--from-robot"]),
    "retarget without a rate": ("retarget timeless.txt out.npz --robot anymal_d", ["--source-fps"]),
    "check of no clip": ("check gone.npz --robot anymal_d", ["no clip at gone.npz"]),
    "show in another format": ("show clip.npz --robot anymal_d --output out.gif", [".html", ".png"]),
    "coverage of no task": ("coverage clip.npz --task Anymal", ["'Anymal'", "Anymal-Lateral"]),
    "reach of a quadruped": ("generate reach out.npz --robot anymal_d", ["no end effector"]),
    "reach beyond": ("generate reach out.npz --goal 2 0 0", ["leaves the arm's reach"]),
    "bench of nothing": ("bench --hours 0", ["hours must be"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_one_line_and_nothing_is_written(call, tmp_path, clip, case):
    ROBOT_DIALECTS["csv"](tmp_path, clip)
    ROBOT_DIALECTS["amp-rsl-rl"](tmp_path, clip)
    deepmimic_text(tmp_path, *human(5))
    (tmp_path / "timeless.txt").write_text(json.dumps({"Frames": [[0.0] * 6 + [1.0] + [0.0] * 12] * 4}))
    (tmp_path / "folder").mkdir()
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    words, named = BAD[case]
    called = call(words)
    assert called.code == 2
    assert called.err.startswith("consmimic: ")
    assert called.err.count("\n") == 1
    assert [name for name in named if name not in called.err] == []
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
