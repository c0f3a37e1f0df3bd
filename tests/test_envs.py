"""What every task promises to the learner, and Franka-Reach against the paper's tables."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict
from torch import Tensor
from torch.testing import assert_close

from consmimic.envs import Layout, Task, TaskEnv, TrackingStyle
from consmimic.envs import rewards as rows
from consmimic.envs.task import Command
from consmimic.errors import UserError
from consmimic.motions import Clip
from consmimic.rotations import angle_between, from_euler
from consmimic.sim import CpuPhysics
from consmimic.tasks import Method, runner_config, task_entry, task_names
from consmimic.tasks.franka_reach import COMMAND, OBSERVATIONS, REWARDS

N = 5


def make(name: str, count: int = N, seed: int = 0, threads: int = 1, **changes: Any) -> TaskEnv:
    task = task_entry(name).task
    return TaskEnv(replace(task, **changes) if changes else task, count, seed=seed, threads=threads)


@dataclass
class Stepped:
    """What a step returned."""

    obs: TensorDict
    rewards: Tensor
    dones: Tensor
    extras: dict[str, Any]


def step(env: TaskEnv, number: int = 0, scale: float = 0.4) -> Stepped:
    """A step with actions that depend on its number only."""
    generator = torch.Generator().manual_seed(1000 + number)
    return Stepped(*env.step(scale * torch.randn(env.num_envs, env.num_actions, generator=generator)))


def near_the_end(env: TaskEnv, left: list[int]) -> None:
    """Set how many steps each robot has left, as rsl_rl does when it spreads the first episodes."""
    env.episode_length_buf = env.max_episode_length - torch.tensor(left)


def tensors(env: TaskEnv, made: Stepped) -> dict[str, Tensor]:
    """All that a step shows, flat, and where the physics went."""
    flat = {f"obs/{name}": group for name, group in made.obs.items()}
    flat |= {f"final/{name}": group for name, group in made.extras.get("final_obs", {}).items()}
    flat |= {f"log/{name}": value for name, value in made.extras.get("log", {}).items()}
    flat |= {name: made.extras[name] for name in ("time_outs", "style_reward") if name in made.extras}
    return flat | {"rewards": made.rewards, "dones": made.dones, "qpos": env.physics.state_dict()["qpos"]}


def tracks(env: TaskEnv) -> bool:
    """Whether the environment scores style itself."""
    return isinstance(env.task.style, TrackingStyle)


def assert_same_bits(a: dict[str, Tensor], b: dict[str, Tensor]) -> None:
    assert a.keys() == b.keys()
    assert [name for name in a if not torch.equal(a[name], b[name])] == []


@dataclass(frozen=True)
class Lasting:
    """A task's own commands, one an episode."""

    command: Command
    resample_seconds: None = None

    @property
    def layout(self) -> Layout:
        return self.command.layout

    def sample(self, count: int, generator: torch.Generator, share: float = 1.0) -> Tensor:
        return self.command.sample(count, generator, share)


@pytest.fixture(params=task_names())
def name(request: pytest.FixtureRequest) -> str:
    return request.param


# ---------------------------------------------------------------- the contract, for every task


def assert_well_formed(obs: TensorDict, env: TaskEnv) -> None:
    task = env.task
    widths = {
        "policy": task.layout.width,
        "critic": task.layout.width,
        "style": task.features.width,
    } | ({"phase": 1} if tracks(env) else {})
    assert {group: values.shape[1] for group, values in obs.items()} == widths
    assert obs.batch_size == torch.Size([env.num_envs])
    for values in obs.values():
        assert values.dtype == torch.float32
        assert values.isfinite().all()


def test_observations_are_finite_groups_of_the_named_widths(name):
    env = make(name)
    assert_well_formed(env.get_observations(), env)
    near_the_end(env, [1, 2, 3, 50, 60])
    for number in range(4):
        made = step(env, number)
        assert_well_formed(made.obs, env)
        if "final_obs" in made.extras:
            assert_well_formed(made.extras["final_obs"], env)


def test_the_layout_names_every_column_once(name):
    for layout in (task_entry(name).task.layout, task_entry(name).task.features):
        columns = torch.arange(layout.width)
        assert torch.equal(torch.cat(list(layout.split(columns).values())), columns)
        assert list(layout.split(columns)) == list(layout) == list(layout.parts)


