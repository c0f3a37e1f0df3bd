"""Which way is up, and in which order quaternions stand: what a format says, held against what the motion looks like.

The order of a quaternion cannot be told from how smoothly it changes, as the angle between two rotations is the same
in any order. It can be told from where the base's top points: most motions are upright in the right reading only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from consmimic.motions import rotation
from consmimic.motions.dialects.recording import Array, check_believable, unit_quaternions

Order = Literal["wxyz", "xyzw"]
Up = Literal["z", "y"]
Base = Literal["x forward, z up", "x forward, y up", "z forward, y up"]

_UPRIGHT, _LYING = np.radians(30.0), np.radians(45.0)
_LOW = 0.1
"""m. No base that moves freely is lower than this for half of the time."""
_TURNS: dict[str, Array] = {  # from axes as they are to x forward, y left, z up; wxyz
    "x forward, z up": np.array([1.0, 0.0, 0.0, 0.0]),
    "x forward, y up": np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]),
    "z forward, y up": np.array([0.5, 0.5, 0.5, 0.5]),
}


@dataclass(frozen=True)
class Convention:
    """What the numbers of a base's pose mean."""

    order: Order
    up: Up = "z"  # of the world
    base: Base = "x forward, z up"

    def pose(self, position: Array, quaternion: Array) -> tuple[Array, Array]:
        """In a world with z up, of a base with x forward and z up; wxyz."""  # (…, 3), (…, 4)
        q = quaternion if self.order == "wxyz" else quaternion[..., [3, 0, 1, 2]]
        world = _TURNS["x forward, z up" if self.up == "z" else "x forward, y up"]
        turned = rotation.product(rotation.product(world, q), rotation.inverse(_TURNS[self.base]))
        if self.up == "y":
            position = np.stack([position[..., 0], -position[..., 2], position[..., 1]], axis=-1)
        return position, turned

    def __str__(self) -> str:
        return f"{self.order}, world {self.up} up, base {self.base}"


@dataclass(frozen=True)
class Reading:
    """A base's pose as it was understood, and why so."""

    convention: Convention
    root_pos: Array
    root_quat: Array
    note: str
    warnings: tuple[str, ...]


def understood(
    position: Array, quaternion: Array, stated: Convention, what: str, *, order: Order | None, up: Up | None
) -> Reading:
    """The pose as the format states it, or as the user does, unless the motion lies down so and stands up otherwise."""
    check_believable(position, f"{what}: the base's position")
    quaternion = unit_quaternions(quaternion, f"{what}: the base's orientation")
    asked = _asked_for(stated, order, up)
    by = "as the format has it" if order is None and up is None else "as asked for"
    fixed = {"order_is_fixed": order is not None, "up_is_fixed": up is not None}
    other, reason = _more_likely(asked, position, quaternion, **fixed)
    warnings = []
    if other is not None:
        by = f"because as {asked} {reason}"
        warnings.append(f"the base's pose is not as this format has it; it was read as {other}, {by}")
    elif reason:
        warnings.append(f"{reason} on average; if it should not lie down, give --quat-order or --up")
    taken = other or asked
    swapped = replace(taken, order="wxyz" if taken.order == "xyzw" else "xyzw")
    root_pos, root_quat = taken.pose(position, quaternion)
    _, swapped_quat = swapped.pose(position, quaternion)
    note = (
        f"base: quaternions {taken}, {by}; so its top is {np.degrees(_mean_tilt(root_quat)):.0f}° from the sky on "
        f"average, as {swapped.order} it would be {np.degrees(_mean_tilt(swapped_quat)):.0f}°"
    )
    ahead, swapped_ahead = _moves_ahead(root_pos, root_quat), _moves_ahead(root_pos, swapped_quat)
    if order is None and ahead < -0.5 and swapped_ahead > 0.5 and _mean_tilt(swapped_quat) < _UPRIGHT:
        warnings.append(
            f"the motion goes backwards; with quaternions {swapped.order} it would go forwards, as upright: "
            f"if it should, give --quat-order {swapped.order}"
        )
    return Reading(taken, root_pos, root_quat, note, tuple(warnings))


def _asked_for(stated: Convention, order: Order | None, up: Up | None) -> Convention:
    stated = replace(stated, order=order or stated.order)
    if up is None or up == stated.up:
        return stated
    return replace(stated, up=up, base="x forward, z up" if up == "z" else "x forward, y up")


def _more_likely(
    stated: Convention, position: Array, quaternion: Array, *, order_is_fixed: bool, up_is_fixed: bool
) -> tuple[Convention | None, str]:
    """Another reading in which the base is upright and above the ground, and what speaks against the stated one."""
    tilt, height = _tilt(stated, position, quaternion), _height(stated, position)
    if tilt <= _LYING and height >= _LOW:
        return None, ""
    for other in _others(stated, order_is_fixed=order_is_fixed, up_is_fixed=up_is_fixed):
        another_up = other.up != stated.up
        if _tilt(other, position, quaternion) >= _UPRIGHT or (another_up and not _stands_above_ground(other, position)):
            continue
        if tilt > _LYING:
            return other, f"its top would point {np.degrees(tilt):.0f}° away from the sky"
        if another_up:
            return other, f"it would be at a height of {height:.2f} m"
    return None, f"the base's top points {np.degrees(tilt):.0f}° away from the sky" if tilt > _LYING else ""


def _others(stated: Convention, *, order_is_fixed: bool, up_is_fixed: bool) -> list[Convention]:
    """Other readings, the likelier ones first."""
    orders: list[Order] = [stated.order] if order_is_fixed else ["xyzw", "wxyz"]
    frames: list[tuple[Up, Base]] = [
        ("z", "x forward, z up"),
        ("y", "x forward, y up"),
        ("z", "z forward, y up"),
    ]
    frames = [(up, base) for up, base in frames if not up_is_fixed or up == stated.up]
    same_frame = [replace(stated, order=order) for order in orders]
    rest = [Convention(order, up, base) for up, base in frames for order in sorted(orders, key=stated.order.__ne__)]
    return [other for other in (*same_frame, *rest) if other != stated]


def _tilt(convention: Convention, position: Array, quaternion: Array) -> float:
    return _mean_tilt(convention.pose(position, quaternion)[1])


def _mean_tilt(quaternion: Array) -> float:
    """Angle between the base's z axis and the world's, on average."""
    _, x, y, _ = np.moveaxis(quaternion, -1, 0)
    return float(np.arccos(np.clip(1.0 - 2.0 * (x**2 + y**2), -1.0, 1.0)).mean())


def _height(convention: Convention, position: Array) -> float:
    return float(np.median(position[:, {"z": 2, "y": 1}[convention.up]]))


def _stands_above_ground(convention: Convention, position: Array) -> bool:
    """At about one height: a base that lies on a floor with z up must not be stood up by calling y up."""
    height = position[:, {"z": 2, "y": 1}[convention.up]]
    return _height(convention, position) > 2.0 * _LOW and float(np.ptp(height)) < 1.0


def _moves_ahead(position: Array, quaternion: Array) -> float:
    """Cosine between where the base looks and where it goes, weighted by speed; 0 where it hardly goes anywhere."""
    steps = np.diff(position[:, :2], axis=0)
    if len(steps) == 0 or np.linalg.norm(steps, axis=1).sum() < 0.3:
        return 0.0
    w, x, y, z = np.moveaxis(quaternion[:-1], -1, 0)
    ahead = np.stack([1.0 - 2.0 * (y**2 + z**2), 2.0 * (x * y + w * z)], axis=1)
    return float((steps * ahead).sum() / np.linalg.norm(steps, axis=1).sum())
