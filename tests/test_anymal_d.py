"""The compiled ANYmal D against the published figures, and against kinematics computed another way."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose

from consmimic.errors import UserError
from consmimic.robots import ROBOTS

ANYMAL = ROBOTS["anymal_d"]
LEGS = ("LF", "RF", "LH", "RH")
FOOT_RADIUS = 0.031455
WEIGHT = 51.53921 * 9.81
TURN = np.pi / 2


class Link(NamedTuple):
    name: str
    pos: tuple[float, float, float]  # in the parent link
    mass: float
    com: tuple[float, float, float]
    inertia: tuple[float, ...]  # about the centre of mass: xx yy zz xy xz yz


# anymal_d_simple_description without payload, commit 4b237da (BSD-3-Clause), fixed links merged, turned to x forward.
BASE = Link(
    "base",
    (0.0, 0.0, 0.0),
    26.36305,
    (-0.016448109, 0.000682107, -0.011954169),
    (0.251773456808, 1.467867287967, 1.533961024978, 0.005083769221, 0.02386815356, 0.000582815879),
)
LEFT_FRONT = (
    Link(
        "HIP",
        (0.304, 0.109, 0.0),
        0.36586,
        (0.035046993, -0.001226767, 0.0),
        (0.000238523498, 0.000558245672, 0.000443321119, 3.255359e-06, 1.268e-08, 1.811e-08),
    ),
    Link(
        "THIGH",
        (0.069, 0.006, 0.0),
        5.1322,
        (-8.7955e-05, 0.090511296, -0.140188024),
        (0.107958781006, 0.104880226251, 0.013932880753, 0.00014199042, 0.000403000448, 0.020059450311),
    ),
    Link(
        "SHANK",
        (0.0, 0.1805, -0.285),
        0.49954,
        (0.02181624, 0.008932084, 0.000419159),
        (0.000550476258, 0.001671190219, 0.001274143065, 2.1275895e-05, 1.6869857e-05, 1.712089e-06),
    ),
    Link(
        "FOOT",
        (0.1, 0.02225, -0.39246),
        0.29644,
        (0.0, -0.01559, 0.15004),
        (0.00514263169, 0.0051315957, 0.00011890148, 1.46e-09, 6.85e-09, 0.00016323086),
    ),
)
# The drives within the thighs are not mirrored: those of RF and LH differ from those of LF and RH.
OTHER_THIGH_XY_XZ = (0.000281267745, 0.00024219467)
# The URDF's own frames: yaws of HAA drive, hip, HFE output, thigh, KFE drive and shank, and the signs of the x axes.
YAWS = {
    "LF": (0, 0, -TURN, TURN, TURN, -TURN),
    "RF": (0, 0, TURN, -TURN, -TURN, TURN),
    "LH": (-2 * TURN, -2 * TURN, -TURN, TURN, TURN, -TURN),
    "RH": (-2 * TURN, -2 * TURN, TURN, -TURN, -TURN, TURN),
}
AXES = {"LF": (1, -1, 1), "RF": (1, 1, -1), "LH": (-1, -1, 1), "RH": (-1, 1, -1)}
# Isaac Lab's default pose, and where it puts the foot frames in the base.
DEFAULT_POSE = dict.fromkeys(("LF", "RF"), (0.0, 0.4, -0.8)) | dict.fromkeys(("LH", "RH"), (0.0, -0.4, 0.8))
DEFAULT_FEET = {
    "LF": (0.50695, 0.31775, -0.58504),
    "RF": (0.50695, -0.31775, -0.58504),
    "LH": (-0.50695, 0.31775, -0.58504),
    "RH": (-0.50695, -0.31775, -0.58504),
}


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return ANYMAL.model(visuals=False)


def front(leg: str) -> int:
    return 1 if leg[1] == "F" else -1


def left(leg: str) -> int:
    return 1 if leg[0] == "L" else -1


def published_link(leg: str, link: Link) -> Link:
    """The link of the left front leg, mirrored to another leg."""
    x, y = front(leg), left(leg)
    xx, yy, zz, xy, xz, yz = link.inertia
    if link.name == "THIGH" and x * y < 0:
        xy, xz = OTHER_THIGH_XY_XZ
    mirror = np.array([x, y, 1])
    return Link(
        f"{leg}_{link.name}", tuple(mirror * link.pos), link.mass, tuple(mirror * link.com),
        (xx, yy, zz, x * y * xy, x * xz, y * yz),
    )  # fmt: skip


LINKS = (BASE, *(published_link(leg, link) for leg in LEGS for link in LEFT_FRONT))


def rotation(axis: int, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.eye(3)
    matrix[i, i], matrix[i, j], matrix[j, i], matrix[j, j] = c, -s, s, c
    return matrix


def published_foot(leg: str, angles) -> np.ndarray:
    """Position of the foot frame in the base through the URDF's own frames: every joint turns about its ±x axis."""
    mirror = np.array([front(leg), left(leg), 1])
    drive, hip, hfe_output, thigh, kfe_drive, shank = (rotation(2, yaw) for yaw in YAWS[leg])
    haa, hfe, kfe = (rotation(0, sign * angle) for sign, angle in zip(AXES[leg], angles, strict=True))
    rot, pos = drive @ haa @ hip, mirror * (0.304, 0.109, 0.0)
    pos = pos + rot @ (mirror * (0.069, 0.006, 0.0))
    rot = rot @ hfe_output @ hfe @ thigh
    pos = pos + rot @ (mirror * (0.0, 0.1805, -0.285))
    rot = rot @ kfe_drive @ kfe @ shank
    return pos + rot @ (mirror * (0.1, 0.02225, -0.39246))


