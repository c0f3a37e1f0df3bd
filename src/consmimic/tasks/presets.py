"""How a task is trained: presets, and the rsl_rl configuration made of one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import Any

from rsl_rl.utils import resolve_nn_activation

from consmimic.errors import UserError, unknown
from consmimic.learner.config import from_dict
from consmimic.learner.mirroring import SYMMETRY_CFG
from consmimic.learner.ppo import ExplorationConfig
from consmimic.learner.style import StyleConfig
from consmimic.method.constraint import ConstraintConfig


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Names are rsl_rl's. Figures are Tables 9 and 10 unless a comment says otherwise."""

    num_envs: int
    max_iterations: int
    hidden_dims: tuple[int, ...]
    num_steps_per_env: int = 24
    num_learning_epochs: int = 5  # not in the paper; Isaac Lab
    num_mini_batches: int = 4
    clip_param: float = 0.2
    gamma: float = 0.99
    lam: float = 0.95  # not in the paper; Isaac Lab
    entropy_coef: float = 0.005
    learning_rate: float = 1e-3
    schedule: str = "adaptive"  # not in the paper; Isaac Lab
    desired_kl: float = 0.01  # not in the paper; Isaac Lab
    value_loss_coef: float = 1.0  # not in the paper; Isaac Lab
    max_grad_norm: float = 1.0  # not in the paper; Isaac Lab
    activation: str = "elu"  # not in the paper; Isaac Lab
    init_noise_std: float = 1.0  # not in the paper; Isaac Lab
    obs_normalization: bool = True
    save_interval: int = 50
    constraint: ConstraintConfig = field(default_factory=ConstraintConfig)
    exploration: ExplorationConfig = field(default_factory=ExplorationConfig)
    style: StyleConfig = field(default_factory=StyleConfig)
    policy_symmetry: bool = False
    """Mirror images of all samples in PPO's update, too (rsl_rl's symmetry extension), where the task has mirrors."""
    torch_threads: int = 1
    """Fixed by the preset, not by the machine: sums over threads would change a run's bits."""

    def with_changes(self, changes: Mapping[str, Any]) -> Preset:
        """The preset with keys changed, ``constraint.multiplier_lr`` style for nested ones; wrong ones are refused."""
        flat: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for key, value in changes.items():
            group, _, name = str(key).partition(".")
            if group not in self.__dataclass_fields__:
                raise unknown("preset key", key, self.keys())
            current = getattr(self, group)
            if is_dataclass(current) and not isinstance(current, type):
                parts = {name: value} if name else value
                if not isinstance(parts, Mapping):
                    raise UserError(f"preset key {group} has parts; set those: {', '.join(asdict(current))}")
                nested.setdefault(group, {}).update(parts)
            elif name:
                raise unknown("preset key", key, self.keys())
            else:
                flat[group] = _typed(group, value, current)
        for group, values in nested.items():
            record = getattr(self, group)
            known = asdict(record)
            typed = {k: _typed(f"{group}.{k}", v, known[k]) if k in known else v for k, v in values.items()}
            flat[group] = from_dict(type(record), known | typed, f"preset key {group}")
        return _checked(replace(self, **flat))

    def as_used_by(self, method: Method) -> Preset:
        """The same training for the method: what it has no use for is at its default."""
        unused: dict[str, Any] = {}
        if method.name != "consmimic":
            unused["constraint"] = ConstraintConfig()
        if method.name == "task-only":
            unused["style"] = StyleConfig(source=self.style.source)
        return replace(self, **unused)

    def keys(self) -> list[str]:
        """Every key, nested ones with their dots."""
        keys = []
        for name in self.__dataclass_fields__:
            parts = getattr(getattr(self, name), "__dataclass_fields__", None)
            keys += [f"{name}.{part}" for part in parts] if parts else [name]
        return keys


