"""Style from a reference clip (Eq. 1)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


def tracking_reward(
    state: Mapping[str, Tensor],  # subgroup name → (N, d_i)
    reference: Mapping[str, Tensor],  # subgroup name → (N, d_i)
    weights: Mapping[str, float],  # subgroup name → w_i
) -> Tensor:  # (N,), in (0, 1]
    """r^s = exp(−Σ_i w_i ‖s_i − ŝ_i‖²)  (Eq. 1)."""
    exponent = torch.stack(
        [weight * (state[name] - reference[name]).square().sum(dim=-1) for name, weight in weights.items()]
    ).sum(dim=0)
    return torch.exp(-exponent)


def nearest_sign(quaternion: Tensor, reference: Tensor) -> Tensor:
    """The one of ±q that lies nearer to the reference: both are the same rotation, Eq. 1 must not tell them apart."""
    same_side = (quaternion * reference).sum(dim=-1, keepdim=True) >= 0
    return torch.where(same_side, quaternion, -quaternion)
