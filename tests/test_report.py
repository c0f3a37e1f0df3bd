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
    constraint_figure,
    learning_figure,
    looks,
    score_figure,
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
    for number in ("90.0 ± 1.0", "0.720 ± 0.010", "0.0500 ± 0.0000", "104.50 ± 0.00", "−4.25 ± 0.00"):
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


def test_the_markdown_table():
    lines = markdown_table(make_results((TASK_ONLY, ("consmimic", 0.9))).rows).splitlines()
    assert lines[0] == "| method | seeds | task value | share kept | tracking | imitation | style reward |"
    assert lines[2].startswith("| task-only | 3 | 100.0 ± 1.0 | 1 | 0.900 ± 0.000 | 0.600 ± 0.010 |")
    assert lines[3].startswith("| ConsMimic α = 0.9 | 3 | 90.0 ± 1.0 | 0.90 [0.88, 0.92] | 0.900 ± 0.000 | 0.720")
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