def test_a_step_returns_what_rsl_rl_wants(name):
    env = make(name)
    assert (env.num_envs, env.device) == (N, "cpu")
    assert env.num_actions == len(env.task.robot.joint_names)
    assert env.max_episode_length == round(env.task.episode_seconds / env.step_dt)
    made = step(env)
    assert made.rewards.shape == made.dones.shape == made.extras["time_outs"].shape == (N,)
    assert made.rewards.dtype == torch.float32
    assert made.dones.dtype == made.extras["time_outs"].dtype == torch.bool
    assert made.rewards.isfinite().all()


def test_the_style_reward_is_between_0_and_1_and_differs_between_robots(name):
    env = make(name)
    if not tracks(env):
        assert "style_reward" not in step(env).extras
        return
    for number in range(10):
        style = step(env, number).extras["style_reward"]
        assert style.dtype == torch.float32
        assert style.shape == (N,)
        assert ((style >= 0) & (style <= 1)).all()
    assert len(style.unique()) == N


def test_final_observations_come_with_ended_episodes_and_only_then(name):
    env = make(name)
    near_the_end(env, [2, 3, 3, 50, 60])
    ended = [[], [0], [1, 2], [], []]
    for number, robots in enumerate(ended):
        made = step(env, number)
        assert made.dones.nonzero().flatten().tolist() == robots
        assert made.extras["time_outs"].tolist() == made.dones.tolist()
        assert ("final_obs" in made.extras) == bool(robots)
        assert ("log" in made.extras) == bool(robots)
        if robots:
            final, others = made.extras["final_obs"], ~made.dones
            for group in list(made.obs.keys()):
                assert torch.equal(final[group][others], made.obs[group][others])
                assert (final[group][robots] != made.obs[group][robots]).any(dim=1).all()
            if tracks(env):
                assert_close(final["phase"][robots], torch.ones(len(robots), 1))
                assert torch.equal(made.obs["phase"][robots], torch.zeros(len(robots), 1))
            assert env.episode_length_buf[robots].tolist() == [0] * len(robots)


def test_final_observations_are_the_true_last_ones(name):
    """A twin with longer episodes is not reset, and shows where the robot would have been."""
    task = task_entry(name).task
    lasting = Lasting(task.command)
    env = make(name, command=lasting)
    twin = make(name, command=lasting, episode_seconds=2.0 * task.episode_seconds)
    for one in (env, twin):
        one.episode_length_buf = torch.full((N,), env.max_episode_length - 6)
    for number in range(6):
        made, through = step(env, number), step(twin, number)
    assert made.dones.all()
    assert not through.dones.any()
    for group in ("critic", "style"):
        assert torch.equal(made.extras["final_obs"][group], through.obs[group])
        assert (made.obs[group] != through.obs[group]).any(dim=1).all()
    assert torch.equal(made.rewards, through.rewards)
    if tracks(env):
        assert torch.equal(made.extras["style_reward"], through.extras["style_reward"])


def test_a_reset_of_one_robot_does_not_touch_the_others(name):
    env, twin = make(name), make(name)
    near_the_end(env, [99, 99, 2, 99, 99])
    near_the_end(twin, [99] * N)
    others = torch.arange(N) != 2
    for number in range(6):
        made, undisturbed = step(env, number), step(twin, number)
        assert torch.equal(made.obs["critic"][others], undisturbed.obs["critic"][others])
        assert torch.equal(made.rewards[others], undisturbed.rewards[others])
    assert (made.obs["critic"][2] != undisturbed.obs["critic"][2]).any()


def test_failure_is_not_a_time_out(name):
    failing = torch.tensor([False, True, False, True, False])
    env = make(name, terminated=lambda _: failing)
    near_the_end(env, [1, 1, 99, 99, 99])
    made = step(env)
    assert made.dones.tolist() == [True, True, False, True, False]
    assert made.extras["time_outs"].tolist() == [True, False, False, False, False]
    assert_close(made.extras["log"]["Episode_Termination/time_out"], torch.tensor(1 / 3))
    assert env.episode_length_buf[failing].tolist() == [0, 0]


