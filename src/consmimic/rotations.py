"""Quaternions, wxyz, as torch functions over the last dimension."""

from __future__ import annotations

import torch
from torch import Tensor


def angle_between(a: Tensor, b: Tensor) -> Tensor:
    """Angle of the rotation from a to b, in [0, π]."""  # (…, 4), (…, 4) → (…,)
    cosine_of_half = (a * b).sum(dim=-1).abs().clamp(max=1.0)
    return 2.0 * torch.acos(cosine_of_half)


def from_euler(roll: Tensor, pitch: Tensor, yaw: Tensor) -> Tensor:
    """Turn about x by roll, then about the fixed y by pitch, then about the fixed z by yaw."""  # 3 × (…,) → (…, 4)
    cr, cp, cy = (0.5 * roll).cos(), (0.5 * pitch).cos(), (0.5 * yaw).cos()
    sr, sp, sy = (0.5 * roll).sin(), (0.5 * pitch).sin(), (0.5 * yaw).sin()
    return torch.stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ],
        dim=-1,
    )


def rotate_back(quaternion: Tensor, vector: Tensor) -> Tensor:
    """A world vector, as the turned frame sees it."""  # (…, 4), (…, 3) → (…, 3)
    w, axis = quaternion[..., :1], -quaternion[..., 1:]
    turned = 2.0 * torch.linalg.cross(axis, vector)
    return vector + w * turned + torch.linalg.cross(axis, turned)


def from_yaw(yaw: Tensor) -> Tensor:
    """Turn about z."""  # (…,) → (…, 4)
    zero = torch.zeros_like(yaw)
    return torch.stack([(0.5 * yaw).cos(), zero, zero, (0.5 * yaw).sin()], dim=-1)
