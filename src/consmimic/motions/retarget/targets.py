"""Where the robot's base, feet and hands are to be: the source's, scaled to the robot's limbs."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from consmimic.motions import rotation
from consmimic.motions.retarget.contacts import Flags
from consmimic.motions.retarget.correspondence import ArmPair, Correspondence, LegPair
from consmimic.motions.retarget.footsteps import planted, rolling, swing_share
from consmimic.motions.retarget.sampling import low_pass
from consmimic.motions.retarget.soles import Sole
from consmimic.motions.retarget.source import SourceMotion

Array = NDArray[np.float64]

LEFT = np.array([0.0, 1.0, 0.0])
_HEADING_CUTOFF = 0.8
"""Hz. The heading is where the walk goes, not how the pelvis swings in each step."""
_FLAT_PITCH = 0.1
"""rad. While it stands, a foot pitched by much less is flat: recorded soles are never quite level."""
_STRETCH = 0.99
"""A leg is stretched to at most this share of its length: nearer to straight the knee has no say in where the foot is,
and a small change of the target is a large one of the angles."""
_STRETCH_SECONDS = 0.25
"""The base is lowered for a stretched leg this long before and after, so that it bobs no more than the source's."""
_CLEARANCE = 0.005
"""m, that a swinging foot keeps above the ground where the source's scrapes it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Targets:
    base_pos: Array  # (T, 3)
    base_quat: Array  # (T, 4)
    feet: Mapping[str, FootTarget]
    """By the robot's body."""
    hands: Mapping[str, HandTarget]
    """By the robot's body at the elbow."""
    torso_quat: Array | None  # (T, 4)


@dataclass(frozen=True, kw_only=True, eq=False)
class FootTarget:
    """A sole has an orientation; a ball's centre is aimed at, and it turns as the leg makes it."""

    sole: Sole
    stance: Flags  # (T,)
    pos: Array  # (T, 3)
    quat: Array | None  # (T, 4)

    @property
    def point(self) -> Array:
        """What is aimed, in the body's frame."""
        return self.sole.centre if self.quat is None else np.zeros(3)


@dataclass(frozen=True, kw_only=True, eq=False)
class HandTarget:
    """In the torso's frame, where the shoulder does not move."""

    elbow: Array  # (T, 3)
    hand: Array  # (T, 3)
    hand_offset: Array  # (3,), in the frame of the body at the elbow


@dataclass(frozen=True, eq=False)
class Proportions:
    """The robot in its default pose, and how large it is against the source."""

    scale: float
    """Robot's legs over source's."""
    source_hips: Array
    """Middle of the hips in the root's frame."""
    robot_hips: Array
    hips: Mapping[str, Array]
    """Foot's body → its leg's hip in the frame of the base …"""
    lengths: Mapping[str, float]
    """… its leg's length …"""
    stance: Mapping[str, Array]
    """… and its point in the frame of the base."""
    shoulders: Mapping[str, Array]
    """Elbow's body → its shoulder in the torso's frame."""
    arms: Mapping[str, tuple[float, float]]
    """Elbow's body → lengths of upper arm and forearm."""

    def with_feet_apart(self, further: float) -> Proportions:
        """Each foot this much further outward."""
        outward = {foot: np.sign(place[1] - self.robot_hips[1]) for foot, place in self.stance.items()}
        moved = {foot: place + further * outward[foot] * LEFT for foot, place in self.stance.items()}
        return replace(self, stance=moved)

    @staticmethod
    def of(source: SourceMotion, model: mujoco.MjModel, pairs: Correspondence, data: mujoco.MjData) -> Proportions:
        """`data` holds the robot in its default pose."""
        ends = {leg: Sole.of(model, leg.bodies[2]).centre if leg.sole is None else np.zeros(3) for leg in pairs.legs}
        lengths = {leg.bodies[2]: _length(data, leg.bodies, ends[leg]) for leg in pairs.legs}
        robot_hips = {leg.bodies[2]: _in_frame(data, pairs.base, data.body(leg.bodies[0]).xpos) for leg in pairs.legs}
        hips = np.mean([source.point(leg.points[0]) for leg in pairs.legs], axis=0)
        in_root = rotation.rotate(rotation.inverse(source.root_quat), hips - source.root_pos)
        arms = {
            arm.bodies[1]: (_length(data, arm.bodies, np.zeros(3)), float(np.linalg.norm(arm.hand)))
            for arm in pairs.arms
        }
        stance = {
            leg.bodies[2]: _in_frame(data, pairs.base, _point(data, leg.bodies[2], ends[leg])) for leg in pairs.legs
        }
        return Proportions(
            scale=sum(lengths.values()) / sum(source.length(*leg.points) for leg in pairs.legs),
            source_hips=in_root.mean(axis=0),
            robot_hips=np.mean(list(robot_hips.values()), axis=0),
            hips=robot_hips,
            lengths=lengths,
            stance=stance,
            shoulders={
                arm.bodies[1]: _in_frame(data, pairs.torso or pairs.base, data.body(arm.bodies[0]).xpos)
                for arm in pairs.arms
            },
            arms=arms,
        )


