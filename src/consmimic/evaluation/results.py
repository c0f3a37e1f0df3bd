"""Published results on disk: rows, curves and trajectories. Every figure and table is made from these alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One trained policy (docs/metrics.md); unknown cells are None."""

    task: str
    method: str
    style_weight: float | None
    mix: str | None
    alpha: float | None
    mirrored: bool | None = None
    """Whether the style knew the robot's mirrors (Eqs. 10, 11); None where it has none."""
    seed: int
    preset: str
    value: float
    value_ratio: float | None = None
    tracking: float
    imitation: float | None
    imitation_per_frame: float | None
    style_reward: float | None = None
    falls: float | None = None
    symmetry: float | None = None
    w_mech: float | None = None
    w_mech_absolute: float | None = None
    w_mech_per_metre: float | None = None
    t_air: float | None = None
    diagonal_phase: float | None = None
    front_phase: float | None = None
    gait_speed: float | None = None
    gait_seconds: float | None = None
    """The recording that these are taken over, from ``symmetry`` on; of each robot that did not fall in it."""
    gait_falls: float | None = None
    episodes: int
    imitation_window_s: float
    """Seconds of motion compared with the clip, at ``imitation_rate_hz``; the score means nothing without them."""
    imitation_rate_hz: float
    imitation_scale: float
    """η of Eq. 12."""
    terms: Mapping[str, float] = field(default_factory=dict)
    """Mean weighted sum per episode of each reward term."""
    warmup_end: int | None = None
    env_steps: int
    wall_s: float
    command: str
    commit: str | None
    machine: str

    @property
    def label(self) -> str:
        """The method and its parameter, for people."""
        if self.method == "consmimic":
            return f"ConsMimic α={self.alpha:g}{self.note}"
        if self.method == "fixed":
            return f"ω^s={self.style_weight:g}{self.note}"
        return "task-only"

    @property
    def note(self) -> str:
        """In what the method departs from its usual form, in brackets; nothing where it does not."""
        notes = [
            *(["advantages"] if self.mix == "advantages" else []),
            *(["no mirrors"] if self.mirrored is False else []),
        ]
        return f" ({', '.join(notes)})" if notes else ""


@dataclass(frozen=True, kw_only=True, eq=False)
class PolicyRecord:
    """A row, how its training went, and how its policy moves."""

    row: Row
    history: Mapping[str, Array]
    """Column of the run's history → one value per iteration (nan where there is none)."""
    showcase: Array
    """(K, T + 1, d): trajectories from the showcase start to the showcase goals, the start included."""
    walking: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """How a legged robot walks; empty for others. The gait of one robot: ``contact`` (T, F) of its ``feet`` (F,), every
    ``step_seconds``, at ``gait_command`` (3,): v_x, v_y, ω. The map of commands: ``map_axes`` (2,), the names of what
    varies across and up; their values ``map_across`` (A,), ``map_up`` (U,); mean errors ``speed_error`` (U, A) in m/s
    and ``turn_error`` (U, A) in rad/s, NaN after a fall; ``demonstrated`` (2, 2), the clip's range on each axis."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Results:
    """All that a report is made of."""

    records: Sequence[PolicyRecord]
    demonstration: Array
    """(T, d)"""
    goals: Array
    """(K, d): where the showcase trajectories are to end; K is 0 for a task without a showcase."""

    @property
    def rows(self) -> list[Row]:
        return [record.row for record in self.records]

    def save(self, folder: Path) -> None:
        """``summary.json``, ``curves.npz``, ``trajectories.npz`` and, of legged robots, ``walking.npz``.

        Each is written aside and renamed.
        """
        folder.mkdir(parents=True, exist_ok=True)
        write_rows(folder / "summary.json", self.rows)
        curves = {
            f"{index:03d}/{name}": values.astype(np.float32)
            for index, record in enumerate(self.records)
            for name, values in record.history.items()
        }
        _write_npz(folder / "curves.npz", curves)
        moves = {f"{index:03d}": record.showcase.astype(np.float32) for index, record in enumerate(self.records)}
        _write_npz(folder / "trajectories.npz", moves | {"demonstration": self.demonstration, "goals": self.goals})
        walks = {
            f"{index:03d}/{name}": values
            for index, record in enumerate(self.records)
            for name, values in record.walking.items()
        }
        if walks:
            _write_npz(folder / "walking.npz", walks)
        else:
            (folder / "walking.npz").unlink(missing_ok=True)

    @staticmethod
    def load(folder: Path) -> Results:
        rows = read_rows(folder / "summary.json")
        try:
            histories = _read_by_record(folder / "curves.npz", len(rows))
            walks = [{} for _ in rows]
            if (folder / "walking.npz").exists():
                walks = _read_by_record(folder / "walking.npz", len(rows))
            with np.load(folder / "trajectories.npz") as moves:
                records = [
                    PolicyRecord(
                        row=row,
                        history={name: values.astype(np.float64) for name, values in history.items()},
                        showcase=moves[f"{index:03d}"].astype(np.float64),
                        walking=walk,
                    )
                    for index, (row, history, walk) in enumerate(zip(rows, histories, walks, strict=True))
                ]
                return Results(records=records, demonstration=moves["demonstration"], goals=moves["goals"])
        except (OSError, KeyError, ValueError, IndexError) as error:
            raise UserError(f"the results in {folder} cannot be read: {error}") from None


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".part")
    aside.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    os.replace(aside, path)


def read_rows(path: Path) -> list[Row]:
    valid = {f.name for f in fields(Row)}
    try:
        plain: list[dict[str, Any]] = json.loads(path.read_text())
        return [Row(**{key: value for key, value in row.items() if key in valid}) for row in plain]
    except (OSError, json.JSONDecodeError, TypeError, AttributeError) as error:
        raise UserError(f"{path} cannot be read as results: {error}") from None


def _read_by_record(path: Path, count: int) -> list[dict[str, NDArray[Any]]]:
    """Arrays named ``index/name``, by index."""
    found: list[dict[str, NDArray[Any]]] = [{} for _ in range(count)]
    with np.load(path) as arrays:
        for key in arrays.files:
            index, _, name = key.partition("/")
            found[int(index)][name] = arrays[key]
    return found


def _write_npz(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    aside = path.with_name(path.name + ".part")
    with aside.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    os.replace(aside, path)
