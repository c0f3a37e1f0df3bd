"""What a task asks for against what clips show: the mismatch between task and demonstration, command by command.

A command is as far from the clips as the nearest thing that they show, d, in units of the width at which the task's
own reward kernel has fallen to 1/e. The conflict that is predicted there is

    conflict = 1 − exp(−d²),

between 0 (the clips show just this) and 1 (nothing like it): the share of the command-following reward that a policy
would forgo that did nothing but what the clips show. It knows of commands alone, not of whether the robot could
follow them in the style of the clips.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from consmimic.envs import Task
from consmimic.envs.commands import PoseCommand, VelocityCommand
from consmimic.envs.task import VELOCITIES
from consmimic.errors import UserError
from consmimic.method.symmetry import closure
from consmimic.motions import Clip
from consmimic.motions.gait import cycle_frames, over_a_cycle

Array = NDArray[np.float64]

VELOCITY_WIDTH = 0.5  # m/s and rad/s: σ of the tracking kernels of Tables 6 and 8 (σ² = 0.25, Isaac Lab)
POSITION_WIDTH = 0.05  # m: a hand 5 cm off has not reached its target
RESTING_SPEED = 0.05  # m/s: what a hand passes faster than this it does not reach
CYCLE_SECONDS = 0.6  # over which a motion is averaged that has no cycle of its own
COVERED = 0.5  # of conflict: less is covered
GAP_UNITS = {"speed_gap": "m/s", "turn_gap": "rad/s", "distance": "m"}
BINS = {1: 41, 2: 21, 3: 11}  # along each axis, by the number of axes: odd, so that 0 is the middle of one


@dataclass(frozen=True, kw_only=True, eq=False)
class Axis:
    """One number of a command."""

    name: str
    unit: str
    values: Array
    """Middles of the bins; a single one where the task never varies it."""

    @property
    def varies(self) -> bool:
        return len(self.values) > 1

    @property
    def range(self) -> tuple[float, float]:
        """What the task asks for, from edge to edge of the bins."""
        half = 0.5 * float(self.values[1] - self.values[0]) if self.varies else 0.0
        return float(self.values[0]) - half, float(self.values[-1]) + half


@dataclass(frozen=True, kw_only=True, eq=False)
class Coverage:
    """N bins of commands, M things shown, C axes."""

    task: str
    axes: tuple[Axis, ...]
    commands: Array  # (N, C), in the order of a C-ordered grid over the axes
    widths: Array  # (C,), of the kernel along each axis
    standing_share: float  # of commands that ask to stand still, beside the bins
    shown: Array  # (M, C)
    shown_at: Sequence[tuple[str, float]]
    """Clip and second of each thing shown, (M,)."""
    passed: Sequence[Array]
    """Where each clip goes, (K, C), for figures."""
    nearest: NDArray[np.intp]  # (N,), of what is shown
    gaps: Mapping[str, Array]
    """Name (see ``GAP_UNITS``) → how far the nearest is, (N,)."""
    conflict: Array  # (N,)
    standing_conflict: float
    noun: str
    """What frames are called in sentences."""

    @property
    def mean_conflict(self) -> float:
        """Over the commands that the task draws."""
        return float((1.0 - self.standing_share) * self.conflict.mean() + self.standing_share * self.standing_conflict)

    @property
    def covered(self) -> float:
        """Share of the bins with less conflict than ``COVERED``."""
        return float((self.conflict < COVERED).mean())

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis.values) for axis in self.axes)

    def sentences(self) -> list[str]:
        """The mismatch in words."""
        varied = [axis for axis in self.axes if axis.varies]
        asked = ", ".join(_span(axis, *axis.range) for axis in varied)
        fixed = ", ".join(f"{axis.name} = {axis.values[0]:g}" for axis in self.axes if not axis.varies)
        shows = ", ".join(map(_span, self.axes, self.shown.min(axis=0), self.shown.max(axis=0)))
        lacking = [words for index, axis in enumerate(self.axes) if (words := self._lacking(index, axis))]
        worst = int(next(iter(self.gaps.values())).argmax())
        command = zip(self.axes, self.commands[worst], strict=True)
        there = ", ".join(f"{axis.name} = {value:.2f}" for axis, value in command if axis.varies)
        off = " and ".join(f"{values[worst]:.2f} {GAP_UNITS[name]}" for name, values in self.gaps.items())
        return [
            f"{self.task} asks for {asked}{f' ({fixed})' if fixed else ''}.",
            f"The clips show {shows}{self.noun}.",
            *([f"Nothing like this is shown: {', '.join(lacking)}."] if lacking else []),
            f"They cover {100 * self.covered:.0f} % of what is asked; the predicted conflict is "
            f"{self.mean_conflict:.2f} on average (0: all of it is demonstrated, 1: nothing like it is).",
            f"Furthest from them is {there}: {off} from the nearest.",
        ]

    def _lacking(self, index: int, axis: Axis) -> str:
        """Which of the values of one axis are more than its width from every value shown, in words."""
        low, high = axis.range
        least, most = self.shown[:, index].min() - self.widths[index], self.shown[:, index].max() + self.widths[index]
        beyond = (low, min(least, high)), (max(most, low), high)
        return " and ".join(_span(axis, *part) for part in beyond if part[1] - part[0] > 0.01 * (high - low))

    def rows(self) -> list[dict[str, Any]]:
        """A flat row for each bin."""
        share = (1.0 - self.standing_share) / len(self.commands)
        rows = []
        for index, command in enumerate(self.commands):
            clip, seconds = self.shown_at[int(self.nearest[index])]
            rows.append(
                {axis.name: float(value) for axis, value in zip(self.axes, command, strict=True)}
                | {"share": share, "nearest_clip": clip, "nearest_s": seconds}
                | {name: float(values[index]) for name, values in self.gaps.items()}
                | {"conflict": float(self.conflict[index])}
            )
        return rows

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        about = {"task": self.task, "mean_conflict": self.mean_conflict, "covered": self.covered}
        return about | {"sentences": self.sentences(), "bins": self.rows()}


def _span(axis: Axis, low: float, high: float) -> str:
    least, most = (f"{round(value, 2) + 0.0:g}" for value in (low, high))  # no −0
    return f"{axis.name} {least if least == most else f'{least} to {most}'} {axis.unit}"


def coverage(task: Task, clips: Sequence[Clip], *, mirrors: bool = False, bins: int | None = None) -> Coverage:
    """Of the task's commands by the clips; with ``mirrors`` by their mirror images too, as symmetric style has them."""
    if not clips:
        raise UserError("name at least one clip")
    if bins is not None and bins < 2:
        raise UserError(f"bins is {bins}; at least 2 are needed along each axis")
    if isinstance(task.command, VelocityCommand):
        return _velocities(task, task.command, clips, mirrors, bins)
    if isinstance(task.command, PoseCommand):
        if mirrors:
            raise UserError(f"{task.name} has no mirrors of its commands; leave --mirrors out")
        return _positions(task, task.command, clips, bins)
    raise UserError(
        f"{task.name} has commands of kind {type(task.command).__name__}; "
        "coverage knows VelocityCommand and PoseCommand"
    )


