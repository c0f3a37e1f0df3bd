"""The vectorised environment that rsl_rl steps: one task, N robots."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict
from torch import Tensor

from consmimic import sim
from consmimic.envs.commands import uniform
from consmimic.envs.placement import Placement
from consmimic.envs.task import Growth, Inputs, Task, TrackingStyle
from consmimic.errors import UserError
from consmimic.method.symmetry import SignedPermutation, closure, concatenate, separate
from consmimic.method.tracking import nearest_sign, tracking_reward
from consmimic.motions.clip import Clip


class TaskEnv(VecEnv):
    """N copies of a task.

    ``rewards`` are the task's alone. ``extras`` has ``time_outs``; ``style_reward`` where style is tracking of the
    clip (Eq. 1); and, when episodes ended, ``final_obs``, their last observations before the reset, and ``log``.
    Observation groups: ``policy`` (with sensor noise), ``critic`` (without), ``style`` (Φ(s)), and with tracking
    ``phase`` (the clip's time, which the style reward depends on).
    """

    def __init__(
        self,
        task: Task,
        num_envs: int,
        *,
        seed: int = 0,
        threads: int | None = None,
        clip: Clip | None = None,
        physics: sim.Physics | None = None,
        growing: bool = True,
    ) -> None:
        """``growing`` False: the full range of commands from the start, where a task's commands would grow."""
        if num_envs < 1:
            raise UserError(f"num_envs is {num_envs}; at least 1 robot is needed")
        self.task = task
        self.clip = clip or task.demonstration()
        self.num_envs = num_envs
        self.num_actions = len(task.robot.joint_names)
        self.max_episode_length = task.episode_steps
        self.step_dt = task.step_seconds
        self.device = "cpu"
        self.cfg: dict[Any, Any] | object = {"task": task.name, "num_envs": num_envs, "seed": seed}

        model = task.robot.model(visuals=False)
        model.opt.timestep = task.timestep
        self.physics: sim.Physics = physics or sim.CpuPhysics(model, num_envs, threads)
        self._generator = torch.Generator().manual_seed(seed)
        self._default = torch.tensor(task.robot.default_joint_pos)
        self._placement = Placement(task.robot, model)
        joints = [model.joint(name).id for name in task.robot.joint_names]
        self._joint_limits = torch.from_numpy(model.jnt_range[joints].astype(np.float32))
        self._weights = torch.tensor([term.weight * self.step_dt for term in task.rewards])
        self._noise = _noisy_columns(task)
        self._features = task.features
        self._reference = _reference(task, self.clip)
        if task.randomise is not None:
            task.randomise(self.physics, self._generator)
            self.physics.finish_variation()

        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self._inputs = Inputs(
            command=torch.zeros(num_envs, task.command.layout.width),
            action=torch.zeros(num_envs, self.num_actions),
            previous_action=torch.zeros(num_envs, self.num_actions),
            memory=torch.zeros(num_envs, task.memory.layout.width if task.memory else 0),
        )
        self._growth = _GrowingCommands(task.growth if growing else None, self.step_dt)
        self._command_steps = _steps(task.command.resample_seconds, self.step_dt)
        self._steps_to_push = self._draw_push_times(num_envs)
        self._episode_terms = torch.zeros(num_envs, len(task.rewards))
        self._reset(torch.arange(num_envs))
        self.last_state = self.state()
        """The state record that the last step's rewards were computed from, before any reset."""
        self.last_terms = self._episode_terms.clone()
        """The last step's weighted reward terms, (N, terms)."""
        self._observations = self._grouped(self._observe(self.last_state))

    @property
    def commands_settled(self) -> bool:
        """Whether commands come from the range that they will keep: until then rewards cannot be compared."""
        return self._growth.settled

    @property
    def command_range(self) -> float:
        """The share of the full range of commands that is drawn from now."""
        return self._growth.share

    def settle_commands(self) -> None:
        """From now on commands keep the range that they have."""
        self._growth.settled = True

    def style_mirrors(self) -> list[SignedPermutation]:
        """G of Eqs. 10 and 11, of Φ(s): the task's mirrors and their products."""
        return closure([mirror.features for mirror in self.task.mirrors])

    def policy_mirrors(self) -> list[dict[str, SignedPermutation]]:
        """The same G, of each observation group and of ``action``."""
        return self._policy_mirrors

    @cached_property
    def _policy_mirrors(self) -> list[dict[str, SignedPermutation]]:
        parts = [
            {"policy": m.observation, "critic": m.observation, "style": m.features, "action": m.action}
            for m in self.task.mirrors
        ]
        group = closure([concatenate(list(part.values())) for part in parts])
        widths = [block.width for block in parts[0].values()] if parts else []
        return [dict(zip(parts[0], separate(mirror, widths), strict=True)) for mirror in group]

    def demonstration_pairs(self) -> tuple[Tensor, Tensor]:
        """(Φ(s), Φ(s')) of the clip's transitions at the control rate, each (T − 1, width)."""
        return self._reference[:-1], self._reference[1:]

    def state(self, ids: Tensor | None = None) -> Any:
        """The task's state record, of all robots or some."""
        return self.task.sense(self.physics, self._inputs if ids is None else self._inputs.at(ids), ids)

    def get_observations(self) -> TensorDict:
        return self._observations.clone()

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Any]]:
        actions = actions.to(torch.float32)
        self._inputs = replace(self._inputs, action=actions.clone(), previous_action=self._inputs.action)
        self.physics.write("ctrl", self._default + self.task.robot.action_scale * actions)
        self.physics.step(self.task.decimation)
        self.episode_length_buf = self.episode_length_buf + 1

        state = self.state()
        terms = torch.stack([term.function(state) for term in self.task.rewards], dim=1) * self._weights
        self._episode_terms += terms
        self.last_state, self.last_terms = state, terms
        time_outs = self.episode_length_buf >= self.max_episode_length
        if self.task.terminated is None:
            dones = time_outs
        else:
            failed = self.task.terminated(state)
            time_outs = time_outs & ~failed
            dones = time_outs | failed
        if self.task.memory is not None:
            self._inputs = replace(self._inputs, memory=self.task.memory.note(state))
        if not self._growth.settled:
            grown = self._growth.step(state)
            if grown > 1.0:
                # Now, not only when they are drawn anew: else the range would grow on what smaller commands show.
                self._inputs = replace(self._inputs, command=grown * self._inputs.command)

        observations = self._observe(state)
        extras: dict[str, Any] = {"time_outs": time_outs}
        if isinstance(self.task.style, TrackingStyle):
            extras["style_reward"] = self._style_reward(self.task.style, observations["style"])
        ids = dones.nonzero().squeeze(1)
        if len(ids):
            extras["final_obs"] = self._grouped(observations)
            extras["log"] = self._episode_log(ids, time_outs)
            self._reset(ids)
        changed = _union(ids, self._new_commands(dones), self._push(dones))
        if len(changed):
            fresh = self._observe(self.state(changed), changed)
            observations = {name: _with_rows(group, changed, fresh[name]) for name, group in observations.items()}
        self._observations = self._grouped(observations)
        return self.get_observations(), terms.sum(dim=1), dones, extras

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on."""
        return {
            "physics": self.physics.state_dict(),
            "generator": self._generator.get_state(),
            "episode_length": self.episode_length_buf.clone(),
            "command": self._inputs.command.clone(),
            "action": self._inputs.action.clone(),
            "memory": self._inputs.memory.clone(),
            "growth": self._growth.state_dict(),
            "steps_to_push": self._steps_to_push.clone(),
            "episode_terms": self._episode_terms.clone(),
            "observations": self._observations.to_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, to the bit."""
        if len(state["episode_length"]) != self.num_envs:
            raise UserError(
                f"the saved state is of {len(state['episode_length'])} robots, this environment has {self.num_envs}"
            )
        self.physics.load_state_dict(state["physics"])
        self._generator.set_state(state["generator"])
        self.episode_length_buf = state["episode_length"].clone()
        self._inputs = Inputs(
            command=state["command"].clone(),
            action=state["action"].clone(),
            previous_action=state["action"].clone(),
            memory=state["memory"].clone(),
        )
        self._growth.load_state_dict(state["growth"])
        self._steps_to_push = state["steps_to_push"].clone()
        self._episode_terms = state["episode_terms"].clone()
        self._observations = TensorDict(state["observations"], batch_size=[self.num_envs])

    def _reset(self, ids: Tensor) -> None:
        count = len(ids)
        start = self.task.reset(self._joint_limits, count, self._generator)
        self.physics.reset(ids)
        qpos, qvel = self._placement.coordinates(start)
        self.physics.write("qpos", qpos, ids)
        self.physics.write("qvel", qvel, ids)
        self.physics.write("ctrl", start.joint_pos, ids)
        self.physics.forward(ids)
        # New tensors: the last state's record still holds the old ones.
        inputs, zeros = self._inputs, torch.zeros(count, self.num_actions)
        self._inputs = Inputs(
            command=_with_rows(inputs.command, ids, self._draw_commands(count)),
            action=_with_rows(inputs.action, ids, zeros),
            previous_action=_with_rows(inputs.previous_action, ids, zeros),
            memory=_with_rows(inputs.memory, ids, torch.zeros(count, inputs.memory.shape[1])),
        )
        self.episode_length_buf[ids] = 0
        self._episode_terms[ids] = 0.0

    def _draw_commands(self, count: int) -> Tensor:
        return self.task.command.sample(count, self._generator, self._growth.share)

    def _new_commands(self, dones: Tensor) -> Tensor:
        """Draw commands for the robots whose last one has had its time; returns who they are."""
        if self._command_steps is None:
            return _NOBODY
        due = (self.episode_length_buf % self._command_steps == 0) & ~dones
        ids = due.nonzero().squeeze(1)
        if len(ids):
            self._inputs = replace(
                self._inputs, command=_with_rows(self._inputs.command, ids, self._draw_commands(len(ids)))
            )
        return ids

    def _push(self, dones: Tensor) -> Tensor:
        """Push the robots whose time has come; returns who they are."""
        pushes = self.task.pushes
        if pushes is None:
            return _NOBODY
        self._steps_to_push -= 1
        ids = ((self._steps_to_push <= 0) & ~dones).nonzero().squeeze(1)
        if len(ids):
            velocities = self.physics.read("qvel", ids)
            velocities[:, :2] = uniform(-pushes.speed, pushes.speed, (len(ids), 2), self._generator)
            self.physics.write("qvel", velocities, ids)
            self.physics.forward(ids)
            self._steps_to_push[ids] = self._draw_push_times(len(ids))
        return ids

    def _draw_push_times(self, count: int) -> Tensor:
        pushes = self.task.pushes
        if pushes is None:
            return torch.zeros(0, dtype=torch.long)
        return (uniform(*pushes.interval, (count,), self._generator) / self.step_dt).long()

    def _observe(self, state: Any, ids: Tensor | None = None) -> dict[str, Tensor]:
        truth = torch.cat([entry.read(state) for entry in self.task.observations], dim=1)
        seen = truth.clone()
        for columns, width in self._noise:
            noise = torch.rand((len(truth), columns.stop - columns.start), generator=self._generator)
            seen[:, columns] += noise.sub_(0.5).mul_(2.0 * width)
        groups = {
            "policy": seen,
            "critic": truth,
            "style": torch.cat([part.from_state(state) for part in self.task.demonstrated], dim=1),
        }
        if isinstance(self.task.style, TrackingStyle):
            steps = self.episode_length_buf if ids is None else self.episode_length_buf[ids]
            groups["phase"] = (steps / self.max_episode_length).unsqueeze(1)
        return groups

    def _grouped(self, groups: dict[str, Tensor]) -> TensorDict:
        return TensorDict(groups, batch_size=[self.num_envs])

    def _style_reward(self, style: TrackingStyle, features: Tensor) -> Tensor:
        layout = self._features
        frame = self._reference[self.episode_length_buf.clamp(max=len(self._reference) - 1)]
        achieved, wanted = layout.split(features), layout.split(frame)
        for name in style.quaternions:
            achieved[name] = nearest_sign(achieved[name], wanted[name])
        return tracking_reward(achieved, wanted, style.weights)

    def _episode_log(self, ids: Tensor, time_outs: Tensor) -> dict[str, Tensor]:
        per_second = self._episode_terms[ids].mean(dim=0) / self.task.episode_seconds
        log = {f"Episode_Reward/{t.name}": value for t, value in zip(self.task.rewards, per_second, strict=True)}
        log["Episode_Termination/time_out"] = time_outs[ids].float().mean()
        if self.task.growth is not None:
            log["Curriculum/command_range"] = torch.tensor(self._growth.share)
        return log


