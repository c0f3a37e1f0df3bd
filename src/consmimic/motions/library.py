"""Many clips as one: hours of motion on disk, a batch of it in memory.

All frames lie one after the other in one file of float32, which is mapped, not read: opening takes as long for ten
hours as for ten seconds. A draw costs the same however many clips there are.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from consmimic.errors import UserError
from consmimic.motions.clip import Clip
from consmimic.motions.files import check_is_new, making_of, reading

SCHEMA_VERSION = 1
_FRAMES, _ABOUT = "frames.f32", "library.json"
_PARTS = ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w")
_LARGEST_ABOUT = 1 << 28


@dataclass(frozen=True)
class Layout:
    """What the numbers of a frame are."""

    joint_names: tuple[str, ...]
    body_names: tuple[str, ...]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        joints, bodies = len(self.joint_names), len(self.body_names)
        return dict(
            zip(_PARTS, ((joints,), (joints,), (bodies, 3), (bodies, 4), (bodies, 3), (bodies, 3)), strict=True)
        )

    @property
    def width(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes.values())


@dataclass(frozen=True, eq=False)
class FrameBatch:
    """N frames; each part is a view of ``rows``."""

    layout: Layout
    rows: Tensor  # (N, width)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def joint_pos(self) -> Tensor:  # (N, J)
        return self._part("joint_pos")

    @property
    def joint_vel(self) -> Tensor:  # (N, J)
        return self._part("joint_vel")

    @property
    def body_pos_w(self) -> Tensor:  # (N, B, 3)
        return self._part("body_pos_w")

    @property
    def body_quat_w(self) -> Tensor:  # (N, B, 4)
        return self._part("body_quat_w")

    @property
    def body_lin_vel_w(self) -> Tensor:  # (N, B, 3)
        return self._part("body_lin_vel_w")

    @property
    def body_ang_vel_w(self) -> Tensor:  # (N, B, 3)
        return self._part("body_ang_vel_w")

    def _part(self, name: str) -> Tensor:
        start = 0
        for part, shape in self.layout.shapes.items():
            width = int(np.prod(shape))
            if part == name:
                return self.rows[:, start : start + width].unflatten(1, shape)
            start += width
        raise AssertionError(name)


@dataclass(frozen=True, eq=False)
class AliasTable:
    """Draws from n outcomes with given probabilities, each draw in O(1) (Walker 1977, built as by Vose 1991)."""

    keep: Tensor  # (n,), the probability of staying at the outcome that was hit
    other: Tensor  # (n,), where to go otherwise

    @staticmethod
    def of(weights: Sequence[float]) -> AliasTable:
        n, total = len(weights), float(sum(weights))
        scaled = [weight * n / total for weight in weights]
        keep, other = [1.0] * n, list(range(n))
        small = [i for i, weight in enumerate(scaled) if weight < 1.0]
        large = [i for i, weight in enumerate(scaled) if weight >= 1.0]
        while small and large:
            lesser, greater = small.pop(), large[-1]
            keep[lesser], other[lesser] = scaled[lesser], greater
            scaled[greater] -= 1.0 - scaled[lesser]
            if scaled[greater] < 1.0:
                small.append(large.pop())
        if any(weights[i] == 0.0 for i in small):  # rounding left an outcome over that must never be drawn
            likeliest = max(range(n), key=lambda i: weights[i])
            for i in small:
                if weights[i] == 0.0:
                    keep[i], other[i] = 0.0, likeliest
        return AliasTable(torch.tensor(keep, dtype=torch.float64), torch.tensor(other))

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Outcomes, (count,)."""
        hit = torch.rand(count, generator=generator, dtype=torch.float64) * len(self.keep)
        outcome = hit.to(torch.int64).clamp_(max=len(self.keep) - 1)
        return torch.where(hit - outcome < self.keep[outcome], outcome, self.other[outcome])


