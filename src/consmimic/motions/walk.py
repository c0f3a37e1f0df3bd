"""The demonstration of humanoid locomotion, made, not recorded: a person's walk from normative joint angles.

Legs follow the angles of :mod:`consmimic.motions.normative` as far as the ground lets them. In stance the foot is where
the ground holds it: it rolls over its heel, lies flat and rolls over its toe, without slipping. Where feet come down,
and how high the pelvis is above them, is what bends hip and knee least. In swing hip, knee and foot take the normative
angles, after a smooth change from those of the stance. The motion is kinematic: nothing in it knows of forces.
"""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass, field, replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError, unknown
from consmimic.motions.chain import Chain, rotation_about
from consmimic.motions.clip import Clip
from consmimic.motions.forward import bodies_of, posed_clip
from consmimic.motions.limits import check_can_move
from consmimic.motions.normative import Gait
from consmimic.motions.operations import trimmed

Array = NDArray[np.float64]

X, Y, Z = np.eye(3)
_LEAVING, _MEETING = 0.6, 0.35
"""Shares of the swing in which a leg comes from where the ground held it, and goes to where it will."""
_SOFTNESS = 0.4
"""How much of its speed over the ground the foot has lost before the heel strikes: 0.4 m/s are left at 1.2 m/s."""
_SAGITTAL = (2, 3, 4)
"""Hip, knee and ankle pitch among the joints of a leg."""
_WAIST = ("waist_yaw_joint", "waist_pitch_joint", "waist_roll_joint")
_ARM = ("shoulder_pitch_joint", "shoulder_roll_joint", "elbow_pitch_joint")  # of either side


@dataclass(frozen=True, kw_only=True)
class Walk:
    """What is not in the normative angles; lengths in m, angles in rad, shares of the gait cycle."""

    speed: float = 1.2
    """m/s, straight ahead."""
    strides: int = 8
    """Gait cycles; the last frame is the first one again, further on."""
    step_width: float = 0.18
    """Between the ankles. People walk narrower (0.1), but GR1's hips are wide and turn inward by 0.09 rad only."""
    sway: float = 0.018
    """How far the pelvis moves over the standing foot."""
    list_share: float = 0.4
    """How much of the normative pelvic list there is, for the same reason."""
    toe_out: float = 0.09
    """How far feet point outward."""
    lean: float = 0.04
    """Of pelvis and trunk, forward."""
    flat: tuple[float, float] = (0.11, 0.35)
    """When in the cycle the foot lies flat and when the heel begins to rise (Perry: 0.12 and 0.31)."""
    least_knee: float = 0.18
    """The knee of a standing leg is bent at least as much."""
    clearance: float = 0.015
    """Of the sole above the ground in the middle of the swing."""
    arm_abduction: float = 0.14
    """Of the upper arms; they hang clear of the hips."""
    fps: float = 50.0
    """Frames per second."""

    def __post_init__(self) -> None:
        for name in ("speed", "strides", "step_width", "fps"):
            if getattr(self, name) <= 0:
                raise UserError(f"{name} is {getattr(self, name)}; it must be more than 0")


def generate_walk(
    model: mujoco.MjModel,
    *,
    root: str,
    feet: tuple[str, ...],
    joint_names: tuple[str, ...],
    default_joint_pos: tuple[float, ...],
    joint_velocity_limits: tuple[float, ...],
    walk: Walk,
) -> Clip:
    """A clip of all bodies and joints. Joints of trunk and arms are named as on GR1; legs are found from `feet`."""
    legs = tuple(_Leg.of(model, root=root, foot=foot) for foot in feet)
    if sorted(leg.side for leg in legs) != [-1.0, 1.0]:
        raise UserError(f"a walk needs a left and a right foot, not {', '.join(feet)}")
    arms = (f"{side}_{joint}" for side in ("left", "right") for joint in _ARM)
    for name in (*_WAIST, *arms, *(name for leg in legs for name in leg.chain.joints)):
        if name not in joint_names:
            raise unknown("joint that walks", name, joint_names)
    plan = _Plan.of(walk, legs[0])
    cycle = np.arange(plan.frames) / plan.frames
    angles: dict[str, Array] = _upper_body(model, plan, cycle)
    for leg in legs:
        try:
            angles |= zip(leg.chain.joints, leg.follow(plan, cycle).T, strict=True)
        except UserError as error:
            raise UserError(f"walk at {walk.speed} m/s: {error}; change the speed") from None
    one_cycle = np.tile(default_joint_pos, (plan.frames, 1))
    for name, column in angles.items():
        one_cycle[:, joint_names.index(name)] = column

    # One frame more on either side, so that velocities are central differences in the first and last frame too.
    numbers = np.arange(-1, walk.strides * plan.frames + 2)
    at = numbers % plan.frames
    base_pos = plan.pelvis_position(cycle)[at]
    base_pos[:, 0] += walk.speed * numbers / walk.fps
    longer = posed_clip(
        model,
        fps=walk.fps,
        joint_names=joint_names,
        joint_pos=one_cycle[at],
        base_pos=base_pos,
        base_quat=_quaternions(plan.pelvis_rotation(cycle))[at],
        bodies=bodies_of(model, root),
        source=f"generated: {walk}; {_departure(plan, legs, angles, cycle)}",
    )
    clip = trimmed(longer, 1 / walk.fps, longer.seconds - 1 / walk.fps)
    check_can_move(
        clip,
        model,
        joint_velocity_limits,
        what=f"walk at {walk.speed} m/s",
        if_beyond=f"lower the speed, or change step_width ({walk.step_width})",
        if_fast="lower the speed",
    )
    return clip