# --- nothing that is handed out is the environment's own


def test_what_is_handed_out_may_be_changed_without_changing_the_environment(name):
    env, twin = make(name), make(name)
    for one in (env, twin):
        near_the_end(one, [3, 99, 99, 99, 99])
    for values in env.get_observations().values():
        values.fill_(9.0)
    assert_same_bits(dict(env.get_observations()), dict(twin.get_observations()))
    for number in range(5):
        made, other = step(env, number), step(twin, number)
        assert_same_bits(tensors(env, made), tensors(twin, other))
        handed_out = [*made.obs.values(), *made.extras.get("final_obs", {}).values(), made.rewards]
        for values in (*handed_out, *([made.extras["style_reward"]] if tracks(env) else [])):
            values.fill_(9.0)
        assert_same_bits(dict(env.get_observations()), dict(twin.get_observations()))


def test_what_was_handed_out_does_not_change_later(name):
    env = make(name)
    near_the_end(env, [1, 2, 3, 4, 5])
    kept = []
    for number in range(6):
        shown = tensors(env, step(env, number))
        kept.append((shown, {key: values.clone() for key, values in shown.items()}))
    for shown, copies in kept:
        assert_same_bits(shown, copies)


def test_the_actions_stay_the_callers_own(name):
    env, twin = make(name), make(name)
    actions = torch.full((N, env.num_actions), 0.1)
    env.step(actions)
    twin.step(actions.clone())
    actions.fill_(9.0)  # a caller may use its tensor again
    for number in range(2):
        assert_same_bits(tensors(env, step(env, number)), tensors(twin, step(twin, number)))


# --- the same seed, the same bits


def test_the_same_seed_gives_the_same_bits_at_one_and_two_threads(name):
    one, two = make(name, threads=1), make(name, threads=2)
    assert_same_bits(dict(one.get_observations()), dict(two.get_observations()))
    for env in (one, two):
        near_the_end(env, [3, 99, 5, 99, 99])
    for number in range(8):
        assert_same_bits(tensors(one, step(one, number)), tensors(two, step(two, number)))


def test_nothing_depends_on_the_global_generators(name):
    torch.manual_seed(1)
    one = make(name)
    torch.manual_seed(2)
    two = make(name)
    near_the_end(one, [1] * N)
    near_the_end(two, [1] * N)
    before = torch.get_rng_state()
    assert_same_bits(tensors(one, step(one)), tensors(two, step(two)))
    assert torch.equal(torch.get_rng_state(), before)


def test_another_seed_gives_other_starts_commands_and_noise(name):
    one, two = make(name, seed=1).get_observations(), make(name, seed=2).get_observations()
    assert (one["critic"] != two["critic"]).any(dim=1).all()
    assert ((one["policy"] - one["critic"]) != (two["policy"] - two["critic"])).any(dim=1).all()
    assert len(one["critic"].unique(dim=0)) == N


# --- a saved state goes on to the bit


