"""Checking clips: what is planted is found, what is clean passes, and what is assumed of forces obeys mechanics."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose

import planted
from consmimic.cli import main
from consmimic.errors import UserError
from consmimic.motions import Clip, kinematics
from consmimic.motions.check import check_clip, check_file
from consmimic.motions.checks.finding import THRESHOLDS, ClipReport
from consmimic.motions.forward import clip_positions, floating_base
from consmimic.motions.gait import cycle_frames, over_a_cycle
from consmimic.motions.inverse_dynamics import derivatives, effort, torque_limits
from consmimic.motions.reach import SinusoidalReach, generate_reach
from consmimic.motions.replay import Replay, Soles
from consmimic.motions.trot import Trot, generate_trot
from consmimic.motions.walk import Walk, generate_walk
from consmimic.robots import ROBOTS, Robot
from real_clips import real, retargeted

ANYMAL, PANDA, GR1 = ROBOTS["anymal_d"], ROBOTS["panda"], ROBOTS["gr1"]
MODEL = ANYMAL.model(visuals=False)


@cache
def trot(settings: Trot = Trot()) -> Clip:  # noqa: B008 - immutable
    return generate_trot(
        MODEL,
        root="base",
        feet=ANYMAL.feet,
        joint_names=ANYMAL.joint_names,
        default_joint_pos=ANYMAL.default_joint_pos,
        joint_velocity_limits=ANYMAL.joint_velocity_limits,
        trot=settings,
    )


@cache
def reach() -> Clip:
    return generate_reach(
        PANDA.model(),
        joint_names=PANDA.joint_names,
        start_joint_pos=PANDA.default_joint_pos,
        end_effector="hand",
        goal_pos=(0.4, 0.0, 0.25),
        goal_quat=(0.0, 1.0, 0.0, 0.0),
        path=SinusoidalReach(),
    )


@cache
def walk(speed: float) -> Clip:
    model = GR1.model(visuals=False)
    return generate_walk(
        model,
        root="base_link",
        feet=GR1.feet,
        joint_names=GR1.joint_names,
        default_joint_pos=GR1.default_joint_pos,
        joint_velocity_limits=GR1.joint_velocity_limits,
        walk=Walk(speed=speed, strides=3),
    )


LEFT_RIGHT = {robot.name: robot.left_right(robot.model(visuals=False)) for robot in ROBOTS.values()}


def checked(clip: Clip, robot: Robot = ANYMAL, **kwargs) -> ClipReport:
    return check_clip(clip, robot, left_right=LEFT_RIGHT[robot.name], **kwargs)


def found(report: ClipReport, check: str) -> str:
    return next(finding.found for finding in report.findings if finding.check == check)


# ---------------------------------------------------------------- faults × detected

CLEAN: dict[str, Callable[[], tuple[Clip, Robot]]] = {
    "trot": lambda: (trot(), ANYMAL),
    "trot with all bodies": lambda: (planted.with_all_bodies(trot(), ANYMAL), ANYMAL),
    "trot another way": lambda: (planted.turned(trot(), 1.0), ANYMAL),
    "trot, base only": lambda: (planted.base_only(planted.turned(trot(), 1.0)), ANYMAL),
    "slow trot at 100 fps": lambda: (trot(Trot(speeds=(0.5,), fps=100.0)), ANYMAL),
    "reach": lambda: (reach(), PANDA),
    "walk at 0.6 m/s": lambda: (walk(0.6), GR1),
    "walk at 1.2 m/s": lambda: (walk(1.2), GR1),
    "walk at 1.6 m/s": lambda: (walk(1.6), GR1),
}
ANKLES = "joint torques"
"""GR1's ankles hold 42 N m, and who rolls over his toes as people do needs 89 N m and more: this is so."""
TRUE_WARNINGS = {"walk at 0.6 m/s": (ANKLES,), "walk at 1.2 m/s": (ANKLES,), "walk at 1.6 m/s": (ANKLES,)}
RETARGETED: dict[str, tuple[str, tuple[str, ...]]] = {  # robot, and what is true of these
    "deepmimic_mit/humanoid3d_walk.txt": ("gr1", (ANKLES,)),
    "isaaclab_bsd3/humanoid_walk.npz": ("gr1", (ANKLES, "left-right asymmetry")),
    "pybullet_zlib/laikago_walk.txt": ("anymal_d", (ANKLES,)),  # Laikago's steps on a robot three times as heavy
}


