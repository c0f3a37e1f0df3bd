"""What a robot's joints can do: their ranges, from its model, and their speeds."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.motions.clip import Clip

Array = NDArray[np.float64]


def joint_ranges(model: mujoco.MjModel, joint_names: Sequence[str]) -> tuple[Array, Array]:
    """Lowest and highest angles; infinite where a joint has no limit."""  # → (J,), (J,)
    joints = [model.joint(name) for name in joint_names]
    low, high = np.array([joint.range if joint.limited[0] else (-np.inf, np.inf) for joint in joints]).T
    return low, high


def beyond_range(model: mujoco.MjModel, joint_names: Sequence[str], joint_pos: Array) -> Array:
    """By how much each joint is beyond its range, in each frame; below 0 it is inside."""  # (T, J) → (T, J)
    low, high = joint_ranges(model, joint_names)
    return np.maximum(low - joint_pos, joint_pos - high)


def check_can_move(
    clip: Clip, model: mujoco.MjModel, speed_limits: tuple[float, ...], *, what: str, if_beyond: str, if_fast: str
) -> None:
    """Refuse a generated motion that the joints cannot make; what to change is said by who made it."""
    beyond = beyond_range(model, clip.joint_names, clip.joint_pos)
    if beyond.max() > 0.0:
        frame, joint = np.unravel_index(int(beyond.argmax()), beyond.shape)
        low, high = joint_ranges(model, clip.joint_names)
        raise UserError(
            f"{what}: {clip.joint_names[joint]} would be at {clip.joint_pos[frame, joint]:.2f} rad after "
            f"{frame / clip.fps:.2f} s; valid are {low[joint]:.2f} to {high[joint]:.2f}: {if_beyond}"
        )
    excess = np.abs(clip.joint_vel) - speed_limits
    if excess.max() > 0.0:
        frame, joint = np.unravel_index(int(excess.argmax()), excess.shape)
        raise UserError(
            f"{what}: {clip.joint_names[joint]} would turn at {abs(clip.joint_vel[frame, joint]):.2f} rad/s after "
            f"{frame / clip.fps:.2f} s; valid are up to {speed_limits[joint]}: {if_fast}"
        )
