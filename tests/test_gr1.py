"""The compiled GR1 against the published figures, kinematics computed another way, and its own mirror image."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import mujoco
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from consmimic.method.symmetry import SignedPermutation, axial, polar
from consmimic.robots import ROBOTS
from consmimic.robots.mirror import mirror_of

GR1 = ROBOTS["gr1"]
(LEFT_RIGHT,) = GR1.mirror_planes
MIRROR = np.diag([1.0, -1.0, 1.0])
WEIGHT = 54.534 * 9.81
SOLE = 0.055  # m below the ankle
STILL_STIFFNESS = 2000.0  # N m/rad: gains that hold the pose open loop, to see the contacts alone


class Hinge(NamedTuple):
    name: str
    axis: tuple[float, float, float]
    range: tuple[float, float]
    speed: float
    effort: float


class Link(NamedTuple):
    name: str
    parent: str | None
    pos: tuple[float, float, float]  # in the parent link
    joint: Hinge | None
    mass: float
    com: tuple[float, float, float]
    inertia: tuple[float, ...]  # about the centre of mass: xx yy zz xy xz yz


# FFTAI/Wiki-GRx-Models, gr1t2.urdf, commit 7d96c75: figures as published, both sides; fixed links merged, and frames
# turned to be parallel to the base's.
# fmt: off
PUBLISHED = (
    Link("base_link", None, (0.0, 0.0, 0.0), None,
         4.01, (-0.060342606, -9.7784e-05, -0.009249212),
         (0.041246044221, 0.01352165605, 0.042709992768, -5.991273e-06, -0.001999967671, -8.739335e-06)),
    Link("left_thigh_roll_link", "base_link", (-0.031635, 0.105, -0.0276),
         Hinge("left_hip_roll_joint", (1.0, 0.0, 0.0), (-0.09, 0.79), 7.64, 84.18),
         1.47, (0.001095, 2.4e-05, 0.001761),
         (0.001575, 0.002478, 0.002575, 4e-06, -6e-06, -9e-06)),
    Link("left_thigh_yaw_link", "left_thigh_roll_link", (0.033135, 0.0, 0.00075),
         Hinge("left_hip_yaw_joint", (0.0, 0.0, 1.0), (-0.7, 0.7), 9.8, 65.0),
         3.47, (-0.000705, 0.0384, -0.1103),
         (0.02003, 0.02123, 0.01146, -0.00165, 0.000145, 0.005516)),
    Link("left_thigh_pitch_link", "left_thigh_yaw_link", (0.0, 0.0223, -0.14027),
         Hinge("left_hip_pitch_joint", (0.0, 1.0, 0.0), (-1.75, 0.7), 18.54, 135.0),
         8.35, (0.001387, -0.02832, -0.064),
         (0.09287, 0.08956, 0.02835, 8.9e-05, 0.001262, -0.001832)),
    Link("left_shank_pitch_link", "left_thigh_pitch_link", (0.0, -0.019512, -0.36),
         Hinge("left_knee_pitch_joint", (0.0, 1.0, 0.0), (-0.09, 1.92), 18.53, 135.0),
         1.76, (0.001482, -0.0008, -0.1154),
         (0.01079, 0.01068, 0.001262, -7e-06, -0.000149, -0.000146)),
    Link("left_foot_pitch_link", "left_shank_pitch_link", (0.0, -0.00125, -0.34),
         Hinge("left_ankle_pitch_joint", (0.0, 1.0, 0.0), (-1.05, 0.52), 10.26, 41.67),
         0.057, (0.0, 0.0, 0.0),
         (5.31e-06, 5.65e-06, 6.36e-06, 0.0, 0.0, 0.0)),
    Link("left_foot_roll_link", "left_foot_pitch_link", (0.0, 0.0, 0.0),
         Hinge("left_ankle_roll_joint", (1.0, 0.0, 0.0), (-0.44, 0.44), 10.26, 41.67),
         1.07, (0.0367, 0.0001, -0.03837),
         (0.0007664, 0.005085, 0.005559, 3.75e-06, 0.0002441, -1.53e-06)),
    Link("right_thigh_roll_link", "base_link", (-0.031635, -0.105, -0.0276),
         Hinge("right_hip_roll_joint", (1.0, 0.0, 0.0), (-0.79, 0.09), 7.64, 84.18),
         1.47, (0.001319, -9.8e-05, 0.001752),
         (0.001572, 0.002502, 0.002594, 1.2e-05, -5e-06, 6e-06)),
    Link("right_thigh_yaw_link", "right_thigh_roll_link", (0.033135, 0.0, 0.00075),
         Hinge("right_hip_yaw_joint", (0.0, 0.0, 1.0), (-0.7, 0.7), 9.8, 65.0),
         3.47, (-0.000705, -0.03841, -0.1104),
         (0.01912, 0.02124, 0.01149, -5.8e-05, 1.46e-05, -0.005568)),
    Link("right_thigh_pitch_link", "right_thigh_yaw_link", (0.0, -0.0223, -0.14027),
         Hinge("right_hip_pitch_joint", (0.0, 1.0, 0.0), (-1.75, 0.7), 18.54, 135.0),
         8.35, (0.001386, 0.02815, -0.06399),
         (0.09315, 0.08956, 0.028, 9e-05, 0.001548, -0.001825)),
    Link("right_shank_pitch_link", "right_thigh_pitch_link", (0.0, 0.019762, -0.36),
         Hinge("right_knee_pitch_joint", (0.0, 1.0, 0.0), (-0.09, 1.92), 18.54, 135.0),
         1.76, (0.001486, 0.000785, -0.1152),
         (0.01075, 0.01063, 0.001242, 7e-06, -8.7e-05, 0.00014)),
    Link("right_foot_pitch_link", "right_shank_pitch_link", (0.0, 0.00125, -0.34),
         Hinge("right_ankle_pitch_joint", (0.0, 1.0, 0.0), (-1.05, 0.52), 10.26, 41.67),
         0.057, (0.0, 0.0, 0.0),
         (5.31e-06, 5.56e-06, 6.36e-06, 0.0, 0.0, 0.0)),
    Link("right_foot_roll_link", "right_foot_pitch_link", (0.0, 0.0, 0.0),
         Hinge("right_ankle_roll_joint", (1.0, 0.0, 0.0), (-0.44, 0.44), 10.26, 41.67),
         1.07, (0.0367, -0.0001, -0.03837),
         (0.0007664, 0.005085, 0.005559, -3.75e-06, 0.0002441, 1.53e-06)),
    Link("waist_yaw_link", "base_link", (0.0, 0.0, 0.0),
         Hinge("waist_yaw_joint", (0.0, 0.0, 1.0), (-1.05, 1.05), 9.8, 65.0),
         1.66, (-0.00152, -0.00691, 0.05223),
         (0.003573, 0.0031429, 0.0023119, 1.476e-05, 5.805e-05, 0.00039781)),
    Link("waist_pitch_link", "waist_yaw_link", (0.0, 0.0, 0.0869),
         Hinge("waist_pitch_joint", (0.0, 1.0, 0.0), (-0.52, 1.22), 9.8, 65.0),
         1.54, (0.004581, -0.004697, 0.04034),
         (0.0046064, 0.0045722, 0.0018747, -2.297e-05, -0.00026084, -0.00024591)),
    Link("waist_roll_link", "waist_pitch_link", (0.00525, -0.0005, 0.081),
         Hinge("waist_roll_joint", (1.0, 0.0, 0.0), (-0.7, 0.7), 9.8, 65.0),
         8.28, (-0.004549129, 0.000422633, 0.206714521),
         (0.189414563651, 0.191157833913, 0.043224111364, 0.000171646518, -0.01151743548, 0.000590736854)),
    Link("left_upper_arm_pitch_link", "waist_roll_link", (-0.00225, 0.10185443, 0.207001),
         Hinge("left_shoulder_pitch_joint", (0.0, 0.907816, 0.419369), (-2.79, 1.92), 6.28, 38.46),
         0.82, (0.0033, 0.048714142, 0.022382506),
         (0.00204209, 0.000764438659, 0.001719321341, -9.6062234e-05, -5.0655106e-05, -0.000565226039)),
    Link("left_upper_arm_roll_link", "left_upper_arm_pitch_link", (0.0, 0.086378685, 0.039902949),
         Hinge("left_shoulder_roll_joint", (1.0, 0.0, 0.0), (-0.57, 2.53), 6.28, 38.46),
         0.61, (0.005026, 0.0174, -0.02398),
         (0.0010175, 0.00080346, 0.00056524, 8.5e-07, -2.686e-05, 0.00031013)),
    Link("left_upper_arm_yaw_link", "left_upper_arm_roll_link", (0.0, 0.04, -0.0709),
         Hinge("left_shoulder_yaw_joint", (0.0, 0.0, 1.0), (-2.97, 2.97), 5.24, 30.3),
         0.54, (-1.7e-05, -0.0002, -0.08761),
         (0.0035571, 0.003544, 0.00026034, -1.6e-07, -7.1e-07, 4.56e-05)),
    Link("left_lower_arm_pitch_link", "left_upper_arm_yaw_link", (0.0, 0.0010503, -0.1786),
         Hinge("left_elbow_pitch_joint", (0.0, 1.0, 0.0), (-2.27, 2.27), 5.24, 30.3),
         1.375, (0.0003168, 0.003561862, -0.111889891),
         (0.007029384648, 0.006947930123, 0.000639691856, 2.007771e-06, 1.5202612e-05, -0.000216524767)),
    Link("right_upper_arm_pitch_link", "waist_roll_link", (-0.00225, -0.10070557, 0.207001),
         Hinge("right_shoulder_pitch_joint", (0.0, 0.907816, -0.419369), (-2.79, 1.92), 6.28, 38.46),
         0.82, (0.00338, -0.048607178, 0.022685588),
         (0.0020452, 0.00076236093, 0.00172120907, 0.000100312131, -4.6725096e-05, 0.00055806793)),
    Link("right_upper_arm_roll_link", "right_upper_arm_pitch_link", (0.0, -0.086378685, 0.039902949),
         Hinge("right_shoulder_roll_joint", (1.0, 0.0, 0.0), (-2.53, 0.57), 6.28, 38.46),
         0.61, (0.004503, -0.0174, -0.02398),
         (0.0010174, 0.0008033, 0.00056542, -8.4e-07, -2.687e-05, -0.00031043)),
    Link("right_upper_arm_yaw_link", "right_upper_arm_roll_link", (0.0, -0.04, -0.0709),
         Hinge("right_shoulder_yaw_joint", (0.0, 0.0, 1.0), (-2.97, 2.97), 5.24, 30.3),
         0.54, (-1e-05, 0.0002, -0.08761),
         (0.0035706, 0.0035441, 0.00026029, 3e-08, 7e-08, -4.555e-05)),
    Link("right_lower_arm_pitch_link", "right_upper_arm_yaw_link", (0.0, -0.0010503, -0.1786),
         Hinge("right_elbow_pitch_joint", (0.0, 1.0, 0.0), (-2.27, 2.27), 5.24, 30.3),
         1.375, (0.0003384, -0.003561862, -0.111357091),
         (0.006975621295, 0.006894304338, 0.000640019424, 2.744654e-06, 1.2320698e-05, 0.000215701243)),
)
# fmt: on
BODIES = tuple(link.name for link in PUBLISHED)
JOINTS = tuple(link.joint.name for link in PUBLISHED if link.joint)


def evened(links: tuple[Link, ...]) -> tuple[Link, ...]:
    """The mean of each link and of its partner's mirror image."""
    of = {link.name: link for link in links}

    def mean(a, b, signs=1.0):
        return tuple(0.5 * (np.asarray(a) + np.asarray(signs) * np.asarray(b)))

    def both(link: Link) -> Link:
        other = of[LEFT_RIGHT.partner(link.name)]
        return link._replace(
            pos=mean(link.pos, other.pos, (1, -1, 1)),
            mass=0.5 * (link.mass + other.mass),
            com=mean(link.com, other.com, (1, -1, 1)),
            inertia=mean(link.inertia, other.inertia, (1, 1, 1, -1, 1, -1)),
        )

    return tuple(both(link) for link in links)


