"""The tasks by name. Other packages add theirs through the entry-point group ``consmimic.tasks``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

from consmimic.envs.task import Task
from consmimic.errors import unknown
from consmimic.tasks.presets import Preset

ENTRY_POINT_GROUP = "consmimic.tasks"


@dataclass(frozen=True, kw_only=True)
class TaskEntry:
    """A task, how to train it, and the α that the paper uses for it."""

    task: Task
    presets: Mapping[str, Preset]
    default_alpha: float
    compared_alphas: tuple[float, ...] = ()
    """What ``reproduce`` trains; none: the default alone."""

    def preset(self, name: str) -> Preset:
        if name not in self.presets:
            raise unknown("preset", name, self.presets)
        return self.presets[name]


def _franka_reach() -> TaskEntry:
    from consmimic.tasks import franka_reach

    return TaskEntry(
        task=franka_reach.FRANKA_REACH, presets=franka_reach.PRESETS, default_alpha=0.9, compared_alphas=(1.0, 0.9, 0.8)
    )


def _anymal_forward() -> TaskEntry:
    from consmimic.tasks import anymal

    return TaskEntry(task=anymal.ANYMAL_FORWARD, presets=anymal.PRESETS, default_alpha=0.7)


def _anymal_lateral() -> TaskEntry:
    from consmimic.tasks import anymal

    return TaskEntry(task=anymal.ANYMAL_LATERAL, presets=anymal.PRESETS, default_alpha=0.7)


_BUILT_IN: dict[str, Callable[[], TaskEntry]] = {
    "Franka-Reach": _franka_reach,
    "Anymal-Forward": _anymal_forward,
    "Anymal-Lateral": _anymal_lateral,
}


def _all() -> dict[str, Callable[[], TaskEntry]]:
    found = dict(_BUILT_IN)
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        found.setdefault(entry.name, lambda entry=entry: entry.load()())
    return found


def task_names() -> list[str]:
    return list(_all())


def task_entry(name: str) -> TaskEntry:
    tasks = _all()
    if name not in tasks:
        raise unknown("task", name, tasks)
    return tasks[name]()