def through_a_file(state: dict[str, Any]) -> dict[str, Any]:
    """As a checkpoint does, which takes plain tensors only."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize("steps_before", [0, 3, 7], ids=["fresh", "mid-episode", "after resets"])
def test_a_saved_state_goes_on_to_the_bit_across_resets(name, steps_before):
    env = make(name, seed=3)
    near_the_end(env, [5, 6, 9, 12, 99])
    for number in range(steps_before):
        step(env, number)
    saved = through_a_file(env.state_dict())
    uninterrupted = [tensors(env, step(env, number)) for number in range(10)]
    assert any("final/critic" in shown for shown in uninterrupted)

    resumed = make(name, seed=4, threads=2)
    step(resumed, 77)
    resumed.load_state_dict(saved)
    again = [tensors(resumed, step(resumed, number)) for number in range(10)]
    for a, b in zip(uninterrupted, again, strict=True):
        assert_same_bits(a, b)


def test_a_saved_state_brings_the_observations_that_the_policy_sees_next(name):
    env = make(name)
    made = step(env)
    saved = env.state_dict()
    resumed = make(name, seed=9)
    resumed.load_state_dict(saved)
    assert_same_bits(dict(resumed.get_observations()), dict(made.obs))
    step(env, 1)
    resumed.load_state_dict(saved)  # going on did not change what was saved
    assert_same_bits(dict(resumed.get_observations()), dict(made.obs))


def test_a_state_of_another_number_of_robots_is_refused(name):
    with pytest.raises(UserError, match=r"saved state is of 3 robots, this environment has 5"):
        make(name).load_state_dict(make(name, count=3).state_dict())


def test_an_environment_needs_a_robot(name):
    with pytest.raises(UserError, match="num_envs is 0"):
        make(name, count=0)


# --- rewards


def test_derived_quantities_are_those_of_the_new_state(name):
    env = make(name)
    for number in range(3):
        step(env, number)
    model = env.task.robot.model(visuals=False)
    data, moved = mujoco.MjData(model), []
    state = env.physics.state_dict()
    for robot in range(N):
        data.qpos[:], data.qvel[:] = state["qpos"][robot], state["qvel"][robot]
        mujoco.mj_kinematics(model, data)
        now = data.xpos.copy()
        assert_allclose(env.physics.read("xpos")[robot], now, atol=1e-6)
        mujoco.mj_integratePos(model, data.qpos, data.qvel, -env.task.timestep)
        mujoco.mj_kinematics(model, data)
        moved.append(np.abs(data.xpos - now).max())
    assert min(moved) > 1e-4  # what lags by a substep would be seen


def test_the_reward_is_the_sum_of_the_weighted_terms_per_second(name):
    env = make(name)
    near_the_end(env, [2, 99, 99, 99, 99])
    for number in range(3):
        made = step(env, number)
        expected = sum(term.weight * term.function(env.last_state) for term in env.task.rewards) * env.step_dt
        assert_close(made.rewards, expected, rtol=1e-5, atol=1e-6)
        assert_close(env.last_terms.sum(dim=1), made.rewards)
        assert len(made.rewards.unique()) == N


def test_the_log_has_every_term_of_the_ended_episodes_per_second(name):
    env = make(name)
    near_the_end(env, [4, 4, 99, 99, 99])
    sums = torch.zeros(N, len(env.task.rewards))
    for number in range(4):
        made = step(env, number)
        sums += env.last_terms
    names = [f"Episode_Reward/{term.name}" for term in env.task.rewards]
    assert [key for key in made.extras["log"] if key.startswith("Episode_Reward/")] == names
    logged = torch.stack([made.extras["log"][key] for key in names])
    assert_close(logged * env.task.episode_seconds, sums[:2].mean(dim=0))
    assert made.extras["log"]["Episode_Termination/time_out"] == 1.0
    near_the_end(env, [1, 99, 99, 99, 99])  # a new episode starts its sums at zero
    made = step(env, 5)
    logged = torch.stack([made.extras["log"][key] for key in names])
    assert_close(logged * env.task.episode_seconds, env.last_terms[0])


def test_an_unmodified_rsl_rl_runner_trains_on_it(name, capsys):
    env = make(name, count=8)
    preset = task_entry(name).presets["laptop"].with_changes({"num_envs": 8, "num_steps_per_env": 4})
    config = runner_config(preset, Method(name="task-only"))
    for key in ("fixed_weight_cfg", "exploration_cfg", "style_cfg"):
        config["algorithm"].pop(key)
    config["algorithm"]["class_name"] = "PPO"
    torch.manual_seed(0)
    runner = OnPolicyRunner(env, config, None, "cpu")
    before = [parameter.clone() for parameter in runner.alg.actor.parameters()]
    runner.learn(2, init_at_random_ep_len=True)
    capsys.readouterr()
    assert all(not torch.equal(a, b) for a, b in zip(before, runner.alg.actor.parameters(), strict=True))
    assert_well_formed(env.get_observations(), env)


# ---------------------------------------------------------------- rewards and rotations, by hand


def test_position_error_and_closeness():
    at, target = (
        torch.tensor([[3.0, 4.0, 1.0], [0.1, 0.2, 0.3]]),
        torch.tensor([[0.0, 0.0, 1.0], [0.1, 0.2, 0.3]]),
    )
    assert_close(rows.position_error(at, target), torch.tensor([5.0, 0.0]))
    assert_close(rows.position_closeness(at, target), torch.tensor([1.0 - math.tanh(5.0), 1.0]))


def test_action_rate_and_squared_norm():
    assert_close(rows.action_rate(torch.tensor([[1.0, -1.0]]), torch.tensor([[0.0, 1.0]])), torch.tensor([5.0]))
    assert_close(rows.squared_norm(torch.tensor([[1.0, -2.0, 2.0]])), torch.tensor([9.0]))


@pytest.mark.parametrize("angle", [0.0, 0.3, 1.5, 3.0, math.pi])
def test_the_angle_between_rotations_is_that_of_the_turn_whatever_the_signs(angle):
    turned, start = (
        torch.zeros(4, dtype=torch.float64),
        torch.tensor([0.5, 0.5, -0.5, 0.5], dtype=torch.float64),
    )
    axis = np.array([2.0, -1.0, 2.0]) / 3.0
    by = np.array([math.cos(angle / 2), *(math.sin(angle / 2) * axis)])
    mujoco.mju_mulQuat(turned.numpy(), by, start.numpy())
    for a, b in ((start, turned), (turned, start), (start, -turned)):
        assert angle_between(a, b).item() == pytest.approx(angle, abs=1e-7)
        assert rows.orientation_error(a[None], b[None]).item() == pytest.approx(angle, abs=1e-7)


def test_euler_angles_turn_about_x_then_y_then_z_all_fixed():
    def about(axis: int, angle: float) -> np.ndarray:
        return np.array([math.cos(angle / 2), *(math.sin(angle / 2) * np.eye(3)[axis])])

    for angles in (
        (0.3, 0.0, 0.0),
        (0.0, -1.2, 0.0),
        (0.0, 0.0, 2.9),
        (0.4, 1.1, -0.7),
        (-2.0, 3.1, math.pi),
    ):
        expected = about(0, angles[0])
        for axis in (1, 2):
            product = np.empty(4)
            mujoco.mju_mulQuat(product, about(axis, angles[axis]), expected)
            expected = product
        quaternion = from_euler(*(torch.tensor([angle], dtype=torch.float64) for angle in angles))
        assert abs(quaternion[0].numpy() @ expected) == pytest.approx(1.0, abs=1e-12)


def test_a_part_that_a_layout_has_not_is_refused_with_those_it_has():
    with pytest.raises(UserError, match=r"'foot'.*hand, elbow"):
        Layout({"hand": 3, "elbow": 1}).part(torch.zeros(4), "foot")


# ---------------------------------------------------------------- Franka-Reach against the paper

REACH = task_entry("Franka-Reach").task
DEFAULT = np.array(REACH.robot.default_joint_pos)


def parts(obs: TensorDict, group: str = "critic") -> dict[str, Tensor]:
    return REACH.layout.split(obs[group])


def test_table_3_observations_actions_and_demonstration():
    assert REACH.observations == OBSERVATIONS
    assert dict(REACH.layout.parts) == {
        "joint_pos": 7,
        "joint_vel": 7,
        "target_pos": 3,
        "target_quat": 4,
        "last_action": 7,
    }
    assert list(REACH.layout) == ["joint_pos", "joint_vel", "target_pos", "target_quat", "last_action"]
    assert REACH.layout.width == 28
    env = make("Franka-Reach")
    assert env.num_actions == 7
    assert env.get_observations()["policy"].shape == (N, 28)
    assert env.get_observations()["style"].shape == (N, 7)
    assert dict(REACH.features.parts) == {"hand_pos": 3, "hand_quat": 4}


def test_table_4_weights_in_the_papers_order():
    assert REACH.rewards == REWARDS
    weights = {term.name: term.weight for term in REACH.rewards}
    assert list(weights.items()) == [
        ("ee_tracking_coarse", -0.5),
        ("ee_tracking_fine", 1.0),
        ("ee_orientation", -0.1),
        ("action_rate", -0.01),
        ("joint_vel", -0.01),
    ]


def hand_pose(joint_pos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By plain MuJoCo."""
    model = REACH.robot.model(visuals=False)
    data = mujoco.MjData(model)
    data.qpos[REACH.robot.joint_qpos_indices(model)] = joint_pos
    mujoco.mj_kinematics(model, data)
    return data.body("hand").xpos.copy(), data.body("hand").xquat.copy()