@dataclass(frozen=True, kw_only=True)
class Method:
    """What is trained: ``consmimic`` with α, ``task-only``, or ``fixed`` with the share ω^s of the style."""

    name: str = "consmimic"
    alpha: float | None = None
    style_weight: float | None = None
    mix: str = "rewards"
    symmetry: bool = True
    """Whether an adversarial style knows the robot's mirrors (Eqs. 10, 11)."""

    NAMES = ("consmimic", "task-only", "fixed")

    def __post_init__(self) -> None:
        if self.name not in self.NAMES:
            raise unknown("method", self.name, self.NAMES)
        if self.name == "consmimic":
            if self.alpha is None or not 0.0 <= self.alpha <= 1.0:
                raise UserError(
                    f"alpha is {self.alpha}; it is the share of the task-only optimum to keep: valid are 0 to 1"
                )
        elif self.alpha is not None:
            raise UserError(f"alpha belongs to the method consmimic, not to {self.name}")
        if self.name == "fixed":
            if self.style_weight is None or not 0.0 <= self.style_weight <= 1.0:
                raise UserError(
                    f"the style weight is {self.style_weight}; method fixed needs --style-weight, valid are 0 to 1"
                )
        elif self.style_weight is not None:
            raise UserError(f"the style weight belongs to the method fixed, not to {self.name}")
        if self.mix not in ("rewards", "advantages"):
            raise unknown("mix", self.mix, ("rewards", "advantages"))

    @property
    def label(self) -> str:
        """For people and folder names."""
        mirrors = "" if self.symmetry else "-no-symmetry"
        if self.name == "consmimic":
            return f"consmimic-a{self.alpha:g}{mirrors}"
        if self.name == "fixed":
            return f"fixed-w{self.style_weight:g}{'' if self.mix == 'rewards' else '-advantages'}{mirrors}"
        return "task-only"


def runner_config(preset: Preset, method: Method) -> dict[str, Any]:
    """The dictionary that rsl_rl's OnPolicyRunner takes."""
    model = {
        "class_name": "MLPModel",
        "hidden_dims": list(preset.hidden_dims),
        "activation": preset.activation,
        "obs_normalization": preset.obs_normalization,
    }
    algorithm: dict[str, Any] = {
        "class_name": "consmimic.learner:ConsMimicPPO",
        "num_learning_epochs": preset.num_learning_epochs,
        "num_mini_batches": preset.num_mini_batches,
        "clip_param": preset.clip_param,
        "gamma": preset.gamma,
        "lam": preset.lam,
        "entropy_coef": preset.entropy_coef,
        "learning_rate": preset.learning_rate,
        "schedule": preset.schedule,
        "desired_kl": preset.desired_kl,
        "value_loss_coef": preset.value_loss_coef,
        "max_grad_norm": preset.max_grad_norm,
        "exploration_cfg": asdict(preset.exploration),
        "style_cfg": asdict(preset.style) | {"symmetry": preset.style.symmetry and method.symmetry},
    }
    if method.name == "consmimic":
        algorithm["constraint_cfg"] = asdict(preset.constraint) | {"alpha": method.alpha}
    else:
        algorithm["fixed_weight_cfg"] = {"style_weight": method.style_weight or 0.0, "mix": method.mix}
    if preset.policy_symmetry:
        algorithm["symmetry_cfg"] = dict(SYMMETRY_CFG)
    # Tracking depends on how far the clip has run, likeness of a transition does not.
    style_critic = ["critic", "phase"] if preset.style.source == "environment" else ["critic"]
    return {
        "num_steps_per_env": preset.num_steps_per_env,
        "save_interval": preset.save_interval,
        "obs_groups": {"actor": ["policy"], "critic": ["critic"], "style_critic": style_critic},
        "actor": model
        | {"distribution_cfg": {"class_name": "GaussianDistribution", "init_std": preset.init_noise_std}},
        "critic": dict(model),
        "algorithm": algorithm,
    }


_KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a finite number",
    str: "a word",
    tuple: "a list of whole numbers, such as [64, 64]",
}


def _typed(key: str, value: Any, current: Any) -> Any:
    """The value as the type of the one it replaces; YAML reads 1e-3 as a word and 1 as a whole number."""
    kind = type(current)
    if kind is float and isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return number
    elif kind is tuple and isinstance(value, (list, tuple)):
        if all(type(item) is int for item in value):
            return tuple(value)
    elif type(value) is kind or current is None:
        return value
    raise UserError(f"preset key {key} is {value!r}; it must be {_KINDS[kind]}")


_AT_LEAST_1 = (
    "num_envs",
    "max_iterations",
    "num_steps_per_env",
    "num_learning_epochs",
    "num_mini_batches",
    "save_interval",
    "torch_threads",
)


def _checked(preset: Preset) -> Preset:
    for name in _AT_LEAST_1:
        value = getattr(preset, name)
        if value < 1:
            raise UserError(f"preset key {name} is {value}; it must be a whole number of at least 1")
    samples = preset.num_envs * preset.num_steps_per_env
    if preset.num_mini_batches > samples:
        raise UserError(f"preset key num_mini_batches is {preset.num_mini_batches}, of {samples} samples an iteration")
    if not 0.0 <= preset.gamma < 1.0:
        raise UserError(f"preset key gamma is {preset.gamma}; valid are 0 to 1 (exclusive)")
    if preset.schedule not in ("adaptive", "fixed"):
        raise unknown("schedule", preset.schedule, ("adaptive", "fixed"))
    try:
        resolve_nn_activation(preset.activation)
    except ValueError as error:
        raise UserError(f"preset key activation: {error}") from None
    return preset
