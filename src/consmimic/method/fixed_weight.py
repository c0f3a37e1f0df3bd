"""The paper's baselines ω^s: style with a fixed share of the reward, and nothing that guards the task."""

from __future__ import annotations

import math

from torch import Tensor


def weighted_reward(task: Tensor, style: Tensor, style_weight: float) -> Tensor:
    """r = (1 − ω^s) r^g + ω^s r^s: style has the share ω^s of the total weight of both reward groups."""
    return (1.0 - style_weight) * task + style_weight * style


def multiplier_of_share(style_weight: float) -> float:
    """λ with σ(λ) = 1 − ω^s: the fixed weight that Eq. 8 would have to be given to act as ω^s (ω^s = 0 → λ = ∞)."""
    if style_weight <= 0.0:
        return math.inf
    if style_weight >= 1.0:
        return -math.inf
    return math.log((1.0 - style_weight) / style_weight)