def _departure(plan: _Plan, legs: tuple[_Leg, ...], angles: dict[str, Array], cycle: Array) -> str:
    """How far the ground bent the legs from the normative angles."""
    missed = []
    for leg in legs:
        hip, knee, ankle = (angles[leg.chain.joints[joint]] for joint in _SAGITTAL)
        own = leg.own(cycle)
        flexed = np.stack([-hip - plan.walk.lean, knee, -ankle])
        missed.append(flexed - np.stack([plan.gait.hip(own), plan.gait.knee(own), plan.gait.ankle(own)]))
    rms = np.degrees(np.sqrt(np.mean(np.square(missed), axis=(0, 2))))
    return f"from the normative angles, rms: hip {rms[0]:.1f}°, knee {rms[1]:.1f}°, ankle {rms[2]:.1f}°"


@dataclass(frozen=True, eq=False)
class _Plan:
    """Steps, and the way of the pelvis over them. A cycle begins when the left heel strikes; x moves with the walk."""

    walk: Walk
    gait: Gait
    frames: int
    """Of a cycle; even, so that half a cycle has whole frames too."""
    placement: float = 0.0
    """x of the ankle from the pelvis in the middle of its stance."""
    toe_off: float = 0.0
    """Pitch of the foot when it leaves the ground."""
    heights: Array = field(default_factory=lambda: np.zeros(5))
    """Of the pelvis: the weights of `_waves`."""

    @staticmethod
    def of(walk: Walk, leg: _Leg) -> _Plan:
        """The placement and the toe-off that bend hip and knee least from the normative angles in stance."""
        gait = Gait(speed=walk.speed, leg=leg.length)
        frames = 2 * max(1, round(0.5 * gait.cycle_seconds * walk.fps))
        plans = [
            _Plan(walk, gait, frames, placement, toe_off)._raised(leg)
            for placement in np.arange(-0.2, 0.06, 0.02) * leg.length
            for toe_off in np.arange(0.4, 0.86, 0.09)
        ]
        return min(plans, key=lambda plan: plan._bent(leg))

    def _stance(self) -> tuple[Array, Array]:
        """Instants of a stance and what they weigh: less while both feet stand."""
        stance = np.linspace(0.0, self.gait.duty, 60)
        return stance, np.where((stance > self.gait.duty - 0.5) & (stance < 0.5), 1.0, 0.3)

    def _bent(self, leg: _Leg) -> float:
        """Mean square of what hip and knee miss of the normative angles in stance."""
        stance, weight = self._stance()
        missed = leg.flexed(self, stance, *leg.planted(self, stance)) - leg.normative(self, stance)
        return float(np.average(np.square(missed[:, :2]).sum(axis=1), weights=weight))

    def _raised(self, leg: _Leg) -> _Plan:
        """As high as the normative knee of the standing leg would have the pelvis, in the least squares, but not
        higher than the leg reaches."""
        stance, weight = self._stance()
        ankle, hip, waves = leg.planted(self, stance)[0], leg.hip_position(self, stance), _waves(stance)
        across = np.square(ankle[:, 0] - hip[:, 0]) + np.square(ankle[:, 1] - hip[:, 1] - leg.side * leg.outset)

        def height(knee: Array | float) -> Array:
            return ankle[:, 2] - hip[:, 2] + np.sqrt(np.maximum(np.square(leg.reach(knee)) - across, 0.0))

        highest = height(self.walk.least_knee)
        wanted = np.minimum(height(self.gait.knee(stance)), highest)
        heights = np.zeros(5)
        for _ in range(15):
            root = np.sqrt(weight)
            heights = np.linalg.lstsq(root[:, None] * waves, root * wanted, rcond=None)[0]
            weight = np.where(waves @ heights > highest, 2.0 * weight, weight)
        heights[0] -= max(0.0, (waves @ heights - highest).max())
        return replace(self, heights=heights)

    @property
    def stride(self) -> float:
        return self.walk.speed * self.frames / self.walk.fps

    def pelvis_position(self, cycle: Array) -> Array:  # (T,) → (T, 3)
        sway = self.walk.sway * np.sin(2.0 * np.pi * (cycle - 0.06))
        return np.stack([np.zeros_like(cycle), sway, _waves(cycle) @ self.heights], axis=-1)

    def pelvis_rotation(self, cycle: Array) -> Array:  # (T,) → (T, 3, 3)
        turn = -self.gait.pelvis_rotation * np.cos(2.0 * np.pi * cycle)
        roll = self.walk.list_share * self.gait.pelvis_list * np.sin(2.0 * np.pi * (cycle + 0.08))
        return (
            rotation_about(Z, turn) @ rotation_about(Y, np.full_like(cycle, self.walk.lean)) @ rotation_about(X, roll)
        )


