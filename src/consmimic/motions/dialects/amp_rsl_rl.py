"""amp-rsl-rl's npy: a pickled dict of joints_list, joint_positions, root_position, root_quaternion (xyzw) and fps."""

from __future__ import annotations

import numpy as np

from consmimic.errors import UserError
from consmimic.motions.dialects import plain_pickle
from consmimic.motions.dialects.dialect import Dialect, ReadOptions
from consmimic.motions.dialects.orientation import Convention, understood
from consmimic.motions.dialects.rates import frame_rate
from consmimic.motions.dialects.recording import Array, Recording
from consmimic.motions.dialects.source import MotionFile, most_numbers
from consmimic.motions.files import memory_budget, npy_header, reading, shortened

_KEYS = ("joints_list", "joint_positions", "root_position", "root_quaternion")


def recognise(file: MotionFile) -> str | None:
    if file.kind != "npy":
        return None
    with reading(file.path) as opened:
        _, _, dtype = npy_header(opened, str(file.path))
    return "an npy with pickled objects" if dtype.hasobject else None


def read(file: MotionFile, options: ReadOptions) -> Recording:
    what = str(file.path)
    if not options.allow_pickle:
        raise UserError(
            f"{what} is pickled, and a pickle can run code. If you trust where it comes from, give --allow-pickle; "
            "even then only numbers, texts and numpy arrays are read, and nothing in it is run"
        )
    content = _content(file)
    joint_names = tuple(str(name) for name in content["joints_list"])
    if not all(name.isprintable() for name in joint_names) or len(joint_names) > 1000:
        raise UserError(f"{what}: joints_list is damaged")
    joint_pos, root_pos, root_quat = (_matrix(file, content, key) for key in _KEYS[1:])
    if root_pos.shape != (len(joint_pos), 3) or root_quat.shape != (len(joint_pos), 4):
        raise UserError(
            f"{what}: root_position and root_quaternion have shapes {root_pos.shape} and {root_quat.shape}, expected "
            f"{(len(joint_pos), 3)} and {(len(joint_pos), 4)}"
        )
    rate = content.get("fps")
    if rate is not None and (
        isinstance(rate, bool) or not isinstance(rate, (int, float, np.ndarray)) or np.size(rate) != 1
    ):
        raise UserError(f"{what}: fps is not a number")
    in_file = None if rate is None else float(np.reshape(np.asarray(rate, dtype=np.float64), ()))
    fps, warnings = frame_rate(in_file, options.fps, what)
    base = understood(root_pos, root_quat, Convention("xyzw"), what, order=options.quat_order, up=options.up)
    return Recording(
        source=what,
        subject="a robot",
        fps=fps,
        joint_names=options.joint_names or joint_names,
        joint_pos=joint_pos,
        root_pos=base.root_pos,
        root_quat=base.root_quat,
        notes=(base.note,),
        warnings=(*warnings, *base.warnings),
    )


def _content(file: MotionFile) -> dict:
    what = str(file.path)
    with reading(file.path) as opened:
        npy_header(opened, what)
        content = plain_pickle.load(opened.read(), what, memory_budget(file.path) // 4)
    if not isinstance(content, dict) or any(key not in content for key in _KEYS):
        found = shortened(content) if isinstance(content, dict) else type(content).__name__
        raise UserError(f"{what} holds {found}; an amp-rsl-rl motion has {', '.join(_KEYS)} and fps")
    if not isinstance(content["joints_list"], list):
        raise UserError(f"{what}: joints_list is no list of names")
    return content


def _matrix(file: MotionFile, content: dict, key: str) -> Array:
    values = plain_pickle.matrix(content[key], f"{file.path}: {key}", most_numbers(file.path))
    if values.ndim != 2 or len(values) == 0:
        raise UserError(f"{file.path}: {key} has shape {values.shape}, expected (T, …)")
    return values


AMP_RSL_RL = Dialect("amp-rsl-rl", "amp-rsl-rl npy, pickled", recognise, read)
