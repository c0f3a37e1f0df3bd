"""The whole way: a source's motion in, the robot's clip and what had to be bent out."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.motions import rotation
from consmimic.motions.clip import Clip
from consmimic.motions.forward import base_qpos, bodies_of, posed_clip
from consmimic.motions.retarget import seams
from consmimic.motions.retarget.contacts import Flags, Ground, levelled, stances
from consmimic.motions.retarget.correspondence import Correspondence
from consmimic.motions.retarget.report import Distance, RetargetReport, deepest, largest_slip, shares_at_limit
from consmimic.motions.retarget.robots import poses_by_name
from consmimic.motions.retarget.sampling import repeats, resampled, without_repeats
from consmimic.motions.retarget.source import SourceMotion
from consmimic.motions.retarget.targets import FootTarget, Proportions, Targets, targets, with_rolling

Array = NDArray[np.float64]

_HEALING_SECONDS = 0.2
_JUMP = 3.0
"""A step is a jump if it is this many times more off its neighbours than is usual in the motion, and around it …"""
_JUMP_OF_LEG = 0.02
"""… and by this share of a leg's length."""
_AROUND = 6
"""Frames; a jump also throws the steps beside it off their neighbours, so those do not count."""
_SEAM_JUMP = 1.5
"""Where a loop closes less is needed: there it is known that something was cut."""
_ROLLING_ROUNDS = 2
"""What is left of a ball's rolling error each time is about its radius over the leg's length."""
_LEAD_SECONDS = 1.2
"""A loop is solved from so long before its first frame to so long after its last: a stride, so that steps are whole."""
_NARROW, _WIDEST = 0.005, 0.05
"""m. Feet are set further apart if the base had to give way sideways by more than the first; at most by the second."""
_HURRIED = 0.02
"""Share of the frames in which joints may be at their speed limits and lag a little, before the clip is slowed down."""
_TURNING = np.radians(30.0)
"""A clip that turns by more has no one heading; then its first frame faces +x."""


@dataclass(frozen=True, kw_only=True)
class Retargeting:
    """How it is done; what a robot or a source is, is not said here."""

    fps: float = 50.0
    """Of the clip."""
    laps: int = 1
    """How often a loop is run through."""
    cutoff: float | None = 8.0
    """Hz; what is faster is smoothed away. Steps have little above 6 Hz. None: nothing is."""
    max_slow_down: float = 1.5
    """Where joints are too slow, the clip may take this many times longer; beyond that, limbs lag."""

    def __post_init__(self) -> None:
        if self.fps <= 0.0:
            raise UserError(f"fps is {self.fps}; it must be more than 0")
        if self.laps < 1:
            raise UserError(f"laps is {self.laps}; at least 1 is needed")
        if self.max_slow_down < 1.0:
            raise UserError(f"max_slow_down is {self.max_slow_down}; it must be at least 1")
        if self.cutoff is not None and self.cutoff <= 0.0:
            raise UserError(f"cutoff is {self.cutoff}; it must be more than 0 Hz, or none")


@dataclass(frozen=True, eq=False)
class Retargeted:
    clip: Clip
    report: RetargetReport
    stances: Mapping[str, Flags]
    """Foot's body → the frames in which it was made to stand, (T,)."""


