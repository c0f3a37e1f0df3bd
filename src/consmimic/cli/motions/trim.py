"""``consmimic motions trim``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from consmimic.cli.motions.common import ClipPath, NewPath, load_clip, save_clip
from consmimic.motions.files import check_is_new
from consmimic.motions.operations import trimmed


@dataclass(frozen=True)
class Trim:
    """Keep a part of a clip."""

    clip: ClipPath
    """A clip."""
    output: NewPath
    """A new .npz."""
    start: float = 0.0
    """Seconds from the clip's start to the first frame that is kept."""
    end: Annotated[float | None, tyro.conf.arg(metavar="SECONDS", help_behavior_hint="")] = None
    """Seconds from the clip's start to the last frame that is kept. Default: the clip's end."""

    def run(self) -> int:
        check_is_new(self.output)
        save_clip(trimmed(load_clip(self.clip), self.start, self.end), self.output)
        return 0
