"""The demonstration of quadruped locomotion, made, not recorded: a trot straight ahead at changing speeds.

Diagonal legs swing together; round feet roll on the ground without slipping. The motion is kinematic: nothing in it
knows of forces. With `asymmetry` the left legs limp, on purpose, so that a claim about symmetry can be tested.
"""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.motions.clip import Clip
from consmimic.motions.forward import posed_clip
from consmimic.motions.leg import Leg
from consmimic.motions.limits import check_can_move

Array = NDArray[np.float64]

_SAMPLES_PER_FRAME = 20
"""Resolution at which speed is integrated to distance and to gait cycles."""


@dataclass(frozen=True, kw_only=True)
class Trot:
    """The parameters of the gait; lengths in m, times in s, speeds in m/s."""

    speeds: tuple[float, ...] = (0.3, 0.6, 0.9, 1.2, 1.5)
    """Forward speeds, one after another."""
    hold_seconds: float = 2.0
    """Time at each speed."""
    ramp_seconds: float = 1.0
    """Time from one speed to the next, at constant acceleration."""
    frequency: float = 1.6
    """Gait cycles per second at speed 0."""
    frequency_per_speed: float = 0.3
    """How much more for each m/s."""
    duty: float = 0.54
    """Share of its cycle that a foot is on the ground, at speed 0."""
    duty_per_speed: float = -0.1
    """How much more for each m/s."""
    step_height: float = 0.08
    """How high a foot is lifted."""
    tuck: float = 0.08
    """How much nearer to the middle, fore and aft, the feet step than they stand in the default pose."""
    base_height: float = 0.53
    """Mean height of the base."""
    bob: float = 0.008
    """How far the base sinks and rises about it, twice per cycle; lowest in the middle of a stance."""
    asymmetry: float = 0.0
    """0 to 1: how much the left legs limp. They step late, low, wide and briefly, and the base leans to them."""
    fps: float = 50.0
    """Frames per second."""

    def __post_init__(self) -> None:
        if not self.speeds or min(self.speeds) < 0.0:
            raise UserError(f"speeds are {self.speeds}; at least one is needed, and none below 0")
        duties = self.duty_at(np.array(self.speeds))
        if not 0.3 <= duties.min() <= duties.max() <= 0.8:
            raise UserError(
                f"at the speeds {self.speeds}, duty {self.duty} and duty_per_speed {self.duty_per_speed} make "
                f"{duties.min():.2f} to {duties.max():.2f}; valid are 0.3 to 0.8"
            )
        if not 0.0 <= self.asymmetry <= 1.0:
            raise UserError(f"asymmetry is {self.asymmetry}; valid are 0 to 1")
        for name in ("hold_seconds", "ramp_seconds", "frequency", "step_height", "base_height", "fps"):
            if getattr(self, name) <= 0.0:
                raise UserError(f"{name} is {getattr(self, name)}; it must be more than 0")

    @property
    def seconds(self) -> float:
        return len(self.speeds) * self.hold_seconds + (len(self.speeds) - 1) * self.ramp_seconds

    @property
    def roll(self) -> float:
        """Lean of the base."""
        return -0.08 * self.asymmetry

    def speed_at(self, times: Array) -> Array:
        starts = np.arange(len(self.speeds)) * (self.hold_seconds + self.ramp_seconds)
        knots = np.stack([starts, starts + self.hold_seconds], axis=1).ravel()
        return np.interp(times, knots, np.repeat(self.speeds, 2))

    def frequency_at(self, speed: Array) -> Array:
        return self.frequency + self.frequency_per_speed * speed

    def duty_at(self, speed: Array) -> Array:
        return self.duty + self.duty_per_speed * speed


def generate_trot(
    model: mujoco.MjModel,
    *,
    root: str,
    feet: tuple[str, ...],
    joint_names: tuple[str, ...],
    default_joint_pos: tuple[float, ...],
    joint_velocity_limits: tuple[float, ...],
    trot: Trot,
) -> Clip:
    """A clip of the root, the feet and the joints. Where the feet are in the default pose says which leg is which."""
    progress = _Progress.of(trot)
    speed, distance, cycles = progress.at_frames()
    base_pos = np.zeros((len(cycles), 3))
    base_pos[:, 0] = distance
    base_pos[:, 2] = trot.base_height - trot.bob * np.cos(4.0 * np.pi * (cycles - 0.5 * trot.duty_at(speed)))
    base_quat = np.array([np.cos(0.5 * trot.roll), np.sin(0.5 * trot.roll), 0.0, 0.0])

    joint_pos = np.tile(default_joint_pos, (len(cycles), 1))
    for foot in feet:
        leg = Leg.of(model, root=root, foot=foot)
        columns = [joint_names.index(name) for name in leg.joints]
        default = np.array(default_joint_pos)[columns]
        path = _foot_path(trot, progress, stand=leg.foot(default), radius=leg.foot_radius)
        try:
            joint_pos[:, columns] = _follow(leg, path, base_pos, trot.roll, default)
        except UserError as error:
            raise UserError(
                f"trot: {error}: change base_height ({trot.base_height}), or lower step_height ({trot.step_height}) "
                f"or the speeds (up to {max(trot.speeds)})"
            ) from None
    clip = posed_clip(
        model,
        fps=trot.fps,
        joint_names=joint_names,
        joint_pos=joint_pos,
        base_pos=base_pos,
        base_quat=np.tile(base_quat, (len(cycles), 1)),
        bodies=(root, *feet),
        source=f"generated: {trot}",
    )
    speeds = f"the speeds (up to {max(trot.speeds)})"
    check_can_move(
        clip,
        model,
        joint_velocity_limits,
        what="trot",
        if_beyond=f"change base_height ({trot.base_height}), or lower step_height ({trot.step_height}) or {speeds}",
        if_fast=f"lower {speeds}, step_height ({trot.step_height}) or duty ({trot.duty})",
    )
    return clip


