"""One self-contained HTML page about a set of results: what the seeds show, tables, figures, and where it came from.

Every sentence and number is made from the rows; nothing is claimed that the intervals do not show.
"""

from __future__ import annotations

import base64
import io
import math
import os
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from consmimic.errors import UserError
from consmimic.evaluation import figures
from consmimic.evaluation.results import Results, Row
from consmimic.evaluation.statistics import Interval, welch_difference
from consmimic.evaluation.verdicts import (
    INSIDE,
    MARGIN,
    TAIL,
    Checks,
    Settling,
    Verdict,
    by_method,
    check_all,
    imitates_better,
    known,
    share_kept,
    share_kept_bootstrap,
    word,
)

DPI = 200


def write_report(results: Results, path: Path, title: str, notes: Sequence[str] = ()) -> None:
    """Write the page; ``notes`` are further paragraphs below the summary."""
    _check(results)
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="about">{_about(results)}</p>',
        *(f"<p>{sentence}</p>" for sentence in [" ".join(summary(results))] if sentence),
        *(f"<p>{escape(note)}</p>" for note in notes),
        _verdicts(results),
        _methods(results.rows),
        *_figures(results),
        _terms(results.rows),
        _provenance(results.rows),
    ]
    page = PAGE.format(title=escape(title), style=CSS, body="\n".join(part for part in parts if part))
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".part")
    aside.write_text(page, encoding="utf-8")
    os.replace(aside, path)


def _check(results: Results) -> None:
    if not results.records:
        raise UserError("there are no results to report on")
    settings = sorted({f"{row.task} ({row.preset})" for row in results.rows})
    if len(settings) > 1:
        raise UserError(f"a report is about one task and one preset; these results hold {', '.join(settings)}")
    for label, rows in by_method(results.rows).items():
        seeds = [row.seed for row in rows]
        if twice := sorted({seed for seed in seeds if seeds.count(seed) > 1}):
            raise UserError(f"{label} has more than one run of seed {twice[0]}; the same seed is not a second run")


# ---------------------------------------------------------------- in words


def summary(results: Results) -> list[str]:
    """Sentences on each α and each fixed weight, made from the numbers."""
    groups = by_method(results.rows)
    baseline = _baseline(groups.values())
    sentences = [_alpha_sentence(checks, baseline) for checks in check_all(results)]
    for label, rows in groups.items():
        if rows[0].method == "fixed" and baseline:
            imitation = _mean_of(rows, "imitation")
            scored = f" and scored {imitation} in imitation" if imitation else ""
            sentences.append(f"{label_text(label)} kept {_of(share_kept(rows, baseline), len(rows))}{scored}.")
    if not baseline:
        sentences.append("Without task-only runs, what share of the task was kept is unknown.")
    return sentences


def _alpha_sentence(checks: Checks, baseline: Sequence[Row]) -> str:
    name, imitation = label_text(checks.label), _mean_of(checks.rows, "imitation")
    if checks.kept is None:
        return f"{name} reached a task value of {_mean_of(checks.rows, 'value', 1)}" + (
            f" and scored {imitation} in imitation." if imitation else "."
        )
    sentence = f"{name} kept {_of(checks.kept.interval, len(checks.rows))} of the task-only value"
    verdict = checks.over_task_only
    if verdict is None:
        return sentence + "."
    before = _mean_of(baseline, "imitation")
    change = f"{_signed(verdict.interval.mean)}{_bounds(verdict.interval, ', 95 % interval ', _signed)}"
    if verdict.holds is None:
        known_or_not = "is one of single runs" if math.isnan(verdict.interval.low) else "could be chance"
        return f"{sentence}; its imitation score was {imitation}, against {before} of task-only, a difference that {known_or_not} ({change})."
    verb = "raised" if verdict.interval.mean > 0 else "lowered"
    return f"{sentence} and {verb} the imitation score from {before} to {imitation} ({change})."


def _of(interval: Interval, seeds: int) -> str:
    count = f"{seeds} seed{'s' if seeds != 1 else ''}"
    bounds = _bounds(interval, "95 % interval ")
    return f"{_number(interval.mean)} ({bounds + ', ' if bounds else ''}{count}{'' if bounds else ': no interval'})"


def _about(results: Results) -> str:
    row, groups = results.rows[0], by_method(results.rows)
    counts = sorted({len(rows) for rows in groups.values()})
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return (
        f"{escape(row.task)} · preset {escape(row.preset)} · {len(groups)} method{_s(len(groups))} · "
        f"{seeds} seed{_s(counts[-1])} each · {row.episodes} episodes per policy"
    )


