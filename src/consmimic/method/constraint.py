"""The task constraint and its multiplier (Eqs. 5–7, 9) and the warm-up that seeds v^g*.

Where the paper cannot be taken literally the docstring says so and docs/departures.md says why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from consmimic.method.fixed_weight import multiplier_of_share


def task_value(rewards: Tensor, terminated: Tensor, gamma: float) -> float:
    """v^g(π) measured on a rollout: r̄ / (1 − γ(1 − h)), r̄ the mean task reward per step, h the rate of failures.

    It is the discounted value of a process whose reward and failure rates stay as they are now, so it needs no
    critic, has no lag, and is in proportion to the mean return of episodes that only ever time out.
    """
    mean_reward = rewards.mean().item()
    failure_rate = terminated.to(torch.float32).mean().item()
    return mean_reward / (1.0 - gamma * (1.0 - failure_rate))


def threshold(best_value: float, alpha: float) -> float:
    """α v^g* of Eq. 5, written v* − (1 − α)|v*| so that a negative v* is not asked to improve on itself."""
    return best_value - (1.0 - alpha) * abs(best_value)


def relative_slack(value: float, best_value: float, alpha: float) -> float:
    """(v^g − αv^g*)/|v^g*|: the derivative of Eq. 7's objective in λ, per unit of v^g*."""
    return (value - threshold(best_value, alpha)) / max(abs(best_value), 1e-6)


def step_multiplier(multiplier: float, slack: float, learning_rate: float, low: float, high: float) -> float:
    """One step of gradient descent on λ (v^g − αv^g*) (Eq. 7): λ falls while there is slack, rises when violated.

    λ is the free logit of Eq. 8's σ, not λ >= 0: otherwise style could never weigh more than half.
    """
    return clipped(multiplier - learning_rate * slack, low, high)


def clipped(value: float, low: float, high: float) -> float:
    """The value, kept within the bounds."""
    return min(max(value, low), high)


def best_so_far(best_value: float, value: float) -> float:
    """v^g* ← max(v^g*, v^g(π))  (Eq. 9)."""
    return max(best_value, value)


def smoothed(previous: float | None, value: float, weight: float) -> float:
    """Exponential moving average; the first value starts it."""
    return value if previous is None else previous + weight * (value - previous)


def has_plateaued(history: tuple[float, ...], tolerance: float) -> bool:
    """Whether the value rose by less than ``tolerance`` (relative) over the whole of the history."""
    oldest, newest = history[0], history[-1]
    return newest - oldest < tolerance * max(abs(newest), 1e-6)