def retarget(
    source: SourceMotion,
    *,
    robot: str,
    model: mujoco.MjModel,
    pairs: Correspondence,
    joint_names: tuple[str, ...],
    default_joint_pos: tuple[float, ...],
    joint_velocity_limits: tuple[float, ...],
    settings: Retargeting,
) -> Retargeted:
    """The clip of all bodies of the robot. It starts above the origin and heads for +x."""
    limits = dict(zip(joint_names, joint_velocity_limits, strict=True))
    start = _default_coordinates(model, joint_names, default_joint_pos)
    copies = repeats(source)
    source = without_repeats(source, copies)

    staged = _Stage.of(source, model, pairs, start, settings)
    solution, aims = _solved(staged, model, pairs, start, settings.fps, limits=None)
    further = _too_narrow(staged, solution, model, pairs)
    if further > _NARROW:
        staged = _Stage.of(source, model, pairs, start, settings, further=further)
        solution, aims = _solved(staged, model, pairs, start, settings.fps, limits=None)
    shares = _speed_shares(model, solution, limits, settings.fps)
    if shares.max() > 1.0:
        slowed = float(np.clip(np.quantile(shares.max(axis=1), 1.0 - _HURRIED), 1.0, settings.max_slow_down))
        staged = _Stage.of(source, model, pairs, start, settings, slowed=slowed, further=staged.further)
        solution, aims = _solved(staged, model, pairs, start, settings.fps, limits=limits)

    coordinates = _facing_forward(model, pairs.base, solution[staged.kept])
    clip = posed_clip(
        model,
        fps=settings.fps,
        joint_names=joint_names,
        joint_pos=coordinates[:, [int(model.joint(name).qposadr[0]) for name in joint_names]],
        base_pos=coordinates[:, base_qpos(model, pairs.base)][:, :3],
        base_quat=coordinates[:, base_qpos(model, pairs.base)][:, 3:],
        bodies=bodies_of(model, pairs.base),
        source=_told(source, robot, staged),
    )
    report = _report(staged, solution, aims, clip, source, robot, model, pairs, limits, settings, copies)
    return Retargeted(clip, report, {body: foot.stance[staged.kept] for body, foot in staged.locked.feet.items()})


@dataclass(frozen=True, kw_only=True, eq=False)
class _Stage:
    """What is to be solved: the source at the clip's rate, a loop with some of the laps before and after it."""

    motion: SourceMotion
    ground: Ground
    size: Proportions
    plain: Targets
    locked: Targets
    kept: slice
    """The frames that become the clip."""
    slowed: float
    stretched: float
    further: float
    healed: int
    seam: float | None

    @staticmethod
    def of(
        source: SourceMotion,
        model: mujoco.MjModel,
        pairs: Correspondence,
        start: Array,
        settings: Retargeting,
        *,
        slowed: float = 1.0,
        further: float = 0.0,
    ) -> _Stage:
        leg_length = float(np.mean([source.length(*leg.points) for leg in pairs.legs]))
        if source.loops:
            unrolled, period = seams.unrolled(source, settings.laps + 2)
        else:
            unrolled, period = source, len(source) - 1
        jumps = seams.jumps(unrolled)
        at = _to_heal(jumps, period if source.loops else None, leg_length)
        healed = seams.healed(unrolled, at, window=_HEALING_SECONDS)

        seconds = period / source.fps
        if source.loops:
            lap = max(2, round(seconds * slowed * settings.fps))
            lead = min(lap, round(_LEAD_SECONDS * slowed * settings.fps))
            times = (seconds / lap) * np.arange(lap - lead, (settings.laps + 1) * lap + lead + 1, dtype=np.float64)
            kept, stretched = slice(lead, lead + settings.laps * lap + 1), lap / settings.fps / (seconds * slowed)
        else:
            frames = int(seconds * slowed * settings.fps + 1e-9) + 1
            times = np.arange(frames, dtype=np.float64) / (settings.fps * slowed)
            kept, stretched = slice(0, len(times)), 1.0
        cutoff = None if settings.cutoff is None else settings.cutoff / (slowed * stretched)
        level, ground = levelled(resampled(healed, times, fps=settings.fps, cutoff=cutoff))
        standing = stances(level, ground, leg_length=leg_length, slowed=slowed)
        data = mujoco.MjData(model)
        data.qpos[:] = start
        mujoco.mj_kinematics(model, data)
        size = Proportions.of(source, model, pairs, data).with_feet_apart(further)
        inside = at[(at >= period) & (at < 2 * period)] if source.loops else at
        return _Stage(
            motion=level,
            ground=ground,
            size=size,
            plain=targets(level, standing, model, pairs, size, lock=False),
            locked=targets(level, standing, model, pairs, size),
            kept=kept,
            slowed=slowed,
            stretched=stretched,
            further=further,
            healed=len(inside),
            seam=size.scale * float(jumps[period - 1]) if source.loops else None,
        )


