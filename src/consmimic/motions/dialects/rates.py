"""Where the frame rate of a file comes from."""

from __future__ import annotations

from consmimic.errors import UserError


def frame_rate(in_file: float | None, asked: float | None, what: str) -> tuple[float, tuple[str, ...]]:
    """The rate, and a warning where the user and the file differ: the user is believed."""
    if asked is None:
        if in_file is None:
            raise UserError(
                f"{what} does not say its frame rate: give --fps, or --source-fps to `consmimic motions retarget` "
                "(retargeted LAFAN1 has 30)"
            )
        return in_file, ()
    if in_file is not None and abs(asked - in_file) > 1e-3 * asked:
        return asked, (f"the file says {in_file:g} Hz; {asked:g} Hz are taken, as asked for",)
    return asked, ()
