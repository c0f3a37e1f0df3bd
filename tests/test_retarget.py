"""From skeletons and robots to robots: laws of the parts, motions whose retargeting is known, and the real clips."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import tyro
from numpy.testing import assert_allclose, assert_array_equal

from consmimic.cli.motions.retarget import Retarget
from consmimic.errors import UserError
from consmimic.motions import Clip, rotation
from consmimic.motions.kinematics import runs
from consmimic.motions.retarget import (
    Retargeted,
    SourceMotion,
    correspondence_of,
    from_robot,
    read_source,
)
from consmimic.motions.retarget.contacts import levelled, stances, with_hysteresis, without_short
from consmimic.motions.retarget.footsteps import planted, rolling, swing_share
from consmimic.motions.retarget.sampling import low_pass, repeats, resampled, without_repeats
from consmimic.motions.retarget.seams import healed, jumps, period_of, unrolled
from consmimic.motions.retarget.soles import Sole
from consmimic.motions.trot import Trot, generate_trot
from consmimic.robots import ROBOTS
from real_clips import DOGS, FOLDER, HUMANS, MODELS, onto, real, retargeted

mink = pytest.importorskip("mink")

from consmimic.motions.retarget.ik import PointTask  # noqa: E402  (needs mink)

ANYMAL, GR1 = ROBOTS["anymal_d"], ROBOTS["gr1"]


def read(path: Path, skeleton: str) -> SourceMotion:
    return read_source(path, skeleton)[0]


def defaults(robot: str) -> dict[str, float]:
    return dict(zip(ROBOTS[robot].joint_names, ROBOTS[robot].default_joint_pos, strict=True))


# ---------------------------------------------------------------- what MuJoCo says of a clip


def coordinates(clip: Clip, robot: str) -> np.ndarray:
    model = MODELS[robot]
    qpos = np.empty((len(clip), model.nq))
    for frame in range(len(clip)):
        qpos[frame, :7] = [*clip.body_pos_w[frame, 0], *clip.body_quat_w[frame, 0]]
        for column, name in enumerate(clip.joint_names):
            qpos[frame, model.joint(name).qposadr[0]] = clip.joint_pos[frame, column]
    return qpos


def lowest_and_slip(clip: Clip, robot: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Height of each foot's lowest point, (T, F), and how far that point of the foot moves over the ground until the
    next frame, by foot: from the contact shapes as MuJoCo has them."""
    model = MODELS[robot]
    data = mujoco.MjData(model)
    qpos = coordinates(clip, robot)
    heights, slips = [], {}
    for foot in ROBOTS[robot].feet:
        body = model.body(foot).id
        local = []
        for geom in np.flatnonzero((model.geom_bodyid == body) & (model.geom_contype > 0)):
            axis = rotation.rotate(model.geom_quat[geom], np.array([0.0, 0.0, model.geom_size[geom, 1]]))
            ends = [axis, -axis] if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE else [np.zeros(3)]
            local += [(model.geom_pos[geom] + end, model.geom_size[geom, 0]) for end in ends]
        points, poses = [], []
        for frame in range(len(clip)):
            data.qpos[:] = qpos[frame]
            mujoco.mj_kinematics(model, data)
            pos, mat = data.xpos[body].copy(), data.xmat[body].reshape(3, 3).copy()
            poses.append((pos, mat))
            points.append([pos + mat @ p - [0, 0, r] for p, r in local])
        points = np.array(points)
        lowest = points[..., 2].argmin(axis=1)
        heights.append(points[..., 2].min(axis=1))
        moved = []
        for frame in range(len(clip) - 1):
            (pos, mat), (next_pos, next_mat) = poses[frame : frame + 2]
            material = mat.T @ (points[frame, lowest[frame]] - pos)
            moved.append(np.linalg.norm((next_pos + next_mat @ material - points[frame, lowest[frame]])[:2]))
        slips[foot] = np.array(moved)
    return np.stack(heights, axis=1), slips


def check_feet(done: Retargeted, robot: str) -> None:
    heights, slips = lowest_and_slip(done.clip, robot)
    assert heights.min() > -0.002
    for column, foot in enumerate(ROBOTS[robot].feet):
        stands = runs(done.stances[foot])
        assert stands
        for first, end in stands:
            assert slips[foot][first : end - 1].sum() < 0.005
            assert heights[first:end, column].max() < 0.002


def check_joints(done: Retargeted, robot: str) -> None:
    model, clip = MODELS[robot], done.clip
    low, high = np.array([model.joint(name).range for name in clip.joint_names]).T
    assert np.all(clip.joint_pos > low - 1e-6)
    assert np.all(clip.joint_pos < high + 1e-6)
    limits = np.array(ROBOTS[robot].joint_velocity_limits)
    assert np.all(np.abs(np.diff(clip.joint_pos, axis=0)) * clip.fps < limits * (1 + 1e-6))
    assert np.all(np.abs(clip.joint_vel) < limits * (1 + 1e-6))