@dataclass(frozen=True)
class Fault:
    plant: Callable[[Clip], Clip]
    cause: str
    follows: tuple[str, ...] = ()
    """What else may fail of it."""
    legs: bool = True
    """Whether it can be planted on a robot with legs; all but these can on an arm."""
    arms: bool = True
    on_base: bool = True
    """Whether a clip of the base alone shows it."""


SHAKEN = (
    "joint speeds",
    "jerk",
    "joint torques",
    "bodies fit joints",
    "ground penetration",
    "joint limits",
    "foot slip",
)
MISTAKEN = ("bodies fit joints", "ground penetration", "joint limits", "foot slip")
FAULTS = {
    "slip": Fault(planted.slipping, "foot slip", arms=False),
    "penetration": Fault(planted.sunk, "ground penetration", arms=False),
    "floating": Fault(planted.floating, "ground contact", arms=False),
    "quaternion order": Fault(
        planted.xyzw,
        "quaternion order",
        ("bodies fit joints", "frame rate", "ground penetration", "foot slip"),
    ),
    "swapped legs": Fault(planted.swapped_legs, "leg order", MISTAKEN, arms=False, on_base=False),
    "half the fps": Fault(planted.half_speed, "frame rate"),
    "50 for 60 fps": Fault(planted.slightly_slow, "frame rate"),
    "spike": Fault(planted.spiked, "spikes", SHAKEN),
    "jump": Fault(planted.seamed, "spikes", SHAKEN),
    "noise": Fault(planted.noisy, "jerk", SHAKEN),
}


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_clip_raises_no_alarm(name):
    clip, robot = CLEAN[name]()
    report = checked(clip, robot)
    assert report.of("FAIL") == ()
    assert report.of("WARN") == TRUE_WARNINGS.get(name, ())


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", CLEAN)
def test_a_planted_fault_is_found_and_named_first(name, fault):
    check_is_found(*CLEAN[name](), name, fault)


@real
@pytest.mark.parametrize("name", RETARGETED)
def test_a_retargeted_clip_fails_nothing(name):
    robot, warnings = RETARGETED[name]
    report = checked(retargeted(name, robot).clip, ROBOTS[robot])
    assert report.of("FAIL") == ()
    assert set(report.of("WARN")) == set(warnings)


@real
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", RETARGETED)
def test_a_fault_planted_in_a_retargeted_clip_is_found(name, fault):
    robot = RETARGETED[name][0]
    check_is_found(retargeted(name, robot).clip, ROBOTS[robot], name, fault)


def check_is_found(clip: Clip, robot: Robot, name: str, fault: str) -> None:
    planted_fault = FAULTS[fault]
    if robot is PANDA and not planted_fault.arms:
        pytest.skip("an arm has no feet")
    if "base only" in name and not planted_fault.on_base:
        pytest.skip("joints and base alone do not show it")
    report = checked(planted_fault.plant(clip), robot)
    assert planted_fault.cause in report.of("FAIL")
    assert set(report.of("FAIL")) <= {planted_fault.cause, *planted_fault.follows}
    assert report.status == "FAIL"


@pytest.mark.parametrize("robot", [ANYMAL, PANDA, GR1])
def test_joints_beyond_their_limits_are_found(robot):
    clip = {"anymal_d": trot, "panda": reach, "gr1": lambda: walk(1.2)}[robot.name]()
    report = checked(planted.beyond_limits(robot)(clip), robot)
    assert "joint limits" in report.of("FAIL")
    assert found(report, "joint limits").startswith(f"{robot.joint_names[0]} is at ")


