"""``consmimic list``."""

from __future__ import annotations

from dataclasses import dataclass

from consmimic.tasks import task_entry, task_names


@dataclass(frozen=True)
class ListTasks:
    """The tasks, their presets, and the share alpha that the paper keeps on each."""

    def run(self) -> None:
        for name in task_names():
            entry = task_entry(name)
            print(f"{name}  (alpha {entry.default_alpha:g})\n  {entry.task.summary}")
            for clip in entry.task.other_demonstrations:
                print(f"  --clip {clip}")
            for label, preset in entry.presets.items():
                print(f"  --preset {label}: {preset.num_envs} robots, {preset.max_iterations} iterations")
