"""What the robot is asked to do, drawn anew for each episode."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from consmimic.envs.layout import Layout
from consmimic.rotations import from_pitch


def uniform(low: float, high: float, shape: tuple[int, ...], generator: Generator) -> Tensor:
    return low + (high - low) * torch.rand(shape, generator=generator)


@dataclass(frozen=True, kw_only=True)
class PoseCommand:
    """A target pose: position in a box, pitch on the circle, roll and yaw zero, all in the base frame."""

    x: tuple[float, float]
    y: tuple[float, float]
    z: tuple[float, float]
    pitch: tuple[float, float] = (-math.pi, math.pi)

    @property
    def layout(self) -> Layout:
        return Layout({"target_pos": 3, "target_quat": 4})

    @property
    def centre(self) -> tuple[float, float, float]:
        """The middle of the box."""
        return tuple(0.5 * (low + high) for low, high in (self.x, self.y, self.z))  # type: ignore[return-value]

    def sample(self, count: int, generator: Generator) -> Tensor:  # (count, 7)
        position = [uniform(*side, (count, 1), generator) for side in (self.x, self.y, self.z)]
        pitch = uniform(*self.pitch, (count,), generator)
        return torch.cat([*position, from_pitch(pitch)], dim=-1)
