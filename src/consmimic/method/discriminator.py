"""Style from a discriminator of transitions: its reward (Eq. 2), its loss (Eq. 3), and whether it still teaches.

Features are those of a state, Φ(s); a pair is (Φ(s), Φ(s')) side by side. A logit is D of a pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from consmimic.method.constraint import smoothed

Score = Callable[[Tensor], Tensor]  # (N, 2·d) pairs → (N,)


def adversarial_reward(logits: Tensor) -> Tensor:
    """r^s = max(0, 1 − 0.25 (D − 1)²)  (Eq. 2): 1 where D is sure of the demonstration, 0 from D = −1 down."""
    return (1.0 - 0.25 * (logits - 1.0).square()).clamp(min=0.0)


def least_squares(logits: Tensor, target: float) -> Tensor:
    """E[(D − target)²], the first two terms of Eq. 3 with the targets 1 (demonstration) and −1 (policy)."""
    return (logits - target).square().mean()


def gradient_penalty(discriminator: Score, demonstration_pairs: Tensor) -> Tensor:
    """E‖∇_φ D(φ)‖² at φ = (Φ(s), Φ(s')) of the demonstration, the last term of Eq. 3 without its factor w_gp/2."""
    return _scored(discriminator, demonstration_pairs)[1]


def _scored(discriminator: Score, pairs: Tensor) -> tuple[Tensor, Tensor]:
    """The logits, and E‖∇D‖² with respect to the pairs, from one forward pass."""
    pairs = pairs.detach().requires_grad_()
    logits = discriminator(pairs)
    (gradient,) = torch.autograd.grad(logits.sum(), pairs, create_graph=True)
    return logits, gradient.square().sum(dim=-1).mean()


@dataclass(frozen=True, kw_only=True)
class DiscriminatorLoss:
    """The terms of Eq. 3, and what :func:`discriminator_health` looks at."""

    demonstration: Tensor
    policy: Tensor
    penalty: Tensor  # with its factor w_gp/2
    demonstration_logits: Tensor  # (N,)
    policy_logits: Tensor  # (N,)
    gradient_norm: Tensor  # √E‖∇D‖² on the demonstration

    @property
    def total(self) -> Tensor:
        return self.demonstration + self.policy + self.penalty


def discriminator_loss(
    discriminator: Score,
    demonstration_pairs: Tensor,  # (N, 2·d), normalized
    policy_pairs: Tensor,  # (M, 2·d), normalized
    penalty_weight: float,  # w_gp
) -> DiscriminatorLoss:
    """E_M[(D − 1)²] + E_π[(D + 1)²] + w_gp/2 · E_M‖∇D‖²  (Eq. 3)."""
    demonstration_logits, squared_gradient = _scored(discriminator, demonstration_pairs)
    policy_logits = discriminator(policy_pairs.detach())
    return DiscriminatorLoss(
        demonstration=least_squares(demonstration_logits, 1.0),
        policy=least_squares(policy_logits, -1.0),
        penalty=0.5 * penalty_weight * squared_gradient,
        demonstration_logits=demonstration_logits.detach(),
        policy_logits=policy_logits.detach(),
        gradient_norm=squared_gradient.detach().sqrt(),
    )


class Discriminator(nn.Module):
    """D: normalized pairs to logits. Not to be compiled: the gradient penalty is differentiated twice."""

    def __init__(
        self,
        num_features: int,  # d
        hidden_dims: Sequence[int] = (1024, 512),  # Table 9
        activation: type[nn.Module] = nn.ELU,
    ) -> None:
        super().__init__()
        widths = [2 * num_features, *hidden_dims]
        layers: list[nn.Module] = []
        for width, next_width in pairwise(widths):
            layers += [nn.Linear(width, next_width), activation()]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], 1))

    def forward(self, pairs: Tensor) -> Tensor:  # (N, 2·d) → (N,)
        return self.layers(pairs).squeeze(-1)


class FeatureNormalizer(nn.Module):
    """Features to about mean 0 and deviation 1, each by itself, s and s' alike.

    As in AMP's implementations it learns from the policy's features and the demonstration's: from one alone, whatever
    that one hardly varies in would be blown up in the other. It learns from all that it has seen, equally; with a batch
    augmented by Eq. 10 it treats mirror images alike.
    """

    mean: Tensor
    variance: Tensor
    count: Tensor
    frozen: Tensor

    def __init__(self, num_features: int, std_floor: float = 0.01, clip: float = 10.0) -> None:
        super().__init__()
        self.std_floor = std_floor
        """In the features' units. A feature that varies less (a joint that rests) is not blown up beyond this."""
        self.clip = clip
        self.register_buffer("mean", torch.zeros(num_features))
        self.register_buffer("variance", torch.ones(num_features))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("frozen", torch.zeros((), dtype=torch.bool))

    @property
    def std(self) -> Tensor:
        return self.variance.sqrt().clamp(min=self.std_floor)

    def forward(self, features: Tensor) -> Tensor:
        """(…, d) features, or (…, 2·d) pairs, of the same shape when normalized."""
        states = features.reshape(*features.shape[:-1], -1, self.mean.numel())
        return ((states - self.mean) / self.std).clamp(-self.clip, self.clip).reshape(features.shape)

    @torch.no_grad()
    def update(self, features: Tensor) -> None:
        """Learn from (N, d) features or (N, 2·d) pairs, not normalized (the pairwise update of Chan et al., 1979)."""
        if self.frozen:
            return
        states = features.reshape(-1, self.mean.numel())
        batch_mean, batch_count = states.mean(dim=0), states.shape[0]
        batch_variance = (states - batch_mean).square().mean(dim=0)
        count = self.count + batch_count
        share = batch_count / count
        shift = batch_mean - self.mean
        self.variance += share * (batch_variance - self.variance) + share * (1.0 - share) * shift.square()
        self.mean += share * shift
        self.count.copy_(count)

    def freeze(self) -> None:
        """Learn no more, so that D sees the same numbers from now on."""
        self.frozen.fill_(True)


