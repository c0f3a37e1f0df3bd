"""The report and its figures: they say what the rows say, stand alone, and work for whatever was trained."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from consmimic.errors import UserError
from consmimic.evaluation.figures import (
    DEMONSTRATION,
    constraint_figure,
    gait_figure,
    learning_figure,
    looks,
    score_figure,
    speed_map_figure,
    tradeoff_figure,
    trajectory_figure,
)
from consmimic.evaluation.report import cautions, illustrations, markdown_table, summary, write_report
from consmimic.evaluation.results import PolicyRecord, Results, Row

TASK_ONLY = ("task-only", None)
ALL = (
    TASK_ONLY,
    ("fixed", 0.2),
    ("fixed", 0.5),
    ("consmimic", 1.0),
    ("consmimic", 0.9),
    ("consmimic", 0.8),
)
VALUES = {None: 100.0, 0.2: 95.0, 0.5: 60.0, 1.0: 99.0, 0.9: 90.0, 0.8: 80.0}
IMITATION = {None: 0.60, 0.2: 0.65, 0.5: 0.90, 1.0: 0.61, 0.9: 0.72, 0.8: 0.80}
FIGURES = (trajectory_figure, score_figure, tradeoff_figure, constraint_figure, learning_figure)

Spec = tuple[str, float | None]


def record(method: str, parameter: float | None, seed: int, **changes: Any) -> PolicyRecord:
    """Seeds scatter by 1 in value and 0.01 in imitation around the method's own."""
    generator, count = np.random.default_rng(seed), 60
    off = (0.0, 1.0, -1.0)[seed % 3]
    cells: dict[str, Any] = {
        "task": "Franka-Reach",
        "method": method,
        "style_weight": parameter if method == "fixed" else None,
        "mix": "rewards" if method == "fixed" else None,
        "alpha": parameter if method == "consmimic" else None,
        "seed": seed,
        "preset": "laptop",
        "value": VALUES[parameter] + off,
        "tracking": 0.9,
        "imitation": IMITATION[parameter] + off / 100,
        "imitation_per_frame": 0.05,
        "style_reward": 0.4,
        "episodes": 256,
        "imitation_window_s": 4.0,
        "imitation_rate_hz": 30.0,
        "imitation_scale": 20.0,
        "terms": {"ee_tracking_fine": 104.5, "joint_vel": -4.25},
        "warmup_end": 20 if method == "consmimic" else None,
        "env_steps": 737280,
        "wall_s": 90.0,
        "command": f"consmimic train Franka-Reach --method {method} --seed {seed}",
        "commit": "0123456789ab",
        "machine": "a & b",
    }
    iterations = np.arange(1.0, count + 1)
    warmup = iterations <= 20
    unknown, value = np.full(count, np.nan), VALUES[parameter] * (1 - np.exp(-iterations / 8))
    history = {
        "iteration": iterations,
        "env_steps": iterations * 12288,
        "v_task": value,
        "v_task_raw": value + generator.normal(0, 1, count),
        "v_star": unknown,
        "threshold": unknown,
        "warmup": unknown,
        "sigma_lambda": np.ones(count),
        "style_reward": np.linspace(0.2, 0.4, count),
    }
    if method == "consmimic":
        history |= {
            "v_star": np.where(warmup, np.nan, 100.0),
            "threshold": np.where(warmup, np.nan, 100.0 * (parameter or 0.0)),
            "warmup": warmup.astype(float),
            "sigma_lambda": np.where(warmup, 1.0, 0.4),
        }
    showcase = np.cumsum(generator.normal(0, 0.01, (2, 30, 3)), axis=1)
    return PolicyRecord(row=Row(**(cells | changes)), history=history, showcase=showcase)


def make_results(specs: Iterable[Spec] = ALL, seeds: int = 3, **changes: Any) -> Results:
    records = [record(*spec, seed, **changes) for seed in range(seeds) for spec in specs]
    time = np.linspace(0, 1, 30)
    demonstration = np.stack([0.4 + 0 * time, 0.1 * np.sin(6 * time), 0.4 - 0.2 * time], axis=1)
    return Results(records=records, demonstration=demonstration, goals=np.array([[0.4, 0.0, 0.2], [0.4, 0.1, 0.2]]))


