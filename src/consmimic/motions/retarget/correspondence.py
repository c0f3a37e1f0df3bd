"""Which body of a robot does what which point of the source does. Names only: models come where they are used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from consmimic.errors import unknown


@dataclass(frozen=True, kw_only=True)
class LegPair:
    foot: str
    """A foot of the source."""
    points: tuple[str, str, str]
    """The source's hip, knee and foot."""
    bodies: tuple[str, str, str]
    """The robot's bodies whose origins are on its hip and its knee, and its foot."""
    sole: str | None = None
    """The source's orientation that the sole follows. None: the foot is a ball, which rolls."""


@dataclass(frozen=True, kw_only=True)
class ArmPair:
    points: tuple[str, str, str]
    """The source's shoulder, elbow and hand."""
    bodies: tuple[str, str]
    """The robot's bodies whose origins are on its shoulder and its elbow."""
    hand: tuple[float, float, float]
    """Where the hand is in the frame of the body at the elbow."""


@dataclass(frozen=True, kw_only=True)
class Correspondence:
    base: str
    legs: tuple[LegPair, ...]
    arms: tuple[ArmPair, ...] = ()
    torso: str | None = None
    """The body that is turned as the source's "torso", and that carries the arms."""


def _quadruped(base: str, hip: str, knee: str, foot: str) -> Correspondence:
    return Correspondence(
        base=base,
        legs=tuple(
            LegPair(
                foot=leg,
                points=(f"{leg}_hip", f"{leg}_knee", f"{leg}_foot"),
                bodies=(hip.format(leg), knee.format(leg), foot.format(leg)),
            )
            for leg in ("LF", "RF", "LH", "RH")
        ),
    )


CORRESPONDENCES: Mapping[str, Correspondence] = {
    "anymal_d": _quadruped("base", "{}_THIGH", "{}_SHANK", "{}_FOOT"),
    "gr1": Correspondence(
        base="base_link",
        torso="waist_roll_link",
        legs=tuple(
            LegPair(
                foot=side,
                points=(f"{side}_hip", f"{side}_knee", f"{side}_ankle"),
                bodies=(f"{side}_thigh_pitch_link", f"{side}_shank_pitch_link", f"{side}_foot_roll_link"),
                sole=f"{side}_foot",
            )
            for side in ("left", "right")
        ),
        arms=tuple(
            ArmPair(
                points=(f"{side}_shoulder", f"{side}_elbow", f"{side}_hand"),
                bodies=(f"{side}_upper_arm_roll_link", f"{side}_lower_arm_pitch_link"),
                hand=(0.0, 0.0, -0.21),  # the wrist, straight below the elbow: published bodies have it there
            )
            for side in ("left", "right")
        ),
    ),
}


def correspondence_of(robot: str) -> Correspondence:
    """The built-in one, by the robot's name."""
    if robot not in CORRESPONDENCES:
        raise unknown("robot to retarget to", robot, CORRESPONDENCES)
    return CORRESPONDENCES[robot]