def _velocities(
    task: Task, command: VelocityCommand, clips: Sequence[Clip], mirrors: bool, bins: int | None
) -> Coverage:
    """Velocities are shown as means over a gait cycle: what the base does within a stride is no command."""
    if task.walking is None:
        raise UserError(f"{task.name} does not say how to read velocities from a clip (walking)")
    ranges = (command.lin_vel_x, command.lin_vel_y, command.ang_vel_z)
    axes = _axes(list(zip(VELOCITIES, ("m/s", "m/s", "rad/s"), ranges, strict=True)), bins)
    images = _mirrored_commands(task) if mirrors else [lambda values: values]
    shown, at, passed = [], [], []
    for clip in clips:
        velocity = task.walking.clip_velocity(clip).double().numpy()
        cycle = cycle_frames(clip.joint_pos, clip.fps) or round(CYCLE_SECONDS * clip.fps)
        means = over_a_cycle(velocity, cycle)
        middle = 0.5 * (len(velocity) - len(means)) / clip.fps
        for image in images:
            shown.append(image(means))
            passed.append(shown[-1])
            at += [(clip.source, middle + index / clip.fps) for index in range(len(means))]
    widths = np.full(3, VELOCITY_WIDTH)
    found = _Nearest.of(np.concatenate(shown), _grid(axes), widths)
    standing = _Nearest.of(np.concatenate(shown), np.zeros((1, 3)), widths)
    off = found.off
    return Coverage(
        task=task.name,
        axes=axes,
        commands=_grid(axes),
        widths=widths,
        standing_share=command.standing_share,
        shown=np.concatenate(shown),
        shown_at=at,
        passed=passed,
        nearest=found.index,
        gaps={"speed_gap": np.linalg.norm(off[:, :2], axis=1), "turn_gap": np.abs(off[:, 2])},
        conflict=found.conflict,
        standing_conflict=float(standing.conflict[0]),
        noun=", averaged over a gait cycle",
    )