def test_a_limp_is_asymmetry():
    report = checked(trot(Trot(speeds=(0.9,), asymmetry=1.0)))
    assert report.of("WARN", "FAIL") == ("left-right asymmetry",)


def test_the_right_frame_rate_is_named():
    assert "they fit 50 fps" in found(checked(planted.half_speed(trot())), "frame rate")
    stale = replace(trot(), joint_vel=np.zeros_like(trot().joint_vel))
    assert "joint_vel is 0" in found(checked(stale), "frame rate")


def test_a_wrong_order_is_found_even_where_bodies_were_recomputed_from_it():
    for clip in (trot(), planted.turned(trot(), 1.0)):
        report = checked(planted.with_all_bodies(planted.xyzw(clip), ANYMAL))
        assert "quaternion order" in report.of("FAIL")
        assert "leg order" not in report.of("FAIL")


def test_the_exchanged_legs_are_named():
    words = found(checked(planted.swapped_legs(trot())), "leg order")
    assert "LF_FOOT ← RF_FOOT" in words
    assert "LH_FOOT ← RH_FOOT" in words


def test_joints_too_fast_for_the_motors():
    fast = replace(trot(), fps=65.0, joint_vel=trot().joint_vel * 1.3, body_lin_vel_w=trot().body_lin_vel_w * 1.3)
    fast = replace(fast, body_ang_vel_w=trot().body_ang_vel_w * 1.3)
    assert "joint speeds" in checked(fast).of("FAIL")


def test_a_loop_is_judged_at_its_seam():
    steady = trot(Trot(speeds=(0.9,), frequency=50 / 28, frequency_per_speed=0.0))
    whole = sliced(steady, 0, 28)  # the last frame is one before the first
    assert "loop seam" not in checked(whole, loop=True).of("WARN", "FAIL", "SKIP")
    cut = sliced(steady, 0, 24)
    assert "loop seam" in checked(cut, loop=True).of("WARN", "FAIL")
    assert "loop seam" in checked(reach(), PANDA, loop=True).of("FAIL")
    assert "loop seam" in checked(reach(), PANDA).of("SKIP")


def sliced(clip: Clip, first: int, last: int) -> Clip:
    fields = ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w")
    return replace(clip, **{name: getattr(clip, name)[first:last] for name in fields})


@pytest.mark.parametrize("frames", [1, 2, 4])
def test_clips_of_few_frames_are_checked_as_far_as_they_go(frames):
    report = checked(sliced(trot(), 0, frames))
    assert "foot slip" in report.of("SKIP")
    assert report.of("FAIL") == ()


def test_every_check_has_a_threshold_with_a_reason():
    report = checked(trot())
    assert [finding.check for finding in report.findings] == list(THRESHOLDS)
    assert all(limit.why for limit in THRESHOLDS.values())
    assert all(limit.warn <= limit.fail for limit in THRESHOLDS.values())


def test_advice_stands_where_something_is_to_be_done():
    report = checked(planted.sunk(trot()))
    for finding in report.findings:
        assert bool(finding.advice) == (finding.status in ("WARN", "FAIL"))
    assert "lift the whole clip by 30 mm" in next(f.advice for f in report.findings if f.status == "FAIL")


# ---------------------------------------------------------------- files and the command line


def saved(clip: Clip, path: Path, **changes: np.ndarray) -> Path:
    clip.save(path)
    with np.load(path) as file:
        members = {name: file[name] for name in file.files} | changes
    np.savez(path, **members)
    return path


def test_numbers_that_are_none_are_a_finding(tmp_path):
    joints = trot().joint_pos.copy()
    joints[40:43, 2] = np.nan
    quats = trot().body_quat_w.copy()
    quats[7, 0] *= 1.1
    path = saved(trot(), tmp_path / "clip.npz", joint_pos=joints, body_quat_w=quats)
    with pytest.raises(UserError, match="not finite"):
        Clip.load(path)
    report = check_file(path, ANYMAL)
    assert report.of("FAIL") == ("numbers",)
    assert found(report, "numbers") == (
        "3 in joint_pos, first in frame 40, in 3 frames, 4 in body_quat_w, first in frame 7, in 1 frames"
    )


