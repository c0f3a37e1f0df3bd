"""Readers of motion files, one module per dialect, and how a file's dialect is found out.

To add a dialect, write a module with a :class:`Dialect` and put it into ``DIALECTS``, before those that would take
its files for theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from consmimic.errors import UserError, unknown
from consmimic.motions.dialects.amp_for_hardware import AMP_FOR_HARDWARE
from consmimic.motions.dialects.amp_rsl_rl import AMP_RSL_RL
from consmimic.motions.dialects.deepmimic import DEEPMIMIC
from consmimic.motions.dialects.dialect import Dialect, ReadOptions
from consmimic.motions.dialects.isaaclab_humanoid import ISAACLAB_HUMANOID
from consmimic.motions.dialects.loco_mujoco import LOCO_MUJOCO
from consmimic.motions.dialects.motion_imitation import MOTION_IMITATION
from consmimic.motions.dialects.named_npz import NAMED_NPZ
from consmimic.motions.dialects.recording import Recording
from consmimic.motions.dialects.source import MotionFile
from consmimic.motions.dialects.table import LAFAN1, TABLE
from consmimic.motions.files import shortened

__all__ = ["DIALECTS", "Dialect", "ReadOptions", "Reading", "Recording", "detect", "read_motion"]

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        NAMED_NPZ,
        ISAACLAB_HUMANOID,
        LOCO_MUJOCO,
        AMP_FOR_HARDWARE,
        MOTION_IMITATION,
        DEEPMIMIC,
        AMP_RSL_RL,
        LAFAN1,
        TABLE,
    )
}


@dataclass(frozen=True)
class Reading:
    """A recording, the dialect that it was written in, and how that was known."""

    recording: Recording
    dialect: Dialect
    why: str


def detect(path: Path) -> tuple[Dialect, str]:
    """The dialect of a file, and why it is taken for that."""
    return _detect(MotionFile(path))


def read_motion(path: Path, options: ReadOptions = ReadOptions(), dialect: str | None = None) -> Reading:  # noqa: B008 - immutable
    """Read a motion file in any dialect; nothing in it is run, and memory stays within four times the file + 200 MB."""
    if dialect is not None and dialect not in DIALECTS:
        raise unknown("dialect", dialect, DIALECTS)
    file = MotionFile(path)
    taken, why = (DIALECTS[dialect], "as asked for") if dialect is not None else _detect(file)
    if dialect is not None:
        _check_kind(file, taken)
    with np.errstate(all="ignore"):  # damaged numbers are found by checks, which name them
        return Reading(taken.read(file, options), taken, why)


def _detect(file: MotionFile) -> tuple[Dialect, str]:
    for dialect in DIALECTS.values():
        why = dialect.recognise(file)
        if why is not None:
            return dialect, why
    known = "; ".join(f"{dialect.name} ({dialect.summary})" for dialect in DIALECTS.values())
    raise UserError(f"{file.path} is {_described(file)}, which is no dialect that is known: {known}")


def _check_kind(file: MotionFile, dialect: Dialect) -> None:
    """Whether the file can be of the dialect that the user names."""
    if dialect.recognise(file) is None:
        raise UserError(f"{file.path} is {_described(file)}; that is not {dialect.summary}")


def _described(file: MotionFile) -> str:
    if file.kind == "npz":
        return f"an npz with {shortened(file.npz.names)}"
    if file.kind == "frames":
        return f'a text with "Frames" of {file.frames.rows.shape[1]} numbers'
    if file.kind == "table":
        return f"a table of {file.table.shape[1]} columns"
    if file.kind == "npy":
        return "an npy without objects"
    return "neither npz, npy, JSON nor a table of numbers (a table must not have a header)"
