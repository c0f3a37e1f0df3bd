"""The figures of a report, from results to :class:`matplotlib.figure.Figure`; nothing here draws on a screen or a file.

A method has one colour and one marker in all of them. Every seed is shown: means of a few runs hide too much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from consmimic.evaluation.results import Array, PolicyRecord, Results, Row
from consmimic.evaluation.statistics import Interval, student_mean
from consmimic.evaluation.verdicts import by_method, known, share_kept, shares

COLUMN, PAGE = 3.5, 7.2  # inches: one column, both columns of a paper

DEMONSTRATION = "#E5A800"
TASK_ONLY = "#CC3311"
GREENS = ("#00513B", "#0BA378", "#82CDAC")  # ConsMimic, from the strictest α
BLUES = ("#9AB0C6", "#3F5F86")  # fixed weights, from the lightest
INK, FAINT = "#222222", "#9A9A9A"

STYLE: Mapping[str, Any] = {
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "font.size": 7.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 7.5,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "lines.solid_capstyle": "round",
    "figure.constrained_layout.use": True,
}

P = ParamSpec("P")


def _styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    @wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with mpl.rc_context(dict(STYLE)):
            return draw(*args, **kwargs)

    return styled


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    name: str
    colour: str
    marker: str


def looks(rows: Sequence[Row]) -> dict[str, Look]:
    """Label → look. Shades follow the order of α and ω^s among the rows."""
    groups = by_method(rows)
    alphas = [label for label, group in groups.items() if group[0].method == "consmimic"]
    weights = [label for label, group in groups.items() if group[0].method == "fixed"]
    found = {}
    for label, group in groups.items():
        row = group[0]
        if row.method == "consmimic":
            found[label] = Look(rf"$\alpha={row.alpha:g}$", _shade(GREENS, alphas.index(label), len(alphas)), "D")
        elif row.method == "fixed":
            suffix = " (adv.)" if row.mix == "advantages" else ""
            name = rf"$\omega^s={row.style_weight:g}${suffix}"
            found[label] = Look(name, _shade(BLUES, weights.index(label), len(weights)), "s")
        else:
            found[label] = Look("task-only", TASK_ONLY, "o")
    return found


# ---------------------------------------------------------------- how the policies move


@_styled
def trajectory_figure(results: Results, labels: Sequence[str] | None = None) -> Figure:
    """The paper's figure on the effect of α: a column for each α, in perspective, from above and from the front.

    ``labels`` chooses the methods that get a column; by default every ConsMimic α (or, without one, every method).
    Bold: the first goal, the seed with the median imitation. Faint: the other seeds to this goal.
    """
    groups = _records(results)
    styles = looks(results.rows)
    ours = [label for label, group in groups.items() if group[0].row.method == "consmimic"]
    columns = list(labels or ours or groups)
    baseline = next((group for group in groups.values() if group[0].row.method == "task-only"), [])
    box = _Box.around(results)

    stacked = len(columns) > 1
    size = (PAGE * min(1.0, len(columns) / 3 + 0.1), 5.6) if stacked else (PAGE, 2.5)
    figure = Figure(figsize=size)
    ratios = (1.35, box.size[0] / box.size[1] + 0.1, box.size[2] / box.size[1] + 0.1)
    grid = figure.add_gridspec(3, len(columns), height_ratios=ratios) if stacked else figure.add_gridspec(1, 3)

    for column, label in enumerate(columns):
        cells = [grid[row, column] if stacked else grid[0, row] for row in range(3)]
        space: Any = figure.add_subplot(cells[0], projection="3d")
        above, front = figure.add_subplot(cells[1]), figure.add_subplot(cells[2])
        drawn = [(baseline, TASK_ONLY)] if groups[label] is not baseline else []
        drawn.append((groups[label], styles[label].colour))
        _draw_space(space, results, drawn, box)
        _draw_plane(above, results, drawn, box, across=1, up=0)
        _draw_plane(front, results, drawn, box, across=1, up=2)
        space.set_title(styles[label].name, pad=0)
        if stacked and column > 0:
            for ax in (above, front):
                ax.set_ylabel("")
                ax.tick_params(labelleft=False)
        elif stacked:
            above.set_title("from above", loc="left", fontsize=7, color=FAINT)
            front.set_title("from the front", loc="left", fontsize=7, color=FAINT)
        else:
            above.set_title("from above")
            front.set_title("from the front")
    if stacked:
        figure.align_ylabels()
    _path_legend(figure, bool(baseline), [styles[label] for label in columns])
    return figure


@dataclass(frozen=True)
class _Box:
    """The part of space that the paths fill."""

    low: Array  # (3,)
    high: Array  # (3,)

    @staticmethod
    def around(results: Results) -> _Box:
        paths = [results.demonstration, results.goals[:1], *(record.showcase[0] for record in results.records)]
        points = np.concatenate([np.asarray(path, dtype=np.float64) for path in paths])
        low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
        middle, half = (low + high) / 2, np.maximum((high - low) / 2, 0.06) * 1.08
        return _Box(middle - half, middle + half)

    @property
    def size(self) -> Array:
        return self.high - self.low


Drawn = Sequence[tuple[Sequence[PolicyRecord], str]]


def _draw_space(ax: Any, results: Results, drawn: Drawn, box: _Box) -> None:
    floor = box.low[2]
    ax.view_init(elev=22, azim=-32)
    ax.set_proj_type("persp", focal_length=0.6)
    ax.set_box_aspect(box.size, zoom=1.05)
    for path, colour, bold in _paths(results, drawn):
        ax.plot(*path.T, color=colour, linewidth=1.8 if bold else 0.6, alpha=1.0 if bold else 0.35)
        if bold:
            ax.plot(path[:, 0], path[:, 1], floor, color=colour, linewidth=0.7, alpha=0.3)
    ax.plot(*results.demonstration[0], "o", color=INK, markersize=3)
    ax.plot(*results.goals[0], "*", color=INK, markersize=7, markeredgecolor="white", markeredgewidth=0.4)
    for axis, low, high, name in zip((ax.xaxis, ax.yaxis, ax.zaxis), box.low, box.high, "xyz", strict=True):
        axis.set_pane_color((0.97, 0.97, 0.97, 1.0))
        axis.line.set_color(FAINT)
        axis.set_major_locator(MaxNLocator(3))
        axis._axinfo["grid"].update(color="#E2E2E2", linewidth=0.5)
        getattr(ax, f"set_{name}lim")(low, high)
        getattr(ax, f"set_{name}label")(f"{name} (m)", labelpad=-7)
    ax.tick_params(pad=-3, labelsize=5.5)


def _draw_plane(ax: Axes, results: Results, drawn: Drawn, box: _Box, across: int, up: int) -> None:
    for path, colour, bold in _paths(results, drawn):
        ax.plot(path[:, across], path[:, up], color=colour, linewidth=1.6 if bold else 0.6, alpha=1.0 if bold else 0.35)
    start, goal = results.demonstration[0], results.goals[0]
    ax.plot(start[across], start[up], "o", color=INK, markersize=3, zorder=5)
    ax.plot(goal[across], goal[up], "*", color=INK, markersize=7, markeredgecolor="white", markeredgewidth=0.4, zorder=5)
    ax.set(
        xlim=(box.low[across], box.high[across]),
        ylim=(box.low[up], box.high[up]),
        aspect="equal",
        xlabel=f"{'xyz'[across]} (m)",
        ylabel=f"{'xyz'[up]} (m)",
    )
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.yaxis.set_major_locator(MaxNLocator(4))


def _paths(results: Results, drawn: Drawn) -> list[tuple[Array, str, bool]]:
    """Path, colour, bold: the faint ones first, the demonstration below our own."""
    faint = [
        (record.showcase[0], colour, False) for group, colour in drawn for record in group if record is not _median(group)
    ]
    bold = [(_median(group).showcase[0], colour, True) for group, colour in drawn if group]
    return [*faint, (results.demonstration, DEMONSTRATION, True), *bold]


def _median(group: Sequence[PolicyRecord]) -> PolicyRecord:
    """The seed with the median imitation."""
    ranked = sorted(group, key=lambda record: -1.0 if record.row.imitation is None else record.row.imitation)
    return ranked[len(ranked) // 2]


def _path_legend(figure: Figure, with_baseline: bool, columns: Sequence[Look]) -> None:
    handles = [Line2D([], [], color=DEMONSTRATION, linewidth=1.8, label="demonstration")]
    if with_baseline:
        handles.append(Line2D([], [], color=TASK_ONLY, linewidth=1.8, label="task-only"))
    handles += [
        Line2D([], [], color=look.colour, linewidth=1.8, label=look.name) for look in columns if look.colour != TASK_ONLY
    ]
    handles.append(Line2D([], [], color=INK, marker="o", markersize=3, linestyle="", label="start"))
    handles.append(Line2D([], [], color=INK, marker="*", markersize=7, linestyle="", label="goal"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), columnspacing=1.2)


# ---------------------------------------------------------------- scores


@_styled
def score_figure(results: Results) -> Figure:
    """The paper's figure on the baselines: tracking above, imitation below; mean ± std, and every seed."""
    groups, styles = by_method(results.rows), looks(results.rows)
    figure = Figure(figsize=(max(1.4, 0.55 * len(groups) + 0.5), 3.4))
    for ax, name, title in zip(
        figure.subplots(2, 1, sharex=True), ("tracking", "imitation"), ("tracking score", "imitation score"), strict=True
    ):
        for place, (label, rows) in enumerate(groups.items()):
            values = known(rows, name)
            if values:
                _bar(ax, place, values, styles[label].colour)
        ax.set(ylabel=title, ylim=(0, 1.12), yticks=(0, 0.25, 0.5, 0.75, 1))
        ax.set_xticks(range(len(groups)), [_broken(styles[label].name, rows[0]) for label, rows in groups.items()])
        ax.tick_params(axis="x", length=0)
    return figure


