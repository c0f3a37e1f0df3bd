"""One self-contained HTML page about a set of results: what the seeds show, tables, figures and provenance.

Every sentence and number is made from the rows; nothing is claimed that the intervals do not show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

import numpy as np

from consmimic.errors import UserError
from consmimic.evaluation import figures
from consmimic.evaluation.page import Illustration, badge, illustrated, table, table_row, write_page
from consmimic.evaluation.results import Results, Row
from consmimic.evaluation.statistics import Interval
from consmimic.evaluation.verdicts import (
    INSIDE,
    MARGIN,
    TAIL,
    Checks,
    Settling,
    Verdict,
    by_method,
    check_all,
    known,
    share_kept,
    share_kept_bootstrap,
    task_only,
    word,
)


def write_report(results: Results, path: Path, title: str, notes: Sequence[str] = ()) -> None:
    """Write the page; ``notes`` are further paragraphs below the summary."""
    _check(results)
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="about">{_about(results)}</p>',
        f"<p>{_html(' '.join(summary(results)))}</p>",
        *(f'<p class="caution">{_html(caution)}</p>' for caution in cautions(results)),
        *(f"<p>{escape(note)}</p>" for note in notes),
        _verdicts(results),
        _methods(results.rows),
        *map(illustrated, illustrations(results)),
        _terms(results.rows),
        _provenance([row for group in by_method(results.rows).values() for row in group]),
    ]
    write_page(path, title, parts)


def _check(results: Results) -> None:
    if not results.records:
        raise UserError("there are no results to report on")
    settings = sorted({f"{row.task} ({row.preset})" for row in results.rows})
    if len(settings) > 1:
        raise UserError(f"a report is about one task and one preset; these results hold {', '.join(settings)}")


# ---------------------------------------------------------------- in words


def summary(results: Results) -> list[str]:
    """Sentences on each α and each fixed weight, in plain text, made from the numbers."""
    groups, baseline = by_method(results.rows), task_only(results.rows)
    counts = [len(rows) for rows in groups.values()]
    sentences = []
    if max(counts) > 1:
        seeds = f"{counts[0]}" if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"
        sentences.append(f"Brackets are 95 % intervals over {seeds} training seeds.")
    sentences += [_alpha_sentence(checks, baseline) for checks in check_all(results)]
    for rows in groups.values():
        if rows[0].method == "fixed" and baseline:
            sentences.append(f"A {name_text(rows[0])} kept {_text(share_kept(rows, baseline))}{_and_scored(rows)}.")
    if not any(rows[0].method != "task-only" for rows in groups.values()):
        sentences.append(f"Task-only reached a task value of {_mean_of(baseline, 'value', 1)}{_and_scored(baseline)}.")
    return sentences


def _alpha_sentence(checks: Checks, baseline: Sequence[Row]) -> str:
    name = name_text(checks.rows[0])
    if checks.kept is None:
        return f"{name} reached a task value of {_mean_of(checks.rows, 'value', 1)}{_and_scored(checks.rows)}."
    sentence = f"{name} kept {_text(checks.kept.interval)} of the task-only value"
    verdict = checks.over_task_only
    if verdict is None:
        return f"{sentence}{_and_scored(checks.rows)}."
    before, after = _mean_of(baseline, "imitation"), _mean_of(checks.rows, "imitation")
    change = _text(verdict.interval, _signed)
    if verdict.holds is None:
        single = math.isnan(verdict.interval.low)
        doubt = "" if single else f": the seeds do not tell the two apart ({change})"
        return f"{sentence} and scored {after} in imitation, against {before} of task-only{doubt}."
    verb = "raised" if verdict.interval.mean > 0 else "lowered"
    return f"{sentence} and {verb} the imitation score from {before} to {after} ({change})."


def _and_scored(rows: Sequence[Row]) -> str:
    imitation = _mean_of(rows, "imitation")
    return f" and scored {imitation} in imitation" if imitation else ""


def cautions(results: Results) -> list[str]:
    """What a reader has to know before believing any of it."""
    groups = by_method(results.rows)
    found = []
    single = [name_text(rows[0]) for rows in groups.values() if len(rows) == 1]
    if single:
        who = "All methods" if len(single) == len(groups) else _listed(single)
        found.append(f"{who}: a single training seed, so no interval, and another seed may end elsewhere.")
    if not task_only(results.rows):
        found.append("There is no task-only run here, so what share of the task was kept is not known.")
    for rows in groups.values():
        seeds = [row.seed for row in rows]
        if twice := [str(seed) for seed in sorted(set(seeds)) if seeds.count(seed) > 1]:
            found.append(
                f"{name_text(rows[0])} has several runs of seed {_listed(twice)}, counted as if independent. "
                "With the same settings they are copies, and the intervals are too narrow."
            )
    steps = [row.env_steps / 1e6 for row in results.rows]
    if min(steps) < max(steps):
        found.append(f"Trainings are not equally long: {min(steps):.2f} to {max(steps):.2f} million steps.")
    for record in results.records:
        flags = record.history.get("style_saturated", np.zeros(1))
        if (collapsed := float((flags > 0.0).mean())) > 0.0:
            found.append(
                f"{name_text(record.row)}, seed {record.row.seed}: the discriminator had collapsed in "
                f"{collapsed:.0%} of the iterations; there, style taught next to nothing."
            )
    return found


def _about(results: Results) -> str:
    row, methods, runs = results.rows[0], len(by_method(results.rows)), len(results.rows)
    parts = (
        escape(row.task),
        f"preset {escape(row.preset)}",
        f"{methods} method{_s(methods)}",
        f"{runs} training run{_s(runs)}",
        f"{row.episodes} episodes per policy",
    )
    return " · ".join(parts)


# ---------------------------------------------------------------- verdicts


def _verdicts(results: Results) -> str:
    all_checks = check_all(results)
    if not all_checks:
        return ""
    low, high = INSIDE
    rows: list[tuple[str, Callable[[Checks], str]]] = [
        ("Keeps at least α of the task-only value", lambda c: _verdict(c.kept)),
        (f"Keeps α, give or take {MARGIN:g}", lambda c: _verdict(c.on_target)),
        (f"σ(λ) came to rest inside ({low:g}, {high:g})", lambda c: _settling(c.settling)),
        ("Imitates better than task-only", lambda c: _verdict(c.over_task_only, _signed)),
        ("… than each fixed weight that keeps as much", _over_fixed),
        ("… than the next higher α", _over_stricter),
    ]
    if any(checks.over_no_mirrors for checks in all_checks):
        rows.append(("Moves more symmetrically than without mirrors", lambda c: _verdict(c.over_no_mirrors, _signed)))
    head = "".join(f"<th>{name_html(checks.rows[0])}</th>" for checks in all_checks)
    body = "".join(table_row(name, (cell(checks) for checks in all_checks)) for name, cell in rows)
    return f"""<h2>What the seeds show</h2>
