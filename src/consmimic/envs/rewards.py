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


def velocity_closeness(velocity: Tensor, command: Tensor, variance: float) -> Tensor:
    """exp(−‖v − v*‖²/σ²), in [0, 1]."""  # (N, d), (N, d) → (N,)
    return torch.exp(-(velocity - command).square().sum(dim=-1) / variance)


def power(torque: Tensor, joint_vel: Tensor) -> Tensor:
    """Σ τ q̇"""  # (N, J), (N, J) → (N,)
    return (torque * joint_vel).sum(dim=-1)


def long_steps(touch_down: Tensor, air_time: Tensor, seconds: float) -> Tensor:
    """Feet that touch down now after more than that long in the air."""  # (N, F), (N, F) → (N,)
    return (touch_down & (air_time > seconds)).to(air_time.dtype).sum(dim=-1)


def count(happening: Tensor) -> Tensor:
    """How many of these are true."""  # (N, d) → (N,)
    return happening.to(torch.float32).sum(dim=-1)


def limit_violation(joint_pos: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Σ_i max(0, q_i − q_max,i, q_min,i − q_i)"""  # (N, J), (J,), (J,) → (N,)
    return torch.maximum(joint_pos - high, low - joint_pos).clamp(min=0.0).sum(dim=-1)