def check_counter_phase(clip: Clip) -> None:
    """Pitch is positive backwards in hips and in shoulders."""

    def angle(joint: str) -> np.ndarray:
        return clip.joint_pos[:, clip.joint(f"{joint}_pitch_joint")]

    assert np.corrcoef(angle("left_hip"), angle("right_hip"))[0, 1] < -0.7
    for side in ("left", "right"):
        assert np.corrcoef(angle(f"{side}_hip"), angle(f"{side}_shoulder"))[0, 1] < -0.7


# ---------------------------------------------------------------- rotations


def random_quaternions(count: int = 50) -> np.ndarray:
    quaternions = np.random.default_rng(0).normal(size=(count, 4))
    return quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)


def test_rotations_are_mujocos():
    a, b = random_quaternions(), random_quaternions()[::-1]
    product, turned = np.zeros(4), np.zeros(3)
    for p, q in zip(a, b, strict=True):
        mujoco.mju_mulQuat(product, p, q)
        assert_allclose(rotation.product(p, q), product, atol=1e-12)
        mujoco.mju_rotVecQuat(turned, np.array([1.0, 2.0, 3.0]), p)
        assert_allclose(rotation.rotate(p, np.array([1.0, 2.0, 3.0])), turned, atol=1e-12)


def test_exp_undoes_log_and_three_angles_undo_themselves():
    q = random_quaternions()
    for again in (rotation.exp(rotation.log(q)), rotation.from_yrp(*rotation.yrp(q))):
        assert_allclose(np.abs((again * q).sum(axis=1)), 1.0, atol=1e-9)


def test_the_heading_of_a_foot_is_that_of_its_axis_even_if_it_points_straight_down():
    yaw, roll, pitch = np.array([0.4]), np.array([0.1]), np.array([np.pi / 2])
    assert_allclose(rotation.yrp(rotation.from_yrp(yaw, roll, pitch)), [yaw, roll, pitch], atol=1e-9)


# ---------------------------------------------------------------- skeletons


def deepmimic(path: Path, frames: int = 4, **columns: object) -> Path:
    """A DeepMimic text of a skeleton that stands straight, but for the columns given by name."""
    names = {"root": (1, 3), "turn": (4, 4), "chest": (8, 4), "neck": (12, 4)}
    names |= {"right_hip": (16, 4), "right_knee": (20, 1), "right_ankle": (21, 4)}
    names |= {"right_shoulder": (25, 4), "right_elbow": (29, 1), "left_hip": (30, 4), "left_knee": (34, 1)}
    names |= {"left_ankle": (35, 4), "left_shoulder": (39, 4), "left_elbow": (43, 1)}
    table = np.zeros((frames, 44))
    table[:, 0] = 1 / 30
    table[:, 2] = 0.881416
    for name, (first, width) in names.items():
        if width == 4:
            table[:, first] = 1.0
        if name in columns:
            table[:, first : first + width] = np.asarray(columns[name], dtype=float).reshape(-1, width)
    path.write_text(json.dumps({"Loop": "wrap" if columns.get("loop") else "none", "Frames": table.tolist()}))
    return path


def about_right(angle) -> np.ndarray:
    """DeepMimic's z axis is the right: positive angles swing a hanging limb forward."""
    return rotation.about(np.array([0.0, 0.0, 1.0]), np.asarray(angle, dtype=float))


def test_deepmimics_skeleton_stands_on_its_soles(tmp_path):
    source = read(deepmimic(tmp_path / "stand.txt"), "deepmimic")
    assert source.fps == pytest.approx(30)
    assert not source.loops
    for side, y in (("left", 0.084887), ("right", -0.084887)):
        assert_allclose(source.points[f"{side}_ankle"][0], [0, y, 0.05], atol=1e-6)
        assert_allclose(source.points[f"{side}_toe"][0], [0.1335, y, 0], atol=1e-6)
        assert_allclose(source.points[f"{side}_hand"][0, 2], 0.881416 + 0.236151 + 0.2435 - 0.274788 - 0.258947)
    assert source.points["left_shoulder"][0, 1] == pytest.approx(0.18311)
    assert_allclose(source.root_quat[0], [1, 0, 0, 0])
    assert source.length("left_hip", "left_knee", "left_ankle") == pytest.approx(0.831416)