@dataclass(frozen=True, eq=False)
class _Progress:
    """Speed, distance and gait cycles since the first frame, sampled finely from before it to after the last."""

    speed: Array
    distance: Array
    cycles: Array
    margin: int  # samples before the first frame and after the last

    @staticmethod
    def of(trot: Trot) -> _Progress:
        margin = int(np.ceil(3.0 * trot.fps / trot.frequency)) * _SAMPLES_PER_FRAME  # three cycles at least
        last = round(trot.seconds * trot.fps) * _SAMPLES_PER_FRAME
        times = np.arange(-margin, last + margin + 1) / (trot.fps * _SAMPLES_PER_FRAME)
        speed = trot.speed_at(times)

        def integral(rate: Array) -> Array:
            sums = np.concatenate([[0.0], np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(times))])
            return sums - sums[margin]

        return _Progress(speed, integral(speed), integral(trot.frequency_at(speed)), margin)

    def at_frames(self) -> tuple[Array, Array, Array]:
        frames = slice(self.margin, len(self.cycles) - self.margin, _SAMPLES_PER_FRAME)
        return self.speed[frames], self.distance[frames], self.cycles[frames]

    def speed_after(self, cycles: Array) -> Array:
        return np.interp(cycles, self.cycles, self.speed)

    def distance_after(self, cycles: Array) -> Array:
        return np.interp(cycles, self.cycles, self.distance)


def _foot_path(trot: Trot, progress: _Progress, *, stand: Array, radius: float) -> Array:
    """Centre of the foot, as if it did not turn: still on the ground, then through the air to its next place."""
    front, left = stand[0] > 0.0, stand[1] > 0.0
    limp = trot.asymmetry if left else 0.0
    delay = (0.0 if front == left else 0.5) + 0.06 * limp  # cycles after those of the first diagonal pair

    def duty(step: Array) -> Array:
        return trot.duty_at(progress.speed_after(step + delay)) - 0.05 * limp

    def place(step: Array) -> Array:
        """The foot is set down where the base carries it past its middle position halfway through the stance."""
        return progress.distance_after(step + delay + 0.5 * duty(step))

    gone = progress.at_frames()[2] - delay
    step = np.floor(gone)
    swing = np.clip((gone - step - duty(step)) / (1.0 - duty(step)), 0.0, 1.0)
    here, there = place(step), place(step + 1.0)

    x = stand[0] - np.sign(stand[0]) * trot.tuck + here + (there - here) * _smooth(swing)
    y = np.full_like(x, stand[1] + np.sign(stand[1]) * 0.03 * limp)
    z = radius + trot.step_height * (1.0 - 0.5 * limp) * np.sin(np.pi * swing) ** 2
    return np.stack([x, y, z], axis=-1)  # (T, 3)


def _smooth(share: Array) -> Array:
    """From 0 to 1, gently at both ends and at constant speed in the middle half."""
    taper = 0.25
    edge = np.minimum(share, 1.0 - share)
    ramp = np.minimum(edge, taper)
    gone = edge - ramp + 0.5 * (ramp - taper / np.pi * np.sin(np.pi / taper * ramp))
    return np.where(share < 0.5, gone, 1.0 - taper - gone) / (1.0 - taper)


def _follow(leg: Leg, path: Array, base_pos: Array, roll: float, default: Array) -> Array:
    """Joint angles, (T, 3). A foot rolls as it turns: its centre is ahead of the path by its radius times the angle."""
    c, s = np.cos(roll), np.sin(roll)
    into_base = np.array([[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]])
    centre, angles = path.copy(), np.tile(default, (len(path), 1))
    for _ in range(30):  # what is left of the error each time is about the radius over the length of the leg
        centre[:, 0] = path[:, 0] + leg.foot_radius * (leg.pitch(angles) - leg.pitch(default))
        angles = leg.angles((centre - base_pos) @ into_base.T, knee_side=float(np.sign(leg.bend(default))))
    return angles
