"""What a dialect is: how to know it, and how to read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from consmimic.motions.dialects.orientation import Order, Up
from consmimic.motions.dialects.recording import Recording
from consmimic.motions.dialects.source import MotionFile


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What the user says about a file that it does not say itself, or wrongly."""

    fps: float | None = None
    joint_names: tuple[str, ...] | None = None
    quat_order: Order | None = None
    up: Up | None = None
    allow_pickle: bool = False


@dataclass(frozen=True)
class Dialect:
    name: str
    summary: str
    recognise: Callable[[MotionFile], str | None]
    """Why the file is of this dialect; None if it is not."""
    read: Callable[[MotionFile, ReadOptions], Recording]