def _waves(cycle: Array) -> Array:
    """What is the same for both legs: twice and four times per cycle."""
    turns = 4.0 * np.pi * cycle
    waves = (np.ones_like(cycle), np.cos(turns), np.sin(turns), np.cos(2.0 * turns), np.sin(2.0 * turns))
    return np.stack(waves, axis=-1)


@dataclass(frozen=True, eq=False)
class _Leg:
    """Lengths in m; heel and toe are where the round ends of the sole have their middle, seen from the ankle."""

    chain: Chain
    side: float  # 1 left, -1 right
    heel: Array  # (3,)
    toe: Array  # (3,)
    radius: float

    @staticmethod
    def of(model: mujoco.MjModel, *, root: str, foot: str) -> _Leg:
        chain = Chain.of(model, root=root, tip=foot)
        if len(chain.joints) != 6 or not np.allclose(chain.axes, [X, Z, Y, Y, Y, X]):
            raise UserError(
                f"no walking leg ends in '{foot}': it needs joints about x, z, y, y, y and x, and has "
                f"{', '.join(chain.joints)}"
            )
        geoms = [
            geom
            for geom in range(model.ngeom)
            if model.geom_bodyid[geom] == model.body(foot).id and model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE
            and model.geom_contype[geom]
        ]  # fmt: skip
        if not geoms:
            raise UserError(f"'{foot}' has no capsule that touches, so no sole to walk on")
        ends = []
        for geom in geoms:
            along = _rotation_matrix(model.geom_quat[geom])[:, 2] * model.geom_size[geom, 1]
            ends += [model.geom_pos[geom] - along, model.geom_pos[geom] + along]
        ends = np.array(ends)
        middle = np.array([1.0, 0.0, 1.0])
        return _Leg(
            chain=chain,
            side=float(np.sign(chain.offsets[0][1])),
            heel=ends[ends[:, 0].argmin()] * middle,
            toe=ends[ends[:, 0].argmax()] * middle,
            radius=float(model.geom_size[geoms[0], 0]),
        )

    @property
    def hip(self) -> Array:
        """Of the flexing joint from the root."""
        return self.chain.offsets[:3].sum(axis=0)

    @property
    def outset(self) -> float:
        """How much farther from the middle the ankle is than the hip; less than 0 where it is nearer."""
        return float(self.side * self.chain.offsets[3:5, 1].sum())

    @property
    def bones(self) -> tuple[float, float]:
        """Thigh and shank, in the plane in which they bend."""
        return float(np.hypot(*self.chain.offsets[3][[0, 2]])), float(np.hypot(*self.chain.offsets[4][[0, 2]]))

    @property
    def length(self) -> float:
        """From hip to sole."""
        return sum(self.bones) + self.radius - float(self.heel[2])

    def reach(self, knee: Array | float) -> Array:
        """From hip to ankle."""
        thigh, shank = self.bones
        return np.sqrt(thigh**2 + shank**2 + 2.0 * thigh * shank * np.cos(knee))

    def own(self, cycle: Array) -> Array:
        """Cycles since this leg's heel struck."""
        return (cycle if self.side > 0.0 else cycle + 0.5) % 1.0

    def hip_position(self, plan: _Plan, own: Array) -> Array:
        cycle = own if self.side > 0.0 else own + 0.5
        return plan.pelvis_position(cycle) + np.squeeze(plan.pelvis_rotation(cycle) @ self.hip[:, None], axis=-1)

    def normative(self, plan: _Plan, own: Array) -> Array:
        """Flexion of hip, from the vertical, and knee, and the pitch of the foot, toes down."""  # (T,) → (T, 3)
        hip, knee = plan.gait.hip(own), plan.gait.knee(own)
        return np.stack([hip, knee, knee - hip - plan.gait.ankle(own)], axis=-1)

    def carried(self, plan: _Plan, own: Array, flexed: Array) -> Array:
        """The ankle in its lane, where hip and knee have it."""  # (T,), (T, 3) → (T, 3)
        (thigh, shank), (hip, knee, _) = self.bones, flexed.T
        ankle = self.hip_position(plan, own)
        aside = self._lane(plan) - ankle[:, 1] - self.side * self.outset
        ankle[:, 0] += thigh * np.sin(hip) + shank * np.sin(hip - knee)
        ankle[:, 1] = self._lane(plan)
        ankle[:, 2] -= np.sqrt(np.square(thigh * np.cos(hip) + shank * np.cos(hip - knee)) - np.square(aside))
        return ankle

    def flexed(self, plan: _Plan, own: Array, ankle: Array, pitch: Array) -> Array:
        """The inverse of `carried`."""
        thigh, shank = self.bones
        ahead, aside, down = (ankle - self.hip_position(plan, own)).T * np.array([[1.0], [1.0], [-1.0]])
        down = np.hypot(down, aside - self.side * self.outset)
        cosine = (ahead**2 + down**2 - thigh**2 - shank**2) / (2.0 * thigh * shank)
        knee = np.arccos(np.clip(cosine, -1.0, 1.0))
        hip = np.arctan2(ahead, down) + np.arctan2(shank * np.sin(knee), thigh + shank * np.cos(knee))
        return np.stack([hip, knee, pitch], axis=-1)

    def _lane(self, plan: _Plan) -> float:
        return self.side * 0.5 * plan.walk.step_width

    def planted(self, plan: _Plan, own: Array) -> tuple[Array, Array]:
        """Where the ground holds the ankle, and the pitch of the foot: it rolls over heel and toe without slipping."""
        flat, rise = plan.walk.flat
        strike = float(self.normative(plan, np.zeros(1))[0, 2])
        falling = np.clip(1.0 - own / flat, 0.0, 1.0)
        rising = np.clip((own - rise) / (plan.gait.duty - rise), 0.0, None)
        pitch = strike * falling**2 * (2.0 - falling) + plan.toe_off * rising**2.5

        pivot = np.where(pitch[:, None] < 0.0, self.heel, self.toe)
        rolled = pivot - np.squeeze(rotation_about(Y, pitch) @ pivot[..., None], axis=-1)
        rolled[:, 0] += self.radius * pitch
        rolled[:, 2] += self.radius - pivot[:, 2]
        ankle = np.squeeze(rotation_about(Z, np.array(self.side * plan.walk.toe_out)) @ rolled[..., None], axis=-1)
        ankle[:, 0] += plan.placement + plan.stride * (0.5 * plan.gait.duty - own)
        ankle[:, 1] += self._lane(plan)
        return ankle, pitch

    def path(self, plan: _Plan, own: Array) -> tuple[Array, Array]:
        """Of the ankle, (T, 3), and the pitch of the foot, (T,): planted, then carried by the normative angles."""
        duty = plan.gait.duty
        ankle, pitch = self.planted(plan, np.minimum(own, duty))
        swings = own > duty
        swing = (own[swings] - duty) / (1.0 - duty)

        def gap(at: Array) -> Array:
            return self.flexed(plan, at, *self.planted(plan, at)) - self.normative(plan, at)

        step, flexed = 1e-4, self.normative(plan, own[swings])
        for end, since, lasts, share in ((duty, swing, _LEAVING, 1.0), (0.0, swing - 1.0, -_MEETING, _SOFTNESS)):
            before, at, after = gap(np.array([end - step, end, end + step]))
            slope = (1.0 - duty) * (after - before) / (2.0 * step)
            flexed += _fading(since / lasts, at, share * lasts * slope)
        flexed[:, 1] = np.maximum(flexed[:, 1], 0.75 * plan.walk.least_knee)  # a stretched leg has no room to turn
        ankle[swings], pitch[swings] = self.carried(plan, own[swings], flexed), flexed[:, 2]

        lifted = np.sin(np.pi * swing) ** 2
        middle = lifted > 0.2
        height = self.lowest(ankle[swings], pitch[swings])
        missing = plan.walk.clearance - (height[middle] / lifted[middle]).min(initial=np.inf)
        height += max(0.0, missing) * lifted
        ankle[swings, 2] += max(0.0, missing) * lifted + np.maximum(0.0, -height)
        return ankle, pitch

    def lowest(self, ankle: Array, pitch: Array) -> Array:
        """Height of the sole's lowest point."""
        ends = [ankle[:, 2] - np.sin(pitch) * end[0] + np.cos(pitch) * end[2] for end in (self.heel, self.toe)]
        return np.minimum(*ends) - self.radius

    def follow(self, plan: _Plan, cycle: Array) -> Array:
        """Joint angles that take the foot along its path."""  # (T,) → (T, 6)
        own = self.own(cycle)
        ankle, pitch = self.path(plan, own)
        toe_out = np.full_like(pitch, self.side * plan.walk.toe_out)
        foot = rotation_about(Z, toe_out) @ rotation_about(Y, pitch)
        into_root = np.swapaxes(plan.pelvis_rotation(cycle), -1, -2)
        position = np.squeeze(into_root @ (ankle - plan.pelvis_position(cycle))[..., None], axis=-1)
        start = np.zeros((len(cycle), 6))
        start[:, _SAGITTAL] = np.stack([-plan.gait.hip(own), plan.gait.knee(own), -plan.gait.ankle(own)], axis=-1)
        return self.chain.angles(position, into_root @ foot, start)