EVENED = evened(PUBLISHED)


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return GR1.model(visuals=False)


def rotation(axis, angle: float) -> np.ndarray:
    """Rodrigues' formula."""
    x, y, z = np.asarray(axis) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross


def poses(links: tuple[Link, ...], joint_pos) -> tuple[np.ndarray, np.ndarray]:
    """Positions and orientations of all links in the base, from the published figures alone."""
    angles = dict(zip(GR1.joint_names, joint_pos, strict=True))
    found: dict[str | None, tuple[np.ndarray, np.ndarray]] = {}
    for link in links:
        pos, rot = found.get(link.parent, (np.zeros(3), np.eye(3)))
        turn = rotation(link.joint.axis, angles[link.joint.name]) if link.joint else np.eye(3)
        found[link.name] = pos + rot @ link.pos, rot @ turn
    return np.array([found[name][0] for name in BODIES]), np.array([found[name][1] for name in BODIES])


def at(model: mujoco.MjModel, joint_pos, height: float = 2.0) -> mujoco.MjData:
    data = mujoco.MjData(model)
    data.qpos[2] = height
    data.qpos[GR1.joint_qpos_indices(model)] = joint_pos
    mujoco.mj_forward(model, data)
    return data


def standing(model: mujoco.MjModel) -> mujoco.MjData:
    data = at(model, GR1.default_joint_pos, GR1.root_height)
    data.ctrl[GR1.actuator_indices(model)] = GR1.default_joint_pos
    return data