TROT = ("##..##..##..", "..##..##..##", "..##..##..##", "##..##..##..")  # LF, RF, LH, RH, every 0.1 s
ACROSS, UP = np.array([-2.0, 0.0, 2.0]), np.array([-1.0, 1.0])


def walk(marks: tuple[str, ...] = TROT, **changes: Any) -> dict[str, Any]:
    """One row of marks per foot, '#' on the ground; the error in speed is |v_x| / 10, in turning |ω_z| / 5."""
    return {
        "contact": np.array([[mark == "#" for mark in row] for row in marks]).T,
        "feet": np.array(["LF", "RF", "LH", "RH"]),
        "step_seconds": np.array(0.1),
        "gait_command": np.array([2.0, 0.0, 0.5]),
        "map_axes": np.array(["v_x", "omega_z"]),
        "map_across": ACROSS,
        "map_up": UP,
        "speed_error": np.tile(np.abs(ACROSS) / 10, (2, 1)),
        "turn_error": np.tile(np.abs(UP)[:, None] / 5, (1, 3)),
        "demonstrated": np.array([[0.3, 1.5], [-0.1, 0.2]]),
    } | changes


def walkers(specs: Iterable[Spec] = (TASK_ONLY, ("consmimic", 0.7)), seeds: int = 3, **changes: Any) -> Results:
    """Of a task whose motion is not in space."""
    cells = {"imitation": 0.6, "diagonal_phase": 0.02, "gait_seconds": 8.0, "gait_falls": 0.125, "w_mech": 1143.0}
    results = make_results([], 0)
    records = [
        replace(record(method, None, seed, **cells), walking=walk(**changes))
        if method == "task-only"
        else replace(record(method, 0.9, seed, **cells, alpha=parameter), walking=walk(**changes))
        for seed in range(seeds)
        for method, parameter in specs
    ]
    return replace(results, records=records, demonstration=np.zeros((30, 12)))


class Page(HTMLParser):
    """The text, the images and the tags of a page; complains about tags that are not closed in order."""

    VOID = ("meta", "img", "br")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.images: list[str] = []
        self.cells: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "br":
            self._add(" ")
        if tag in ("td", "th"):
            self.cells.append("")
        values = dict(attrs)
        assert "href" not in values
        if (source := values.get("src")) is not None:
            self.images.append(source)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            assert "url(" not in data
            assert "@import" not in data
        else:
            self._add(data.replace("\xa0", " "))

    def _add(self, text: str) -> None:
        self.text += text
        if {"td", "th"} & set(self.open):
            self.cells[-1] += text

    def after(self, cell: str) -> str:
        """The cell on the right of the first one with this text."""
        return self.cells[self.cells.index(cell) + 1]


def report(results: Results, folder: Path, **kwargs: Any) -> Page:
    path = folder / "new" / "report.html"
    write_report(results, path, "Reach <b>1</b>", **kwargs)
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]
    return Page(path.read_text(encoding="utf-8"))


# ---------------------------------------------------------------- the page


@pytest.fixture(scope="module")
def full_report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Page]:
    folder = tmp_path_factory.mktemp("full")
    page = report(make_results(), folder, notes=["Seeds 0 < 3 & more."])
    return folder / "new" / "report.html", page


def test_the_page_stands_alone(full_report):
    path, page = full_report
    assert path.stat().st_size < 3_000_000
    assert "://" not in path.read_text(encoding="utf-8")
    assert len(page.images) == 5
    for image in page.images:
        kind, _, data = image.partition(",")
        assert kind == "data:image/png;base64"
        assert base64.b64decode(data, validate=True).startswith(b"\x89PNG")


