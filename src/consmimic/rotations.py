"""Quaternions, wxyz, as torch functions over the last dimension."""

from __future__ import annotations

import torch
from torch import Tensor


def angle_between(a: Tensor, b: Tensor) -> Tensor:
    """Angle of the rotation from a to b, in [0, π]."""  # (…, 4), (…, 4) → (…,)
    cosine_of_half = (a * b).sum(dim=-1).abs().clamp(max=1.0)
    return 2.0 * torch.acos(cosine_of_half)


def from_pitch(pitch: Tensor) -> Tensor:
    """Rotation about the y axis."""  # (…,) → (…, 4)
    half = 0.5 * pitch
    zero = torch.zeros_like(half)
    return torch.stack([half.cos(), zero, half.sin(), zero], dim=-1)
