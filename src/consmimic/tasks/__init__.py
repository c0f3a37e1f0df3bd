"""The paper's tasks as data, row by row of its tables, with their training presets."""

from consmimic.tasks.presets import Method, Preset, runner_config
from consmimic.tasks.registry import TaskEntry, task_entry, task_names

__all__ = ["Method", "Preset", "TaskEntry", "runner_config", "task_entry", "task_names"]
