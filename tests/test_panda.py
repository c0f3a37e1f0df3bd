"""The compiled Panda against the published figures, and against kinematics computed another way."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose

from consmimic.errors import UserError
from consmimic.robots import ROBOTS

PANDA = ROBOTS["panda"]
PI = np.pi


class Link(NamedTuple):
    name: str
    pos: tuple[float, float, float]  # in the parent link
    quat: tuple[float, float, float, float]  # wxyz
    mass: float
    com: tuple[float, float, float]
    inertia: tuple[float, ...]  # about the centre of mass: xx yy zz xy xz yz


class Limits(NamedTuple):
    low: float
    high: float
    velocity: float
    effort: float


class Pose(NamedTuple):
    joint_pos: tuple[float, ...]
    hand_pos: tuple[float, float, float]
    hand_quat: tuple[float, float, float, float]
    gravity_torque: tuple[float, ...]


# franka_description, commit 566ba44 (Apache-2.0): kinematics, inertials, joint limits, franka_arm.xacro.
# The inertia of link4 is the nearest one that a rigid body can have; see panda.xml.
LINKS = (
    Link(
        "link0",
        (0.0, 0.0, 0.0),
        (1.0, 0.0, 0.0, 0.0),
        2.3966,
        (-0.0172, 0.0004, 0.0745),
        (0.009, 0.0115, 0.0085, 0.0, 0.002, 0.0),
    ),
    Link(
        "link1",
        (0.0, 0.0, 0.333),
        (1.0, 0.0, 0.0, 0.0),
        2.7907,
        (0.00033, -0.02204, -0.04762),
        (0.01564782655, 0.01439883526, 0.00500443991, 5.31236e-06, -3.676721e-05, -0.00248480843),
    ),
    Link(
        "link2",
        (0.0, 0.0, 0.0),
        (0.707106781, -0.707106781, 0.0, 0.0),
        2.542,
        (0.00038, -0.09211, 0.01908),
        (0.01662427728, 0.00462501261, 0.01545124526, 3.086077e-05, 8.3594e-06, 0.0035589983),
    ),
    Link(
        "link3",
        (0.0, -0.316, 0.0),
        (0.707106781, 0.707106781, 0.0, 0.0),
        2.2513,
        (0.05152, 0.01696, -0.02971),
        (0.00631741992, 0.00866285493, 0.00657804051, 0.00097309955, 0.00292525834, 0.00093469224),
    ),
    Link(
        "link4",
        (0.0825, 0.0, 0.0),
        (0.707106781, 0.707106781, 0.0, 0.0),
        2.2037,
        (-0.05113, 0.05825, 0.01698),
        (0.008227945233, 0.006914554458, 0.010343461909, -0.003240688688, 0.001380374291, -0.001631299526),
    ),
    Link(
        "link5",
        (-0.0825, 0.384, 0.0),
        (0.707106781, -0.707106781, 0.0, 0.0),
        2.2855,
        (-5e-05, 0.0373, -0.0928),
        (0.02297014781, 0.02095060919, 0.00430606551, -9.49345e-06, -2.063156e-05, 0.00382345782),
    ),
    Link(
        "link6",
        (0.0, 0.0, 0.0),
        (0.707106781, 0.707106781, 0.0, 0.0),
        1.353,
        (0.06572, -0.00371, 0.00153),
        (0.00087964522, 0.00277796968, 0.00286701969, -0.00021487814, -0.00011911662, 1.274322e-05),
    ),
    Link(
        "link7",
        (0.088, 0.0, 0.0),
        (0.707106781, 0.707106781, 0.0, 0.0),
        0.35973,
        (0.00089, -0.00044, 0.05491),
        (0.00019541063, 0.00019210361, 0.00017936256, 1.65231e-06, 1.48826e-06, -1.31132e-06),
    ),
    Link(
        "hand",
        (0.0, 0.0, 0.107),
        (0.923879533, 0.0, 0.0, -0.382683432),
        0.7126,
        (-3.4529e-05, 0.010939849, 0.025597085),
        (0.002088277728, 0.000507175596, 0.001764722283, 2.394e-08, -1.19855e-07, 1.7973696e-05),
    ),
)
LIMITS = {
    "joint1": Limits(-2.8973, 2.8973, 2.175, 87.0),
    "joint2": Limits(-1.7628, 1.7628, 2.175, 87.0),
    "joint3": Limits(-2.8973, 2.8973, 2.175, 87.0),
    "joint4": Limits(-3.0718, -0.0698, 2.175, 87.0),
    "joint5": Limits(-2.8973, 2.8973, 2.61, 12.0),
    "joint6": Limits(-0.0175, 3.7525, 2.61, 12.0),
    "joint7": Limits(-2.8973, 2.8973, 2.61, 12.0),
}
CAPSULES = (  # body, radius, distance between the sphere centres, pos, quat
    ("link0", 0.06, 0.03, (-0.075, 0.0, 0.06), (0.707107, 0.0, 0.707107, 0.0)),
    ("link1", 0.06, 0.283, (0.0, 0.0, -0.1915), (1.0, 0.0, 0.0, 0.0)),
    ("link2", 0.06, 0.12, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)),
    ("link3", 0.06, 0.15, (0.0, 0.0, -0.145), (1.0, 0.0, 0.0, 0.0)),
    ("link4", 0.06, 0.12, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)),
    ("link5", 0.06, 0.1, (0.0, 0.0, -0.26), (1.0, 0.0, 0.0, 0.0)),
    ("link5", 0.025, 0.14, (0.0, 0.08, -0.13), (1.0, 0.0, 0.0, 0.0)),
    ("link6", 0.05, 0.08, (0.0, 0.0, -0.03), (1.0, 0.0, 0.0, 0.0)),
    ("link7", 0.04, 0.14, (0.0, 0.0, 0.01), (0.92388, 0.0, 0.0, 0.382683)),
    ("link7", 0.03, 0.01, (0.042426, 0.042426, 0.082), (0.653281, -0.270598, 0.653281, 0.270598)),
    ("hand", 0.04, 0.1, (0.0, 0.0, 0.04), (0.707107, 0.707107, 0.0, 0.0)),
    ("hand", 0.02, 0.1, (0.0, 0.0, 0.1), (0.707107, 0.707107, 0.0, 0.0)),
)
# Hand pose and gravity torque computed from the same figures by a separate program, to the digits shown.
POSES = {
    "isaaclab_reach": Pose(
        (0.0, -0.569, 0.0, -2.81, 0.0, 3.037, 0.741),
        (0.3894, 0.0, 0.4578),
        (0.0086, 0.9216, 0.0205, 0.3875),
        (0.0, -7.91, -0.4, 18.42, 0.58, 2.1, -0.06),
    ),
    "menagerie_home": Pose(
        (0.0, 0.0, 0.0, -1.57079, 0.0, 1.57079, -0.7853),
        (0.5545, 0.0, 0.6245),
        (0.0, 0.7071, 0.7071, 0.0),
        (0.0, -25.54, 0.0, 18.8, 0.82, 1.88, 0.0),
    ),
    "franka_ready": Pose(
        (0.0, -0.7854, 0.0, -2.35619, 0.0, 1.5708, 0.7854),
        (0.3069, 0.0, 0.5903),
        (0.0, 1.0, 0.0, 0.0),
        (0.0, -2.24, -0.53, 18.73, 0.74, 1.8, 0.0),
    ),
}
MOVING = [link.name for link in LINKS[1:]]


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return PANDA.model(visuals=False)


def rotation(quat) -> np.ndarray:
    w, x, y, z = np.asarray(quat) / np.linalg.norm(quat)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def published_kinematics(joint_pos) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Position and rotation of every link: each joint turns about the +z axis of its own link."""
    frames = {}
    pos, rot = np.zeros(3), np.eye(3)
    angles = [0.0, *joint_pos, 0.0]  # link0 and hand are fixed
    for link, angle in zip(LINKS, angles, strict=True):
        pos = pos + rot @ np.array(link.pos)
        turn = rotation([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
        rot = rot @ rotation(link.quat) @ turn
        frames[link.name] = pos, rot
    return frames


def at(model: mujoco.MjModel, joint_pos) -> mujoco.MjData:
    data = mujoco.MjData(model)
    data.qpos[PANDA.joint_qpos_indices(model)] = joint_pos
    mujoco.mj_forward(model, data)
    return data


def random_poses(n: int, seed: int = 0) -> np.ndarray:
    low, high = np.array([(limit.low, limit.high) for limit in LIMITS.values()]).T
    return np.random.default_rng(seed).uniform(low, high, size=(n, len(LIMITS)))


def follow(model: mujoco.MjModel, data: mujoco.MjData, targets: np.ndarray, timestep: float) -> np.ndarray:
    """Joint angles after each 1/30 s control step towards `targets`, (T, 7)."""
    model.opt.timestep = timestep
    path = []
    for target in targets:
        data.ctrl[PANDA.actuator_indices(model)] = target
        mujoco.mj_step(model, data, nstep=round(1 / 30 / timestep))
        path.append(data.qpos[PANDA.joint_qpos_indices(model)])
    return np.array(path)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
def test_mass_centre_and_inertia_are_the_published_ones(model, link):
    body = model.body(link.name)
    xx, yy, zz, xy, xz, yz = link.inertia
    axes = rotation(body.iquat)
    assert body.mass[0] == pytest.approx(link.mass)
    assert_allclose(body.ipos, link.com, atol=1e-12)
    assert_allclose(axes @ np.diag(body.inertia) @ axes.T, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], atol=1e-8)


def test_total_mass(model):
    assert mujoco.mj_getTotalmass(model) == pytest.approx(16.89513)


@pytest.mark.parametrize("name", LIMITS)
def test_joint_and_effort_limits_are_the_published_ones(model, name):
    limit, joint, actuator = LIMITS[name], model.joint(name), model.actuator(name)
    assert joint.limited[0] == 1
    assert_allclose(joint.range, [limit.low, limit.high])
    assert actuator.trnid[0] == joint.id
    assert actuator.forcelimited[0] == 1
    assert_allclose(actuator.forcerange, [-limit.effort, limit.effort])
    assert actuator.ctrllimited[0] == 0


def test_velocity_limits_are_the_published_ones():
    assert dict(zip(PANDA.joint_names, PANDA.joint_velocity_limits, strict=True)) == {
        name: limit.velocity for name, limit in LIMITS.items()
    }


def test_actuators_are_the_reach_tasks_springs_up_to_the_effort_limit(model):
    rest = at(model, PANDA.default_joint_pos)
    rest.ctrl[:] = np.array(PANDA.default_joint_pos) + 0.1
    rest.qvel[:] = 0.5
    mujoco.mj_forward(model, rest)
    assert_allclose(rest.actuator_force, np.full(7, 80 * 0.1 - 4 * 0.5))
    rest.ctrl[:] = 100.0
    mujoco.mj_forward(model, rest)
    assert_allclose(rest.actuator_force, [limit.effort for limit in LIMITS.values()])


def test_kinematics_agree_with_the_product_of_published_transforms(model):
    for joint_pos in random_poses(10):
        data = at(model, joint_pos)
        for name, (pos, rot) in published_kinematics(joint_pos).items():
            assert_allclose(data.body(name).xpos, pos, atol=1e-8)
            assert_allclose(data.body(name).xmat.reshape(3, 3), rot, atol=1e-8)


@pytest.mark.parametrize("name", POSES)
def test_hand_pose_and_gravity_torque_at_known_poses(name):
    pose = POSES[name]
    model = PANDA.model(visuals=False)
    model.body_gravcomp[:] = 0
    data = at(model, pose.joint_pos)
    assert_allclose(data.body("hand").xpos, pose.hand_pos, atol=1e-4)
    assert_allclose(np.abs(np.dot(data.body("hand").xquat, pose.hand_quat)), 1, atol=1e-4)
    data.qacc[:] = 0
    mujoco.mj_inverse(model, data)
    assert_allclose(data.qfrc_inverse, pose.gravity_torque, atol=0.01)


def test_tcp_lies_ahead_of_the_hand(model):
    data = at(model, PANDA.default_joint_pos)
    ahead = data.body("hand").xmat.reshape(3, 3)[:, 2]
    assert_allclose(data.site("tcp").xpos, data.body("hand").xpos + 0.1034 * ahead, atol=1e-12)


def test_mirrored_joints_mirror_the_flange_across_the_xz_plane(model):
    signs = np.array([-1, 1, -1, 1, -1, 1, -1])
    mirror = np.diag([1, -1, 1])
    for joint_pos in random_poses(10):
        flange, mirrored = at(model, joint_pos).body("link7"), at(model, signs * joint_pos).body("link7")
        assert_allclose(mirrored.xpos, mirror @ flange.xpos, atol=1e-8)
        rot = flange.xmat.reshape(3, 3)
        assert_allclose(mirrored.xmat.reshape(3, 3), mirror @ rot @ mirror, atol=1e-8)


def test_default_pose_is_held_against_gravity_without_sag(model):
    data = at(model, PANDA.default_joint_pos)
    path = follow(model, data, np.tile(PANDA.default_joint_pos, (60, 1)), 1 / 60)
    assert_allclose(path[-1], PANDA.default_joint_pos, atol=1e-6)


def test_without_compensation_joint4_would_sag():
    model = PANDA.model(visuals=False)
    model.body_gravcomp[:] = 0
    data = at(model, PANDA.default_joint_pos)
    path = follow(model, data, np.tile(PANDA.default_joint_pos, (300, 1)), 1 / 60)
    sag = np.array(PANDA.default_joint_pos) - path[-1]
    assert_allclose(sag, at(model, path[-1]).qfrc_bias / 80, atol=2e-3)  # the springs carry the weight
    assert sag[3] == pytest.approx(0.2, abs=0.01)


def test_capsules_are_the_published_ones(model):
    geoms = [model.geom(i) for i in range(model.ngeom) if model.geom(i).type[0] == mujoco.mjtGeom.mjGEOM_CAPSULE]
    assert len(geoms) == len(CAPSULES)
    for geom, (body, radius, length, pos, quat) in zip(geoms, CAPSULES, strict=True):
        assert model.body(geom.bodyid[0]).name == body
        assert_allclose(geom.size[:2], [radius, length / 2])
        assert_allclose(geom.pos, pos)
        assert_allclose(rotation(geom.quat), rotation(quat), atol=1e-6)


@pytest.mark.parametrize("name", POSES)
def test_known_poses_touch_nothing(model, name):
    assert at(model, POSES[name].joint_pos).ncon == 0


def test_only_links_that_do_not_overlap_by_design_can_touch_one_another():
    """Widen every capsule until all of them overlap: the pairs in contact are those that are not excluded."""
    spec = mujoco.MjSpec.from_file(str(PANDA.mjcf))
    spec.compiler.discardvisual = True
    for geom in spec.geoms:
        if geom.type == mujoco.mjtGeom.mjGEOM_CAPSULE:
            geom.size[0] = 2.0
    model = spec.compile()
    data = at(model, PANDA.default_joint_pos)
    touching = {frozenset(model.body(model.geom_bodyid[geom]).name for geom in pair) for pair in data.contact.geom}
    neighbours = {frozenset({a.name, b.name}) for k in (1, 2) for a, b in zip(LINKS, LINKS[k:], strict=False)}
    by_design = neighbours | {frozenset({"link5", "hand"})}
    expected = {frozenset(pair) for pair in combinations([link.name for link in LINKS], 2)} - by_design
    floor = {frozenset({"world", name}) for name in MOVING if name != "link1"}
    assert touching == expected | floor


@pytest.mark.parametrize(
    ("target", "obstacle"),
    [((0, 1.2, 0, -1.9, 0, 2.0, 0.741), "world"), ((0, -0.5, 0, -3.05, 0, 1.0, 0.741), "link1")],
    ids=["floor", "own base"],
)
def test_targets_beyond_an_obstacle_press_the_hand_against_it(model, target, obstacle):
    data = at(model, PANDA.default_joint_pos)
    follow(model, data, np.tile(target, (90, 1)), 1 / 60)
    touching = [{model.body(model.geom_bodyid[geom]).name for geom in pair} for pair in data.contact.geom]
    assert {obstacle, "hand"} in touching
    assert data.contact.dist.min() > -0.01


def test_violent_targets_neither_diverge_nor_warn():
    """Targets of an untrained policy, default + 0.5 N(0, 1) at 30 Hz, from poses all over the joint range."""
    model = PANDA.model(visuals=False)
    low, high = model.jnt_range.T
    rng = np.random.default_rng(0)
    for start in random_poses(4):
        data = at(model, start)
        targets = PANDA.default_joint_pos + PANDA.action_scale * rng.standard_normal((600, 7))
        path = follow(model, data, targets, 1 / 60)
        assert not any(warning.number for warning in data.warning)
        assert np.all(np.isfinite(path))
        assert np.maximum(low - path, path - high).max() < 0.2  # limits are soft


def test_timestep_of_a_sixtieth_second_settles_like_a_tenth_of_it():
    model = PANDA.model(visuals=False)
    assert model.opt.timestep == pytest.approx(1 / 60)
    low, high = model.jnt_range.T
    noise = np.random.default_rng(1).standard_normal((3, 2, 7))
    for start, target in np.clip(PANDA.default_joint_pos + 0.5 * noise, low, high):
        paths = [follow(model, at(model, start), np.tile(target, (180, 1)), step) for step in (1 / 60, 1 / 600)]
        assert np.sqrt(np.mean((paths[0] - paths[1]) ** 2)) < 0.02
        for path in paths:
            assert_allclose(path[-1], target, atol=0.01)


def test_visuals_change_nothing_but_looks(model):
    seen = PANDA.model()
    assert seen.ngeom > model.ngeom
    visual = seen.geom_group == 2
    assert not np.any(seen.geom_contype[visual] | seen.geom_conaffinity[visual])
    start = PANDA.default_joint_pos
    targets = start + 0.5 * np.random.default_rng(2).standard_normal((30, 7))
    assert_allclose(follow(seen, at(seen, start), targets, 1 / 60), follow(model, at(model, start), targets, 1 / 60))


def test_home_keyframe_is_the_default_pose_at_rest(model):
    home = model.key("home")
    assert_allclose(home.qpos, PANDA.default_joint_pos)
    assert_allclose(home.ctrl, PANDA.default_joint_pos)
    assert_allclose(home.qvel, 0)


def test_each_call_compiles_a_model_of_its_own():
    first = PANDA.model(visuals=False)
    first.opt.timestep = 1.0
    assert PANDA.model(visuals=False).opt.timestep != 1.0


def test_indices_follow_the_names_whatever_their_order(model):
    backwards = replace(PANDA, joint_names=PANDA.joint_names[::-1])
    assert backwards.joint_qpos_indices(model).tolist() == [6, 5, 4, 3, 2, 1, 0]
    assert backwards.joint_qvel_indices(model).tolist() == [6, 5, 4, 3, 2, 1, 0]
    assert backwards.actuator_indices(model).tolist() == [6, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"joint_names": ("elbow", *PANDA.joint_names[1:])}, r"unknown joint .*'elbow'.* joint1, joint2"),
        ({"end_effector": "gripper"}, r"unknown end effector .*'gripper'.* link7, hand"),
        ({"default_joint_pos": (0.0,) * 7}, r"default_joint_pos of joint4 is 0.0. Valid: -3.0718 to -0.0698"),
    ],
)
def test_a_mismatch_with_the_model_is_named_with_the_choices(change, message):
    with pytest.raises(UserError, match=message):
        replace(PANDA, **change).model()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"default_joint_pos": (0.0,) * 6}, "default_joint_pos has 6 values for 7 joints: joint1, joint2"),
        ({"joint_velocity_limits": (1.0,)}, "joint_velocity_limits has 1 values for 7 joints"),
        ({"joint_names": ("joint1",) * 7}, "named twice"),
        ({"mjcf": Path("nowhere.xml")}, r"no model at nowhere\.xml"),
    ],
)
def test_a_robot_that_cannot_be_is_refused_when_built(change, message):
    with pytest.raises(UserError, match=message):
        replace(PANDA, **change)
