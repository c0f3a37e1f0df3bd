"""A robot's clip as a source: from one robot to another, or back onto the same one."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.motions import rotation
from consmimic.motions.clip import Clip
from consmimic.motions.forward import clip_positions, is_floating, poses
from consmimic.motions.retarget.correspondence import Correspondence
from consmimic.motions.retarget.soles import Sole
from consmimic.motions.retarget.source import SourceMotion

Array = NDArray[np.float64]


def from_robot(
    clip: Clip,
    model: mujoco.MjModel,
    pairs: Correspondence,
    default_joint_pos: Mapping[str, float],
    *,
    loops: bool = False,
) -> SourceMotion:
    """The named points of the robot that the clip is of, by forward kinematics."""
    if not is_floating(model, pairs.base):
        raise UserError(f"'{pairs.base}' is no free base: only robots that float can be retargeted")
    coordinates = clip_positions(model, clip, clip.joint_names)
    names = sorted({body for leg in pairs.legs for body in leg.bodies} | {b for arm in pairs.arms for b in arm.bodies})
    wanted = [pairs.base, *([pairs.torso] if pairs.torso else []), *names]
    places, turns = poses_by_name(model, wanted, coordinates)
    rest = np.array(model.qpos0)
    for name, angle in default_joint_pos.items():
        rest[int(model.joint(name).qposadr[0])] = angle
    rest_places, rest_turns = poses_by_name(model, wanted, rest[None])

    points, orientations, feet, stance = {}, {}, {}, {}
    soles = {leg.bodies[2]: Sole.of(model, leg.bodies[2]) for leg in pairs.legs}
    balls = all(leg.sole is None for leg in pairs.legs)
    for leg in pairs.legs:
        hip, knee, foot = leg.bodies
        sole = soles[foot]
        aimed = sole.centre if leg.sole is None else np.zeros(3)
        points[leg.points[0]], points[leg.points[1]] = places[hip], places[knee]
        points[leg.points[2]] = places[foot] + rotation.rotate(turns[foot], aimed)
        at_rest = rest_places[foot] + rotation.rotate(rest_turns[foot], aimed)
        base = rotation.inverse(rest_turns[pairs.base])
        stance[leg.points[2]] = rotation.rotate(base, at_rest - rest_places[pairs.base])[0]
        if leg.sole is None:
            feet[leg.foot] = (leg.points[2],)
            continue
        orientations[leg.sole] = turns[foot]
        for point, ahead in ((f"{leg.foot}_heel", sole.heel), (f"{leg.foot}_toe", sole.toe)):
            points[point] = places[foot] + rotation.rotate(turns[foot], np.array([ahead, 0.0, -sole.height]))
        feet[leg.foot] = (f"{leg.foot}_heel", f"{leg.foot}_toe")
    for arm in pairs.arms:
        shoulder, elbow = arm.bodies
        ends = (places[shoulder], places[elbow], places[elbow] + rotation.rotate(turns[elbow], np.array(arm.hand)))
        points |= dict(zip(arm.points, ends, strict=True))
    if pairs.torso is not None:
        orientations["torso"] = turns[pairs.torso]
    first = soles[pairs.legs[0].bodies[2]]
    return SourceMotion(
        name=clip.source,
        fps=clip.fps,
        root_pos=places[pairs.base],
        root_quat=turns[pairs.base],
        points=points,
        turns=orientations,
        feet=feet,
        stance=stance,
        foot_height=first.radius if balls else first.height,
        touch_radius=first.radius if balls else 0.0,
        loops=loops,
    )


def poses_by_name(
    model: mujoco.MjModel, bodies: Sequence[str], coordinates: Array
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Positions and quaternions, by forward kinematics."""  # (T, nq) → (T, 3), (T, 4) each
    places, turns = poses(model, coordinates, [model.body(name).id for name in bodies])
    return (
        {name: places[:, column] for column, name in enumerate(bodies)},
        {name: turns[:, column] for column, name in enumerate(bodies)},
    )
