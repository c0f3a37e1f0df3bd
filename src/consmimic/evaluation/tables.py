"""Tables of results for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.table import Table

from consmimic.evaluation.results import Row
from consmimic.evaluation.verdicts import by_method


def summary_table(rows: Sequence[Row]) -> Table:
    """Mean ± standard deviation over seeds, per method."""
    table = Table(box=None, pad_edge=False)
    for column in ("method", "seeds", "value", "of task-only", "tracking", "imitation", "style reward"):
        table.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    for label, group in by_method(rows).items():
        cells = ("value", "value_ratio", "tracking", "imitation", "style_reward")
        table.add_row(label, str(len(group)), *(_cell([getattr(row, name) for row in group]) for name in cells))
    return table


def _cell(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    spread = f" ± {np.std(known, ddof=1):.3f}" if len(known) > 1 else ""
    return f"{np.mean(known):.3f}{spread}"
