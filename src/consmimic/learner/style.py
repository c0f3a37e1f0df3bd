"""Where style rewards come from: the learner asks a source, and does not know how it makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from rsl_rl.env import VecEnv
from tensordict import TensorDict
from torch import Tensor

from consmimic.errors import UserError


@dataclass(frozen=True, kw_only=True)
class StyleConfig:
    """Keys beyond the first two are the discriminator's."""

    source: str = "environment"
    """``environment``: the environment puts ``style_reward`` into its extras (Eq. 1, or anything of yours).
    ``adversarial``: a discriminator judges transitions of the observation group ``style`` (Eqs. 2, 3)."""
    reward_scale: float | None = None
    """Factor on the style reward; None: the environment's ``step_dt`` if it has one, as on its reward terms, else 1."""
    hidden_dims: tuple[int, ...] = (1024, 512)
    """Table 9."""
    learning_rate: float = 1e-4
    gradient_penalty: float = 10.0
    """w_gp of Eq. 3."""
    weight_decay: float = 1e-4
    updates: int = 10
    """Steps of the discriminator per iteration."""
    batch_size: int = 1024
    """Transitions of either side in a step, before they are mirrored."""
    symmetry: bool = True
    """Mirror both sides' transitions (Eq. 10) and average the reward over the mirrors (Eq. 11), where the environment
    knows mirrors of its style features."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden_dims", tuple(self.hidden_dims))
        for name in ("updates", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; at least 1 is needed")
        for name in ("learning_rate", "gradient_penalty", "weight_decay"):
            if getattr(self, name) < 0.0:
                raise ValueError(f"{name} is {getattr(self, name)}; it cannot be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a step of all robots shows to a style source."""

    index: int
    """In the rollout."""
    before: TensorDict
    """What the policy saw."""
    after: TensorDict
    """What it will see: of the next episode where one ended."""
    dones: Tensor  # (N,)
    extras: dict[str, Any]


class StyleSource(Protocol):
    """Scores the steps of a rollout while it is collected, and may learn from them when it is complete."""

    learns: bool
    """Then it stays out of the warm-up: there it would only learn to tell a policy that does not care for style."""

    def has_reward(self, extras: dict[str, Any]) -> bool:
        """Whether the environment gave a style reward along, which costs nothing to look at."""
        ...

    def reward(self, step: Step) -> Tensor:
        """r^s of the step just made, (N,)."""
        ...

    def update(self) -> dict[str, float]:
        """After a rollout; returns what to log."""
        ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class EnvironmentStyle:
    """The environment knows the clip and computes the style reward itself (Eq. 1)."""

    learns = False

    def has_reward(self, extras: dict[str, Any]) -> bool:
        return "style_reward" in extras

    def reward(self, step: Step) -> Tensor:
        if not self.has_reward(step.extras):
            raise UserError(
                "the style source is 'environment', but the environment's extras have no 'style_reward'; "
                f"they have {', '.join(step.extras) or 'nothing'}"
            )
        return step.extras["style_reward"]

    def update(self) -> dict[str, float]:
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


def style_source(config: StyleConfig, env: VecEnv, obs: TensorDict, steps: int, device: str) -> StyleSource:
    if config.source == "environment":
        return EnvironmentStyle()
    if config.source == "adversarial":
        from consmimic.learner.adversarial import AdversarialStyle

        return AdversarialStyle(config, env, obs, steps, device)
    raise UserError(f"unknown style source '{config.source}'. Valid: environment, adversarial")
