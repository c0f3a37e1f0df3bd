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
    seed: int
    preset: str
    value: float
    value_ratio: float | None = None
    tracking: float
    imitation: float | None
    imitation_per_frame: float | None
    style_reward: float | None = None
    symmetry: float | None = None
    w_mech: float | None = None
    t_air: float | None = None
    falls: float | None = None
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
            return f"ConsMimic α={self.alpha:g}"
        if self.method == "fixed":
            return f"ω^s={self.style_weight:g}" + (" (advantages)" if self.mix == "advantages" else "")
        return "task-only"


@dataclass(frozen=True, kw_only=True, eq=False)
class PolicyRecord:
    """A row, how its training went, and how its policy moves."""

    row: Row
    history: Mapping[str, Array]
    """Column of the run's history → one value per iteration (nan where there is none)."""
    showcase: Array
    """(K, T + 1, d): trajectories from the showcase start to the showcase goals, the start included."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Results:
    """All that a report is made of."""

    records: Sequence[PolicyRecord]
    demonstration: Array
    """(T, d)"""
    goals: Array
    """(K, d): where the showcase trajectories are to end."""

    @property
    def rows(self) -> list[Row]:
        return [record.row for record in self.records]

    def save(self, folder: Path) -> None:
        """``summary.json``, ``curves.npz`` and ``trajectories.npz``; each written aside and renamed."""
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

    @staticmethod
    def load(folder: Path) -> Results:
        rows = read_rows(folder / "summary.json")
        try:
            with np.load(folder / "curves.npz") as curves, np.load(folder / "trajectories.npz") as moves:
                histories: list[dict[str, Array]] = [{} for _ in rows]
                for key in curves.files:
                    index, _, name = key.partition("/")
                    histories[int(index)][name] = curves[key].astype(np.float64)
                records = [
                    PolicyRecord(row=row, history=history, showcase=moves[f"{index:03d}"].astype(np.float64))
                    for index, (row, history) in enumerate(zip(rows, histories, strict=True))
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


def _write_npz(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    aside = path.with_name(path.name + ".part")
    with aside.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    os.replace(aside, path)