def at(model: mujoco.MjModel, joint_pos, height: float = 2.0) -> mujoco.MjData:
    data = mujoco.MjData(model)
    data.qpos[2] = height
    data.qpos[ANYMAL.joint_qpos_indices(model)] = joint_pos
    mujoco.mj_forward(model, data)
    return data


def feet_in_base(data: mujoco.MjData) -> np.ndarray:
    return np.array([data.body(foot).xpos - data.body("base").xpos for foot in ANYMAL.feet])


def standing(model: mujoco.MjModel) -> mujoco.MjData:
    data = at(model, ANYMAL.default_joint_pos, ANYMAL.root_height)
    data.ctrl[ANYMAL.actuator_indices(model)] = ANYMAL.default_joint_pos
    return data


def random_poses(model: mujoco.MjModel, n: int, seed: int = 0) -> np.ndarray:
    low, high = model.jnt_range[1:].T
    return np.random.default_rng(seed).uniform(low, high, size=(n, 12))


def slip(model: mujoco.MjModel, seconds: float) -> float:
    """How far the sole of the worst foot slides (not rolls) over the ground while the default pose is held."""
    data = standing(model)
    geoms = [model.geom(foot).id for foot in ANYMAL.feet]
    slid, velocity = np.zeros((4, 2)), np.zeros(6)
    for _ in range(round(seconds / model.opt.timestep)):
        mujoco.mj_step1(model, data)
        for foot, geom in enumerate(geoms):
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_GEOM, geom, velocity, 0)
            wx, wy, _, vx, vy, _ = velocity
            slid[foot] += vx - FOOT_RADIUS * wy, vy + FOOT_RADIUS * wx
        mujoco.mj_step2(model, data)
    return np.linalg.norm(slid, axis=1).max() * model.opt.timestep


def follow(model: mujoco.MjModel, data: mujoco.MjData, targets: np.ndarray) -> np.ndarray:
    """Joint angles after each 1/50 s control step towards `targets`, (T, 12)."""
    path = []
    for target in targets:
        data.ctrl[ANYMAL.actuator_indices(model)] = target
        mujoco.mj_step(model, data, nstep=round(1 / 50 / model.opt.timestep))
        path.append(data.qpos[ANYMAL.joint_qpos_indices(model)])
    return np.array(path)


# ---------------------------------------------------------------- the published figures


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
def test_frame_mass_centre_and_inertia_are_the_published_ones(model, link):
    body = model.body(link.name)
    xx, yy, zz, xy, xz, yz = link.inertia
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, body.iquat)
    axes = axes.reshape(3, 3)
    if link.name != "base":
        assert_allclose(body.pos, link.pos, atol=1e-12)
        assert_allclose(body.quat, [1, 0, 0, 0])
    assert body.mass[0] == pytest.approx(link.mass)
    assert_allclose(body.ipos, link.com, atol=1e-12)
    assert_allclose(axes @ np.diag(body.inertia) @ axes.T, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], atol=1e-9)


def test_total_mass(model):
    assert mujoco.mj_getTotalmass(model) == pytest.approx(51.53921)


@pytest.mark.parametrize("leg", LEGS)
def test_joint_limits(model, leg):
    outward, inward = 0.6108655, 0.7853985  # published
    assert_allclose(model.joint(f"{leg}_HAA").range, [-inward, outward] if left(leg) > 0 else [-outward, inward])
    assert_allclose(model.joint(f"{leg}_HFE").range, [-2, 2])
    assert_allclose(model.joint(f"{leg}_KFE").range, [-2.6, 0] if front(leg) > 0 else [0, 2.6])