def random_poses(model: mujoco.MjModel, n: int, seed: int = 0) -> np.ndarray:
    low, high = model.jnt_range[1:].T
    return np.random.default_rng(seed).uniform(low, high, size=(n, 23))


def feet_geoms(model: mujoco.MjModel) -> np.ndarray:
    bodies = [model.body(foot).id for foot in GR1.feet]
    return np.array([geom for geom in range(model.ngeom) if model.geom_bodyid[geom] in bodies])


def stiff(model: mujoco.MjModel) -> mujoco.MjModel:
    model.actuator_gainprm[:, 0] = STILL_STIFFNESS
    model.actuator_biasprm[:, 1:3] = -STILL_STIFFNESS, -STILL_STIFFNESS / 20
    return model


class Stand(NamedTuple):
    slip: float  # m, the farthest that an ankle frame ever was from where it began
    height: float  # m, of the base at the end
    speed: float  # rad/s or m/s, of anything at the end
    seconds: float  # until the robot fell or the time was over


def stand(model: mujoco.MjModel, seconds: float, lean: float = 0.0, damping: float = 0.0) -> Stand:
    """Hold the default pose; the ankles' targets follow the tilt of the base, times `lean`, and its turning."""
    data = standing(model)
    feet = [model.body(foot).id for foot in GR1.feet]
    start, farthest = data.xpos[feet, :2].copy(), 0.0
    pitch, roll = ([model.actuator(f"{side}_ankle_{axis}_joint").id for side in ("left", "right")]
                   for axis in ("pitch", "roll"))  # fmt: skip
    while data.time < seconds and data.qpos[2] > 0.6:
        w, x, y, z = data.qpos[3:7]
        data.ctrl[GR1.actuator_indices(model)] = GR1.default_joint_pos
        data.ctrl[pitch] += lean * 2.0 * (w * y - x * z) + damping * data.qvel[4]
        data.ctrl[roll] += lean * 2.0 * (w * x + y * z) + damping * data.qvel[3]
        mujoco.mj_step(model, data, nstep=4)
        farthest = max(farthest, np.linalg.norm(data.xpos[feet, :2] - start, axis=1).max())
    return Stand(farthest, data.qpos[2], np.abs(data.qvel).max(), data.time)


