"""A motion file, opened as what its bytes are: an npz, an npy, a text with "Frames", or a table of numbers."""

from __future__ import annotations

import json
import re
from array import array
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from consmimic.errors import UserError
from consmimic.motions.dialects.recording import Array
from consmimic.motions.files import Npz, memory_budget, reading

Kind = Literal["npz", "npy", "frames", "table", "unknown"]

_LONGEST_LINE = 1 << 16
"""Bytes of a frame in a text; 1000 numbers to the last digit are 20,000."""
_LONGEST_HEADER = 1 << 16
_FRAMES = re.compile(rb'"Frames"\s*:\s*\[')
_GAP = re.compile(rb"[\s,]*")
_NUMBER = re.compile(rb"\s*[-+]?[\d.]")


@dataclass(frozen=True, eq=False)
class Frames:
    """A JSON text with "Frames": rows of numbers, and what else it says."""

    header: dict[str, Any]
    rows: Array  # (T, columns)

    def number(self, key: str, what: str) -> float | None:
        value = self.header.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UserError(f"{what}: {key} is {str(value)[:40]!r}; it must be a number")
        return float(value)


class MotionFile:
    """Content is read when it is first asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path) as file:
            self._start = file.read(4096)

    @cached_property
    def kind(self) -> Kind:
        if self._start.startswith(b"PK"):
            return "npz"
        if self._start.startswith(b"\x93NUMPY"):
            return "npy"
        if self._start.lstrip().startswith(b"{"):
            return "frames"
        return "table" if _NUMBER.match(self._start) else "unknown"

    @cached_property
    def npz(self) -> Npz:
        return Npz(self.path)

    @cached_property
    def frames(self) -> Frames:
        with reading(self.path) as file:
            return parse_frames(file.read(), str(self.path), most_numbers(self.path))

    @cached_property
    def table(self) -> Array:
        return parse_table(self.path)


def most_numbers(path: Path) -> int:
    """How many numbers a text may hold: they are held twice, and a clip is made of them, within the memory budget."""
    return memory_budget(path) // 3 // 8


def parse_frames(text: bytes, what: str, most: int) -> Frames:
    """Every row must be as wide as the first."""
    start = _FRAMES.search(text)
    if start is None:
        described = "; this is the description of a skeleton" if b'"Skeleton"' in text[:1000] else ""
        raise UserError(f'{what} has no "Frames", as every motion of this kind{described}')
    numbers, rows, width = array("d"), 0, 0
    at = start.end()
    while True:
        at = _after_gap(text, at)
        if text[at : at + 1] == b"]":
            break
        end = text.find(b"]", at + 1, at + _LONGEST_LINE)
        if text[at : at + 1] != b"[" or end < 0:
            raise UserError(f"{what}: there is no frame {rows}, or not all of it; the file may be cut off")
        found = _numbers(text[at + 1 : end].split(b","), f"{what}: frame {rows}")
        width = width or len(found)
        if len(found) != width or width == 0:
            raise UserError(f"{what}: frame {rows} has {len(found)} numbers, the first has {width}")
        numbers.extend(found)
        if len(numbers) > most:
            raise UserError(f"{what} has more than {most} numbers, too many for its size: it is damaged")
        rows, at = rows + 1, end + 1
    if rows == 0:
        raise UserError(f"{what} has no frames")
    return Frames(_header(text[: start.end()], text[at:], what), np.frombuffer(numbers).reshape(rows, width))


def parse_table(path: Path) -> Array:
    """Numbers separated by commas, semicolons or blanks, a line per frame."""
    numbers, rows, width, most = array("d"), 0, 0, most_numbers(path)
    with reading(path) as file:
        for line_number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), start=1):
            if len(line) == _LONGEST_LINE:
                raise UserError(f"{path}: line {line_number} is longer than any frame")
            if not line.strip():
                continue
            separator = b"," if b"," in line else b";" if b";" in line else None
            words = line.rstrip().rstrip(separator or b" ").split(separator)
            found = _numbers(words, f"{path}: line {line_number}")
            width = width or len(found)
            if len(found) != width:
                raise UserError(f"{path}: line {line_number} has {len(found)} numbers, the first has {width}")
            numbers.extend(found)
            if len(numbers) > most:
                raise UserError(f"{path} has more than {most} numbers, too many for its size: it is damaged")
            rows += 1
    if rows == 0:
        raise UserError(f"{path} has no frames")
    return np.frombuffer(numbers).reshape(rows, width)


def _after_gap(text: bytes, at: int) -> int:
    gap = _GAP.match(text, at)
    return at if gap is None else gap.end()


def _numbers(words: list[bytes], where: str) -> list[float]:
    try:
        return [float(word) for word in words]
    except ValueError:
        for word in words:
            try:
                float(word)
            except ValueError:
                shown = word.strip()[:30].decode("ascii", "replace")
                raise UserError(f"{where} holds {shown!r}, which is no number") from None
        raise


def _header(before: bytes, after: bytes, what: str) -> dict[str, Any]:
    """What stands around the frames."""
    if len(before) + len(after) > _LONGEST_HEADER:
        raise UserError(f"{what} has {len(before) + len(after)} bytes beside its frames: that is no motion")
    try:
        header = json.loads(before + after)
    except (ValueError, RecursionError):
        raise UserError(f'{what} is not valid JSON around its "Frames"') from None
    if not isinstance(header, dict):
        raise UserError(f'{what} is not valid JSON around its "Frames"')
    return header