def test_the_page_holds_the_numbers(full_report):
    _, page = full_report
    assert "Reach <b>1</b>" in page.text
    assert "Seeds 0 < 3 & more." in page.text
    assert page.after("ConsMimic α = 1.0") == "ConsMimic α = 0.9"  # the head of the verdicts
    # 99 of 100, each ± 1 over 3 seeds: t √(1/3 + 0.99²/3) / 100 = 0.0226, more than the 0.02 to 0.97
    assert page.after("Keeps α, give or take 0.03") == "○ not shown 0.990 [0.968, 1.013]"
    assert page.after("… than the next higher α") == "–"
    assert page.after("σ(λ) came to rest inside (0.02, 0.98)") == "✓ yes 0.40 3 of 3 settled"
    for number in ("90.00 ± 1.00", "0.720 ± 0.010", "0.0500 ± 0.0000", "104.50 ± 0.00", "−4.25 ± 0.00"):
        assert number in page.text
    assert "commit 0123456789ab, machine a & b" in page.text
    assert "consmimic train Franka-Reach --method fixed --seed 2" in page.text
    assert "18 training runs, 0.5 hours" in page.text


def test_the_same_results_make_the_same_page(full_report, tmp_path):
    path, _ = full_report
    write_report(make_results(), tmp_path / "again.html", "Reach <b>1</b>", notes=["Seeds 0 < 3 & more."])
    assert (tmp_path / "again.html").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("specs", "seeds", "images"),
    [
        ((TASK_ONLY, ("consmimic", 0.9)), 1, 5),  # a first try
        ((("consmimic", 0.9),), 1, 4),
        ((TASK_ONLY,), 2, 3),
        ((("fixed", 0.2),), 1, 3),
    ],
)
def test_fewer_methods_and_a_single_seed_make_a_report_too(specs, seeds, images, tmp_path):
    page = report(make_results(specs, seeds), tmp_path)
    assert len(page.images) == images
    assert "nan" not in page.text
    if seeds == 1:
        assert "a single training seed" in page.text
        assert "✓" not in page.text.replace("✓ yes 0.40 1 of 1 settled", "")


def test_motion_that_is_not_in_space_has_no_paths_and_missing_scores_no_score_figure():
    results = make_results((TASK_ONLY, ("consmimic", 0.9)), imitation=None, imitation_per_frame=None)
    results = replace(results, demonstration=np.zeros((30, 12)))
    assert [illustration.name for illustration in illustrations(results)] == ["constraint", "training"]


def test_a_report_is_about_one_task_and_one_preset(tmp_path):
    mixed = [record(*TASK_ONLY, 0), record(*TASK_ONLY, 1, preset="paper")]
    with pytest.raises(UserError, match=r"Franka-Reach \(laptop\), Franka-Reach \(paper\)"):
        write_report(replace(make_results(), records=mixed), tmp_path / "r.html", "t")
    with pytest.raises(UserError, match="no results"):
        write_report(replace(make_results(), records=[]), tmp_path / "r.html", "t")


# ---------------------------------------------------------------- words


def test_the_summary_claims_what_the_seeds_show():
    text = " ".join(summary(make_results((TASK_ONLY, ("fixed", 0.5), ("consmimic", 1.0), ("consmimic", 0.9)))))
    assert text.startswith("Brackets are 95 % intervals over 3 training seeds.")
    assert "ConsMimic α = 0.9 kept 0.90 [0.88, 0.92] of the task-only value and raised the imitation" in text
    assert "score from 0.60 to 0.72 (+0.120 [+0.097, +0.143])" in text  # t(4) = 2.776, √(2 · 0.01²/3)
    assert "against 0.60 of task-only: the seeds do not tell the two apart (+0.010" in text
    assert "A fixed weight ωˢ = 0.5 kept 0.60 [0.58, 0.62] and scored 0.90 in imitation." in text


def test_a_worse_score_is_called_lowered():
    results = make_results((TASK_ONLY, ("consmimic", 0.9)))
    baseline, ours = results.records[::2], results.records[1::2]  # seed by seed
    worse = [replace(r, row=replace(r.row, imitation=0.3 + r.row.seed / 1000)) for r in ours]
    assert "lowered the imitation score from 0.60 to 0.30" in " ".join(
        summary(replace(results, records=[*baseline, *worse]))
    )


