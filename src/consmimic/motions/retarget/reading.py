"""A file of a moving skeleton, whichever of the known ones it is of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from consmimic.errors import UserError, unknown
from consmimic.motions import kinematics
from consmimic.motions.dialects import DIALECTS, ReadOptions, read_motion
from consmimic.motions.dialects.amp_for_hardware import AMP_FOR_HARDWARE
from consmimic.motions.dialects.deepmimic import DEEPMIMIC
from consmimic.motions.dialects.isaaclab_humanoid import ISAACLAB_HUMANOID
from consmimic.motions.dialects.motion_imitation import MOTION_IMITATION
from consmimic.motions.dialects.recording import Recording
from consmimic.motions.retarget.humans import from_deepmimic, from_isaaclab
from consmimic.motions.retarget.quadrupeds import SKELETONS, from_quadruped
from consmimic.motions.retarget.source import SourceMotion

_HUMANS: dict[str, Callable[[Recording], SourceMotion]] = {
    DEEPMIMIC.name: from_deepmimic,
    ISAACLAB_HUMANOID.name: from_isaaclab,
}
_QUADRUPEDS = (MOTION_IMITATION.name, AMP_FOR_HARDWARE.name)
READERS = (*_HUMANS, *SKELETONS)
"""What a file can be of."""


def read_source(path: Path, skeleton: str | None = None, fps: float | None = None) -> tuple[SourceMotion, str]:
    """The motion, and the skeleton it was read with and why. ``fps``: the file's, where it does not say."""
    if skeleton is not None and skeleton not in READERS:
        raise unknown("skeleton", skeleton, READERS)
    reading = read_motion(path, ReadOptions(fps=fps), dialect=skeleton if skeleton in _HUMANS else None)
    dialect, recording = reading.dialect.name, reading.recording
    about = "; ".join((reading.why, *recording.warnings)) if skeleton is None else "you said so"
    if dialect in _HUMANS and skeleton in (None, dialect):
        return _HUMANS[dialect](recording), f"{dialect}: {about}"
    if skeleton is not None and dialect not in _QUADRUPEDS:
        raise UserError(f"{path} is {reading.why}; that is no motion of {skeleton}")
    if dialect not in _QUADRUPEDS:
        known = "; ".join(DIALECTS[name].summary for name in (*_HUMANS, *_QUADRUPEDS))
        raise UserError(
            f"{path} is {reading.why}: it does not say how the limbs of {recording.subject} are built. Known are: "
            f"{known}; clips of a robot of ours with --from-robot"
        )
    if skeleton is not None:
        return from_quadruped(recording, SKELETONS[skeleton]), f"{skeleton}: {about}"
    motions = {name: from_quadruped(recording, body) for name, body in SKELETONS.items()}
    slips = {name: _slip(motion) for name, motion in motions.items()}
    likely = min(slips, key=lambda name: slips[name])
    others = ", ".join(f"{1000 * slip:.0f} mm/s with {name}" for name, slip in slips.items() if name != likely)
    why = f"{likely}: {about}; feet that stand move by {1000 * slips[likely]:.0f} mm/s with it, {others}"
    return motions[likely], why


def _slip(motion: SourceMotion) -> float:
    """What the slowest third of the samples of touching points stay below, in all directions, for a leg of 1 m."""
    speed = np.linalg.norm(kinematics.linear_velocity(motion.touching(), motion.fps), axis=-1)
    leg = np.mean([motion.length(f"{leg}_hip", f"{leg}_knee", f"{leg}_foot") for leg in motion.feet])
    return float(np.quantile(speed, 1.0 / 3.0) / leg)
