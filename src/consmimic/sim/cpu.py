"""Physics on the CPU: ``mujoco.batch.Batch`` (MuJoCo >= 4.0)."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import mujoco
import numpy as np
import torch
from mujoco.batch import Batch
from torch import Tensor

from consmimic.errors import UserError
from consmimic.sim.threads import available_threads

# What a step depends on, besides the model (mjSTATE_INTEGRATION).
_STATE_FIELDS = (
    "time",
    "qpos",
    "qvel",
    "act",
    "qacc_warmstart",
    "ctrl",
    "qfrc_applied",
    "xfrc_applied",
    "eq_active",
    "mocap_pos",
    "mocap_quat",
    "userdata",
    "history",
)


class CpuPhysics:
    """N simulations on a thread pool; the same bits at any number of threads."""

    def __init__(self, model: mujoco.MjModel, num_envs: int, threads: int | None = None) -> None:
        self.model = model
        self.num_envs = num_envs
        self.threads = available_threads() if threads is None else threads
        if self.threads < 1:
            raise UserError(f"threads is {threads}; at least 1 is needed")
        # Persistent: each simulation keeps its MjData, and a step goes on from the stages that `stage=` computed,
        # so that derived fields of the new state cost nothing extra.
        self.batch = Batch(model, nsim=num_envs, nthread=self.threads, persistent=True)
        self._varied: set[str] = set()
        self.forward()

    def read(self, field: str, ids: Tensor | None = None) -> Tensor:
        array = self.batch.bind(field)
        if ids is not None:
            array = array[ids.numpy()]
        return torch.from_numpy(array.astype(np.float32))

    def write(self, field: str, values: Tensor, ids: Tensor | None = None) -> None:
        if ids is None:
            self.batch.bind(field)[:] = values.numpy()
        else:
            self.batch.bind(field)[ids.numpy()] = values.numpy()

    def step(self, substeps: int) -> None:
        self.batch.step(nstep=substeps, stage=mujoco.mjtStage.mjSTAGE_VEL)

    def forward(self, ids: Tensor | None = None) -> None:
        self.batch.forward(None if ids is None else ids.numpy(), stage=mujoco.mjtStage.mjSTAGE_VEL)

    def reset(self, ids: Tensor | None = None) -> None:
        self.batch.reset(None if ids is None else ids.numpy(), stage=mujoco.mjtStage.mjSTAGE_NONE)

    def vary(self, model_field: str) -> np.ndarray:
        self._varied.add(model_field)
        return self.batch.expand(model_field)

    def finish_variation(self) -> None:
        self.batch.set_const()
        self.forward()

    def state_dict(self) -> dict[str, Tensor]:
        state = {name: torch.from_numpy(self.batch.bind(name).copy()) for name in _STATE_FIELDS}
        model = {f"model.{name}": torch.from_numpy(self.batch.expand(name).copy()) for name in sorted(self._varied)}
        return state | model

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        for name, values in state.items():
            if name.startswith("model."):
                self.vary(name.removeprefix("model."))[:] = values.numpy()
            else:
                self.batch.bind(name)[:] = values.numpy()
        if self._varied:
            self.batch.set_const()
        self.forward()
