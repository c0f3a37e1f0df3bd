"""Figures of one clip on a robot: joints against their limits, the path of the base, feet."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import matplotlib as mpl
import mujoco
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from consmimic.evaluation.figures import FAINT, INK, PAGE, STYLE, TASK_ONLY
from consmimic.motions import Clip
from consmimic.motions.checks.case import Case
from consmimic.motions.kinematics import runs
from consmimic.robots import Robot

Array = NDArray[np.float64]

BLUE = "#3F5F86"
FEET = ("#3F5F86", "#CC3311", "#0A9F74", "#E5A800", "#7A4FA3", "#6B6B6B")
BEYOND = "#F6D5CD"


def joint_figure(robot: Robot, model: mujoco.MjModel, clip: Clip) -> Figure:
    """A panel for each joint, as high as its range: what is outside is beyond the limit."""
    names = robot.joint_names
    columns = next(count for count in (3, 4, 6) if len(names) <= 5 * count or count == 6)
    rows = -(-len(names) // columns)
    times = np.arange(len(clip)) / clip.fps
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(PAGE, 0.5 + 0.95 * rows))
        axes = figure.subplots(rows, columns, sharex=True, squeeze=False)
        for ax in axes.flat[len(names) :]:
            ax.set_axis_off()
        for ax, name in zip(axes.flat, names, strict=False):
            angles, (low, high) = clip.joint_pos[:, clip.joint(name)], model.joint(name).range
            if not model.joint(name).limited[0]:
                low, high = -np.pi, np.pi
            margin = 0.12 * (high - low)
            ax.axhspan(high, high + margin, color=BEYOND, linewidth=0)
            ax.axhspan(low - margin, low, color=BEYOND, linewidth=0)
            ax.plot(times, np.clip(angles, low - margin, high + margin), color=BLUE, linewidth=0.8)
            beyond = np.where((angles > high) | (angles < low), np.clip(angles, low - margin, high + margin), np.nan)
            ax.plot(times, beyond, color=TASK_ONLY, linewidth=1.6)
            ax.set(ylim=(low - margin, high + margin), xlim=(0.0, max(times[-1], 1e-3)))
            ax.set_yticks([low, high], [f"{low:.2f}", f"{high:.2f}"])
            ax.set_title(name.removesuffix("_joint"), loc="left", fontsize=7 if columns < 6 else 6, pad=2)
        for ax in axes[-1]:
            ax.set_xlabel("time (s)")
        figure.supylabel("angle (rad)", fontsize=7.5)
    return figure


def path_figure(clip: Clip, body: str) -> Figure:
    """Where the body goes: from above, and its height and speed over time."""
    place, velocity = clip.body_pos_w[:, clip.body(body)], clip.body_lin_vel_w[:, clip.body(body)]
    times = np.arange(len(clip)) / clip.fps
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(PAGE, 2.1))
        above, height, speed = figure.subplots(1, 3, width_ratios=(1.5, 1, 1))
        above.plot(place[:, 0], place[:, 1], color=BLUE, linewidth=1.2)
        above.plot(*place[0, :2], "o", color=INK, markersize=3.5)
        above.plot(*place[-1, :2], "s", color=INK, markersize=3.5)
        above.margins(0.12)
        above.set_aspect("equal", adjustable="datalim")
        above.set(xlabel="x (m)", ylabel="y (m)", title=f"{body}, from above")
        height.plot(times, place[:, 2], color=BLUE, linewidth=1.0)
        height.set(ylim=(0.0, 1.15 * max(place[:, 2].max(), 0.1)), xlabel="time (s)", title="height (m)")
        speeds = np.linalg.norm(velocity[:, :2], axis=1)
        speed.plot(times, speeds, color=BLUE, linewidth=1.0)
        speed.set(ylim=(0.0, 1.15 * max(speeds.max(), 0.1)), xlabel="time (s)", title="horizontal speed (m/s)")
        for ax in (above, height, speed):
            ax.xaxis.set_major_locator(MaxNLocator(5))
    return figure


def feet_figure(case: Case) -> Figure:
    """How high each foot is, and when it stands."""
    times = np.arange(len(case.clip)) / case.clip.fps
    heights, feet = case.replay.heights(case.feet), case.robot.feet
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(PAGE, 1.5 + 0.18 * len(feet) + 0.5))
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1.5, 0.18 * len(feet)))
        above.axhspan(-1000.0, 0.0, color=BEYOND, linewidth=0)
        above.axhline(0.0, color=FAINT, linewidth=0.6)
        for index, foot in enumerate(feet):
            points = case.feet.bodies == case.model.body(foot).id
            lowest, colour = 1000.0 * heights[:, points].min(axis=1), FEET[index % len(FEET)]
            above.plot(times, lowest, color=colour, linewidth=0.9, label=foot)
            _stances(below, len(feet) - 1 - index, np.any(case.standing[:, points], axis=1), case.clip.fps, colour)
        top = _highest(case)
        bottom = min(-0.12 * top, 1100.0 * float(heights.min()))
        above.set(ylim=(bottom, 1.08 * top), ylabel="lowest point (mm)")
        below.set(ylim=(-0.6, len(feet) - 0.4), xlim=(0.0, max(times[-1], 1e-3)), xlabel="time (s)")
        below.set_yticks(range(len(feet)), reversed(feet))
        below.tick_params(axis="y", length=0)
        figure.legend(loc="outside upper right", ncols=min(len(feet), 4))
    return figure


def _highest(case: Case) -> float:
    """Of the feet's lowest points, mm."""
    heights = case.replay.heights(case.feet)
    lowest = [heights[:, case.feet.bodies == case.model.body(foot).id].min(axis=1).max() for foot in case.robot.feet]
    return max(1000.0 * float(max(lowest)), 10.0)


def _stances(ax: Axes, place: float, standing: NDArray[np.bool_], fps: float, colour: str) -> None:
    spans = [(begin / fps, (end - begin) / fps) for begin, end in runs(standing)]
    ax.broken_barh(spans, (place - 0.36, 0.72), color=colour, linewidth=0)