def _bar(ax: Axes, place: int, values: Sequence[float], colour: str) -> None:
    mean = float(np.mean(values))
    std = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    ax.bar(place, mean, width=0.68, color=colour, alpha=0.55, linewidth=0)
    if len(values) > 1:
        ax.errorbar(place, mean, yerr=std, color=INK, linewidth=0.8, capsize=2.5, capthick=0.8)
    spread = _spread(len(values), 0.36)
    ax.plot(place + spread, values, "o", color=colour, markersize=2.8, markeredgecolor="white", markeredgewidth=0.4)
    top = max(mean + std, *values) if len(values) > 1 else mean
    ax.annotate(f"{mean:.2f}", (place, top), (0, 3), textcoords="offset points", ha="center", fontsize=6.5)


def _broken(name: str, row: Row) -> str:
    return f"ConsMimic\n{name}" if row.method == "consmimic" else f"fixed\n{name}" if row.method == "fixed" else name


@_styled
def tradeoff_figure(results: Results) -> Figure:
    """What each method keeps of the task (across) against how well it imitates (up): seeds, means, 95 % intervals."""
    groups, styles = by_method(results.rows), looks(results.rows)
    baseline = next((rows for rows in groups.values() if rows[0].method == "task-only"), [])
    figure = Figure(figsize=(COLUMN, 3.0))
    ax = figure.subplots()
    for label, rows in groups.items():
        scored = [row for row in rows if row.imitation is not None]
        if not scored or not (baseline or all(row.value_ratio is not None for row in scored)):
            continue
        look = styles[label]
        if rows[0].method == "consmimic":
            ax.axvline(rows[0].alpha or 0.0, color=look.colour, linewidth=0.9, linestyle=(0, (4, 2)), zorder=0)
        across = shares(scored, baseline) if baseline else np.array(known(scored, "value_ratio"))
        up = known(scored, "imitation")
        ax.plot(across, up, look.marker, color=look.colour, markersize=2.6, alpha=0.55, markeredgewidth=0)
        interval = share_kept(scored, baseline) if baseline and rows is not baseline else student_mean(across)
        _mean_cross(ax, interval, student_mean(up), look)
    ax.set(xlabel="share of the task-only value", ylabel="imitation score")
    ax.margins(0.08)
    figure.legend(loc="outside upper center", ncols=3, columnspacing=1.2)
    return figure


