"""Clips: what a good one is, how bad ones are refused, how time is sampled, and the made reach."""

from __future__ import annotations

import io
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consmimic.errors import UserError
from consmimic.motions import Clip, kinematics
from consmimic.motions.reach import SinusoidalReach, generate_reach
from consmimic.robots import ROBOTS

PANDA = ROBOTS["panda"]
ARRAYS = ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w")


def arrays(frames: int = 7) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    quaternions = random.normal(size=(frames, 2, 4))
    return {
        "joint_pos": random.normal(size=(frames, 3)),
        "joint_vel": random.normal(size=(frames, 3)),
        "body_pos_w": random.normal(size=(frames, 2, 3)),
        "body_quat_w": quaternions / np.linalg.norm(quaternions, axis=-1, keepdims=True),
        "body_lin_vel_w": random.normal(size=(frames, 2, 3)),
        "body_ang_vel_w": random.normal(size=(frames, 2, 3)),
    }


def clip(frames: int = 7, **changes: object) -> Clip:
    fields = {
        "fps": 50.0,
        "joint_names": ("hip", "knee", "ankle"),
        "body_names": ("trunk", "foot"),
        "source": "made here",
    }
    return Clip(**(fields | arrays(frames) | changes))  # type: ignore[arg-type]


# ---------------------------------------------------------------- what is refused, and how it is named


@pytest.mark.parametrize("fps", [0.0, -30.0, np.nan, np.inf])
def test_the_frame_rate_must_be_a_positive_number(fps):
    with pytest.raises(UserError, match=f"clip 'made here': fps is {fps}"):
        clip(fps=fps)


def test_a_clip_needs_a_frame():
    with pytest.raises(UserError, match="clip 'made here' has no frames"):
        clip(frames=0)
    assert clip(frames=1).seconds == 0.0


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_of_the_wrong_shape_is_named_with_the_shape_it_should_have(name):
    right = arrays()[name]
    for wrong in (right[:-1], right[..., :-1], right[0], right[:, None]):
        if name == "joint_pos" and len(wrong) != len(right):
            continue  # joint_pos says how many frames there are
        with pytest.raises(UserError) as error:
            clip(**{name: wrong})
        assert f"{name} has shape {wrong.shape}, expected {right.shape}" in str(error.value)


def test_arrays_must_be_of_as_many_frames_as_the_joint_positions():
    with pytest.raises(UserError, match=r"joint_vel has shape \(7, 3\), expected \(6, 3\)"):
        clip(joint_pos=arrays()["joint_pos"][:-1])


def test_there_must_be_a_name_for_every_column():
    with pytest.raises(UserError, match=r"joint_pos has shape \(7, 3\), expected \(7, 2\)"):
        clip(joint_names=("hip", "knee"))
    with pytest.raises(UserError, match=r"body_pos_w has shape \(7, 2, 3\), expected \(7, 1, 3\)"):
        clip(body_names=("trunk",))


def test_a_name_may_not_stand_twice():
    with pytest.raises(UserError, match="joint_names has a name twice: hip, knee, hip"):
        clip(joint_names=("hip", "knee", "hip"))
    with pytest.raises(UserError, match="body_names has a name twice"):
        clip(body_names=("foot", "foot"))


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_is_named_with_its_frame(name, bad):
    values = arrays()[name]
    values[4:, -1] = bad
    with pytest.raises(UserError, match=f"clip 'made here': {name} is not finite .* in frame 4"):
        clip(**{name: values})


def test_a_quaternion_that_is_no_rotation_is_named_with_its_frame():
    values = arrays()["body_quat_w"]
    values[5, 1] *= 1.01
    with pytest.raises(UserError, match=r"body_quat_w is not a unit quaternion .* in frame 5"):
        clip(body_quat_w=values)
    values[5, 1] /= 1.01 * 1.0001  # rounding is no error
    clip(body_quat_w=values)


def test_a_joint_or_body_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(UserError, match=r"'toe'.*hip, knee, ankle"):
        clip().joint("toe")
    with pytest.raises(UserError, match=r"'hand'.*trunk, foot"):
        clip().body("hand")
    with pytest.raises(UserError, match=r"lacks joint toe, heel; it has hip, knee, ankle"):
        clip().with_joints(("hip", "toe", "heel"))


# ---------------------------------------------------------------- names