@pytest.mark.parametrize("name", CLEAN)
def test_a_nan_is_found_in_every_clip_and_nothing_else(tmp_path, name):
    clip, robot = CLEAN[name]()
    joints = clip.joint_pos.copy()
    joints[20, 0] = np.nan
    report = check_file(saved(clip, tmp_path / "clip.npz", joint_pos=joints), robot)
    assert report.of("FAIL") == ("numbers",)


def test_a_clip_of_nothing_but_nan_is_reported(tmp_path):
    path = saved(reach(), tmp_path / "clip.npz", joint_pos=np.full_like(reach().joint_pos, np.nan))
    assert "numbers" in check_file(path, PANDA).of("FAIL")


@pytest.mark.parametrize("fps", [1e-300, 0.5, 1e6])
def test_frame_rates_that_no_motion_has_are_refused(fps):
    with pytest.raises(UserError, match="fps is .*; valid are 1 to 10000"):
        checked(replace(reach(), fps=fps), PANDA)


def test_numbers_that_overflow_fail_and_json_stays_json():
    with np.errstate(all="ignore"):
        report = checked(replace(reach(), joint_vel=reach().joint_vel * 1e200), PANDA)
    assert "frame rate" in report.of("FAIL")
    json.dumps(report.as_dict(), allow_nan=False)


def call(*words: object) -> int:
    with pytest.raises(SystemExit) as exit_:
        main([str(word) for word in words])
    return int(exit_.value.code or 0)


def test_the_exit_code_says_what_was_found(tmp_path, capsys):
    clean, limping, broken = (tmp_path / f"{name}.npz" for name in ("clean", "limping", "broken"))
    trot().save(clean)
    trot(Trot(speeds=(0.9,), asymmetry=1.0)).save(limping)
    planted.sunk(trot()).save(broken)
    assert call("motions", "check", clean, "--robot", "anymal_d") == 0
    assert "nothing wrong found" in capsys.readouterr().out
    assert call("motions", "check", limping, "--robot", "anymal_d") == 0
    assert "warns of left-right asymmetry" in " ".join(capsys.readouterr().out.split())
    assert call("motions", "check", broken, "--robot", "anymal_d") == 1
    assert "fails ground penetration" in " ".join(capsys.readouterr().out.split())


