"""What a training shows while it runs: one line for people, or JSON lines for a program."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Callable, Iterator
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from consmimic.runs.training import Progress as TrainingProgress

Style = Literal["bar", "json", "none"]


def constraint_words(scalars: dict[str, float]) -> str:
    """Whether the constraint holds, in a word or two."""
    if "satisfied" in scalars:
        return "task kept" if scalars["satisfied"] else "[yellow]task short[/yellow]"
    return "warm-up" if scalars.get("warmup") else "no constraint"


@contextlib.contextmanager
def shown(style: Style) -> Iterator[Callable[[TrainingProgress], None]]:
    """Call what this yields once an iteration."""
    if style == "none":
        yield lambda _: None
    elif style == "json":
        out = sys.stdout  # training redirects the standard output to its log

        def print_json(progress: TrainingProgress) -> None:
            finite = {k: v for k, v in progress.scalars.items() if math.isfinite(v)}
            line = {"iteration": progress.iteration, "total": progress.total, "seconds": progress.seconds}
            print(json.dumps(line | finite), file=out, flush=True)

        yield print_json
    else:
        with _bar() as show:
            yield show


@contextlib.contextmanager
def _bar() -> Iterator[Callable[[TrainingProgress], None]]:
    with Progress(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[words]}"),
        console=Console(file=sys.stderr),
    ) as bars:
        row = bars.add_task("", total=None, words="starting")

        def show(progress: TrainingProgress) -> None:
            s = progress.scalars
            words = (
                f"task {s['v_task']:.3g}  style {s['style_reward']:.3f}  "
                f"σ(λ) {s['sigma_lambda']:.2f}  {constraint_words(s)}"
            )
            if s.get("style_saturated"):
                words += "  [yellow]discriminator collapsed[/yellow]"
            bars.update(row, completed=progress.iteration, total=progress.total, words=words)

        yield show