def targets(
    source: SourceMotion,
    stances: Mapping[str, Flags],
    model: mujoco.MjModel,
    pairs: Correspondence,
    size: Proportions,
    *,
    lock: bool = True,
) -> Targets:
    """Without `lock`, feet go where the source's go: what the locked ones are compared with."""
    feet = {}
    for leg in pairs.legs:
        foot = _ball_target if leg.sole is None else _sole_target
        feet[leg.bodies[2]] = foot(source, stances[leg.foot], model, leg, size, lock)
    base = _base(source, model, pairs, size)
    if lock:
        base = base - rotation.UP * _lowering(base, source, pairs, size, feet)[:, None]
    return Targets(
        base_pos=base,
        base_quat=source.root_quat,
        feet=feet,
        hands={arm.bodies[1]: _hand_target(source, arm, size, torso=pairs.torso) for arm in pairs.arms},
        torso_quat=None if pairs.torso is None else source.turn("torso"),
    )


def with_rolling(aims: Targets, plain: Targets, foot_quats: Mapping[str, Array]) -> Targets:
    """Balls that turn as the solution had them turn: their centres move on by as much as they roll."""
    feet = dict(aims.feet)
    for body, foot in plain.feet.items():
        if foot.quat is None:
            offset = rolling(foot_quats[body], foot.stance, foot.sole.radius)
            feet[body] = FootTarget(sole=foot.sole, stance=foot.stance, pos=foot.pos + offset, quat=None)
    return Targets(
        base_pos=aims.base_pos, base_quat=aims.base_quat, feet=feet, hands=aims.hands, torso_quat=aims.torso_quat
    )


def _base(source: SourceMotion, model: mujoco.MjModel, pairs: Correspondence, size: Proportions) -> Array:
    """Hips over ankles as high as the source's, in proportion."""
    hips = source.root_pos + rotation.rotate(source.root_quat, size.source_hips)
    scaled = _scaled(hips, source, model, pairs.legs[0], size)
    return scaled - rotation.rotate(source.root_quat, size.robot_hips)


def _lowering(
    base: Array, source: SourceMotion, pairs: Correspondence, size: Proportions, feet: Mapping[str, FootTarget]
) -> Array:
    """How far the base must sink for no leg to be stretched, smoothly."""  # (T,)
    needed = np.zeros(len(base))
    for leg in pairs.legs:
        foot = feet[leg.bodies[2]].pos
        down = base + rotation.rotate(source.root_quat, size.hips[leg.bodies[2]]) - foot
        sideways = np.minimum(np.linalg.norm(down[:, :2], axis=-1), 0.9 * size.lengths[leg.bodies[2]])
        highest = np.sqrt((_STRETCH * size.lengths[leg.bodies[2]]) ** 2 - sideways**2)
        needed = np.maximum(needed, down[:, 2] - highest)
    reach = max(1, round(_STRETCH_SECONDS * source.fps))
    around = np.lib.stride_tricks.sliding_window_view(np.pad(needed, 2 * reach, mode="edge"), 2 * reach + 1).max(axis=1)
    bump = np.hanning(2 * reach + 3)[1:-1]
    return np.convolve(around, bump / bump.sum(), mode="valid")


def _scaled(track: Array, source: SourceMotion, model: mujoco.MjModel, leg: LegPair, size: Proportions) -> Array:
    """Heights above the ankle's of a flat foot scale; what is under the ankle is the robot's own."""
    sole = Sole.of(model, leg.bodies[2])
    scaled = size.scale * track
    height = sole.radius if leg.sole is None else sole.height
    scaled[:, 2] += height - size.scale * source.foot_height
    return scaled


def _foot_track(source: SourceMotion, model: mujoco.MjModel, leg: LegPair, size: Proportions) -> Array:
    """Scaled, and moved by what the robot's feet stand apart otherwise than the scaled source's."""
    heading = rotation.from_yaw(
        low_pass(np.unwrap(rotation.yaw_of(source.root_quat))[:, None], source.fps, _HEADING_CUTOFF)[:, 0]
    )
    robot = size.stance[leg.bodies[2]] - size.robot_hips
    apart = robot - size.scale * (source.stance[leg.points[2]] - size.source_hips)
    apart[2] = 0.0
    return _scaled(source.point(leg.points[2]), source, model, leg, size) + rotation.rotate(heading, apart)


