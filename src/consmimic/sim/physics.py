"""The interface between environments and whatever steps the physics."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Protocol

import mujoco
import numpy as np
from torch import Tensor


class Physics(Protocol):
    """N simulations of one model.

    Fields have MuJoCo's names (``qpos``, ``qvel``, ``ctrl``, ``xpos``, ``sensordata`` …). Derived fields are those
    of the *current* state after :meth:`step` and :meth:`forward`, up to the velocity stage.
    ``ids`` are sorted.
    """

    model: mujoco.MjModel
    num_envs: int

    def read(self, field: str, ids: Tensor | None = None) -> Tensor:
        """A fresh float32 tensor of the field, (N, …) or (len(ids), …)."""
        ...

    def write(self, field: str, values: Tensor, ids: Tensor | None = None) -> None:
        """Set a state or control field; derived fields follow at the next step or forward."""
        ...

    def step(self, substeps: int) -> None:
        """Advance every simulation, then make the derived fields current."""
        ...

    def forward(self, ids: Tensor | None = None) -> None:
        """Make the derived fields current without advancing: after a reset's writes."""
        ...

    def reset(self, ids: Tensor | None = None) -> None:
        """Back to the model's defaults: velocities, forces and warm starts zero. Writes and a forward follow."""
        ...

    def vary(self, model_field: str) -> np.ndarray:
        """Give a model field one value per simulation; returns the live array, (N, …), to write into."""
        ...

    def finish_variation(self) -> None:
        """Recompute what derives from varied model fields."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that the next step depends on."""
        ...

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on from a saved state, to the bit."""
        ...