def test_deepmimics_knees_bend_backward_and_elbows_forward(tmp_path):
    path = deepmimic(tmp_path / "bent.txt", left_knee=-np.pi / 2, right_elbow=np.pi / 2, right_hip=about_right(0.5))
    source = read(path, "deepmimic")
    assert_allclose(source.points["left_ankle"][0] - source.points["left_knee"][0], [-0.40987, 0, 0], atol=1e-6)
    assert_allclose(source.points["right_hand"][0] - source.points["right_elbow"][0], [0.258947, 0, 0], atol=1e-6)
    thigh = source.points["right_knee"][0] - source.points["right_hip"][0]
    assert_allclose(thigh, 0.421546 * np.array([np.sin(0.5), 0, -np.cos(0.5)]), atol=1e-6)
    yaw, roll, pitch = rotation.yrp(source.turns["right_foot"][0])
    assert_allclose([yaw, roll, pitch], [0, 0, -0.5], atol=1e-9)  # the toe goes up


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "is neither npz, npy, JSON nor a table of numbers"),
        ('{"Frames": [[1, 2], [3]]}', "frame 1 has 1 numbers, the first has 2"),
        (
            '{"Frames": [[1, 2, 3]]}',
            '"Frames" of 3 numbers; that is not DeepMimic text of a human skeleton',
        ),
        (json.dumps({"Frames": [[0.1] + [0.0] * 43] * 4}), "is no rotation in frame 0"),
        ('{"Frames": [[' + "NaN," * 43 + "1]]}", "is nan in frame 0; no motion has such a number"),
    ],
)
def test_text_that_is_no_motion_is_refused(tmp_path, text, message):
    (tmp_path / "bad.txt").write_text(text)
    with pytest.raises(UserError, match=message):
        read(tmp_path / "bad.txt", "deepmimic")


def quadruped(path: Path, angles, *, frames: int = 4, turn=(0, 0, 0, 1), dt: float = 0.05, **changes) -> Path:
    table = np.zeros((frames, 19))
    table[:, 2] = 0.4
    table[:, 3:7] = turn
    table[:, 7:] = angles
    path.write_text(json.dumps({"LoopMode": "Wrap", "FrameDuration": dt, "Frames": table.tolist()} | changes))
    return path


def test_a1s_feet_are_where_its_legs_put_them(tmp_path):
    source = read(quadruped(tmp_path / "a1.txt", [0.0, 0.9, -1.8] * 4), "a1")
    below = 0.2 * (np.cos(0.9) + np.cos(0.9))
    assert_allclose(source.points["LF_foot"][0], [0.183, 0.13205, 0.4 - below], atol=1e-9)
    assert_allclose(source.points["RH_foot"][0], [-0.183, -0.13205, 0.4 - below], atol=1e-9)
    assert source.fps == 20
    assert source.loops


def test_laikagos_side_on_model_is_put_upright_and_its_sides_mirror_each_other(tmp_path):
    angles = [0.1, 0.67, -1.25, -0.1, 0.67, -1.25] * 2  # right legs count the other way
    source = read(quadruped(tmp_path / "l.txt", angles, turn=(0.5, 0.5, 0.5, 0.5)), "laikago")
    assert_allclose(source.root_quat[0], [1, 0, 0, 0], atol=1e-12)
    for front in "FH":
        assert_allclose(source.points[f"L{front}_foot"], source.points[f"R{front}_foot"] * [1, -1, 1], atol=1e-12)
    narrow = source.points["LF_foot"][0, 1]
    level = read(quadruped(tmp_path / "0.txt", [0, 0.67, -1.25] * 4, turn=(0.5,) * 4), "laikago")
    assert narrow < level.points["LF_foot"][0, 1] - 0.03  # −0.1 of a left leg is inward
    assert_allclose(level.points["LF_foot"][0], level.stance["LF_foot"] + [0, 0, 0.4], atol=1e-12)


def test_amp_for_hardwares_text_is_the_same_motion_as_motion_imitations(tmp_path):
    angles = [0.1, 0.9, -1.8] * 4
    plain = read(quadruped(tmp_path / "19.txt", angles), "a1")
    table = np.zeros((4, 61))
    table[:, 2], table[:, 6], table[:, 7:19] = 0.4, 1.0, angles
    (tmp_path / "61.txt").write_text(json.dumps({"FrameDuration": 0.05, "Frames": table.tolist()}))
    amp = read(tmp_path / "61.txt", "a1")
    for name, track in plain.points.items():
        assert_allclose(amp.points[name], track, atol=1e-12)


def test_a_quadruped_needs_a_known_skeleton_and_a_duration(tmp_path):
    path = quadruped(tmp_path / "q.txt", [0.0] * 12, FrameDuration="soon")
    with pytest.raises(UserError, match="FrameDuration is 'soon'; it must be a number"):
        read(path, "a1")
    with pytest.raises(UserError, match="a frame lasts 0 s"):
        read(quadruped(tmp_path / "0.txt", [0.0] * 12, dt=0), "a1")
    with pytest.raises(UserError, match="unknown skeleton 'a2'. Valid: .*laikago, laikago-model, a1"):
        read(path, "a2")