<div class="scroll"><table class="verdicts">
<thead><tr><td></td>{head}</tr></thead>
<tbody>{body}</tbody>
</table></div>
<p class="caption">“Yes” and “no” are said where the whole 95 % interval lies on one side, “not
shown” everywhere else. Shares have Fieller's interval, differences of scores Welch's; both are over
training seeds, and each check stands alone, without a correction for their number. Where the
constraint binds, the share comes to rest at α, and an interval around it reaches below α: there the
second row is the one to read. σ(λ) is judged over the last {100 * TAIL:.0f} % of the iterations;
where it reached 1 there was no room for style, where it reached 0 there was task value to spare. A
fixed weight keeps “as much” unless its value is shown to be lower.</p>"""


def _verdict(verdict: Verdict | None, show: Show | None = None) -> str:
    if verdict is None:
        return '<span class="muted">– nothing to compare with</span>'
    return f"{_badge(verdict.holds)} {_estimate(verdict.interval, show or _precise)}"


def _settling(settling: Settling) -> str:
    if not settling.tails:
        return '<span class="muted">– not logged</span>'
    ends = sorted({f"{tail.mean:.2f}" for tail in settling.tails})
    where = ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"
    states, seeds = settling.states(), len(settling.tails)
    how = ", ".join(f"{count}{f' of {seeds}' if len(states) == 1 else ''} {state}" for state, count in states.items())
    return f'{_badge(settling.holds)} <span class="whole">{where}</span><br><span class="muted">{how}</span>'


def _over_fixed(checks: Checks) -> str:
    if not checks.over_fixed:
        return '<span class="muted">– no fixed weights</span>'
    if not checks.rivals:
        return '<span class="muted">– each of them keeps less</span>'
    return "<br>".join(
        f'{_verdict(rival.imitation, _signed)}<br><span class="muted">{name_html(rival.others[0])}</span>'
        for rival in checks.rivals
    )


def _over_stricter(checks: Checks) -> str:
    if checks.over_stricter is None:
        return '<span class="muted">–</span>'
    return _verdict(checks.over_stricter.imitation, _signed)


def _badge(holds: bool | None) -> str:
    kind, sign = {True: ("yes", "✓"), False: ("no", "✗"), None: ("open", "○")}[holds]
    return badge(kind, f"{sign} {word(holds)}")


# ---------------------------------------------------------------- tables


SCORE_COLUMNS = (
    ("tracking", "tracking", 3),
    ("imitation", "imitation", 3),
    ("imitation_per_frame", "distance per frame", 4),
    ("style_reward", "style reward", 3),
    ("symmetry", "symmetry", 3),
    ("gait_speed", "gait speed (m/s)", 2),
    ("w_mech", "work (J)", 0),
    ("w_mech_per_metre", "work (J/m)", 1),
    ("t_air", "air time (s)", 3),
    ("diagonal_phase", "diagonal phase", 3),
    ("front_phase", "front phase", 3),
    ("gait_falls", "falls in the gait", 3),
    ("falls", "falls", 3),
)
"""Column of the rows, its title, digits; those that no row has are left out."""


def _methods(rows: Sequence[Row]) -> str:
    baseline, measured = task_only(rows), [column for column in SCORE_COLUMNS if known(rows, column[0])]
    columns = ("method", "seeds", "task value", "share kept, Fieller", "share kept, bootstrap")
    body = []
    for group in by_method(rows).values():
        cells = (
            str(len(group)),
            _spread(known(group, "value"), 2),
            *_kept_cells(group, baseline),
            *(_spread(known(group, name), digits) for name, _, digits in measured),
        )
        body.append(table_row(name_html(group[0]), cells))
    row = rows[0]
    window = f"{row.imitation_window_s:g} s at {row.imitation_rate_hz:g} Hz, η = {row.imitation_scale:g}"
    return f"""<h2>Methods</h2>
{table("numbers", (*columns, *(title for _, title, _ in measured)), body)}
<p class="caption">Mean ± standard deviation over seeds. Brackets are 95 % intervals of the share of
the mean task-only value, in which both are uncertain; with few seeds, Fieller's is the one to
trust. Task value: return of an episode, without discount. Imitation: S<sub>imit</sub>, from the DTW
distance over {window}. Distance per frame: lower is better. Every policy is evaluated without noise
on the same {row.episodes} episodes.{_about_the_gait(row)}</p>"""


def _about_the_gait(row: Row) -> str:
    if row.gait_seconds is None:
        return ""
    return f""" From symmetry to falls in the gait: over {row.gait_seconds:g} s in which one speed is asked for, of the
