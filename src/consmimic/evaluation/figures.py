"""The figures of a report: from results to ``matplotlib.figure.Figure``, without a screen or a file.

A method has one colour and one marker in all of them. Every seed is shown: means of a few runs hide too much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import PowerNorm, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from consmimic.errors import unknown
from consmimic.evaluation.results import Array, PolicyRecord, Results, Row
from consmimic.evaluation.statistics import Interval, student_mean
from consmimic.evaluation.verdicts import by_method, known, share_kept, shares, task_only

COLUMN, PAGE = 3.5, 7.2  # inches: one column, both columns of a paper

DEMONSTRATION = "#E5A800"
TASK_ONLY = "#CC3311"
GREENS = ("#00513B", "#0A9F74", "#72C6A1")  # ConsMimic, from the strictest α
BLUES = ("#8FA8C2", "#3F5F86")  # fixed weights, from the lightest
INK, FAINT = "#222222", "#9A9A9A"
DASHED = (0, (3, 1.5))

STYLE: dict[Any, Any] = {
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
        with mpl.rc_context(STYLE):
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
            found[label] = Look(rf"$\alpha={row.alpha}$", _shade(GREENS, alphas.index(label), len(alphas)), "D")
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
    """The paper's figure on the effect of α: a column for each α, seen from three sides.

    ``labels`` chooses the methods that get a column; by default every α or, without one, every method.
    Bold: the first goal, the seed with the median imitation. Faint: the other seeds to this goal.
    """
    groups = _records(results)
    styles = looks(results.rows)
    ours = [label for label, group in groups.items() if group[0].row.method == "consmimic"]
    columns = list(labels or ours or groups)
    for label in columns:
        if label not in groups:
            raise unknown("method", label, groups)
    baseline = groups.get("task-only", [])
    box = _Box.around(results)
    page = _Page.of(len(columns), box)
    figure = Figure(figsize=page.size)
    figure.set_layout_engine("none")
    for label, (space_at, above_at, front_at) in zip(columns, page.columns, strict=True):
        space: Any = figure.add_axes(page.share(space_at), projection="3d")
        above, front = figure.add_axes(page.share(above_at)), figure.add_axes(page.share(front_at))
        drawn = [(baseline, TASK_ONLY)] if label != "task-only" else []
        drawn.append((groups[label], styles[label].colour))
        _draw_space(space, results, drawn, box)
        _draw_plane(above, results, drawn, box, across=1, up=0)
        _draw_plane(front, results, drawn, box, across=1, up=2)
        space.set_title(styles[label].name, y=1.0, pad=0)
        above.tick_params(labelbottom=False)
        above.set_xlabel("")
        if label == columns[0]:
            above.set_title("from above", loc="left", fontsize=7, color=FAINT, pad=3)
            front.set_title("from the front", loc="left", fontsize=7, color=FAINT, pad=3)
            figure.align_ylabels([above, front])
        else:
            for ax in (above, front):
                ax.set_ylabel("")
                ax.tick_params(labelleft=False)
    _path_legend(figure, bool(baseline), [styles[label] for label in columns])
    return figure


Rectangle = tuple[float, float, float, float]  # left, bottom, width, height


@dataclass(frozen=True)
class _Page:
    """Where the views lie, in inches. Both planes have one scale, so that they stand above each other."""

    size: tuple[float, float]
    columns: Sequence[tuple[Rectangle, Rectangle, Rectangle]]

    @staticmethod
    def of(count: int, box: _Box) -> _Page:
        left, bottom, gap, width, legend = 0.55, 0.42, 0.22, 2.05, 0.3
        front, above = (width * float(box.size[axis] / box.size[1]) for axis in (2, 0))
        above_bottom = bottom + front + 0.28
        planes = above_bottom + above + 0.22
        if count == 1:  # the perspective view beside the planes
            left += 2.6
            space = (0.05, 0.1, 2.55, planes - 0.25)
            columns = [(space, (left, above_bottom, width, above), (left, bottom, width, front))]
            return _Page((left + width + 0.12, planes + legend), columns)
        columns = []
        for column in range(count):
            x = left + column * (width + gap)
            space = (x - 0.1, planes, width + 0.1, 2.05)
            columns.append((space, (x, above_bottom, width, above), (x, bottom, width, front)))
        return _Page((left + count * (width + gap) - gap + 0.12, planes + 2.05 + legend + 0.05), columns)

    def share(self, rectangle: Rectangle) -> Rectangle:
        """As shares of the page, which is what matplotlib takes."""
        x, y, width, height = rectangle
        return x / self.size[0], y / self.size[1], width / self.size[0], height / self.size[1]


@dataclass(frozen=True)
class _Box:
    """The part of space that the paths fill."""

    low: Array  # (3,)
    high: Array  # (3,)

    @staticmethod
    def around(results: Results) -> _Box:
        paths = [
            results.demonstration,
            results.goals[:1],
            *(record.showcase[0] for record in results.records),
        ]
        points = np.concatenate([np.asarray(path, dtype=np.float64) for path in paths])
        low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
        middle, half = (low + high) / 2, np.maximum((high - low) / 2, 0.06) * 1.08
        half[1] = max(half[1], 0.7 * half.max())  # the planes are as wide as y is long: keeps them low
        return _Box(middle - half, middle + half)

    @property
    def size(self) -> Array:
        return self.high - self.low


Drawn = Sequence[tuple[Sequence[PolicyRecord], str]]


def _draw_space(ax: Any, results: Results, drawn: Drawn, box: _Box) -> None:
    floor = box.low[2]
    ax.view_init(elev=22, azim=-32)
    ax.set_proj_type("persp", focal_length=0.6)
    ax.set_box_aspect(box.size, zoom=1.0)
    for path, colour, bold in _paths(results, drawn):
        ax.plot(*path.T, color=colour, linewidth=1.8 if bold else 0.6, alpha=1.0 if bold else 0.35)
        if bold:
            ax.plot(path[:, 0], path[:, 1], floor, color=colour, linewidth=0.7, alpha=0.3)
    ax.plot(*results.demonstration[0], "o", color=INK, markersize=3)
    ax.plot(*results.goals[0], "*", color=INK, markersize=7, markeredgecolor="white", markeredgewidth=0.4)
    for axis, low, high, name in zip((ax.xaxis, ax.yaxis, ax.zaxis), box.low, box.high, "xyz", strict=True):
        axis.set_pane_color((0.97, 0.97, 0.97, 1.0))
        axis.line.set_color(FAINT)
        axis.set_major_locator(MaxNLocator(4))
        axis.set_ticklabels([])  # the planes below have them
        axis._axinfo["grid"].update(color="#E2E2E2", linewidth=0.5)
        axis._axinfo["tick"].update(inward_factor=0.0, outward_factor=0.0)
        getattr(ax, f"set_{name}lim")(low, high)
        getattr(ax, f"set_{name}label")(name, labelpad=-13)


def _draw_plane(ax: Axes, results: Results, drawn: Drawn, box: _Box, across: int, up: int) -> None:
    for path, colour, bold in _paths(results, drawn):
        ax.plot(
            path[:, across],
            path[:, up],
            color=colour,
            linewidth=1.6 if bold else 0.6,
            alpha=1.0 if bold else 0.35,
        )
    start, goal = results.demonstration[0], results.goals[0]
    ax.plot(start[across], start[up], "o", color=INK, markersize=3, zorder=5)
    ax.plot(
        goal[across],
        goal[up],
        "*",
        color=INK,
        markersize=7,
        markeredgecolor="white",
        markeredgewidth=0.4,
        zorder=5,
    )
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
        (record.showcase[0], colour, False)
        for group, colour in drawn
        for record in group
        if record is not _median(group)
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
        Line2D([], [], color=look.colour, linewidth=1.8, label=look.name)
        for look in columns
        if look.colour != TASK_ONLY
    ]
    handles.append(Line2D([], [], color=INK, marker="o", markersize=3, linestyle="", label="start"))
    handles.append(Line2D([], [], color=INK, marker="*", markersize=7, linestyle="", label="goal"))
    figure.legend(handles=handles, loc="upper center", ncols=len(handles), columnspacing=1.2, borderaxespad=0.2)


# ---------------------------------------------------------------- scores


@_styled
def score_figure(results: Results) -> Figure:
    """The paper's figure on the baselines: tracking above, imitation below; mean ± std, and every seed."""
    groups, styles = by_method(results.rows), looks(results.rows)
    figure = Figure(figsize=(max(2.0, 0.5 * len(groups) + 0.5), 3.4))
    axes = figure.subplots(2, 1, sharex=True)
    for ax, name in zip(axes, ("tracking", "imitation"), strict=True):
        for place, (label, rows) in enumerate(groups.items()):
            if values := known(rows, name):
                _bar(ax, place, values, styles[label].colour)
        ax.set(ylabel=f"{name} score", ylim=(0, 1.1), yticks=(0, 0.25, 0.5, 0.75, 1))
        ax.set_xticks(range(len(groups)), [styles[label].name for label in groups])
        ax.tick_params(axis="x", length=0)
    methods = [rows[0].method for rows in groups.values()]
    for method, words in (("fixed", "fixed weight"), ("consmimic", "ConsMimic")):
        if places := [place for place, name in enumerate(methods) if name == method]:
            at = {"xy": (float(np.mean(places)), 0), "xycoords": axes[1].get_xaxis_transform()}
            axes[1].annotate(words, **at, xytext=(0, -15), textcoords="offset points", ha="center", va="top")
    return figure