def test_joints_and_default_pose_are_in_the_order_of_the_urdf():
    assert ANYMAL.joint_names == tuple(f"{leg}_{joint}" for leg in LEGS for joint in ("HAA", "HFE", "KFE"))
    assert ANYMAL.default_joint_pos == tuple(angle for leg in LEGS for angle in DEFAULT_POSE[leg])


def test_feet_stand_where_isaac_lab_has_them_and_touch_the_ground(model):
    data = at(model, ANYMAL.default_joint_pos, ANYMAL.root_height)
    assert_allclose(feet_in_base(data), [DEFAULT_FEET[leg] for leg in LEGS], atol=1e-5)
    for foot in ANYMAL.feet:
        assert model.geom(foot).size[0] == pytest.approx(FOOT_RADIUS)
        assert data.geom(foot).xpos[2] == pytest.approx(FOOT_RADIUS, abs=1e-5)


def test_kinematics_agree_with_the_frames_of_the_urdf(model):
    for joint_pos in random_poses(model, 10):
        published = [published_foot(leg, angles) for leg, angles in zip(LEGS, joint_pos.reshape(4, 3), strict=True)]
        assert_allclose(feet_in_base(at(model, joint_pos)), published, atol=1e-12)


@pytest.mark.parametrize(
    ("partners", "signs", "mirror"),
    [((1, 0, 3, 2), (-1, 1, 1), (1, -1, 1)), ((2, 3, 0, 1), (1, -1, -1), (-1, 1, 1))],
    ids=["left-right", "front-back"],
)
def test_kinematics_are_symmetric(model, partners, signs, mirror):
    for joint_pos in random_poses(model, 10):
        mirrored = (joint_pos.reshape(4, 3)[list(partners)] * signs).ravel()
        feet = feet_in_base(at(model, joint_pos))
        assert_allclose(feet_in_base(at(model, mirrored)), feet[list(partners)] * mirror, atol=1e-12)


# ---------------------------------------------------------------- motors


def test_motors_follow_the_published_torque_speed_curve(model):
    data = at(model, ANYMAL.default_joint_pos)
    joints, actuators = ANYMAL.joint_qvel_indices(model), ANYMAL.actuator_indices(model)
    for error in (-3.0, -1.7, -0.4, 0.0, 0.3, 1.9, 4.0):
        for velocity in np.linspace(-12.0, 12.0, 49):
            data.ctrl[actuators] = np.array(ANYMAL.default_joint_pos) + error
            data.qvel[joints] = velocity
            mujoco.mj_forward(model, data)
            highest = min(120 * (1 - velocity / 7.5), 80)
            lowest = max(120 * (-1 - velocity / 7.5), -80)
            torque = np.clip(80 * error - 2 * velocity, lowest, highest)
            assert_allclose(data.actuator_force[actuators], torque, atol=1e-9)
            assert_allclose(data.qfrc_actuator[joints], torque, atol=1e-9)


def test_motors_have_the_names_of_their_joints_and_no_state(model):
    assert model.na == 0
    for name in ANYMAL.joint_names:
        assert model.actuator(name).trnid[0] == model.joint(name).id
        assert model.actuator(name).ctrllimited[0] == 0


def test_timestep_of_a_two_hundredth_second_moves_like_a_tenth_of_it():
    paths, speeds = [], []
    targets = ANYMAL.default_joint_pos + np.random.default_rng(0).standard_normal((40, 12))
    for timestep in (1 / 200, 1 / 2000):
        model = ANYMAL.model(visuals=False)
        assert model.opt.timestep == pytest.approx(1 / 200)
        model.opt.timestep = timestep
        model.opt.gravity[:] = 0
        data = at(model, ANYMAL.default_joint_pos, height=50.0)
        path = []
        for target in targets:
            path.append(follow(model, data, [target])[0])
            speeds.append(np.abs(data.qvel[ANYMAL.joint_qvel_indices(model)]).max())
        paths.append(path)
    assert np.sqrt(np.mean((np.array(paths[0]) - paths[1]) ** 2)) < 0.02
    assert max(speeds) < 10.0  # without armature: 20 rad/s


def test_violent_targets_neither_diverge_nor_warn(model):
    """Targets of an untrained policy at 50 Hz: default + 0.5 N(0, 1), and three times that."""
    low, high = model.jnt_range[1:].T
    random = np.random.default_rng(0)
    for scale in (0.5, 1.5):
        data = standing(model)
        path = follow(model, data, ANYMAL.default_joint_pos + scale * random.standard_normal((150, 12)))
        assert not any(warning.number for warning in data.warning)
        assert np.all(np.isfinite(path))
        assert np.maximum(low - path, path - high).max() < 0.2  # limits are soft


# ---------------------------------------------------------------- contacts


def test_feet_do_not_slip_while_standing(model):
    assert slip(model, seconds=5.0) < 0.005


