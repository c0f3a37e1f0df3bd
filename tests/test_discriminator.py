"""The discriminator (Eqs. 2, 3), its normalizer and its health, against numbers worked by hand and against laws."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn, tensor
from torch.testing import assert_close

from consmimic.method.discriminator import (
    Discriminator,
    FeatureNormalizer,
    Health,
    HealthLimits,
    HealthTrend,
    adversarial_reward,
    discriminator_health,
    discriminator_loss,
    gradient_penalty,
    least_squares,
    saturation_warning,
)
from consmimic.method.symmetry import SignedPermutation, augmented


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# ---------------------------------------------------------------- Eq. 2


def test_eq2_is_a_parabola_about_1_cut_off_at_0():
    logits = tensor([1.0, 0.0, 2.0, -1.0, 3.0, -1.5, 9.0])
    assert_close(adversarial_reward(logits), tensor([1.0, 0.75, 0.75, 0.0, 0.0, 0.0, 0.0]))


# ---------------------------------------------------------------- Eq. 3


class Linear(nn.Module):
    """D(φ) = w·φ, whose gradient is w everywhere."""

    def __init__(self, weights: list[float]) -> None:
        super().__init__()
        self.w = nn.Parameter(tensor(weights))

    def forward(self, pairs: Tensor) -> Tensor:
        return pairs @ self.w


def test_eq3_by_hand():
    """w = (1, 2): demonstration at D = 3 and −1, policy at D = 1; ‖∇D‖² = 5."""
    loss = discriminator_loss(
        Linear([1.0, 2.0]),
        demonstration_pairs=tensor([[1.0, 1.0], [1.0, -1.0]]),
        policy_pairs=tensor([[1.0, 0.0]]),
        penalty_weight=10.0,
    )
    assert loss.demonstration == (4.0 + 4.0) / 2
    assert loss.policy == 4.0
    assert loss.penalty == 25.0
    assert loss.total == 4.0 + 4.0 + 25.0
    assert_close(loss.demonstration_logits, tensor([3.0, -1.0]))
    assert_close(loss.policy_logits, tensor([1.0]))
    assert_close(loss.gradient_norm, tensor(math.sqrt(5.0)))


def test_least_squares_aims_at_its_target():
    logits = tensor([1.0, 2.0, -1.0])
    assert least_squares(logits, 1.0) == (0.0 + 1.0 + 4.0) / 3
    assert_close(least_squares(logits, -1.0), tensor((4.0 + 9.0 + 0.0) / 3))


def test_the_penalty_is_on_the_gradient_where_the_demonstration_is():
    """D = Σ φ²: ‖∇D‖² = 4 ‖φ‖²."""
    pairs = random(7, 4)

    def squares(x: Tensor) -> Tensor:
        return x.square().sum(dim=-1)

    assert_close(gradient_penalty(squares, pairs), 4.0 * pairs.square().sum(dim=1).mean())
    near = discriminator_loss(squares, 0.1 * pairs, 100.0 * pairs, penalty_weight=1.0)
    assert_close(near.penalty, 0.5 * 4.0 * (0.1 * pairs).square().sum(dim=1).mean())


def test_the_penalty_agrees_with_finite_differences_of_a_network():
    torch.manual_seed(0)
    discriminator = Discriminator(3, hidden_dims=(16,)).double()
    pairs, h = random(5, 6).double(), 1e-5
    with torch.no_grad():
        slopes = torch.stack(
            [(discriminator(pairs + h * e) - discriminator(pairs - h * e)) / (2 * h) for e in torch.eye(6).double()],
            dim=1,
        )
    assert_close(gradient_penalty(discriminator, pairs), slopes.square().sum(dim=1).mean(), rtol=1e-6, atol=0.0)


def test_the_penalty_is_learnt_from():
    """Of the linear D it is w_gp/2 ‖w‖², with the derivative w_gp · w."""
    discriminator = Linear([1.0, -2.0])
    loss = discriminator_loss(discriminator, random(4, 2), random(4, 2, seed=1), penalty_weight=3.0)
    loss.penalty.backward()
    assert_close(discriminator.w.grad, tensor([3.0, -6.0]))


def test_the_best_discriminator_is_the_difference_of_densities_over_their_sum():
    """Where the demonstration is three times as frequent as the policy, D → (3 − 1)/(3 + 1); where equal, 0."""

    class Table(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scores = nn.Parameter(torch.zeros(3))

        def forward(self, pairs: Tensor) -> Tensor:
            return self.scores[pairs.detach().squeeze(1).long()] + 0.0 * pairs.squeeze(1)

    table = Table()
    demonstration = tensor([0, 0, 0, 1, 1, 2, 2, 2]).float().unsqueeze(1)
    policy = tensor([0, 1, 1, 2, 2, 2, 2, 2]).float().unsqueeze(1)
    optimizer = torch.optim.SGD(table.parameters(), lr=0.5)
    for _ in range(200):
        optimizer.zero_grad()
        discriminator_loss(table, demonstration, policy, penalty_weight=0.0).total.backward()
        optimizer.step()
    assert_close(table.scores.detach(), tensor([0.5, 0.0, -0.25]))


def test_learning_moves_neither_the_demonstration_nor_the_policy():
    ours, theirs = random(4, 2).requires_grad_(), random(4, 2, seed=1).requires_grad_()
    discriminator_loss(Linear([1.0, 2.0]), ours, theirs, penalty_weight=1.0).total.backward()
    assert ours.grad is theirs.grad is None


def test_the_network_has_table_9s_layers_and_sees_both_states():
    discriminator = Discriminator(33)
    shapes = [tuple(layer.weight.shape) for layer in discriminator.layers if isinstance(layer, nn.Linear)]
    assert shapes == [(1024, 66), (512, 1024), (1, 512)]
    assert discriminator(random(5, 66)).shape == (5,)


# ---------------------------------------------------------------- normalizer


def test_the_normalizer_knows_the_mean_and_deviation_of_all_that_it_saw():
    states = 3.0 * random(600, 4) + tensor([1.0, -2.0, 0.0, 5.0])
    normalizer = FeatureNormalizer(4)
    normalizer.update(states[:100])
    normalizer.update(states[100:500].reshape(200, 8))  # pairs are states side by side
    normalizer.update(states[500:])
    assert_close(normalizer.mean, states.mean(dim=0))
    assert_close(normalizer.std, states.std(dim=0, correction=0))
    assert normalizer.count == 600
    assert_close(normalizer(states), (states - states.mean(dim=0)) / states.std(dim=0, correction=0))


def test_a_pair_is_normalized_state_by_state():
    normalizer = FeatureNormalizer(2)
    normalizer.update(random(50, 2) + 3.0)
    s, after = random(7, 2), random(7, 2, seed=1)
    assert_close(normalizer(torch.cat([s, after], dim=1)), torch.cat([normalizer(s), normalizer(after)], dim=1))


def test_what_hardly_varies_is_not_blown_up_and_what_is_far_off_is_cut():
    normalizer = FeatureNormalizer(2, std_floor=0.01, clip=10.0)
    normalizer.update(torch.stack([torch.full((100,), 0.5), random(100)], dim=1))
    seen = normalizer(tensor([[0.51, 0.0], [0.5, 1e6], [-0.5, 0.0]]))
    assert_close(seen[:2, 0], tensor([1.0, 0.0]), atol=1e-4, rtol=0.0)
    assert seen[1, 1] == 10.0
    assert seen[2, 0] == -10.0


def test_frozen_it_learns_no_more_and_all_of_it_can_be_saved():
    normalizer = FeatureNormalizer(3)
    normalizer.update(random(20, 3))
    normalizer.freeze()
    before = normalizer.mean.clone()
    normalizer.update(random(20, 3) + 100.0)
    assert_close(normalizer.mean, before)
    again = FeatureNormalizer(3)
    again.load_state_dict(normalizer.state_dict())
    again.update(random(20, 3) + 100.0)
    assert_close(again.mean, before)


def test_from_mirrored_batches_it_treats_mirror_images_alike():
    """Normalizing the image is the image of the normalized: y has mean 0, and the two legs the same scale."""
    mirror = SignedPermutation(tensor([0, 2, 1]), tensor([-1, 1, 1]))
    normalizer = FeatureNormalizer(3)
    normalizer.update(augmented(random(40, 6) * tensor([1.0, 2.0, 3.0] * 2) + 1.0, [mirror]))
    states = random(10, 3)
    assert_close(normalizer(mirror(states)), mirror(normalizer(states)))


# ---------------------------------------------------------------- health

SOUND = Health(
    separation=0.8,
    demonstration_accuracy=0.85,
    policy_accuracy=0.8,
    zero_share=0.2,
    reward_spread=0.3,
    logit_size=0.5,
    gradient_norm=0.4,
)
LIMITS = HealthLimits()


def trend(iterations: int = 100, **changes: Any) -> HealthTrend:
    return HealthTrend(iterations=iterations, health=replace(SOUND, **changes))


def test_health_by_hand():
    health = discriminator_health(
        demonstration_logits=tensor([1.0, 0.5, -0.5, 2.0]),
        policy_logits=tensor([-1.0, -2.0, 0.5, -0.5]),
        rewards=tensor([0.0, 0.05, 0.4, 0.8]),
        gradient_norm=tensor(0.7),
    )
    assert health.separation == 0.75 - (-0.75)
    assert health.demonstration_accuracy == 0.75
    assert health.policy_accuracy == 0.75
    assert health.zero_share == 0.5
    assert health.reward_spread == pytest.approx(torch.tensor([0.0, 0.05, 0.4, 0.8]).std(correction=0).item())
    assert health.logit_size == (1.0 + 0.5 + 0.5 + 2.0 + 1.0 + 2.0 + 0.5 + 0.5) / 8
    assert health.gradient_norm == pytest.approx(0.7)


def test_the_trend_begins_with_the_first_and_follows_slowly():
    first = HealthTrend().step(SOUND, LIMITS)
    assert first == HealthTrend(iterations=1, health=SOUND)
    second = first.step(replace(SOUND, separation=1.8), LIMITS)
    assert second.iterations == 2
    assert second.health is not None
    assert second.health.separation == pytest.approx(0.8 + LIMITS.smoothing * 1.0)
    assert second.health.policy_accuracy == pytest.approx(SOUND.policy_accuracy)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"logit_size": 3.1}, r"diverges.*lower style_cfg.learning_rate"),
        ({"gradient_norm": 5.1}, r"diverges.*raise style_cfg.gradient_penalty"),
        (
            {"demonstration_accuracy": 0.99, "policy_accuracy": 0.99, "zero_share": 0.85},
            r"with certainty \(99% and 99% right\) and 85% of the style rewards are near 0.*lower style_cfg",
        ),
        ({"reward_spread": 0.001}, "every motion the same score.*lower style_cfg.learning_rate"),
    ],
)
def test_a_collapsed_discriminator_is_told_in_plain_words_with_what_to_change(changes, words):
    message = saturation_warning(trend(**changes), LIMITS)
    assert message is not None
    assert re.search(words, message)
    assert saturation_warning(trend(LIMITS.min_iterations - 1, **changes), LIMITS) is None  # too early to say


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"demonstration_accuracy": 1.0, "policy_accuracy": 1.0},  # sure, but its rewards still differ
        {"zero_share": 0.95},  # few rewards, but it is not sure
        {"demonstration_accuracy": 1.0, "policy_accuracy": 0.9, "zero_share": 0.95},
    ],
)
def test_a_sound_discriminator_is_left_alone(changes):
    assert saturation_warning(trend(**changes), LIMITS) is None
    assert saturation_warning(HealthTrend(), LIMITS) is None


@pytest.mark.parametrize("name", ["separation", "gradient_norm", "reward_spread"])
def test_what_is_not_a_number_is_said_at_once(name):
    for broken in (math.nan, math.inf):
        message = saturation_warning(trend(1, **{name: broken}), LIMITS)
        assert message is not None
        assert "not a number any more" in message