def test_table_4_terms_recomputed_from_what_the_critic_sees():
    env = make("Franka-Reach")
    previous = np.zeros((N, 7))
    for number in range(4):
        made = step(env, number)
        seen = {key: values.double().numpy() for key, values in parts(made.obs).items()}
        for robot in range(N):
            position, orientation = hand_pose(seen["joint_pos"][robot] + DEFAULT)
            distance = math.dist(position, seen["target_pos"][robot])
            error = np.empty(3)
            mujoco.mju_subQuat(error, orientation, seen["target_quat"][robot])
            terms = [
                -0.5 * distance,
                1.0 * (1.0 - math.tanh(distance)),
                -0.1 * np.linalg.norm(error),
                -0.01 * ((seen["last_action"][robot] - previous[robot]) ** 2).sum(),
                -0.01 * (seen["joint_vel"][robot] ** 2).sum(),
            ]
            assert_allclose(env.last_terms[robot] * 30.0, terms, rtol=2e-4, atol=2e-5)
        previous = seen["last_action"]


def test_the_style_features_are_the_hands_pose_after_the_step():
    env = make("Franka-Reach")
    for number in range(3):
        made = step(env, number)
    for robot in range(N):
        position, orientation = hand_pose(parts(made.obs)["joint_pos"][robot].double().numpy() + DEFAULT)
        assert_allclose(made.obs["style"][robot, :3], position, atol=1e-5)
        assert abs(made.obs["style"][robot, 3:].double().numpy() @ orientation) == pytest.approx(1.0, abs=1e-6)