# ---------------------------------------------------------------- health


@dataclass(frozen=True, kw_only=True)
class Health:
    """What a discriminator shows on the data of one iteration, or, smoothed, of the last ones."""

    separation: float
    """Mean D of the demonstration less that of the policy: 0 when it cannot tell, 2 when it is sure."""
    demonstration_accuracy: float
    """Share of the demonstration with D > 0."""
    policy_accuracy: float
    """Share of the policy's pairs with D < 0."""
    zero_share: float
    """Share of style rewards that are near 0."""
    reward_spread: float
    """Standard deviation of the style rewards."""
    logit_size: float
    """Mean of |D|; the targets are ±1."""
    gradient_norm: float
    """√E‖∇D‖² on the demonstration."""


@dataclass(frozen=True, kw_only=True)
class HealthLimits:
    """When a discriminator counts as collapsed. Ours; docs/departures.md says what they were tried on."""

    near_zero: float = 0.1
    """A style reward below this counts as 0: a saturated D scatters around −1, so that only half are 0 to the bit."""
    smoothing: float = 0.05
    """Weight of the newest iteration in the moving average."""
    min_iterations: int = 30
    """No verdict before: at the start the policy moves like no clip, and is easy to tell from one."""
    accuracy: float = 0.98
    zero_share: float = 0.8
    reward_spread: float = 0.002
    logit_size: float = 3.0
    gradient_norm: float = 5.0


@dataclass(frozen=True, kw_only=True)
class HealthTrend:
    """Health over iterations. Immutable: :meth:`step` returns the next one."""

    iterations: int = 0
    health: Health | None = None
    """Smoothed."""

    def step(self, newest: Health, limits: HealthLimits) -> HealthTrend:
        before = asdict(self.health or newest)
        now = {name: smoothed(before[name], value, limits.smoothing) for name, value in asdict(newest).items()}
        return HealthTrend(iterations=self.iterations + 1, health=Health(**now))


def discriminator_health(
    demonstration_logits: Tensor,
    policy_logits: Tensor,
    rewards: Tensor,  # r^s of Eq. 2 or 11, not scaled
    gradient_norm: Tensor | float,
    near_zero: float = HealthLimits.near_zero,
) -> Health:
    """The figures of one iteration."""
    return Health(
        separation=(demonstration_logits.mean() - policy_logits.mean()).item(),
        demonstration_accuracy=(demonstration_logits > 0).float().mean().item(),
        policy_accuracy=(policy_logits < 0).float().mean().item(),
        zero_share=(rewards < near_zero).float().mean().item(),
        reward_spread=rewards.std(correction=0).item(),
        logit_size=torch.cat([demonstration_logits, policy_logits]).abs().mean().item(),
        gradient_norm=float(gradient_norm),
    )


def saturation_warning(trend: HealthTrend, limits: HealthLimits) -> str | None:
    """What is wrong with the discriminator and what to change, in plain words; None while it teaches."""
    health = trend.health
    if health is None:
        return None
    if not all(math.isfinite(value) for value in asdict(health).values()):
        return (
            "the discriminator's output is not a number any more: "
            "lower style_cfg.learning_rate, and check the clip and the 'style' observations for NaN"
        )
    if trend.iterations < limits.min_iterations:
        return None
    if health.logit_size > limits.logit_size or health.gradient_norm > limits.gradient_norm:
        return (
            f"the discriminator diverges (|D| is {health.logit_size:.1f} on average where ±1 is aimed at, its gradient "
            f"{health.gradient_norm:.1f}): lower style_cfg.learning_rate, or raise style_cfg.gradient_penalty"
        )
    certain = min(health.demonstration_accuracy, health.policy_accuracy) > limits.accuracy
    if certain and health.zero_share > limits.zero_share:
        return (
            f"the discriminator tells the policy's motion from the clip with certainty "
            f"({health.demonstration_accuracy:.0%} and {health.policy_accuracy:.0%} right) and {health.zero_share:.0%} "
            f"of the style rewards are near 0, so style teaches next to nothing: lower style_cfg.learning_rate, raise "
            f"style_cfg.gradient_penalty, or use a clip that is nearer to what the robot can do"
        )
    if health.reward_spread < limits.reward_spread:
        return (
            f"the discriminator gives every motion the same score (the style rewards differ by "
            f"{health.reward_spread:.4f}), so style teaches nothing: lower style_cfg.learning_rate"
        )
    return None
