"""How task and style become one update: the constraint of the paper, or the fixed weights of its baselines."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from torch import Tensor

from consmimic.errors import UserError
from consmimic.learner.config import from_dict
from consmimic.method.constraint import Constraint, ConstraintConfig, threshold
from consmimic.method.fixed_weight import multiplier_of_share, weighted_reward

MIXES = ("rewards", "advantages")


class Mixing(Protocol):
    """The part of the learner that weighs task against style."""

    uses_style_critic: bool
    needs_style: bool
    """False: the environment may have no style at all."""

    @property
    def hears_style(self) -> bool:
        """Whether the next update depends on the style: not in a warm-up of the task alone."""
        ...

    @property
    def multiplier(self) -> float:
        """The λ that Eq. 8 sees now."""
        ...

    def reward(self, task: Tensor, style: Tensor) -> Tensor:
        """The reward that the task critic learns."""
        ...

    def step(self, task_value: float, settled: bool = True) -> dict[str, float]:
        """After an iteration; returns what to log. Not settled: the task itself still grows."""
        ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class ConstrainedMixing:
    """ConsMimic: two critics, joined by Eq. 8 with the multiplier of the task constraint."""

    uses_style_critic = True
    needs_style = True

    def __init__(self, config: ConstraintConfig) -> None:
        self.constraint = Constraint(config=config)

    @property
    def hears_style(self) -> bool:
        return self.constraint.best_value is not None or self.constraint.config.warmup_style > 0.0

    @property
    def multiplier(self) -> float:
        return self.constraint.effective_multiplier

    def reward(self, task: Tensor, style: Tensor) -> Tensor:  # noqa: ARG002
        return task

    def step(self, task_value: float, settled: bool = True) -> dict[str, float]:
        self.constraint = c = self.constraint.step(task_value, settled)
        assert c.value is not None
        info = {"v_task": c.value, "v_task_raw": task_value, "sigma_lambda": sigmoid(c.effective_multiplier)}
        if c.best_value is None:
            return info | {"warmup": 1.0}
        wanted = threshold(c.best_value, c.config.alpha)
        return info | {
            "warmup": 0.0,
            "lambda": c.effective_multiplier,
            "lambda_integrated": c.multiplier,
            "v_star": c.best_value,
            "threshold": wanted,
            "gap": c.value - wanted,
            "satisfied": float(c.value >= wanted),
        }

    def state_dict(self) -> dict[str, Any]:
        state = asdict(self.constraint)
        del state["config"]
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if not state:
            raise UserError(
                "the checkpoint was trained with a fixed weight, so it has no multiplier to go on with; to start "
                "from its networks alone, load it with load_cfg={'actor': True, 'critic': True}"
            )
        state = dict(state, warmup_values=tuple(state["warmup_values"]))
        self.constraint = replace(self.constraint, **state)


class FixedMixing:
    """A baseline ω^s, mixed as rewards (one critic) or as advantages (two critics and Eq. 8 with a fixed λ)."""

    def __init__(self, style_weight: float, mix: str = "rewards") -> None:
        if not 0.0 <= style_weight <= 1.0:
            raise UserError(f"the style weight is {style_weight}; it is a share: valid are 0 to 1")
        if mix not in MIXES:
            raise UserError(f"unknown mix '{mix}'. Valid: {', '.join(MIXES)}")
        self.style_weight = style_weight
        self.mix = mix
        self.needs_style = style_weight > 0.0
        self.uses_style_critic = mix == "advantages" and style_weight > 0.0

    @property
    def hears_style(self) -> bool:
        return self.needs_style

    @property
    def multiplier(self) -> float:
        return multiplier_of_share(self.style_weight) if self.mix == "advantages" else math.inf

    def reward(self, task: Tensor, style: Tensor) -> Tensor:
        if self.mix == "advantages" or self.style_weight == 0.0:
            return task
        return weighted_reward(task, style, self.style_weight)

    def step(self, task_value: float, settled: bool = True) -> dict[str, float]:  # noqa: ARG002
        return {"v_task": task_value, "v_task_raw": task_value, "sigma_lambda": 1.0 - self.style_weight}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class FixedWeightConfig:
    style_weight: float
    mix: str = "rewards"


def mixing_from(constraint_cfg: dict[str, Any] | None, fixed_weight_cfg: dict[str, Any] | None) -> Mixing:
    """ConsMimic unless a fixed weight is asked for."""
    if constraint_cfg and fixed_weight_cfg:
        raise UserError("give constraint_cfg (ConsMimic) or fixed_weight_cfg (a baseline), not both")
    if fixed_weight_cfg:
        fixed = from_dict(FixedWeightConfig, fixed_weight_cfg, "fixed_weight_cfg")
        return FixedMixing(fixed.style_weight, fixed.mix)
    return ConstrainedMixing(from_dict(ConstraintConfig, constraint_cfg or {}, "constraint_cfg"))


def sigmoid(multiplier: float) -> float:
    return 1.0 / (1.0 + math.exp(-multiplier)) if multiplier != math.inf else 1.0