def test_an_episode_is_4_seconds_at_30_hz():
    env = make("Franka-Reach")
    assert env.max_episode_length == 120
    assert env.step_dt == pytest.approx(1 / 30)
    for number in range(119):
        assert not step(env, number).dones.any()
    assert_close(env.physics.read("time"), torch.full((N,), 119 / 30))
    assert step(env, 119).dones.all()


def test_actions_are_joint_targets_about_the_default_pose():
    env = make("Franka-Reach")
    actions = torch.randn(N, 7, generator=torch.Generator().manual_seed(0))
    env.step(actions)
    assert_close(env.physics.read("ctrl"), torch.tensor(DEFAULT).float() + 0.5 * actions)


def turned(quaternions: np.ndarray, vector: list[float]) -> np.ndarray:
    """The vector, rotated by each."""
    out = np.empty((len(quaternions), 3))
    for row, quaternion in zip(out, quaternions, strict=True):
        mujoco.mju_rotVecQuat(row, np.array(vector), quaternion)
    return out


def test_the_target_is_in_the_papers_box_with_pitch_all_round():
    assert REACH.command == COMMAND
    command = REACH.command.sample(20_000, torch.Generator().manual_seed(0))
    target = {key: values.double().numpy() for key, values in REACH.command.layout.split(command).items()}
    box = np.array([[0.35, 0.45], [-0.05, 0.05], [0.20, 0.30]])
    assert_allclose(target["target_pos"].min(axis=0), box[:, 0], atol=1e-4)
    assert_allclose(target["target_pos"].max(axis=0), box[:, 1], atol=1e-4)
    assert (target["target_pos"] >= box[:, 0] - 1e-7).all()
    assert (target["target_pos"] <= box[:, 1] + 1e-7).all()
    assert_allclose(target["target_pos"].mean(axis=0), box.mean(axis=1), atol=1e-3)
    x_axes, y_axes = (turned(target["target_quat"], axis) for axis in ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]))
    assert_allclose(y_axes, y_axes[:1].repeat(len(y_axes), axis=0), atol=1e-5)  # nothing but pitch is drawn
    assert_allclose(y_axes[0, 2], 0.0, atol=1e-6)  # no roll
    _, default = hand_pose(DEFAULT)
    assert turned(default[None], [0.0, 1.0, 0.0])[0] @ y_axes[0] > 0.99  # the wrist need not turn round
    pitch = np.arctan2(-x_axes[:, 2], x_axes @ np.cross(y_axes[0], [0.0, 0.0, 1.0]))
    counts, _ = np.histogram(pitch, bins=8, range=(-math.pi, math.pi))
    assert counts.sum() == 20_000
    assert np.abs(counts - 2500).max() < 5 * math.sqrt(2500)