def test_json_has_values_units_thresholds_and_reasons(tmp_path, capsys):
    path = tmp_path / "clip.npz"
    planted.slipping(trot()).save(path)
    assert call("motions", "check", path, "--robot", "anymal_d", "--json") == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["status"], report["robot"], report["frames"]) == ("FAIL", "anymal_d", len(trot()))
    slip = next(row for row in report["findings"] if row["check"] == "foot slip")
    assert slip["value"] == pytest.approx(0.2, abs=0.002)
    assert (slip["unit"], slip["warn_above"], slip["fail_above"]) == ("m/s", 0.05, 0.1)
    assert next(row for row in report["findings"] if row["check"] == "energy")["fail_above"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("there.npz", "--robot", "anymal_d"), "no clip at there.npz"),
        (("text.npz", "--robot", "anymal_d"), "not an npz file"),
        (("clip.npz", "--robot", "spot"), "unknown robot 'spot'. Valid: panda, anymal_d"),
        (("clip.npz", "--robot", "panda"), "lacks joint joint1"),
        (("base.npz", "--robot", "anymal_d"), "lacks body 'base'"),
        (("short.npz", "--robot", "anymal_d"), "lacks joint_vel"),
    ],
)
def test_bad_input_is_named_and_exits_with_2(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("text.npz").write_text("nothing")
    trot().save(Path("clip.npz"))
    saved(trot(), Path("base.npz"), body_names=np.array(["torso", *ANYMAL.feet]))
    np.savez("short.npz", joint_pos=trot().joint_pos)
    assert call("motions", "check", *words) == 2
    assert message in " ".join(capsys.readouterr().err.split())


# ---------------------------------------------------------------- forces


def still(height: float, seconds: float = 0.5) -> np.ndarray:
    qpos = np.tile(MODEL.qpos0, (round(50 * seconds), 1))
    qpos[:, ANYMAL.joint_qpos_indices(MODEL)] = ANYMAL.default_joint_pos
    qpos[:, 2] = height
    return qpos


def effort_of(qpos: np.ndarray, standing: bool):
    feet = Soles.of(MODEL, [MODEL.body(foot).id for foot in ANYMAL.feet])
    replay = Replay.of(MODEL, qpos, 50.0)
    return effort(MODEL, replay, ANYMAL.joint_names, feet, np.full((len(qpos), 4), standing))


def test_who_hangs_in_the_air_lacks_his_weight_and_who_falls_lacks_nothing():
    assert_allclose(effort_of(still(2.0), standing=False).left_over, 1.0, rtol=1e-6)
    falling = still(2.0)
    falling[:, 2] -= 0.5 * 9.81 * (np.arange(len(falling)) / 50.0) ** 2
    assert_allclose(effort_of(falling, standing=False).left_over[3:-3], 0.0, atol=2e-3)


def test_who_stands_is_carried_by_his_feet_alike_on_both_sides():
    found = effort_of(still(ANYMAL.root_height or 0.0), standing=True)
    assert found.left_over.max() < 1e-3
    legs = found.torque[10].reshape(4, 3)
    assert_allclose(legs[[0, 2], 1:], legs[[1, 3], 1:], rtol=0.05)  # HFE, KFE of left and right
    assert_allclose(legs[[0, 2], 0], -legs[[1, 3], 0], rtol=0.05)
    assert np.abs(legs[:, 2]).min() > 15.0  # a quarter of 511 N on bent knees
    assert found.work == pytest.approx(0.0, abs=1e-9)


def test_the_ground_only_pushes():
    upside_down = still(2.0)
    rising = upside_down.copy()
    rising[:, 2] -= 20.0 * (np.arange(len(rising)) / 50.0) ** 2  # faster down than gravity: feet would have to pull
    lacking = effort_of(rising, standing=True).left_over[5:-5]
    assert_allclose(lacking, 40.0 / 9.81 - 1.0, rtol=0.02)


def test_torques_of_an_arm_are_those_of_its_simulation():
    """Driven by the torques that were found, MuJoCo goes where the motion went."""
    model, clip = PANDA.model(visuals=False), reach().resampled(100.0)
    qpos = clip_positions(model, clip, PANDA.joint_names)
    nothing = Soles.of(model, [])
    found = effort(model, Replay.of(model, qpos, 100.0), PANDA.joint_names, nothing, np.zeros((len(clip), 0), bool))
    data = mujoco.MjData(model)
    qvel, _ = derivatives(model, qpos, 100.0)
    model.opt.timestep, model.actuator_gainprm[:], model.actuator_biasprm[:] = 1e-3, 0.0, 0.0
    start = 50
    data.qpos[:], data.qvel[:] = qpos[start], qvel[start]
    for step in range(200):
        data.qfrc_applied[:] = found.torque[start + step // 10]
        mujoco.mj_step(model, data)
    assert_allclose(data.qpos, qpos[start + 20], atol=5e-3)


def test_torque_limits_are_those_of_the_motors():
    assert_allclose(torque_limits(MODEL, ANYMAL.joint_names), 80.0)
    assert_allclose(torque_limits(PANDA.model(), PANDA.joint_names), [87, 87, 87, 87, 12, 12, 12])


def test_derivatives_of_a_parabola_are_exact():
    times = np.arange(40) / 50.0
    qpos = np.tile(MODEL.qpos0, (40, 1))
    qpos[:, 0] = 1.0 + 2.0 * times - 3.0 * times**2
    qvel, qacc = derivatives(MODEL, qpos, 50.0)
    assert_allclose(qvel[3:-3, 0], 2.0 - 6.0 * times[3:-3], atol=1e-9)
    assert_allclose(qacc[3:-3, 0], -6.0, atol=1e-6)


# ---------------------------------------------------------------- where the feet are


def test_soles_of_every_shape_touch_where_mujoco_says_they_do():
    """A shape held so that its lowest point, by its own account, is 0.1 m up: MuJoCo finds it 0.1 m from the floor."""
    shapes = {
        "sphere": "0.1",
        "capsule": "0.05 0.1",
        "box": "0.1 0.2 0.05",
        "cylinder": "0.08 0.05",
    }
    random = np.random.default_rng(0)
    for kind, size in shapes.items():
        model = mujoco.MjModel.from_xml_string(
            f"""<mujoco><worldbody><geom type="plane" size="0 0 1"/><body><freejoint/>
            <geom type="{kind}" size="{size}" pos="0.1 0 0.05" euler="10 20 30"/></body></worldbody></mujoco>"""
        )
        soles = Soles.of(model, [1])
        data = mujoco.MjData(model)
        for _ in range(10):
            turn = random.normal(size=4)
            pose = np.array([0.0, 0.0, 1.0, *(turn / np.linalg.norm(turn))])
            lowest = Replay.of(model, pose[None], 50.0).heights(soles).min()
            data.qpos[:] = pose
            mujoco.mj_kinematics(model, data)
            distance = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, None)
            assert lowest == pytest.approx(distance, abs=0.004 if kind == "cylinder" else 1e-6)  # a rim of 8 points


def test_what_rolls_does_not_slip():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body><freejoint/><geom type="sphere" size="0.2"/></body></worldbody></mujoco>'
    )
    angle = np.linspace(0.0, 3.0, 100)
    qpos = np.zeros((100, 7))
    qpos[:, 0], qpos[:, 2] = 0.2 * angle, 0.2
    qpos[:, 3], qpos[:, 5] = np.cos(angle / 2), np.sin(angle / 2)
    replay = Replay.of(model, qpos, 50.0)
    assert_allclose(replay.sole_velocities(Soles.of(model, [1])), 0.0, atol=1e-9)
    assert floating_base(model) == ""