def _to_heal(jumps: Array, period: int | None, leg_length: float) -> NDArray[np.intp]:
    """The frames after which to heal: those whose jump is the largest around, and large."""
    usual = float(np.median(jumps))
    beside = np.pad(jumps, _AROUND, mode="edge")
    shifted = {shift: beside[_AROUND + shift :][: len(jumps)] for shift in range(-_AROUND, _AROUND + 1)}
    peak = jumps >= np.max([shifted[shift] for shift in (-1, 0, 1)], axis=0)
    around = np.max([track for shift, track in shifted.items() if abs(shift) > 1], axis=0)
    large = jumps > np.maximum(_JUMP * np.maximum(usual, around), _JUMP_OF_LEG * leg_length)
    if period is not None:
        closes = np.zeros(len(jumps), dtype=bool)
        closes[period - 1 :: period] = True
        large |= closes & (jumps > _SEAM_JUMP * usual)
    return np.flatnonzero(peak & large)


def _solved(
    staged: _Stage,
    model: mujoco.MjModel,
    pairs: Correspondence,
    start: Array,
    fps: float,
    *,
    limits: Mapping[str, float] | None,
) -> tuple[Array, Targets]:
    """(T, nq), and what was aimed at in the end: solved again while balls roll."""
    solve = _solver()
    balls = [body for body, foot in staged.locked.feet.items() if foot.quat is None]
    aims = staged.locked
    solution = solve(model, pairs, aims, start=start, fps=fps, joint_velocity_limits=limits)
    for _ in range(_ROLLING_ROUNDS if balls else 0):
        aims = with_rolling(aims, staged.locked, poses_by_name(model, balls, solution)[1])
        solution = solve(model, pairs, aims, start=start, fps=fps, joint_velocity_limits=limits)
    return solution, aims


def _solver() -> Any:
    try:
        from consmimic.motions.retarget.ik import solve
    except ImportError as error:
        raise UserError(
            f"retargeting needs mink and a solver of quadratic programs ({error}): pip install 'consmimic[retarget]'"
        ) from None
    return solve


def _default_coordinates(
    model: mujoco.MjModel, joint_names: tuple[str, ...], default_joint_pos: tuple[float, ...]
) -> Array:
    start = np.array(model.qpos0)
    for name, angle in zip(joint_names, default_joint_pos, strict=True):
        start[int(model.joint(name).qposadr[0])] = angle
    return start


def _too_narrow(staged: _Stage, solution: Array, model: mujoco.MjModel, pairs: Correspondence) -> float:
    """How far the base is pushed away sideways from a foot that stands: where hips cannot swing legs further in."""
    places, turns = poses_by_name(model, [pairs.base], solution)
    aside = rotation.rotate(rotation.inverse(turns[pairs.base]), places[pairs.base] - staged.locked.base_pos)[:, 1]
    pushed = [0.0]
    for body, foot in staged.locked.feet.items():
        if foot.quat is None:  # beasts stand wide enough; what pushes them aside is not the inner limits of hips
            continue
        outward = np.sign(staged.size.stance[body][1] - staged.size.robot_hips[1])
        pushed.extend(-outward * aside[staged.kept][foot.stance[staged.kept]])
    return float(np.clip(np.quantile(pushed, 0.95), 0.0, _WIDEST))


def _speed_shares(model: mujoco.MjModel, solution: Array, limits: Mapping[str, float], fps: float) -> Array:
    """Of its speed limit, for each joint, from each frame to the next."""  # (T − 1, J)
    columns = [int(model.joint(name).qposadr[0]) for name in limits]
    return np.abs(np.diff(solution[:, columns], axis=0)) * fps / np.array(list(limits.values()))


def _facing_forward(model: mujoco.MjModel, base: str, coordinates: Array) -> Array:
    """Moved to the origin and turned about z; nothing else changes."""
    pose = coordinates[:, base_qpos(model, base)]
    place, turn = pose[:, :3], pose[:, 3:]
    yaw = np.unwrap(rotation.yaw_of(turn))
    heading = yaw[0] if abs(yaw[-1] - yaw[0]) > _TURNING else float(yaw.mean())
    back = rotation.from_yaw(np.array(-heading))
    moved = coordinates.copy()
    moved[:, base_qpos(model, base)] = np.concatenate(
        [
            rotation.rotate(back, place - place[0] * [1.0, 1.0, 0.0]),
            rotation.product(np.broadcast_to(back, turn.shape), turn),
        ],
        axis=1,
    )
    return moved


