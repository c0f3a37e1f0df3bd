"""Isaac Lab's humanoid npz, of its AMP task: joints and bodies by name, quaternions wxyz, z up; the pelvis first."""

from __future__ import annotations

from consmimic.errors import UserError
from consmimic.motions.dialects.dialect import Dialect, ReadOptions
from consmimic.motions.dialects.orientation import Convention, understood
from consmimic.motions.dialects.rates import frame_rate
from consmimic.motions.dialects.recording import Recording
from consmimic.motions.dialects.source import MotionFile

_KEYS = ("dof_names", "dof_positions", "body_names", "body_positions", "body_rotations")


def recognise(file: MotionFile) -> str | None:
    if file.kind != "npz" or not all(key in file.npz for key in _KEYS):
        return None
    return "an npz with dof_names, dof_positions and body_rotations"


def read(file: MotionFile, options: ReadOptions) -> Recording:
    npz, what = file.npz, str(file.path)
    fps, warnings = frame_rate(npz.number("fps") if "fps" in npz else None, options.fps, what)
    joint_pos, positions, rotations = (
        npz.numbers(key) for key in ("dof_positions", "body_positions", "body_rotations")
    )
    names = npz.strings("body_names")
    frames = joint_pos.shape[:1]
    if joint_pos.ndim != 2 or not names or len(joint_pos) == 0:
        raise UserError(
            f"{what}: dof_positions has shape {joint_pos.shape}, of {len(names)} bodies; nothing moves there"
        )
    if positions.shape != (*frames, len(names), 3) or rotations.shape != (*frames, len(names), 4):
        raise UserError(
            f"{what}: body_positions and body_rotations have shapes {positions.shape} and {rotations.shape}, "
            f"expected {(*frames, len(names), 3)} and {(*frames, len(names), 4)}"
        )
    base = understood(
        positions[:, 0], rotations[:, 0], Convention("wxyz"), what, order=options.quat_order, up=options.up
    )
    as_it_stands = base.convention == Convention("wxyz")
    return Recording(
        source=what,
        subject="Isaac Lab's humanoid",
        fps=fps,
        joint_names=options.joint_names or npz.strings("dof_names"),
        joint_pos=joint_pos.astype("f8", copy=False),
        joint_vel=npz.floats("dof_velocities") if "dof_velocities" in npz else None,
        root_pos=base.root_pos,
        root_quat=base.root_quat,
        body_names=names if as_it_stands else (),
        body_pos=positions if as_it_stands else None,
        body_quat=rotations if as_it_stands else None,
        notes=(base.note,),
        warnings=(*warnings, *base.warnings),
    )


ISAACLAB_HUMANOID = Dialect("isaaclab", "Isaac Lab's humanoid npz", recognise, read)
