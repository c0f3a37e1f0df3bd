"""The learner under rsl_rl's own OnPolicyRunner: on strangers' environments, a real task, a solved toy."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

from consmimic.envs import TaskEnv
from consmimic.errors import UserError
from consmimic.learner import ConsMimicPPO, IterationReport
from consmimic.tasks import Method, runner_config, task_entry
from toy_env import ForeignEnv, ToyTradeOff

OURS = "consmimic.learner:ConsMimicPPO"
NEVER = {"warmup_min_iterations": 1000, "warmup_max_iterations": 1000}
"""A warm-up that outlasts every test."""


def short_warmup(iterations: int) -> dict[str, int]:
    return {"warmup_min_iterations": iterations, "warmup_max_iterations": iterations}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def config(class_name: str = OURS, *, steps: int = 6, init_std: float = 0.5, **algorithm: Any) -> dict[str, Any]:
    """A runner configuration as people write it; before rsl_rl 5.5 a plain PPO needs the ``rnd_cfg``."""
    model = {
        "class_name": "MLPModel",
        "hidden_dims": [16, 16],
        "activation": "elu",
        "obs_normalization": True,
    }
    distribution = {"class_name": "GaussianDistribution", "init_std": init_std}
    return {
        "num_steps_per_env": steps,
        "save_interval": 1000,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": model | {"distribution_cfg": distribution},
        "critic": dict(model),
        "algorithm": {
            "class_name": class_name,
            "num_learning_epochs": 2,
            "num_mini_batches": 2,
            "gamma": 0.9,
            "lam": 0.9,
        }
        | ({"rnd_cfg": None} if class_name == "PPO" else {})
        | algorithm,
    }


def reach_config(method: Method, **constraint: Any) -> dict[str, Any]:
    """The configuration of the real task, with a small rollout."""
    preset = task_entry("Franka-Reach").preset("laptop").with_changes({"num_steps_per_env": 6})
    if constraint:
        preset = preset.with_changes({"constraint": constraint})
    return runner_config(preset, method)


def walk_config() -> dict[str, Any]:
    """A task whose style a discriminator judges, with a small one and a small rollout."""
    small = {"num_steps_per_env": 6, "style.batch_size": 32, "style.updates": 2, "style.hidden_dims": [16]}
    preset = task_entry("Anymal-Forward").preset("laptop").with_changes({**small, "constraint": short_warmup(2)})
    return runner_config(preset, Method(alpha=0.7))


def as_plain_ppo(cfg: dict[str, Any]) -> dict[str, Any]:
    """The same configuration for rsl_rl's own algorithm."""
    cfg = copy.deepcopy(cfg)
    for key in ("constraint_cfg", "fixed_weight_cfg", "exploration_cfg", "style_cfg", "style_critic"):
        cfg["algorithm"].pop(key, None)
    cfg["algorithm"] |= {"class_name": "PPO", "rnd_cfg": None}
    return cfg


def make_runner(env: VecEnv, cfg: dict[str, Any], *, seed: int = 0, log_dir: Path | None = None) -> OnPolicyRunner:
    torch.manual_seed(seed)
    return OnPolicyRunner(env, cfg, None if log_dir is None else str(log_dir), "cpu")


def learner(runner: OnPolicyRunner) -> ConsMimicPPO:
    assert isinstance(runner.alg, ConsMimicPPO)
    return runner.alg


def trained(env: VecEnv, cfg: dict[str, Any], iterations: int, **kwargs: Any) -> OnPolicyRunner:
    runner = make_runner(env, cfg, **kwargs)
    runner.learn(iterations, init_at_random_ep_len=True)
    return runner


def reach_env(seed: int = 0) -> TaskEnv:
    return TaskEnv(task_entry("Franka-Reach").task, 16, seed=seed, threads=1)


def ppo_state(runner: OnPolicyRunner) -> dict[str, Any]:
    """All that plain PPO learned."""
    alg = runner.alg
    return {
        "actor": alg.actor.state_dict(),
        "critic": alg.critic.state_dict(),
        "optimizer": alg.optimizer.state_dict(),
        "learning_rate": alg.learning_rate,
    }


def same(one: Any, other: Any) -> bool:
    """Bit for bit, through dicts and sequences."""
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


# ---------------------------------------------------------------- the task alone is plain PPO


