"""loco-mujoco's npz (before its version 1): an array ``q_<joint>`` and ``dq_<joint>`` for each joint.

The base hangs on six joints of the pelvis: slides tx (forward), tz (sideways), ty (up), then hinges tilt about y,
list about x, rotation about z. Its height counts from where the model has the pelvis, which the file does not say.
There is no frame rate either; the velocities tell it.
"""

from __future__ import annotations

import numpy as np

from consmimic.errors import UserError
from consmimic.motions import rotation
from consmimic.motions.dialects.dialect import Dialect, ReadOptions
from consmimic.motions.dialects.recording import Array, Recording, check_believable
from consmimic.motions.dialects.source import MotionFile

_BASE = ("pelvis_tx", "pelvis_tz", "pelvis_ty", "pelvis_tilt", "pelvis_list", "pelvis_rotation")
_MOST_JOINTS = 500
_USUAL_RATES = (25.0, 30.0, 50.0, 60.0, 100.0, 120.0, 200.0, 250.0, 500.0, 1000.0)
"""Hz. Velocities are smoothed in these files, so that they fit only to a few percent."""


def recognise(file: MotionFile) -> str | None:
    if file.kind != "npz" or not all(f"q_{joint}" in file.npz for joint in _BASE):
        return None
    return "an npz with an array q_<joint> for each joint, among them q_pelvis_tx"


def read(file: MotionFile, options: ReadOptions) -> Recording:
    npz, what = file.npz, str(file.path)
    keys = [name for name in npz.names if name.startswith("q_")]
    if len(keys) > _MOST_JOINTS:
        raise UserError(f"{what} has {len(keys)} joints: it is damaged")
    joints = tuple(key.removeprefix("q_") for key in keys)
    if not all(name.isprintable() for name in joints):
        raise UserError(f"{what} has joints whose names are damaged")
    frames = npz.shape(keys[0])
    if len(frames) != 1 or frames[0] == 0:
        raise UserError(f"{what}: '{keys[0]}' has shape {frames}, expected (T,)")
    positions, velocities = np.empty((frames[0], len(joints))), np.empty((frames[0], len(joints)))
    has_velocities = all(f"dq_{joint}" in npz for joint in joints)
    for column, joint in enumerate(joints):
        positions[:, column] = _column(file, f"q_{joint}", frames)
        if has_velocities:
            velocities[:, column] = _column(file, f"dq_{joint}", frames)
    for values in (positions, velocities) if has_velocities else (positions,):
        check_believable(values, what)
    fps, note = _frame_rate(positions, velocities if has_velocities else None, options.fps, what)
    base = [joints.index(joint) for joint in _BASE]
    rest = [column for column, joint in enumerate(joints) if joint not in _BASE]
    names = tuple(joints[column] for column in rest)
    return Recording(
        source=what,
        subject="the robot of a loco-mujoco file",
        fps=fps,
        joint_names=options.joint_names or names,
        joint_pos=positions[:, rest],
        joint_vel=velocities[:, rest] if has_velocities else None,
        root_pos=positions[:, base[:3]],
        root_quat=_orientation(*positions[:, base[3:]].T),
        notes=(note, "base: angles about y, x and z in turn, as in loco-mujoco's models; no quaternions"),
        warnings=("the base's height counts from where its model has the pelvis, which the file does not say",),
    )


def _column(file: MotionFile, key: str, frames: tuple[int, ...]) -> Array:
    shape = file.npz.shape(key)
    if shape != frames:
        raise UserError(f"{file.path}: '{key}' has shape {shape}, expected {frames}")
    return file.npz.numbers(key)


def _frame_rate(positions: Array, velocities: Array | None, asked: float | None, what: str) -> tuple[float, str]:
    if asked is not None:
        return asked, f"frame rate: {asked:g} Hz, as asked for"
    steps = np.diff(positions, axis=0)
    if velocities is None or not (steps**2).sum() > 0.0:
        raise UserError(f"{what} does not say its frame rate, and has no velocities to tell it: give --fps")
    middle = 0.5 * (velocities[1:] + velocities[:-1])
    fits = float((middle * steps).sum() / (steps**2).sum())
    if not fits > 0.5:
        raise UserError(
            f"{what}: its velocities do not fit its positions, so they do not tell the frame rate: give --fps"
        )
    usual = min(_USUAL_RATES, key=lambda rate: abs(rate - fits))
    fps = usual if abs(usual - fits) < 0.05 * usual else float(round(fits))
    return fps, f"frame rate: {fps:g} Hz; the file has none, its velocities fit {fits:.1f} Hz"


def _orientation(tilt: Array, list_: Array, turn: Array) -> Array:
    """Hinges about y, x and z, each turned by those before it."""  # 3 × (T,) → (T, 4)
    y, x, z = (rotation.about(np.eye(3)[axis], angle) for axis, angle in ((1, tilt), (0, list_), (2, turn)))
    return rotation.product(rotation.product(y, x), z)


LOCO_MUJOCO = Dialect("loco-mujoco", "loco-mujoco's npz", recognise, read)
