"""``consmimic list``."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from consmimic.tasks import task_entry, task_names


@dataclass(frozen=True)
class ListTasks:
    """The tasks, their presets, and the share alpha that the paper keeps on each."""

    def run(self) -> None:
        table = Table(box=None, pad_edge=False)
        for column in ("task", "alpha", "presets", "what it is"):
            table.add_column(column, no_wrap=column != "what it is")
        for name in task_names():
            entry = task_entry(name)
            presets = ", ".join(
                f"{label} ({preset.num_envs} robots, {preset.max_iterations} iterations)"
                for label, preset in entry.presets.items()
            )
            table.add_row(name, f"{entry.default_alpha:g}", presets, entry.task.summary)
        Console(width=None).print(table)