def _ball_target(
    source: SourceMotion, stance: Flags, model: mujoco.MjModel, leg: LegPair, size: Proportions, lock: bool
) -> FootTarget:
    sole = Sole.of(model, leg.bodies[2])
    pos = _foot_track(source, model, leg, size)
    if lock:
        lift = planted(pos[:, 2:] - sole.radius, stance)[:, 0]
        level = _kept_above(lift - _standing(lift, stance), swing_share(stance))
        pos = np.column_stack([planted(pos[:, :2], stance), sole.radius + level])
    return FootTarget(sole=sole, stance=stance, pos=pos, quat=None)


def _sole_target(
    source: SourceMotion, stance: Flags, model: mujoco.MjModel, leg: LegPair, size: Proportions, lock: bool
) -> FootTarget:
    assert leg.sole is not None
    sole = Sole.of(model, leg.bodies[2])
    pos = _foot_track(source, model, leg, size)
    quat = source.turn(leg.sole)
    if lock:
        yaw, roll, pitch = rotation.yrp(quat)
        swing = swing_share(stance)
        pitch = _standing_pitch(source, leg, pitch, stance, sole, size) * (1.0 - swing) + pitch * swing
        yaw = planted(np.unwrap(yaw)[:, None], stance)[:, 0]
        ahead = np.column_stack([np.cos(yaw), np.sin(yaw)]) * sole.rolled_forward(pitch)[:, None]
        place = planted(pos[:, :2] - ahead, stance) + ahead
        resting = sole.resting_height(pitch, roll * swing)
        lift = planted((pos[:, 2] - resting)[:, None], stance)[:, 0]
        height = resting + _kept_above(lift - _standing(lift, stance), swing)
        pos = np.column_stack([place, height])
        quat = rotation.from_yrp(yaw, roll * swing, pitch)
    return FootTarget(sole=sole, stance=stance, pos=pos, quat=quat)


def _standing_pitch(
    source: SourceMotion, leg: LegPair, pitch: Array, stance: Flags, sole: Sole, size: Proportions
) -> Array:
    """Level while the source's foot is nearly so; the heel rises and the toe drops no more than the source's do."""
    flat = float(np.median(pitch[stance])) if stance.any() else 0.0
    bent = pitch - flat
    bent = np.sign(bent) * (np.hypot(bent, _FLAT_PITCH) - _FLAT_PITCH)
    heel, toe = (
        rotation.rotate(
            rotation.inverse(source.turn(leg.sole or "")), source.point(point) - source.point(leg.points[2])
        ).mean(axis=0)[0]
        for point in source.feet[leg.foot]
    )
    longer = np.where(bent > 0.0, sole.toe / (size.scale * toe), sole.heel / (size.scale * heel))
    return bent / np.maximum(longer, 1.0)


def _standing(lift: Array, stance: Flags) -> Array:
    """What is left of the height of a foot while it stands, between the stances as a straight line: it goes to 0."""
    frames = np.arange(len(lift))
    return np.interp(frames, frames[stance], lift[stance]) if stance.any() else np.zeros_like(lift)


def _kept_above(lift: Array, swing: Array) -> Array:
    """Smoothly, the larger one of the height and a small clearance, which is 0 while the foot stands."""
    above = lift - _CLEARANCE * swing
    return _CLEARANCE * swing + 0.5 * (above + np.hypot(above, 2.0 * _CLEARANCE * swing))


def _hand_target(source: SourceMotion, arm: ArmPair, size: Proportions, *, torso: str | None) -> HandTarget:
    turn = rotation.inverse(source.root_quat if torso is None else source.turn("torso"))
    shoulder, elbow, hand = (rotation.rotate(turn, source.point(name)) for name in arm.points)
    upper, fore = size.arms[arm.bodies[1]]
    elbow_at = size.shoulders[arm.bodies[1]] + upper * _direction(elbow - shoulder)
    return HandTarget(elbow=elbow_at, hand=elbow_at + fore * _direction(hand - elbow), hand_offset=np.array(arm.hand))


def _direction(vector: Array) -> Array:
    return vector / np.maximum(np.linalg.norm(vector, axis=-1, keepdims=True), 1e-9)


def _length(data: mujoco.MjData, bodies: tuple[str, ...], end: Array) -> float:
    """Along the bodies' origins, to a point of the last one."""
    places = [*(data.body(name).xpos for name in bodies[:-1]), _point(data, bodies[-1], end)]
    return sum(float(np.linalg.norm(b - a)) for a, b in itertools.pairwise(places))


def _point(data: mujoco.MjData, body: str, offset: Array) -> Array:
    return data.body(body).xpos + data.body(body).xmat.reshape(3, 3) @ offset


def _in_frame(data: mujoco.MjData, body: str, point: Array) -> Array:
    return data.body(body).xmat.reshape(3, 3).T @ (point - data.body(body).xpos)
