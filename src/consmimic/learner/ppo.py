"""Algorithm 1 as an rsl_rl algorithm, driven by the unmodified OnPolicyRunner.

PPO itself stays rsl_rl's: this class keeps the style stream beside it, hands it mixed advantages (Eq. 8), trains the
style critic, and steps the constraint once per iteration.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from rsl_rl.algorithms import PPO
from rsl_rl.env import VecEnv
from rsl_rl.models import MLPModel
from rsl_rl.storage import RolloutStorage
from rsl_rl.utils import resolve_callable
from tensordict import TensorDict
from torch import Tensor, nn

from consmimic.errors import UserError
from consmimic.learner.config import from_dict
from consmimic.learner.mixing import mixing_from
from consmimic.learner.style import Step, StyleConfig, style_source
from consmimic.method.advantages import combined_advantage, generalized_advantages
from consmimic.method.constraint import task_value


@dataclass(frozen=True, kw_only=True)
class ExplorationConfig:
    """Keeps exploration alive where plain PPO would give it up too early (docs/departures.md)."""

    std_floor: float = 0.0
    """The action noise never falls below this. 0: plain PPO."""
    growing_entropy_coef: float | None = None
    """``entropy_coef`` while the environment's commands still grow. None: the same all the time."""


@dataclass(frozen=True)
class IterationReport:
    """What an iteration showed, for whoever listens: progress bars, tests."""

    iteration: int
    scalars: dict[str, float]


