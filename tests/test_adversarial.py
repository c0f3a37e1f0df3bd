"""The discriminator in the learner: which transitions it is shown, when it scores them, and what it says of itself."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict
from torch import Tensor
from torch.testing import assert_close

from consmimic.errors import UserError
from consmimic.learner import ConsMimicPPO, IterationReport
from consmimic.learner.adversarial import AdversarialStyle
from consmimic.method.discriminator import adversarial_reward
from consmimic.method.symmetry import SignedPermutation

N, STEPS = 16, 5


class Walk(VecEnv):
    """A point on a line: the task wants it at 0, the clip shows it moving to the right. Φ(s) is where it is.

    The clip's points are far to the right, so that its transitions are easily told from a beginner's.
    """

    num_envs = N
    num_actions = 1
    max_episode_length = 7
    device = "cpu"

    def __init__(self, *, final_obs: bool = True, mirrors: bool = False) -> None:
        self.cfg: dict | object = {}
        self._final_obs = final_obs
        self.episode_length_buf = torch.zeros(N, dtype=torch.long)
        self._generator = torch.Generator().manual_seed(0)
        self.place = torch.randn(N, 1, generator=self._generator)
        self.reached: list[Tensor] = []
        if mirrors:
            self.style_mirrors = lambda: [SignedPermutation(torch.tensor([0]), torch.tensor([-1]))]

    def demonstration_pairs(self) -> tuple[Tensor, Tensor]:
        path = torch.linspace(0.0, 2.0, 41).unsqueeze(1)
        return path[:-1], path[1:]

    def get_observations(self) -> TensorDict:
        return TensorDict({"policy": self.place.clone(), "style": self.place.clone()}, batch_size=[N])

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Any]]:
        self.place = self.place + 0.1 * actions.clamp(-1.0, 1.0)
        self.reached.append(self.place.clone())
        self.episode_length_buf = self.episode_length_buf + 1
        dones = self.episode_length_buf >= self.max_episode_length
        extras: dict[str, Any] = {"time_outs": dones}
        if self._final_obs:
            extras["final_obs"] = self.get_observations()
        self.place = torch.where(dones.unsqueeze(1), torch.full((N, 1), 50.0), self.place)  # no walk goes there
        self.episode_length_buf = torch.where(dones, 0, self.episode_length_buf)
        return self.get_observations(), -self.reached[-1].squeeze(1).abs(), dones, extras


def config(**style: Any) -> dict[str, Any]:
    model = {"class_name": "MLPModel", "hidden_dims": [8], "activation": "elu"}
    return {
        "num_steps_per_env": STEPS,
        "save_interval": 1000,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": model | {"distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 0.5}},
        "critic": dict(model),
        "algorithm": {
            "class_name": "consmimic.learner:ConsMimicPPO",
            "fixed_weight_cfg": {"style_weight": 0.5, "mix": "advantages"},  # no warm-up: style counts at once
            "style_cfg": {"source": "adversarial", "hidden_dims": (16,), "updates": 3, "batch_size": 32} | style,
        },
    }


def make(env: VecEnv, **style: Any) -> tuple[OnPolicyRunner, ConsMimicPPO, AdversarialStyle]:
    torch.manual_seed(0)
    runner = OnPolicyRunner(env, config(**style), None, "cpu")
    assert isinstance(runner.alg, ConsMimicPPO)
    assert isinstance(runner.alg.style_source, AdversarialStyle)
    return runner, runner.alg, runner.alg.style_source


def learn(runner: OnPolicyRunner, iterations: int) -> list[dict[str, float]]:
    reports: list[IterationReport] = []
    assert isinstance(runner.alg, ConsMimicPPO)
    runner.alg.on_iteration = reports.append
    runner.learn(iterations)
    return [report.scalars for report in reports]


def test_in_the_warm_up_it_neither_scores_nor_learns_and_nor_does_the_style_critic():
    cfg = config()
    del cfg["algorithm"]["fixed_weight_cfg"]
    cfg["algorithm"]["constraint_cfg"] = {"alpha": 0.5, "warmup_min_iterations": 2, "warmup_max_iterations": 2}
    torch.manual_seed(0)
    runner = OnPolicyRunner(Walk(), cfg, None, "cpu")
    networks = (runner.alg.style_source.discriminator, runner.alg.style_critic)
    before = [[parameter.clone() for parameter in network.parameters()] for network in networks]

    def untouched() -> list[bool]:
        return [
            all(torch.equal(a, b) for a, b in zip(saved, network.parameters(), strict=True))
            for saved, network in zip(before, networks, strict=True)
        ]

    first, second = learn(runner, 2)
    assert first["style_reward"] == second["style_reward"] == 0.0
    assert "style_separation" not in first | second
    assert untouched() == [True, True]
    third, fourth = learn(runner, 2)
    assert "style_separation" in third
    assert fourth["style_reward"] > 0.0
    assert untouched() == [False, False]


def test_with_a_share_of_the_warm_up_style_is_scored_and_learnt_at_once():
    cfg = config()
    del cfg["algorithm"]["fixed_weight_cfg"]
    warmup = {"warmup_style": 0.1, "warmup_min_iterations": 5, "warmup_max_iterations": 5}
    cfg["algorithm"]["constraint_cfg"] = {"alpha": 0.5} | warmup
    torch.manual_seed(0)
    runner = OnPolicyRunner(Walk(), cfg, None, "cpu")
    before = [parameter.clone() for parameter in runner.alg.style_critic.parameters()]
    (first,) = learn(runner, 1)
    assert first["warmup"] == 1.0
    assert first["sigma_lambda"] == pytest.approx(0.9)
    assert first["style_reward"] > 0.0
    assert "style_separation" in first
    assert not all(torch.equal(a, b) for a, b in zip(before, runner.alg.style_critic.parameters(), strict=True))


# ---------------------------------------------------------------- transitions


def test_a_transition_ends_where_the_episode_did_not_where_the_next_begins():
    env = Walk()
    runner, _, source = make(env)
    env.episode_length_buf = torch.arange(N) % 7
    learn(runner, 1)
    reached = torch.stack(env.reached)  # (T, N, 1)
    assert torch.equal(source._pairs[:, :, 1:], reached)
    assert source._valid.all()
    moved = source._pairs[:, :, 1] - source._pairs[:, :, 0]
    assert moved.abs().max() <= 0.1001  # never on to the place after a reset


def test_without_final_observations_such_transitions_are_left_out_with_one_warning():
    env = Walk(final_obs=False)
    runner, alg, source = make(env)
    env.episode_length_buf = torch.arange(N) % 7
    with pytest.warns(UserWarning, match="'final_obs'") as found:
        learn(runner, 2)
    assert len([w for w in found if "final_obs" in str(w.message)]) == 1
    assert 0 < (~source._valid).sum() < source._valid.numel() / 2
    assert (source._pairs[source._valid][:, 1] - source._pairs[source._valid][:, 0]).abs().max() <= 0.1001
    assert (alg._style_rewards[~source._valid] == 0.0).all()


def test_rewards_are_those_of_the_discriminator_before_it_learns_from_the_rollout():
    env = Walk()
    runner, alg, source = make(env, reward_scale=2.0)
    before = source.discriminator.state_dict()
    before = {name: value.clone() for name, value in before.items()}
    normalizer = {name: value.clone() for name, value in source.normalizer.state_dict().items()}
    learn(runner, 1)
    changed = source.discriminator.state_dict()
    assert any(not torch.equal(before[name], changed[name]) for name in before)
    source.discriminator.load_state_dict(before)
    source.normalizer.load_state_dict(normalizer)
    with torch.no_grad():
        expected = adversarial_reward(source.discriminator(source.normalizer(source._pairs.flatten(0, 1))))
    assert_close(alg._style_rewards.flatten(), 2.0 * expected)


def test_with_mirrors_a_transition_and_its_mirror_image_earn_the_same():
    _, _, source = make(Walk(mirrors=True))
    assert len(source._mirrors) == 1
    pairs = torch.tensor([[0.5, 0.6], [-0.5, -0.6], [1.0, 0.9], [-1.0, -0.9]])
    from consmimic.method.symmetry import symmetric_reward

    scores = symmetric_reward(source._score, pairs, source._mirrors)
    assert_close(scores[0::2], scores[1::2])
    _, _, plain = make(Walk(mirrors=True), symmetry=False)
    assert plain._mirrors == []


# ---------------------------------------------------------------- learning


def test_it_learns_to_tell_the_clip_from_the_policy():
    runner, _, _ = make(Walk(), learning_rate=3e-3)
    scalars = learn(runner, 40)
    assert scalars[-1]["style_separation"] > scalars[0]["style_separation"] + 0.3
    assert scalars[-1]["style_demonstration_accuracy"] > 0.6


def test_task_only_trains_no_discriminator():
    cfg = config()
    cfg["algorithm"]["fixed_weight_cfg"] = {"style_weight": 0.0}
    torch.manual_seed(0)
    runner = OnPolicyRunner(Walk(), cfg, None, "cpu")
    source = runner.alg.style_source  # type: ignore[union-attr]
    before = [parameter.clone() for parameter in source.discriminator.parameters()]
    scalars = learn(runner, 2)
    assert all(torch.equal(a, b) for a, b in zip(before, source.discriminator.parameters(), strict=True))
    assert "style_separation" not in scalars[-1]


def test_a_discriminator_that_collapses_is_reported_once_and_a_sound_one_never():
    healthy, _, _ = make(Walk(), learning_rate=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scalars = learn(healthy, 100)
    assert max(row["style_saturated"] for row in scalars) == 0.0
    wild, _, _ = make(Walk(), learning_rate=1.0, gradient_penalty=0.0)
    with pytest.warns(UserWarning, match="learning_rate") as found:
        scalars = learn(wild, 100)
    assert scalars[-1]["style_saturated"] == 1.0
    assert len([w for w in found if "discriminator" in str(w.message)]) == 1


# ---------------------------------------------------------------- what is missing is named


def test_an_environment_without_features_or_demonstration_is_told_what_to_give():
    class WithoutGroup(Walk):
        def get_observations(self) -> TensorDict:
            return TensorDict({"policy": self.place.clone()}, batch_size=[N])

    class WithoutClip(Walk):
        demonstration_pairs = None  # type: ignore[assignment]

    class OfAnotherWidth(Walk):
        def demonstration_pairs(self) -> tuple[Tensor, Tensor]:
            return torch.zeros(3, 2), torch.zeros(3, 2)

    for env, message in (
        (WithoutGroup(), r"observation group 'style'.*has policy"),
        (WithoutClip(), r"env\.demonstration_pairs\(\)"),
        (OfAnotherWidth(), r"gave \(3, 2\) and \(3, 2\); expected twice \(T, 1\)"),
    ):
        with pytest.raises(UserError, match=message):
            make(env)


def test_a_source_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(UserError, match=r"'gan'. Valid: environment, adversarial"):
        OnPolicyRunner(Walk(), config(source="gan"), None, "cpu")
    with pytest.raises(UserError, match="batch_size is 0"):
        OnPolicyRunner(Walk(), config(batch_size=0), None, "cpu")
