"""Named vectors: widths and slices come from names, never from hand-kept indices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from consmimic.errors import unknown


@dataclass(frozen=True)
class Layout:
    """The parts of a vector, by name, in order."""

    parts: Mapping[str, int]

    @property
    def width(self) -> int:
        return sum(self.parts.values())

    @cached_property
    def slices(self) -> dict[str, slice]:
        slices, start = {}, 0
        for name, width in self.parts.items():
            slices[name] = slice(start, start + width)
            start += width
        return slices

    def part(self, vector: Tensor, name: str) -> Tensor:
        """The named part of (…, width) vectors."""
        if name not in self.parts:
            raise unknown("part", name, self.parts)
        return vector[..., self.slices[name]]

    def split(self, vector: Tensor) -> dict[str, Tensor]:
        """All parts of (…, width) vectors, by name."""
        return {name: vector[..., where] for name, where in self.slices.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)
