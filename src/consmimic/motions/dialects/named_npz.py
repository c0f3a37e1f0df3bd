"""mjlab's and BeyondMimic's npz, and our own, which is the same with names.

``fps, joint_pos, joint_vel, body_pos_w, body_quat_w (wxyz), body_lin_vel_w, body_ang_vel_w``; the first body is the
base. Theirs have no names: mjlab's joints are in its model's order, BeyondMimic's in Isaac Lab's (breadth first).
"""

from __future__ import annotations

from consmimic.errors import UserError
from consmimic.motions.dialects.dialect import Dialect, ReadOptions
from consmimic.motions.dialects.orientation import Convention, understood
from consmimic.motions.dialects.rates import frame_rate
from consmimic.motions.dialects.recording import Recording
from consmimic.motions.dialects.source import MotionFile

_KEYS = ("joint_pos", "body_pos_w", "body_quat_w")


def recognise(file: MotionFile) -> str | None:
    if file.kind != "npz" or not all(key in file.npz for key in _KEYS):
        return None
    named = "joint_names" in file.npz
    return f"an npz with {', '.join(_KEYS)}, {'and names' if named else 'without joint names'}"


def read(file: MotionFile, options: ReadOptions) -> Recording:
    npz, what = file.npz, str(file.path)
    joint_names = npz.strings("joint_names") if "joint_names" in npz else None
    body_names = npz.strings("body_names") if "body_names" in npz else ()
    fps, warnings = frame_rate(npz.number("fps") if "fps" in npz else None, options.fps, what)
    joint_pos, body_pos, body_quat = (npz.numbers(key) for key in _KEYS)
    if joint_pos.ndim != 2 or body_pos.ndim != 3 or body_pos.shape[2:] != (3,) or body_quat.shape[2:] != (4,):
        raise UserError(
            f"{what}: joint_pos, body_pos_w and body_quat_w have shapes {joint_pos.shape}, {body_pos.shape} and "
            f"{body_quat.shape}, expected (T, J), (T, B, 3) and (T, B, 4)"
        )
    if body_pos.shape[1] == 0 or body_quat.shape[:2] != body_pos.shape[:2] or len(body_pos) != len(joint_pos):
        raise UserError(
            f"{what}: joint_pos, body_pos_w and body_quat_w are of {joint_pos.shape[:1]}, {body_pos.shape[:2]} and "
            f"{body_quat.shape[:2]} frames and bodies; they must be as many, and at least one body"
        )
    if len(joint_pos) == 0:
        raise UserError(f"{what} has no frames")
    base = understood(
        body_pos[:, 0], body_quat[:, 0], Convention("wxyz"), what, order=options.quat_order, up=options.up
    )
    as_it_stands = base.convention == Convention("wxyz")
    return Recording(
        source=what,
        subject="a robot",
        fps=fps,
        joint_names=options.joint_names or joint_names,
        joint_pos=joint_pos.astype("f8", copy=False),
        joint_vel=npz.floats("joint_vel") if "joint_vel" in npz else None,
        root_pos=base.root_pos,
        root_quat=base.root_quat,
        root_lin_vel=_of_base(file, "body_lin_vel_w") if as_it_stands else None,
        root_ang_vel=_of_base(file, "body_ang_vel_w") if as_it_stands else None,
        body_names=body_names if as_it_stands else (),
        body_pos=body_pos if body_names and as_it_stands else None,
        body_quat=body_quat if body_names and as_it_stands else None,
        notes=(base.note,),
        warnings=(*warnings, *base.warnings),
    )


def _of_base(file: MotionFile, key: str):
    if key not in file.npz:
        return None
    values = file.npz.numbers(key)
    if values.ndim != 3 or values.shape[1] == 0:
        raise UserError(f"{file.path}: {key} has shape {values.shape}, expected (T, B, 3)")
    return values[:, 0].astype("f8")


NAMED_NPZ = Dialect("mjlab", "mjlab/BeyondMimic npz, and consmimic's own", recognise, read)