def follow(model: mujoco.MjModel, data: mujoco.MjData, targets: np.ndarray) -> np.ndarray:
    """Joint angles after each 1/50 s control step towards `targets`, (T, 23)."""
    path = []
    for target in targets:
        data.ctrl[GR1.actuator_indices(model)] = target
        mujoco.mj_step(model, data, nstep=round(1 / 50 / model.opt.timestep))
        path.append(data.qpos[GR1.joint_qpos_indices(model)])
    return np.array(path)


# ---------------------------------------------------------------- the published figures


@pytest.mark.parametrize("link", EVENED, ids=lambda link: link.name)
def test_mass_centre_and_inertia_are_the_mean_of_the_published_sides(model, link):
    body = model.body(link.name)
    xx, yy, zz, xy, xz, yz = link.inertia
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, body.iquat)
    axes = axes.reshape(3, 3)
    assert body.mass[0] == pytest.approx(link.mass)
    assert_allclose(body.ipos, link.com, atol=1e-9)
    assert_allclose(axes @ np.diag(body.inertia) @ axes.T, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], atol=1e-8)


def test_total_mass_and_centre_in_the_default_pose(model):
    assert mujoco.mj_getTotalmass(model) == pytest.approx(54.534)
    data = at(model, GR1.default_joint_pos)
    assert_allclose(data.subtree_com[1] - data.body("base_link").xpos, [0.0084, 0.0, -0.07443], atol=1e-5)


def test_the_robot_has_the_published_joints_in_the_published_order(model):
    assert GR1.joint_names == JOINTS
    assert len(JOINTS) == model.nu == model.nv - 6 == 23
    assert [model.body(i).name for i in range(1, model.nbody)] == list(BODIES)