def _bar(ax: Axes, place: int, values: Sequence[float], colour: str) -> None:
    """Mean as a bar, seeds on its left, mean ± std on its right."""
    mean, several = float(np.mean(values)), len(values) > 1
    std = float(np.std(values, ddof=1)) if several else 0.0
    ax.bar(place, mean, width=0.74, color=colour, alpha=0.5, linewidth=0)
    if several:
        ax.errorbar(place + 0.24, mean, yerr=std, color=INK, linewidth=0.9, capsize=2, capthick=0.9)
    seeds = place + (np.linspace(-0.28, 0.08, len(values)) if several else np.zeros(1))
    ax.plot(seeds, values, "o", color=colour, markersize=2.8, markeredgecolor="white", markeredgewidth=0.4)
    top = max(mean + std, *values, mean)
    ax.annotate(f"{mean:.2f}", (place, top), (0, 3), textcoords="offset points", ha="center", fontsize=6.5)


@_styled
def tradeoff_figure(results: Results) -> Figure:
    """What is kept of the task (across) against how well it imitates (up): seeds, means, 95 % intervals."""
    groups, styles = by_method(results.rows), looks(results.rows)
    baseline = task_only(results.rows)
    figure = Figure(figsize=(COLUMN, 3.0))
    ax = figure.subplots()
    for label, rows in groups.items():
        scored = [row for row in rows if row.imitation is not None]
        if not scored or not (baseline or all(row.value_ratio is not None for row in scored)):
            continue
        look = styles[label]
        if rows[0].method == "consmimic":
            alpha = rows[0].alpha or 0.0
            ax.axvline(alpha, color=look.colour, linewidth=0.9, linestyle=(0, (4, 2)), zorder=0)
            ax.annotate(
                look.name,
                (alpha, 1),
                xycoords=ax.get_xaxis_transform(),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=6,
                color=INK,
            )
        across = shares(scored, baseline) if baseline else np.array(known(scored, "value_ratio"))
        up = known(scored, "imitation")
        ax.plot(across, up, look.marker, color=look.colour, markersize=2.6, alpha=0.55, markeredgewidth=0)
        interval = share_kept(scored, baseline) if baseline and label != "task-only" else student_mean(across)
        _mean_cross(ax, interval, student_mean(up), look)
    ax.set(xlabel="share of the task-only value", ylabel="imitation score")
    ax.margins(0.08)
    if ax.containers:
        figure.legend(loc="outside upper center", ncols=3, columnspacing=1.2)
    return figure


