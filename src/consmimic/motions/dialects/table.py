"""Tables without a header: ``x y z qx qy qz qw q…`` in m and rad, a line per frame.

Retargeted LAFAN1 is published like that, at 30 Hz, for three Unitree robots; they are told by their columns.
"""

from __future__ import annotations

from consmimic.errors import UserError
from consmimic.motions.dialects.dialect import Dialect, ReadOptions
from consmimic.motions.dialects.orientation import Convention, understood
from consmimic.motions.dialects.rates import frame_rate
from consmimic.motions.dialects.recording import Array, Recording
from consmimic.motions.dialects.source import MotionFile

_BASE = 7
_LAFAN1_FPS = 30.0


def _sides(*names: str) -> tuple[str, ...]:
    return tuple(f"{side}_{name}_joint" for side in ("left", "right") for name in names)


_SHOULDER = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow")
_WRIST = ("wrist_roll", "wrist_pitch", "wrist_yaw")
_ANKLE = ("knee", "ankle_pitch", "ankle_roll")
UNITREE = {
    "Unitree G1": (
        *_sides("hip_pitch", "hip_roll", "hip_yaw", *_ANKLE),
        "waist_yaw_joint",
        "waist_roll_joint",
        "waist_pitch_joint",
        *_sides(*_SHOULDER, *_WRIST),
    ),
    "Unitree H1_2": (*_sides("hip_yaw", "hip_pitch", "hip_roll", *_ANKLE), "torso_joint", *_sides(*_SHOULDER, *_WRIST)),
    "Unitree H1": (*_sides("hip_yaw", "hip_roll", "hip_pitch", "knee", "ankle"), "torso_joint", *_sides(*_SHOULDER)),
}


def _unitree(table: Array) -> str | None:
    return next((name for name, joints in UNITREE.items() if table.shape[1] == _BASE + len(joints)), None)


def recognise_table(file: MotionFile) -> str | None:
    if file.kind != "table" or file.table.shape[1] <= _BASE:
        return None
    return f"a table of {file.table.shape[1]} columns: base position, quaternion, {file.table.shape[1] - _BASE} joints"


def recognise_lafan1(file: MotionFile) -> str | None:
    if file.kind != "table" or (robot := _unitree(file.table)) is None:
        return None
    return f"a table of {file.table.shape[1]} columns, as retargeted LAFAN1 has them for the {robot}"


def read_table(file: MotionFile, options: ReadOptions) -> Recording:
    return _read(file, options, fps=None, joint_names=None, subject="a robot")


def read_lafan1(file: MotionFile, options: ReadOptions) -> Recording:
    robot = _unitree(file.table)
    if robot is None:
        wanted = ", ".join(f"{_BASE + len(joints)} ({name})" for name, joints in UNITREE.items())
        raise UserError(f"{file.path} has {file.table.shape[1]} columns; retargeted LAFAN1 has {wanted}")
    if options.joint_names is not None:
        return read_table(file, options)
    return _read(file, options, fps=_LAFAN1_FPS, joint_names=UNITREE[robot], subject=f"a {robot}")


def _read(
    file: MotionFile, options: ReadOptions, *, fps: float | None, joint_names: tuple[str, ...] | None, subject: str
) -> Recording:
    table, what = file.table, str(file.path)
    if table.shape[1] <= _BASE:
        raise UserError(
            f"{what} has {table.shape[1]} columns; a table has x y z qx qy qz qw and then a column for each joint"
        )
    if options.fps is not None:
        fps = options.fps
    rate, warnings = frame_rate(fps, None, what)
    base = understood(table[:, :3], table[:, 3:7], Convention("xyzw"), what, order=options.quat_order, up=options.up)
    return Recording(
        source=what,
        subject=subject,
        fps=rate,
        joint_names=options.joint_names or joint_names,
        joint_pos=table[:, _BASE:],
        root_pos=base.root_pos,
        root_quat=base.root_quat,
        notes=(base.note,),
        warnings=(*warnings, *base.warnings),
    )


TABLE = Dialect("csv", "headerless CSV: x y z qx qy qz qw q…", recognise_table, read_table)
LAFAN1 = Dialect("lafan1", "retargeted LAFAN1 CSV of the Unitree G1, H1 and H1_2", recognise_lafan1, read_lafan1)
