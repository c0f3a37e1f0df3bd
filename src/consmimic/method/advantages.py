"""Returns and advantages of one reward stream, and the equation that joins two streams (Eq. 8)."""

from __future__ import annotations

import torch
from torch import Tensor


def discounted_return(rewards: Tensor, gamma: float) -> Tensor:
    """J = Σ_t γ^t r_t over the first dimension (Eq. 4, of one reward stream)."""  # (T, …) → (…)
    steps = torch.arange(rewards.shape[0], dtype=rewards.dtype, device=rewards.device)
    discounts = torch.pow(torch.as_tensor(gamma, dtype=rewards.dtype, device=rewards.device), steps)
    return torch.einsum("t,t...->...", discounts, rewards)


def generalized_advantages(
    rewards: Tensor,  # (T, N)
    values: Tensor,  # (T, N)
    last_values: Tensor,  # (N,), the value after the last step
    dones: Tensor,  # (T, N), 1 where an episode ended with the step
    gamma: float,
    gae_lambda: float,
) -> Tensor:  # (T, N)
    """GAE: Â_t = δ_t + γλ (1 − done_t) Â_{t+1}, δ_t = r_t + γ (1 − done_t) v_{t+1} − v_t.

    The value targets are Â + v.
    """
    alive = 1.0 - dones.to(rewards.dtype)
    next_values = torch.cat([values[1:], last_values.unsqueeze(0)])
    deltas = rewards + gamma * alive * next_values - values
    decay = gamma * gae_lambda * alive
    advantages = torch.empty_like(rewards)
    carried = torch.zeros_like(last_values)
    for t in range(rewards.shape[0] - 1, -1, -1):
        carried = deltas[t] + decay[t] * carried
        advantages[t] = carried
    return advantages


def standardize(advantages: Tensor) -> Tensor:
    """Ã = (A − mean A) / std A, with rsl_rl's ε, so that a lone task stream is plain PPO to the bit."""
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


def combined_advantage(task: Tensor, style: Tensor, multiplier: Tensor) -> Tensor:
    """A = σ(λ) Ã^g + (1 − σ(λ)) Ã^s  (Eq. 8)."""
    task_share = torch.sigmoid(multiplier)
    return task_share * standardize(task) + (1.0 - task_share) * standardize(style)
