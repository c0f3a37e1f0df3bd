"""What the robot is asked to do, drawn anew for each episode."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from consmimic.envs.layout import Layout
from consmimic.rotations import from_euler


def uniform(low: float, high: float, shape: tuple[int, ...], generator: Generator) -> Tensor:
    return low + (high - low) * torch.rand(shape, generator=generator)


@dataclass(frozen=True, kw_only=True)
class PoseCommand:
    """A target pose, each coordinate uniform in its range: position in m, Euler angles about fixed axes in rad."""

    x: tuple[float, float]
    y: tuple[float, float]
    z: tuple[float, float]
    roll: tuple[float, float]
    pitch: tuple[float, float]
    yaw: tuple[float, float]

    @property
    def layout(self) -> Layout:
        return Layout({"target_pos": 3, "target_quat": 4})

    @property
    def centre(self) -> tuple[float, float, float]:
        """The middle of the box."""
        x, y, z = (0.5 * (low + high) for low, high in (self.x, self.y, self.z))
        return x, y, z

    def sample(self, count: int, generator: Generator) -> Tensor:  # (count, 7)
        low, high = torch.tensor((self.x, self.y, self.z, self.roll, self.pitch, self.yaw)).unbind(dim=1)
        drawn = low + (high - low) * torch.rand((count, 6), generator=generator)
        return torch.cat([drawn[:, :3], from_euler(*drawn[:, 3:].unbind(dim=1))], dim=1)