def test_cheap_contacts_would_slip():
    model = ANYMAL.model(visuals=False)
    model.opt.cone, model.opt.impratio = mujoco.mjtCone.mjCONE_PYRAMIDAL, 1
    assert slip(model, seconds=2.0) > 0.05


def test_standing_robot_sags_on_its_springs_and_comes_to_rest(model):
    data = standing(model)
    path = follow(model, data, np.tile(ANYMAL.default_joint_pos, (250, 1)))
    assert data.qpos[2] == pytest.approx(0.549, abs=0.01)
    assert np.abs(path[-1] - path[-10]).max() < 0.001
    springs = 80 * (ANYMAL.default_joint_pos - path[-1])
    assert_allclose(data.actuator_force, springs, atol=0.05)


def test_foot_sensors_carry_the_weight_and_the_others_nothing(model):
    data = standing(model)
    mujoco.mj_step(model, data, nstep=1000)
    force = {model.sensor(i).name: data.sensor(i).data for i in range(model.nsensor)}
    feet = np.array([force.pop(f"contact_{foot}") for foot in ANYMAL.feet])
    assert np.all(feet[:, 2] > 0.15 * WEIGHT)
    assert_allclose(feet.sum(axis=0), [0, 0, WEIGHT], atol=1.0)
    assert set(force) == {"contact_base", *(f"contact_{leg}_{link}" for leg in LEGS for link in ("THIGH", "SHANK"))}
    assert not np.any(list(force.values()))


def test_each_body_feels_its_own_contacts(model):
    """Turned and bent at random, and lowered until it touches the ground."""
    random = np.random.default_rng(0)
    floor = model.geom("floor").id
    bodies = np.array([model.sensor(i).name.removeprefix("contact_") for i in range(model.nsensor)])
    ever_felt = set()
    for pose in random_poses(model, 150):
        data = at(model, pose, height=3.0)
        data.qpos[3:7] = random.standard_normal(4)
        mujoco.mj_kinematics(model, data)
        gaps = [mujoco.mj_geomDistance(model, data, floor, geom, 10.0, None) for geom in range(model.ngeom)[1:]]
        data.qpos[2] -= min(gaps) + 0.005
        mujoco.mj_forward(model, data)
        pairs = data.contact.geom[data.efc_force[data.contact.efc_address] > 0]
        touching = {model.body(model.geom_bodyid[geom]).name for geom in pairs.ravel()} - {"world"}
        felt = set(bodies[data.sensordata.reshape(-1, 3).any(axis=1)])
        assert felt == touching
        ever_felt |= felt
    assert len(ever_felt) == model.nsensor


def test_only_the_robots_friction_counts():
    model = ANYMAL.model(visuals=False)
    assert_allclose(model.geom_friction[:, 0], 0.8)
    model.geom_friction[model.geom_bodyid > 0, 0] = 0.3
    data = standing(model)
    assert_allclose(data.contact.friction[:, 0], 0.3)


def test_legs_do_not_pass_through_each_other(model):
    inward = at(model, (-0.78, 0.4, -0.8, 0.78, 0.4, -0.8, 0, -0.4, 0.8, 0, -0.4, 0.8))
    names = {frozenset(model.body(model.geom_bodyid[geom]).name for geom in pair) for pair in inward.contact.geom}
    assert frozenset({"LF_FOOT", "RF_FOOT"}) in names or frozenset({"LF_SHANK", "RF_SHANK"}) in names


def test_default_pose_touches_nothing_but_the_ground(model):
    data = at(model, ANYMAL.default_joint_pos)
    assert data.ncon == 0


# ---------------------------------------------------------------- model and record


def test_visuals_change_nothing_but_looks(model):
    seen = ANYMAL.model()
    visual = seen.geom_group == 2
    assert seen.ngeom == model.ngeom + visual.sum()
    assert not np.any(seen.geom_contype[visual] | seen.geom_conaffinity[visual])
    targets = ANYMAL.default_joint_pos + 0.3 * np.random.default_rng(2).standard_normal((30, 12))
    assert_allclose(follow(seen, standing(seen), targets), follow(model, standing(model), targets))


def test_home_keyframe_is_the_default_pose_at_rest(model):
    home = model.key("home")
    assert_allclose(home.qpos, [0, 0, ANYMAL.root_height, 1, 0, 0, 0, *ANYMAL.default_joint_pos])
    assert_allclose(home.ctrl, ANYMAL.default_joint_pos)
    assert_allclose(home.qvel, 0)


def test_a_foot_that_is_no_body_is_refused():
    with pytest.raises(UserError, match=r"unknown foot of robot anymal_d 'LF_HOOF'.* LF_FOOT"):
        replace(ANYMAL, feet=("LF_HOOF",)).model()