@pytest.mark.parametrize(
    "weights",
    [
        {"constraint_cfg": NEVER},
        {"fixed_weight_cfg": {"style_weight": 0.0}},
        {"fixed_weight_cfg": {"style_weight": 0.0, "mix": "advantages"}},
    ],
    ids=["warm-up", "zero weight in rewards", "zero weight in advantages"],
)
def test_the_task_alone_is_plain_ppo_to_the_bit(weights):
    ours = trained(ForeignEnv(), config(**weights), 5)
    assert same(ppo_state(ours), ppo_state(trained(ForeignEnv(), config("PPO"), 5)))


@pytest.mark.parametrize(
    ("method", "constraint"),
    [(Method(alpha=0.9), NEVER), (Method(name="task-only"), {})],
    ids=["warm-up", "task-only"],
)
def test_the_task_alone_is_plain_ppo_to_the_bit_on_a_robot(method, constraint):
    cfg = reach_config(method, **constraint)
    cfg["algorithm"]["exploration_cfg"] = {"std_floor": 0.0}
    ours = trained(reach_env(), copy.deepcopy(cfg), 3)
    assert same(ppo_state(ours), ppo_state(trained(reach_env(), as_plain_ppo(cfg), 3)))


@pytest.mark.parametrize(
    "weights",
    [
        {"constraint_cfg": short_warmup(1)},
        {"fixed_weight_cfg": {"style_weight": 0.1}},
        {"fixed_weight_cfg": {"style_weight": 0.1, "mix": "advantages"}},
    ],
    ids=["after the warm-up", "a weight in rewards", "a weight in advantages"],
)
def test_with_style_it_is_not_plain_ppo(weights):
    ours = trained(ForeignEnv(), config(**weights), 2)
    assert not same(ppo_state(ours), ppo_state(trained(ForeignEnv(), config("PPO"), 2)))


# ---------------------------------------------------------------- fixed weights


class MixedReward(ForeignEnv):
    """What someone without this package would do: the style inside the reward."""

    def step(self, actions):
        obs, task, dones, extras = super().step(actions)
        return obs, 0.75 * task + 0.25 * extras["style_reward"], dones, extras


def test_a_weight_in_rewards_is_plain_ppo_on_the_weighted_reward_to_the_bit():
    ours = trained(ForeignEnv(), config(fixed_weight_cfg={"style_weight": 0.25}), 5)
    assert same(ppo_state(ours), ppo_state(trained(MixedReward(), config("PPO"), 5)))


# ---------------------------------------------------------------- Eq. 8


@dataclass
class Rollout:
    """What the environment gave in one iteration, and what the learner made of it."""

    task: list[torch.Tensor]
    style: list[torch.Tensor]
    dones: list[torch.Tensor]
    time_outs: list[torch.Tensor]
    advantages: np.ndarray
    task_values: np.ndarray
    style_values: np.ndarray
    sigma: float


def recorded_rollouts(cfg: dict[str, Any], iterations: int) -> list[Rollout]:
    """Train, and keep of every iteration what went in and the advantages that came out."""
    env = ForeignEnv()
    runner = make_runner(env, cfg)
    alg = learner(runner)
    step, update = env.step, alg.update
    seen: list[tuple[Any, ...]] = []
    rollouts: list[Rollout] = []
    sigmas = [1.0]

    def watched_step(actions):
        before = env.get_observations()["policy"]
        obs, task, dones, extras = step(actions)
        seen.append((before, task, extras["style_reward"], dones, extras["time_outs"]))
        return obs, task, dones, extras

    def watched_update():
        observations, task, style, dones, time_outs = (list(column) for column in zip(*seen, strict=True))
        seen.clear()
        every = torch.stack([*observations, env.get_observations()["policy"]])  # (T + 1, N, 2)
        inputs = TensorDict({"policy": every.flatten(0, 1)}, batch_size=[every[..., 0].numel()])
        with torch.no_grad():
            task_values, style_values = (
                net(inputs).view(every.shape[:2]).double().numpy() for net in (alg.critic, alg.style_critic)
            )
        advantages = alg.storage.advantages.squeeze(-1).double().numpy().copy()
        rollouts.append(Rollout(task, style, dones, time_outs, advantages, task_values, style_values, sigma=sigmas[-1]))
        return update()

    def note_sigma(report: IterationReport):
        sigmas.append(report.scalars["sigma_lambda"])

    env.step, alg.update, alg.on_iteration = watched_step, watched_update, note_sigma
    runner.learn(iterations)
    return rollouts