def test_every_episode_starts_at_rest_with_a_target_of_its_own_that_stays():
    env = make("Franka-Reach")
    near_the_end(env, [3, 99, 99, 99, 99])
    first = parts(env.get_observations())["target_pos"]
    assert len(first.unique(dim=0)) == N
    for number in range(2):
        assert torch.equal(parts(step(env, number).obs)["target_pos"], first)
    new = parts(step(env, 2).obs)
    assert (new["target_pos"] != first).any(dim=1).tolist() == [True, False, False, False, False]
    for at_rest in ("joint_vel", "last_action"):
        assert (new[at_rest] == 0).all(dim=1).tolist() == [True, False, False, False, False]


def test_episodes_start_at_rest_at_the_default_times_a_half_to_one_and_a_half_within_limits():
    seen = parts(make("Franka-Reach", count=600).get_observations())
    joint_pos = seen["joint_pos"].double().numpy() + DEFAULT
    assert seen["joint_vel"].abs().max() == 0.0
    assert seen["last_action"].abs().max() == 0.0
    model = REACH.robot.model(visuals=False)
    for joint, (angle, label) in enumerate(zip(DEFAULT, REACH.robot.joint_names, strict=True)):
        low, high = model.joint(label).range
        least, most = sorted((0.5 * angle, 1.5 * angle))
        values = joint_pos[:, joint]
        assert values.min() >= max(least, low) - 1e-6
        assert values.max() <= min(most, high) + 1e-6
        if angle == 0.0:
            continue
        assert values.min() == pytest.approx(max(least, low), abs=0.02 * abs(angle))
        assert values.max() == pytest.approx(min(most, high), abs=0.02 * abs(angle))
        clamped = np.isclose(values, low) | np.isclose(values, high)
        beyond = max(0.0, low - least, most - high) / abs(angle)
        assert clamped.mean() == pytest.approx(beyond, abs=0.08)
    free = [1, 6]  # these never meet a limit; each joint is drawn on its own
    assert abs(np.corrcoef(joint_pos[:, free].T)[0, 1]) < 0.15


def test_the_policy_sees_joints_with_isaac_labs_noise_and_the_critic_without():
    env = make("Franka-Reach", count=400)
    for obs in (env.get_observations(), step(env).obs):
        noisy, true = parts(obs, "policy"), parts(obs, "critic")
        for key in ("joint_pos", "joint_vel"):
            noise = (noisy[key] - true[key]).double()
            assert noise.abs().max() <= 0.01 + 1e-5
            assert noise.abs().max() > 0.0099
            assert abs(noise.mean()) < 5 * 0.01 / math.sqrt(3 * noise.numel())
            assert noise.std().item() == pytest.approx(0.01 / math.sqrt(3), rel=0.05)
        for key in ("target_pos", "target_quat", "last_action"):
            assert torch.equal(noisy[key], true[key])


# --- Eq. 1 on the arm


class Puppet(CpuPhysics):
    """Arms that are placed, not driven: joint_pos(step) and joint_vel(step) after each step."""

    def __init__(
        self, count: int, joint_pos: Callable[[int], np.ndarray], joint_vel: Callable[[int], np.ndarray]
    ) -> None:
        super().__init__(REACH.robot.model(visuals=False), count, threads=1)
        self._joint_pos, self._joint_vel = joint_pos, joint_vel
        self._steps = 0

    def step(self, substeps: int) -> None:
        assert substeps == REACH.decimation
        self._steps += 1
        for field, value in (("qpos", self._joint_pos(self._steps)), ("qvel", self._joint_vel(self._steps))):
            self.write(field, torch.from_numpy(value).expand(self.num_envs, -1))
        self.forward()


@dataclass(frozen=True)
class Goal:
    """Always the same target."""

    command: Tensor
    layout: Layout = REACH.command.layout
    resample_seconds: None = None

    def sample(self, count: int, generator: torch.Generator, share: float = 1.0) -> Tensor:  # noqa: ARG002
        return self.command.expand(count, -1)