class MotionLibrary:
    """Clips of one robot at one frame rate. Build it once, then open it; see :meth:`build`."""

    def __init__(
        self,
        *,
        layout: Layout,
        fps: float,
        sources: tuple[str, ...],
        lengths: Tensor,  # (C,), frames of each clip
        weights: tuple[float, ...] | None,
        rows: Tensor,  # (sum of the lengths, width)
    ) -> None:
        self.layout, self.fps, self.sources, self.lengths = layout, fps, sources, lengths
        self._rows = rows
        self._starts = torch.cumsum(lengths, 0) - lengths
        steps = (lengths - 1).tolist()
        if weights is not None:
            _check_weights(weights, len(sources))
        self.weights = tuple(float(length) for length in lengths.tolist()) if weights is None else weights
        of_steps = [float(step) for step in steps] if weights is None else list(weights)
        usable = [weight if step > 0 else 0.0 for weight, step in zip(of_steps, steps, strict=True)]
        self._states = AliasTable.of(self.weights)
        self._transitions = AliasTable.of(usable) if sum(usable) > 0.0 else None

    @staticmethod
    def build(
        folder: Path, clips: Iterable[Clip], *, fps: float, weights: Sequence[float] | None = None
    ) -> MotionLibrary:
        """Write the clips into a new folder, one after the other, and open it.

        ``fps``: all clips are resampled to it; take the control rate, as transitions are a frame apart.
        ``weights``: how often each clip is drawn from; without them every second of motion is as likely as any other.
        Joints and bodies are those of the first clip, matched by name.
        """
        check_is_new(folder)
        making = making_of(folder)
        try:
            making.mkdir()
            _write(making, clips, fps, weights)
            MotionLibrary.open(making)
            check_is_new(folder)
            making.rename(folder)
        except OSError as error:
            raise UserError(f"{folder} cannot be written: {error.strerror or error}") from None
        finally:
            shutil.rmtree(making, ignore_errors=True)
        return MotionLibrary.open(folder)

    @staticmethod
    def open(folder: Path) -> MotionLibrary:
        about = _about(folder)
        try:
            layout = Layout(tuple(map(str, about["joint_names"])), tuple(map(str, about["body_names"])))
            fps, lengths = float(about["fps"]), [int(clip["frames"]) for clip in about["clips"]]
            sources = tuple(str(clip["source"]) for clip in about["clips"])
            weights = None if about["weights"] is None else tuple(float(weight) for weight in about["weights"])
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{folder / _ABOUT} is damaged: {error}") from None
        if not lengths or min(lengths) < 1 or layout.width == 0:
            raise UserError(f"{folder / _ABOUT} is damaged: it has no frames")
        path, size = folder / _FRAMES, sum(lengths) * layout.width
        if not path.is_file() or path.stat().st_size != 4 * size:
            found = path.stat().st_size if path.is_file() else 0
            raise UserError(f"{path} has {found} bytes, but {_ABOUT} tells of {4 * size}: build the library anew")
        rows = torch.from_file(str(path), shared=False, size=size, dtype=torch.float32).view(-1, layout.width)
        return MotionLibrary(
            layout=layout, fps=fps, sources=sources, lengths=torch.tensor(lengths), weights=weights, rows=rows
        )

    def weighted(self, weights: Sequence[float]) -> MotionLibrary:
        """The same clips, drawn from as often as the weights say."""
        return MotionLibrary(
            layout=self.layout,
            fps=self.fps,
            sources=self.sources,
            lengths=self.lengths,
            weights=tuple(weights),
            rows=self._rows,
        )

    def __len__(self) -> int:
        """Frames."""
        return len(self._rows)

    @property
    def seconds(self) -> float:
        return (len(self) - len(self.sources)) / self.fps

    def sample_states(self, count: int, generator: torch.Generator) -> FrameBatch:
        """Frames to start episodes in (reference-state initialisation)."""
        clips = self._states.draw(count, generator)
        return self._frames(self._places(clips, self.lengths[clips], generator))

    def sample_transitions(self, count: int, generator: torch.Generator) -> tuple[FrameBatch, FrameBatch]:
        """(s, s'), a frame apart, never across the end of a clip."""
        places = self.sample_transition_places(count, generator)
        return self._frames(places), self._frames(places + 1)

    def sample_transition_places(self, count: int, generator: torch.Generator) -> Tensor:
        """Where s is among all frames; s' is the next one."""
        if self._transitions is None:
            raise UserError("no clip with a weight above 0 has two frames, so there are no transitions")
        clips = self._transitions.draw(count, generator)
        return self._places(clips, self.lengths[clips] - 1, generator)

    def clip_of(self, places: Tensor) -> Tensor:
        """The clip of each frame."""
        return torch.searchsorted(torch.cumsum(self.lengths, 0), places, right=True)

    def _places(self, clips: Tensor, choices: Tensor, generator: torch.Generator) -> Tensor:
        within = torch.rand(len(clips), generator=generator, dtype=torch.float64).mul_(choices).to(torch.int64)
        return self._starts[clips] + torch.minimum(within, choices - 1)

    def _frames(self, places: Tensor) -> FrameBatch:
        return FrameBatch(self.layout, self._rows.index_select(0, places))


def _write(folder: Path, clips: Iterable[Clip], fps: float, weights: Sequence[float] | None) -> None:
    layout: Layout | None = None
    about: list[dict[str, Any]] = []
    with (folder / _FRAMES).open("wb") as file:
        for clip in clips:
            layout = layout or Layout(clip.joint_names, clip.body_names)
            clip = clip.resampled(fps)
            file.write(_rows(clip, layout).tobytes())
            about.append({"source": clip.source, "frames": len(clip)})
    if layout is None:
        raise UserError("a motion library needs at least one clip")
    if weights is not None:
        _check_weights(weights, len(about))
    content = {
        "schema_version": SCHEMA_VERSION,
        "fps": fps,
        "joint_names": layout.joint_names,
        "body_names": layout.body_names,
        "weights": None if weights is None else [float(weight) for weight in weights],
        "clips": about,
    }
    (folder / _ABOUT).write_text(json.dumps(content))


def _rows(clip: Clip, layout: Layout) -> np.ndarray:
    """The clip's frames as the layout has them, (T, width)."""
    clip = clip.with_joints(layout.joint_names)
    bodies = [clip.body(name) for name in layout.body_names]
    parts = [getattr(clip, name) for name in _PARTS]
    chosen = [part if part.ndim == 2 else part[:, bodies] for part in parts]
    return np.concatenate([part.reshape(len(clip), -1) for part in chosen], axis=1).astype(np.float32)


def _about(folder: Path) -> dict[str, Any]:
    if not (folder / _ABOUT).is_file():
        raise UserError(f"{folder} is no motion library: it has no {_ABOUT}")
    with reading(folder / _ABOUT) as file:
        text = file.read(_LARGEST_ABOUT)
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        raise UserError(f"{folder / _ABOUT} is not valid JSON: build the library anew") from None
    if not isinstance(about, dict):
        raise UserError(f"{folder / _ABOUT} is damaged: build the library anew")
    if about.get("schema_version") != SCHEMA_VERSION:
        version = about.get("schema_version")
        raise UserError(f"{folder} is of schema {version}; this version reads {SCHEMA_VERSION}")
    return about


def _check_weights(weights: Sequence[float], clips: int) -> None:
    if len(weights) != clips:
        raise UserError(f"{len(weights)} weights for {clips} clips; each needs one")
    if not all(np.isfinite(weight) and weight >= 0.0 for weight in weights) or sum(weights) <= 0.0:
        raise UserError("weights of clips must be 0 or more, and one of them more than 0")
