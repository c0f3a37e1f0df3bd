"""From what a file says to a clip of a robot, and from a clip to a table."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import mujoco
import numpy as np
import yaml

from consmimic.errors import UserError, unknown
from consmimic.motions import forward, kinematics, rotation
from consmimic.motions.clip import Clip
from consmimic.motions.dialects import Recording
from consmimic.motions.dialects.recording import Array, resampled
from consmimic.motions.files import memory_budget, reading, shortened, write_new
from consmimic.motions.limits import beyond_range

_LARGEST_MAPPING = 1 << 16
_MANY_TURNS = 15.0
"""rad: no joint turns so far."""
_PERCENT = 0.2
"""Share of its own size by which a velocity may miss the difference of positions before a user should look at it."""


@dataclass(frozen=True)
class Conversion:
    clip: Clip
    notes: tuple[str, ...]
    """What was found out on the way."""
    warnings: tuple[str, ...]
    """What a user should look at."""


def convert(
    recording: Recording,
    model: mujoco.MjModel,
    *,
    robot: str,
    joint_names: tuple[str, ...],
    bodies: tuple[str, ...] | None = None,
    mapping: Mapping[str, str] | None = None,
    fps: float | None = None,
    most_bytes: int | None = None,
) -> Conversion:
    """A clip of the robot: joints by name, bodies by forward kinematics, velocities by differences.

    ``mapping`` leads from the file's joint names to the robot's. ``bodies``: all of the robot if not given.
    ``most_bytes``: refuse to make a clip that would take more memory.
    """
    recording = _renamed(recording, mapping or {}, robot, joint_names)
    columns = _columns(recording, robot, joint_names)
    root = forward.root_of(model, joint_names)
    floating = forward.is_floating(model, root)
    bodies = forward.bodies_of(model, root) if bodies is None else bodies
    rate = recording.fps if fps is None else fps
    _check_size(recording, rate, len(joint_names), len(bodies), most_bytes)
    if floating and recording.root_pos is None:
        raise UserError(f"{recording.source} does not say where the base '{root}' of {robot} is, and it moves freely")
    if recording.root_pos is not None and recording.root_quat is not None and not floating:
        _check_is_bolted(recording, robot)

    arrays = resampled(recording, rate)
    clip = forward.posed_clip(
        model,
        fps=rate,
        joint_names=joint_names,
        joint_pos=np.ascontiguousarray(arrays["joint_pos"][:, columns]),
        base_pos=arrays.get("root_pos") if floating else None,
        base_quat=arrays.get("root_quat") if floating else None,
        bodies=bodies,
        source=recording.source,
    )
    notes, warnings = list(recording.notes), list(recording.warnings)
    assert recording.joint_names is not None
    unused = [name for name in recording.joint_names if name not in joint_names]
    if unused:
        notes.append(f"joints that {robot} does not have were left out: {shortened(unused)}")
    if rate != recording.fps:
        notes.append(f"resampled from {recording.fps:g} to {rate:g} Hz, orientations by slerp")
    beyond = _beyond_limits(clip, model)
    if beyond:
        warnings.append(beyond)
    for compare in (_compared_joint_velocities, _compared_base_velocities, _compared_bodies):
        note, is_worrying = compare(recording, model, columns, joint_names, floating)
        if note:
            (warnings if is_worrying else notes).append(note)
    return Conversion(clip, tuple(notes), tuple(warnings))


def read_mapping(path: Path) -> dict[str, str]:
    """Names in the file → names of the robot, from YAML or JSON."""
    with reading(path, "mapping file") as file:
        text = file.read(_LARGEST_MAPPING + 1)
    if len(text) > _LARGEST_MAPPING:
        raise UserError(f"{path} is too large for a mapping of joint names")
    try:
        content = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise UserError(f"{path} is no valid {'JSON' if path.suffix == '.json' else 'YAML'}: {error}") from None
    if not isinstance(content, dict) or not all(isinstance(word, str) for pair in content.items() for word in pair):
        raise UserError(f"{path} must map joint names of the file to the robot's, a line each: file_name: robot_name")
    return content


def write_table(clip: Clip, model: mujoco.MjModel, path: Path) -> None:
    """``x y z qx qy qz qw q…`` without a header: what other tools read, and :func:`convert` too."""
    root = forward.root_of(model, clip.joint_names)
    if root in clip.body_names:
        base_pos, base_quat = clip.body_pos_w[:, clip.body(root)], clip.body_quat_w[:, clip.body(root)]
    elif forward.is_floating(model, root):
        raise UserError(f"clip '{clip.source}' does not say where the base '{root}' is; its bodies: {clip.body_names}")
    else:
        positions, quaternions = forward.body_poses(model, (root,), clip.joint_names, clip.joint_pos[:1])
        base_pos, base_quat = np.tile(positions[:, 0], (len(clip), 1)), np.tile(quaternions[:, 0], (len(clip), 1))

    def write(file: IO[bytes]) -> None:
        for position, quaternion, joints in zip(base_pos, base_quat, clip.joint_pos, strict=True):
            numbers = (*position, *quaternion[[1, 2, 3, 0]], *joints)
            file.write((",".join(f"{number:.12g}" for number in numbers) + "\n").encode())

    write_new(path, write)


def conversion_budget(path: Path) -> int:
    """Bytes that the clip of a file may take: what reading it holds is a part of the budget too."""
    return memory_budget(path) * 3 // 4


def _renamed(recording: Recording, mapping: Mapping[str, str], robot: str, joint_names: tuple[str, ...]) -> Recording:
    if recording.joint_names is None:
        count = recording.joint_pos.shape[1]
        if count != len(joint_names):
            raise UserError(
                f"{recording.source} has {count} joints without names, and {robot} has {len(joint_names)}: if "
                f"{robot}'s are among them, name all in the file's order with --joint-names; to carry a motion over "
                f"from another body, use `consmimic motions retarget`"
            )
        raise UserError(
            f"{recording.source} has {count} joints without names, as many as {robot}: name them in the file's order "
            f"with --joint-names, or say --joint-names robot if it is this: {', '.join(joint_names)}"
        )
    for name, target in mapping.items():
        if name not in recording.joint_names:
            raise unknown(f"joint of {recording.source} in the mapping", name, recording.joint_names)
        if target not in joint_names:
            raise unknown(f"joint of {robot} in the mapping", target, joint_names)
    if not mapping:
        return recording
    return replace(recording, joint_names=tuple(mapping.get(name, name) for name in recording.joint_names))


def _columns(recording: Recording, robot: str, joint_names: tuple[str, ...]) -> list[int]:
    """Where the robot's joints are among the file's."""
    names = recording.joint_names
    assert names is not None
    missing = [name for name in joint_names if name not in names]
    if not missing:
        return [names.index(name) for name in joint_names]
    balls = f" and ball joints {shortened(recording.ball_names)}" if recording.ball_names else ""
    if len(missing) < len(joint_names):
        raise UserError(
            f"{recording.source} lacks the joints {shortened(missing)} of {robot}; it has {shortened(names, 40)}"
            f"{balls}: if they have other names there, give --mapping or --joint-names; if it is a motion "
            "of another robot, use `consmimic motions retarget`"
        )
    raise UserError(
        f"{recording.source} is a motion of {recording.subject}, with joints {shortened(names)}{balls}, and of "
        f"{robot}'s joints it has none ({shortened(joint_names, 3)}): to carry it over to {robot}, use "
        f"`consmimic motions retarget`; if it is {robot} under other names, give --mapping or --joint-names"
    )


def _check_size(recording: Recording, fps: float, joints: int, bodies: int, most_bytes: int | None) -> None:
    frames = (recording.seconds * fps + 1) * 1.3  # what checks hold besides
    size = frames * 8 * (2 * joints + 13 * bodies)
    if most_bytes is not None and size > most_bytes:
        raise UserError(
            f"{recording.source}: a clip of {frames / 1.3:.0f} frames, {joints} joints and {bodies} bodies would take "
            f"{size / 1e6:.0f} MB; valid are up to {most_bytes / 1e6:.0f} MB for this file: split it, or name fewer "
            "with --bodies"
        )


def _check_is_bolted(recording: Recording, robot: str) -> None:
    assert recording.root_pos is not None
    way = float(np.ptp(recording.root_pos, axis=0).max())
    if way > 0.01:
        raise UserError(
            f"{recording.source}: its base moves by {way:.2f} m, but {robot} is bolted to the world; "
            "to carry it over, use `consmimic motions retarget`"
        )


def _beyond_limits(clip: Clip, model: mujoco.MjModel) -> str:
    beyond = beyond_range(model, clip.joint_names, clip.joint_pos)
    if beyond.max() <= 1e-3:
        return ""
    frame, joint = np.unravel_index(int(beyond.argmax()), beyond.shape)
    share = float((beyond > 1e-3).any(axis=1).mean())
    degrees = "; are these degrees? Radians are needed" if np.abs(clip.joint_pos).max() > _MANY_TURNS else ""
    return (
        f"joints are beyond their limits in {share:.0%} of the frames: {clip.joint_names[joint]} by "
        f"{beyond[frame, joint]:.2f} rad in frame {frame}{degrees}"
    )


def _compared_joint_velocities(
    recording: Recording, _model: mujoco.MjModel, columns: list[int], joint_names: tuple[str, ...], _floating: bool
) -> tuple[str, bool]:
    if recording.joint_vel is None or len(recording) < 3:
        return "", False
    found = recording.joint_vel[:, columns]
    made = kinematics.linear_velocity(recording.joint_pos[:, columns], recording.fps)
    off = np.abs(found - made)
    joint = joint_names[int(off.max(axis=0).argmax())]
    share = _rms(found - made) / max(_rms(made), 1e-3)
    note = (
        f"joint velocities: by differences of the positions; those in the file are off by {share:.0%} "
        f"(at most {off.max():.2g} rad/s, {joint})"
    )
    scale = float((found * made).sum() / max((made**2).sum(), 1e-12))
    if share > _PERCENT and abs(scale - 1.0) > 0.1 and _rms(found - scale * made) < _PERCENT * _rms(found):
        note += f"; they would fit a frame rate of {recording.fps * scale:.1f} Hz: check --fps"
    return note, share > _PERCENT


def _compared_base_velocities(
    recording: Recording, _model: mujoco.MjModel, _columns: list[int], _names: tuple[str, ...], floating: bool
) -> tuple[str, bool]:
    if not floating or recording.root_lin_vel is None or recording.root_pos is None or len(recording) < 3:
        return "", False
    assert recording.root_quat is not None
    world = kinematics.linear_velocity(recording.root_pos, recording.fps)
    own = rotation.rotate(rotation.inverse(recording.root_quat), world)
    off = {"world": recording.root_lin_vel - world, "base's own": recording.root_lin_vel - own}
    frame = min(off, key=lambda name: _rms(off[name]))
    share = _rms(off[frame]) / max(_rms(world), 1e-2)
    note = (
        f"base velocity: by differences of the positions; that in the file, in the {frame} frame, is off by "
        f"{share:.0%} (at most {np.abs(off[frame]).max():.2g} m/s)"
    )
    return note, share > _PERCENT


def _compared_bodies(
    recording: Recording, model: mujoco.MjModel, columns: list[int], joint_names: tuple[str, ...], floating: bool
) -> tuple[str, bool]:
    """The file's bodies against the robot's model: another model, or joints mixed up, show here."""
    known = {str(model.body(body).name) for body in range(1, model.nbody)}
    shared = tuple(name for name in recording.body_names if name in known)
    if recording.body_pos is None or not shared:
        return "", False
    some = np.unique(np.linspace(0, len(recording) - 1, 50).astype(int))
    base_pos = recording.root_pos[some] if floating and recording.root_pos is not None else None
    base_quat = recording.root_quat[some] if floating and recording.root_quat is not None else None
    joint_pos = recording.joint_pos[some][:, columns]
    positions, _ = forward.body_poses(model, shared, joint_names, joint_pos, base_pos, base_quat)
    theirs = recording.body_pos[some][:, [recording.body_names.index(name) for name in shared]]
    off = np.linalg.norm(positions - theirs, axis=-1).max(axis=0)
    worst = shared[int(off.argmax())]
    note = f"bodies: by the robot's model; those in the file are off by {1000 * off.max():.1f} mm at most ({worst})"
    if off.max() > 0.02:
        return f"{note}: another model, or joints mixed up", True
    return note, False


def _rms(values: Array) -> float:
    return float(np.sqrt((np.asarray(values, dtype=np.float64) ** 2).mean()))
