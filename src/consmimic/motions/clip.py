"""The Clip record and its npz file: mjlab's keys, plus names, so that joints are matched by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from consmimic.errors import UserError, unknown
from consmimic.motions import files, kinematics

SCHEMA_VERSION = 1

ARRAYS = {  # field → trailing shape; J joints, B bodies
    "joint_pos": ("J",),
    "joint_vel": ("J",),
    "body_pos_w": ("B", 3),
    "body_quat_w": ("B", 4),
    "body_lin_vel_w": ("B", 3),
    "body_ang_vel_w": ("B", 3),
}


def check_shapes(arrays: Mapping[str, np.ndarray], joints: int, bodies: int, what: str) -> None:
    """Whether all are of as many frames, joints and bodies as they should be."""
    sizes: dict[str | int, int] = {"J": joints, "B": bodies}
    if arrays["joint_pos"].ndim == 0 or len(arrays["joint_pos"]) == 0:
        raise UserError(f"{what} has no frames")
    for name, trailing in ARRAYS.items():
        expected = (len(arrays["joint_pos"]), *(sizes.get(size, size) for size in trailing))
        if arrays[name].shape != expected:
            raise UserError(f"{what}: {name} has shape {arrays[name].shape}, expected {expected}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Clip:
    """T frames at ``fps``, spanning (T − 1)/fps seconds. SI units; quaternions wxyz; world frame, z up."""

    fps: float
    joint_names: tuple[str, ...]
    joint_pos: np.ndarray  # (T, J)
    joint_vel: np.ndarray  # (T, J)
    body_names: tuple[str, ...]
    body_pos_w: np.ndarray  # (T, B, 3)
    body_quat_w: np.ndarray  # (T, B, 4)
    body_lin_vel_w: np.ndarray  # (T, B, 3)
    body_ang_vel_w: np.ndarray  # (T, B, 3)
    source: str

    def __post_init__(self) -> None:
        if not np.isfinite(self.fps) or self.fps <= 0:
            raise UserError(f"clip '{self.source}': fps is {self.fps}; it must be a positive number")
        for field in ("joint_names", "body_names"):
            names = getattr(self, field)
            if len(set(names)) != len(names):
                raise UserError(f"clip '{self.source}': {field} has a name twice: {', '.join(names)}")
        arrays = {name: getattr(self, name) for name in ARRAYS}
        check_shapes(arrays, len(self.joint_names), len(self.body_names), f"clip '{self.source}'")
        for name, array in arrays.items():
            if not np.isfinite(array).all():
                frame = int(np.argwhere(~np.isfinite(array))[0][0])
                raise UserError(f"clip '{self.source}': {name} is not finite (NaN or inf) in frame {frame}")
        with np.errstate(over="ignore"):  # what is not finite is no unit either
            norms = np.linalg.norm(self.body_quat_w, axis=-1)
        if np.abs(norms - 1.0).max(initial=0.0) > 1e-3:
            frame = int(np.argwhere(np.abs(norms - 1.0) > 1e-3)[0][0])
            raise UserError(f"clip '{self.source}': body_quat_w is not a unit quaternion (wxyz) in frame {frame}")

    def __len__(self) -> int:
        return len(self.joint_pos)

    @property
    def seconds(self) -> float:
        return (len(self) - 1) / self.fps

    def joint(self, name: str) -> int:
        """The column of a joint."""
        if name not in self.joint_names:
            raise unknown(f"joint in clip '{self.source}'", name, self.joint_names)
        return self.joint_names.index(name)

    def body(self, name: str) -> int:
        """The column of a body."""
        if name not in self.body_names:
            raise unknown(f"body in clip '{self.source}'", name, self.body_names)
        return self.body_names.index(name)

    def with_joints(self, names: tuple[str, ...]) -> Clip:
        """The clip with the joints that a robot has, in the robot's order; each must be there."""
        missing = [name for name in names if name not in self.joint_names]
        if missing:
            raise UserError(
                f"clip '{self.source}' lacks joint {', '.join(missing)}; it has {', '.join(self.joint_names)}"
            )
        columns = [self.joint(name) for name in names]
        return self._replaced(
            joint_names=names, joint_pos=self.joint_pos[:, columns], joint_vel=self.joint_vel[:, columns]
        )

    def resampled(self, fps: float) -> Clip:
        """The clip at another frame rate; it may lose less than one frame at the end."""
        if abs(fps - self.fps) < 1e-9 * fps:
            return self
        times = np.arange(int(np.floor(self.seconds * fps + 1e-9)) + 1) / fps
        frames = times * self.fps
        linear = {n: kinematics.interpolate(getattr(self, n), frames) for n in ARRAYS if n != "body_quat_w"}
        quaternions = kinematics.slerp(self.body_quat_w, frames)
        return self._replaced(fps=fps, body_quat_w=quaternions, **linear)

    def save(self, path: Path) -> None:
        """Write the npz; never over a file that is there."""
        names = {"joint_names": np.array(self.joint_names), "body_names": np.array(self.body_names)}
        arrays = {name: getattr(self, name) for name in ARRAYS}
        about = {"fps": self.fps, "source": self.source, "schema_version": SCHEMA_VERSION}
        files.write_new(path, lambda file: np.savez_compressed(file, **about, **names, **arrays))

    @staticmethod
    def load(path: Path) -> Clip:
        """Read an npz that :meth:`save` wrote. Nothing is ever unpickled."""
        file = files.Npz(path, "clip")
        file.require(*ARRAYS, "fps", "joint_names", "body_names")
        version = int(file.number("schema_version")) if "schema_version" in file else SCHEMA_VERSION
        if version > SCHEMA_VERSION:
            raise UserError(f"{path}: it is of schema {version}; this version reads up to {SCHEMA_VERSION}")
        arrays = {name: file.floats(name) for name in ARRAYS}
        for name, array in arrays.items():
            if array.ndim != len(ARRAYS[name]) + 1:
                raise UserError(
                    f"{path}: {name} has shape {array.shape}, expected (T, {', '.join(map(str, ARRAYS[name]))})"
                )
        try:
            return Clip(
                fps=file.number("fps"),
                joint_names=file.strings("joint_names"),
                body_names=file.strings("body_names"),
                source=file.text("source") if "source" in file else str(path),
                **arrays,
            )
        except UserError as error:
            raise UserError(f"{path}: {error}") from None

    def _replaced(self, **changes: Any) -> Clip:
        values: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Clip(**(values | changes))