class ConsMimicPPO(PPO):
    """PPO on a task under the constraint that the style must not cost more than a share 1 − α of it.

    Beside PPO's own keys the ``algorithm`` config takes ``constraint_cfg`` (ConsMimic) or ``fixed_weight_cfg`` (the
    baselines ω^s), ``style_cfg``, ``exploration_cfg``, and ``style_critic`` (as ``critic``, the default).
    """

    style_critic: MLPModel
    on_iteration: Callable[[IterationReport], None] | None = None
    """Called at the end of every update."""

    def __init__(
        self,
        actor: MLPModel,
        critic: MLPModel,
        storage: RolloutStorage,
        *args: Any,
        constraint_cfg: dict[str, Any] | None = None,
        fixed_weight_cfg: dict[str, Any] | None = None,
        style_cfg: dict[str, Any] | None = None,
        exploration_cfg: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        _refuse_options(kwargs)
        if actor.is_recurrent:
            raise UserError("the actor is recurrent, which is not supported; use an MLPModel")
        super().__init__(actor, critic, storage, *args, **kwargs)
        self.mixing = mixing_from(constraint_cfg, fixed_weight_cfg)
        self.style_config = from_dict(StyleConfig, style_cfg or {}, "style_cfg")
        self.exploration = from_dict(ExplorationConfig, exploration_cfg or {}, "exploration_cfg")
        if self.exploration.std_floor > 0.0 and _std_parameter(actor) is None:
            raise UserError(
                f"std_floor needs an action noise with parameters of its own (GaussianDistribution), "
                f"not {type(actor.distribution).__name__}"
            )
        self.iteration = 0

        shape = (storage.num_transitions_per_env, storage.num_envs)
        self._task_rewards = torch.zeros(shape, device=self.device)
        self._style_rewards = torch.zeros(shape, device=self.device)
        self._time_outs = torch.zeros(shape, device=self.device)
        self._style_values = torch.zeros(shape, device=self.device)
        self._style_returns = torch.zeros(shape, device=self.device)
        self._log: dict[str, Any] | None = None

    @staticmethod
    def construct_algorithm(obs: TensorDict, env: VecEnv, cfg: dict[str, Any], device: str) -> ConsMimicPPO:
        """As rsl_rl's, and the style critic."""
        _refuse_options(cfg["algorithm"])
        cfg["algorithm"].setdefault("rnd_cfg", None)  # the runners before rsl_rl 5.5 look it up
        ppo_cfg = cfg | {"algorithm": dict(cfg["algorithm"])}
        style_critic_cfg = copy.deepcopy(ppo_cfg["algorithm"].pop("style_critic", None) or cfg["critic"])
        alg = PPO.construct_algorithm(obs, env, ppo_cfg, device)
        assert isinstance(alg, ConsMimicPPO)
        cfg["obs_groups"] = ppo_cfg["obs_groups"]
        alg.attach(env, obs, cfg["obs_groups"], style_critic_cfg)
        return alg

    def attach(
        self, env: VecEnv, obs: TensorDict, obs_groups: dict[str, list[str]], style_critic_cfg: dict[str, Any]
    ) -> None:
        """Make the style critic, without touching the random numbers that PPO draws."""
        self._env = env
        scale = self.style_config.reward_scale
        self._style_scale = float(getattr(env, "step_dt", 1.0)) if scale is None else scale
        groups = {"style_critic": obs_groups.get("style_critic", obs_groups["critic"])}
        model_class: type[MLPModel] = resolve_callable(style_critic_cfg.pop("class_name"))  # type: ignore[assignment]
        with torch.random.fork_rng(devices=[]):
            self.style_critic = model_class(obs, groups, "style_critic", 1, **style_critic_cfg).to(self.device)
        if self.style_critic.is_recurrent:
            raise UserError("the style critic is recurrent, which is not supported; use an MLPModel")
        self._style_groups = groups["style_critic"]
        self.style_source = style_source(self.style_config, env, obs, self.storage.num_transitions_per_env, self.device)
        self._style_optimizer = torch.optim.Adam(self.style_critic.parameters(), lr=self.learning_rate)
        self._style_generator = torch.Generator().manual_seed(torch.initial_seed() % 2**63)

    def process_env_step(self, obs: TensorDict, rewards: Tensor, dones: Tensor, extras: dict[str, Any]) -> None:
        step = self.storage.step
        if self._wants_style() or self.style_source.has_reward(extras):
            made = Step(index=step, before=self.transition.observations, after=obs, dones=dones, extras=extras)
            style = self._style_scale * self.style_source.reward(made).to(self.device)
        else:
            style = torch.zeros_like(rewards)
        self._task_rewards[step].copy_(rewards)
        self._style_rewards[step].copy_(style)
        if "time_outs" in extras:
            self._time_outs[step].copy_(extras["time_outs"])
        else:
            self._time_outs[step].zero_()
        self._log = self._iteration_log(step, extras)
        super().process_env_step(obs, self.mixing.reward(rewards, style), dones, extras)

    def compute_returns(self, obs: TensorDict) -> None:
        super().compute_returns(obs)
        if not self._has_style_stream():
            return
        st = self.storage
        values = self.style_critic(st.observations.flatten(0, 1).select(*self._style_groups))
        self._style_values.copy_(values.view_as(self._style_values))
        # As rsl_rl: a time-out is not the end, so its lost future is put into the reward.
        rewards = self._style_rewards + self.gamma * self._style_values * self._time_outs
        advantages = generalized_advantages(
            rewards,
            self._style_values,
            self.style_critic(obs).squeeze(-1),
            st.dones.squeeze(-1),
            self.gamma,
            self.lam,
        )
        self._style_returns.copy_(advantages + self._style_values)
        multiplier = torch.tensor(self.mixing.multiplier, device=self.device)
        st.advantages = combined_advantage(st.returns - st.values, advantages.unsqueeze(-1), multiplier)

    def update(self) -> dict[str, float]:
        scored, streamed = self._wants_style(), self._has_style_stream()  # as in the rollout; the warm-up may end below
        settled = bool(getattr(self._env, "commands_settled", True))
        with self._exploring(growing=not settled):
            losses = super().update()
        if streamed:
            losses["style_value"] = self._update_style_critic()
        self._keep_exploring()
        terminated = self.storage.dones.squeeze(-1).bool() & ~self._time_outs.bool()
        scalars = self.mixing.step(task_value(self._task_rewards, terminated, self.gamma), settled)
        if not settled and not scalars.get("warmup", 1.0):
            self._env.settle_commands()  # type: ignore[attr-defined]
        if scored:
            scalars |= self.style_source.update()
        if hasattr(self._env, "command_range"):
            scalars["command_range"] = float(self._env.command_range)  # type: ignore[attr-defined]
        scalars["style_reward"] = self._style_rewards.mean().item() / (self._style_scale or 1.0)
        scalars["v_task_critic"] = self.storage.returns.mean().item()
        assert self._log is not None
        self._log.update({f"ConsMimic/{name}": value for name, value in scalars.items()})
        self.iteration += 1
        if self.on_iteration is not None:
            self.on_iteration(IterationReport(self.iteration, scalars))
        return losses

    def save(self) -> dict[str, Any]:
        """rsl_rl's keys, so that a plain PPO loads them, and one of ours."""
        environment = getattr(self._env, "state_dict", None)
        return super().save() | {
            "consmimic": {
                "iteration": self.iteration,
                "learning_rate": self.learning_rate,
                "mixing": self.mixing.state_dict(),
                "style_critic": self.style_critic.state_dict(),
                "style_source": self.style_source.state_dict(),
                "style_optimizer": self._style_optimizer.state_dict(),
                "style_generator": self._style_generator.get_state(),
                "random_state": torch.get_rng_state(),
                "environment": environment() if callable(environment) else None,
            }
        }

    def load(self, loaded_dict: dict[str, Any], load_cfg: dict[str, Any] | None, strict: bool) -> bool:
        """As rsl_rl's; a plain PPO checkpoint warm-starts actor and critic."""
        load_iteration = super().load(loaded_dict, load_cfg, strict)
        saved = loaded_dict.get("consmimic")
        resume = load_cfg is None or load_cfg.get("optimizer", False)
        if saved is None or not resume:
            return load_iteration
        self.iteration = saved["iteration"]
        self.learning_rate = saved["learning_rate"]
        self.mixing.load_state_dict(saved["mixing"])
        self.style_critic.load_state_dict(saved["style_critic"], strict=strict)
        self.style_source.load_state_dict(saved["style_source"])
        self._style_optimizer.load_state_dict(saved["style_optimizer"])
        self._style_generator.set_state(saved["style_generator"].cpu())
        torch.set_rng_state(saved["random_state"].cpu())
        if saved["environment"] is not None and hasattr(self._env, "load_state_dict"):
            self._env.load_state_dict(saved["environment"])  # type: ignore[attr-defined]
        return load_iteration

    def train_mode(self) -> None:
        super().train_mode()
        self.style_critic.train()

    def eval_mode(self) -> None:
        super().eval_mode()
        self.style_critic.eval()

    def _wants_style(self) -> bool:
        return self.mixing.hears_style or (self.mixing.needs_style and not self.style_source.learns)

    def _has_style_stream(self) -> bool:
        """Whether there are style rewards to learn the values of."""
        return self.mixing.uses_style_critic and self._wants_style()

    def _iteration_log(self, step: int, extras: dict[str, Any]) -> dict[str, Any] | None:
        """The iteration's first log, which update() adds to: rsl_rl 5.0 logs only the keys of that one."""
        log = None if step == 0 else self._log
        if log is None:
            log = extras.get("episode", extras.get("log"))
        if log is None and step == self.storage.num_transitions_per_env - 1:
            log = extras.setdefault("log", {})
        return log

    def _update_style_critic(self) -> float:
        """The value loss of PPO, on the style stream."""
        obs = self.storage.observations.flatten(0, 1).select(*self._style_groups)
        self.style_critic.update_normalization(obs)
        returns, old_values = self._style_returns.flatten(), self._style_values.flatten()
        for group in self._style_optimizer.param_groups:
            group["lr"] = self.learning_rate
        size = len(returns) // self.num_mini_batches
        order = torch.randperm(size * self.num_mini_batches, generator=self._style_generator).to(self.device)
        total = 0.0
        for _ in range(self.num_learning_epochs):
            for batch in order.split(size):
                values = self.style_critic(obs[batch]).squeeze(-1)
                loss = self.value_loss_coef * self._value_loss(values, old_values[batch], returns[batch])
                self._style_optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.style_critic.parameters(), self.max_grad_norm)
                self._style_optimizer.step()
                total += loss.item()
        return total / (self.num_learning_epochs * self.num_mini_batches)

    def _value_loss(self, values: Tensor, old_values: Tensor, returns: Tensor) -> Tensor:
        losses = (values - returns).square()
        if self.use_clipped_value_loss:
            clipped = old_values + (values - old_values).clamp(-self.clip_param, self.clip_param)
            losses = torch.maximum(losses, (clipped - returns).square())
        return losses.mean()

    @contextmanager
    def _exploring(self, *, growing: bool) -> Iterator[None]:
        """PPO's update with the entropy_coef of growing commands, if there is one."""
        usual, more = self.entropy_coef, self.exploration.growing_entropy_coef
        if growing and more is not None:
            self.entropy_coef = more
        try:
            yield
        finally:
            self.entropy_coef = usual

    def _keep_exploring(self) -> None:
        if self.exploration.std_floor <= 0.0:
            return
        found = _std_parameter(self.actor)
        assert found is not None
        parameter, is_log = found
        floor = math.log(self.exploration.std_floor) if is_log else self.exploration.std_floor
        with torch.no_grad():
            parameter.clamp_(min=floor)


def _std_parameter(actor: MLPModel) -> tuple[nn.Parameter, bool] | None:
    """What rsl_rl keeps the standard deviation of the actions in, and whether as its logarithm."""
    for name, is_log in (("std_param", False), ("log_std_param", True)):
        if isinstance(parameter := getattr(actor.distribution, name, None), nn.Parameter):
            return parameter, is_log
    return None


def _refuse_options(options: dict[str, Any]) -> None:
    """What does not go together with two reward streams."""
    if options.get("normalize_advantage_per_mini_batch"):
        raise UserError(
            "normalize_advantage_per_mini_batch would standardise the mixed advantage again and undo Eq. 8; "
            "set it False"
        )
    if options.get("rnd_cfg"):
        raise UserError("rnd_cfg would add its reward to the task's, which the constraint measures; remove it")
    if options.get("multi_gpu_cfg"):
        raise UserError(
            "training on several GPUs is not supported: style critic and multiplier would differ between them"
        )
