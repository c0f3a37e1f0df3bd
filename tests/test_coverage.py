"""The mismatch between task and demonstration: distances and conflicts by hand, and what figures and commands say."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from consmimic.cli import main
from consmimic.envs import Layout
from consmimic.errors import UserError
from consmimic.evaluation.coverage import COVERED, coverage
from consmimic.evaluation.coverage_figure import coverage_figure
from consmimic.motions import Clip, kinematics
from consmimic.tasks import task_entry

FORWARD, LATERAL, REACH = (task_entry(name).task for name in ("Anymal-Forward", "Anymal-Lateral", "Franka-Reach"))
JOINTS = FORWARD.robot.joint_names


def moving(velocity: np.ndarray, joints: np.ndarray | None = None, name: str = "made") -> Clip:
    """A base that goes as told, (T, 3) in the world, without turning."""
    frames = len(velocity)
    still = np.zeros((frames, len(JOINTS)))
    joint_pos = still if joints is None else joints
    return Clip(
        fps=50.0,
        joint_names=JOINTS,
        joint_pos=joint_pos,
        joint_vel=kinematics.linear_velocity(joint_pos, 50.0),
        body_names=("base",),
        body_pos_w=np.cumsum(velocity, axis=0)[:, None] / 50.0,
        body_quat_w=np.tile([1.0, 0.0, 0.0, 0.0], (frames, 1, 1)),
        body_lin_vel_w=velocity[:, None],
        body_ang_vel_w=np.zeros((frames, 1, 3)),
        source=name,
    )


def steady(v_x: float, v_y: float = 0.0, name: str = "made") -> Clip:
    return moving(np.tile([v_x, v_y, 0.0], (100, 1)), name=name)


def conflict_at(found, **command: float) -> float:
    """Of the bin whose middle is there."""
    wanted = [command.get(axis.name, 0.0) for axis in found.axes]
    index = np.abs(found.commands - wanted).sum(axis=1).argmin()
    assert_allclose(found.commands[index], wanted, atol=1e-9)
    return float(found.conflict[index])


# ---------------------------------------------------------------- by hand


def test_conflict_is_what_the_kernel_of_the_reward_loses():
    found = coverage(FORWARD, [steady(1.0)], bins=3)  # v_x −2, 0, 2; ω −2/3, 0, 2/3
    assert_allclose(found.axes[0].values, [-2.0, 0.0, 2.0])
    assert conflict_at(found, v_x=0.0) == pytest.approx(1.0 - np.exp(-4.0), abs=1e-6)
    assert conflict_at(found, v_x=2.0) == pytest.approx(1.0 - np.exp(-4.0), abs=1e-6)
    turning = 1.0 - np.exp(-4.0 - (2 / 3) ** 2 / 0.25)
    assert conflict_at(found, v_x=2.0, omega_z=2 / 3) == pytest.approx(turning, abs=1e-6)
    exact = coverage(FORWARD, [steady(2.0)], bins=3)
    assert conflict_at(exact, v_x=2.0) == pytest.approx(0.0, abs=1e-9)


def test_gaps_are_distances_to_the_nearest_frame_of_all_clips():
    found = coverage(FORWARD, [steady(0.0, name="slow"), steady(2.0, name="fast")], bins=3)
    rows = {(row["v_x"], row["omega_z"]): row for row in found.rows()}
    middle = sorted({turn for _, turn in rows})[1]
    assert rows[2.0, middle]["nearest_clip"] == "fast"
    assert rows[-2.0, middle]["nearest_clip"] == "slow"
    assert rows[-2.0, middle]["speed_gap"] == pytest.approx(2.0)
    assert rows[-2.0, middle]["turn_gap"] == pytest.approx(0.0)


def test_shares_of_the_bins_and_of_standing_add_up():
    found = coverage(FORWARD, [steady(1.0)])
    assert sum(row["share"] for row in found.rows()) + found.standing_share == pytest.approx(1.0)
    assert found.standing_share == 0.02
    by_hand = 0.98 * found.conflict.mean() + 0.02 * (1.0 - np.exp(-4.0))
    assert found.mean_conflict == pytest.approx(by_hand, abs=1e-9)


def test_swaying_within_a_stride_does_not_count():
    phase = 2.0 * np.pi * np.arange(400) / 25.0  # a cycle of half a second
    sway = np.stack([0.5 + 0.4 * np.sin(phase), 0.6 * np.cos(phase), 0.0 * phase], axis=1)
    joints = np.sin(phase[:, None] + np.arange(len(JOINTS)))
    found = coverage(LATERAL, [moving(sway, joints)])
    assert_allclose(found.shown, np.broadcast_to([0.5, 0.0, 0.0], found.shown.shape), atol=1e-7)
    without = coverage(LATERAL, [moving(sway)])  # joints that say nothing of a cycle: a fixed window
    assert np.ptp(without.shown[:, 1]) < 0.35


def test_mirror_images_are_counted_where_asked():
    plain, both = (coverage(FORWARD, [steady(1.0, 0.3)], mirrors=mirrors) for mirrors in (False, True))
    assert np.unique(plain.shown.round(6), axis=0).tolist() == [[1.0, 0.3, 0.0]]
    images = np.unique(both.shown.round(6) + 0.0, axis=0)
    assert images.tolist() == [[-1.0, -0.3, 0.0], [-1.0, 0.3, 0.0], [1.0, -0.3, 0.0], [1.0, 0.3, 0.0]]
    assert both.mean_conflict < plain.mean_conflict
    with pytest.raises(UserError, match="Franka-Reach has no mirrors"):
        coverage(REACH, [REACH.demonstration()], mirrors=True)


def test_a_target_is_reached_only_where_the_hand_rests():
    found = coverage(REACH, [REACH.demonstration()], bins=3)
    assert_allclose(found.shown, np.broadcast_to(REACH.command.centre, found.shown.shape), atol=2e-3)  # type: ignore[attr-defined]
    corner = next(row for row in found.rows() if row["x"] > 0.43 and row["y"] > 0.03 and row["z"] > 0.28)
    third = 0.1 / 3
    assert corner["distance"] == pytest.approx(np.sqrt(3) * third, abs=2e-3)
    assert corner["conflict"] == pytest.approx(1.0 - np.exp(-3 * (third / 0.05) ** 2), abs=0.03)
    assert found.passed[0].shape == (121, 3)


# ---------------------------------------------------------------- the paper's tasks


def test_nothing_sideways_is_shown_to_anymal_lateral():
    found = coverage(LATERAL, [LATERAL.demonstration()])
    sideways = np.abs(found.commands[:, 1]) > 0.6
    assert found.conflict[sideways].min() > 0.75
    assert found.covered < 0.1
    assert found.mean_conflict > 0.85
    assert found.mean_conflict > coverage(FORWARD, [FORWARD.demonstration()]).mean_conflict
    words = " ".join(found.sentences())
    assert "Nothing like this is shown: v_y -2 to -0.5 m/s and v_y 0.5 to 2 m/s" in words
    assert "(v_x = 0)" in words


def test_what_is_covered_lies_along_the_trots_speeds():
    found = coverage(FORWARD, [FORWARD.demonstration()])
    inside = found.conflict < COVERED
    assert found.commands[inside, 0].min() > -0.2
    assert found.commands[inside, 0].max() < 2.0
    assert np.abs(found.commands[inside, 2]).max() < 0.45


# ---------------------------------------------------------------- refusals


@dataclass(frozen=True)
class Other:
    layout: Layout = Layout({"other": 1})  # noqa: RUF009 - immutable
    resample_seconds: None = None

    def sample(self, count, generator, share=1.0):
        raise NotImplementedError


def test_what_cannot_be_covered_is_refused():
    with pytest.raises(UserError, match="commands of kind Other; coverage knows VelocityCommand and PoseCommand"):
        coverage(replace(FORWARD, command=Other()), [steady(1.0)])
    with pytest.raises(UserError, match="at least one clip"):
        coverage(FORWARD, [])
    with pytest.raises(UserError, match="bins is 1"):
        coverage(FORWARD, [steady(1.0)], bins=1)
    with pytest.raises(UserError, match="does not say how to read velocities"):
        coverage(replace(FORWARD, walking=None), [steady(1.0)])


# ---------------------------------------------------------------- figure and command line


def test_the_figure_has_what_is_asked_the_gap_and_the_conflict():
    one = coverage_figure(coverage(LATERAL, [LATERAL.demonstration()]))
    assert [ax.get_title() for ax in one.axes[:3]] == ["asked and shown", "to the nearest frame", "conflict, mean 0.92"]
    three = coverage_figure(coverage(REACH, [REACH.demonstration()], bins=5))
    assert len(three.axes) == 9 + 6  # with colour bars
    every = replace(FORWARD, command=replace(FORWARD.command, lin_vel_y=(-1.0, 1.0)))  # type: ignore[type-var]
    coverage_figure(coverage(every, [steady(1.0)])).draw_without_rendering()
    lone = replace(FORWARD, command=replace(FORWARD.command, ang_vel_z=(0.0, 0.0)))  # type: ignore[type-var]
    coverage_figure(coverage(lone, [steady(1.0)])).draw_without_rendering()


def call(*words: object) -> int:
    with pytest.raises(SystemExit) as exit_:
        main([str(word) for word in words])
    return int(exit_.value.code or 0)


def test_the_command_writes_figure_and_rows(tmp_path, capsys):
    figure = tmp_path / "out" / "lateral.png"
    assert call("motions", "coverage", "--task", "Anymal-Lateral", "--bins", 5, "--output", figure) == 0
    assert "Anymal-Lateral asks for v_y -2 to 2 m/s" in capsys.readouterr().out
    assert figure.read_bytes().startswith(b"\x89PNG")
    rows = json.loads(figure.with_suffix(".json").read_text())
    assert len(rows["bins"]) == 25
    clip = tmp_path / "steady.npz"
    steady(1.0).save(clip)
    assert call("motions", "coverage", clip, "--task", "Anymal-Forward", "--mirrors", "--json", "--bins", 3) == 0
    assert json.loads(capsys.readouterr().out)["task"] == "Anymal-Forward"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--task", "Spot-Dance"), "unknown task 'Spot-Dance'. Valid: Franka-Reach"),
        (("--task", "Anymal-Forward", "--output", "map.jpeg"), "must end in one of .png, .pdf, .svg"),
        (("nowhere.npz", "--task", "Anymal-Forward"), "no clip at nowhere.npz"),
    ],
)
def test_bad_input_exits_with_2(words, message, capsys):
    assert call("motions", "coverage", *words) == 2
    assert message in " ".join(capsys.readouterr().err.split())
