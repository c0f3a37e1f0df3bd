"""``consmimic bench``: what this machine does, measured now."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import contextlib
import io
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

import mujoco
import torch
import tyro
from rich.console import Console
from rich.table import Table
from rsl_rl.runners import OnPolicyRunner
from torch import Tensor

from consmimic import sim
from consmimic.cli.options import OptionalInt
from consmimic.cli.stopwatch import Stopwatch
from consmimic.envs import TaskEnv
from consmimic.errors import UserError
from consmimic.learner import ConsMimicPPO
from consmimic.learner.adversarial import AdversarialStyle
from consmimic.runs.provenance import machine
from consmimic.sim import available_threads
from consmimic.tasks import Method, Preset, runner_config, task_entry


@dataclass(frozen=True)
class Bench:
    """Speed of the environment against bare physics, and of ConsMimic's training against plain rsl_rl PPO; then where
    the time of an iteration goes.

    Both of a pair run in turns, several times; the medians are compared, so that a busy machine hurts both alike.
    """

    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")] = "Franka-Reach"
    """Name of a task; `consmimic list` shows them."""
    preset: str = "laptop"
    """Networks and number of robots are the preset's."""
    num_envs: OptionalInt = None
    """Robots simulated at once. Default: the preset's."""
    threads: OptionalInt = None
    """Threads of the physics. Default: the cores that this process may use."""
    rounds: int = 7
    """Measurements of each."""

    def run(self) -> int:
        entry = task_entry(self.task)
        preset = entry.preset(self.preset)
        if self.rounds < 1:
            raise UserError(f"rounds is {self.rounds}; at least 1 is needed")
        if self.num_envs is not None:
            preset = preset.with_changes({"num_envs": self.num_envs})
        torch.set_num_threads(preset.torch_threads)
        threads = available_threads() if self.threads is None else self.threads
        if threads < 1:
            raise UserError(f"threads is {threads}; at least 1 is needed")
        print(f"{self.task}, preset {self.preset}, {preset.num_envs} robots, {threads} threads; {machine()}")

        table = Table(box=None, pad_edge=False)
        for column in ("measured", "steps/s", "against", "steps/s", "ratio", "aim"):
            table.add_column(column, justify="right" if column in ("steps/s", "ratio") else "left")
        env_speed, bare_speed = _in_turns(self.rounds, *_environment(self.task, preset, threads))
        table.add_row(
            "environment",
            f"{env_speed:,.0f}",
            "bare Batch.step",
            f"{bare_speed:,.0f}",
            f"{env_speed / bare_speed:.2f}",
            ">= 0.85",
        )
        if entry.task.robot.feet:
            own, *others = _in_turns(self.rounds, *_contacts(self.task, preset, threads))
            table.add_row(
                "contacts that hold",
                f"{own:,.0f}",
                "the fastest",
                f"{max(others):,.0f}",
                f"{own / max(others):.2f}",
                ">= 0.60",
            )
        ours, plain = _runners(self.task, preset, entry.default_alpha, threads)
        our_speed, plain_speed = _in_turns(self.rounds, lambda: _training_speed(ours), lambda: _training_speed(plain))
        table.add_row(
            "ConsMimic training",
            f"{our_speed:,.0f}",
            "plain rsl_rl PPO",
            f"{plain_speed:,.0f}",
            f"{our_speed / plain_speed:.2f}",
            ">= 0.60" if preset.style.source == "adversarial" else ">= 0.80",
        )
        console = Console()
        console.print(table)
        console.print()
        console.print(_breakdown_table(_breakdown(ours), _breakdown(plain)))
        return 0


STEPS = 100  # of a measurement of the environment or the physics


def _environment(task: str, preset: Preset, threads: int) -> tuple[Callable[[], float], Callable[[], float]]:
    """Steps/s of the environment, and of its physics alone with the same controls."""
    env = _tried_env(task, preset, threads)
    actions = _actions(env)

    def run_env() -> float:
        return _rate(env.num_envs * STEPS, lambda: [env.step(action) for action in actions])

    return run_env, _bare(env, threads, {})


SOLVERS = tuple(mujoco.mjtSolver(solver) for solver in range(mujoco.mjtSolver.mjSOL_NEWTON + 1))
CONES = (mujoco.mjtCone.mjCONE_PYRAMIDAL, mujoco.mjtCone.mjCONE_ELLIPTIC)


def _contacts(task: str, preset: Preset, threads: int) -> list[Callable[[], float]]:
    """Steps/s of the physics with the robot's own contact settings, then with MuJoCo's defaults for every cone and
    solver, whether feet slip with them or not."""
    env = _tried_env(task, preset, threads)
    default = mujoco.MjOption()
    common = {"impratio": default.impratio, "iterations": default.iterations}
    others = [{"cone": cone, "solver": solver} | common for cone in CONES for solver in SOLVERS]
    return [_bare(env, threads, options) for options in ({}, *others)]


