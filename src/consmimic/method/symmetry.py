"""Mirrors of named vectors, and style that does not prefer one side (Eqs. 10, 11).

A mirror L_g only ever swaps numbers and turns signs. It is put together from blocks, one per part of a vector: see
:func:`polar`, :func:`axial`, :func:`planar_velocity`, :func:`renamed`, :func:`mirror_layout`. The planes are those
through the robot's base, with the normal ``x`` (front and back change places) or ``y`` (left and right).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from consmimic.errors import UserError, unknown

Normal = Literal["x", "y"]


@dataclass(frozen=True, eq=False)
class SignedPermutation:
    """y_i = sign_i · x_{index_i}: a mirror of one vector."""

    index: Tensor  # (d,), of integers
    sign: Tensor  # (d,), of ±1

    def __post_init__(self) -> None:
        index = self.index.to(torch.int64)
        # Integers leave the type of the vectors that they multiply as it is.
        sign = self.sign.to(torch.int8)
        if index.ndim != 1 or not torch.equal(index.sort().values, torch.arange(index.numel(), device=index.device)):
            raise ValueError(f"index {index} is no permutation of 0 to {index.numel() - 1}")
        if sign.shape != index.shape or not torch.equal(self.sign.abs(), torch.ones_like(self.sign)):
            raise ValueError(f"sign {self.sign} is not ±1 for each of {index.numel()} numbers")
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "sign", sign)

    @property
    def width(self) -> int:
        return self.index.numel()

    def __call__(self, x: Tensor) -> Tensor:  # (…, d) → (…, d)
        if x.shape[-1] != self.width:
            raise ValueError(f"a mirror of {self.width} numbers was given vectors of {x.shape[-1]}")
        return self.sign * x[..., self.index]

    def then(self, other: SignedPermutation) -> SignedPermutation:
        """First this one, then the other: x ↦ other(self(x))."""
        return SignedPermutation(self.index[other.index], other.sign * self.sign[other.index])

    @property
    def inverse(self) -> SignedPermutation:
        index = torch.argsort(self.index)
        return SignedPermutation(index, self.sign[index])

    def equals(self, other: SignedPermutation) -> bool:
        return torch.equal(self.index, other.index) and torch.equal(self.sign, other.sign)

    @property
    def is_identity(self) -> bool:
        return self.equals(identity(self.width, self.index.device))

    @property
    def is_involution(self) -> bool:
        """Whether twice is nothing, as with every reflection in a plane."""
        return self.then(self).is_identity

    def to(self, device: torch.device | str) -> SignedPermutation:
        return SignedPermutation(self.index.to(device), self.sign.to(device))


def identity(width: int, device: torch.device | str | None = None) -> SignedPermutation:
    return SignedPermutation(torch.arange(width, device=device), torch.ones(width, dtype=torch.int8, device=device))


def concatenate(blocks: Sequence[SignedPermutation]) -> SignedPermutation:
    """The mirror of a vector of parts, each with its own block."""
    starts = [sum(block.width for block in blocks[:i]) for i in range(len(blocks))]
    return SignedPermutation(
        torch.cat([block.index + start for block, start in zip(blocks, starts, strict=True)]),
        torch.cat([block.sign for block in blocks]),
    )


def separate(mirror: SignedPermutation, widths: Sequence[int]) -> list[SignedPermutation]:
    """The blocks of a mirror that mixes no parts: :func:`concatenate` undone."""
    ends = [sum(widths[: i + 1]) for i in range(len(widths))]
    return [
        SignedPermutation(mirror.index[end - width : end] - (end - width), mirror.sign[end - width : end])
        for width, end in zip(widths, ends, strict=True)
    ]


# ---------------------------------------------------------------- blocks


def _signs(*signs: int) -> SignedPermutation:
    return SignedPermutation(torch.arange(len(signs)), torch.tensor(signs))


def polar(normal: Normal) -> SignedPermutation:
    """M = I − 2nnᵀ: positions, velocities, forces, gravity."""
    return {"x": _signs(-1, 1, 1), "y": _signs(1, -1, 1)}[normal]


def axial(normal: Normal) -> SignedPermutation:
    """det(M) M = −M: angular velocities, torques, axes of rotation."""
    return {"x": _signs(1, -1, -1), "y": _signs(-1, 1, -1)}[normal]


def planar_velocity(normal: Normal) -> SignedPermutation:
    """(v_x, v_y, ω_z), as a velocity command: the first two of a polar vector, the last of an axial one."""
    return {"x": _signs(-1, 1, -1), "y": _signs(1, -1, -1)}[normal]


def renamed(
    names: Sequence[str], sources: Mapping[str, str], signs: Mapping[str, int] | None = None
) -> SignedPermutation:
    """One number per name: its image is sign · the number of its source; 1 where no sign is given."""
    for name in names:
        if name not in sources:
            raise UserError(f"'{name}' has no source to be mirrored from. There are sources of: {', '.join(sources)}")
        if sources[name] not in names:
            raise unknown(f"source of '{name}' in the mirror", sources[name], names)
    index = torch.tensor([names.index(sources[name]) for name in names])
    return SignedPermutation(index, torch.tensor([(signs or {}).get(name, 1) for name in names]))


def of_each(names: SignedPermutation, block: SignedPermutation) -> SignedPermutation:
    """One vector per name, as the positions of the feet: the names change places, and each vector is mirrored."""
    index = names.index[:, None] * block.width + block.index  # (names, d)
    return SignedPermutation(index.flatten(), (names.sign[:, None] * block.sign).flatten())


def mirror_layout(parts: Mapping[str, int], blocks: Mapping[str, SignedPermutation]) -> SignedPermutation:
    """The mirror of a vector of named parts (name → width, in order) from a block for each of them."""
    for name in blocks:
        if name not in parts:
            raise unknown("part in the blocks of the mirror", name, parts)
    for name, width in parts.items():
        if name not in blocks:
            raise UserError(f"the mirror has no block for the part '{name}'; it has: {', '.join(blocks)}")
        if blocks[name].width != width:
            raise UserError(f"the mirror's block for '{name}' has {blocks[name].width} numbers, the part has {width}")
    return concatenate([blocks[name] for name in parts])


# ---------------------------------------------------------------- G


def closure(mirrors: Sequence[SignedPermutation]) -> list[SignedPermutation]:
    """G: the mirrors and all that come of doing them one after the other, without the identity; the given ones first.

    With the identity it is a group, so that Eq. 10's batch and Eq. 11's reward are the same seen in every mirror.
    """
    found: list[SignedPermutation] = []
    waiting = list(mirrors)
    while waiting:
        mirror = waiting.pop(0)
        if mirror.is_identity or any(mirror.equals(other) for other in found):
            continue
        found.append(mirror)
        waiting += [mirror.then(generator) for generator in mirrors]
    return found


# ---------------------------------------------------------------- Eqs. 10, 11


def mirrored_pairs(pairs: Tensor, mirror: SignedPermutation) -> Tensor:
    """L_g(s, s') = (L_g s, L_g s')."""  # (N, 2·d) → (N, 2·d)
    return mirror(pairs.reshape(len(pairs), 2, -1)).reshape(pairs.shape)


def augmented(pairs: Tensor, mirrors: Sequence[SignedPermutation]) -> Tensor:
    """B_sym = B ∪ ⋃_g L_g(B)  (Eq. 10): the pairs first, then each of their mirror images."""
    # (N, 2·d) → ((|G| + 1)·N, 2·d)
    return torch.cat([pairs, *(mirrored_pairs(pairs, mirror) for mirror in mirrors)])


def symmetric_reward(
    score: Callable[[Tensor], Tensor],  # r^s_adv of (N, 2·d) pairs
    pairs: Tensor,  # (N, 2·d)
    mirrors: Sequence[SignedPermutation],
) -> Tensor:  # (N,)
    """r^s_sym = 1/(|G| + 1) · [r^s_adv(s, s') + Σ_g r^s_adv(L_g(s, s'))]  (Eq. 11), in one pass of the score."""
    return score(augmented(pairs, mirrors)).reshape(len(mirrors) + 1, len(pairs)).mean(dim=0)