@pytest.mark.parametrize("joint", [link.joint for link in PUBLISHED if link.joint], ids=lambda joint: joint.name)
def test_axis_limits_speed_and_effort(model, joint):
    found, actuator = model.joint(joint.name), model.actuator(joint.name)
    assert_allclose(found.axis, joint.axis, atol=1e-6)
    assert_allclose(found.range, joint.range)
    assert_allclose(actuator.forcerange, [-joint.effort, joint.effort])
    speed = dict(zip(GR1.joint_names, GR1.joint_velocity_limits, strict=True))[joint.name]
    assert speed == pytest.approx(joint.speed, abs=0.011)  # the published knees differ by 0.01


def test_kinematics_are_those_of_the_published_figures(model):
    for joint_pos in (np.zeros(23), GR1.default_joint_pos, *random_poses(model, 20)):
        data = at(model, joint_pos)
        positions, rotations = poses(EVENED, joint_pos)
        assert_allclose(data.xpos[1:] - data.xpos[1], positions, atol=1e-9)
        assert_allclose(data.xmat[1:].reshape(-1, 3, 3), rotations, atol=1e-6)  # the shoulder's axis has 6 digits
        assert_allclose(data.xpos[1:] - data.xpos[1], poses(PUBLISHED, joint_pos)[0], atol=1e-3)


def test_legs_reach_where_trigonometry_says(model):
    hip = np.array([-0.031635 + 0.033135, 0.105 + 0.0223, -0.0276 + 0.00075 - 0.14027])
    names = ("left_hip_pitch_joint", "left_knee_pitch_joint", "left_ankle_pitch_joint")
    for flexion, knee in ((0.0, 0.0), (-0.2618, 0.5236), (-1.2, 1.5), (0.5, 0.2)):
        joint_pos = np.zeros(23)
        joint_pos[[JOINTS.index(name) for name in names]] = flexion, knee, -flexion - knee
        data = at(model, joint_pos)
        ankle = [-0.36 * np.sin(flexion) - 0.34 * np.sin(flexion + knee), -0.019637 - 0.00125,
                 -0.36 * np.cos(flexion) - 0.34 * np.cos(flexion + knee)]  # fmt: skip
        assert_allclose(data.body("left_foot_roll_link").xpos - data.xpos[1], hip + ankle, atol=1e-6)
        assert_allclose(data.body("left_foot_roll_link").xmat, np.eye(3).ravel(), atol=1e-12)


def test_the_shoulders_are_tilted_as_in_the_urdf(model):
    tilt = 0.43275  # rad about x
    assert_allclose(model.joint("left_shoulder_pitch_joint").axis, [0, np.cos(tilt), np.sin(tilt)], atol=1e-6)
    assert_allclose(model.joint("right_shoulder_pitch_joint").axis, [0, np.cos(tilt), -np.sin(tilt)], atol=1e-6)


# ---------------------------------------------------------------- pose and contacts


def test_the_default_pose_stands_on_flat_soles(model):
    data = at(model, GR1.default_joint_pos, GR1.root_height)
    for geom in feet_geoms(model):
        radius, half_length = model.geom_size[geom, :2]
        along = data.geom_xmat[geom].reshape(3, 3)[:, 2]
        assert (radius, half_length) == pytest.approx((0.02, 0.12))
        assert abs(along[2]) < 1e-9
        assert data.geom_xpos[geom, 2] == pytest.approx(radius, abs=1e-6)
    for foot in GR1.feet:
        assert data.body(foot).xpos[2] == pytest.approx(SOLE, abs=1e-6)
    x, y, _ = data.subtree_com[1]
    heel, toe = data.body(GR1.feet[0]).xpos[0] + np.array([-0.07, 0.17])
    assert heel + 0.03 < x < toe - 0.03
    assert abs(y) < 1e-6


def test_default_pose_touches_nothing_but_the_ground(model):
    assert at(model, GR1.default_joint_pos).ncon == 0
    pairs = at(model, GR1.default_joint_pos, GR1.root_height - 1e-4).contact.geom
    assert set(pairs[:, 0]) == {model.geom("floor").id}
    assert set(pairs[:, 1]) == set(feet_geoms(model))