def _fading(share: Array, start: Array, slope: Array) -> Array:
    """From a value and a slope at 0 to rest at 0 from 1 on: a cubic."""  # (T,), (D,), (D,) → (T, D)
    t = np.minimum(share, 1.0)[:, None]
    return (1.0 - t) ** 2 * ((1.0 + 2.0 * t) * start + t * slope)


def _upper_body(model: mujoco.MjModel, plan: _Plan, cycle: Array) -> dict[str, Array]:
    """The trunk turns against the pelvis and is upright; each arm swings against the leg of its side."""
    trunk = rotation_about(Z, plan.gait.trunk_rotation * np.cos(2.0 * np.pi * cycle))
    trunk = trunk @ rotation_about(Y, np.full_like(cycle, plan.walk.lean))
    relative = np.swapaxes(plan.pelvis_rotation(cycle), -1, -2) @ trunk
    turned = (
        np.arctan2(relative[:, 1, 0], relative[:, 0, 0]),
        -np.arcsin(relative[:, 2, 0]),
        np.arctan2(relative[:, 2, 1], relative[:, 2, 2]),
    )
    angles: dict[str, Array] = dict(zip(_WAIST, turned, strict=True))
    for name, side in (("left", 1.0), ("right", -1.0)):
        own = cycle if side > 0.0 else cycle + 0.5
        pitch, roll, elbow = (f"{name}_{joint}" for joint in _ARM)
        angles[pitch] = -plan.gait.shoulder(own) / model.joint(pitch).axis[1]  # the axis does not lie level
        angles[roll] = np.full_like(cycle, side * plan.walk.arm_abduction)
        angles[elbow] = -plan.gait.elbow(own)
    return angles


def _rotation_matrix(quaternion: Array) -> Array:  # (4,) → (3, 3)
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, quaternion)
    return matrix.reshape(3, 3)


def _quaternions(rotations: Array) -> Array:  # (T, 3, 3) → (T, 4)
    found = np.empty((len(rotations), 4))
    for quaternion, rotation in zip(found, rotations, strict=True):
        mujoco.mju_mat2Quat(quaternion, rotation.ravel())
    return found