def test_one_seed_is_stated_without_brackets_or_claims():
    results = make_results((TASK_ONLY, ("consmimic", 0.9)), seeds=1)
    assert summary(results) == [
        "ConsMimic α = 0.9 kept 0.90 of the task-only value and scored 0.72 in imitation, against 0.60 of task-only."
    ]
    assert cautions(results) == [
        "All methods: a single training seed, so no interval, and another seed may end elsewhere."
    ]


def test_cautions_name_what_weakens_the_numbers():
    assert cautions(make_results()) == []
    (alone,) = cautions(make_results([("consmimic", 0.9)]))
    assert "no task-only run" in alone
    copies = [record(*TASK_ONLY, 0), record(*TASK_ONLY, 0), record(*TASK_ONLY, 1, env_steps=1_000_000)]
    repeated, unequal = cautions(replace(make_results(), records=copies))
    assert "task-only has several runs of seed 0" in repeated
    assert "0.74 to 1.00 million steps" in unequal


def test_a_collapsed_discriminator_is_cautioned_of():
    results = make_results((TASK_ONLY, ("consmimic", 0.9)), seeds=3)
    flags = [np.zeros(60), np.full(60, np.nan), np.concatenate([np.full(30, np.nan), np.ones(15), np.zeros(15)])]
    ours = [r for r in results.records if r.row.method == "consmimic"]
    judged = [replace(r, history=r.history | {"style_saturated": f}) for r, f in zip(ours, flags, strict=True)]
    others = [r for r in results.records if r.row.method != "consmimic"]
    assert cautions(replace(results, records=[*others, *judged])) == [
        "ConsMimic α = 0.9, seed 2: the discriminator had collapsed in 25% of the iterations; there, style taught next "
        "to nothing."
    ]


def test_the_markdown_table():
    lines = markdown_table(make_results((TASK_ONLY, ("consmimic", 0.9))).rows).splitlines()
    assert lines[0] == "| method | seeds | task value | share kept | tracking | imitation | style reward |"
    assert lines[2].startswith("| task-only | 3 | 100.00 ± 1.00 | 1 | 0.900 ± 0.000 | 0.600 ± 0.010 |")
    assert lines[3].startswith("| ConsMimic α = 0.9 | 3 | 90.00 ± 1.00 | 0.90 [0.88, 0.92] | 0.900 ± 0.000 | 0.720")
    assert {line.count("|") for line in lines} == {8}


# ---------------------------------------------------------------- figures


def texts(figure: Figure) -> set[str]:
    return {text.get_text() for legend in figure.legends for text in legend.get_texts()}


def labels(figure: Figure) -> set[str]:
    return {label for ax in figure.axes for label in (ax.get_xlabel(), ax.get_ylabel()) if label}


def test_a_method_keeps_its_colour_and_none_shares_it():
    colours = {label: look.colour for label, look in looks(make_results().rows).items()}
    assert len(set(colours.values())) == 6
    for label in ("ConsMimic α=1", "ConsMimic α=0.9", "ConsMimic α=0.8"):
        red, green, blue = mpl.colors.to_rgb(colours[label])  # type: ignore[attr-defined]
        assert green > max(red, blue)


def test_the_path_figure_has_three_views_of_every_alpha():
    figure = trajectory_figure(make_results())
    assert [ax.name for ax in figure.axes] == ["3d", "rectilinear", "rectilinear"] * 3
    assert [figure.axes[i].get_title() for i in (0, 3, 6)] == [rf"$\alpha={a}$" for a in ("1.0", "0.9", "0.8")]
    assert {"y (m)", "x (m)", "z (m)"} <= labels(figure)
    assert {"demonstration", "task-only", r"$\alpha=0.9$", "start", "goal"} <= texts(figure)


