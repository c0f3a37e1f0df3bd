"""What the subcommands of ``consmimic motions`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from consmimic.errors import UserError
from consmimic.motions import Clip

ClipPath = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CLIP")]
NewPath = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]
ClipPaths = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="CLIP ...", help_behavior_hint="")]
NewFile = Annotated[Path, tyro.conf.arg(metavar="OUT")]
"""As a flag, after any number of positional arguments."""
RobotName = Annotated[str, tyro.conf.arg(metavar="ROBOT")]
Words = Annotated[str | None, tyro.conf.arg(metavar="NAME,NAME,...", help_behavior_hint="")]
"""Names in one word, so that a positional argument may follow."""


def load_clip(path: Path) -> Clip:
    """A clip of ours; another dialect's file is refused with the way out."""
    try:
        return Clip.load(path)
    except UserError as error:
        if not path.is_file():
            raise
        raise UserError(f"{error}. To bring in other formats: consmimic motions convert") from None


def save_clip(clip: Clip, path: Path) -> None:
    """Write it, and say what it is."""
    clip.save(path)
    print(
        f"{path}: {len(clip)} frames at {clip.fps:g} Hz ({clip.seconds:.2f} s), {len(clip.joint_names)} joints, "
        f"{len(clip.body_names)} bodies"
    )


def names(words: str | None) -> tuple[str, ...] | None:
    if words is None:
        return None
    return tuple(word.strip() for word in words.split(",") if word.strip())
