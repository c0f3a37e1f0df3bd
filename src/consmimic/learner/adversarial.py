"""Style judged by a discriminator that learns, rollout by rollout, to tell the policy's transitions from the clip's."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict
from torch import Tensor

from consmimic.errors import UserError
from consmimic.learner.style import Step, StyleConfig
from consmimic.method.discriminator import (
    Discriminator,
    DiscriminatorLoss,
    FeatureNormalizer,
    Health,
    HealthLimits,
    HealthTrend,
    adversarial_reward,
    discriminator_health,
    discriminator_loss,
    saturation_warning,
)
from consmimic.method.symmetry import SignedPermutation, augmented, symmetric_reward

GROUP = "style"


class AdversarialStyle:
    """Eqs. 2 and 3, with Eqs. 10 and 11 where the environment knows mirrors.

    The environment gives Φ(s) as observation group ``style``, the clip's transitions as ``demonstration_pairs()``, and
    may give ``style_mirrors()``. Rewards are those of the discriminator as it was during the rollout.
    """

    learns = True

    def __init__(self, config: StyleConfig, env: VecEnv, obs: TensorDict, steps: int, device: str) -> None:
        groups = list(obs.keys())
        if GROUP not in groups:
            raise UserError(
                f"the style source 'adversarial' needs the observation group '{GROUP}', the demonstration features; "
                f"the environment has {', '.join(map(str, groups))}"
            )
        if not callable(getattr(env, "demonstration_pairs", None)):
            raise UserError(
                "the style source 'adversarial' needs env.demonstration_pairs(): the clip's transitions as two tensors "
                "(Φ(s), Φ(s')), each (T, width of the group 'style')"
            )
        self.config = config
        self._device = device
        width = obs[GROUP].shape[1]
        before, after = env.demonstration_pairs()  # type: ignore[attr-defined]
        if before.shape != after.shape or before.ndim != 2 or before.shape[1] != width or len(before) == 0:
            raise UserError(
                f"demonstration_pairs() gave {tuple(before.shape)} and {tuple(after.shape)}; "
                f"expected twice (T, {width})"
            )
        self._demonstration = torch.cat([before, after], dim=1).to(device)
        mirrors = getattr(env, "style_mirrors", list)() if config.symmetry else []
        self._mirrors: list[SignedPermutation] = [mirror.to(device) for mirror in mirrors]
        with torch.random.fork_rng(devices=[]):
            self.discriminator = Discriminator(width, config.hidden_dims).to(device)
        self.normalizer = FeatureNormalizer(width).to(device)
        self.normalizer.update(augmented(self._demonstration, self._mirrors))
        self._limits, self._trend = HealthLimits(), HealthTrend()
        self._optimizer = torch.optim.Adam(
            self.discriminator.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        self._generator = torch.Generator().manual_seed(torch.initial_seed() % 2**63)
        self._pairs = torch.zeros(steps, env.num_envs, 2 * width, device=device)
        self._valid = torch.zeros(steps, env.num_envs, dtype=torch.bool, device=device)
        self._rewards = torch.zeros(steps, env.num_envs, device=device)
        self._warned_of_resets = False
        self._warned_of_saturation = False

    def has_reward(self, extras: dict[str, Any]) -> bool:  # noqa: ARG002
        return False  # a discriminator costs time; whoever needs no style trains none

    def reward(self, step: Step) -> Tensor:
        ended = step.dones.bool().to(self._device)
        after, valid = step.after[GROUP].to(self._device), torch.ones_like(ended)
        if ended.any():
            if "final_obs" in step.extras:
                after = torch.where(ended.unsqueeze(1), step.extras["final_obs"][GROUP].to(self._device), after)
            else:
                valid = ~ended
                self._warn_of_resets()
        pairs = torch.cat([step.before[GROUP].to(self._device), after], dim=1)
        reward = symmetric_reward(self._score, pairs, self._mirrors) * valid
        self._pairs[step.index].copy_(pairs)
        self._valid[step.index].copy_(valid)
        self._rewards[step.index].copy_(reward)
        return reward

    def update(self) -> dict[str, float]:
        policy = self._pairs[self._valid]
        losses = []
        for _ in range(self.config.updates):
            ours, theirs = self._drawn(policy), self._drawn(self._demonstration)
            loss = discriminator_loss(
                self.discriminator, self.normalizer(theirs), self.normalizer(ours), self.config.gradient_penalty
            )
            self._optimizer.zero_grad()
            loss.total.backward()
            self._optimizer.step()
            losses.append(loss)
        # Last, so that a rollout's rewards and what is learnt from it are normalized alike.
        self.normalizer.update(self._drawn(policy))
        self.normalizer.update(self._drawn(self._demonstration))
        return self._checked(losses)

    def _checked(self, losses: list[DiscriminatorLoss]) -> dict[str, float]:
        """The health of this iteration, to log; and a warning, once, when the discriminator has collapsed."""
        health = discriminator_health(
            torch.cat([loss.demonstration_logits for loss in losses]),
            torch.cat([loss.policy_logits for loss in losses]),
            self._rewards[self._valid],
            torch.stack([loss.gradient_norm for loss in losses]).mean(),
            self._limits.near_zero,
        )
        self._trend = self._trend.step(health, self._limits)
        message = saturation_warning(self._trend, self._limits)
        if message is not None and not self._warned_of_saturation:
            self._warned_of_saturation = True
            warnings.warn(message, stacklevel=2)
        means = {
            name: torch.stack([getattr(loss, name).detach() for loss in losses]).mean().item()
            for name in ("demonstration", "policy", "penalty")
        }
        logged = {f"style_loss_{name}": value for name, value in means.items()}
        logged |= {f"style_{name}": value for name, value in asdict(health).items()}
        return logged | {"style_saturated": float(message is not None)}

    def _score(self, pairs: Tensor) -> Tensor:
        with torch.no_grad():
            return adversarial_reward(self.discriminator(self.normalizer(pairs)))

    def _drawn(self, pairs: Tensor) -> Tensor:
        """Some of the pairs, and their mirror images (Eq. 10)."""
        chosen = torch.randint(len(pairs), (self.config.batch_size,), generator=self._generator)
        return augmented(pairs[chosen.to(self._device)], self._mirrors)

    def _warn_of_resets(self) -> None:
        if not self._warned_of_resets:
            self._warned_of_resets = True
            warnings.warn(
                "the environment's extras have no 'final_obs', so steps that end an episode get no style reward and "
                "are not shown to the discriminator",
                stacklevel=2,
            )

    def state_dict(self) -> dict[str, Any]:
        return {
            "discriminator": self.discriminator.state_dict(),
            "normalizer": self.normalizer.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "generator": self._generator.get_state(),
            "health": None if self._trend.health is None else asdict(self._trend.health),
            "health_iterations": self._trend.iterations,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.discriminator.load_state_dict(state["discriminator"])
        self.normalizer.load_state_dict(state["normalizer"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._generator.set_state(state["generator"].cpu())
        health = None if state["health"] is None else Health(**state["health"])
        self._trend = HealthTrend(iterations=state["health_iterations"], health=health)
