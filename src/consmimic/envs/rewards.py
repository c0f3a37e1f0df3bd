"""One pure function per row of the paper's reward tables; weights and names stand in the task files."""

from __future__ import annotations

import torch
from torch import Tensor

from consmimic.rotations import angle_between


def position_error(position: Tensor, target: Tensor) -> Tensor:
    """‖x − x*‖₂"""  # (N, 3), (N, 3) → (N,)
    return torch.linalg.vector_norm(position - target, dim=-1)


def position_closeness(position: Tensor, target: Tensor) -> Tensor:
    """1 − tanh ‖x − x*‖₂, in [0, 1]."""  # (N, 3), (N, 3) → (N,)
    return 1.0 - torch.tanh(position_error(position, target))


def orientation_error(quaternion: Tensor, target: Tensor) -> Tensor:
    """‖θ − θ*‖_quat: the angle between the two, in [0, π]."""  # (N, 4), (N, 4) → (N,)
    return angle_between(quaternion, target)


def action_rate(action: Tensor, previous: Tensor) -> Tensor:
    """‖a_t − a_{t−1}‖²"""  # (N, A), (N, A) → (N,)
    return (action - previous).square().sum(dim=-1)


def squared_norm(vector: Tensor) -> Tensor:
    """‖q̇‖², of any vector."""  # (N, d) → (N,)
    return vector.square().sum(dim=-1)