_NOBODY = torch.zeros(0, dtype=torch.long)


class _GrowingCommands:
    """The share of the full command range that commands come from now."""

    _smoothing = 0.02  # weight of the newest step: about a second of all robots

    def __init__(self, growth: Growth | None, step_seconds: float) -> None:
        self._growth = growth
        self._progress = 0.0
        """From standing still, 0, to following exactly, 1."""
        self._step = 0.0 if growth is None else step_seconds / growth.seconds
        self.share = 1.0 if growth is None else growth.start
        self.settled = growth is None

    def step(self, state: Any) -> float:
        """By what factor the range has grown."""
        assert self._growth is not None
        before = self.share
        following, standing = (f(state).mean().item() for f in (self._growth.following, self._growth.standing))
        progress = (following - standing) / max(1.0 - standing, 1e-6)
        self._progress += self._smoothing * (progress - self._progress)
        if self._progress >= self._growth.enough:
            self.share = min(1.0, self.share + self._step)
            self.settled = self.share == 1.0
        return self.share / before

    def state_dict(self) -> dict[str, float]:
        return {"share": self.share, "progress": self._progress, "settled": float(self.settled)}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.share, self._progress, self.settled = state["share"], state["progress"], bool(state["settled"])


def _union(*ids: Tensor) -> Tensor:
    """All robots in any of the lists, sorted."""
    somebody = [some for some in ids if len(some)]
    return torch.cat(somebody).unique() if len(somebody) > 1 else somebody[0] if somebody else _NOBODY


def _steps(seconds: float | None, step_seconds: float) -> int | None:
    return None if seconds is None else round(seconds / step_seconds)


def _with_rows(tensor: Tensor, ids: Tensor, rows: Tensor) -> Tensor:
    changed = tensor.clone()
    changed[ids] = rows
    return changed


def _noisy_columns(task: Task) -> list[tuple[slice, float]]:
    """Which columns of the policy's observation are noisy, neighbours of the same width together."""
    noisy: list[tuple[slice, float]] = []
    slices = task.layout.slices
    for entry in task.observations:
        where = slices[entry.name]
        if entry.noise == 0.0:
            continue
        if noisy and noisy[-1][1] == entry.noise and noisy[-1][0].stop == where.start:
            where = slice(noisy.pop()[0].start, where.stop)
        noisy.append((where, entry.noise))
    return noisy


def _reference(task: Task, clip: Clip) -> Tensor:
    """Φ of the clip's frames at the control rate, (T, width)."""
    resampled = clip.resampled(1.0 / task.step_seconds)
    return torch.cat([part.from_clip(resampled) for part in task.demonstrated], dim=1)
