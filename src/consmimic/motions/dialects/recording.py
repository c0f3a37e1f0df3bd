"""What a motion file says, whatever its dialect: in SI units, z up, quaternions wxyz, not yet on any robot."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.motions import kinematics

Array = NDArray[np.float64]

FRAME_RATES = (1.0, 10_000.0)
"""Hz that are believed."""
LARGEST = 1e5
"""Of any number in a motion: rad, m, rad/s, m/s."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """T frames at ``fps``. The base has x forward, y left, z up, as its robot's model should."""

    source: str
    subject: str
    """Whose motion it is, as far as the format knows: "DeepMimic's human skeleton"."""
    fps: float
    joint_names: tuple[str, ...] | None  # None: the format has none, and nobody gave them
    joint_pos: Array  # (T, J)
    joint_vel: Array | None = None  # (T, J)
    root_pos: Array | None = None  # (T, 3)
    root_quat: Array | None = None  # (T, 4)
    root_lin_vel: Array | None = None  # (T, 3), in the world or in the base's frame: formats do not say
    root_ang_vel: Array | None = None  # (T, 3)
    ball_names: tuple[str, ...] = ()  # spherical joints of a skeleton
    ball_quat: Array = field(default_factory=lambda: np.empty((0, 0, 4)))  # (T, S, 4), against the parent
    body_names: tuple[str, ...] = ()
    body_pos: NDArray | None = None  # (T, B, 3), in the file's own precision
    body_quat: NDArray | None = None  # (T, B, 4)
    loops: bool = False
    """Whether the file says that its end goes on with its beginning."""
    notes: tuple[str, ...] = ()
    """What was assumed or found out on the way, and why."""
    warnings: tuple[str, ...] = ()
    """What a user should look at."""

    def __post_init__(self) -> None:
        if not FRAME_RATES[0] <= self.fps <= FRAME_RATES[1]:
            raise UserError(
                f"{self.source}: a frame rate of {self.fps:g} Hz is not believable; "
                f"valid are {FRAME_RATES[0]:g} to {FRAME_RATES[1]:g}"
            )
        frames = len(self.joint_pos)
        if frames == 0:
            raise UserError(f"{self.source} has no frames")
        joints = self.joint_pos.shape[1] if self.joint_names is None else len(self.joint_names)
        if self.joint_names is not None and joints != self.joint_pos.shape[1]:
            raise UserError(
                f"{self.source} has {self.joint_pos.shape[1]} joints, but {joints} names: {', '.join(self.joint_names)}"
            )
        if self.joint_names is not None and len(set(self.joint_names)) != joints:
            raise UserError(f"{self.source}: a joint is named twice in {', '.join(self.joint_names)}")
        shapes = {
            "joint_pos": (joints,),
            "joint_vel": (joints,),
            "root_pos": (3,),
            "root_quat": (4,),
            "root_lin_vel": (3,),
            "root_ang_vel": (3,),
            "body_pos": (len(self.body_names), 3),
            "body_quat": (len(self.body_names), 4),
        }
        if self.ball_names:
            shapes["ball_quat"] = (len(self.ball_names), 4)
        for name, trailing in shapes.items():
            values = getattr(self, name)
            if values is None:
                continue
            if values.shape != (frames, *trailing):
                raise UserError(f"{self.source}: {name} has shape {values.shape}, expected {(frames, *trailing)}")
            check_believable(values, f"{self.source}: {name}")

    def __len__(self) -> int:
        return len(self.joint_pos)

    @property
    def seconds(self) -> float:
        return (len(self) - 1) / self.fps


def check_believable(values: NDArray, what: str) -> None:
    """Finite, and not larger than any motion gets."""
    with np.errstate(invalid="ignore"):
        bad = ~(np.abs(values) <= LARGEST)
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise UserError(f"{what} is {values[at]:g} in frame {at[0]}; no motion has such a number")


def unit_quaternions(quaternions: NDArray, what: str) -> Array:
    """As float64 and of length 1; rounding in the file is mended, anything worse refused."""
    check_believable(quaternions, what)
    values = quaternions.astype(np.float64)
    norms = np.linalg.norm(values, axis=-1, keepdims=True)
    wrong = np.abs(norms[..., 0] - 1.0) > 0.02
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise UserError(
            f"{what} is no rotation in frame {at[0]}: the quaternion {np.round(values[at], 4).tolist()} has length "
            f"{norms[at][0]:.3f}, not 1; are the columns those of this format?"
        )
    return values / norms


def evenly_timed(durations: Array, what: str) -> tuple[float, Array]:
    """The frame rate of frames that last so long each, and where its frames lie among them."""
    check_believable(durations, f"{what}: the duration of a frame")
    lasting = durations[:-1]  # what the last one lasts, nothing shows
    if len(lasting) == 0:
        lasting = durations
    if lasting.min() <= 0.0:
        raise UserError(f"{what}: frame {int(lasting.argmin())} lasts {lasting.min():g} s; it must be more than 0")
    usual = float(np.median(lasting))
    if not 1.0 / FRAME_RATES[1] <= usual <= 1.0 / FRAME_RATES[0]:
        raise UserError(f"{what}: frames that last {usual:g} s are not believable")
    if abs(round(1.0 / usual) * usual - 1.0) < 1e-4:  # 0.033332 s is how 1/30 s was written
        usual = 1.0 / round(1.0 / usual)
    times = np.concatenate([[0.0], np.cumsum(durations[:-1])])
    if np.abs(lasting - usual).max() < 0.01 * usual:
        return 1.0 / usual, np.arange(len(durations), dtype=np.float64)
    count = int(times[-1] / usual + 1e-6) + 1
    if count > 4 * len(durations):
        raise UserError(
            f"{what}: frames last {lasting.min():g} to {lasting.max():g} s; they cannot be made even without making up "
            "most of them"
        )
    return 1.0 / usual, np.interp(np.arange(count) * usual, times, np.arange(len(times)))


def resampled(recording: Recording, fps: float) -> dict[str, Array]:
    """The recording's arrays of motion at another frame rate: quaternions by slerp, the rest linearly."""
    if not FRAME_RATES[0] <= fps <= FRAME_RATES[1]:
        raise UserError(f"frame rate {fps:g} Hz; valid are {FRAME_RATES[0]:g} to {FRAME_RATES[1]:g}")
    arrays = {name: getattr(recording, name) for name in ("joint_pos", "root_pos", "root_quat")}
    present = {name: values for name, values in arrays.items() if values is not None}
    if abs(fps - recording.fps) < 1e-9 * fps:
        return present
    count = int(np.floor(recording.seconds * fps + 1e-9)) + 1
    frames = np.arange(count, dtype=np.float64) * (recording.fps / fps)
    return {
        name: (kinematics.slerp if name == "root_quat" else kinematics.interpolate)(values, frames)
        for name, values in present.items()
    }
