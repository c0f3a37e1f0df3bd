"""A file of a moving skeleton, whichever of the known ones it is of."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from consmimic.errors import UserError, unknown
from consmimic.motions import kinematics
from consmimic.motions.retarget.humans import DEEPMIMIC_COLUMNS, read_deepmimic, read_frames, read_isaaclab
from consmimic.motions.retarget.quadrupeds import QUADRUPED_COLUMNS, SKELETONS, read_quadruped
from consmimic.motions.retarget.source import SourceMotion

READERS = ("deepmimic", "isaaclab", *SKELETONS)
"""What a file can be of."""


def read_source(path: Path, skeleton: str | None = None) -> tuple[SourceMotion, str]:
    """The motion, and the skeleton it was read with and why."""
    if skeleton is not None and skeleton not in READERS:
        raise unknown("skeleton", skeleton, READERS)
    if not path.is_file():
        raise UserError(f"no motion at {path}")
    if skeleton is not None:
        return _read(path, skeleton), f"{skeleton}: you said so"
    if zipfile.is_zipfile(path):
        return read_isaaclab(path), "isaaclab: an npz with positions of bodies"
    columns = read_frames(path, (DEEPMIMIC_COLUMNS, *QUADRUPED_COLUMNS))[1].shape[1]
    if columns == DEEPMIMIC_COLUMNS:
        return read_deepmimic(path), f"deepmimic: {columns} columns"
    slips = {name: _slip(read_quadruped(path, name)) for name in SKELETONS}
    likely = min(slips, key=lambda name: slips[name])
    others = ", ".join(f"{1000 * slip:.0f} mm/s with {name}" for name, slip in slips.items() if name != likely)
    why = f"{likely}: {columns} columns; feet that stand move by {1000 * slips[likely]:.0f} mm/s with it, {others}"
    return read_quadruped(path, likely), why


def _read(path: Path, skeleton: str) -> SourceMotion:
    if skeleton == "deepmimic":
        return read_deepmimic(path)
    return read_isaaclab(path) if skeleton == "isaaclab" else read_quadruped(path, skeleton)


def _slip(motion: SourceMotion) -> float:
    """What the slowest third of the samples of touching points stay below, in all directions, for a leg of 1 m."""
    speed = np.linalg.norm(kinematics.linear_velocity(motion.touching(), motion.fps), axis=-1)
    leg = np.mean([motion.length(f"{leg}_hip", f"{leg}_knee", f"{leg}_foot") for leg in motion.feet])
    return float(np.quantile(speed, 1.0 / 3.0) / leg)