def _positions(task: Task, command: PoseCommand, clips: Sequence[Clip], bins: int | None) -> Coverage:
    """Targets are shown where the hand comes to rest; what it passes on its way it does not reach."""
    axes = _axes([("x", "m", command.x), ("y", "m", command.y), ("z", "m", command.z)], bins)
    shown, at, passed = [], [], []
    for clip in clips:
        path = task.clip_trajectory(clip).double().numpy()
        if path.shape[1] != 3:
            raise UserError(f"{task.name} compares {path.shape[1]} numbers with a clip, not a position")
        speed = np.linalg.norm(np.gradient(path, 1.0 / clip.fps, axis=0), axis=1) if len(path) > 1 else np.zeros(1)
        moving = speed >= RESTING_SPEED
        resting = np.flatnonzero(~moving & (np.cumsum(moving) > 0))  # where it starts from is no target
        resting = resting if len(resting) else np.array([len(path) - 1])
        shown.append(path[resting])
        passed.append(path)
        at += [(clip.source, index / clip.fps) for index in resting.tolist()]
    widths = np.full(3, POSITION_WIDTH)
    found = _Nearest.of(np.concatenate(shown), _grid(axes), widths)
    return Coverage(
        task=task.name,
        axes=axes,
        commands=_grid(axes),
        widths=widths,
        standing_share=0.0,
        shown=np.concatenate(shown),
        shown_at=at,
        passed=passed,
        nearest=found.index,
        gaps={"distance": np.linalg.norm(found.off, axis=1)},
        conflict=found.conflict,
        standing_conflict=0.0,
        noun=" where the hand rests",
    )


def _axes(given: Sequence[tuple[str, str, tuple[float, float]]], bins: int | None) -> tuple[Axis, ...]:
    """From names, units and ranges; bins lie edge to edge within the range."""
    count = bins or BINS[max(1, sum(low < high for _, _, (low, high) in given))]

    def middles(low: float, high: float) -> Array:
        if low == high:
            return np.array([low])
        return low + (high - low) * (np.arange(count) + 0.5) / count

    return tuple(Axis(name=name, unit=unit, values=middles(low, high)) for name, unit, (low, high) in given)


def _grid(axes: Sequence[Axis]) -> Array:
    return np.stack(np.meshgrid(*(axis.values for axis in axes), indexing="ij"), axis=-1).reshape(-1, len(axes))


@dataclass(frozen=True, eq=False)
class _Nearest:
    """Of what is shown, to each command."""

    index: NDArray[np.intp]  # (N,)
    off: Array  # (N, C), from the command to it
    conflict: Array  # (N,)

    @staticmethod
    def of(shown: Array, commands: Array, widths: Array) -> _Nearest:
        _, first = np.unique(np.round(shown / (0.02 * widths)), axis=0, return_index=True)  # hours of clips repeat
        few = shown[np.sort(first)]
        squared = np.full(len(commands), np.inf)
        index = np.zeros(len(commands), dtype=np.intp)
        for start in range(0, len(few), 1000):
            part = few[start : start + 1000]
            distance = (((commands[:, None] - part) / widths) ** 2).sum(axis=-1)
            nearest = distance.argmin(axis=1)
            closer = distance[np.arange(len(commands)), nearest] < squared
            squared = np.where(closer, distance[np.arange(len(commands)), nearest], squared)
            index = np.where(closer, start + nearest, index)
        return _Nearest(np.sort(first)[index], few[index] - commands, 1.0 - np.exp(-squared))


def _mirrored_commands(task: Task) -> list[Callable[[Array], Array]]:
    """As they are, and seen in every mirror of the task."""
    part = task.layout.slices.get("velocity_command")
    if not task.mirrors or part is None:
        raise UserError(f"{task.name} has no mirrors of its commands; leave --mirrors out")

    def image(mirror: Any) -> Callable[[Array], Array]:
        def seen(values: Array) -> Array:
            whole = torch.zeros(len(values), task.layout.width, dtype=torch.float64)
            whole[:, part] = torch.from_numpy(values)
            return mirror(whole)[:, part].numpy()

        return seen

    return [lambda values: values, *(image(mirror) for mirror in closure([m.observation for m in task.mirrors]))]