def test_joints_are_matched_by_name_whatever_their_order():
    original = clip()
    chosen = original.with_joints(("ankle", "hip"))
    assert chosen.joint_names == ("ankle", "hip")
    assert_array_equal(chosen.joint_pos, original.joint_pos[:, [2, 0]])
    assert_array_equal(chosen.joint_vel, original.joint_vel[:, [2, 0]])
    assert_array_equal(chosen.body_pos_w, original.body_pos_w)
    assert (original.joint("ankle"), original.body("foot")) == (2, 1)


# ---------------------------------------------------------------- npz


def saved(tmp_path: Path, frames: int = 7) -> Path:
    path = tmp_path / "clip.npz"
    clip(frames).save(path)
    return path


def rewritten(path: Path, **changes: object) -> Path:
    """The file with members changed; None takes one out."""
    with np.load(path) as file:
        members = {name: file[name] for name in file.files} | changes
    np.savez(path, **{name: value for name, value in members.items() if value is not None})
    return path


def test_a_saved_clip_is_read_as_it_was(tmp_path):
    original, read = clip(), Clip.load(saved(tmp_path))
    for name in ("fps", "joint_names", "body_names", "source"):
        assert getattr(read, name) == getattr(original, name)
    for name in ARRAYS:
        assert_array_equal(getattr(read, name), getattr(original, name))


def test_the_file_has_the_documented_keys(tmp_path):
    with np.load(saved(tmp_path)) as file:
        assert set(file.files) == {*ARRAYS, "fps", "joint_names", "body_names", "source", "schema_version"}
        assert file["schema_version"] == 1


@pytest.mark.parametrize("name", ["clip.npz", "clip"])
def test_a_file_that_is_there_is_never_written_over(tmp_path, name):
    path = tmp_path / name
    clip().save(path)
    before = path.read_bytes()
    with pytest.raises(UserError, match="exists; choose another name"):
        clip(fps=10.0).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_floats_of_single_precision_and_a_missing_source_are_fine(tmp_path):
    path = saved(tmp_path)
    rewritten(path, source=None, schema_version=None, joint_pos=clip().joint_pos.astype(np.float32))
    read = Clip.load(path)
    assert read.joint_pos.dtype == np.float64
    assert read.source == str(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"no clip at .*nowhere\.npz"):
        Clip.load(tmp_path / "nowhere.npz")


@pytest.mark.parametrize("name", [*ARRAYS, "fps", "joint_names", "body_names"])
def test_a_missing_key_is_named_with_those_that_are_there(tmp_path, name):
    with pytest.raises(UserError, match=f"lacks {name}; it has .*source"):
        Clip.load(rewritten(saved(tmp_path), **{name: None}))


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("fps", np.array([30.0, 60.0])),
        ("fps", np.array("fast")),
        ("joint_names", np.array(3)),
        ("joint_pos", np.array(1.0)),
        ("joint_pos", np.array([["a", "b", "c"]] * 7)),
        ("schema_version", np.array(99)),
    ],
)
def test_a_member_of_the_wrong_kind_is_refused(tmp_path, member, value):
    path = rewritten(saved(tmp_path), **{member: value})
    with pytest.raises(UserError, match=r"clip\.npz"):
        Clip.load(path)


def test_a_newer_schema_is_refused_by_its_number(tmp_path):
    with pytest.raises(UserError, match="schema 2; this version reads up to 1"):
        Clip.load(rewritten(saved(tmp_path), schema_version=2))