# ---------------------------------------------------------------- verdicts


def _verdicts(results: Results) -> str:
    all_checks = check_all(results)
    if not all_checks:
        return ""
    rows: list[tuple[str, Callable[[Checks], str]]] = [
        ("Kept at least α of the task-only value", lambda c: _verdict(c.kept)),
        (f"Share kept is α, within ±{MARGIN:g}", lambda c: _verdict(c.on_target)),
        (f"Constraint binds: σ(λ) settled inside ({INSIDE[0]:g}, {INSIDE[1]:g})", lambda c: _settling(c.settling)),
        ("Imitates better than task-only", lambda c: _verdict(c.over_task_only, signed=True)),
        ("Imitates better than every fixed weight that keeps as much", _over_fixed),
    ]
    head = "".join(f"<th>α = {checks.alpha:g}</th>" for checks in all_checks)
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell(checks)}</td>" for checks in all_checks)}</tr>'
        for name, cell in rows
    )
    return f"""<h2>What the seeds show</h2>
<div class="scroll"><table class="verdicts"><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>
<p class="caption">“Yes” and “no” are said where the whole 95 % interval lies on one side, “not shown” everywhere else.
Shares: Fieller's interval; differences: Welch's. Intervals are over training seeds, each check on its own, without a
correction for their number. Where the constraint binds the share comes to rest at α, so that an interval around it
reaches below α: the second row is the one to read there. σ(λ) is judged over the last {TAIL:.0%} of the iterations.
A fixed weight keeps “as much” unless its value is shown to be lower.</p>"""


def _verdict(verdict: Verdict | None, signed: bool = False) -> str:
    if verdict is None:
        return '<span class="muted">– nothing to compare with</span>'
    return f"{_badge(verdict.holds)} {_estimate(verdict.interval, _signed if signed else _number)}"


def _settling(settling: Settling) -> str:
    if not settling.tails:
        return '<span class="muted">– not logged</span>'
    ends = [tail.mean for tail in settling.tails]
    where = f"{min(ends):.2f}" + (f" to {max(ends):.2f}" if len(ends) > 1 else "")
    states = ", ".join(f"{count} {state}" for state, count in settling.states().items())
    return f'{_badge(settling.holds)} <span class="num">σ {where}</span><br><span class="muted">{states}</span>'


def _over_fixed(checks: Checks) -> str:
    if not checks.over_fixed:
        return '<span class="muted">– no fixed weights</span>'
    if not checks.rivals:
        return '<span class="muted">– each of them keeps less</span>'
    return "<br>".join(f"{label_html(rival.label)}: {_verdict(rival.imitation, signed=True)}" for rival in checks.rivals)


def _badge(holds: bool | None) -> str:
    kind, sign = {True: ("yes", "✓"), False: ("no", "✗"), None: ("open", "○")}[holds]
    return f'<span class="badge {kind}">{sign} {word(holds)}</span>'


# ---------------------------------------------------------------- tables


def _methods(rows: Sequence[Row]) -> str:
    groups = by_method(rows)
    baseline = _baseline(groups.values())
    columns = ("method", "seeds", "task value", "share kept<br><small>Fieller</small>", "share kept<br><small>bootstrap</small>",
               "tracking", "imitation", "distance per frame", "style reward")
    body = []
    for label, group in groups.items():
        fieller, bootstrap = _kept_cells(group, baseline)
        cells = (
            str(len(group)),
            _spread(known(group, "value"), 1),
            fieller,
            bootstrap,
            *(_spread(known(group, name), digits) for name, digits in
              (("tracking", 3), ("imitation", 3), ("imitation_per_frame", 4), ("style_reward", 3))),
        )
        body.append(f'<tr><th scope="row">{label_html(label)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>')
    row = rows[0]
    return f"""<h2>Methods</h2>
<div class="scroll"><table class="numbers"><thead><tr>{"".join(f"<th>{name}</th>" for name in columns)}</tr></thead>
<tbody>{"".join(body)}</tbody></table></div>
<p class="caption">Mean ± standard deviation over seeds; brackets are 95 % intervals of the share of the mean task-only
value, both groups uncertain. Task value: return of an episode without discount. Imitation: S_imit, DTW over
{row.imitation_window_s:g} s at {row.imitation_rate_hz:g} Hz with η = {row.imitation_scale:g}; the distance per frame is lower for
better imitation. Every policy is evaluated without noise on the same {row.episodes} episodes.</p>"""