@dataclass(frozen=True, kw_only=True)
class ConstraintConfig:
    """α is the one knob; the rest are defaults that the paper leaves open (docs/departures.md, 7)."""

    alpha: float = 0.9
    """Share of the task-only optimum to keep: 0.9 Franka, 0.7 ANYmal, 0.9 GR1 (Table 10)."""
    margin: float = 0.01
    """λ aims this share of |v^g*| above the threshold, so that "keeps α" holds in spite of what v^g* still lacks."""
    multiplier_init: float = 4.0
    """λ when the warm-up ends: σ(4) = 0.98 goes on from the warm-up's 1 without a jump."""
    multiplier_lr: float = 0.5
    """Step of λ per iteration and unit of relative slack."""
    multiplier_damping: float = 20.0
    """Proportional term: Eq. 8 sees λ − damping · slack, which takes the overshoot out of the loop. 0: off."""
    slack_limit: float = 0.1
    """Slack beyond ± this counts as this: a large slack after the warm-up must not throw λ."""
    multiplier_min: float = -3.0
    """σ(−3) = 0.05: style has nearly all there is, and further down the way back would only be longer."""
    multiplier_max: float = 5.0
    """|λ| is kept below this: σ(±5) is 0.993 or 0.007. Farther out λ only takes longer to come back."""
    value_smoothing: float = 0.1
    """Weight of the newest rollout in the moving average of v^g."""
    warmup_style: float = 0.0
    """1 − σ(λ) in the warm-up: the share of the style. 0: the task alone, so that v^g* is free of style."""
    warmup_min_iterations: int = 50
    warmup_max_iterations: int = 250
    plateau_window: int = 40
    """The warm-up ends once v^g rose by less than ``plateau_tolerance`` in this many iterations."""
    plateau_tolerance: float = 0.005
    update_interval: int = 1
    """I_c: iterations between updates of v^g* (Algorithm 1)."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.alpha <= 1.0:
            raise ValueError(f"alpha is {self.alpha}; it is a share of the task-only optimum: valid are 0 to 1")
        if not 0.0 <= self.margin < 1.0:
            raise ValueError(f"margin is {self.margin}; it is a share of the optimum: valid are 0 to 1 (exclusive)")
        if not 0.0 <= self.warmup_style < 1.0:
            raise ValueError(f"warmup_style is {self.warmup_style}; it is a share: valid are 0 to 1 (exclusive)")
        if not 0.0 < self.value_smoothing <= 1.0:
            raise ValueError(f"value_smoothing is {self.value_smoothing}; valid are 0 (exclusive) to 1")
        for name in ("update_interval", "plateau_window", "warmup_max_iterations"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; at least 1 is needed")
        if self.warmup_min_iterations > self.warmup_max_iterations:
            raise ValueError(
                f"warmup_min_iterations {self.warmup_min_iterations} exceeds "
                f"warmup_max_iterations {self.warmup_max_iterations}"
            )

    @property
    def aim(self) -> float:
        """The share that λ steers to: α and the margin, and never more than all."""
        return min(self.alpha + self.margin, 1.0)


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """What the constraint knows after an iteration. Immutable: :meth:`step` returns the next one."""

    config: ConstraintConfig
    iteration: int = 0
    multiplier: float = math.inf
    """The integrated λ, once the warm-up is over."""
    slack: float = 0.0
    value: float | None = None
    """v^g(π), smoothed."""
    best_value: float | None = None
    """v^g*; None during the warm-up."""
    warmup_values: tuple[float, ...] = ()
    warmup_end: int | None = None
    """The iteration after which the warm-up ended."""

    @property
    def effective_multiplier(self) -> float:
        """The λ that Eq. 8 sees: the integrated one and the damping."""
        if self.best_value is None:
            return multiplier_of_share(self.config.warmup_style)
        damped = self.multiplier - self.config.multiplier_damping * self.slack
        return clipped(damped, self.config.multiplier_min, self.config.multiplier_max)

    def step(self, measured_value: float, settled: bool = True) -> Constraint:
        """The constraint after one more iteration (Algorithm 1, the lines on λ and v^g*).

        ``settled`` False: the task itself is still growing, so its value cannot have levelled out yet.
        """
        config = self.config
        value = smoothed(self.value, measured_value, config.value_smoothing)
        iteration = self.iteration + 1
        if self.best_value is None:
            return self._step_warmup(iteration, value, settled)
        best_value = self.best_value
        if iteration % config.update_interval == 0:
            best_value = best_so_far(best_value, value)
        slack = clipped(relative_slack(value, best_value, config.aim), -config.slack_limit, config.slack_limit)
        multiplier = step_multiplier(
            self.multiplier, slack, config.multiplier_lr, config.multiplier_min, config.multiplier_max
        )
        return replace(
            self, iteration=iteration, value=value, best_value=best_value, slack=slack, multiplier=multiplier
        )

    def _step_warmup(self, iteration: int, value: float, settled: bool) -> Constraint:
        config = self.config
        values = (*self.warmup_values, value)[-(config.plateau_window + 1) :] if settled else ()
        converged = (
            iteration >= config.warmup_min_iterations
            and len(values) > config.plateau_window
            and has_plateaued(values, config.plateau_tolerance)
        )
        if not converged and iteration < config.warmup_max_iterations:
            return replace(self, iteration=iteration, value=value, warmup_values=values)
        return replace(
            self,
            iteration=iteration,
            value=value,
            best_value=value,
            slack=0.0,
            multiplier=min(config.multiplier_init, multiplier_of_share(config.warmup_style)),
            warmup_values=(),
            warmup_end=iteration,
        )