robots that did not fall. Phases: 0 together, 0.5 in turns; a trot has 0 diagonally and 0.5 in front."""


def _kept_cells(group: Sequence[Row], baseline: Sequence[Row]) -> tuple[str, str]:
    if not baseline:
        return "–", "–"
    if group[0].method == "task-only":
        return "1", "1"
    bootstrap = share_kept_bootstrap(group, baseline, np.random.default_rng(0))
    return _estimate(share_kept(group, baseline)), _estimate(bootstrap)


def _terms(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row.terms))
    if not names:
        return ""
    body = []
    for group in by_method(rows).values():
        cells = (_spread([row.terms[name] for row in group if name in row.terms], 2) for name in names)
        body.append(table_row(name_html(group[0]), cells))
    return f"""<h2>Task reward, term by term</h2>
{table("numbers", ("method", *(escape(name.replace("_", " ")) for name in names)), body)}
<p class="caption">Weighted sum over an episode, mean ± standard deviation over seeds. The terms add
up to the task value.</p>"""


def _provenance(rows: Sequence[Row]) -> str:
    cells: dict[str, list[str]] = {
        "seed": [f"{row.seed}" for row in rows],
        "steps (10⁶)": [f"{row.env_steps / 1e6:.2f}" for row in rows],
        "time (s)": [f"{row.wall_s:.0f}" for row in rows],
        "warm-up ended": ["–" if row.warmup_end is None else f"{row.warmup_end}" for row in rows],
        "commit": [escape(row.commit or "–") for row in rows],
        "machine": [escape(row.machine or "–") for row in rows],
        "command": [_command(row.command) for row in rows],
    }
    common = [f"{name} {cells.pop(name)[0]}" for name in ("commit", "machine") if len(set(cells[name])) == 1]
    body = [table_row(name_html(row), own) for row, *own in zip(rows, *cells.values(), strict=True)]
    about = ", ".join((f"Task {escape(rows[0].task)}", f"preset {escape(rows[0].preset)}", *common))
    hours = sum(row.wall_s for row in rows) / 3600
    return f"""<h2>Where it comes from</h2>