def test_an_ankle_strategy_stands_still_with_these_gains(model):
    found = stand(model, 5.0, lean=2.0, damping=0.2)
    assert found.seconds >= 5.0
    assert found.slip < 0.002
    assert found.height > 0.88
    assert found.speed < 0.01


def test_open_loop_the_robot_falls_as_it_does_with_all_published_gains(model):
    assert 1.0 < stand(model, 5.0).seconds < 3.0


def test_gains_with_slack_ankles_fall_under_the_same_strategy():
    model = GR1.model(visuals=False)
    for side in ("left", "right"):  # FFTAI/Wiki-GRx-Gym, whole body
        for axis, stiffness, damping in (("pitch", 10.9805, 0.5991), ("roll", 0.25, 0.01)):
            ankle = model.actuator(f"{side}_ankle_{axis}_joint").id
            model.actuator_gainprm[ankle, 0] = stiffness
            model.actuator_biasprm[ankle, 1:3] = -stiffness, -damping
    assert stand(model, 5.0, lean=2.0, damping=0.2).seconds < 3.0


def tilted(model: mujoco.MjModel, degrees: float) -> mujoco.MjModel:
    """Gravity as on a slope to the side."""
    model.opt.gravity[:] = 0.0, 9.81 * np.sin(np.radians(degrees)), -9.81 * np.cos(np.radians(degrees))
    return model


def test_feet_do_not_creep_while_standing_stiffly():
    assert stand(stiff(GR1.model(visuals=False)), 5.0).slip < 0.002
    assert stand(tilted(stiff(GR1.model(visuals=False)), 3.0), 5.0).slip < 0.002


def test_cheap_contacts_would_creep():
    model = tilted(stiff(GR1.model(visuals=False)), 3.0)
    model.opt.cone, model.opt.impratio = mujoco.mjtCone.mjCONE_PYRAMIDAL, 1
    assert stand(model, 5.0).slip > 0.007


def test_foot_sensors_carry_the_weight_and_the_others_nothing():
    model = stiff(GR1.model(visuals=False))
    data = standing(model)
    mujoco.mj_step(model, data, nstep=600)
    force = {model.sensor(i).name: data.sensor(i).data for i in range(model.nsensor)}
    feet = np.array([force.pop(f"contact_{foot}") for foot in GR1.feet])
    assert_allclose(feet[:, 2], 0.5 * WEIGHT, rtol=0.02)
    assert_allclose(feet.sum(axis=0), [0, 0, WEIGHT], atol=3.0)
    assert not np.any(list(force.values()))
    touching = {model.body(model.geom_bodyid[geom]).name for geom in range(1, model.ngeom)}
    assert {f"contact_{name}" for name in touching} == {f"contact_{foot}" for foot in GR1.feet} | set(force)


def test_only_the_robots_friction_counts():
    model = GR1.model(visuals=False)
    assert_allclose(model.geom_friction[:, 0], 0.8)
    model.geom_friction[model.geom_bodyid > 0, 0] = 0.3
    data = at(model, GR1.default_joint_pos, GR1.root_height - 1e-3)
    assert_allclose(data.contact.friction[:, 0], 0.3)


def test_legs_do_not_pass_through_each_other(model):
    joint_pos = np.zeros(23)
    joint_pos[[JOINTS.index("left_hip_roll_joint"), JOINTS.index("right_hip_roll_joint")]] = -0.09, 0.09
    names = {model.body(model.geom_bodyid[geom]).name for geom in at(model, joint_pos).contact.geom.ravel()}
    assert {"left_thigh_pitch_link", "right_thigh_pitch_link"} <= names


# ---------------------------------------------------------------- actuators


def test_actuators_are_springs_and_dampers_within_the_effort_limits(model):
    """Stiffness is the effort over 30 degrees, damping stiffness/15."""
    data, random = at(model, GR1.default_joint_pos), np.random.default_rng(0)
    joints, actuators = GR1.joint_qvel_indices(model), GR1.actuator_indices(model)
    effort = np.array([link.joint.effort for link in PUBLISHED if link.joint])
    stiffness = effort / np.radians(30.0)
    for _ in range(20):
        error, velocity = random.uniform(-1, 1, 23), random.uniform(-5, 5, 23)
        data.ctrl[actuators] = GR1.default_joint_pos + error
        data.qvel[joints] = velocity
        mujoco.mj_forward(model, data)
        torque = np.clip(stiffness * error - stiffness / 15.0 * velocity, -effort, effort)
        assert_allclose(data.actuator_force[actuators], torque, rtol=1e-3, atol=0.05)
        assert_allclose(data.qfrc_actuator[joints], torque, rtol=1e-3, atol=0.05)


