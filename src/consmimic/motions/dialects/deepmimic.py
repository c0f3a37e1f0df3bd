"""DeepMimic's text of its human skeleton: 44 columns, y up, x forward, z right, quaternions wxyz.

Duration of the frame, position and orientation of the root, then the joints of the skeleton: spherical ones as a
quaternion against the parent, knees and elbows as an angle about the axis to the right. All is turned to z up here;
angles are then about the axis to the left, so that they change their sign.
"""

from __future__ import annotations

import numpy as np

from consmimic.motions import kinematics
from consmimic.motions.dialects import frames_text
from consmimic.motions.dialects.dialect import Dialect, ReadOptions
from consmimic.motions.dialects.orientation import Convention, understood
from consmimic.motions.dialects.recording import Recording, unit_quaternions
from consmimic.motions.dialects.source import MotionFile

_LIMBS = {"hip": 4, "knee": 1, "ankle": 4, "shoulder": 4, "elbow": 1}
_WIDTHS = {"chest": 4, "neck": 4} | {
    f"{side}_{joint}": width for side in ("right", "left") for joint, width in _LIMBS.items()
}
BALLS = tuple(name for name, width in _WIDTHS.items() if width == 4)
HINGES = tuple(name for name, width in _WIDTHS.items() if width == 1)


def recognise(file: MotionFile) -> str | None:
    return 'a text with "Frames" of 44 numbers' if frames_text.width(file) == 44 else None


def read(file: MotionFile, options: ReadOptions) -> Recording:
    rows, what = file.frames.rows, str(file.path)
    fps, frames, warnings = frames_text.timed(file, rows[:, 0], options.fps)
    convention = Convention("wxyz", up="y", base="x forward, y up")
    root = understood(rows[:, 1:4], rows[:, 4:8], convention, what, order=options.quat_order, up=options.up)
    columns, start = {}, 8
    for name, width in _WIDTHS.items():
        columns[name] = rows[:, start : start + width]
        start += width
    balls = np.stack([columns[name] for name in BALLS], axis=1)
    turned = Convention(root.convention.order, up="y", base="x forward, y up")
    _, ball_quat = turned.pose(np.zeros((*balls.shape[:2], 3)), unit_quaternions(balls, f"{what}: a joint's rotation"))
    return Recording(
        source=what,
        subject="DeepMimic's human skeleton",
        fps=fps,
        joint_names=options.joint_names or HINGES,
        joint_pos=-kinematics.interpolate(np.concatenate([columns[name] for name in HINGES], axis=1), frames),
        root_pos=kinematics.interpolate(root.root_pos, frames),
        root_quat=kinematics.slerp(root.root_quat, frames),
        ball_names=BALLS,
        ball_quat=kinematics.slerp(ball_quat, frames),
        loops=frames_text.says_loop(file),
        notes=(root.note,),
        warnings=(*warnings, *root.warnings),
    )


DEEPMIMIC = Dialect("deepmimic", "DeepMimic text of a human skeleton, 44 columns", recognise, read)
