"""AMP_for_hardware's text, which legged robots' AMP repositories share: 61 columns.

Base position 3 and quaternion 4 (xyzw), joints 12, toe positions 12, base velocities 3 + 3, joint velocities 12,
toe velocities 12; legs FR, FL, RR, RL. Toes are in the base's frame and are not read: the robot's model says them.
"""

from __future__ import annotations

from consmimic.motions.dialects import frames_text
from consmimic.motions.dialects.dialect import Dialect, ReadOptions
from consmimic.motions.dialects.orientation import Convention, understood
from consmimic.motions.dialects.recording import Recording
from consmimic.motions.dialects.source import MotionFile

JOINTS = tuple(f"{leg}_{joint}_joint" for leg in ("FR", "FL", "RR", "RL") for joint in ("hip", "thigh", "calf"))


def recognise(file: MotionFile) -> str | None:
    return 'a text with "Frames" of 61 numbers' if frames_text.width(file) == 61 else None


def read(file: MotionFile, options: ReadOptions) -> Recording:
    rows, what = file.frames.rows, str(file.path)
    fps, _, warnings = frames_text.timed(file, None, options.fps)
    base = understood(rows[:, :3], rows[:, 3:7], Convention("xyzw"), what, order=options.quat_order, up=options.up)
    as_it_stands = base.convention.up == "z" and base.convention.base == "x forward, z up"
    return Recording(
        source=what,
        subject="an A1, or a quadruped like it",
        fps=fps,
        joint_names=options.joint_names or JOINTS,
        joint_pos=rows[:, 7:19],
        joint_vel=rows[:, 37:49],
        root_pos=base.root_pos,
        root_quat=base.root_quat,
        root_lin_vel=rows[:, 31:34] if as_it_stands else None,
        root_ang_vel=rows[:, 34:37] if as_it_stands else None,
        loops=frames_text.says_loop(file),
        notes=(base.note,),
        warnings=(*warnings, *base.warnings),
    )


AMP_FOR_HARDWARE = Dialect("amp_for_hardware", "AMP_for_hardware/legged text, 61 columns", recognise, read)