def test_bad_numbers_in_a_file_are_refused_as_in_memory(tmp_path):
    values = arrays()["joint_vel"]
    values[2, 0] = np.nan
    with pytest.raises(UserError, match=r"clip\.npz: .*joint_vel is not finite .* in frame 2"):
        Clip.load(rewritten(saved(tmp_path), joint_vel=values))
    empty = {name: values[:0] for name, values in arrays().items()}
    with pytest.raises(UserError, match="has no frames"):
        Clip.load(rewritten(tmp_path / "clip.npz", **empty))


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.99])
def test_a_truncated_file_is_refused(tmp_path, kept):
    path = saved(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(UserError, match="not an npz file, or only the beginning of one"):
        Clip.load(path)


def test_bytes_that_are_no_npz_are_refused(tmp_path):
    array = io.BytesIO()
    np.save(array, np.zeros(3))
    for content in (b"garbage", np.random.default_rng(0).bytes(4000), pickle.dumps([1, 2]), array.getvalue()):
        path = tmp_path / "clip.npz"
        path.write_bytes(content)
        with pytest.raises(UserError, match="not an npz file"):
            Clip.load(path)
    with pytest.raises(UserError, match="is not a file"):
        Clip.load(tmp_path)


def test_damage_anywhere_in_a_file_is_refused_or_harmless(tmp_path):
    whole = saved(tmp_path, frames=40).read_bytes()
    path, refused = tmp_path / "damaged.npz", 0
    for place in range(0, len(whole), len(whole) // 40):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(bytes(damaged))
        try:
            read = Clip.load(path)
        except UserError:
            refused += 1
        else:
            assert_array_equal(read.joint_pos, clip(40).joint_pos)
    assert refused > 10


class Ran:
    """Unpickling this leaves a trace."""

    def __reduce__(self):
        return Path.touch, (Path("it-ran"),)


def test_nothing_is_ever_unpickled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pickle.loads(pickle.dumps(Ran()))
    assert Path("it-ran").exists()  # the trap works
    Path("it-ran").unlink()
    for member in ("joint_names", "fps", "source", "joint_pos"):
        path = saved(tmp_path)
        rewritten(path, **{member: np.array(Ran(), dtype=object)})
        with pytest.raises(UserError, match="cannot be read as npz"):
            Clip.load(path)
        path.unlink()
    path = saved(tmp_path)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("extra", pickle.dumps(Ran()))
    Clip.load(path)
    assert not Path("it-ran").exists()


# ---------------------------------------------------------------- time


def test_frames_span_one_interval_less_than_there_are():
    assert clip(frames=51).seconds == 1.0
    assert len(clip(frames=51)) == 51


@pytest.mark.parametrize("fps", [25.0, 30.0, 50.0, 60.0, 100.0, 119.88])
def test_resampling_keeps_the_time_that_frames_stand_for(fps):
    original = clip(frames=51)  # 1 s at 50 Hz
    ramp = np.arange(51)[:, None] / 50.0 * np.ones(3)
    moved = replace(original, joint_pos=ramp).resampled(fps)
    assert moved.fps == fps
    assert len(moved) == int(fps + 1e-9) + 1
    assert moved.seconds <= original.seconds + 1e-12
    assert original.seconds - moved.seconds < 1.0 / fps
    assert_allclose(moved.joint_pos[:, 0], np.arange(len(moved)) / fps, atol=1e-12)


def test_resampling_to_the_same_rate_changes_nothing_and_to_twice_keeps_every_frame():
    original = clip()
    assert original.resampled(50.0) is original
    doubled = original.resampled(100.0)
    for name in ARRAYS:
        if name == "body_quat_w":
            continue
        assert_allclose(getattr(doubled, name)[::2], getattr(original, name), atol=1e-12)
        middle = 0.5 * (getattr(original, name)[1:] + getattr(original, name)[:-1])
        assert_allclose(getattr(doubled, name)[1::2], middle, atol=1e-12)
    same = np.abs((doubled.body_quat_w[::2] * original.body_quat_w).sum(axis=-1))
    assert_allclose(same, 1.0, atol=1e-12)


def test_a_single_frame_resamples_to_itself():
    single = clip(frames=1).resampled(30.0)
    assert len(single) == 1
    assert_array_equal(single.joint_pos, clip(frames=1).joint_pos)


def test_interpolation_is_exact_for_lines_and_stops_at_the_ends():
    line = np.array([[0.0, 10.0], [1.0, 8.0], [2.0, 6.0]])
    at = np.array([0.0, 0.25, 1.5, 2.0, 3.7])
    expected = [[0.0, 10.0], [0.25, 9.5], [1.5, 7.0], [2.0, 6.0], [2.0, 6.0]]
    assert_allclose(kinematics.interpolate(line, at), expected)


def turn(axis: list[float], angle: float) -> np.ndarray:
    unit = np.array(axis) / np.linalg.norm(axis)
    return np.array([np.cos(angle / 2), *(np.sin(angle / 2) * unit)])


def test_slerp_turns_at_a_constant_rate_about_the_axis():
    axis = [1.0, -2.0, 0.5]
    ends = np.stack([turn(axis, 0.4), turn(axis, 2.4)])
    at = np.array([0.0, 0.1, 0.5, 1.0])
    assert_allclose(kinematics.slerp(ends, at), [turn(axis, 0.4 + 2.0 * f) for f in at], atol=1e-12)


def test_slerp_goes_the_shorter_way_whatever_the_signs():
    axis = [0.0, 0.0, 1.0]
    halfway = kinematics.slerp(np.stack([turn(axis, 0.2), -turn(axis, 0.8)]), np.array([0.5]))
    assert_allclose(halfway, [turn(axis, 0.5)], atol=1e-12)
    back = kinematics.slerp(np.stack([turn(axis, 0.0), turn(axis, 1.5 * np.pi)]), np.array([0.5]))
    assert_allclose(np.abs(back), np.abs([turn(axis, -0.25 * np.pi)]), atol=1e-12)


def test_slerp_between_equal_and_nearly_equal_rotations_is_finite_and_of_length_1():
    q = turn([0.3, 0.1, -0.7], 1.1)
    near = turn([0.3, 0.1, -0.7], 1.1 + 1e-9)
    for ends in (np.stack([q, q]), np.stack([q, near]), np.stack([q, -q])):
        mixed = kinematics.slerp(ends, np.array([0.3, 0.7]))
        assert_allclose(mixed, np.stack([q, q]), atol=1e-8)
    many = arrays()["body_quat_w"]
    assert_allclose(np.linalg.norm(kinematics.slerp(many, np.linspace(0, 6, 50)), axis=-1), 1.0, atol=1e-12)


def test_linear_velocity_of_a_constant_motion_is_that_motion():
    velocity = np.array([0.5, -2.0, 3.0])
    positions = np.arange(10)[:, None] / 30.0 * velocity
    assert_allclose(kinematics.linear_velocity(positions, 30.0), np.tile(velocity, (10, 1)), atol=1e-12)
    assert_array_equal(kinematics.linear_velocity(positions[:1], 30.0), np.zeros((1, 3)))


@pytest.mark.parametrize("rate", [1e-7, 0.1, 3.0, 40.0])
def test_angular_velocity_of_a_constant_rotation_is_that_rotation(rate):
    axis, fps = [2.0, -1.0, 2.0], 50.0
    start = turn([0.0, 1.0, 1.0], 0.9)
    q = np.empty((12, 1, 4))
    for frame in range(12):
        mujoco.mju_mulQuat(q[frame, 0], turn(axis, rate * frame / fps), start)  # turned in the world frame
    q[1::3] *= -1  # the sign of a quaternion means nothing
    expected = np.tile(rate * np.array(axis) / 3.0, (12, 1, 1))
    assert_allclose(kinematics.angular_velocity(q, fps), expected, rtol=1e-6, atol=1e-9)


def test_angular_velocity_at_rest_and_of_one_frame_is_zero():
    still = np.tile(turn([1.0, 0.0, 0.0], 0.3), (5, 1))
    assert_allclose(kinematics.angular_velocity(still, 30.0), np.zeros((5, 3)), atol=1e-12)
    assert_allclose(kinematics.angular_velocity(still[:1], 30.0), np.zeros((1, 3)), atol=1e-12)


# ---------------------------------------------------------------- the made reach

MODEL = PANDA.model()
START = (*PANDA.default_joint_pos[:-1], PANDA.default_joint_pos[-1] - np.pi)
GOAL = (0.4, 0.0, 0.25)
POINTING_DOWN = (0.0, 0.0, 1.0, 0.0)


def reach(goal: tuple[float, float, float] = GOAL, **path: float) -> Clip:
    return generate_reach(
        MODEL,
        joint_names=PANDA.joint_names,
        start_joint_pos=START,
        end_effector="hand",
        goal_pos=goal,
        goal_quat=POINTING_DOWN,
        path=SinusoidalReach(**path),
    )


def hand(joint_pos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the hand is, and its orientation, by plain MuJoCo."""
    data = mujoco.MjData(MODEL)
    data.qpos[PANDA.joint_qpos_indices(MODEL)] = joint_pos
    mujoco.mj_kinematics(MODEL, data)
    return data.body("hand").xpos.copy(), data.body("hand").xquat.copy()


PATHS = [
    {},
    {"amplitude": 0.0},
    {"amplitude": 0.08, "cycles": 2.5, "seconds": 3.0, "blend_seconds": 0.5, "hold_seconds": 0.0},
    {"amplitude": -0.1, "cycles": 1.0, "seconds": 4.0, "hold_seconds": 1.0, "fps": 60.0},
]


@pytest.mark.parametrize("path", PATHS)
def test_the_arm_follows_the_path_to_a_millimetre(path):
    made, wanted = reach(**path), SinusoidalReach(**path)
    positions = wanted.positions(hand(np.array(START))[0], np.array(GOAL))
    assert len(made) == len(positions)
    for frame in range(len(made)):
        position, orientation = hand(made.joint_pos[frame])
        assert np.linalg.norm(position - positions[frame]) < 1e-3
        assert_allclose(position, made.body_pos_w[frame, 0], atol=1e-9)
        assert abs(orientation @ made.body_quat_w[frame, 0]) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("path", PATHS)
def test_it_starts_at_the_start_and_rests_at_the_goal(path):
    made, wanted = reach(**path), SinusoidalReach(**path)
    assert_allclose(made.joint_pos[0], START, atol=1e-3)
    assert made.seconds == pytest.approx(wanted.seconds + wanted.hold_seconds)
    assert made.fps == wanted.fps
    arrived = made.body_pos_w[round(wanted.seconds * wanted.fps) :, 0]
    assert len(arrived) == round(wanted.hold_seconds * wanted.fps) + 1
    assert_allclose(arrived, np.tile(GOAL, (len(arrived), 1)), atol=1e-3)
    assert abs(made.body_quat_w[-1, 0] @ POINTING_DOWN) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("path", PATHS)
def test_the_robot_could_do_it(path):
    made = reach(**path)
    limits = MODEL.jnt_range[[MODEL.joint(name).id for name in PANDA.joint_names]]
    assert (made.joint_pos >= limits[:, 0]).all()
    assert (made.joint_pos <= limits[:, 1]).all()
    speeds = np.abs(np.diff(made.joint_pos, axis=0)).max(axis=0) * made.fps
    assert (speeds <= PANDA.joint_velocity_limits).all()
    assert_allclose(np.abs(made.joint_vel).max(axis=0), speeds, rtol=0.2, atol=1e-2)


def test_the_sway_is_sideways_as_wide_and_as_often_as_asked():
    for amplitude, cycles in ((0.15, 1.5), (0.08, 2.5)):
        sway = reach(amplitude=amplitude, cycles=cycles).body_pos_w[:, 0, 1] - reach(amplitude=0.0).body_pos_w[:, 0, 1]
        assert np.abs(sway).max() == pytest.approx(amplitude, rel=0.02)
        moving = sway[np.abs(sway) > 0.05 * amplitude]
        assert np.count_nonzero(np.diff(np.sign(moving))) == 2 * cycles - 1  # zero crossings on the way
    straight, swaying = reach(amplitude=0.0), reach()
    assert_allclose(swaying.body_pos_w[:, 0, ::2], straight.body_pos_w[:, 0, ::2], atol=1e-3)


def test_progress_speeds_up_cruises_and_slows_down():
    path = SinusoidalReach(seconds=3.0, blend_seconds=0.5)
    times = np.linspace(-0.5, 3.5, 4001)
    share = path.progress(times)
    assert share[times <= 0].max() == 0.0
    assert share[times >= 3.0].min() == 1.0
    speed = np.gradient(share, times)
    assert (speed > -1e-12).all()
    cruising = (times > 0.51) & (times < 2.49)
    assert_allclose(speed[cruising], 1.0 / 2.5, rtol=1e-6)  # 1 = cruising speed · (seconds − blend)
    assert speed.max() < 1.0 / 2.5 + 1e-6
    acceleration = np.gradient(speed, times)
    assert np.abs(acceleration).max() < 1.0 / (2.5 * 0.5) * 1.01  # bounded: no jump in speed
    assert_allclose(share + share[::-1], 1.0, atol=1e-9)


def test_its_velocities_are_those_of_its_positions():
    made = reach()
    middle = slice(1, -1)
    for positions, velocities in ((made.joint_pos, made.joint_vel), (made.body_pos_w, made.body_lin_vel_w)):
        assert_allclose(velocities[middle], 0.5 * made.fps * (positions[2:] - positions[:-2]), atol=1e-12)
    for frame in range(1, len(made) - 1):
        difference = np.empty(3)
        mujoco.mju_subQuat(difference, made.body_quat_w[frame + 1, 0], made.body_quat_w[frame - 1, 0])
        world = np.empty(3)
        mujoco.mju_rotVecQuat(world, difference, made.body_quat_w[frame - 1, 0])
        assert_allclose(made.body_ang_vel_w[frame, 0], world * made.fps / 2, atol=1e-9)


@pytest.mark.parametrize("goal", [(1.5, 0.0, 0.3), (0.4, 0.0, 2.0)])
def test_a_goal_beyond_reach_is_refused_with_what_to_change(goal):
    with pytest.raises(UserError, match=r"leaves the arm's reach in frame .*amplitude.*move the goal"):
        reach(goal)


@pytest.mark.parametrize("blend", [0.0, -0.1, 1.6])
def test_a_blend_that_does_not_fit_the_path_is_refused(blend):
    with pytest.raises(UserError, match=f"blend_seconds is {blend}"):
        SinusoidalReach(seconds=3.0, blend_seconds=blend)
