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
    def resample_seconds(self) -> None:
        return None

    @property
    def centre(self) -> tuple[float, float, float]:
        """The middle of the box."""
        x, y, z = (0.5 * (low + high) for low, high in (self.x, self.y, self.z))
        return x, y, z

    def sample(self, count: int, generator: Generator, share: float = 1.0) -> Tensor:  # noqa: ARG002  # (count, 7)
        low, high = torch.tensor((self.x, self.y, self.z, self.roll, self.pitch, self.yaw)).unbind(dim=1)
        drawn = low + (high - low) * torch.rand((count, 6), generator=generator)
        return torch.cat([drawn[:, :3], from_euler(*drawn[:, 3:].unbind(dim=1))], dim=1)


@dataclass(frozen=True, kw_only=True)
class VelocityCommand:
    """Velocities of the base in its own frame, each uniform in its range; some robots are asked to stand."""

    lin_vel_x: tuple[float, float]
    lin_vel_y: tuple[float, float]
    ang_vel_z: tuple[float, float]
    standing_share: float = 0.0
    resample_seconds: float | None = None

    @property
    def layout(self) -> Layout:
        return Layout({"velocity_command": 3})

    def sample(self, count: int, generator: Generator, share: float = 1.0) -> Tensor:  # (count, 3)
        low, high = torch.tensor((self.lin_vel_x, self.lin_vel_y, self.ang_vel_z)).unbind(dim=1)
        drawn = share * (low + (high - low) * torch.rand((count, 3), generator=generator))
        standing = torch.rand((count, 1), generator=generator) < self.standing_share
        return torch.where(standing, torch.zeros(3), drawn)