def _mean_cross(ax: Axes, across: Interval, up: Interval, look: Look) -> None:
    ax.errorbar(
        across.mean,
        up.mean,
        xerr=_reach(across),
        yerr=_reach(up),
        fmt=look.marker,
        color=look.colour,
        markersize=5.5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        linewidth=1.1,
        label=look.name,
    )


def _reach(interval: Interval) -> list[list[float]] | None:
    """The bounds as matplotlib takes them; None where there are none."""
    if not (np.isfinite(interval.low) and np.isfinite(interval.high)):
        return None
    return [[interval.mean - interval.low], [interval.high - interval.mean]]


# ---------------------------------------------------------------- how legged robots walk

GAIT_SECONDS = 2.0
FEET_ORDER = ("LF", "RH", "RF", "LH")
"""Diagonal feet next to each other: a trot is two pairs of equal bars."""
VELOCITY_NAMES = {"v_x": r"$v_x$", "v_y": r"$v_y$", "omega_z": r"$\omega_z$"}
DEMONSTRATED: dict[str, Any] = {
    "color": DEMONSTRATION,
    "linewidth": 1.4,
    "marker": "o",  # a clip that shows one command only is a point
    "markersize": 3,
    "path_effects": [withStroke(linewidth=2.6, foreground=INK)],
}
VELOCITY_UNITS = {"v_x": "m/s", "v_y": "m/s", "omega_z": "rad/s"}