def test_actuators_have_the_names_of_their_joints_and_no_state(model):
    assert model.na == 0
    for name in GR1.joint_names:
        assert model.actuator(name).trnid[0] == model.joint(name).id
        assert model.actuator(name).ctrllimited[0] == 0


def test_violent_targets_neither_diverge_nor_warn(model):
    """Targets of an untrained policy at 50 Hz: default + 0.25 N(0, 1), and four times that."""
    low, high = model.jnt_range[1:].T
    random = np.random.default_rng(0)
    for scale in (0.25, 1.0):
        data = standing(model)
        path = follow(model, data, GR1.default_joint_pos + scale * random.standard_normal((150, 23)))
        assert not any(warning.number for warning in data.warning)
        assert np.all(np.isfinite(path))
        assert np.maximum(low - path, path - high).max() < 0.2  # limits are soft


def test_timestep_of_a_two_hundredth_second_moves_like_a_tenth_of_it():
    paths = []
    targets = GR1.default_joint_pos + 0.25 * np.random.default_rng(0).standard_normal((40, 23))
    for timestep in (1 / 200, 1 / 2000):
        model = GR1.model(visuals=False)
        assert model.opt.timestep == pytest.approx(1 / 200)
        model.opt.timestep = timestep
        model.opt.gravity[:] = 0
        paths.append(follow(model, at(model, GR1.default_joint_pos, height=50.0), targets))
    assert np.sqrt(np.mean((paths[0] - paths[1]) ** 2)) < 0.01


# ---------------------------------------------------------------- the mirror

PUBLISHED_MIRROR = {  # "roll and yaw flip sign, pitch does not"; the waist's map to themselves
    name: (LEFT_RIGHT.partner(name), 1 if "pitch" in name else -1) for name in JOINTS
}


def test_the_derived_mirror_is_the_published_one(model):
    mirror = mirror_of(model, LEFT_RIGHT, GR1.joint_names, GR1.feet)
    table = {
        name: (GR1.joint_names[source], sign)
        for name, source, sign in zip(
            GR1.joint_names, mirror.joints.index.tolist(), mirror.joints.sign.tolist(), strict=True
        )
    }
    assert table == PUBLISHED_MIRROR
    assert mirror.joints.is_involution
    pose = torch.tensor(GR1.default_joint_pos)
    torch.testing.assert_close(mirror.joints(pose), pose)


def test_every_body_and_geom_is_the_exact_image_of_its_partner():
    model = GR1.model()
    for body in BODIES:
        here, there = model.body(body), model.body(LEFT_RIGHT.partner(body))
        assert_allclose(there.pos, MIRROR @ here.pos, atol=0)
        assert_allclose(there.ipos, MIRROR @ here.ipos, atol=0)
        assert there.mass[0] == here.mass[0]
        assert_allclose(there.inertia, here.inertia, rtol=1e-12)
    data = at(model, np.zeros(23), height=0.0)
    shapes = {}
    for geom in range(model.ngeom):
        name, rot = model.body(model.geom_bodyid[geom]).name, data.geom_xmat[geom].reshape(3, 3)
        extent = rot @ np.diag(model.geom_size[geom] ** 2) @ rot.T  # which axis is which does not matter, nor its sign
        kind = (model.geom_type[geom], model.geom_group[geom], model.geom_matid[geom])
        shapes.setdefault(name, []).append((kind, data.geom_xpos[geom], extent))
    for name in BODIES:
        partners = list(shapes.get(LEFT_RIGHT.partner(name), []))
        for kind, pos, extent in shapes.get(name, []):
            same = [
                i
                for i, (other, there, size) in enumerate(partners)
                if other == kind
                and np.allclose(there, MIRROR @ pos, atol=1e-12)
                and np.allclose(size, MIRROR @ extent @ MIRROR, atol=1e-12)
            ]
            assert same, f"{name}: no image of the geom at {pos}"
            partners.pop(same[0])
        assert not partners


@cache
def converged() -> mujoco.MjModel:
    """A solver that stops early, as the model's own does, is wrong on either side in another way."""
    spec = mujoco.MjSpec.from_file(str(GR1.mjcf))
    spec.option.solver = mujoco.mjtSolver.mjSOL_NEWTON
    spec.option.iterations, spec.option.tolerance = 200, 1e-14
    spec.option.ls_iterations, spec.option.ls_tolerance = 200, 1e-8
    return spec.compile()