def test_an_npz_without_bodies_is_refused_with_what_it_has(tmp_path):
    np.savez(tmp_path / "other.npz", fps=30, qpos=np.zeros((4, 9)))
    with pytest.raises(UserError, match="an npz with fps, qpos; that is not Isaac Lab's humanoid npz"):
        read(tmp_path / "other.npz", "isaaclab")
    names = np.array(["pelvis", "torso"])
    bodies = {"body_positions": np.ones((4, 2, 3)), "body_rotations": np.tile([1.0, 0.0, 0.0, 0.0], (4, 2, 1))}
    joints = {"dof_names": np.array(["knee"]), "dof_positions": np.zeros((4, 1))}
    np.savez(tmp_path / "two.npz", fps=30, body_names=names, **bodies, **joints)
    with pytest.raises(UserError, match=r"lacks body left_thigh, .*; it has pelvis, torso"):
        read(tmp_path / "two.npz", "isaaclab")
    with pytest.raises(UserError, match="no motion at"):
        read_source(tmp_path / "none.npz")


# ---------------------------------------------------------------- loops, rates, ground


def ball(track: np.ndarray, fps: float = 50.0, *, loops: bool = False, root: np.ndarray | None = None) -> SourceMotion:
    """A motion of one point, and of a root that goes along above it."""
    name = "LF_foot"
    upright = np.tile([1.0, 0.0, 0.0, 0.0], (len(track), 1))
    return SourceMotion(
        name="ball",
        fps=fps,
        root_pos=track + rotation.UP if root is None else root,
        root_quat=upright,
        points={name: track},
        turns={},
        feet={"LF": (name,)},
        stance={name: np.zeros(3)},
        foot_height=0.0,
        loops=loops,
    )


def circle(frames: int, *, whole: int) -> np.ndarray:
    angle = 2 * np.pi * np.arange(frames) / whole
    return np.stack(
        [0.1 * np.sin(angle) + 0.3 * np.arange(frames) / whole, np.zeros(frames), 0.1 * np.cos(angle)], axis=1
    )


@pytest.mark.parametrize("repeated", [0, 1])
def test_a_loop_is_carried_on_whether_or_not_its_last_frame_is_its_first(repeated):
    root = np.outer(np.arange(40 + repeated), [0.3 / 40, 0.0, 0.0]) + rotation.UP
    motion = ball(circle(40 + repeated, whole=40), loops=True, root=root)
    assert period_of(motion) == 40
    longer, period = unrolled(motion, 3)
    assert period == 40
    assert_allclose(longer.points["LF_foot"], circle(121, whole=40), atol=3e-3)
    assert jumps(longer).max() < 4e-3


def test_a_jump_is_closed_by_half_from_each_side_and_nothing_else_moves():
    smooth = circle(100, whole=40)
    torn = smooth + np.where(np.arange(100)[:, None] > 49, [0.0, 0.0, 0.08], 0.0)
    assert jumps(ball(torn)).argmax() == 49
    mended = healed(ball(torn), np.array([49]), window=0.2).points["LF_foot"]
    assert jumps(ball(mended)).max() < 0.01
    assert_allclose(mended[:39], torn[:39], atol=1e-12)
    assert_allclose(mended[61:], torn[61:], atol=1e-12)
    assert_allclose(mended[49, 2] - torn[49, 2], 0.04, atol=2e-3)


def test_a_low_pass_lets_steps_through_and_holds_back_noise():
    times = np.arange(400) / 100

    def left_of(frequency: float) -> float:
        wave = np.sin(2 * np.pi * frequency * times)[:, None]
        return float(np.abs(low_pass(wave, 100, 8.0)[100:300]).max())

    assert left_of(1.0) == pytest.approx(1.0, abs=0.005)
    assert left_of(8.0) == pytest.approx(0.5, abs=0.02)
    assert left_of(30.0) < 0.01
    line = np.stack([3 * times, 1 - times], axis=1)
    assert_allclose(low_pass(line, 100, 8.0), line, atol=1e-9)


def test_resampling_goes_through_the_frames():
    motion = ball(circle(50, whole=40))
    fine = resampled(motion, np.arange(197) / 200, fps=200, cutoff=None)
    assert fine.fps == 200
    assert_allclose(fine.points["LF_foot"][::4], motion.points["LF_foot"], atol=1e-12)
    assert_allclose(fine.points["LF_foot"], circle(197, whole=160) * 1.0, atol=2e-3)


def test_frames_that_are_there_twice_are_taken_once():
    motion = ball(circle(50, whole=40))
    doubled = ball(np.repeat(circle(50, whole=40), 2, axis=0), fps=100)
    assert (repeats(motion), repeats(doubled)) == (1, 2)
    assert_array_equal(without_repeats(doubled, 2).points["LF_foot"], motion.points["LF_foot"])
    assert without_repeats(doubled, 2).fps == 50