def standardized_gae(rewards, values, dones, time_outs, gamma=0.9, gae_lambda=0.9) -> np.ndarray:
    """Step by step from the definition; a time-out's lost future is the value of the state it was in."""
    steps, robots = len(rewards), len(rewards[0])
    advantages = np.zeros((steps, robots))
    for n in range(robots):
        following = 0.0
        for t in reversed(range(steps)):
            reward = float(rewards[t][n]) + gamma * values[t, n] * float(time_outs[t][n])
            if dones[t][n]:
                following = reward - values[t, n]
            else:
                following = reward + gamma * values[t + 1, n] - values[t, n] + gamma * gae_lambda * following
            advantages[t, n] = following
    return (advantages - advantages.mean()) / advantages.std(ddof=1)


@pytest.mark.parametrize(
    ("weights", "expected_sigmas"),
    [
        ({"fixed_weight_cfg": {"style_weight": 0.3, "mix": "advantages"}}, (0.7,)),
        ({"constraint_cfg": short_warmup(2)}, None),
    ],
    ids=["fixed", "constrained"],
)
def test_eq8_in_the_learner_is_what_a_hand_computes(weights, expected_sigmas):
    cfg = config(**weights)
    # Without it the critics asked after the rollout are those that the learner asked during it.
    cfg["actor"]["obs_normalization"] = cfg["critic"]["obs_normalization"] = False
    rollouts = recorded_rollouts(cfg, 5)
    assert any(d.any() and not t.all() for r in rollouts for d, t in zip(r.dones, r.time_outs, strict=True))
    for index, r in enumerate(rollouts):
        sigma = r.sigma if expected_sigmas is None else expected_sigmas[0]
        task = standardized_gae(r.task, r.task_values, r.dones, r.time_outs)
        style = standardized_gae(r.style, r.style_values, r.dones, r.time_outs)
        assert_allclose(r.advantages, sigma * task + (1.0 - sigma) * style, atol=1e-4)
        if expected_sigmas is None:
            assert (sigma == 1.0) == (index < 2)  # the warm-up's iterations
        assert not np.allclose(task, style, atol=0.1)


def test_the_style_critic_learns_the_value_of_the_style():
    env = ToyTradeOff(64)
    runner = make_runner(env, config(constraint_cfg=NEVER, schedule="fixed", learning_rate=1e-2, init_std=0.1))
    runner.alg.actor.requires_grad_(False)  # a policy that stays as it is, so that its value is known
    runner.learn(80)
    contexts = env.every_context()
    with torch.no_grad():
        _, style = env.rewards(runner.alg.actor(contexts), torch.arange(env.CONTEXTS))
        per_step = style - 2 * 0.1**2
        value = per_step + 0.9 / (1 - 0.9) * per_step.mean()  # the next context is any
        assert_allclose(learner(runner).style_critic(contexts).squeeze(-1), value, rtol=0.05)


# ---------------------------------------------------------------- environments of strangers, bad input


def test_trains_on_a_foreign_environment_and_plays_without_style():
    runner = trained(ForeignEnv(), config(constraint_cfg=short_warmup(2)), 4)
    policy = runner.get_inference_policy()
    with torch.inference_mode():
        assert policy(ForeignEnv(3).get_observations()).shape == (3, 2)


class WithoutStyle(ForeignEnv):
    def step(self, actions):
        obs, task, dones, extras = super().step(actions)
        return obs, task, dones, {"time_outs": extras["time_outs"]}


def test_an_environment_without_style_is_told_what_is_missing():
    with pytest.raises(UserError, match=r"no 'style_reward'; they have time_outs"):
        trained(WithoutStyle(), config(), 1)


def test_task_only_needs_no_style():
    trained(WithoutStyle(), config(fixed_weight_cfg={"style_weight": 0.0}), 1)


RECURRENT = {"class_name": "RNNModel", "hidden_dims": [8], "activation": "elu", "rnn_type": "gru"}
RND = {"weight": 1.0, "num_outputs": 1, "predictor_hidden_dims": [8], "target_hidden_dims": [8]}


