"""Where style rewards come from: the learner asks a source, and does not know how it makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from consmimic.errors import UserError


@dataclass(frozen=True, kw_only=True)
class StyleConfig:
    source: str = "environment"
    """``environment``: the environment puts ``style_reward`` into its extras."""
    reward_scale: float | None = None
    """Factor on the style reward; None: the environment's ``step_dt`` if it has one, as on its reward terms, else 1."""


class StyleSource(Protocol):
    """Scores the steps of a rollout while it is collected."""

    def has_reward(self, extras: dict[str, Any]) -> bool:
        """Whether there is a style to score in this environment."""
        ...

    def reward(self, extras: dict[str, Any]) -> Tensor:
        """r^s of the step just made, (N,)."""
        ...


class EnvironmentStyle:
    """The environment knows the clip and computes the style reward itself (Eq. 1)."""

    def has_reward(self, extras: dict[str, Any]) -> bool:
        return "style_reward" in extras

    def reward(self, extras: dict[str, Any]) -> Tensor:
        if not self.has_reward(extras):
            raise UserError(
                "the style source is 'environment', but the environment's extras have no 'style_reward'; "
                f"they have {', '.join(extras) or 'nothing'}"
            )
        return extras["style_reward"]


def style_source(config: StyleConfig) -> StyleSource:
    sources = {"environment": EnvironmentStyle}
    if config.source not in sources:
        raise UserError(f"unknown style source '{config.source}'. Valid: {', '.join(sources)}")
    return sources[config.source]()