def clips_goal(clip: Clip) -> Goal:
    pose = np.concatenate([clip.body_pos_w[-1, clip.body("hand")], clip.body_quat_w[-1, clip.body("hand")]])
    return Goal(torch.from_numpy(pose).float())


def play(task: Task, frame: Callable[[int], int], speed: float = 1.0) -> list[Stepped]:
    """An episode of the arm placed on the clip's frames."""
    clip = task.demonstration()
    last = len(clip) - 1
    puppet = Puppet(
        1,
        lambda k: clip.joint_pos[min(frame(k), last)],
        lambda k: speed * clip.joint_vel[min(frame(k), last)],
    )
    env = TaskEnv(task, 1, physics=puppet)
    return [Stepped(*env.step(torch.zeros(1, 7))) for _ in range(env.max_episode_length)]


def test_the_style_reward_is_1_on_the_clip_and_less_beside_it():
    on_it = torch.cat([made.extras["style_reward"] for made in play(REACH, lambda k: k)])
    assert_close(on_it, torch.ones(120), atol=1e-5, rtol=0)
    late = torch.cat([made.extras["style_reward"] for made in play(REACH, lambda k: max(k - 12, 0))])
    assert late.max() <= 1.0
    assert late[:60].mean() < 0.8  # in step with the episode: 0.4 s late is not the same


def test_eq1_on_the_arm_by_hand():
    env = make("Franka-Reach")
    clip = REACH.demonstration()
    assert clip.fps == pytest.approx(1 / env.step_dt)
    weights = REACH.style.weights
    assert set(weights) == set(REACH.features)
    env.episode_length_buf = torch.tensor([0, 10, 40, 80, 117])
    for number in range(2):
        made = step(env, number)
        for robot, frame in enumerate(np.array([1, 11, 41, 81, 118]) + number):
            features = made.obs["style"][robot].double().numpy()
            off = ((features[:3] - clip.body_pos_w[frame, 0]) ** 2).sum()
            wanted = clip.body_quat_w[frame, 0]
            turn = min(((sign * features[3:] - wanted) ** 2).sum() for sign in (1.0, -1.0))
            expected = math.exp(-(weights["hand_pos"] * off + weights["hand_quat"] * turn))
            assert made.extras["style_reward"][robot].item() == pytest.approx(expected, rel=1e-4)


def shortened(clip: Clip, frames: int) -> Clip:
    names = ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w")
    return replace(clip, **{key: getattr(clip, key)[:frames] for key in names})


def test_after_its_end_a_clip_stays_at_its_last_frame():
    clip = shortened(REACH.demonstration(), 31)
    rewards = [
        made.extras["style_reward"].item() for made in play(replace(REACH, demonstration=lambda: clip), lambda k: k)
    ]
    assert rewards == pytest.approx([1.0] * 120, abs=1e-5)


def test_a_clip_of_another_rate_is_followed_in_time_not_frame_by_frame():
    clip = REACH.demonstration()
    at_60_hz = TaskEnv(
        REACH,
        1,
        clip=clip.resampled(60.0),
        physics=Puppet(1, lambda k: clip.joint_pos[k], lambda k: clip.joint_vel[k]),
    )
    rewards = [at_60_hz.step(torch.zeros(1, 7))[3]["style_reward"].item() for _ in range(100)]
    assert rewards == pytest.approx([1.0] * 100, abs=1e-4)


def test_a_clip_without_the_hand_is_refused():
    with pytest.raises(UserError, match=r"'hand'.*gripper"):
        TaskEnv(REACH, 1, clip=replace(REACH.demonstration(), body_names=("gripper",)))


def test_the_demonstration_conflicts_with_the_task():
    """Even at the clip's own goal, the best that style can be costs a good part of what the task can give."""
    goal = replace(REACH, command=clips_goal(REACH.demonstration()))
    following = torch.cat([made.rewards for made in play(goal, lambda k: k)]).sum().item()
    at_rest = play(goal, lambda _: 10_000, speed=0.0)
    standing = torch.cat([made.rewards for made in at_rest]).sum().item()
    # At the goal only the fine term is left, of 1 per second.
    assert standing == pytest.approx(REACH.episode_seconds, rel=0.01)
    assert following < 0.92 * standing
    assert torch.cat([made.extras["style_reward"] for made in at_rest]).mean() < 0.75
