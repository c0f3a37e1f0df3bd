"""``consmimic motions slow-down``."""

from __future__ import annotations

from dataclasses import dataclass

from consmimic.cli.motions.common import ClipPath, NewPath, load_clip, save_clip
from consmimic.motions.files import check_is_new
from consmimic.motions.operations import slowed_down


@dataclass(frozen=True)
class SlowDown:
    """The same motion in more time, or in less; velocities change with it, the frame rate does not."""

    clip: ClipPath
    """A clip."""
    output: NewPath
    """A new .npz."""
    factor: float = 2.0
    """How many times the time it takes; below 1 is faster."""

    def run(self) -> int:
        check_is_new(self.output)
        save_clip(slowed_down(load_clip(self.clip), self.factor), self.output)
        return 0
