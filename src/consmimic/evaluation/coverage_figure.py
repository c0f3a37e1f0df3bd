"""The figure of a mismatch between task and demonstration: what is asked, what is shown, how far apart they are."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from consmimic.evaluation.coverage import COVERED, GAP_UNITS, Coverage
from consmimic.evaluation.figures import DEMONSTRATION, INK, PAGE, STYLE, VELOCITY_NAMES

Array = NDArray[np.float64]

ASKED = "#BCD3EA"
ASKED_EDGE = "#3F5F86"
GAP_NAMES = {"speed_gap": "speed gap", "turn_gap": "turn gap", "distance": "distance"}


def coverage_figure(found: Coverage) -> Figure:
    """A row for each two numbers that commands vary: asked and shown, the gap to the nearest frame, the conflict.

    Of three numbers, maps show the mean over the third.
    """
    varied = [index for index, axis in enumerate(found.axes) if axis.varies]
    pairs = list(itertools.combinations(varied, 2)) or [(varied[0], (varied[0] + 1) % len(found.axes))]
    gap_name, gap = next(iter(found.gaps.items()))
    gap_norm, conflict_norm = Normalize(0.0, max(float(gap.max()), 1e-9)), Normalize(0.0, 1.0)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(PAGE, 0.55 + 1.95 * len(pairs)))
        axes = figure.subplots(len(pairs), 3, squeeze=False)
        gap_label = f"{GAP_NAMES[gap_name]} ({GAP_UNITS[gap_name]})"
        for row, pair in zip(axes, pairs, strict=True):
            _draw_plane(row[0], found, pair if len(pairs) > 1 else (0, 1))
            for ax, values, norm, colours, label in (
                (row[1], gap, gap_norm, "magma_r", gap_label),
                (row[2], found.conflict, conflict_norm, "cividis_r", "predicted conflict"),
            ):
                _draw_map(ax, found, pair, values, norm, colours)
                figure.colorbar(ScalarMappable(norm, colours), ax=ax, label=label, fraction=0.046, pad=0.03)
        axes[0][0].set_title("asked and shown")
        axes[0][1].set_title("to the nearest frame")
        axes[0][2].set_title(f"conflict, mean {found.mean_conflict:.2f}")
        handles = [
            Patch(facecolor=ASKED, edgecolor=ASKED_EDGE, label=f"{found.task} asks"),
            Line2D([], [], color=DEMONSTRATION, marker="o", markersize=3.5, linestyle="", label="clips show"),
            Line2D([], [], color=INK, linewidth=0.9, linestyle="--", label=f"conflict {COVERED:g}"),
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def _draw_plane(ax: Axes, found: Coverage, pair: tuple[int, int]) -> None:
    (left, right), (low, high) = (found.axes[index].range for index in pair)
    wide, tall = max(right - left, 1e-9), max(high - low, 1e-9)
    line = min(wide, tall) < 1e-6
    ax.add_patch(
        Rectangle(
            (left, low), wide, tall, facecolor=ASKED, edgecolor=ASKED_EDGE, linewidth=4.0 if line else 0.8, zorder=1
        )
    )
    for path in found.passed:
        ax.plot(path[:, pair[0]], path[:, pair[1]], color=DEMONSTRATION, linewidth=0.7, alpha=0.5, zorder=2)
    ax.plot(
        found.shown[:, pair[0]],
        found.shown[:, pair[1]],
        "o",
        color=DEMONSTRATION,
        markersize=3.2,
        markeredgewidth=0,
        zorder=3,
    )
    gone = [path[:, pair] for path in found.passed]
    everything = np.concatenate([*gone, np.array([[left, low], [right, high]])])
    middle = 0.5 * (everything.min(axis=0) + everything.max(axis=0))
    reach = 0.58 * max(float(np.ptp(everything, axis=0).max()), 1e-3)
    ax.set(xlim=(middle[0] - reach, middle[0] + reach), ylim=(middle[1] - reach, middle[1] + reach))
    ax.set_box_aspect(1.0)
    _label(ax, found, pair)


def _draw_map(ax: Axes, found: Coverage, pair: tuple[int, int], values: Array, norm: Normalize, colours: str) -> None:
    across, up = (found.axes[index] for index in pair)
    others = tuple(index for index in range(len(found.axes)) if index not in pair)
    grid, conflict = (array.reshape(found.shape).mean(axis=others).T for array in (values, found.conflict))
    if not up.varies:  # one number alone: a band
        ax.pcolormesh(
            across.values, [-0.5, 0.5], np.repeat(grid, 2, axis=0), cmap=colours, norm=norm, shading="nearest"
        )
        ax.set_yticks([])
    else:
        ax.pcolormesh(across.values, up.values, grid, cmap=colours, norm=norm, shading="nearest")
        if conflict.min() < COVERED < conflict.max():
            ax.contour(across.values, up.values, conflict, [COVERED], colors=INK, linewidths=0.9, linestyles="--")
    (left, right), (low, high) = across.range, up.range
    inside = found.shown[:, pair]
    if up.varies:
        inside = inside[np.all((inside >= (left, low)) & (inside <= (right, high)), axis=1)]
        ax.plot(*inside.T, "o", color=DEMONSTRATION, markersize=2.6, markeredgewidth=0)
    ax.set_box_aspect(1.0)
    _label(ax, found, pair)


def _label(ax: Axes, found: Coverage, pair: tuple[int, int]) -> None:
    names = [VELOCITY_NAMES.get(found.axes[i].name, f"{found.axes[i].name} ({found.axes[i].unit})") for i in pair]
    ax.set(xlabel=names[0], ylabel=names[1])