class State(NamedTuple):
    qpos: np.ndarray
    qvel: np.ndarray


def image(state: State, joints: SignedPermutation) -> State:
    def mirrored(x: np.ndarray, *blocks: tuple[int, SignedPermutation]) -> np.ndarray:
        parts = torch.from_numpy(x).split([width for width, _ in blocks])
        return torch.cat([block(part) for (_, block), part in zip(blocks, parts, strict=True)]).numpy()

    w = SignedPermutation(torch.tensor([0]), torch.tensor([1]))
    return State(
        mirrored(state.qpos, (3, polar("y")), (1, w), (3, axial("y")), (23, joints)),
        mirrored(state.qvel, (3, polar("y")), (3, axial("y")), (23, joints)),
    )


def stepped(state: State, action: np.ndarray, steps: int) -> tuple[State, int]:
    data = mujoco.MjData(converged())
    data.qpos[:], data.qvel[:], data.ctrl[:] = state.qpos, state.qvel, action
    mujoco.mj_step(converged(), data, nstep=steps)
    return State(data.qpos.copy(), data.qvel.copy()), data.ncon


def random_state(height: float, seed: int) -> tuple[State, np.ndarray]:
    random = np.random.default_rng(seed)
    quaternion = np.array([1.0, 0.0, 0.0, 0.0]) + 0.05 * random.standard_normal(4)
    joint_pos = GR1.default_joint_pos + 0.1 * random.standard_normal(23)
    qpos = [0.3, -0.2, height, *(quaternion / np.linalg.norm(quaternion)), *joint_pos]
    qvel = [*(0.5 * random.standard_normal(3)), *random.standard_normal(3), *random.standard_normal(23)]
    return State(np.array(qpos), np.array(qvel)), GR1.default_joint_pos + 0.3 * random.standard_normal(23)


def mismatch(state: State, action: np.ndarray, joints: SignedPermutation, steps: int) -> float:
    """How far the step of the image is from the image of the step."""
    image_of_step = image(stepped(state, action, steps)[0], joints)
    mirrored_action = joints(torch.from_numpy(action)).numpy()
    step_of_image = stepped(image(state, joints), mirrored_action, steps)[0]
    return max(np.abs(a - b).max() for a, b in zip(image_of_step, step_of_image, strict=True))


@pytest.mark.parametrize("steps", [1, 10, 40])
@pytest.mark.parametrize("height", [2.0, 0.86])
def test_the_mirrored_robot_does_the_mirrored_thing(height, steps):
    """Stepping the image of a state with the image of the targets gives the image of the step: 0.2 s, to 1e-8."""
    joints = mirror_of(converged(), LEFT_RIGHT, GR1.joint_names).joints
    for seed in range(5):
        state, action = random_state(height, seed)
        after, contacts = stepped(state, action, steps)
        if height < 1.0:
            assert contacts > 0
        assert np.abs(after.qvel[6:] - state.qvel[6:]).max() > 0.5  # something happens
        assert mismatch(state, action, joints, steps) < 1e-8


@pytest.mark.parametrize("joint", JOINTS)
def test_physics_notices_one_wrong_sign(joint):
    joints = mirror_of(converged(), LEFT_RIGHT, GR1.joint_names).joints
    sign = joints.sign.clone()
    sign[JOINTS.index(joint)] *= -1
    state, action = random_state(2.0, seed=0)
    assert mismatch(state, action, SignedPermutation(joints.index, sign), steps=10) > 0.01


# ---------------------------------------------------------------- model and record


def test_visuals_change_nothing_but_looks(model):
    seen = GR1.model()
    visual = seen.geom_group == 2
    assert seen.ngeom == model.ngeom + visual.sum()
    assert not np.any(seen.geom_contype[visual] | seen.geom_conaffinity[visual])
    targets = GR1.default_joint_pos + 0.2 * np.random.default_rng(2).standard_normal((20, 23))
    assert_allclose(follow(seen, standing(seen), targets), follow(model, standing(model), targets))


def test_home_keyframe_is_the_default_pose_at_rest(model):
    home = model.key("home")
    assert_allclose(home.qpos, [0, 0, GR1.root_height, 1, 0, 0, 0, *GR1.default_joint_pos])
    assert_allclose(home.ctrl, GR1.default_joint_pos)
    assert_array_equal(home.qvel, 0)
