"""What is retargeted: where the named points of a moving skeleton are, whoever it belonged to."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError, unknown
from consmimic.motions.dialects.recording import Recording

Array = NDArray[np.float64]


def base_of(recording: Recording) -> tuple[Array, Array]:
    """Position and orientation."""
    if recording.root_pos is None or recording.root_quat is None:
        raise UserError(f"motion '{recording.source}' does not say where its base is")
    return recording.root_pos, recording.root_quat


@dataclass(frozen=True, kw_only=True, eq=False)
class SourceMotion:
    """T frames at `fps`. World frame, z up; quaternions wxyz, 1 where a body is turned as when standing and facing +x.

    A motion that loops goes on after its last frame with frame `period` = frame 0, one stride ahead.
    """

    name: str
    fps: float
    root_pos: Array  # (T, 3)
    root_quat: Array  # (T, 4)
    points: Mapping[str, Array]  # each (T, 3)
    turns: Mapping[str, Array]  # each (T, 4), of the bodies whose orientation matters
    feet: Mapping[str, tuple[str, ...]]
    """Foot → the points of it that touch the ground: heel and toe, or the centre of a ball."""
    stance: Mapping[str, Array]
    """Where the end of each leg is in the root's frame while standing at ease, (3,)."""
    foot_height: float
    """Of the end of a leg above the ground while the foot is flat on it."""
    touch_radius: float = 0.0
    """Of the touching points above the ground while they touch."""
    touch_height: float = 0.004
    """Of a touching point above where it touches, that is still taken for touching."""
    loops: bool = False

    def __post_init__(self) -> None:
        frames = len(self.root_pos)
        if frames < 3:
            raise UserError(f"motion '{self.name}' has {frames} frames; at least 3 are needed")
        if not np.isfinite(self.fps) or self.fps <= 0:
            raise UserError(f"motion '{self.name}': fps is {self.fps}; it must be a positive number")
        arrays = {"root_pos": self.root_pos, "root_quat": self.root_quat, **self.points, **self.turns}
        for name, array in arrays.items():
            size = 4 if name == "root_quat" or name in self.turns else 3
            if array.shape != (frames, size):
                raise UserError(f"motion '{self.name}': {name} has shape {array.shape}, expected {(frames, size)}")
            if not np.isfinite(array).all():
                frame = int(np.argwhere(~np.isfinite(array))[0][0])
                raise UserError(f"motion '{self.name}': {name} is not finite (NaN or inf) in frame {frame}")
        for point in (name for names in self.feet.values() for name in names):
            self.point(point)

    def __len__(self) -> int:
        return len(self.root_pos)

    def point(self, name: str) -> Array:
        if name not in self.points:
            raise unknown(f"point of motion '{self.name}'", name, self.points)
        return self.points[name]

    def turn(self, name: str) -> Array:
        if name not in self.turns:
            raise unknown(f"orientation in motion '{self.name}'", name, self.turns)
        return self.turns[name]

    def length(self, *names: str) -> float:
        """Of a chain of points, on average."""
        ends = itertools.pairwise(names)
        return sum(float(np.linalg.norm(self.point(b) - self.point(a), axis=-1).mean()) for a, b in ends)

    def touching(self) -> Array:
        """The points that may touch the ground."""  # (T, K, 3)
        return np.stack([self.point(name) for names in self.feet.values() for name in names], axis=1)

    def with_arrays(
        self, root_pos: Array, root_quat: Array, points: Mapping[str, Array], turns: Mapping[str, Array]
    ) -> SourceMotion:
        return replace(self, root_pos=root_pos, root_quat=root_quat, points=points, turns=turns)

    def at_rate(self, fps: float) -> SourceMotion:
        """The same frames, played at another rate."""
        return replace(self, fps=fps)