# ---------------------------------------------------------------- cycles


@pytest.mark.parametrize("frames", [20, 37, 60])
def test_the_cycle_of_a_periodic_motion(frames):
    phase = 2.0 * np.pi * np.arange(400) / frames
    joints = np.stack([np.sin(phase), 0.3 * np.cos(2.0 * phase), np.sin(phase + 2.0)], axis=1)
    assert cycle_frames(joints, 50.0) == frames
    assert_allclose(over_a_cycle(joints, frames), 0.0, atol=1e-9)


def test_what_never_comes_again_has_no_cycle():
    walk = np.cumsum(np.random.default_rng(0).normal(size=(300, 4)), axis=0)
    assert cycle_frames(walk, 50.0) is None
    assert cycle_frames(np.zeros((300, 4)), 50.0) is None
    assert cycle_frames(reach().joint_pos, 30.0) is None


def test_the_trots_cycle_is_the_one_asked_for():
    steady = trot(Trot(speeds=(0.9,), frequency=50 / 28, frequency_per_speed=0.0))
    assert cycle_frames(steady.joint_pos, 50.0) == 28


def test_left_and_right_are_found_in_the_names_of_legs_only():
    mirror = ANYMAL.left_right(MODEL)
    assert mirror is not None
    assert mirror.index.tolist() == [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]
    assert PANDA.left_right(PANDA.model()) is None


def test_velocities_that_were_filtered_are_no_other_frame_rate():
    smooth = np.stack([np.convolve(column, np.ones(3) / 3, mode="same") for column in trot().joint_vel.T], axis=1)
    assert "frame rate" not in checked(replace(trot(), joint_vel=smooth)).of("FAIL")
    assert_allclose(kinematics.linear_velocity(trot().joint_pos, 50.0), trot().joint_vel)
