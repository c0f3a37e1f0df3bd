"""The made walk: chains as MuJoCo moves them, norms by their key figures, feet that roll and never slip, laws."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import mujoco
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from consmimic.errors import UserError
from consmimic.motions import Clip
from consmimic.motions.chain import Chain, rotation_about, rotation_vector
from consmimic.motions.normative import Gait
from consmimic.motions.walk import Walk, generate_walk
from consmimic.robots import ROBOTS
from consmimic.robots.mirror import mirror_of

GR1 = ROBOTS["gr1"]
MODEL = GR1.model(visuals=False)
(LEFT_RIGHT,) = GR1.mirror_planes
SPEEDS = pytest.mark.parametrize("speed", [0.6, 1.2, 1.8])
LEG, RADIUS = 0.36 + 0.34 + 0.055, 0.02
HEEL, TOE = np.array([-0.07, 0.0, -0.035]), np.array([0.17, 0.0, -0.035])
NATURAL = Gait(speed=0.45 * np.sqrt(9.81 * LEG), leg=LEG)


def made(walk: Walk, **changes) -> Clip:
    arguments = {
        "root": "base_link",
        "feet": GR1.feet,
        "joint_names": GR1.joint_names,
        "default_joint_pos": GR1.default_joint_pos,
        "joint_velocity_limits": GR1.joint_velocity_limits,
    }
    return generate_walk(MODEL, walk=walk, **(arguments | changes))


@cache
def walk(speed: float) -> Clip:
    return made(Walk(speed=speed, strides=3))


def period(clip: Clip) -> int:
    return (len(clip) - 1) // 3


def degrees(clip: Clip, joint: str) -> np.ndarray:
    """Over the first cycle."""
    return np.degrees(clip.joint_pos[: period(clip), clip.joint(joint)])


def of_body(clip: Clip, body: str) -> tuple[np.ndarray, np.ndarray]:
    """Positions and orientations, (T, 3) and (T, 3, 3)."""
    matrices = np.empty((len(clip), 9))
    for matrix, quaternion in zip(matrices, clip.body_quat_w[:, clip.body(body)], strict=True):
        mujoco.mju_quat2Mat(matrix, quaternion)
    return clip.body_pos_w[:, clip.body(body)], matrices.reshape(-1, 3, 3)


def ends_of_sole(clip: Clip, foot: str) -> np.ndarray:
    """Middles of the round heel and of the round toe, (T, 2, 3)."""
    position, rotation = of_body(clip, foot)
    return np.stack([position + rotation @ end for end in (HEEL, TOE)], axis=1)


def pitch(clip: Clip, foot: str) -> np.ndarray:
    """Toes down."""
    return -np.arcsin(of_body(clip, foot)[1][:, 2, 0])


def own_cycle(clip: Clip, foot: str) -> np.ndarray:
    """Cycles since the heel struck, (T,)."""
    return (np.arange(len(clip)) / period(clip) + (0.5 if foot == GR1.feet[1] else 0.0)) % 1.0


def stands(clip: Clip, foot: str, speed: float) -> np.ndarray:
    return own_cycle(clip, foot) <= Gait(speed=speed, leg=LEG).duty


# ---------------------------------------------------------------- chains


@pytest.mark.parametrize("foot", GR1.feet)
def test_chains_are_solved_as_mujoco_moves_them(foot):
    chain = Chain.of(MODEL, root="base_link", tip=foot)
    side = foot.split("_")[0]
    assert chain.joints == tuple(name for name in GR1.joint_names[:12] if name.startswith(side))
    random = np.random.default_rng(0)
    angles = random.uniform((-0.05, -0.4, -0.9, 0.3, -0.5, -0.3), (0.05, 0.4, 0.4, 1.5, 0.4, 0.3), (100, 6))
    position, rotation = chain.tip(angles)
    data = mujoco.MjData(MODEL)
    for frame, some in enumerate(angles):
        for name, angle in zip(chain.joints, some, strict=True):
            data.joint(name).qpos = angle
        mujoco.mj_kinematics(MODEL, data)
        assert_allclose(data.body(foot).xpos - data.xpos[1], position[frame], atol=1e-12)
        assert_allclose(data.body(foot).xmat.reshape(3, 3), rotation[frame], atol=1e-12)
    start = angles + random.uniform(-0.15, 0.15, angles.shape)
    assert_allclose(chain.angles(position, rotation, start), angles, atol=1e-9)


def test_a_rotation_vector_is_axis_times_angle():
    axis = np.array([0.6, 0.0, 0.8])
    for angle in (0.0, 1e-7, 0.3, 2.9):
        assert_allclose(rotation_vector(rotation_about(axis, np.array(angle))), angle * axis, atol=1e-12)


def test_a_tip_out_of_reach_is_refused():
    chain = Chain.of(MODEL, root="base_link", tip=GR1.feet[0])
    start = np.array([[0.0, 0.0, -0.3, 0.6, -0.3, 0.0]])
    with pytest.raises(UserError, match="left_ankle_roll_joint: the tip cannot be where it should"):
        chain.angles(np.array([[0.0, 0.1, -1.2]]), np.eye(3)[None], start)


@pytest.mark.parametrize(("root", "tip"), [GR1.feet, ("base_link", "base_link")])
def test_what_is_no_chain_is_refused(root, tip):
    with pytest.raises(UserError, match=f"no chain leads from '{root}' to '{tip}'"):
        Chain.of(MODEL, root=root, tip=tip)


# ---------------------------------------------------------------- norms


def test_normative_angles_have_the_published_key_figures():
    """Perry and Burnfield: what an examiner looks for in normal gait."""
    cycle = np.linspace(0.0, 1.0, 1001)
    hip, knee, ankle = (np.degrees(curve(cycle)) for curve in (NATURAL.hip, NATURAL.knee, NATURAL.ankle))
    assert NATURAL.duty == pytest.approx(0.62)
    assert np.ptp(hip) == pytest.approx(45, abs=2)  # of the thigh: 20 extended to 25 flexed
    assert 0.48 < cycle[hip.argmin()] < 0.55
    assert knee.max() == pytest.approx(64, abs=2)
    assert 0.70 < cycle[knee.argmax()] < 0.76
    assert knee[:400].max() == pytest.approx(19, abs=2)
    assert 0.12 < cycle[knee[:400].argmax()] < 0.18
    assert ankle.max() == pytest.approx(10, abs=1)
    assert 0.40 < cycle[ankle.argmax()] < 0.50
    assert ankle.min() == pytest.approx(-19, abs=2)
    assert 0.60 < cycle[ankle.argmin()] < 0.68


def test_norms_close_on_themselves():
    for curve in (NATURAL.hip, NATURAL.knee, NATURAL.ankle, NATURAL.shoulder, NATURAL.elbow):
        assert_allclose(curve(np.array([0.0, 0.3])), curve(np.array([1.0, 1.3])), atol=1e-12)


def test_steps_scale_as_froude_and_the_walk_ratio_say():
    person = Gait(speed=1.35, leg=0.92)
    assert person.step_length == pytest.approx(0.72, abs=0.01)
    assert 120.0 / person.cycle_seconds == pytest.approx(112, abs=2)  # steps per minute
    ratio = person.step_length / (120.0 / person.cycle_seconds)
    assert ratio == pytest.approx(0.0064, abs=0.0001)
    for speed in (0.6, 2.0):  # the same at all speeds
        other = replace(person, speed=speed)
        assert other.step_length / (120.0 / other.cycle_seconds) == pytest.approx(ratio)
    child = Gait(speed=1.35 / np.sqrt(2.0), leg=0.46)  # half as tall, dynamically alike
    assert child.step_length == pytest.approx(0.5 * person.step_length)
    assert child.duty == person.duty
    assert_allclose(child.hip(np.array([0.2])), person.hip(np.array([0.2])))


# ---------------------------------------------------------------- feet


@SPEEDS
@pytest.mark.parametrize("foot", GR1.feet)
def test_standing_feet_roll_and_do_not_slip(speed, foot):
    clip = walk(speed)
    ends, tilt, stance = ends_of_sole(clip, foot), pitch(clip, foot), stands(clip, foot, speed)
    heading = np.array([np.cos(0.09), np.sin(0.09) * (1 if foot == GR1.feet[0] else -1)])
    own, still = own_cycle(clip, foot), np.zeros(2)
    for frame in np.flatnonzero(stance[1:] & stance[:-1] & (np.diff(own) > 0)):
        rolled = RADIUS * heading * (tilt[frame + 1] - tilt[frame])
        end = 0 if tilt[frame] < -1e-9 else 1  # it rolls over the heel, or over the toe
        moved = ends[frame + 1, end, :2] - ends[frame, end, :2]
        if end == 0 and tilt[frame + 1] > 1e-9:
            continue  # from heel to toe between two frames
        still = np.maximum(still, np.abs(moved - rolled))
    assert still.max() < 1e-9


@SPEEDS
def test_standing_feet_touch_and_no_foot_goes_under_the_floor(speed):
    clip = walk(speed)
    for foot in GR1.feet:
        lowest, stance = ends_of_sole(clip, foot)[..., 2].min(axis=1) - RADIUS, stands(clip, foot, speed)
        assert lowest.min() > -1e-9
        assert np.abs(lowest[stance]).max() < 1e-9
        swing = (own_cycle(clip, foot) > 0.7) & (own_cycle(clip, foot) < 0.93)
        assert lowest[swing].min() > 0.005


@SPEEDS
def test_nothing_but_feet_touches_anything(speed):
    clip, data = walk(speed), mujoco.MjData(MODEL)
    feet = {MODEL.body(foot).id for foot in GR1.feet}
    for frame in range(0, period(clip), 2):
        data.qpos[:] = [*clip.body_pos_w[frame, 0], *clip.body_quat_w[frame, 0], *clip.joint_pos[frame]]
        mujoco.mj_forward(MODEL, data)
        for pair in data.contact.geom:
            bodies = set(MODEL.geom_bodyid[pair])
            assert 0 in bodies
            assert bodies - {0} <= feet


@SPEEDS
def test_heels_strike_first_feet_lie_flat_and_toes_leave_last(speed):
    clip = walk(speed)
    gait = Gait(speed=speed, leg=LEG)
    for foot in GR1.feet:
        own, tilt = own_cycle(clip, foot), np.degrees(pitch(clip, foot))
        assert tilt[np.abs(own) < 1e-9].max() < -10.0
        flat = (own > 0.12) & (own < 0.34)
        assert np.abs(tilt[flat]).max() < 1e-6
        assert tilt[(own > gait.duty - 0.04) & (own <= gait.duty)].min() > 15.0


@SPEEDS
def test_one_foot_always_stands_and_sometimes_both(speed):
    clip = walk(speed)
    left, right = (stands(clip, foot, speed) for foot in GR1.feet)
    assert np.all(left | right)
    assert 0.1 < np.mean(left & right) < 0.4


# ---------------------------------------------------------------- a person's walk


@SPEEDS
def test_the_robot_goes_as_fast_as_asked_for(speed):
    clip = walk(speed)
    root = clip.body_pos_w[:, 0]
    assert (root[-1, 0] - root[0, 0]) / clip.seconds == pytest.approx(speed, abs=1e-9)
    assert abs(root[:, 1]).max() < 0.03
    assert clip.body_lin_vel_w[:, 0, 0].mean() == pytest.approx(speed, abs=1e-6)


def test_longer_and_quicker_steps_at_higher_speeds():
    strides = [walk(speed).body_pos_w[period(walk(speed)), 0, 0] for speed in (0.6, 1.2, 1.8)]
    assert strides[0] < strides[1] < strides[2]
    assert period(walk(0.6)) > period(walk(1.2)) > period(walk(1.8))
    for speed, stride in zip((0.6, 1.2, 1.8), strides, strict=True):
        assert stride == pytest.approx(2.0 * Gait(speed=speed, leg=LEG).step_length, rel=0.03)  # whole frames


@SPEEDS
def test_knees_bend_in_swing_and_little_in_stance(speed):
    clip = walk(speed)
    own = own_cycle(clip, GR1.feet[0])[: period(clip)]
    knee = degrees(clip, "left_knee_pitch_joint")
    assert 55.0 < knee.max() < 80.0
    assert 0.65 < own[knee.argmax()] < 0.85
    assert knee[own < 0.4].max() < 35.0
    assert knee.min() > 2.0


@SPEEDS
def test_trunk_and_pelvis_are_upright_and_bob_as_a_persons_do(speed):
    clip = walk(speed)
    for body in ("base_link", "waist_roll_link"):
        up = of_body(clip, body)[1][:, 2, 2]
        assert np.degrees(np.arccos(up)).max() < 5.0
    assert 0.005 < np.ptp(clip.body_pos_w[:, 0, 2]) < 0.06  # Perry: 0.02 to 0.05 m
    lowest = clip.body_pos_w[: period(clip) // 2, 0, 2].argmin() / period(clip)
    assert lowest < 0.2 or lowest > 0.45  # while both feet stand


@SPEEDS
def test_arms_swing_against_the_leg_of_their_side_and_against_one_another(speed):
    clip = walk(speed)

    def ahead(body: str) -> np.ndarray:
        return clip.body_pos_w[:, clip.body(body), 0] - clip.body_pos_w[:, 0, 0]

    hands = [ahead(f"{side}_lower_arm_pitch_link") for side in ("left", "right")]
    feet = [ahead(foot) for foot in GR1.feet]
    for hand, foot in zip(hands, feet, strict=True):
        assert np.corrcoef(hand, foot)[0, 1] < -0.8
    assert np.corrcoef(*hands)[0, 1] < -0.95
    assert np.corrcoef(*feet)[0, 1] < -0.8
    turns = [np.arctan2(of_body(clip, body)[1][:, 1, 0], of_body(clip, body)[1][:, 0, 0])
             for body in ("base_link", "waist_roll_link")]  # fmt: skip
    assert np.corrcoef(*turns)[0, 1] < -0.95


@SPEEDS
def test_what_is_left_of_the_normative_angles(speed):
    """The source says how much they were bent; here from the joints."""
    clip, gait = walk(speed), Gait(speed=speed, leg=LEG)
    cycle = np.arange(period(clip)) / period(clip)
    for joint, sign, norm, offset, most in (
        ("hip_pitch", -1, gait.hip, 0.04, 6.0),
        ("knee_pitch", 1, gait.knee, 0.0, 10.0),
        ("ankle_pitch", -1, gait.ankle, 0.0, 15.0),
    ):
        q = np.radians(degrees(clip, f"left_{joint}_joint"))
        missed = np.degrees(np.sqrt(np.mean((sign * q - offset * (joint == "hip_pitch") - norm(cycle)) ** 2)))
        assert missed < most
        assert f"{joint.removesuffix('_pitch')} {missed:.1f}°" in clip.source
        if joint != "ankle_pitch":  # whose push-off is that of bending toes
            assert np.corrcoef(sign * q, norm(cycle))[0, 1] > 0.9


# ---------------------------------------------------------------- period and symmetry


@SPEEDS
def test_the_walk_closes_without_a_seam(speed):
    clip = walk(speed)
    cycle = period(clip)
    onward = np.array([speed * cycle / clip.fps, 0.0, 0.0])
    assert_allclose(clip.joint_pos[cycle:], clip.joint_pos[:-cycle], atol=1e-12)
    assert_allclose(clip.joint_vel[cycle:], clip.joint_vel[:-cycle], atol=1e-9)  # the first and the last frame's too
    assert_allclose(clip.body_pos_w[cycle:], clip.body_pos_w[:-cycle] + onward, atol=1e-9)
    for name in ("body_quat_w", "body_lin_vel_w", "body_ang_vel_w"):
        assert_allclose(getattr(clip, name)[cycle:], getattr(clip, name)[:-cycle], atol=1e-8)


@SPEEDS
def test_left_and_right_mirror_each_other_half_a_cycle_apart(speed):
    clip = walk(speed)
    half = period(clip) // 2
    mirror = mirror_of(MODEL, LEFT_RIGHT, clip.joint_names, clip.body_names)
    later = mirror.joints(torch.from_numpy(clip.joint_pos[:-half])).numpy()
    assert_allclose(clip.joint_pos[half:], later, atol=1e-9)
    image = clip.body_pos_w[:, mirror.bodies.index.numpy()] * [1, -1, 1]
    onward = np.array([speed * half / clip.fps, 0.0, 0.0])
    assert_allclose(clip.body_pos_w[half:], image[:-half] + onward, atol=1e-9)


# ---------------------------------------------------------------- clip and limits


@SPEEDS
def test_joints_stay_within_their_limits(speed):
    clip = walk(speed)
    low, high = MODEL.jnt_range[1:].T
    assert np.all((clip.joint_pos > low) & (clip.joint_pos < high))
    assert np.all(np.abs(clip.joint_vel) < GR1.joint_velocity_limits)


def test_the_clip_has_all_bodies_and_says_how_it_was_made():
    clip = walk(1.2)
    assert clip.joint_names == GR1.joint_names
    assert clip.body_names == tuple(MODEL.body(i).name for i in range(1, MODEL.nbody))
    assert clip.fps == 50.0
    assert len(clip) == 3 * 48 + 1
    assert "speed=1.2" in clip.source


def test_velocities_are_central_differences_at_the_frame_rate():
    clip = walk(1.2)
    for positions, velocities in ((clip.joint_pos, clip.joint_vel), (clip.body_pos_w, clip.body_lin_vel_w)):
        assert_allclose(positions[2:] - positions[:-2], velocities[1:-1] * 2 / 50, atol=1e-12)


def test_the_root_turns_as_mujoco_would_turn_it():
    """Stepping with the angular velocity of a frame leads to the orientation of the next, to second order."""
    clip, worst = walk(1.2), 0.0
    for frame in range(1, period(clip)):
        quaternion, local = clip.body_quat_w[frame, 0].copy(), np.zeros(3)
        mean = 0.5 * (clip.body_ang_vel_w[frame, 0] + clip.body_ang_vel_w[frame + 1, 0])
        inverse = quaternion * [1, -1, -1, -1]
        mujoco.mju_rotVecQuat(local, mean, inverse)
        mujoco.mju_quatIntegrate(quaternion, local, 1 / 50)
        worst = max(worst, np.abs(quaternion - clip.body_quat_w[frame + 1, 0]).max())
    assert worst < 1e-4


def test_other_speeds_and_frame_rates():
    for settings in (Walk(speed=0.3, strides=1), Walk(speed=2.0, strides=1), Walk(speed=1.0, strides=1, fps=60.0)):
        clip = made(settings)
        assert clip.body_lin_vel_w[:-1, 0, 0].mean() == pytest.approx(settings.speed, rel=1e-6)


@pytest.mark.parametrize(
    ("walk", "changes", "message"),
    [
        (Walk(speed=3.5), {}, r"walk at 3\.5 m/s: .*(lower|change) the speed"),
        (Walk(step_width=0.05), {}, r"hip_roll_joint would be at .* change step_width \(0\.05\)"),
        (Walk(), {"feet": GR1.feet[:1]}, "a walk needs a left and a right foot, not left_foot_roll_link"),
        (
            Walk(),
            {"joint_names": GR1.joint_names[:-1], "default_joint_pos": GR1.default_joint_pos[:-1]},
            "unknown joint that walks 'right_elbow_pitch_joint'",
        ),
        (Walk(), {"feet": ("left_lower_arm_pitch_link", GR1.feet[1])}, "no walking leg ends in 'left_lower_arm"),
    ],
)
def test_what_the_robot_cannot_do_is_refused_with_what_to_change(walk, changes, message):
    with pytest.raises(UserError, match=message):
        made(replace(walk, strides=1), **changes)


@pytest.mark.parametrize("name", ["speed", "strides", "step_width", "fps"])
def test_a_walk_that_cannot_be_is_refused_when_built(name):
    with pytest.raises(UserError, match=f"{name} is 0; it must be more than 0"):
        Walk(**{name: 0})


def test_the_same_settings_make_the_same_clip():
    again = made(Walk(speed=1.2, strides=3))
    for name in ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w"):
        assert_array_equal(getattr(again, name), getattr(walk(1.2), name))
