"""Numbers that are none: counted, and drawn over, so that the rest of a clip can be looked at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consmimic.motions.clip import ARRAYS, Clip, check_shapes
from consmimic.motions.dialects.recording import LARGEST
from consmimic.motions.files import Npz

Array = NDArray[np.float64]


def read_fields(path: Path) -> dict[str, Any]:
    """What an npz says, whether or not its numbers are any."""
    file = Npz(path, "clip")
    file.require(*ARRAYS, "fps", "joint_names", "body_names")
    joints, bodies = file.strings("joint_names"), file.strings("body_names")
    arrays = {name: file.floats(name) for name in ARRAYS}
    check_shapes(arrays, len(joints), len(bodies), str(path))
    source = file.text("source") if "source" in file else str(path)
    return {"fps": file.number("fps"), "source": source, "joint_names": joints, "body_names": bodies, **arrays}


@dataclass(frozen=True, kw_only=True)
class Damage:
    """What was NaN, infinite or larger than any motion gets, and had to be made up before a clip could be looked at."""

    values: int = 0
    where: str = ""

    @staticmethod
    def of(fields: dict[str, Any]) -> Damage:
        counts = {}
        for name in ARRAYS:
            array = fields[name]
            bad = _no_number(array)
            if name == "body_quat_w":
                norms = np.linalg.norm(np.where(bad, 0.0, array), axis=-1, keepdims=True)
                bad = bad | ((np.abs(norms - 1.0) > 1e-3) & ~bad.any(axis=-1, keepdims=True))
            if bad.any():
                frames = np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))
                counts[name] = (int(bad.sum()), frames)
        where = ", ".join(
            f"{count} in {name}, first in frame {frames[0]}, in {len(frames)} frames"
            for name, (count, frames) in counts.items()
        )
        return Damage(values=sum(count for count, _ in counts.values()), where=where)


def repaired(fields: dict[str, Any]) -> Clip:
    """A clip in which what is not a number is a straight line between what is."""
    mended: dict[str, Any] = {name: _filled(fields[name]) for name in ARRAYS}
    quaternions = mended["body_quat_w"]
    norms = np.linalg.norm(quaternions, axis=-1, keepdims=True)
    mended["body_quat_w"] = np.where(norms > 1e-6, quaternions / np.maximum(norms, 1e-6), [1.0, 0.0, 0.0, 0.0])
    return Clip(**(fields | mended))


def _no_number(array: Array) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return ~(np.abs(array) <= LARGEST)


def _filled(array: Array) -> Array:
    bad = _no_number(array).reshape(len(array), -1)
    if not bad.any():
        return array
    columns = array.reshape(len(array), -1).copy()
    for column, good in zip(columns.T, ~bad.T, strict=True):
        if not good.all():
            column[:] = np.interp(np.arange(len(column)), np.flatnonzero(good), column[good]) if good.any() else 0.0
    return columns.reshape(array.shape)