def test_the_path_figure_shows_the_methods_asked_for():
    assert len(trajectory_figure(make_results(), labels=["ω^s=0.5", "task-only"]).axes) == 6
    with pytest.raises(UserError, match=r"unknown method 'α'. Valid: task-only, ω"):
        trajectory_figure(make_results(), labels=["α"])


def test_the_score_figure_shows_every_seed():
    tracking, imitation = score_figure(make_results(seeds=3)).axes
    assert (tracking.get_ylabel(), imitation.get_ylabel()) == ("tracking score", "imitation score")
    dots = [np.asarray(line.get_ydata()) for line in imitation.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(dots[4], [0.72, 0.73, 0.71])
    assert [bar.get_height() for bar in imitation.patches] == pytest.approx(list(IMITATION.values()))  # type: ignore[union-attr]


def test_the_tradeoff_figure_marks_every_alpha_and_every_seed():
    (ax,) = tradeoff_figure(make_results()).axes
    assert ax.get_xlabel() == "share of the task-only value"
    points = {tuple(np.round(np.asarray(line.get_xdata(), dtype=float), 4)) for line in ax.lines}
    assert {(1.0, 1.0), (0.9, 0.9), (0.8, 0.8)} <= points  # the lines at α
    assert (0.9, 0.91, 0.89) in points


def test_the_constraint_figure_shows_value_weight_and_style_for_every_alpha():
    figure = constraint_figure(make_results())
    assert len(figure.axes) == 9
    assert {"task value $v^g$", r"task weight $\sigma(\lambda)$", "environment steps (millions)"} <= labels(figure)
    assert texts(figure) == {"ConsMimic", "task-only", r"threshold $\alpha\,v^{g*}$", "warm-up"}
    top, middle = figure.axes[1], figure.axes[4]
    thresholds = [np.nanmax(line.get_ydata()) for line in top.lines if line.get_linestyle() == "--"]
    assert thresholds == [90.0] * 4  # three seeds and their mean
    assert middle.lines[-1].get_ydata()[-1] == pytest.approx(0.4)  # type: ignore[index]


def test_the_learning_figure_shows_every_method():
    figure = learning_figure(make_results())
    assert len(texts(figure)) == 6
    assert [len(ax.lines) for ax in figure.axes] == [24, 24]  # three seeds and a mean each


# ---------------------------------------------------------------- figures of walks


def bars(ax: Any) -> list[list[tuple[float, float, float]]]:
    """Row by row: begin, end and middle height of each."""
    return [
        [
            (*(float(x) for x in (points[:, 0].min(), points[:, 0].max())), float(points[:, 1].mean()))
            for points in (path.vertices[:4] for path in collection.get_paths())
        ]
        for collection in ax.collections
    ]


def test_the_gait_figure_has_a_bar_for_every_stance_and_diagonal_feet_next_to_each_other():
    figure = gait_figure(walkers())
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["task-only", r"$\alpha=0.7$"]
    for ax in figure.axes:
        assert [label.get_text() for label in ax.get_yticklabels()] == ["LF", "RH", "RF", "LH"]
        assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first foot on top
        first, second, third, fourth = bars(ax)
        together = [(0.0, 0.2), (0.4, 0.6), (0.8, 1.0)]
        in_turns = [(0.2, 0.4), (0.6, 0.8), (1.0, 1.2)]
        for place, (row, stances) in enumerate(
            ((first, together), (second, together), (third, in_turns), (fourth, in_turns))
        ):
            np.testing.assert_allclose(row, [(*stance, place) for stance in stances], atol=1e-9)
    assert figure.axes[-1].get_xlabel() == r"time (s), while $v_x$ = 2 m/s, $\omega_z$ = 0.5 rad/s is asked for"


def test_the_gait_figure_shows_two_seconds_of_the_seed_with_the_median_imitation():
    results = walkers([("consmimic", 0.7)])
    marks = [tuple(mark * 40 for mark in marks) for marks in ("####", "#.#.", "....")]
    scores = [0.5, 0.6, 0.7]
    records = [
        replace(r, row=replace(r.row, imitation=score), walking=walk(mark))
        for r, score, mark in zip(results.records, scores, marks, strict=True)
    ]
    (ax,) = gait_figure(replace(results, records=records)).axes
    on_ground = [(0.0, 2.0)]
    assert [[bar[:2] for bar in row] for row in bars(ax)] == [on_ground, [], [], on_ground]  # LF, RH, RF, LH


def test_where_every_robot_fell_the_gait_figure_says_so():
    figure = gait_figure(walkers([TASK_ONLY], contact=np.zeros((0, 4), dtype=bool)))
    assert [text.get_text() for text in figure.axes[0].texts] == ["every robot fell"]
    figure.draw_without_rendering()


def test_the_speed_map_has_each_error_at_its_command():
    figure = speed_map_figure(walkers())
    maps = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    assert [ax.get_title() for ax in maps] == ["task-only", r"$\alpha=0.7$", "", ""]
    for ax, expected in zip(maps, [np.tile(np.abs(ACROSS) / 10, (2, 1))] * 2 + [np.full((2, 3), 0.2)] * 2, strict=True):
        mesh: Any = ax.collections[0]
        np.testing.assert_allclose(mesh.get_array().reshape(2, 3), expected)
        corners = mesh.get_coordinates()
        np.testing.assert_allclose(corners[0, :, 0], [-3.0, -1.0, 1.0, 3.0])  # cells around their commands
        np.testing.assert_allclose(corners[:, 0, 1], [-2.0, 0.0, 2.0])
    assert {r"$v_x$ (m/s)", r"$\omega_z$ (rad/s)", "speed error (m/s)", "turn error (rad/s)"} == labels(figure)
    assert texts(figure) == {"demonstrated"}
    (frame,) = [line for line in maps[0].lines if line.get_color() == DEMONSTRATION]
    assert set(zip(frame.get_xdata(), frame.get_ydata(), strict=True)) == {  # type: ignore[arg-type]
        *((0.3, -0.1), (1.5, -0.1), (1.5, 0.2), (0.3, 0.2))
    }


def test_the_speed_map_is_the_mean_of_the_seeds_that_did_not_fall():
    results = walkers([TASK_ONLY])
    errors = [np.full((2, 3), 0.1), np.full((2, 3), 0.3), np.full((2, 3), 0.8)]
    errors[2][0, 0] = np.nan
    for error in errors:
        error[1, 2] = np.nan
    records = [replace(r, walking=walk(speed_error=e)) for r, e in zip(results.records, errors, strict=True)]
    figure = speed_map_figure(replace(results, records=records))
    mesh: Any = figure.axes[0].collections[0]
    np.testing.assert_allclose(
        np.ma.filled(mesh.get_array().reshape(2, 3), np.nan), [[0.2, 0.4, 0.4], [0.4, 0.4, np.nan]]
    )
    assert texts(figure) == {"demonstrated", "every robot fell"}


def test_methods_share_the_scale_of_the_map():
    results = walkers()
    worse = [
        replace(r, walking=walk(speed_error=np.full((2, 3), 1.5))) if r.row.method == "consmimic" else r
        for r in results.records
    ]
    first, second, *_ = speed_map_figure(replace(results, records=worse)).axes
    scales = [(mesh.norm.vmin, mesh.norm.vmax) for mesh in (first.collections[0], second.collections[0])]
    assert scales == [(0.0, 1.5)] * 2


def test_a_map_where_everyone_fell_everywhere_can_be_drawn():
    fallen = np.full((2, 3), np.nan)
    speed_map_figure(walkers([TASK_ONLY], seeds=1, speed_error=fallen, turn_error=fallen)).draw_without_rendering()


def test_a_report_on_walks_shows_gait_and_map_and_what_they_are_taken_over(tmp_path):
    results = walkers()
    names = [illustration.name for illustration in illustrations(results)]
    assert names == ["scores", "tradeoff", "gait", "speed-map", "constraint", "training"]
    page = report(results, tmp_path)
    assert {"diagonal phase", "falls in the gait", "work (J)"} <= set(page.cells)
    assert "air time (s)" not in page.cells  # not measured here
    assert "over 8 s in which one speed is asked for" in page.text
    assert "in which one speed" not in report(make_results(), tmp_path / "reach").text


def test_who_does_not_walk_is_left_out_of_the_figures_of_walks():
    results = walkers()
    mixed = [replace(r, walking={}) if r.row.method == "task-only" else r for r in results.records]
    assert len(gait_figure(replace(results, records=mixed)).axes) == 1


@pytest.mark.parametrize("draw", FIGURES)
@pytest.mark.parametrize("specs", [(TASK_ONLY,), (("consmimic", 0.9),), (("fixed", 0.2), ("consmimic", 0.8))])
def test_figures_do_with_one_seed_and_missing_methods(draw, specs):
    draw(make_results(specs, seeds=1)).draw_without_rendering()


@pytest.mark.parametrize("draw", FIGURES)
def test_figures_do_without_histories_and_scores(draw):
    results = make_results((TASK_ONLY, ("consmimic", 0.9)), imitation=None)
    empty = [replace(r, history={}) for r in results.records]
    draw(replace(results, records=empty)).draw_without_rendering()


def test_seeds_may_differ_in_length():
    results = make_results([("consmimic", 0.9)], seeds=2)
    first, second = results.records
    short = replace(second, history={name: values[:40] for name, values in second.history.items()})
    _, right = learning_figure(replace(results, records=[first, short])).axes
    assert [len(line.get_xdata()) for line in right.lines] == [60, 40, 40]  # type: ignore[arg-type]


def test_drawing_leaves_matplotlib_as_it_was():
    before = dict(mpl.rcParams)
    score_figure(make_results((TASK_ONLY,), 1))
    assert dict(mpl.rcParams) == before


# ---------------------------------------------------------------- on disk


def test_results_are_read_as_they_were_written(tmp_path):
    results = walkers(seeds=2)
    results.save(tmp_path)
    read = Results.load(tmp_path)
    assert read.rows == results.rows
    np.testing.assert_array_equal(read.demonstration, results.demonstration)
    for ours, theirs in zip(results.records, read.records, strict=True):
        assert theirs.walking.keys() == ours.walking.keys()
        for name, values in ours.walking.items():
            assert theirs.walking[name].dtype == values.dtype
            np.testing.assert_array_equal(theirs.walking[name], values)
        assert theirs.history.keys() == ours.history.keys()
        np.testing.assert_allclose(theirs.history["v_task"], ours.history["v_task"], rtol=1e-6)
        np.testing.assert_allclose(theirs.showcase, ours.showcase, rtol=1e-6)
    for draw in (gait_figure, speed_map_figure):
        draw(read).draw_without_rendering()


def test_of_several_policies_each_keeps_its_own_walk(tmp_path):
    results = walkers(seeds=1)
    first, second = results.records
    second = replace(second, walking={})
    replace(results, records=[first, second]).save(tmp_path)
    read = Results.load(tmp_path)
    assert [bool(r.walking) for r in read.records] == [True, False]
    replace(results, records=[second, first]).save(tmp_path)
    assert [bool(r.walking) for r in Results.load(tmp_path).records] == [False, True]


def test_results_without_walks_leave_no_walks_of_older_results_behind(tmp_path):
    walkers(seeds=1).save(tmp_path)
    assert (tmp_path / "walking.npz").exists()
    make_results((TASK_ONLY,), 1).save(tmp_path)
    assert not (tmp_path / "walking.npz").exists()
    (alone,) = Results.load(tmp_path).records
    assert alone.walking == {}


def test_walks_of_more_policies_than_there_are_rows_are_refused(tmp_path):
    walkers(seeds=1).save(tmp_path)
    more = (tmp_path / "walking.npz").read_bytes()
    walkers([TASK_ONLY], seeds=1).save(tmp_path)
    (tmp_path / "walking.npz").write_bytes(more)
    with pytest.raises(UserError, match="cannot be read"):
        Results.load(tmp_path)
