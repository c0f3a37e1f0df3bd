"""Anymal-Forward and Anymal-Lateral against the paper's tables and Isaac Lab's ANYmal task."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor
from torch.testing import assert_close

from consmimic.envs import Growth, Pushes, TaskEnv
from consmimic.envs.commands import VelocityCommand
from consmimic.tasks import task_entry
from consmimic.tasks.anymal import ANYMAL_FORWARD, ANYMAL_LATERAL, DEMONSTRATED, OBSERVATIONS, REWARDS, WalkState

N = 4
DT = 0.02
CALM = {"pushes": None, "randomise": None, "growth": None}
DEFAULT = np.array(ANYMAL_FORWARD.robot.default_joint_pos)


def make(count: int = N, seed: int = 0, **changes) -> TaskEnv:
    return TaskEnv(replace(ANYMAL_FORWARD, **changes) if changes else ANYMAL_FORWARD, count, seed=seed, threads=1)


def random_step(env: TaskEnv, number: int, scale: float = 0.5):
    generator = torch.Generator().manual_seed(number)
    return env.step(scale * torch.randn(env.num_envs, env.num_actions, generator=generator))


# ---------------------------------------------------------------- the tables


def test_table_5_observations_actions_and_demonstration():
    assert ANYMAL_FORWARD.observations == OBSERVATIONS
    assert dict(ANYMAL_FORWARD.layout.parts) == {
        "base_lin_vel": 3,
        "base_ang_vel": 3,
        "projected_gravity": 3,
        "velocity_command": 3,
        "joint_pos": 12,
        "joint_vel": 12,
        "last_action": 12,
    }
    assert ANYMAL_FORWARD.layout.width == 48
    assert sum(part.width for part in DEMONSTRATED) == ANYMAL_FORWARD.features.width == 33
    assert "velocity_command" not in ANYMAL_FORWARD.features
    assert make(1).num_actions == 12


def test_table_6_weights_in_the_papers_order():
    assert [(term.name, term.weight) for term in REWARDS] == [
        ("track_lin_vel_xy", 1.0),
        ("track_ang_vel_z", 0.5),
        ("lin_vel_z", -2.0),
        ("ang_vel_xy", -0.05),
        ("joint_torque", -2.5e-5),
        ("joint_acc", -2.5e-7),
        ("action_rate", -0.01),
        ("power", -5e-5),
        ("feet_air_time", 0.125),
        ("undesired_contacts", -1.0),
        ("flat_orientation", -5.0),
        ("joint_limits", -1.0),
    ]


def test_table_6_terms_recomputed_from_the_physics():
    env = make(**CALM)
    previous = np.zeros((N, 12))
    for number in range(12):
        _, _, dones, _ = random_step(env, number)
        assert not dones.any()
        physics = env.physics.state_dict()
        for robot in range(N):
            qpos, qvel = physics["qpos"][robot].numpy(), physics["qvel"][robot].numpy()
            rotation = np.empty(9)
            mujoco.mju_quat2Mat(rotation, qpos[3:7])
            back = rotation.reshape(3, 3).T
            velocity, spin, gravity = back @ qvel[:3], qvel[3:6], back @ np.array([0, 0, -1.0])
            command = env.last_state.command[robot].numpy()
            torque = env.physics.batch.bind("actuator_force")[robot]
            acceleration = env.physics.batch.bind("qacc")[robot, 6:]
            action = env.last_state.action[robot].numpy()
            terms = {
                "track_lin_vel_xy": np.exp(-((velocity[:2] - command[:2]) ** 2).sum() / 0.25),
                "track_ang_vel_z": 0.5 * np.exp(-((spin[2] - command[2]) ** 2) / 0.25),
                "lin_vel_z": -2.0 * velocity[2] ** 2,
                "ang_vel_xy": -0.05 * (spin[:2] ** 2).sum(),
                "joint_torque": -2.5e-5 * (torque**2).sum(),
                "joint_acc": -2.5e-7 * (acceleration**2).sum(),
                "action_rate": -0.01 * ((action - previous[robot]) ** 2).sum(),
                "power": -5e-5 * (torque * qvel[6:]).sum(),
                "flat_orientation": -5.0 * (gravity[:2] ** 2).sum(),
            }
            found = dict(zip([term.name for term in REWARDS], env.last_terms[robot] / DT, strict=True))
            for name, value in terms.items():
                assert float(found[name]) == pytest.approx(value, rel=1e-3, abs=1e-5), name
        previous = env.last_state.action.numpy()


def test_the_commands_of_the_task_definition():
    for task, limits in ((ANYMAL_FORWARD, (3.0, 0.0, 1.0)), (ANYMAL_LATERAL, (0.0, 2.0, 1.0))):
        drawn = task.command.sample(20_000, torch.Generator().manual_seed(0))
        assert_close(drawn.abs().amax(dim=0), torch.tensor(limits), rtol=0.0, atol=2e-3)
        standing = (drawn == 0.0).all(dim=1).float().mean()
        assert standing == pytest.approx(0.02, abs=0.005)
        moving = drawn[~(drawn == 0.0).all(dim=1)]
        for axis, limit in enumerate(limits):
            if limit:
                assert moving[:, axis].mean().abs() < 0.05
                assert moving[:, axis].std() == pytest.approx(2 * limit / 12**0.5, rel=0.03)


# ---------------------------------------------------------------- contacts and air time


def stepped(env: TaskEnv, state: list[WalkState]) -> WalkState:
    env.step(torch.zeros(env.num_envs, env.num_actions))
    state.append(env.last_state)
    return env.last_state


def test_air_time_counts_from_lift_off_to_touch_down_and_starts_again():
    feet = [[0, 1], [1, 0], [1, 0], [1, 1], [1, 1]]  # two feet, on the ground or not
    memory, air, down = torch.zeros(1, 2), [], []
    for contact in torch.tensor(feet, dtype=torch.bool).unsqueeze(1):
        in_air = memory > 0
        time = torch.where(contact & ~in_air, 0.0, memory + DT)
        air.append(time[0].tolist())
        down.append((contact & in_air)[0].tolist())
        memory = torch.where(contact, 0.0, time)
    assert_close(torch.tensor(air), torch.tensor([[0.02, 0.0], [0.04, 0.02], [0.0, 0.04], [0.0, 0.06], [0.0, 0.0]]))
    assert down == [[False, False], [True, False], [False, False], [False, True], [False, False]]


def test_a_robot_that_is_dropped_touches_down_with_four_feet_after_its_fall():
    height = 0.25  # more than at a usual start
    env = make(count=1, **CALM, reset=dropped_from(ANYMAL_FORWARD.robot.root_height + height))
    history: list[WalkState] = []
    while not (history and history[-1].touch_down.any()):
        stepped(env, history)
        assert len(history) < 40
    fall = (2 * height / 9.81) ** 0.5
    touching = history[-1].touch_down[0]
    assert_allclose(history[-1].air_time[0][touching], fall, atol=0.03)
    for earlier in history[:-1]:
        assert not earlier.foot_contact.any()
    for _ in range(10):
        stepped(env, history)
    assert history[-1].foot_contact.all()
    assert (history[-1].air_time == 0).all()


def dropped_from(height: float):
    from consmimic.envs import Start

    def reset(limits: Tensor, count: int, generator: torch.Generator) -> Start:  # noqa: ARG001
        return Start(
            joint_pos=torch.tensor(ANYMAL_FORWARD.robot.default_joint_pos).repeat(count, 1),
            root_pos=torch.tensor([0.0, 0.0, height]).repeat(count, 1),
            root_quat=torch.tensor([1.0, 0.0, 0.0, 0.0]).repeat(count, 1),
        )

    return reset


def test_a_robot_on_its_back_has_failed_and_one_on_its_feet_has_not():
    from consmimic.envs import Start

    def upside_down(limits: Tensor, count: int, generator: torch.Generator) -> Start:
        start = dropped_from(0.5)(limits, count, generator)
        assert start.root_quat is not None
        start.root_quat[::2] = torch.tensor([0.0, 1.0, 0.0, 0.0])
        return start

    env = make(**CALM, reset=upside_down)
    fell = torch.zeros(N, dtype=torch.bool)
    for _ in range(40):
        _, _, dones, extras = env.step(torch.zeros(N, 12))
        fell |= dones & ~extras["time_outs"]
    assert fell.tolist() == [True, False, True, False]


# ---------------------------------------------------------------- what changes during an episode


def test_commands_are_drawn_anew_every_10_seconds_and_seen_at_once():
    env = make(**CALM)
    first = env.last_state.command.clone()
    env.episode_length_buf = torch.tensor([498, 0, 499, 100])
    obs, *_ = env.step(torch.zeros(N, 12))
    seen = ANYMAL_FORWARD.layout.part(obs["critic"], "velocity_command")
    assert (seen != first).any(dim=1).tolist() == [False, False, True, False]
    obs, *_ = env.step(torch.zeros(N, 12))
    seen = ANYMAL_FORWARD.layout.part(obs["critic"], "velocity_command")
    assert (seen != first).any(dim=1).tolist() == [True, False, True, False]
    env.step(torch.zeros(N, 12))
    assert torch.equal(env.last_state.command, seen)  # rewarded from the next step on


def test_pushes_set_the_horizontal_velocity_now_and_then():
    env = make(count=64, randomise=None, growth=None, pushes=Pushes(interval=(0.1, 0.2), speed=5.0))
    hard = 0
    for _ in range(12):
        obs, *_ = env.step(torch.zeros(64, 12))
        speed = ANYMAL_FORWARD.layout.part(obs["critic"], "base_lin_vel").norm(dim=1)
        hard += int((speed > 2.0).sum())
        assert speed.max() < 5.0 * 2**0.5 + 1.5
    assert hard > 32
    calm = make(count=64, **CALM)
    for _ in range(12):
        obs, *_ = calm.step(torch.zeros(64, 12))
        assert ANYMAL_FORWARD.layout.part(obs["critic"], "base_lin_vel").norm(dim=1).max() < 2.0


def test_every_robot_has_a_body_of_its_own_within_isaac_labs_ranges():
    env = make(count=200)
    base = env.physics.model.body("base").id
    mass = env.physics.vary("body_mass")[:, base] - env.physics.model.body_mass[base]
    shift = env.physics.vary("body_ipos")[:, base] - env.physics.model.body_ipos[base]
    assert -5.0 <= mass.min() < -4.5
    assert 4.5 < mass.max() <= 5.0
    assert_allclose(np.abs(shift).max(axis=0), [0.05, 0.05, 0.01], rtol=0.05)
    same = env.physics.vary("body_mass")[:, base + 1 :]
    assert (same == env.physics.model.body_mass[base + 1 :]).all()


def test_commands_grow_while_they_are_followed_and_only_then():
    growth = Growth(
        start=0.2,
        following=lambda s: torch.full((len(s.command),), 0.7),
        standing=lambda s: torch.full((len(s.command),), 0.4),
        enough=0.25,
        seconds=1.0,
    )
    env = make(**{**CALM, "growth": growth, "terminated": None})
    assert not env.commands_settled
    asked = env.state().command
    steps = 0
    while not env.commands_settled:
        env.step(torch.zeros(N, 12))
        steps += 1
    assert_close(env.state().command, 5.0 * asked)  # those that robots have grow along
    # 35 steps until the moving average passes half of 0.5, then 0.8 of 50 steps.
    assert steps == 34 + 40
    lost = make(**{**CALM, "growth": replace(growth, enough=0.51)})
    for _ in range(steps):
        lost.step(torch.zeros(N, 12))
    assert not lost.commands_settled
    assert lost.state_dict()["growth"]["share"] == 0.2
    drawn = VelocityCommand(lin_vel_x=(-3.0, 3.0), lin_vel_y=(0.0, 0.0), ang_vel_z=(-1.0, 1.0)).sample(
        1000, torch.Generator().manual_seed(0), share=0.2
    )
    assert_close(drawn.abs().amax(dim=0), torch.tensor([0.6, 0.0, 0.2]), rtol=0.01, atol=1e-6)
    lost.settle_commands()
    assert lost.commands_settled


def test_evaluation_asks_the_full_range_at_once():
    task = task_entry("Anymal-Forward").task
    env = TaskEnv(task, 256, seed=0, threads=1, growing=False)
    assert env.commands_settled
    assert env.last_state.command[:, 0].abs().max() > 2.5


# ---------------------------------------------------------------- mirrors


def test_a_mirrored_robot_sees_the_mirrored_world():
    """Features and observations of the mirrored state are the mirrored features and observations."""
    env = make(**CALM)
    for number in range(5):
        random_step(env, number)
    seen = env.get_observations()
    for mirror in ANYMAL_FORWARD.mirrors:
        assert mirror.observation.is_involution
        assert mirror.features.is_involution
        shared = [part for part in ANYMAL_FORWARD.features if part != "joint_pos"]
        ours = ANYMAL_FORWARD.layout.split(mirror.observation(seen["critic"]))
        theirs = ANYMAL_FORWARD.features.split(mirror.features(seen["style"]))
        for part in shared:
            assert torch.equal(ours[part], theirs[part])
        assert_close(mirror.action(torch.tensor(DEFAULT)), torch.tensor(DEFAULT))
    assert len(env.style_mirrors()) == 3