def _kept_cells(group: Sequence[Row], baseline: Sequence[Row]) -> tuple[str, str]:
    if not baseline:
        return "–", "–"
    if group[0].method == "task-only":
        return "1", "1"
    generator = np.random.default_rng(0)
    return _estimate(share_kept(group, baseline), _number), _estimate(
        share_kept_bootstrap(group, baseline, generator), _number
    )


def _terms(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row.terms))
    if not names:
        return ""
    body = []
    for label, group in by_method(rows).items():
        cells = "".join(f"<td>{_spread([row.terms[name] for row in group if name in row.terms], 2)}</td>" for name in names)
        body.append(f'<tr><th scope="row">{label_html(label)}</th>{cells}</tr>')
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    return f"""<h2>Task reward, term by term</h2>
<div class="scroll"><table class="numbers"><thead><tr><th>method</th>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>
<p class="caption">Weighted sum over an episode, mean ± standard deviation over seeds. The terms add up to the task value.</p>"""


def _provenance(rows: Sequence[Row]) -> str:
    body = "".join(
        f"<tr><td>{label_html(row.label)}</td><td>{row.seed}</td><td>{row.env_steps / 1e6:.2f}</td><td>{row.wall_s:.0f}</td>"
        f"<td>{'–' if row.warmup_end is None else row.warmup_end}</td>"
        f"<td>{escape(row.commit or '–')}</td><td>{escape(row.machine or '–')}</td><td><code>{escape(row.command or '–')}</code></td></tr>"
        for group in by_method(rows).values()
        for row in group
    )
    columns = ("method", "seed", "steps (10⁶)", "time (s)", "warm-up ended", "commit", "machine", "command")
    return f"""<h2>Where it comes from</h2>
<details><summary>{len(rows)} training run{_s(len(rows))}: commands, seeds, cost, machine and commit</summary>
<p>Task {escape(rows[0].task)}, preset {escape(rows[0].preset)}. Environment steps are over all parallel environments, time
is that of training, and the warm-up's end is an iteration.</p>
<div class="scroll"><table class="runs"><thead><tr>{"".join(f"<th>{name}</th>" for name in columns)}</tr></thead>
<tbody>{body}</tbody></table></div></details>"""


