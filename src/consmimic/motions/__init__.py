"""Motion clips: the record and its npz, and the generators of the built-in demonstrations."""

from consmimic.motions.clip import Clip

__all__ = ["Clip"]
