"""The made trot: legs in closed form, feet that roll without slipping, symmetry where it is claimed, limits."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consmimic.errors import UserError
from consmimic.motions import Clip
from consmimic.motions.leg import Leg
from consmimic.motions.trot import Trot, generate_trot
from consmimic.robots import ROBOTS

ANYMAL = ROBOTS["anymal_d"]
MODEL = ANYMAL.model(visuals=False)
LEFT, RIGHT = (0, 2), (1, 3)  # of LF, RF, LH, RH
RADIUS = 0.031455
STEADY = Trot(speeds=(0.9,), frequency=50 / 28, frequency_per_speed=0.0)  # a cycle is 28 frames


def trot(settings: Trot) -> Clip:
    return generate_trot(
        MODEL,
        root="base",
        feet=ANYMAL.feet,
        joint_names=ANYMAL.joint_names,
        default_joint_pos=ANYMAL.default_joint_pos,
        joint_velocity_limits=ANYMAL.joint_velocity_limits,
        trot=settings,
    )


@pytest.fixture(scope="module")
def whole() -> Clip:
    return trot(Trot())


@pytest.fixture(scope="module")
def steady() -> Clip:
    return trot(STEADY)


@pytest.fixture(scope="module")
def limping() -> Clip:
    return trot(replace(STEADY, asymmetry=1.0))


def feet(clip: Clip) -> np.ndarray:
    """Centres of the round feet as MuJoCo has them, (T, 4, 3)."""
    data = mujoco.MjData(MODEL)
    geoms = [MODEL.geom(foot).id for foot in ANYMAL.feet]
    centres = np.empty((len(clip), 4, 3))
    for frame in range(len(clip)):
        data.qpos[:] = [*clip.body_pos_w[frame, 0], *clip.body_quat_w[frame, 0], *clip.joint_pos[frame]]
        mujoco.mj_kinematics(MODEL, data)
        centres[frame] = data.geom_xpos[geoms]
    return centres


def on_ground(clip: Clip) -> np.ndarray:
    return feet(clip)[..., 2] < RADIUS + 1e-9  # (T, 4)


def half_a_cycle_mirrored(clip: Clip) -> float:
    """By how many radians the joints miss being, half a cycle on, their own mirror image."""
    mirrored = clip.joint_pos.reshape(-1, 4, 3)[:, [1, 0, 3, 2]] * [-1, 1, 1]
    return np.abs(mirrored[:-14] - clip.joint_pos.reshape(-1, 4, 3)[14:]).max()


# ---------------------------------------------------------------- legs


@pytest.mark.parametrize("foot", ANYMAL.feet)
def test_legs_are_solved_as_mujoco_moves_them(foot):
    leg = Leg.of(MODEL, root="base", foot=foot)
    assert leg.joints == tuple(name for name in ANYMAL.joint_names if name.startswith(foot[:2]))
    assert leg.foot_radius == RADIUS
    knee_side = -1 if foot[1] == "F" else 1
    random = np.random.default_rng(0)
    angles = random.uniform((-0.6, -0.7, 0.1), (0.6, 0.7, 1.4), (200, 3))
    angles *= (1, -knee_side, knee_side)  # hind legs are front legs' images, and so all feet are below their hips
    data = mujoco.MjData(MODEL)
    for some in angles:
        for name, angle in zip(leg.joints, some, strict=True):
            data.joint(name).qpos = angle
        mujoco.mj_kinematics(MODEL, data)
        centre = data.geom(foot).xpos - data.body("base").xpos
        assert_allclose(leg.foot(some), centre, atol=1e-9)
        assert_allclose(leg.angles(centre, knee_side=knee_side), some, atol=1e-9)


def test_a_foot_out_of_reach_is_refused_with_the_reach():
    leg = Leg.of(MODEL, root="base", foot="LF_FOOT")
    with pytest.raises(UserError, match=r"LF_KFE: the foot would be 0\.9\d\d m from the hip.* 0\.091 to 0\.661 m"):
        leg.angles(np.array([[0.373, 0.31, -0.9]]), knee_side=-1)


@pytest.mark.parametrize(
    ("root", "foot", "message"),
    [
        ("base", "LF_SHANK", "'LF_SHANK' is no round foot"),
        ("LF_THIGH", "LF_FOOT", r"no leg ends in 'LF_FOOT': it needs joints about x, y and y"),
        ("RF_HIP", "LF_FOOT", r"no leg ends in 'LF_FOOT'"),
    ],
)
def test_what_is_no_leg_is_refused(root, foot, message):
    with pytest.raises(UserError, match=message):
        Leg.of(MODEL, root=root, foot=foot)


# ---------------------------------------------------------------- feet


def test_feet_on_the_ground_roll_and_do_not_slip(whole):
    centres, grounded = feet(whole), on_ground(whole)
    quats = whole.body_quat_w[:, 1:]
    pitch = 2.0 * np.arctan2(quats[..., 2], quats[..., 0])
    stance = grounded[1:] & grounded[:-1]
    slip = np.diff(centres[..., 0], axis=0) - RADIUS * np.diff(pitch, axis=0)
    assert stance.mean() > 0.35
    assert np.abs(slip[stance]).max() < 1e-9
    assert np.abs(np.diff(centres[..., 1], axis=0)[stance]).max() < 1e-9
    sole_frames = np.diff(whole.body_pos_w[:, 1:], axis=0)[stance]  # at the sole: nearly still
    assert np.abs(sole_frames[:, 0]).max() < 1e-3


def test_no_foot_goes_under_the_floor(whole, limping):
    for clip in (whole, limping):
        assert feet(clip)[..., 2].min() > RADIUS - 1e-9


def test_diagonal_legs_step_together_and_the_pairs_in_turn(steady):
    lf, rf, lh, rh = on_ground(steady).T
    assert_array_equal(lf, rh)
    assert_array_equal(rf, lh)
    assert_array_equal(lf[:-14], rf[14:])
    assert not np.any(lf & rf & (np.arange(len(lf)) % 14 == 7))  # one pair swings in the middle of the other's stance


def test_feet_are_lifted_to_the_step_height(whole):
    lifted = feet(whole)[..., 2].max(axis=0) - RADIUS
    assert_allclose(lifted, Trot().step_height, rtol=0.02)


def test_nothing_but_feet_touches_anything(whole, limping):
    data = mujoco.MjData(MODEL)
    floor, geoms = MODEL.geom("floor").id, {MODEL.geom(foot).id for foot in ANYMAL.feet}
    for clip in (whole, limping):
        for frame in range(0, len(clip), 3):
            data.qpos[:] = [*clip.body_pos_w[frame, 0], *clip.body_quat_w[frame, 0], *clip.joint_pos[frame]]
            mujoco.mj_forward(MODEL, data)
            for pair in data.contact.geom:
                assert floor in pair
                assert geoms & set(pair)


# ---------------------------------------------------------------- base


def test_the_base_goes_at_the_speeds_asked_for():
    settings = Trot(speeds=(0.3, 1.5, 0.6), hold_seconds=2.0, ramp_seconds=1.0)
    clip = trot(settings)
    assert clip.seconds == pytest.approx(settings.seconds) == pytest.approx(8.0)
    speed = clip.body_lin_vel_w[:, 0, 0]
    for start, expected in ((0.0, 0.3), (3.0, 1.5), (6.0, 0.6)):
        held = slice(round(50 * start) + 1, round(50 * (start + 2.0)))
        assert_allclose(speed[held], expected, atol=1e-6)
    assert clip.body_pos_w[-1, 0, 0] == pytest.approx(2 * 0.3 + 0.9 + 2 * 1.5 + 1.05 + 2 * 0.6, abs=1e-6)
    assert_array_equal(clip.body_pos_w[:, 0, 1], 0)
    assert np.abs(clip.body_pos_w[:, 0, 2] - settings.base_height).max() < settings.bob + 1e-9


def test_each_foot_is_a_stride_further_on_after_a_cycle(steady):
    ahead = steady.body_pos_w[28:] - steady.body_pos_w[:-28]
    assert_allclose(ahead, np.broadcast_to([0.9 * 28 / 50, 0, 0], ahead.shape), atol=1e-9)


# ---------------------------------------------------------------- symmetry


def test_left_and_right_mirror_each_other_half_a_cycle_apart(steady):
    assert half_a_cycle_mirrored(steady) < 1e-9
    mirrored = steady.body_pos_w[:, [0, 2, 1, 4, 3]] * [1, -1, 1]
    expected = mirrored[:-14] + np.array([0.9 * 14 / 50, 0, 0])
    assert_allclose(steady.body_pos_w[14:], expected, atol=1e-9)


def test_asymmetry_breaks_the_mirror_more_the_more_of_it_there_is(limping):
    half = trot(replace(STEADY, asymmetry=0.5))
    assert 0.1 < half_a_cycle_mirrored(half) < half_a_cycle_mirrored(limping)


def test_the_left_legs_limp(limping):
    lifted, grounded = feet(limping)[..., 2].max(axis=0), on_ground(limping)[: 3 * 28].mean(axis=0)
    assert max(lifted[list(LEFT)]) < min(lifted[list(RIGHT)]) - 0.03
    assert max(grounded[list(LEFT)]) < min(grounded[list(RIGHT)]) - 0.03
    assert np.all(limping.body_quat_w[:, 0, 1] < -0.03)  # leans to the left
    assert_allclose(limping.body_lin_vel_w[1:-1, 0, 0], 0.9, atol=1e-6)  # and goes straight on all the same


# ---------------------------------------------------------------- clip and limits


def test_the_clip_names_what_it_has(whole):
    assert whole.joint_names == ANYMAL.joint_names
    assert whole.body_names == ("base", *ANYMAL.feet)
    assert whole.fps == 50.0
    assert "asymmetry=0.0" in whole.source


def test_velocities_are_differences_at_the_frame_rate(whole):
    for positions, velocities in (
        (whole.joint_pos, whole.joint_vel),
        (whole.body_pos_w, whole.body_lin_vel_w),
    ):
        assert_allclose(positions[2:] - positions[:-2], velocities[1:-1] * 2 / 50, atol=1e-12)


def test_joints_stay_within_their_limits(whole, limping):
    low, high = MODEL.jnt_range[1:].T
    for clip in (whole, limping):
        assert np.all((clip.joint_pos > low) & (clip.joint_pos < high))
        assert np.abs(clip.joint_vel).max() < 7.5


def test_the_same_settings_make_the_same_clip(steady):
    again = trot(STEADY)
    for name in ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w"):
        assert_array_equal(getattr(again, name), getattr(steady, name))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base_height": 0.75}, r"the foot would be .* change base_height \(0\.75\)"),
        ({"frequency": 4.0}, r"_(HFE|KFE) would turn at .* rad/s after .* up to 7\.5: lower the speeds"),
        ({"base_height": 0.66}, r"KFE would be at -?0\.\d\d rad .* change base_height \(0\.66\)"),
    ],
)
def test_what_the_robot_cannot_do_is_refused_with_what_to_change(change, message):
    with pytest.raises(UserError, match=message):
        trot(replace(STEADY, **change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"speeds": ()}, r"speeds are \(\); at least one"),
        ({"speeds": (-0.3,)}, "none below 0"),
        ({"speeds": (4.0,)}, r"duty 0\.54 and duty_per_speed -0\.1 make 0\.14 to 0\.14; valid are 0\.3 to 0\.8"),
        ({"asymmetry": 1.5}, "asymmetry is 1.5; valid are 0 to 1"),
        ({"fps": 0.0}, "fps is 0.0; it must be more than 0"),
    ],
)
def test_a_trot_that_cannot_be_is_refused_when_built(change, message):
    with pytest.raises(UserError, match=message):
        Trot(**change)
