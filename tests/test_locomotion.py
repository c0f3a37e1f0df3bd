"""How a walk is recorded and scored, against walks made by hand, whose scores are known."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import Tensor

from consmimic.envs import Start, TaskEnv
from consmimic.envs.task import Walking
from consmimic.errors import UserError
from consmimic.evaluation import locomotion
from consmimic.evaluation.locomotion import (
    GaitScores,
    Walk,
    demonstrated_range,
    evaluate_walking,
    gait_scores,
    record_walk,
    shown_contact,
    speed_errors,
)
from consmimic.evaluation.results import Row
from consmimic.evaluation.rollout import commanded_env
from consmimic.method.symmetry import SignedPermutation
from consmimic.motions.trot import Trot
from consmimic.tasks.anymal import ANYMAL_FORWARD, ANYMAL_LATERAL, demonstration

STEP = 0.02
FEET = ("LF", "RF", "LH", "RH")
PERIOD, IN_AIR = 20, 8  # frames
SWAP = SignedPermutation(torch.tensor([1, 0]), torch.tensor([1, 1]))
TURN = SignedPermutation(torch.tensor([0, 1]), torch.tensor([-1, 1]))
DIAGONAL = (("LF", "RH"), ("RF", "LH"))


def walking(**changes: Any) -> Walking:
    def nothing(_: Any) -> Tensor:
        raise AssertionError("a walk that is recorded already is not read again")

    cells: dict[str, Any] = {
        "gait_command": (2.0, 0.0, 0.0),
        "across": ("v_x", torch.linspace(-3.0, 3.0, 3)),
        "up": ("omega_z", torch.linspace(-1.0, 1.0, 2)),
        **dict.fromkeys(("velocity", "clip_velocity", "torque", "joint_vel", "contact"), nothing),
        "feet": FEET,
        "diagonal_pairs": DIAGONAL,
        "front_pair": ("LF", "RF"),
        "mirrors": (SWAP,),
    }
    return Walking(**(cells | changes))


def contacts(late: dict[str, int], frames: int = 400) -> np.ndarray:
    """Every foot comes down every ``PERIOD`` frames, as many frames after the first as said; (T, F)."""
    since = np.arange(frames)[:, None] - [late[foot] for foot in FEET]
    return since % PERIOD < PERIOD - IN_AIR


TROT = {"LF": 0, "RF": 10, "LH": 10, "RH": 0}


def walk(count: int = 3, frames: int = 400, late: dict[str, int] = TROT, **changes: Any) -> Walk:
    """Robots that all do the same: a trot at 1.5 m/s, two joints at 2 and 3 rad/s with 5 and −1 Nm, at rest in pose."""

    def always(row: list[float]) -> np.ndarray:
        return np.tile(np.array(row), (frames, count, 1))

    cells: dict[str, Any] = {
        "contact": np.repeat(contacts(late, frames)[:, None], count, axis=1),
        "velocity": always([1.5, 0.3, 0.1]),
        "torque": always([5.0, -1.0]),
        "joint_vel": always([2.0, 3.0]),
        "trajectory": always([0.3, 0.1]),
        "fell": np.zeros(count, dtype=bool),
        "step_seconds": STEP,
    }
    return Walk(**(cells | changes))


# ---------------------------------------------------------------- a walk


def test_a_walk_without_its_beginning_and_without_those_who_fell():
    numbers = np.arange(400.0).repeat(3).reshape(400, 3, 1)
    whole = walk(trajectory=numbers, fell=np.array([False, True, False]))
    assert whole.seconds == 8.0
    later = whole.after(2.0)
    assert later.seconds == 6.0
    assert_array_equal(later.trajectory, numbers[100:])
    assert len(later.contact) == len(later.velocity) == len(later.torque) == len(later.joint_vel) == 300
    assert_array_equal(later.fell, whole.fell)
    standing = whole.upright()
    assert standing.contact.shape == (400, 2, 4)
    assert standing.velocity.shape == (400, 2, 3)
    assert_array_equal(standing.fell, [False, False])


# ---------------------------------------------------------------- gait


def test_a_perfect_trot_by_hand():
    scores = gait_scores(walk(), walking(), eta=100.0)
    seconds, power, speed = 8.0, 5.0 * 2.0 - 1.0 * 3.0, 1.5
    assert scores.gait_seconds == seconds
    assert scores.gait_falls == 0.0
    assert scores.diagonal_phase == 0.0
    assert scores.front_phase == 0.5
    assert scores.t_air == pytest.approx(IN_AIR * STEP)
    assert scores.w_mech == pytest.approx(power * seconds)
    assert scores.w_mech_absolute == pytest.approx((5.0 * 2.0 + 1.0 * 3.0) * seconds)
    assert scores.gait_speed == pytest.approx(speed)
    assert scores.w_mech_per_metre == pytest.approx(power / speed)
    # (0.3, 0.1) and its image (0.1, 0.3) are 0.2 √2 apart, for the 100 frames of the first 2 s.
    assert scores.symmetry == pytest.approx(1.0 - 100 * 0.2 * math.sqrt(2.0) / 100.0)


@pytest.mark.parametrize(
    ("gait", "late", "diagonal", "front"),
    [
        ("trot", TROT, 0.0, 0.5),
        ("pace", {"LF": 0, "LH": 0, "RF": 10, "RH": 10}, 0.5, 0.5),
        ("bound", {"LF": 0, "RF": 0, "LH": 10, "RH": 10}, 0.5, 0.0),
        ("pronk", {"LF": 0, "RF": 0, "LH": 0, "RH": 0}, 0.0, 0.0),
        ("walk", {"LH": 0, "LF": 5, "RH": 10, "RF": 15}, 0.25, 0.5),
        ("hind feet first", {"LF": 2, "RF": 12, "LH": 9, "RH": 0}, (0.1 + 0.15) / 2, 0.5),  # pairs 2 and 3 frames apart
    ],
)
def test_phases_tell_gaits_apart(gait, late, diagonal, front):  # noqa: ARG001
    scores = gait_scores(walk(late=late), walking(), eta=100.0)
    assert scores.diagonal_phase == pytest.approx(diagonal)
    assert scores.front_phase == pytest.approx(front)


def test_a_foot_that_bounces_on_landing_still_trots():
    contact = walk().contact.copy()
    contact[1::PERIOD] = False  # all feet off for a frame, right after LF and RH came down
    assert gait_scores(walk(contact=contact), walking(), eta=100.0).diagonal_phase == 0.0


def test_robots_that_fell_count_in_gait_falls_only():
    whole = walk(count=4)
    unknown = {
        name: np.where([[[False], [True], [False], [False]]], np.nan, getattr(whole, name))
        for name in ("velocity", "torque", "joint_vel", "trajectory")
    }
    contact = whole.contact.copy()
    contact[:, 1] = contacts({"LF": 0, "RF": 3, "LH": 5, "RH": 9})
    fallen = replace(whole, **unknown, contact=contact, fell=np.array([False, True, False, False]))
    scores = gait_scores(fallen, walking(), eta=100.0)
    expected = replace(gait_scores(whole, walking(), eta=100.0), gait_falls=0.25)
    assert asdict(scores) == pytest.approx(asdict(expected))


def test_where_everyone_fell_only_that_is_known():
    fallen = walk(fell=np.ones(3, dtype=bool))
    assert gait_scores(fallen, walking(), eta=100.0) == GaitScores(gait_seconds=8.0, gait_falls=1.0)
    assert shown_contact(fallen, walking()).shape == (0, 4)


def test_means_are_over_robots_and_work_per_metre_is_all_work_over_all_metres():
    """Two robots: twice the torque of the other, and three times its speed."""
    torque, velocity = walk(2).torque.copy(), walk(2).velocity.copy()
    torque[:, 1] *= 2.0
    velocity[:, 1] *= 3.0
    scores = gait_scores(walk(2, torque=torque, velocity=velocity), walking(), eta=100.0)
    assert scores.w_mech == pytest.approx(7.0 * 8.0 * 1.5)
    assert scores.gait_speed == pytest.approx(1.5 * 2.0)
    assert scores.w_mech_per_metre == pytest.approx((7.0 + 14.0) / (1.5 + 4.5))


def test_metres_are_those_in_the_commanded_direction():
    sideways = walking(gait_command=(0.0, -1.0, 0.5))
    scores = gait_scores(walk(), sideways, eta=100.0)
    assert scores.gait_speed == pytest.approx(-0.3)
    assert scores.w_mech_per_metre is None
    oblique = walking(gait_command=(3.0, 4.0, 0.0))
    assert gait_scores(walk(), oblique, eta=100.0).gait_speed == pytest.approx((3.0 * 1.5 + 4.0 * 0.3) / 5.0)


@pytest.mark.parametrize(("speed", "known"), [(0.49, False), (0.51, True)])  # a quarter of 2 m/s
def test_work_per_metre_needs_a_walk(speed, known):
    velocity = walk().velocity.copy()
    velocity[..., 0] = speed
    assert (gait_scores(walk(velocity=velocity), walking(), eta=100.0).w_mech_per_metre is not None) == known


def test_a_robot_that_stands_has_no_steps_and_no_phase():
    standing = walk(contact=np.ones((400, 3, 4), dtype=bool), velocity=np.zeros((400, 3, 3)))
    scores = gait_scores(standing, walking(), eta=100.0)
    assert scores.t_air is scores.diagonal_phase is scores.front_phase is scores.w_mech_per_metre is None
    assert scores.gait_speed == 0.0
    assert scores.symmetry is not None


def test_a_robot_that_stands_does_not_hide_the_phase_of_the_others():
    contact = walk().contact.copy()
    contact[:, 0] = True
    scores = gait_scores(walk(contact=contact), walking(), eta=100.0)
    assert scores.diagonal_phase == 0.0
    assert scores.t_air == pytest.approx(IN_AIR * STEP)


def test_a_robot_without_pairs_and_mirrors_has_no_such_scores():
    scores = gait_scores(walk(), walking(diagonal_pairs=(), front_pair=None, mirrors=()), eta=100.0)
    assert scores.diagonal_phase is scores.front_phase is scores.symmetry is None


def test_symmetry_is_eq13_over_the_mirrors_of_the_first_two_seconds():
    moved = walk().trajectory.copy()
    moved[100:] = 7.0  # after 2 s
    # Images of (0.3, 0.1): (0.1, 0.3) and (−0.3, 0.1), 0.2 √2 and 0.6 away.
    mean = (0.2 * math.sqrt(2.0) + 0.6) / 2.0
    scores = gait_scores(walk(trajectory=moved), walking(mirrors=(SWAP, TURN)), eta=200.0)
    assert scores.symmetry == pytest.approx(1.0 - 100 * mean / 200.0)
    symmetric = np.tile([0.2, 0.2], (400, 3, 1))
    assert gait_scores(walk(trajectory=symmetric), walking(), eta=100.0).symmetry == 1.0


def test_the_shown_robot_has_the_median_diagonal_phase_of_those_that_have_one():
    contact = np.stack(
        [
            contacts(TROT | {"RH": 4}),  # phase 0.1
            np.ones((400, 4), dtype=bool),  # stands
            contacts(TROT),
            contacts(TROT | {"RH": 2}),  # 0.05: the median
            np.ones((400, 4), dtype=bool),
            contacts(TROT | {"RH": 1}),  # fell
        ],
        axis=1,
    )
    seen = walk(6, contact=contact, fell=np.array([False] * 5 + [True]))
    assert_array_equal(shown_contact(seen, walking()), contact[:, 3])
    none = walk(2, contact=np.ones((400, 2, 4), dtype=bool))
    assert shown_contact(none, walking()).all()


# ---------------------------------------------------------------- map


def test_speed_errors_by_hand_and_unknown_after_a_fall():
    velocity = np.zeros((2, 3, 3))
    velocity[0] = [1.0, 0.5, 0.2]
    velocity[1] = [1.0, -0.5, 0.4]
    commands = np.array([[1.0, 0.5, 0.4], [4.0, 4.5, -0.2], [1.0, 0.0, 0.3]])
    short = walk(frames=2, velocity=velocity, fell=np.array([False, True, False]))
    speed, turn = speed_errors(short, commands)
    assert_allclose(speed, [(0.0 + 1.0) / 2, np.nan, 0.5])
    assert_allclose(turn, [(0.2 + 0.0) / 2, np.nan, 0.1])


def test_errors_are_sizes_averaged_not_averages_sized():
    """Too fast and too slow in turns is no good following."""
    velocity = np.zeros((2, 1, 3))
    velocity[0, 0], velocity[1, 0] = [0.6, 0.0, 0.3], [-0.6, 0.0, -0.3]
    speed, turn = speed_errors(walk(1, frames=2, velocity=velocity), np.zeros((1, 3)))
    assert_allclose([speed[0], turn[0]], [0.6, 0.3])


def test_the_map_asks_row_by_row():
    commands = walking(across=("v_y", torch.tensor([-2.0, 0.0, 2.0]))).map_commands
    assert commands.tolist() == [[0, -2, -1], [0, 0, -1], [0, 2, -1], [0, -2, 1], [0, 0, 1], [0, 2, 1]]


def test_the_demonstrated_range_is_that_of_the_clip():
    clip = demonstration(Trot(speeds=(0.5, 1.0)))
    assert ANYMAL_FORWARD.walking is not None
    assert ANYMAL_LATERAL.walking is not None
    (low, high), turning = demonstrated_range(ANYMAL_FORWARD.walking, clip)
    assert (low, high) == pytest.approx((0.5, 1.0), abs=0.01)
    assert_allclose(turning, 0.0, atol=1e-6)
    assert_allclose(demonstrated_range(ANYMAL_LATERAL.walking, clip), 0.0, atol=1e-6)


# ---------------------------------------------------------------- recording


class Scripted:
    """Robots whose states are numbers that say which robot and which step they are of."""

    num_envs = 2

    def __init__(self, episode_seconds: float, dones: dict[int, tuple[list[bool], list[bool]]]) -> None:
        """``dones``: step → who is done, and for whom that is a time-out."""
        steps = round(episode_seconds / STEP)
        self.task = SimpleNamespace(
            name="Scripted",
            step_seconds=STEP,
            episode_seconds=episode_seconds,
            episode_steps=steps,
            trajectory=lambda s: s["trajectory"],
        )
        self._dones = dones
        self._step = 0
        self.asked: list[int] = []

    def get_observations(self) -> int:
        return self._step

    def step(self, action: int) -> tuple[int, None, Tensor, dict[str, Tensor]]:
        self.asked.append(action)
        number = 10.0 * self._step + torch.arange(2.0).unsqueeze(1)
        self.last_state = {
            "contact": (number > 5.0).repeat(1, 4),
            "velocity": number.repeat(1, 3),
            "torque": number + 100.0,
            "joint_vel": number + 200.0,
            "trajectory": number + 300.0,
        }
        done, time_out = self._dones.get(self._step, ([False, False], [False, False]))
        self._step += 1
        return self._step, None, torch.tensor(done), {"time_outs": torch.tensor(time_out)}


def read_scripted() -> Walking:
    names = ("contact", "velocity", "torque", "joint_vel")
    return walking(**{name: lambda s, name=name: s[name] for name in names})


def test_a_recording_has_every_robot_at_every_step_and_who_fell():
    env: Any = Scripted(
        episode_seconds=1.0, dones={1: ([True, False], [False, False]), 2: ([False, True], [False, True])}
    )
    recorded = record_walk(env, lambda obs: obs, read_scripted(), seconds=0.06)
    assert env.asked == [0, 1, 2]  # each action from the newest observation
    numbers = np.array([[0.0, 1.0], [10.0, 11.0], [20.0, 21.0]])
    assert_array_equal(recorded.velocity, numbers[..., None].repeat(3, axis=2))
    assert_array_equal(recorded.torque[..., 0], numbers + 100.0)
    assert_array_equal(recorded.joint_vel[..., 0], numbers + 200.0)
    assert_array_equal(recorded.trajectory[..., 0], numbers + 300.0)
    assert_array_equal(recorded.contact, (numbers > 5.0)[..., None].repeat(4, axis=2))
    assert recorded.fell.tolist() == [True, False]  # the other's time was up
    assert recorded.step_seconds == STEP


def test_a_recording_longer_than_an_episode_is_refused():
    env: Any = Scripted(episode_seconds=1.0, dones={})
    record_walk(env, lambda obs: obs, read_scripted(), seconds=1.0)
    with pytest.raises(UserError, match=r"a walk of 1.02 s .* an episode of Scripted has 1 s"):
        record_walk(env, lambda obs: obs, read_scripted(), seconds=1.02)


def test_the_recorded_numbers_are_the_simulators():
    """Base velocities turned by MuJoCo, torques and angles read from its arrays."""
    import mujoco

    task, spec = replace(ANYMAL_FORWARD, pushes=None), ANYMAL_FORWARD.walking
    assert spec is not None
    wanted = torch.tensor([[2.0, 0.0, 0.0], [-1.0, 0.0, 0.5]])
    env = commanded_env(task, wanted, None, threads=1)
    seen: list[dict[str, np.ndarray]] = []

    def policy(obs: Any) -> Tensor:
        assert torch.equal(task.layout.part(obs["critic"], "velocity_command"), wanted)
        if seen:
            note()
        seen.append({})
        return 0.2 * torch.ones(2, 12)

    def note() -> None:
        qpos, qvel = env.physics.batch.bind("qpos"), env.physics.batch.bind("qvel")  # type: ignore[attr-defined]
        velocity = np.empty((2, 3))
        for robot in range(2):
            back = np.empty(4)
            mujoco.mju_negQuat(back, qpos[robot, 3:7])
            mujoco.mju_rotVecQuat(velocity[robot], qvel[robot, :3], back)
        velocity[:, 2] = qvel[:, 5]
        torque = env.physics.batch.bind("actuator_force").copy()  # type: ignore[attr-defined]
        seen[-1].update(velocity=velocity, torque=torque, joint_vel=qvel[:, 6:].copy(), trajectory=qpos[:, 7:].copy())

    recorded = record_walk(env, policy, spec, seconds=0.4)
    note()
    assert not recorded.fell.any()
    for name in ("velocity", "torque", "joint_vel", "trajectory"):
        assert_allclose(getattr(recorded, name), np.stack([step[name] for step in seen]), rtol=1e-5, atol=1e-5)


# ---------------------------------------------------------------- all of it


def stand(obs: Any) -> Tensor:
    return torch.zeros(len(obs), 12)


@pytest.fixture(scope="module")
def standing() -> tuple[GaitScores, Any]:
    """A policy that keeps the default pose, whatever it is asked for; a map smaller than the published one."""

    def upright(limits: Tensor, count: int, generator: torch.Generator) -> Start:  # noqa: ARG001
        return Start(
            joint_pos=torch.tensor(ANYMAL_FORWARD.robot.default_joint_pos).repeat(count, 1),
            root_pos=torch.tensor([0.0, 0.0, 0.59]).repeat(count, 1),
            root_quat=torch.tensor([1.0, 0.0, 0.0, 0.0]).repeat(count, 1),
        )

    task = replace(ANYMAL_FORWARD, randomise=None, reset=upright)
    assert task.walking is not None
    fewer = {
        "across": ("v_x", torch.tensor([-3.0, -1.0, 0.0, 2.0])),
        "up": ("omega_z", torch.tensor([-1.0, 0.0, 0.5])),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locomotion, "GAIT_ROBOTS", 4)
        return evaluate_walking(task, replace(task.walking, **fewer), stand, task.demonstration(), threads=1)


def test_a_policy_that_stands_misses_each_command_by_the_command(standing):
    scores, record = standing
    v_x, omega_z = np.array([-3.0, -1.0, 0.0, 2.0]), np.array([-1.0, 0.0, 0.5])
    assert_array_equal(record["map_across"], v_x)
    assert_array_equal(record["map_up"], omega_z)
    assert list(record["map_axes"]) == ["v_x", "omega_z"]
    assert_allclose(record["speed_error"], np.broadcast_to(np.abs(v_x), (3, 4)), atol=0.02)
    assert_allclose(record["turn_error"], np.broadcast_to(np.abs(omega_z)[:, None], (3, 4)), atol=0.02)
    assert scores.gait_speed == pytest.approx(0.0, abs=0.01)
    assert scores.w_mech_per_metre is scores.t_air is scores.diagonal_phase is None
    assert (scores.gait_seconds, scores.gait_falls) == (8.0, 0.0)
    assert scores.symmetry is not None
    assert scores.symmetry > 0.95  # a pose that is nearly its own mirror image


def test_what_is_recorded_of_a_walk_is_all_that_the_figures_need(standing):
    _, record = standing
    assert record["contact"].shape == (400, 4)
    assert record["contact"].all()
    assert list(record["feet"]) == ["LF", "RF", "LH", "RH"]
    assert float(record["step_seconds"]) == STEP
    assert record["gait_command"].tolist() == [2.0, 0.0, 0.0]
    assert record["demonstrated"][0] == pytest.approx([0.3, 1.5], abs=0.02)
    assert set(record) == {
        *("contact", "feet", "step_seconds", "gait_command"),
        *("map_axes", "map_across", "map_up", "speed_error", "turn_error", "demonstrated"),
    }


def test_gait_scores_are_cells_of_the_row():
    assert asdict(GaitScores(gait_seconds=8.0, gait_falls=0.0)).keys() <= set(Row.__dataclass_fields__)


def test_no_one_pushes_those_who_are_measured(monkeypatch):
    seen: list[TaskEnv] = []

    def recorded(env: TaskEnv, *_: Any) -> Walk:
        seen.append(env)
        return walk(env.num_envs, trajectory=np.zeros((400, env.num_envs, 12)))

    monkeypatch.setattr(locomotion, "record_walk", recorded)
    assert ANYMAL_LATERAL.walking is not None
    evaluate_walking(ANYMAL_LATERAL, ANYMAL_LATERAL.walking, stand, ANYMAL_LATERAL.demonstration(), threads=1)
    gait, follow = seen
    assert gait.task.pushes is follow.task.pushes is None
    assert_array_equal(gait.last_state.command, np.tile([0.0, 1.0, 0.0], (locomotion.GAIT_ROBOTS, 1)))
    assert torch.equal(follow.last_state.command, ANYMAL_LATERAL.walking.map_commands)
    assert gait.commands_settled
    assert follow.task.command.resample_seconds is None