def stepping(frames: int = 200, *, height: float = 0.0, rise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """A foot that stands 30 frames, goes 0.4 m in 20, and stands again …; and when it stands."""
    phase = np.arange(frames) % 50
    s = np.clip((phase - 29) / 20, 0.0, 1.0)
    x = 0.4 * (np.arange(frames) // 50 + s * s * (3 - 2 * s))
    z = height + rise * np.arange(frames) / 50 + 0.1 * np.sin(np.pi * s) ** 2
    return np.stack([x, np.zeros(frames), z], axis=1), phase <= 29


def test_the_ground_is_found_and_levelled_also_where_it_rises():
    for height, rise in ((0.3, 0.0), (-0.2, 0.02)):
        level, ground = levelled(ball(stepping(height=height, rise=rise)[0]))
        assert ground.slope == pytest.approx(rise, abs=2e-3)
        standing = level.points["LF_foot"][stepping()[1], 2]
        assert np.abs(standing).max() < 0.003


def test_a_foot_stands_while_it_is_low_and_slow():
    track, standing = stepping()
    level, ground = levelled(ball(track))
    found = stances(level, ground, leg_length=0.8)["LF"]
    assert np.mean(found != standing) < 0.06
    assert len(runs(found)) == len(runs(standing))


def test_hysteresis_and_short_runs():
    stays = np.array([1, 1, 1, 0, 1, 1, 0, 1], dtype=bool)
    starts = np.array([0, 1, 0, 0, 0, 0, 0, 1], dtype=bool)
    assert_array_equal(with_hysteresis(starts, stays), np.array([1, 1, 1, 0, 0, 0, 0, 1], dtype=bool))
    flags = np.array([0] * 20 + [1] * 20 + [0] * 2 + [1] * 20 + [0] * 20 + [1] * 2 + [0] * 20, dtype=bool)
    assert runs(without_short(flags, 50)) == [(20, 62)]


# ---------------------------------------------------------------- feet


def test_planted_feet_stand_still_and_leave_and_arrive_at_rest():
    track, standing = stepping()
    slipping = track + np.stack(
        [0.03 * np.sin(np.arange(200) / 7), 0.01 * np.cos(np.arange(200) / 9), 0 * track[:, 2]], 1
    )
    held = planted(slipping, standing)
    steps = np.abs(np.diff(held, axis=0))
    for first, end in runs(standing):
        assert_allclose(held[first:end], np.broadcast_to(slipping[first:end].mean(axis=0), (end - first, 3)))
        if first > 0:
            assert steps[first - 1].max() < 0.01
    assert steps.max() < 1.5 * np.abs(np.diff(slipping, axis=0)).max()
    assert_allclose(planted(held, standing), held, atol=0.01)


def test_what_stands_still_already_is_left_alone():
    track, standing = stepping()
    assert_allclose(planted(track, standing), track, atol=1e-12)


def test_the_share_of_a_swing_is_0_on_the_ground_and_1_in_the_middle():
    standing = stepping()[1]
    share = swing_share(standing)
    assert_array_equal(share[standing], 0)
    assert share.max() == pytest.approx(1.0, abs=0.01)


def test_a_wheel_rolls_by_its_radius_times_its_angle():
    angle = np.linspace(0, 1, 30)
    offset = rolling(rotation.about(np.array([0.0, 1.0, 0.0]), angle), np.ones(30, dtype=bool), 0.05)
    assert_allclose(offset[:, 0], 0.05 * (angle - angle.mean()), atol=1e-9)
    assert_allclose(offset[:, 1:], 0, atol=1e-12)


def test_soles_are_read_from_the_shapes_that_touch():
    sole = Sole.of(MODELS["gr1"], "left_foot_roll_link")  # two capsules of radius 0.02 from −0.07 to 0.17
    assert (sole.height, sole.heel, sole.toe) == pytest.approx((0.055, -0.07, 0.17))
    assert len(sole.corners) == 4
    foot = Sole.of(MODELS["anymal_d"], "LF_FOOT")
    assert foot.radius == pytest.approx(0.031455)
    with pytest.raises(UserError, match="'waist_yaw_link' is no foot: nothing of it touches"):
        Sole.of(MODELS["gr1"], "waist_yaw_link")


def test_a_sole_rolls_over_heel_and_toe_without_slipping():
    sole = Sole.of(MODELS["gr1"], "left_foot_roll_link")
    pitch = np.linspace(-0.5, 0.9, 2001)
    zero = np.zeros_like(pitch)
    position = np.stack([sole.rolled_forward(pitch), zero, sole.resting_height(pitch, zero)], axis=1)
    turn = rotation.from_yrp(zero, zero, pitch)
    assert_allclose(sole.lowest(position, turn), 0, atol=1e-12)
    at_zero = np.searchsorted(pitch, 0.0)
    for frame in range(0, 2000, 37):
        if abs(frame - at_zero) < 2:
            continue
        corner = sole.world_corners(position, turn)[frame].copy()
        touching = corner[corner[:, 2].argmin()] - [0, 0, sole.radius]
        material = rotation.rotate(rotation.inverse(turn[frame]), touching - position[frame])
        after = position[frame + 1] + rotation.rotate(turn[frame + 1], material)
        assert np.linalg.norm(after - touching) < 1e-5  # a step turns it by 7e-4 rad
    assert sole.rolled_forward(np.zeros(1))[0] == pytest.approx(0.0)


# ---------------------------------------------------------------- inverse kinematics


@pytest.mark.parametrize("frame", [None, "waist_roll_link"])
def test_the_jacobian_of_a_point_is_its_finite_difference(frame):
    model = MODELS["gr1"]
    task = PointTask(model, "left_lower_arm_pitch_link", np.array([0.02, 0.0, -0.2]), 1.0, frame)
    random = np.random.default_rng(1)
    q = model.qpos0 + 0.0
    mujoco.mj_integratePos(model, q, random.normal(size=model.nv) * 0.3, 1.0)
    configuration = mink.Configuration(model, q)
    J, error = task.compute_jacobian(configuration), task.compute_error(configuration)
    for dof in range(model.nv):
        moved = configuration.integrate(np.eye(model.nv)[dof], 1e-6)
        numeric = (task.compute_error(mink.Configuration(model, moved)) - error) / 1e-6
        assert_allclose(J[:, dof], numeric, atol=1e-5)


# ---------------------------------------------------------------- motions whose retargeting is known


@pytest.fixture(scope="module")
def trot() -> Clip:
    return generate_trot(
        MODELS["anymal_d"],
        root="base",
        feet=ANYMAL.feet,
        joint_names=ANYMAL.joint_names,
        default_joint_pos=ANYMAL.default_joint_pos,
        joint_velocity_limits=ANYMAL.joint_velocity_limits,
        trot=Trot(speeds=(0.6,), hold_seconds=1.2),
    )


@pytest.fixture(scope="module")
def points(trot) -> SourceMotion:
    return from_robot(trot, MODELS["anymal_d"], correspondence_of("anymal_d"), defaults("anymal_d"))


@pytest.fixture(scope="module")
def back(points) -> Retargeted:
    return onto("anymal_d", points, cutoff=None)


def test_a_trot_comes_back_onto_the_robot_it_is_of(trot, back):
    assert back.report.scale == pytest.approx(1.0)
    assert back.report.slowed == 1.0
    assert len(back.clip) == len(trot)
    off = np.abs(back.clip.joint_pos - trot.joint_pos)
    assert off.mean() < 0.004
    assert off.max() < 0.05  # where a foot that still hovers is already taken to stand
    assert_allclose(back.clip.body_pos_w[:, 0], trot.body_pos_w[:, 0], atol=2e-3)
    check_feet(back, "anymal_d")
    check_joints(back, "anymal_d")


def test_the_size_of_the_source_does_not_matter(points, back):
    large = replace(
        points,
        root_pos=1.7 * points.root_pos,
        points={name: 1.7 * track for name, track in points.points.items()},
        stance={name: 1.7 * place for name, place in points.stance.items()},
        foot_height=1.7 * points.foot_height,
        touch_radius=1.7 * points.touch_radius,
        touch_height=1.7 * points.touch_height,
    )
    done = onto("anymal_d", large, cutoff=None)
    assert done.report.scale == pytest.approx(1 / 1.7)
    off = np.abs(done.clip.joint_pos - back.clip.joint_pos)
    assert off.mean() < 0.01  # √(gL), a speed, does not scale as lengths do, so stances differ by a frame


def test_where_the_source_is_and_which_way_it_faces_does_not_matter(points, back):
    turn = rotation.from_yaw(np.array(2.0))

    def moved(track: np.ndarray) -> np.ndarray:
        return np.array([5.0, -3.0, 0.7]) + rotation.rotate(turn, track)

    elsewhere = points.with_arrays(
        moved(points.root_pos),
        rotation.product(np.broadcast_to(turn, points.root_quat.shape), points.root_quat),
        {name: moved(track) for name, track in points.points.items()},
        {},
    )
    done = onto("anymal_d", elsewhere, cutoff=None)
    assert_allclose(done.clip.joint_pos, back.clip.joint_pos, atol=1e-4)
    assert_allclose(done.clip.body_pos_w, back.clip.body_pos_w, atol=1e-4)


def test_the_clip_has_all_bodies_with_velocities_that_are_differences(back):
    clip, model = back.clip, MODELS["anymal_d"]
    assert clip.body_names == tuple(model.body(i).name for i in range(1, model.nbody))
    assert clip.joint_names == ANYMAL.joint_names
    assert_allclose(clip.body_pos_w[2:] - clip.body_pos_w[:-2], clip.body_lin_vel_w[1:-1] * 2 / 50, atol=1e-12)
    data = mujoco.MjData(model)
    qpos, velocity = coordinates(clip, "anymal_d"), np.zeros(6)
    for frame in range(5, len(clip) - 5, 10):  # MuJoCo's own velocities of the bodies, from central differences of qpos
        mujoco.mj_differentiatePos(model, data.qvel, 2 / 50, qpos[frame - 1], qpos[frame + 1])
        data.qpos[:] = qpos[frame]
        mujoco.mj_forward(model, data)
        for column, body in enumerate(clip.body_names):
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, model.body(body).id, velocity, 0)
            assert_allclose(clip.body_ang_vel_w[frame, column], velocity[:3], atol=0.15)


def test_a_clip_is_slowed_down_where_joints_are_too_slow(points, back):
    peak = np.abs(np.diff(back.clip.joint_pos, axis=0)).max() * 50
    done = onto("anymal_d", points, cutoff=None, joint_velocity_limits=(0.8 * peak,) * 12)
    assert 1.0 < done.report.slowed <= 1.3
    assert np.abs(np.diff(done.clip.joint_pos, axis=0)).max() * 50 <= 0.8 * peak * (1 + 1e-6)
    assert "slowed down" in done.report.remarks()[0]
    hurried = onto("anymal_d", points, cutoff=None, joint_velocity_limits=(0.5 * peak,) * 12, max_slow_down=1.1)
    assert hurried.report.slowed == 1.1
    assert hurried.report.fastest_share <= 1 + 1e-6
    assert hurried.report.base.largest > 0.005  # the base gives way, for the feet come first


# ---------------------------------------------------------------- a walk that is made here


@pytest.fixture(scope="module")
def made_walk(tmp_path_factory) -> Path:
    """36 frames of a human's walk at 1.08 m/s from sines, the soles kept level; it loops."""
    phase = 2 * np.pi * np.arange(36) / 36
    columns: dict[str, object] = {"loop": True}
    reach = []
    for side, lag in (("right", 0.0), ("left", np.pi)):
        hip, knee = 0.4 * np.sin(phase + lag), -0.1 - 0.5 * np.clip(np.cos(phase + lag), 0, None)
        columns |= {f"{side}_hip": about_right(hip), f"{side}_knee": knee, f"{side}_ankle": about_right(-hip - knee)}
        columns |= {f"{side}_shoulder": about_right(-0.3 * np.sin(phase + lag)), f"{side}_elbow": np.full(36, 0.3)}
        reach.append(0.421546 * np.cos(hip) + 0.40987 * np.cos(hip + knee))
    root = np.stack([0.036 * np.arange(36), np.max(reach, axis=0) + 0.05, 0 * phase], axis=1)
    return deepmimic(tmp_path_factory.mktemp("made") / "walk.txt", frames=36, root=root, **columns)


@pytest.fixture(scope="module")
def walk(made_walk) -> Retargeted:
    return onto("gr1", read(made_walk, "deepmimic"), laps=2)


def test_a_made_walk_walks_on_gr1(walk):
    check_feet(walk, "gr1")
    check_joints(walk, "gr1")
    check_counter_phase(walk.clip)
    report = walk.report
    assert report.scale == pytest.approx(0.7006 / 0.831416, rel=2e-3)
    assert report.speed == pytest.approx(1.08 * report.scale / report.stretched / report.slowed, rel=0.03)
    upright = rotation.rotate(walk.clip.body_quat_w[:, 0], np.array([0.0, 0.0, 1.0]))
    assert upright[:, 2].min() > 0.99


def test_a_loop_ends_as_it_begins_one_stride_on(walk):
    clip = walk.clip
    assert_allclose(clip.joint_pos[-1], clip.joint_pos[0], atol=2e-3)
    half = (len(clip) - 1) // 2
    assert_allclose(clip.joint_pos[half], clip.joint_pos[0], atol=2e-3)
    assert_allclose(clip.body_pos_w[-1, :, 1:], clip.body_pos_w[0, :, 1:], atol=2e-3)
    assert walk.report.seam_after is not None
    assert walk.report.seam_after < 0.01
    assert_allclose(clip.body_pos_w[0, 0, :2], 0, atol=1e-12)


def test_the_report_is_a_table_and_a_file(walk, tmp_path):
    walk.report.save(tmp_path / "report.json")
    saved = json.loads((tmp_path / "report.json").read_text())
    assert saved["robot"] == "gr1"
    assert saved["slip_after"] < 0.005 < saved["slip_before"]
    assert saved["end_effectors"]["left_foot_roll_link"]["largest"] < 0.3
    with pytest.raises(UserError, match="exists"):
        walk.report.save(tmp_path / "report.json")
    assert walk.report.table().row_count > 10
    assert walk.clip.source.startswith("retargeted: walk.txt to gr1, lengths times 0.84")


def test_a_walk_of_gr1_comes_back_onto_gr1(walk):
    source = from_robot(walk.clip, MODELS["gr1"], correspondence_of("gr1"), defaults("gr1"))
    again = onto("gr1", source, cutoff=None)
    assert again.report.scale == pytest.approx(1.0)
    off = np.abs(again.clip.joint_pos - walk.clip.joint_pos)
    assert off.mean() < 0.03
    check_feet(again, "gr1")


# ---------------------------------------------------------------- from the command line


def command(*words: object) -> Retarget:
    return tyro.cli(Retarget, args=[str(word) for word in words])


def test_the_command_writes_clip_and_report(made_walk, tmp_path, capsys):
    assert command(made_walk, tmp_path / "out.npz", "--robot", "gr1").run() == 0
    said = capsys.readouterr().out
    assert 'read as deepmimic: a text with "Frames" of 44 numbers' in said
    assert "slip of a standing foot" in said
    clip = Clip.load(tmp_path / "out.npz")
    assert clip.joint_names == GR1.joint_names
    assert json.loads((tmp_path / "out.json").read_text())["source"] == "walk.txt"
    with pytest.raises(UserError, match=r"out\.npz exists"):
        command(made_walk, tmp_path / "out.npz", "--robot", "gr1").run()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--robot", "panda"), "unknown robot to retarget to 'panda'. Valid: anymal_d, gr1"),
        (("--robot", "r2d2"), "unknown robot 'r2d2'"),
        (("--robot", "anymal_d"), "unknown point of motion 'walk.txt' 'LF_"),
        (("--robot", "gr1", "--skeleton", "dog"), "unknown skeleton 'dog'. Valid: deepmimic, isaaclab, laikago"),
        (("--robot", "gr1", "--fps", "0"), "fps is 0"),
        (("--robot", "gr1", "--laps", "0"), "laps is 0"),
        (("--robot", "gr1", "--max-slow-down", "0.5"), "max_slow_down is 0.5"),
        (("--robot", "gr1", "--cutoff", "-1"), "cutoff is -1"),
        (("--robot", "gr1", "--skeleton", "a1", "--from-robot", "gr1"), "give one of them"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(made_walk, tmp_path, words, message):
    with pytest.raises(UserError, match=message):
        command(made_walk, tmp_path / "out.npz", *words).run()
    assert not list(tmp_path.iterdir())


def test_without_mink_the_error_says_what_to_install(points, monkeypatch):
    monkeypatch.setitem(sys.modules, "mink", None)
    monkeypatch.delitem(sys.modules, "consmimic.motions.retarget.ik")
    with pytest.raises(UserError, match=r"pip install 'consmimic\[retarget\]'"):
        onto("anymal_d", points)


# ---------------------------------------------------------------- the real clips


@real
@pytest.mark.parametrize("name", HUMANS)
def test_real_walks_walk_on_gr1(name):
    done = retargeted(name, "gr1")
    check_feet(done, "gr1")
    check_joints(done, "gr1")
    check_counter_phase(done.clip)
    assert done.report.slowed == 1.0
    assert done.report.base.mean < 0.005
    assert max(distance.largest for distance in done.report.missed.values()) < 0.005
    assert done.report.speed > 0.7


@real
@pytest.mark.parametrize("name", DOGS)
def test_a_real_trot_trots_on_anymal(name):
    done = retargeted(name, "anymal_d")
    check_feet(done, "anymal_d")
    check_joints(done, "anymal_d")
    lf, rf, lh, rh = (done.stances[foot] for foot in ANYMAL.feet)
    assert np.mean(lf == rh) > 0.9  # diagonal legs together
    assert np.mean(rf == lh) > 0.9
    assert np.mean(lf == rf) < 0.3
    assert done.report.speed == pytest.approx(0.27 * done.report.scale, rel=0.05)


@real
def test_the_skeleton_of_a_quadrupeds_text_is_the_one_with_which_feet_stand_still():
    for name, skeleton in (
        ("pybullet_zlib/laikago_walk.txt", "laikago:"),
        ("motion_imitation_apache2_artist/turn.txt", "laikago-model:"),
        ("motion_imitation_apache2_artist/sidesteps.txt", "laikago-model:"),
        ("motion_imitation_apache2_artist/inplace_steps.txt", "laikago-model:"),
    ):
        assert read_source(FOLDER / name)[1].startswith(skeleton)


@real
def test_isaac_labs_walk_has_every_frame_twice_on_ground_that_rises():
    source = read(FOLDER / HUMANS[1], "isaaclab")
    assert repeats(source) == 2
    assert levelled(without_repeats(source, 2))[1].slope == pytest.approx(0.027, abs=0.006)