def _tried_env(task: str, preset: Preset, threads: int) -> TaskEnv:
    env = TaskEnv(task_entry(task).task, preset.num_envs, threads=threads)
    env.episode_length_buf = torch.randint(0, env.task.episode_steps, (env.num_envs,))
    return env


def _actions(env: TaskEnv) -> Tensor:
    return 0.3 * torch.randn(STEPS, env.num_envs, env.num_actions, generator=torch.Generator().manual_seed(0))


def _bare(env: TaskEnv, threads: int, options: Mapping[str, float]) -> Callable[[], float]:
    """Steps/s of Batch.step alone, from where the environment's robots are, with other options of the solver."""
    task = env.task
    model = task.robot.model(visuals=False)
    model.opt.timestep = task.timestep
    for name, value in options.items():
        setattr(model.opt, name, value)
    physics = sim.CpuPhysics(model, env.num_envs, threads)
    start = env.physics.read("qpos")
    ctrl = physics.batch.bind("ctrl")
    targets = (torch.tensor(task.robot.default_joint_pos) + task.robot.action_scale * _actions(env)).double().numpy()

    def step() -> None:
        for target in targets:
            ctrl[:] = target
            physics.batch.step(nstep=task.decimation)

    def run() -> float:
        physics.reset()
        physics.write("qpos", start)
        physics.forward()
        return _rate(env.num_envs * STEPS, step)

    return run


ITERATIONS = 4  # of a measurement


def _runners(task: str, preset: Preset, alpha: float, threads: int) -> tuple[OnPolicyRunner, OnPolicyRunner]:
    """ConsMimic past its warm-up, and plain PPO with the same nets."""
    short = preset.with_changes(
        {
            "constraint.warmup_min_iterations": 1,
            "constraint.warmup_max_iterations": 1,
            "constraint.plateau_window": 1,
        }
    )
    ours = runner_config(short, Method(alpha=alpha))
    plain = runner_config(preset, Method(name="task-only"))
    for key in ("fixed_weight_cfg", "exploration_cfg", "style_cfg"):
        plain["algorithm"].pop(key)
    plain["algorithm"]["class_name"] = "PPO"

    def runner(config: dict) -> OnPolicyRunner:
        env = TaskEnv(task_entry(task).task, preset.num_envs, threads=threads)
        with contextlib.redirect_stdout(io.StringIO()):
            made = OnPolicyRunner(env, config, None, "cpu")
            made.learn(2, init_at_random_ep_len=True)
        return made

    return runner(ours), runner(plain)


def _training_speed(runner: OnPolicyRunner) -> float:
    """Steps/s."""
    steps = runner.env.num_envs * runner.cfg["num_steps_per_env"] * ITERATIONS
    with contextlib.redirect_stdout(io.StringIO()):
        return _rate(steps, lambda: runner.learn(ITERATIONS))


PARTS = (
    "physics",
    "environment code",
    "rollout inference",
    "style reward scoring",
    "returns and advantages",
    "PPO update",
    "style critic",
    "discriminator update",
    "everything else",
)


def _breakdown(runner: OnPolicyRunner) -> dict[str, float]:
    """Milliseconds of an iteration by part. The runner's methods stay timed."""
    watch, alg = Stopwatch(), runner.alg
    for method in ("step", "forward", "reset"):
        watch.watch(runner.env.physics, method, "physics")  # type: ignore[attr-defined]
    watch.watch(runner.env, "step", "environment code")
    watch.watch(alg, "act", "rollout inference")
    watch.watch(alg, "compute_returns", "returns and advantages")
    watch.watch(alg, "update", "PPO update")
    if isinstance(alg, ConsMimicPPO):
        watch.watch(alg, "_update_style_critic", "style critic")
        if isinstance(alg.style_source, AdversarialStyle):
            watch.watch(alg.style_source, "reward", "style reward scoring")
            watch.watch(alg.style_source, "update", "discriminator update")
    with contextlib.redirect_stdout(io.StringIO()), watch.running("everything else"):
        runner.learn(ITERATIONS)
    return {part: 1000.0 * seconds / ITERATIONS for part, seconds in watch.seconds.items()}


def _breakdown_table(ours: dict[str, float], plain: dict[str, float]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("an iteration (ms)", "ConsMimic", "share", "plain PPO"):
        table.add_column(column, justify="left" if column == "an iteration (ms)" else "right")
    total = sum(ours.values())
    for part in (part for part in PARTS if part in ours):
        table.add_row(
            part, f"{ours[part]:.1f}", f"{ours[part] / total:.0%}", f"{plain[part]:.1f}" if part in plain else "–"
        )
    table.add_row("in all", f"{total:.1f}", "", f"{sum(plain.values()):.1f}", style="bold")
    return table


def _rate(steps: int, work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return steps / (time.perf_counter() - started)


def _in_turns(rounds: int, *measurements: Callable[[], float]) -> list[float]:
    """The median of each, measured in turns after one round to warm up."""
    found = [[measure() for measure in measurements] for _ in range(rounds + 1)][1:]
    return [statistics.median(values) for values in zip(*found, strict=True)]
