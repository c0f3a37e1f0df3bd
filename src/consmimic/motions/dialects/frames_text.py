"""What the texts with "Frames" have in common."""

from __future__ import annotations

import numpy as np

from consmimic.errors import UserError
from consmimic.motions.dialects.rates import frame_rate
from consmimic.motions.dialects.recording import Array, check_believable, evenly_timed
from consmimic.motions.dialects.source import MotionFile


def width(file: MotionFile) -> int | None:
    """Numbers per frame; None for another kind of file."""
    return file.frames.rows.shape[1] if file.kind == "frames" else None


def says_loop(file: MotionFile) -> bool:
    header = file.frames.header
    return str(header.get("Loop", header.get("LoopMode", ""))).lower() == "wrap"


def timed(file: MotionFile, durations: Array | None, asked: float | None) -> tuple[float, Array, tuple[str, ...]]:
    """Frame rate, where its frames lie among those of the file, and warnings.

    A file says how long a frame lasts for all of them, or, in a first column, for each.
    """
    what = str(file.path)
    check_believable(file.frames.rows, what)
    rows = len(file.frames.rows)
    if durations is not None and asked is None:
        fps, places = evenly_timed(durations, what)
        uneven = "frames last unequally long; they were made even by interpolation"
        return fps, places, () if len(places) == rows and np.array_equal(places, np.arange(rows)) else (uneven,)
    duration = file.frames.number("FrameDuration", what)
    if duration is not None and duration <= 0.0 and asked is None:
        raise UserError(f"{what}: a frame lasts {duration:g} s (FrameDuration); it must be more than 0")
    in_file = 1.0 / duration if duration is not None and duration > 0.0 else None
    fps, warnings = frame_rate(in_file, asked, what)
    return fps, np.arange(rows, dtype=np.float64), warnings
