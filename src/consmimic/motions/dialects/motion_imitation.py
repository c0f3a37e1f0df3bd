"""motion_imitation's text of quadrupeds: 19 columns, or 20 with the duration of each frame first.

Position of the base, quaternion xyzw, legs FR, FL, RR, RL × (abduction, hip, knee). The Laikago's base frame has y up
and z forward; A1's files, which are written in the same way, have z up, and are told by how the base would lie.
"""

from __future__ import annotations

from consmimic.motions import kinematics
from consmimic.motions.dialects import frames_text
from consmimic.motions.dialects.dialect import Dialect, ReadOptions
from consmimic.motions.dialects.orientation import Convention, understood
from consmimic.motions.dialects.recording import Recording
from consmimic.motions.dialects.source import MotionFile

JOINTS = tuple(f"{leg}_{joint}" for leg in ("FR", "FL", "RR", "RL") for joint in ("abduction", "hip", "knee"))


def recognise(file: MotionFile) -> str | None:
    columns = frames_text.width(file)
    return f'a text with "Frames" of {columns} numbers' if columns in (19, 20) else None


def read(file: MotionFile, options: ReadOptions) -> Recording:
    rows, what = file.frames.rows, str(file.path)
    durations, rows = (rows[:, 0], rows[:, 1:]) if rows.shape[1] == 20 else (None, rows)
    fps, frames, warnings = frames_text.timed(file, durations, options.fps)
    laikago = Convention("xyzw", base="z forward, y up")
    base = understood(rows[:, :3], rows[:, 3:7], laikago, what, order=options.quat_order, up=options.up)
    return Recording(
        source=what,
        subject="a Laikago or A1",
        fps=fps,
        joint_names=options.joint_names or JOINTS,
        joint_pos=kinematics.interpolate(rows[:, 7:], frames),
        root_pos=kinematics.interpolate(base.root_pos, frames),
        root_quat=kinematics.slerp(base.root_quat, frames),
        loops=frames_text.says_loop(file),
        notes=(base.note,),
        warnings=(*warnings, *base.warnings),
    )


MOTION_IMITATION = Dialect("motion_imitation", "motion_imitation text, 19 columns", recognise, read)
