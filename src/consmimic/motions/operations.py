"""What can be done with clips: mirror, trim, join, slow down, sample states. All are pure: a clip in, a clip out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.method.symmetry import Normal, SignedPermutation, axial, polar
from consmimic.motions import kinematics, rotation
from consmimic.motions.clip import Clip
from consmimic.motions.files import write_new

Array = NDArray[np.float64]


# ---------------------------------------------------------------- mirror


@dataclass(frozen=True, eq=False)
class Reflection:
    """A mirror of the world, and what it makes of a robot: see :func:`consmimic.robots.mirror.reflection_of`."""

    normal: Normal
    joints: SignedPermutation
    bodies: SignedPermutation
    body_turns: Array  # (B, 4), of each body against the reflected frame of its partner


def mirrored(clip: Clip, reflection: Reflection) -> Clip:
    """The clip as seen in the mirror: x̂ = M x of positions, −M of what turns; left and right limbs change places."""
    if reflection.joints.width != len(clip.joint_names) or reflection.bodies.width != len(clip.body_names):
        raise UserError(f"clip '{clip.source}' has other joints or bodies than the mirror")
    vectors, turns = _applied(polar(reflection.normal)), _applied(axial(reflection.normal))
    joints, bodies = _applied(reflection.joints), reflection.bodies.index.numpy()
    quaternions = clip.body_quat_w[:, bodies].copy()
    quaternions[..., 1:] = turns(quaternions[..., 1:])
    return replace(
        clip,
        joint_pos=joints(clip.joint_pos),
        joint_vel=joints(clip.joint_vel),
        body_pos_w=vectors(clip.body_pos_w[:, bodies]),
        body_quat_w=rotation.product(quaternions, reflection.body_turns),
        body_lin_vel_w=vectors(clip.body_lin_vel_w[:, bodies]),
        body_ang_vel_w=turns(clip.body_ang_vel_w[:, bodies]),
        source=f"mirrored: {clip.source}",
    )


def _applied(mirror: SignedPermutation):
    index, sign = mirror.index.numpy(), mirror.sign.numpy().astype(np.float64)
    return lambda values: sign * values[..., index]


# ---------------------------------------------------------------- time


def trimmed(clip: Clip, start: float = 0.0, end: float | None = None) -> Clip:
    """From ``start`` to ``end`` seconds, to the nearest frames, both included."""
    last = clip.seconds if end is None else end
    if not 0.0 <= start <= last <= clip.seconds + 0.5 / clip.fps:
        raise UserError(
            f"clip '{clip.source}' cannot be trimmed to {start:g} … {last:g} s; it lasts from 0 to {clip.seconds:g} s"
        )
    kept = slice(round(start * clip.fps), min(round(last * clip.fps), len(clip) - 1) + 1)
    return replace(clip, **{name: getattr(clip, name)[kept] for name in _MOTION})


def slowed_down(clip: Clip, factor: float) -> Clip:
    """The same motion in ``factor`` times the time, at the same frame rate; below 1 it is faster."""
    if not 0.05 <= factor <= 20.0:
        raise UserError(f"a factor of {factor:g} is not one for slowing down; valid are 0.05 to 20")
    slower = {name: getattr(clip, name) / factor for name in _VELOCITIES}
    return replace(clip, fps=clip.fps / factor, **slower).resampled(clip.fps)


_VELOCITIES = ("joint_vel", "body_lin_vel_w", "body_ang_vel_w")
_MOTION = ("joint_pos", "body_pos_w", "body_quat_w", *_VELOCITIES)


# ---------------------------------------------------------------- joining


@dataclass(frozen=True)
class Seam:
    """What does not fit where two clips were joined; position and heading of the base do, as they were made to."""

    second: float
    joint: str
    joint_jump: float  # rad, the largest
    height_jump: float  # m
    tilt_jump: float  # rad


def joined(clips: Sequence[Clip], root: str | None) -> tuple[Clip, tuple[Seam, ...]]:
    """One clip after the other, each carried and turned so that its base starts where the one before ends.

    The last frame of a clip and the first of the next become one, so that times add up; its velocities are the mean.
    ``root``: the base that moves, or None if it is bolted down. Joints and bodies are those of the first clip.
    """
    if not clips:
        raise UserError("name the clips to be joined")
    whole, seams = clips[0], []
    parts: list[Clip] = [whole]
    for clip in clips[1:]:
        before = parts[-1]
        following = _matched(clip, whole)
        if root is not None:
            following = _carried(following, before, root)
        seams.append(_seam(before, following, root, sum(part.seconds for part in parts)))
        middle = {name: 0.5 * (getattr(before, name)[-1:] + getattr(following, name)[:1]) for name in _VELOCITIES}
        parts[-1] = replace(
            before, **{name: np.concatenate([getattr(before, name)[:-1], middle[name]]) for name in _VELOCITIES}
        )
        parts.append(following)
    arrays = {
        name: np.concatenate([getattr(part, name)[min(number, 1) :] for number, part in enumerate(parts)])
        for name in _MOTION
    }
    return replace(whole, **arrays, source="joined: " + " + ".join(clip.source for clip in clips)), tuple(seams)


def _matched(clip: Clip, first: Clip) -> Clip:
    """With the joints and bodies of the first clip, at its frame rate."""
    missing = [name for name in first.body_names if name not in clip.body_names]
    if missing:
        raise UserError(f"clip '{clip.source}' lacks body {', '.join(missing)} of '{first.source}'")
    if len(clip.joint_names) != len(first.joint_names):
        raise UserError(
            f"clip '{clip.source}' has {len(clip.joint_names)} joints, '{first.source}' {len(first.joint_names)}"
        )
    clip = clip.with_joints(first.joint_names).resampled(first.fps)
    columns = [clip.body(name) for name in first.body_names]
    bodies = ("body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w")
    return replace(clip, body_names=first.body_names, **{name: getattr(clip, name)[:, columns] for name in bodies})


def _carried(clip: Clip, before: Clip, root: str) -> Clip:
    """Turned about the vertical and moved along the ground."""
    body = before.body(root)
    turn = rotation.heading(before.body_quat_w[-1, body]) - rotation.heading(clip.body_quat_w[0, body])
    about_z = np.array([np.cos(0.5 * turn), 0.0, 0.0, np.sin(0.5 * turn)])
    positions = rotation.rotate(about_z, clip.body_pos_w)
    way = before.body_pos_w[-1, body] - positions[0, body]
    return replace(
        clip,
        body_pos_w=positions + way * [1.0, 1.0, 0.0],
        body_quat_w=rotation.product(about_z, clip.body_quat_w),
        body_lin_vel_w=rotation.rotate(about_z, clip.body_lin_vel_w),
        body_ang_vel_w=rotation.rotate(about_z, clip.body_ang_vel_w),
    )


def _seam(before: Clip, after: Clip, root: str | None, second: float) -> Seam:
    jumps = np.abs(after.joint_pos[0] - before.joint_pos[-1])
    worst = int(jumps.argmax()) if len(jumps) else 0
    height = tilt = 0.0
    if root is not None:
        body = before.body(root)
        height = float(abs(after.body_pos_w[0, body, 2] - before.body_pos_w[-1, body, 2]))
        cosine = abs(float(after.body_quat_w[0, body] @ before.body_quat_w[-1, body]))
        tilt = 2.0 * float(np.arccos(min(cosine, 1.0)))
    name = before.joint_names[worst] if len(jumps) else "none"
    return Seam(second, name, float(jumps[worst]) if len(jumps) else 0.0, height, tilt)


# ---------------------------------------------------------------- states to start from


@dataclass(frozen=True, eq=False)
class ResetStates:
    """States of a robot, drawn from clips, to start episodes in."""

    joint_names: tuple[str, ...]
    joint_pos: Array  # (N, J)
    joint_vel: Array  # (N, J)
    clip: NDArray[np.int64]  # (N,), which clip it is from
    second: Array  # (N,), and when in it
    root: str | None = None  # nothing of it where it is bolted down
    root_pos: Array | None = None  # (N, 3)
    root_quat: Array | None = None  # (N, 4)
    root_lin_vel: Array | None = None  # (N, 3), in the world
    root_ang_vel: Array | None = None  # (N, 3), in the world

    def save(self, path: Path) -> None:
        """As an npz, with what there is."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        arrays: dict[str, Any] = {name: np.asarray(value) for name, value in values.items() if value is not None}
        write_new(path, lambda file: np.savez_compressed(file, **arrays))