def _mean_cross(ax: Axes, across: Interval, up: Interval, look: Look) -> None:
    reach = {
        "xerr": [[across.mean - across.low], [across.high - across.mean]] if np.isfinite(across.low) else None,
        "yerr": [[up.mean - up.low], [up.high - up.mean]] if np.isfinite(up.low) else None,
    }
    ax.errorbar(
        across.mean,
        up.mean,
        **reach,
        fmt=look.marker,
        color=look.colour,
        markersize=5.5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        linewidth=1.1,
        label=look.name,
    )


# ---------------------------------------------------------------- training


@_styled
def constraint_figure(results: Results) -> Figure:
    """How the constraint was held: v^g against its threshold, σ(λ) and the style reward, a column for each α."""
    groups, styles = _records(results), looks(results.rows)
    columns = {label: group for label, group in groups.items() if group[0].row.method == "consmimic"}
    baseline = next((group for group in groups.values() if group[0].row.method == "task-only"), [])
    figure = Figure(figsize=(max(COLUMN, PAGE * len(columns) / 3), 4.4))
    if not columns:
        return figure
    axes = figure.subplots(3, len(columns), sharex=True, sharey="row", squeeze=False)
    for column, (label, group) in enumerate(columns.items()):
        top, middle, bottom = axes[:, column]
        colour = styles[label].colour
        for ax in axes[:, column]:
            _shade_warmup(ax, group)
        _mean_line(top, _curves(baseline, "v_task_raw", smooth=True), FAINT, "task-only")
        _seed_lines(top, _curves(group, "v_task"), colour, r"$v^g$")
        _seed_lines(top, _curves(group, "threshold"), INK, r"$\alpha\,v^{g*}$", linestyle=(0, (3, 1.5)))
        _seed_lines(middle, _curves(group, "sigma_lambda"), colour)
        _seed_lines(bottom, _curves(group, "style_reward"), colour)
        top.set_title(styles[label].name)
        top.legend(loc="lower right")
        middle.set(ylim=(-0.03, 1.03), yticks=(0, 0.5, 1))
        bottom.set_xlabel("environment steps (millions)")
    for ax, name in zip(axes[:, 0], ("task value $v^g$", r"$\sigma(\lambda)$", "style reward $r^s$"), strict=True):
        ax.set_ylabel(name)
    figure.align_ylabels()
    return figure