@_styled
def gait_figure(results: Results) -> Figure:
    """Which foot is on the ground when: a row for each method, the seed with the median imitation."""
    groups, styles = _walking(results), looks(results.rows)
    figure = Figure(figsize=(COLUMN + 0.6, 0.35 + 0.62 * len(groups)))
    axes = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (label, group) in zip(axes, groups.items(), strict=True):
        walk = _median(group).walking
        step, contact, feet = float(walk["step_seconds"]), walk["contact"], list(walk["feet"])
        shown = [foot for foot in FEET_ORDER if foot in feet] or feet
        for place, foot in enumerate(shown):
            spans = _spans(contact[: round(GAIT_SECONDS / step), feet.index(foot)], step)
            pale = 1.0 if place < len(shown) / 2 else 0.6  # one pair of diagonal feet, and the other
            ax.broken_barh(spans, (place - 0.4, 0.8), color=styles[label].colour, alpha=pale, linewidth=0)
        ax.set(xlim=(0, GAIT_SECONDS), ylim=(len(shown) - 0.4, -0.6), yticks=range(len(shown)), yticklabels=shown)
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.grid(axis="x", color="#E2E2E2", linewidth=0.5)
        ax.set_axisbelow(True)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.set_title(styles[label].name, loc="left", fontsize=7, pad=2)
        if not len(contact):
            ax.text(0.5, 0.5, "every robot fell", transform=ax.transAxes, ha="center", va="center", color=FAINT)
    axes[-1].set_xlabel(
        f"time (s), while {_asked(next(iter(groups.values()))[0].walking['gait_command'])} is asked for"
    )
    return figure


def _asked(command: Array) -> str:
    """A command in words; what is 0 is left out."""
    parts = zip(VELOCITY_NAMES.values(), VELOCITY_UNITS.values(), command, strict=True)
    return ", ".join(f"{name} = {value:g} {unit}" for name, unit, value in parts if value)


