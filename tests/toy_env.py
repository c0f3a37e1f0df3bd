"""Two small environments written against rsl_rl's VecEnv alone, as a stranger would write them."""

from __future__ import annotations

import math
from typing import Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict
from torch import Tensor


class ForeignEnv(VecEnv):
    """Points in the plane that the task wants at the origin and the style on the unit circle.

    The least that the learner needs: one observation group, ``time_outs`` and ``style_reward``. No ``log``,
    ``final_obs`` or ``step_dt``, and a state to save only if it is ``resumable``.
    """

    LIMIT = 2.0
    """An episode fails beyond this distance from the origin."""

    def __init__(self, num_envs: int = 8, seed: int = 0, *, resumable: bool = False) -> None:
        self.num_envs = num_envs
        self.num_actions = 2
        self.max_episode_length = 10
        self.device = "cpu"
        self.cfg: dict | object = {}
        self._generator = torch.Generator().manual_seed(seed)
        self._points = self._fresh_points()
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        if resumable:
            self.state_dict, self.load_state_dict = self._save, self._load

    def get_observations(self) -> TensorDict:
        return TensorDict({"policy": self._points.clone()}, batch_size=[self.num_envs])

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Any]]:
        self._points = self._points + 0.3 * actions
        self.episode_length_buf = self.episode_length_buf + 1
        distance = self._points.norm(dim=1)
        failed = distance > self.LIMIT
        time_outs = (self.episode_length_buf >= self.max_episode_length) & ~failed
        dones = failed | time_outs
        self._points = torch.where(dones.unsqueeze(1), self._fresh_points(), self._points)
        self.episode_length_buf = torch.where(dones, 0, self.episode_length_buf)
        extras = {"time_outs": time_outs, "style_reward": torch.exp(-4.0 * (distance - 1.0).square())}
        return self.get_observations(), 1.0 - distance, dones, extras

    def _fresh_points(self) -> Tensor:
        return 2.0 * torch.rand(self.num_envs, 2, generator=self._generator) - 1.0

    def _save(self) -> dict[str, Any]:
        return {
            "generator": self._generator.get_state(),
            "points": self._points.clone(),
            "episode_length": self.episode_length_buf.clone(),
        }

    def _load(self, state: dict[str, Any]) -> None:
        self._generator.set_state(state["generator"])
        self._points = state["points"].clone()
        self.episode_length_buf = state["episode_length"].clone()


class ToyTradeOff(VecEnv):
    """A constrained problem whose optimum is known on paper.

    Every step shows one of four contexts c, and the action a, a point in the plane, is paid at once:

        task   r^g = 1 − |a − a_g(c)|²,      style   r^s = 1 − |a − a_s(c)|²,

    with |a_s(c) − a_g(c)| = D in every context. A Gaussian policy with its mean at the distance d from a_g
    and with the standard deviation f in both directions earns, on average,

        E r^g = 1 − d² − 2f²,   so at best v* ∝ 1 − 2f², at d = 0.

    **The optimum.** Both rewards are concave and alike in all contexts, so the best style under
    E r^g >= α (1 − 2f²) is in each of them on the way from a_g to a_s, as far as the constraint allows:

        d² = (1 − α)(1 − 2f²),   as long as d <= D.

    The discount does not enter, since the value is in proportion to the mean reward. The noise does, but
    through v* alone if f is the same when v* is measured and at the end: a floor under f, as noise only
    costs.

    **The multiplier there.** With the noise ε = a − μ the task's advantage is −2d·ε − (|ε|² − 2f²), the
    style's is the same with D − d, and their standard deviations are

        s_g = 2f √(d² + f²),   s_s = 2f √((D − d)² + f²).

    Eq. 8 divides by them, so the policy is at rest where (σ/s_g) d = ((1 − σ)/s_s)(D − d), that is at

        σ/(1 − σ) = √(1 + f²/d²) / √(1 + f²/(D − d)²).

    For f ≪ d this is σ = 1/2 wherever d is: the weights of Eq. 8 set which way the policy moves along the
    trade-off, not where it stops. That is up to the loop on λ alone: a hard test of that loop.
    """

    DISTANCE = 0.8  # D
    CONTEXTS = 4

    def __init__(self, num_envs: int = 128, seed: int = 0) -> None:
        self.num_envs = num_envs
        self.num_actions = 2
        self.max_episode_length = 20
        self.device = "cpu"
        self.cfg: dict | object = {}
        self._generator = torch.Generator().manual_seed(seed)
        angles = 2.0 * math.pi * torch.arange(self.CONTEXTS) / self.CONTEXTS
        directions = torch.stack([angles.cos(), angles.sin()], dim=1)  # (contexts, 2)
        self.task_optimum = 0.3 * directions
        self.style_optimum = self.task_optimum + self.DISTANCE * directions.roll(1, dims=0)
        self._context = self._draw()
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)

    @classmethod
    def optimal_distance(cls, alpha: float, noise_std: float) -> float:
        """d of the constrained optimum."""
        return min(cls.DISTANCE, math.sqrt((1.0 - alpha) * (1.0 - 2.0 * noise_std**2)))

    @classmethod
    def balancing_weight(cls, distance: float, noise_std: float) -> float:
        """The σ at which Eq. 8 leaves the policy at rest at d."""
        task = math.sqrt(1.0 + (noise_std / distance) ** 2)
        style = math.sqrt(1.0 + (noise_std / (cls.DISTANCE - distance)) ** 2)
        return task / (task + style)

    def rewards(self, actions: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """Task and style."""
        task = 1.0 - (actions - self.task_optimum[context]).square().sum(dim=1)
        style = 1.0 - (actions - self.style_optimum[context]).square().sum(dim=1)
        return task, style

    def every_context(self) -> TensorDict:
        """One observation of each context."""
        return TensorDict({"policy": torch.eye(self.CONTEXTS)}, batch_size=[self.CONTEXTS])

    def get_observations(self) -> TensorDict:
        return self.every_context()[self._context]

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Any]]:
        task, style = self.rewards(actions, self._context)
        self.episode_length_buf = self.episode_length_buf + 1
        time_outs = self.episode_length_buf >= self.max_episode_length
        self.episode_length_buf = torch.where(time_outs, 0, self.episode_length_buf)
        self._context = self._draw()
        extras = {"time_outs": time_outs, "style_reward": style, "log": {"Toy/style": style.mean()}}
        return self.get_observations(), task, time_outs, extras

    def _draw(self) -> Tensor:
        return torch.randint(self.CONTEXTS, (self.num_envs,), generator=self._generator)