@_styled
def learning_figure(results: Results) -> Figure:
    """The task value and the style reward of every method during training: each seed, and the mean."""
    groups, styles = _records(results), looks(results.rows)
    figure = Figure(figsize=(PAGE, 2.6))
    left, right = figure.subplots(1, 2, sharex=True)
    for label, group in groups.items():
        _seed_lines(left, _curves(group, "v_task_raw", smooth=True), styles[label].colour, styles[label].name)
        _seed_lines(right, _curves(group, "style_reward"), styles[label].colour)
    left.set(ylabel="task value $v^g$", xlabel="environment steps (millions)")
    right.set(ylabel="style reward $r^s$", xlabel="environment steps (millions)")
    figure.legend(loc="outside upper center", ncols=len(groups))
    return figure


Curve = tuple[Array, Array]
"""Environment steps in millions, values."""


def _curves(group: Sequence[PolicyRecord], name: str, smooth: bool = False) -> list[Curve]:
    """One per seed that logged it."""
    found = []
    for record in group:
        values, steps = record.history.get(name), record.history.get("env_steps")
        if values is not None and steps is not None and np.isfinite(values).any():
            found.append((steps / 1e6, _smoothed(values) if smooth else values))
    return found


def _smoothed(values: Array, weight: float = 0.1) -> Array:
    """The moving average through which the constraint sees v^g, for methods that have no constraint."""
    smooth = values.copy()
    for i in range(1, len(values)):
        smooth[i] = smooth[i - 1] + weight * (values[i] - smooth[i - 1])
    return smooth


def _seed_lines(ax: Axes, curves: Sequence[Curve], colour: str, label: str = "", **kwargs: Any) -> None:
    if len(curves) > 1:
        for steps, values in curves:
            ax.plot(steps, values, color=colour, linewidth=0.5, alpha=0.4, **kwargs)
    _mean_line(ax, curves, colour, label, **kwargs)


def _mean_line(ax: Axes, curves: Sequence[Curve], colour: str, label: str = "", **kwargs: Any) -> None:
    """The mean where every seed has a value."""
    if not curves:
        return
    length = min(len(values) for _, values in curves)
    mean = np.mean([values[:length] for _, values in curves], axis=0)
    ax.plot(curves[0][0][:length], mean, color=colour, linewidth=1.3, label=label, **kwargs)


def _shade_warmup(ax: Axes, group: Sequence[PolicyRecord]) -> None:
    """Darker where more seeds are still warming up."""
    for record in group:
        steps, warmup = record.history.get("env_steps"), record.history.get("warmup")
        if steps is not None and warmup is not None and (warmup > 0).any():
            ax.axvspan(0, steps[warmup > 0][-1] / 1e6, color=FAINT, alpha=0.22 / len(group), linewidth=0)


# ---------------------------------------------------------------- parts


def _records(results: Results) -> dict[str, list[PolicyRecord]]:
    """As :func:`by_method`, with the histories and paths."""
    return {
        label: [record for record in results.records if record.row.label == label] for label in by_method(results.rows)
    }


def _spread(count: int, width: float) -> Array:
    return np.linspace(-width / 2, width / 2, count) if count > 1 else np.zeros(1)


def _shade(anchors: Sequence[str], index: int, count: int) -> str:
    """The colour at the middle of part ``index`` of ``count`` along the anchors."""
    colours = np.array([to_rgb(anchor) for anchor in anchors])
    place = (index + 0.5) / count * (len(anchors) - 1) if count < len(anchors) else index / (count - 1) * (len(anchors) - 1)
    return to_hex([np.interp(place, range(len(anchors)), channel) for channel in colours.T])