def with_part(cfg: dict[str, Any], **parts: Any) -> dict[str, Any]:
    for name, values in parts.items():
        cfg[name] = cfg[name] | values
    return cfg


@pytest.mark.parametrize(
    ("cfg", "message"),
    [
        (config(normalize_advantage_per_mini_batch=True), "normalize_advantage_per_mini_batch"),
        (config(rnd_cfg=RND), "rnd_cfg"),
        (with_part(config(), actor=RECURRENT), "the actor is recurrent"),
        (config(style_critic=RECURRENT), "the style critic is recurrent"),
        (config(constraint_cfg={"alfa": 0.9}), "unknown key in constraint_cfg 'alfa'. Valid: alpha, "),
        (config(constraint_cfg={"alpha": 1.2}), "alpha is 1.2; .* valid are 0 to 1"),
        (
            config(fixed_weight_cfg={"weight": 0.5}),
            "unknown key in fixed_weight_cfg 'weight'. Valid: style_weight",
        ),
        (config(fixed_weight_cfg={"style_weight": 2.0}), "style weight is 2.0; .* valid are 0 to 1"),
        (
            config(fixed_weight_cfg={"style_weight": 0.5, "mix": "losses"}),
            "unknown mix 'losses'. Valid: rewards, adv",
        ),
        (config(style_cfg={"clip": "a"}), "unknown key in style_cfg 'clip'. Valid: source"),
        (config(style_cfg={"source": "thin air"}), "unknown style source 'thin air'. Valid: environment"),
        (config(exploration_cfg={"floor": 0.1}), "unknown key in exploration_cfg 'floor'. Valid: std_floor"),
        (
            config(constraint_cfg={"alpha": 0.9}, fixed_weight_cfg={"style_weight": 0.5}),
            "constraint_cfg .* or fixed_weight_cfg .*, not both",
        ),
        (
            with_part(
                config(exploration_cfg={"std_floor": 0.1}),
                actor={"distribution_cfg": {"class_name": "HeteroscedasticGaussianDistribution"}},
            ),
            "std_floor needs .* not HeteroscedasticGaussianDistribution",
        ),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_bad_configurations_are_refused_when_built_and_named(cfg, message):
    with pytest.raises(UserError, match=message):
        make_runner(ForeignEnv(), copy.deepcopy(cfg))


def test_several_gpus_are_refused():
    runner = make_runner(ForeignEnv(), config())
    alg = runner.alg
    with pytest.raises(UserError, match="several GPUs"):
        ConsMimicPPO(alg.actor, alg.critic, alg.storage, multi_gpu_cfg={"global_rank": 0, "world_size": 2})


def test_a_configuration_can_be_used_again():
    cfg = config(style_critic={"class_name": "MLPModel", "hidden_dims": [3], "activation": "elu"})
    make_runner(ForeignEnv(), cfg)
    assert cfg["algorithm"]["style_critic"] == {
        "class_name": "MLPModel",
        "hidden_dims": [3],
        "activation": "elu",
    }


# ---------------------------------------------------------------- checkpoints


@pytest.mark.parametrize(
    ("make_env", "make_config", "cut"),
    [
        pytest.param(
            lambda seed: ForeignEnv(seed=seed, resumable=True),
            lambda: config(constraint_cfg=short_warmup(3), exploration_cfg={"std_floor": 0.45}),
            2,
            id="toy, saved in the warm-up",
        ),
        pytest.param(
            lambda seed: ForeignEnv(seed=seed, resumable=True),
            lambda: config(constraint_cfg=short_warmup(3)),
            4,
            id="toy, saved after the warm-up",
        ),
        pytest.param(
            lambda seed: ForeignEnv(seed=seed, resumable=True),
            lambda: config(fixed_weight_cfg={"style_weight": 0.5, "mix": "advantages"}),
            3,
            id="toy, fixed weight",
        ),
        pytest.param(
            lambda seed: reach_env(seed),
            lambda: reach_config(Method(alpha=0.9), **short_warmup(3)),
            2,
            id="robot, saved in the warm-up",
        ),
        pytest.param(
            lambda seed: reach_env(seed),
            lambda: reach_config(Method(alpha=0.9), **short_warmup(2)),
            4,
            id="robot, saved after the warm-up",
        ),
        pytest.param(
            lambda seed: TaskEnv(task_entry("Anymal-Forward").task, 8, seed=seed, threads=1),
            walk_config,
            4,
            id="walking robot with a discriminator",
        ),
    ],
)
def test_a_resumed_run_equals_the_uninterrupted_one_to_the_bit(
    tmp_path, make_env: Callable[[int], Any], make_config: Callable[[], dict[str, Any]], cut: int
):
    total = 6
    reports: list[IterationReport] = []

    def runner_on(env: VecEnv, seed: int) -> OnPolicyRunner:
        runner = make_runner(env, make_config(), seed=seed)
        learner(runner).on_iteration = reports.append
        return runner

    env = make_env(0)
    uninterrupted = runner_on(env, 0)
    uninterrupted.learn(total, init_at_random_ep_len=True)
    expected, reports = reports, []

    first = runner_on(make_env(0), 0)
    first.learn(cut, init_at_random_ep_len=True)
    first.save(str(tmp_path / "model.pt"))
    # Everything new, and random in another way: all that goes on must come from the file.
    other_env = make_env(7)
    second = runner_on(other_env, 7)
    second.load(str(tmp_path / "model.pt"))
    assert second.current_learning_iteration == cut - 1
    second.current_learning_iteration += 1
    second.learn(total - cut, init_at_random_ep_len=False)

    assert reports == expected
    assert [report.iteration for report in reports] == [1, 2, 3, 4, 5, 6]
    assert same(second.alg.save(), uninterrupted.alg.save())
    assert second.alg.learning_rate == uninterrupted.alg.learning_rate
    assert same(other_env.state_dict(), env.state_dict())


def test_a_plain_ppo_runner_loads_our_checkpoint_and_goes_on(tmp_path):
    ours = trained(ForeignEnv(), config(constraint_cfg=short_warmup(1)), 3)
    ours.save(str(tmp_path / "model.pt"))
    plain = make_runner(ForeignEnv(), config("PPO"), seed=1)
    plain.load(str(tmp_path / "model.pt"))
    assert plain.current_learning_iteration == 2
    for part in ("actor", "critic", "optimizer"):
        assert same(ppo_state(plain)[part], ppo_state(ours)[part])
    plain.learn(1)
    plain.save(str(tmp_path / "plain.pt"))
    plain_keys = torch.load(tmp_path / "plain.pt", weights_only=False).keys()
    our_keys = torch.load(tmp_path / "model.pt", weights_only=False).keys()
    assert our_keys == plain_keys | {"consmimic"}


def test_a_plain_ppo_checkpoint_warm_starts_us(tmp_path):
    plain = trained(ForeignEnv(), config("PPO"), 3)
    plain.save(str(tmp_path / "model.pt"))
    ours = make_runner(ForeignEnv(), config(constraint_cfg=short_warmup(1)), seed=1)
    ours.load(str(tmp_path / "model.pt"))
    assert same(ours.alg.actor.state_dict(), plain.alg.actor.state_dict())
    assert same(ours.alg.critic.state_dict(), plain.alg.critic.state_dict())
    reports: list[IterationReport] = []
    learner(ours).on_iteration = reports.append
    ours.learn(2)
    assert [report.scalars["warmup"] for report in reports] == [
        0.0,
        0.0,
    ]  # one iteration of warm-up is its own


def test_networks_alone_load_without_touching_the_constraint(tmp_path):
    saved = trained(ForeignEnv(), config(constraint_cfg=short_warmup(1)), 3)
    saved.save(str(tmp_path / "model.pt"))
    fresh = make_runner(ForeignEnv(), config(constraint_cfg=NEVER), seed=1)
    fresh.load(str(tmp_path / "model.pt"), load_cfg={"actor": True, "critic": True})
    assert same(fresh.alg.actor.state_dict(), saved.alg.actor.state_dict())
    assert learner(fresh).iteration == 0
    assert learner(fresh).mixing.multiplier == float("inf")


def test_a_fixed_weight_run_cannot_become_a_constrained_one_unnoticed(tmp_path):
    fixed = trained(ForeignEnv(), config(fixed_weight_cfg={"style_weight": 0.5}), 1)
    fixed.save(str(tmp_path / "model.pt"))
    with pytest.raises(UserError, match=r"fixed weight.*load_cfg"):
        make_runner(ForeignEnv(), config()).load(str(tmp_path / "model.pt"))


# ---------------------------------------------------------------- the log


class LogsAtResets(ForeignEnv):
    """Logs only when an episode ended, in a dictionary of its own: no ``log`` in the other steps."""

    def step(self, actions):
        obs, task, dones, extras = super().step(actions)
        if dones.any():
            extras["log"] = {"Mine/ended": dones.float().sum(), "unnamed": 1.0}
        return obs, task, dones, extras


class LogsOneDictionary(ForeignEnv):
    """Hands out the same dictionaries all the time, as Isaac Lab does between resets."""

    def __init__(self):
        super().__init__()
        self.extras = {"log": {"Mine/ended": 0.0, "unnamed": 1.0}}

    def step(self, actions):
        obs, task, dones, extras = super().step(actions)
        self.extras |= extras
        return obs, task, dones, self.extras


class LogsEpisodes(ForeignEnv):
    """The older name of the log, which rsl_rl prefers."""

    def step(self, actions):
        obs, task, dones, extras = super().step(actions)
        return obs, task, dones, extras | {"episode": {"Mine/ended": 1.0, "unnamed": 1.0}, "log": {}}


@pytest.mark.parametrize("make_env", [ForeignEnv, LogsAtResets, LogsOneDictionary, LogsEpisodes])
def test_our_scalars_and_the_environments_own_reach_tensorboard(tmp_path, make_env):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    runner = make_runner(make_env(), config(constraint_cfg=short_warmup(2)), log_dir=tmp_path)
    reports: list[IterationReport] = []
    learner(runner).on_iteration = reports.append
    runner.learn(4)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    tags = events.Tags()["scalars"]
    for name in ("v_task", "sigma_lambda", "lambda", "v_star", "threshold", "style_reward"):
        logged = {event.step: event.value for event in events.Scalars(f"ConsMimic/{name}")}
        reported = {r.iteration - 1: r.scalars[name] for r in reports if name in r.scalars}
        assert logged == pytest.approx(reported, rel=1e-6)
        assert len(logged) >= 3
    assert "Loss/style_value" in tags
    own = {"Mine/ended", "Episode/unnamed"}
    assert own & set(tags) == (set() if make_env is ForeignEnv else own)


def test_our_scalars_are_in_the_first_log_of_the_iteration():
    env = ToyTradeOff(4)
    step, logs = env.step, []

    def watched_step(actions):
        result = step(actions)
        logs.append(result[3]["log"])
        return result

    env.step = watched_step
    make_runner(env, config(constraint_cfg=NEVER, steps=3)).learn(2)
    assert [[key for key in log if not key.startswith("ConsMimic/")] for log in logs] == [["Toy/style"]] * 6
    assert [any(key.startswith("ConsMimic/") for key in log) for log in logs] == [True, False, False] * 2


# ---------------------------------------------------------------- exploration


@pytest.mark.parametrize("std_type", ["scalar", "log"])
def test_the_action_noise_stays_above_its_floor_and_can_leave_it(std_type):
    floor = 0.2
    cfg = config(exploration_cfg={"std_floor": floor}, init_std=0.3, entropy_coef=0.0, learning_rate=1e-2)
    cfg["actor"]["distribution_cfg"]["std_type"] = std_type
    runner = make_runner(ToyTradeOff(32), cfg)  # where noise only costs
    stds: list[torch.Tensor] = []

    def note_std(_: IterationReport):
        noise = dict(runner.alg.actor.named_parameters())
        if std_type == "scalar":
            stds.append(noise["distribution.std_param"].detach().clone())
        else:
            stds.append(noise["distribution.log_std_param"].detach().exp())

    learner(runner).on_iteration = note_std
    runner.learn(30)
    assert torch.stack(stds).min().item() == pytest.approx(floor, rel=1e-6)
    assert stds[-1].tolist() == pytest.approx([floor, floor], rel=1e-3)
    runner.alg.entropy_coef = 1.0  # now noise pays
    runner.learn(20)
    assert (stds[-1] > 1.1 * floor).all()


def test_noise_is_worth_more_while_commands_grow():
    cfg = config(exploration_cfg={"growing_entropy_coef": 1.0}, init_std=0.3, entropy_coef=0.0, learning_rate=1e-2)
    env = ToyTradeOff(32)  # where noise only costs
    env.commands_settled = False
    env.settle_commands = lambda: None
    runner = make_runner(env, cfg)

    def noise() -> float:
        return dict(runner.alg.actor.named_parameters())["distribution.std_param"].min().item()

    runner.learn(10)
    grown = noise()
    assert grown > 0.35
    assert runner.alg.entropy_coef == 0.0
    env.commands_settled = True
    runner.learn(10)
    assert noise() < grown - 0.05


# ---------------------------------------------------------------- the toy whose optimum is known

NOISE = 0.05
TOY_CONSTRAINT = {
    # Not the defaults: four actions are relearned in a few iterations, a robot's gait is not. The loop on λ
    # must be the quicker one: no lag in the measured value, and no gain that overshoots within an iteration.
    # No margin: the answer that is known is that of the constraint itself.
    "margin": 0.0,
    "value_smoothing": 1.0,
    "multiplier_init": 2.0,
    "multiplier_lr": 0.3,
    "multiplier_damping": 5.0,
    "slack_limit": 0.3,
}


@dataclass
class ToyRun:
    alpha: float
    trace: list[dict[str, float]]
    """The scalars of every iteration, and the deterministic policy's mean rewards ``task`` and ``style``."""

    @property
    def constrained(self) -> list[dict[str, float]]:
        return [row for row in self.trace if row["warmup"] == 0.0]


@pytest.fixture(scope="module", params=[0.95, 0.8, 0.5])
def toy_run(request) -> ToyRun:
    torch.set_num_threads(1)
    alpha = request.param
    env = ToyTradeOff()
    cfg = config(
        steps=8,
        init_std=0.3,
        entropy_coef=0.0,
        constraint_cfg=TOY_CONSTRAINT | {"alpha": alpha},
        exploration_cfg={"std_floor": NOISE},
    )
    for net in ("actor", "critic"):
        cfg[net]["obs_normalization"] = False
    runner = make_runner(env, cfg)
    run = ToyRun(alpha, [])

    def note(report: IterationReport):
        with torch.inference_mode():
            actions = runner.alg.actor(env.every_context())
            task, style = env.rewards(actions, torch.arange(env.CONTEXTS))
        run.trace.append(report.scalars | {"task": task.mean().item(), "style": style.mean().item()})

    learner(runner).on_iteration = note
    runner.learn(320)
    return run


def test_toy_warm_up_finds_the_best_task_value(toy_run):
    first = toy_run.constrained[0]
    assert 50 <= len(toy_run.trace) - len(toy_run.constrained) < 100
    assert first["v_star"] == pytest.approx((1.0 - 2.0 * NOISE**2) / (1.0 - 0.9), rel=0.005)
    assert first["task"] == pytest.approx(1.0, abs=0.005)


def test_toy_multiplier_rises_while_the_task_is_below_its_threshold_and_falls_above(toy_run):
    rows = toy_run.constrained
    rises = [row["lambda_integrated"] - previous["lambda_integrated"] for previous, row in pairwise(rows)]
    gaps = [row["gap"] for row in rows[1:]]
    assert all(rise * gap < 0 for rise, gap in zip(rises, gaps, strict=True))
    assert sum(gap < 0 for gap in gaps) >= 20
    assert sum(gap > 0 for gap in gaps) >= 20


def test_toy_ends_at_the_constrained_optimum(toy_run):
    d = ToyTradeOff.optimal_distance(toy_run.alpha, NOISE)
    final = toy_run.trace[-1]
    assert final["task"] == pytest.approx(1.0 - d**2, rel=0.02)
    assert final["style"] == pytest.approx(1.0 - (ToyTradeOff.DISTANCE - d) ** 2, rel=0.02)


def test_toy_multiplier_settles_where_the_standardised_advantages_balance(toy_run):
    settled = np.array([row["sigma_lambda"] for row in toy_run.trace[-60:]])
    d = ToyTradeOff.optimal_distance(toy_run.alpha, NOISE)
    assert settled.mean() == pytest.approx(ToyTradeOff.balancing_weight(d, NOISE), abs=0.01)
    assert settled.std() < 0.03


def test_toy_keeps_the_threshold_on_average_once_settled(toy_run):
    rows = toy_run.trace[-60:]
    assert np.mean([row["gap"] / row["v_star"] for row in rows]) == pytest.approx(0.0, abs=0.005)