def markdown_table(rows: Sequence[Row]) -> str:
    """The table of methods for a page in Markdown: mean ± std over seeds, Fieller's 95 % interval of the share kept."""
    groups = by_method(rows)
    baseline = _baseline(groups.values())
    lines = ["| method | seeds | task value | share kept | tracking | imitation | style reward |", "|---|--:|--:|--:|--:|--:|--:|"]
    for label, group in groups.items():
        cells = (
            label_text(label),
            str(len(group)),
            _spread(known(group, "value"), 1),
            _kept_text(group, baseline),
            *(_spread(known(group, name), 3) for name in ("tracking", "imitation", "style_reward")),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _kept_text(group: Sequence[Row], baseline: Sequence[Row]) -> str:
    if not baseline:
        return "–"
    if group[0].method == "task-only":
        return "1"
    share = share_kept(group, baseline)
    return f"{_number(share.mean)} {_bounds(share, '[', closing=']')}".strip()


# ---------------------------------------------------------------- figures


def _figures(results: Results) -> list[str]:
    groups = by_method(results.rows)
    methods = {rows[0].method for rows in groups.values()}
    drawn: list[tuple[Figure, str, str]] = []
    if results.demonstration.shape[1] == 3:
        drawn.append((figures.trajectory_figure(results), "Path of the hand", TRAJECTORY_CAPTION))
    if any(known(rows, "imitation") for rows in groups.values()):
        drawn.append((figures.score_figure(results), "Scores", SCORE_CAPTION))
        if "task-only" in methods:
            drawn.append((figures.tradeoff_figure(results), "Task against style", TRADEOFF_CAPTION))
    if "consmimic" in methods:
        drawn.append((figures.constraint_figure(results), "How the constraint was held", CONSTRAINT_CAPTION))
    drawn.append((figures.learning_figure(results), "Training", LEARNING_CAPTION))
    return [f"<h2>{name}</h2>\n{_embedded(figure, name)}\n<p class=\"caption\">{caption}</p>" for figure, name, caption in drawn]


TRAJECTORY_CAPTION = (
    "From the same start to the first goal: the demonstration (yellow), the task-only policy (red) and ConsMimic (green). "
    "Bold: the seed with the median imitation score; faint: the others."
)
SCORE_CAPTION = "Mean and standard deviation over seeds; every dot is a training seed."
TRADEOFF_CAPTION = (
    "Small marks: training seeds; large marks: means with 95 % intervals (share: Fieller, imitation: Student's t). Dashed: "
    "the α that was asked for, in its colour. A policy to the right of its line kept more than it had to."
)
CONSTRAINT_CAPTION = (
    "Each seed and their mean. Top: the task value v<sup>g</sup> that the constraint watches, its threshold αv<sup>g*</sup>, and the "
    "task-only training for comparison. Middle: the task's weight σ(λ). Bottom: the mean style reward of a step. Shaded: the warm-up."
)
LEARNING_CAPTION = "Each seed and their mean; v<sup>g</sup> with the same moving average for all methods."


def _embedded(figure: Figure, name: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    width = round(figure.get_figwidth() * 110)
    return f'<figure><img src="data:image/png;base64,{data}" alt="{escape(name)}" width="{width}"></figure>'


# ---------------------------------------------------------------- numbers and names


def label_text(label: str) -> str:
    return label.replace("ω^s=", "fixed ωˢ = ").replace("α=", "α = ")


def label_html(label: str) -> str:
    return escape(label).replace("ω^s=", "fixed ω<sup>s</sup>&nbsp;=&nbsp;").replace("α=", "α&nbsp;=&nbsp;")


def _number(value: float, digits: int = 2) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{digits}f}".replace("-", "−")


def _signed(value: float) -> str:
    return _number(value) if value < 0 or not math.isfinite(value) else f"+{_number(value)}"


def _bounds(interval: Interval, opening: str, show: Callable[[float], str] = _number, closing: str = "") -> str:
    """The bounds in words; nothing where there are none."""
    if math.isnan(interval.low):
        return ""
    return f"{opening}{show(interval.low)} to {show(interval.high)}{closing}"


def _estimate(interval: Interval, show: Callable[[float], str]) -> str:
    bounds = _bounds(interval, "[", show, "]")
    return f'<span class="num">{show(interval.mean)}</span> <span class="muted num">{bounds or "no interval"}</span>'


def _spread(values: Sequence[float], digits: int) -> str:
    if not values:
        return "–"
    std = f" ± {_number(float(np.std(values, ddof=1)), digits)}" if len(values) > 1 else ""
    return f"{_number(float(np.mean(values)), digits)}{std}"


def _mean_of(rows: Sequence[Row], name: str, digits: int = 2) -> str:
    values = known(rows, name)
    return _number(float(np.mean(values)), digits) if values else ""


def _baseline(groups: Iterable[list[Row]]) -> list[Row]:
    return next((rows for rows in groups if rows[0].method == "task-only"), [])


def _s(count: int) -> str:
    return "" if count == 1 else "s"


# ---------------------------------------------------------------- the page

CSS = """
:root { color-scheme: light dark; --ink: #1d1f23; --muted: #666c75; --line: #e1e4e8; --paper: #ffffff; --soft: #f6f7f9;
  --yes: #00684a; --yes-soft: #d9f2e8; --no: #a32410; --no-soft: #fbe3de; --open: #5b616b; --open-soft: #eceef1; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6ea; --muted: #9aa1ab; --line: #353a42; --paper: #16181c; --soft: #1f2228;
  --yes: #7fdcb8; --yes-soft: #12392c; --no: #ff9d8a; --no-soft: #461b13; --open: #b4bac3; --open-soft: #2d3138; } }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 54rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .7rem; }
p { max-width: 46rem; }
.about, .caption, .muted { color: var(--muted); }
.about { margin-top: 0; }
.caption { font-size: .84rem; line-height: 1.5; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: .45rem .7rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th:first-child, td:first-child { padding-left: 0; }
thead th { font-weight: 600; color: var(--muted); border-bottom: 1.5px solid var(--muted); vertical-align: bottom; }
tbody th { font-weight: 500; }
.numbers td, .numbers thead th:not(:first-child) { text-align: right; white-space: nowrap; }
.numbers tbody th, .num, .badge, .runs td { white-space: nowrap; }
small { font-weight: 400; }
.badge { display: inline-block; padding: .05rem .5rem; border-radius: 1rem; font-size: .8rem; font-weight: 600; }
.yes { color: var(--yes); background: var(--yes-soft); }
.no { color: var(--no); background: var(--no-soft); }
.open { color: var(--open); background: var(--open-soft); }
figure { margin: 0; padding: 1rem; background: #fff; border: 1px solid var(--line); border-radius: .5rem; text-align: center; }
figure img { max-width: 100%; height: auto; }
summary { cursor: pointer; }
code { font: .8rem ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
"""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