<details><summary>{len(rows)} training run{_s(len(rows))}, {hours:.1f} hours in all: commands, seeds,
cost, machine, commit</summary>
<p>{about}. Steps are over all parallel environments, time is that of training, and the warm-up's end is
an iteration.</p>
{table("runs", ("method", *cells), body)}</details>"""


def _command(command: str) -> str:
    """Lines break between the options, not within."""
    program, *options = escape(command or "–").split(" --")
    return f"<code>{program}{''.join(f' <span>--{option}</span>' for option in options)}</code>"


def markdown_table(rows: Sequence[Row]) -> str:
    """The methods for a page in Markdown: mean ± std over seeds, the share kept with Fieller's interval."""
    baseline = task_only(rows)
    lines = [
        "| method | seeds | task value | share kept | tracking | imitation | style reward |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for group in by_method(rows).values():
        share = "1" if group[0].method == "task-only" else _text(share_kept(group, baseline)) if baseline else "–"
        cells = (
            name_text(group[0]),
            str(len(group)),
            _spread_text(known(group, "value"), 2),
            share,
            *(_spread_text(known(group, name), 3) for name in ("tracking", "imitation", "style_reward")),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------- figures


def illustrations(results: Results) -> list[Illustration]:
    """The figures that these results have enough in them for."""
    methods = {row.method for row in results.rows}
    scored = bool(known(results.rows, "imitation"))
    found = []
    if results.demonstration.shape[1] == 3:
        found.append(Illustration("paths", "Paths", PATHS, figures.trajectory_figure(results)))
    if scored:
        found.append(Illustration("scores", "Scores", SCORES, figures.score_figure(results)))
    if scored and "task-only" in methods and len(methods) > 1:
        found.append(Illustration("tradeoff", "Task against style", TRADEOFF, figures.tradeoff_figure(results)))
    if any(record.walking for record in results.records):
        found.append(Illustration("gait", "Which foot is on the ground", GAIT, figures.gait_figure(results)))
        found.append(Illustration("speed-map", "What is followed", SPEED_MAP, figures.speed_map_figure(results)))
    if "consmimic" in methods:
        constraint = figures.constraint_figure(results)
        found.append(Illustration("constraint", "How the constraint was held", CONSTRAINT, constraint))
    found.append(Illustration("training", "Training", TRAINING, figures.learning_figure(results)))
    return found


PATHS = """From the same start to the first goal: demonstration (yellow), task-only (red) and
ConsMimic (green). Bold: the seed with the median imitation score; faint:
other seeds, if any."""
SCORES = "Mean and, from two seeds up, standard deviation; every dot is a training seed."
TRADEOFF = """Small marks: training seeds; large marks: means with 95 % intervals (share: Fieller,
imitation: Student's t). Dashed: the α that was asked for, in its colour. To the right of its line,
a policy kept more than it had to."""
GAIT = """Bars: a foot bears weight. In a trot the diagonal feet (LF with RH, RF with LH) step together, the two
pairs, one of them paler, in turns. One robot of the seed with the median imitation score."""
SPEED_MAP = """Mean error at each command, over seeds: darker is worse, on a scale that shows small errors larger.
Yellow: what the demonstration shows; all else the policy had to find without it. Where only some fell, it is the mean
of the others."""
CONSTRAINT = """Each seed and their mean. Top: the task value v<sup>g</sup> that the constraint
watches, its threshold αv<sup>g*</sup>, and task-only training for comparison. Middle: the task's
weight σ(λ). Bottom: the mean style reward of a step."""
TRAINING = """Each seed and their mean: the task value v<sup>g</sup>, with the same moving average
for all methods, and the mean style reward of a step."""


# ---------------------------------------------------------------- numbers and names


def name_text(row: Row) -> str:
    """The method and its parameter."""
    if row.method == "consmimic":
        return f"ConsMimic α = {row.alpha}{row.note}"
    if row.method == "fixed":
        return f"fixed weight ωˢ = {row.style_weight}{row.note}"
    return row.method


def name_html(row: Row) -> str:
    return _html(name_text(row)).replace("fixed weight ", "fixed ")


def _html(text: str) -> str:
    return escape(text).replace("ωˢ", "ω<sup>s</sup>").replace(" = ", "&nbsp;=&nbsp;")


Show = Callable[[float], str]


def _number(value: float, digits: int = 2) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    rounded = round(value, digits) + 0.0  # no −0.00
    return f"{rounded:.{digits}f}".replace("-", "−")


def _signed(value: float) -> str:
    """With its sign."""
    shown = _precise(value)
    return shown if shown[0] in "−–∞" else f"+{shown}"


def _brackets(interval: Interval, show: Show = _number) -> str:
    """The bounds; nothing where there are none."""
    return "" if math.isnan(interval.low) else f"[{show(interval.low)}, {show(interval.high)}]"


def _text(interval: Interval, show: Show = _number) -> str:
    return f"{show(interval.mean)} {_brackets(interval, show)}".strip()


def _precise(value: float) -> str:
    return _number(value, 3)


def _estimate(interval: Interval, show: Show = _precise) -> str:
    bounds = _brackets(interval, show) or "no interval"
    return f'<span class="whole">{show(interval.mean)}</span><br><span class="muted whole">{bounds}</span>'


def _spread(values: Sequence[float], digits: int) -> str:
    mean, _, std = _spread_text(values, digits).partition(" ± ")
    return f'{mean}<br><span class="muted">± {std}</span>' if std else mean


def _spread_text(values: Sequence[float], digits: int) -> str:
    if not values:
        return "–"
    std = f" ± {_number(float(np.std(values, ddof=1)), digits)}" if len(values) > 1 else ""
    return f"{_number(float(np.mean(values)), digits)}{std}"


def _mean_of(rows: Sequence[Row], name: str, digits: int = 2) -> str:
    values = known(rows, name)
    return _number(float(np.mean(values)), digits) if values else ""


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