def _told(source: SourceMotion, robot: str, staged: _Stage) -> str:
    slower = f", slowed {staged.slowed:.2f} times" if staged.slowed > 1.0 else ""
    return f"retargeted: {source.name} to {robot}, lengths times {staged.size.scale:.3f}{slower}"


def _report(
    staged: _Stage,
    solution: Array,
    aims: Targets,
    clip: Clip,
    source: SourceMotion,
    robot: str,
    model: mujoco.MjModel,
    pairs: Correspondence,
    limits: Mapping[str, float],
    settings: Retargeting,
    copies: int,
) -> RetargetReport:
    kept, locked, plain = staged.kept, aims, staged.plain
    bodies = list(clip.body_names)
    places, turns = poses_by_name(model, bodies, solution)
    feet = {body: _cut(foot, kept) for body, foot in locked.feet.items()}
    aimed = {}
    followed = {}
    for body, foot in locked.feet.items():
        place = places[body] + rotation.rotate(turns[body], foot.point)
        aimed[body] = Distance.of(np.linalg.norm(place - foot.pos, axis=-1)[kept])
        followed[body] = Distance.of(np.linalg.norm(place - plain.feet[body].pos, axis=-1)[kept])
    carrier = pairs.torso or pairs.base
    for body, hand in locked.hands.items():
        place = places[body] + rotation.rotate(turns[body], hand.hand_offset)
        in_carrier = rotation.rotate(rotation.inverse(turns[carrier]), place - places[carrier])
        aimed[body] = followed[body] = Distance.of(np.linalg.norm(in_carrier - hand.hand, axis=-1)[kept])
    base_turn = rotation.log(rotation.product(turns[pairs.base], rotation.inverse(locked.base_quat)))
    columns = [int(model.joint(name).qposadr[0]) for name in clip.joint_names]
    low, high = np.array([model.joint(name).range for name in clip.joint_names]).T
    speeds = _speed_shares(model, solution[kept], limits, settings.fps).max(axis=0)
    plain_turns = {
        body: turns[body][kept] if foot.quat is None else foot.quat[kept] for body, foot in plain.feet.items()
    }
    plain_places = {
        body: foot.pos[kept] - rotation.rotate(plain_turns[body], foot.point) for body, foot in plain.feet.items()
    }
    final_places = {body: places[body][kept] for body in feet}
    final_turns = {body: turns[body][kept] for body in feet}
    travelled = clip.body_pos_w[-1, clip.body(pairs.base), :2] - clip.body_pos_w[0, clip.body(pairs.base), :2]
    return RetargetReport(
        source=source.name,
        robot=robot,
        scale=staged.size.scale,
        speed=float(np.linalg.norm(travelled)) / clip.seconds,
        slowed=staged.slowed,
        stretched=staged.stretched,
        ground_slope=staged.ground.slope,
        repeated=copies,
        healed=staged.healed,
        feet_apart=staged.further,
        end_effectors=followed,
        missed=aimed,
        base=Distance.of(np.linalg.norm(places[pairs.base] - locked.base_pos, axis=-1)[kept]),
        base_turn=Distance.of(np.linalg.norm(base_turn, axis=-1)[kept]),
        at_limit=shares_at_limit(clip.joint_names, solution[kept][:, columns], low, high),
        fastest_joint=list(limits)[int(speeds.argmax())],
        fastest_share=float(speeds.max()),
        seam_before=staged.seam,
        seam_after=_seam_after(places, kept) if source.loops else None,
        slip_before=largest_slip(feet, plain_places, plain_turns),
        slip_after=largest_slip(feet, final_places, final_turns),
        penetration_before=deepest(feet, plain_places, plain_turns),
        penetration_after=deepest(feet, final_places, final_turns),
    )


def _cut(foot: FootTarget, frames: slice) -> FootTarget:
    return replace(
        foot, stance=foot.stance[frames], pos=foot.pos[frames], quat=None if foot.quat is None else foot.quat[frames]
    )


def _seam_after(places: Mapping[str, Array], kept: slice) -> float:
    """At the beginning and the end of what is kept."""
    off = seams.steps_off(np.stack(list(places.values()), axis=1))
    return float(max(off[kept.start - 1], off[kept.stop - 2]))
