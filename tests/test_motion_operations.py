"""Operations on clips: the laws that they keep."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import mujoco
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from consmimic.errors import UserError
from consmimic.motions import Clip, forward
from consmimic.motions.operations import joined, mirrored, reset_states, slowed_down, trimmed
from consmimic.robots import ROBOTS, Robot
from consmimic.robots.mirror import MirrorPlane, mirror_of, reflection_of
from motion_files import ANYMAL, base, known, matrices

ARRAYS = ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w")
MIRRORED = [(robot, plane) for robot in ROBOTS.values() for plane in robot.mirror_planes]


def assert_same(a: Clip, b: Clip, atol: float = 1e-12) -> None:
    assert (a.fps, a.joint_names, a.body_names, len(a)) == (b.fps, b.joint_names, b.body_names, len(b))
    for name in ARRAYS:
        if name == "body_quat_w":
            assert_allclose(np.abs((a.body_quat_w * b.body_quat_w).sum(axis=-1)), 1.0, atol=max(atol, 1e-12))
        else:
            assert_allclose(getattr(a, name), getattr(b, name), atol=atol)


# ---------------------------------------------------------------- mirror


@pytest.fixture(params=MIRRORED, ids=lambda pair: f"{pair[0].name} {pair[1].name}")
def case(request) -> tuple[Robot, MirrorPlane, mujoco.MjModel, Clip]:
    robot, plane = request.param
    clip = known(robot)
    model = robot.model(visuals=False)
    names = [name for name in clip.body_names if _has_partner(model, plane, robot, name)]
    columns = [clip.body(name) for name in names]
    bodies = {name: getattr(clip, name)[:, columns] for name in ARRAYS if name.startswith("body")}
    return robot, plane, model, replace(clip, body_names=tuple(names), **bodies)


def _has_partner(model: mujoco.MjModel, plane: MirrorPlane, robot: Robot, body: str) -> bool:
    try:
        mirror_of(model, plane, robot.joint_names, sorted({body, plane.partner(body)}))
    except UserError:
        return False
    return True


def test_mirrored_twice_is_as_before(case):
    _, plane, model, clip = case
    reflection = reflection_of(model, plane, clip)
    assert_same(mirrored(mirrored(clip, reflection), reflection), clip)


def test_the_mirror_image_is_what_the_robot_does_with_its_joints_mirrored(case):
    """Forward kinematics of the mirrored joints, and differences, give the mirrored bodies and velocities."""
    robot, plane, model, clip = case
    image = mirrored(clip, reflection_of(model, plane, clip))
    root = forward.root_of(model, robot.joint_names)
    floating = forward.is_floating(model, root)
    posed = forward.posed_clip(
        model,
        fps=clip.fps,
        joint_names=robot.joint_names,
        joint_pos=image.joint_pos,
        base_pos=image.body_pos_w[:, image.body(root)] if floating else None,
        base_quat=image.body_quat_w[:, image.body(root)] if floating else None,
        bodies=clip.body_names,
        source="posed",
    )
    assert len(clip.body_names) > 1
    assert_same(posed, image, atol=1e-9)


def test_left_and_right_change_places():
    clip = known()
    image = mirrored(clip, reflection_of(ANYMAL.model(visuals=False), ANYMAL.mirror_planes[0], clip))
    left, right = clip.body("LF_FOOT"), clip.body("RF_FOOT")
    assert_allclose(image.body_pos_w[:, left], clip.body_pos_w[:, right] * [1.0, -1.0, 1.0])
    assert_allclose(image.joint_pos[:, clip.joint("LF_HAA")], -clip.joint_pos[:, clip.joint("RF_HAA")])
    assert_allclose(image.joint_pos[:, clip.joint("LF_KFE")], clip.joint_pos[:, clip.joint("RF_KFE")])
    turning = np.array([-1.0, 1.0, -1.0])
    assert_allclose(image.body_ang_vel_w[:, 0], clip.body_ang_vel_w[:, 0] * turning, atol=1e-12)


def test_a_mirror_of_another_clip_is_refused():
    clip = known()
    reflection = reflection_of(ANYMAL.model(visuals=False), ANYMAL.mirror_planes[0], clip)
    with pytest.raises(UserError, match="other joints or bodies"):
        mirrored(clip.with_joints(clip.joint_names[:3]), reflection)


# ---------------------------------------------------------------- trim, slow down


def test_a_trimmed_clip_is_those_frames():
    clip = known(frames=51)  # 1 s
    part = trimmed(clip, 0.2, 0.6)
    assert part.seconds == pytest.approx(0.4)
    assert_array_equal(part.joint_pos, clip.joint_pos[10:31])
    assert_same(trimmed(clip), clip)
    assert_array_equal(trimmed(clip, 0.5).body_pos_w, clip.body_pos_w[25:])
    assert len(trimmed(clip, 0.3, 0.3)) == 1


@pytest.mark.parametrize(("start", "end"), [(-0.1, 0.5), (0.5, 0.4), (0.0, 1.1), (2.0, None), (float("nan"), 0.5)])
def test_a_clip_has_no_frames_outside_itself(start, end):
    with pytest.raises(UserError, match=r"cannot be trimmed .* it lasts from 0 to 1 s"):
        trimmed(known(frames=51), start, end)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0, 3.0])
def test_slowing_down_scales_time_and_velocities(factor):
    clip = known(frames=61)
    slow = slowed_down(clip, factor)
    assert slow.fps == clip.fps
    assert slow.seconds == pytest.approx(factor * clip.seconds)
    fast, every = max(1, round(1 / factor)), max(1, round(factor))
    for name in ARRAYS:
        scale = factor if "vel" in name else 1.0
        assert_allclose(scale * getattr(slow, name)[::every], getattr(clip, name)[::fast], atol=1e-9)


def test_slowing_down_and_speeding_up_again_is_as_before():
    clip = known(frames=61)
    assert_same(slowed_down(slowed_down(clip, 4.0), 0.25), clip, atol=1e-9)


@pytest.mark.parametrize("factor", [0.0, -1.0, 1e9, float("nan")])
def test_a_factor_that_is_none_is_refused(factor):
    with pytest.raises(UserError, match="valid are 0.05 to 20"):
        slowed_down(known(frames=5), factor)


# ---------------------------------------------------------------- joining


@pytest.mark.parametrize("parts", [(0.4,), (0.2, 0.3, 0.9)])
def test_parts_joined_are_the_whole(parts):
    clip = known(frames=51)
    ends = (0.0, *parts, clip.seconds)
    whole, seams = joined([trimmed(clip, a, b) for a, b in pairwise(ends)], "base")
    assert_same(whole, clip)
    assert [seam.second for seam in seams] == pytest.approx(parts)
    for seam in seams:
        assert max(seam.joint_jump, seam.height_jump, seam.tilt_jump) < 1e-6


def carried(clip: Clip, turn: float, way: tuple[float, float]) -> Clip:
    """The whole motion turned about the vertical and moved, by rotation matrices."""
    c, s = np.cos(turn), np.sin(turn)
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    quat = np.empty_like(clip.body_quat_w)
    about_z = np.array([np.cos(turn / 2), 0.0, 0.0, np.sin(turn / 2)])
    for new, old in zip(quat.reshape(-1, 4), clip.body_quat_w.reshape(-1, 4), strict=True):
        mujoco.mju_mulQuat(new, about_z, old)
    return replace(
        clip,
        body_pos_w=clip.body_pos_w @ R.T + np.array([*way, 0.0]),
        body_quat_w=quat,
        body_lin_vel_w=clip.body_lin_vel_w @ R.T,
        body_ang_vel_w=clip.body_ang_vel_w @ R.T,
    )


def test_a_clip_goes_on_where_and_whither_the_one_before_went():
    clip = known(frames=51)
    first, second = trimmed(clip, 0.0, 0.5), trimmed(clip, 0.5)
    whole, _ = joined([first, carried(second, 2.3, (5.0, -7.0))], "base")
    assert_same(whole, clip, atol=1e-9)


def test_times_add_up_and_the_base_never_jumps():
    clip = known(frames=51)
    whole, seams = joined([clip, clip, clip], "base")
    assert whole.seconds == pytest.approx(3 * clip.seconds)
    steps = np.linalg.norm(np.diff(base(whole, "pos")[:, :2], axis=0), axis=1)
    assert_allclose(steps, 1.0 / 50.0, atol=1e-9)  # 1 m/s throughout
    ahead = matrices(base(whole, "quat"))[:, :2, 0]
    heading = np.unwrap(np.arctan2(ahead[:, 1], ahead[:, 0]))
    assert np.abs(np.diff(heading)).max() < 0.05
    worst = np.abs(clip.joint_pos[0] - clip.joint_pos[-1])
    assert seams[0].joint_jump == pytest.approx(worst.max())
    assert seams[0].joint == clip.joint_names[int(worst.argmax())]


def test_clips_are_joined_by_name_and_at_the_rate_of_the_first():
    clip = known(frames=51)
    order = (*clip.joint_names[::-1],)
    second = replace(trimmed(clip, 0.5).with_joints(order))
    whole, _ = joined([trimmed(clip, 0.0, 0.5), second.resampled(100.0)], "base")
    assert_same(whole, clip, atol=1e-9)
    lacking = replace(clip, body_names=(*clip.body_names[:-1], "tail"))
    with pytest.raises(UserError, match="lacks body RH_FOOT"):
        joined([clip, lacking], "base")
    with pytest.raises(UserError, match="joints"):
        joined([clip, clip.with_joints(clip.joint_names[:4])], "base")


def test_an_arm_that_is_bolted_down_is_joined_where_it_stands():
    clip = known(ROBOTS["panda"], frames=11)
    whole, _ = joined([clip, clip], None)
    assert_array_equal(whole.body_pos_w[11:], clip.body_pos_w[1:])


# ---------------------------------------------------------------- states to start from


def test_states_are_of_the_motion_and_every_second_is_as_likely():
    long, short = known(frames=151), trimmed(known(frames=151), 0.0, 1.0)
    states = reset_states([long, short], "base", 4000, torch.Generator().manual_seed(0))
    share = (states.clip == 0).mean()
    assert share == pytest.approx(0.75, abs=0.03)
    times = states.second[states.clip == 0]
    assert 0.0 <= times.min() < 0.01
    assert 2.99 < times.max() <= 3.0
    assert np.histogram(times, bins=3)[0].std() < 100
    for number in range(0, 4000, 97):
        at = states.second[number] * 50.0
        before = int(at)
        expected = (1 - (at - before)) * long.joint_pos[before] + (at - before) * long.joint_pos[min(before + 1, 150)]
        assert_allclose(states.joint_pos[number], expected, atol=1e-9)
    assert_allclose(np.linalg.norm(states.root_quat, axis=1), 1.0)
    on_ground = np.linalg.norm(states.root_lin_vel[:, :2], axis=1)
    assert_allclose(on_ground, 1.0, atol=0.02)


def test_the_same_seed_draws_the_same_states_and_the_file_has_them(tmp_path):
    clip = known()
    first, second = (reset_states([clip], "base", 20, torch.Generator().manual_seed(7)) for _ in range(2))
    assert_array_equal(first.joint_pos, second.joint_pos)
    first.save(tmp_path / "states.npz")
    with np.load(tmp_path / "states.npz") as file:
        assert_array_equal(file["root_quat"], first.root_quat)
        assert tuple(file["joint_names"]) == clip.joint_names
        assert str(file["root"]) == "base"
    with pytest.raises(UserError, match="exists"):
        first.save(tmp_path / "states.npz")
    with pytest.raises(UserError, match="0 states"):
        reset_states([clip], "base", 0, torch.Generator())
    bolted = reset_states([known(ROBOTS["panda"])], None, 5, torch.Generator())
    bolted.save(tmp_path / "arm.npz")
    with np.load(tmp_path / "arm.npz") as file:
        assert set(file.files) == {"joint_names", "joint_pos", "joint_vel", "clip", "second"}
    one = reset_states([trimmed(clip, 0.0, 0.0)], "base", 3, torch.Generator())
    assert_allclose(one.joint_pos, np.tile(clip.joint_pos[0], (3, 1)))