def reset_states(clips: Sequence[Clip], root: str | None, count: int, generator: torch.Generator) -> ResetStates:
    """``count`` states, at times drawn evenly over all that the clips last, between frames as well as on them.

    ``root``: the base that moves, or None if it is bolted down.
    """
    if not clips:
        raise UserError("name the clips to draw states from")
    if count < 1:
        raise UserError(f"{count} states; at least 1 is needed")
    first = clips[0]
    seconds = np.array([clip.seconds for clip in clips])
    ends = np.cumsum(seconds)
    drawn = torch.rand(count, generator=generator, dtype=torch.float64).numpy() * ends[-1]
    chosen = np.minimum(np.searchsorted(ends, drawn, side="right"), len(clips) - 1)
    times = drawn - (ends - seconds)[chosen]
    sizes = {"joint_pos": len(first.joint_names), "joint_vel": len(first.joint_names)}
    sizes |= {} if root is None else {"root_pos": 3, "root_quat": 4, "root_lin_vel": 3, "root_ang_vel": 3}
    states = {name: np.empty((count, size)) for name, size in sizes.items()}
    for number, clip in enumerate(clips):
        of_clip = chosen == number
        frames = times[of_clip] * clip.fps
        clip = clip.with_joints(first.joint_names)
        for name, found in states.items():
            if name.startswith("joint"):
                found[of_clip] = kinematics.interpolate(getattr(clip, name), frames)
            elif root is not None:
                values = getattr(clip, name.replace("root", "body") + "_w")[:, clip.body(root)]
                between = kinematics.slerp if name == "root_quat" else kinematics.interpolate
                found[of_clip] = between(values, frames)
    return ResetStates(joint_names=first.joint_names, root=root, **states, clip=chosen.astype(np.int64), second=times)