def _spans(on_ground: Array, step: float) -> list[tuple[float, float]]:
    """Begin and duration of every stance, s."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], on_ground, [False]]).astype(int)))
    return [(float(begin * step), float((end - begin) * step)) for begin, end in edges.reshape(-1, 2)]


@_styled
def speed_map_figure(results: Results) -> Figure:
    """How far each method stays behind what it is asked for, over all commands; the mean over seeds."""
    groups, styles = _walking(results), looks(results.rows)
    figure = Figure(figsize=(min(PAGE, 1.55 * len(groups) + 0.9), 3.3))
    axes = figure.subplots(2, len(groups), sharex=True, sharey=True, squeeze=False)
    someone_fell = False
    for row, (name, unit) in enumerate((("speed_error", "speed error (m/s)"), ("turn_error", "turn error (rad/s)"))):
        means = {label: _mean_map([record.walking[name] for record in group]) for label, group in groups.items()}
        known = np.concatenate([values[np.isfinite(values)] for values in means.values()])
        top = float(np.percentile(known, 98)) if len(known) else 1.0  # one bad cell must not pale all others
        look: dict[str, Any] = {"norm": PowerNorm(0.5, 0.0, top), "cmap": "BuPu"}  # small errors matter, too
        for ax, (label, values) in zip(axes[row], means.items(), strict=True):
            walk = groups[label][0].walking
            ax.pcolormesh(walk["map_across"], walk["map_up"], values, shading="nearest", **look)
            ax.patch.set(facecolor="#EDEDED", edgecolor="#BDBDBD", hatch="//////", linewidth=0)
            someone_fell |= bool(np.isnan(values).any())
            _outline(ax, walk["demonstrated"])
            ax.xaxis.set_major_locator(MaxNLocator(5, steps=(1, 2, 5, 10)))
            ax.yaxis.set_major_locator(MaxNLocator(2))
            if row == 0:
                ax.set_title(styles[label].name)
        extend = "max" if len(known) and known.max() > top else "neither"
        bar = figure.colorbar(
            ScalarMappable(**look), ax=list(axes[row]), label=unit, pad=0.01, fraction=0.04, extend=extend
        )
        bar.locator = MaxNLocator(5)
        bar.update_ticks()
    across, up = (
        f"{VELOCITY_NAMES[name]} ({VELOCITY_UNITS[name]})"
        for name in map(str, next(iter(groups.values()))[0].walking["map_axes"])
    )
    for ax in axes[-1]:
        ax.set_xlabel(across)
    for ax in axes[:, 0]:
        ax.set_ylabel(up)
    handles: list[Any] = [Line2D([], [], **DEMONSTRATED, label="demonstrated")]
    if someone_fell:
        handles.append(Patch(facecolor="#EDEDED", edgecolor="#BDBDBD", hatch="//////", label="every robot fell"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure


def _walking(results: Results) -> dict[str, list[PolicyRecord]]:
    """As :func:`_records`, of those that walk."""
    groups = {label: [r for r in group if r.walking] for label, group in _records(results).items()}
    return {label: group for label, group in groups.items() if group}


def _mean_map(maps: Sequence[Array]) -> Array:
    """Cell by cell, of the seeds that did not fall there."""
    values = np.stack(maps)
    known = np.isfinite(values).sum(axis=0)
    return np.where(known > 0, np.nansum(values, axis=0) / np.maximum(known, 1), np.nan)


def _outline(ax: Axes, demonstrated: Array) -> None:
    """What the clip shows, (2, 2): low and high across, low and high up."""
    (left, right), (low, high) = demonstrated
    corners = [(left, low), (right, low), (right, high), (left, high), (left, low)]
    ax.plot(*zip(*corners, strict=True), **DEMONSTRATED, clip_on=False)


# ---------------------------------------------------------------- training


@_styled
def constraint_figure(results: Results) -> Figure:
    """How the constraint was held: v^g and its threshold, σ(λ), style reward; a column for each α."""
    groups, styles = _records(results), looks(results.rows)
    columns = {label: group for label, group in groups.items() if group[0].row.method == "consmimic"}
    baseline = groups.get("task-only", [])
    figure = Figure(figsize=(min(PAGE, 2.2 * len(columns) + 1.3), 4.6))
    if not columns:
        return figure
    axes = figure.subplots(3, len(columns), sharex=True, sharey="row", squeeze=False)
    for column, (label, group) in enumerate(columns.items()):
        top, middle, bottom = axes[:, column]
        colour = styles[label].colour
        for ax in axes[:, column]:
            _shade_warmup(ax, group)
        _mean_line(top, _curves(baseline, "v_task_raw", smooth=True), FAINT)
        _seed_lines(top, _curves(group, "v_task"), colour)
        _seed_lines(top, _curves(group, "threshold"), INK, linestyle=DASHED)
        _seed_lines(middle, _curves(group, "sigma_lambda"), colour)
        _seed_lines(bottom, _curves(group, "style_reward"), colour)
        top.set_title(styles[label].name)
        middle.set(ylim=(-0.03, 1.03), yticks=(0, 0.5, 1))
        bottom.set_xlabel("environment steps (millions)")
    axes[0, 0].set_ylim(bottom=_value_floor(columns.values()))
    for ax, name in zip(
        axes[:, 0], ("task value $v^g$", r"task weight $\sigma(\lambda)$", "style reward $r^s$"), strict=True
    ):
        ax.set_ylabel(name)
    figure.align_ylabels()
    own = styles[list(columns)[len(columns) // 2]].colour
    handles: list[Any] = [
        Line2D([], [], color=own, linewidth=1.3, label="ConsMimic"),
        Line2D([], [], color=INK, linewidth=1.3, linestyle=DASHED, label=r"threshold $\alpha\,v^{g*}$"),
        Patch(color=FAINT, alpha=0.22, linewidth=0, label="warm-up"),
    ]
    if baseline:
        handles.insert(1, Line2D([], [], color=FAINT, linewidth=1.3, label="task-only"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles) if len(columns) > 1 else 2)
    return figure


def _value_floor(groups: Iterable[Sequence[PolicyRecord]]) -> float | None:
    """Where the axis of v^g begins: below all that follows the warm-ups."""
    lowest, scale = [], []
    for record in (record for group in groups for record in group):
        values, wanted = record.history.get("v_task"), record.history.get("threshold")
        if values is None or wanted is None or not (joint := np.isfinite(wanted)).any():
            return None
        lowest.append(min(np.nanmin(values[joint]), wanted[joint].min()))
        scale.append(abs(values[joint]).max())
    return float(min(lowest) - 0.12 * max(scale))


@_styled
def learning_figure(results: Results) -> Figure:
    """The task value and the style reward of every method during training: each seed, and the mean."""
    groups, styles = _records(results), looks(results.rows)
    figure = Figure(figsize=(PAGE, 2.6))
    left, right = figure.subplots(1, 2, sharex=True)
    for label, group in groups.items():
        _seed_lines(left, _curves(group, "v_task_raw", smooth=True), styles[label].colour)
        _seed_lines(right, _curves(group, "style_reward"), styles[label].colour)
    left.set(ylabel="task value $v^g$", xlabel="environment steps (millions)")
    right.set(ylabel="style reward $r^s$", xlabel="environment steps (millions)")
    handles = [Line2D([], [], color=look.colour, linewidth=1.3, label=look.name) for look in styles.values()]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
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


def _seed_lines(ax: Axes, curves: Sequence[Curve], colour: str, **kwargs: Any) -> None:
    """Each seed as a thin line, and their mean."""
    if len(curves) > 1:
        for steps, values in curves:
            ax.plot(steps, values, color=colour, linewidth=0.5, alpha=0.4, **kwargs)
    _mean_line(ax, curves, colour, **kwargs)


def _mean_line(ax: Axes, curves: Sequence[Curve], colour: str, **kwargs: Any) -> None:
    """The mean where every seed has a value."""
    if curves:
        length = min(len(values) for _, values in curves)
        mean = np.mean([values[:length] for _, values in curves], axis=0)
        ax.plot(curves[0][0][:length], mean, color=colour, linewidth=1.3, **kwargs)


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


def _shade(anchors: Sequence[str], index: int, count: int) -> str:
    """Colour ``index`` of ``count`` from the first anchor to the last; the middle where there is one."""
    colours = np.array([to_rgb(anchor) for anchor in anchors])
    place = (len(anchors) - 1) * (index / (count - 1) if count > 1 else 0.5)
    red, green, blue = (float(np.interp(place, range(len(anchors)), channel)) for channel in colours.T)
    return to_hex((red, green, blue))
