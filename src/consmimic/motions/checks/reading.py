"""Whether the file says what it means: order of quaternions and legs, bodies that fit joints, frame rate."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from consmimic.motions import kinematics
from consmimic.motions.checks.case import SHORTEST_FRAMES, Case
from consmimic.motions.checks.finding import THRESHOLDS, Finding, judged, skipped
from consmimic.motions.checks.ground import slips
from consmimic.motions.forward import generalized_positions
from consmimic.motions.replay import Replay
from consmimic.motions.rotation import angle_between

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Reading:
    """A way to read the file."""

    xyzw: bool = False
    legs: tuple[int, ...] | None = None
    """Whose joints each leg has; None: its own."""


def orders(case: Case) -> tuple[Finding, Finding]:
    """Whether another order of quaternions or legs explains what is wrong.

    Bodies that do not lie where base and joints put them say most. Where all of them do, as after a conversion, a
    wrong order of quaternions still shows in a base that leans and feet that slip; one of legs need not show at all.
    """
    fitted = _fitted_bodies(case)
    readings = [_Reading(xyzw, legs) for xyzw in (False, True) for legs in (None, *_exchanged(case))]
    measure, tolerance, words = _misfit, 0.01, "bodies lie {:.3f} m off as it is read, {:.3f} m"
    own = measure(case, _Reading()) if fitted else 0.0
    if own <= tolerance:
        readings = [_Reading(), _Reading(xyzw=True)]
        measure, tolerance = _lean_and_slip, 0.15
        words = "lean (rad) and slip (m/s) add up to {:.2f} as it is read, to {:.2f}"
        own = measure(case, _Reading()) if case.base is not None else 0.0
    best, least = _Reading(), own
    if own > tolerance:
        misfits = [measure(case, reading) for reading in readings]
        if min(misfits) < own / 3.0:
            best, least = readings[int(np.argmin(misfits))], min(misfits)
    explained = words.format(own, least)
    quaternions = Finding(
        check="quaternion order",
        status="FAIL" if best.xyzw else "PASS",
        value=own,
        found=f"{explained} with quaternions read as xyzw" if best.xyzw else "no sign of another order than wxyz",
        advice="reorder the quaternions to wxyz: numpy.roll(body_quat_w, 1, axis=-1)" if best.xyzw else "",
    )
    if len(case.robot.feet) < 2:
        return quaternions, skipped("leg order", f"{case.robot.name} has no legs to exchange")
    if not fitted:
        return quaternions, skipped("leg order", "the clip has no bodies but the base, so no sign of whose leg it is")
    feet = case.robot.feet
    swaps = [] if best.legs is None else [f"{feet[i]} ← {feet[j]}" for i, j in enumerate(best.legs) if i != j]
    return quaternions, Finding(
        check="leg order",
        status="FAIL" if swaps else "PASS",
        value=own,
        found=f"{explained} with the joints of {', '.join(swaps)}" if swaps else "no sign of exchanged legs",
        advice="give the joints their right names: the order of the legs in the source is another one" if swaps else "",
    )


def _fitted_bodies(case: Case) -> list[str]:
    """Bodies whose places follow from base and joints."""
    own = {case.model.body(index).name for index in range(1, case.model.nbody)}
    return [name for name in case.clip.body_names if name in own and name != case.base]


def _fitted_legs(case: Case) -> list[str]:
    """Those of them that are of legs, where there are any: arms may be exchanged too, or not."""
    fitted = _fitted_bodies(case)
    legs = set()
    for foot in case.robot.feet:
        body = case.model.body(foot).id
        while body != 0:
            legs.add(case.model.body(body).name)
            body = case.model.body_parentid[body]
    return [name for name in fitted if name in legs] or fitted


def _exchanged(case: Case) -> list[tuple[int, ...]]:
    """Every other order of the legs, where all have as many joints."""
    legs = _leg_joints(case)
    if not 2 <= len(legs) <= 4 or len({len(leg) for leg in legs}) != 1 or not legs[0]:
        return []
    return [order for order in itertools.permutations(range(len(legs))) if order != tuple(range(len(legs)))]


def _leg_joints(case: Case) -> list[list[int]]:
    """Columns of the joints that move one foot alone, from the base on."""
    model, columns = case.model, {name: i for i, name in enumerate(case.robot.joint_names)}
    chains = []
    for foot in case.robot.feet:
        chain, body = [], model.body(foot).id
        while body != 0:
            joints = range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body])
            chain += [columns[name] for name in (model.joint(j).name for j in reversed(joints)) if name in columns]
            body = model.body_parentid[body]
        chains.append(chain[::-1])
    shared = Counter(itertools.chain.from_iterable(chains))
    return [[column for column in chain if shared[column] == 1] for chain in chains]


def _misfit(case: Case, reading: _Reading) -> float:
    """Mean distance of the bodies from where base and joints put them; a radian counts as 0.1 m. On 100 frames."""
    frames = np.unique(np.linspace(0, len(case.clip) - 1, 100).round().astype(int))
    replay, quaternions = _read(case, reading, frames)
    fitted = _fitted_legs(case)
    ids, columns = [case.model.body(name).id for name in fitted], [case.clip.body(name) for name in fitted]
    distance = np.linalg.norm(replay.body_pos[:, ids] - case.clip.body_pos_w[frames][:, columns], axis=-1)
    return float((distance + 0.1 * angle_between(replay.body_quat[:, ids], quaternions[:, columns])).mean())


def _lean_and_slip(case: Case, reading: _Reading) -> float:
    """Median lean of the base and mean speed of standing feet."""
    replay, _ = _read(case, reading, np.arange(len(case.clip)))
    _, x, y, _ = np.moveaxis(replay.body_quat[:, case.model.body(case.base).id], -1, 0)
    lean = float(np.median(2.0 * np.arcsin(np.clip(np.hypot(x, y), 0.0, 1.0))))
    if case.too_short or not len(case.feet.radii):
        return lean
    speeds = slips(replace(case, replay=replay))
    return lean + (float(np.concatenate(speeds).mean()) if speeds else 0.0)


def _read(case: Case, reading: _Reading, frames: NDArray[np.intp]) -> tuple[Replay, Array]:
    """The robot in the poses that these frames then mean, and the quaternions."""
    clip, base = case.clip, case.base
    joints, quaternions = clip.joint_pos[frames], clip.body_quat_w[frames]
    if reading.xyzw:
        quaternions = np.roll(quaternions, 1, axis=-1)
    if reading.legs is not None:
        chains, joints = _leg_joints(case), joints.copy()
        for own, other in enumerate(reading.legs):
            joints[:, chains[own]] = clip.joint_pos[frames][:, chains[other]]
    pose = {}
    if base is not None:
        column = clip.body(base)
        pose = {"base_pos": clip.body_pos_w[frames][:, column], "base_quat": quaternions[:, column]}
    qpos = generalized_positions(case.model, case.robot.joint_names, joints, **pose)
    return Replay.of(case.model, qpos, clip.fps), quaternions


def bodies_fit_joints(case: Case) -> Finding:
    fitted = _fitted_bodies(case)
    if not fitted:
        return skipped("bodies fit joints", "the clip has no bodies but the base to compare with")
    ids, columns = [case.model.body(name).id for name in fitted], [case.clip.body(name) for name in fitted]
    distance = np.linalg.norm(case.replay.body_pos[:, ids] - case.clip.body_pos_w[:, columns], axis=-1)
    turned = np.median(angle_between(case.replay.body_quat[:, ids], case.clip.body_quat_w[:, columns]), axis=0)
    typical = np.percentile(distance, 95, axis=0)
    worst = int(typical.argmax())
    found = f"{fitted[worst]} is {1000 * typical[worst]:.1f} mm from where base and joints put it"
    if turned.max() > 0.1:
        found += f"; {fitted[int(turned.argmax())]} is turned by {np.degrees(turned.max()):.0f}° against them"
    finding = judged(
        "bodies fit joints",
        float(typical[worst]),
        found,
        "joints in another order or with other zeros than the robot's, or bodies of another robot: "
        "recompute the bodies from base and joints if those are right",
    )
    if finding.status == "PASS" and turned.max() > 0.1:
        return replace(finding, status="WARN", advice="body frames are those of another model, or in another order")
    return finding


def frame_rate(case: Case) -> Finding:
    """By how much the velocities of the file differ from what its positions do at its frame rate."""
    clip = case.clip
    pairs = {
        "joint_vel": (clip.joint_vel, kinematics.linear_velocity(clip.joint_pos, clip.fps)),
        "body_lin_vel_w": (clip.body_lin_vel_w, kinematics.linear_velocity(clip.body_pos_w, clip.fps)),
        "body_ang_vel_w": (clip.body_ang_vel_w, kinematics.angular_velocity(clip.body_quat_w, clip.fps)),
    }
    if len(clip) < 2 * SHORTEST_FRAMES:
        return skipped("frame rate", "too short to tell")
    ratios = {}
    for name, (stored, moved) in pairs.items():
        a, b = (_smoothed(values.reshape(len(clip), -1)) for values in (stored, moved))
        if np.sqrt((b**2).mean()) > 1e-3:
            ratios[name] = (float((a * b).sum() / (b * b).sum()), float((a * b).sum() / _norms(a, b)))
    if not ratios:
        return skipped("frame rate", "nothing moves")
    name, (ratio, likeness) = max(ratios.items(), key=lambda item: abs(item[1][0] - 1.0))
    together = np.ptp([ratio for ratio, _ in ratios.values()]) < 0.05 * abs(ratio)
    if abs(ratio) < 0.01:
        found, advice = f"{name} is 0 while the clip moves", "recompute the velocities from the positions"
    elif likeness < 0.8:
        found = f"{name} has little to do with how the positions change (correlation {likeness:.2f})"
        advice = "recompute the velocities; if they are right, columns or frames are in another order"
    elif together:
        fitting = f"{ratio * clip.fps:.3g}"
        found = f"velocities are {ratio:.2f} × what positions do at {clip.fps:g} fps: they fit {fitting} fps"
        advice = f"set fps to {fitting} if the velocities are right, or else recompute them"
    else:
        found = f"{name} is {ratio:.2f} × what the positions do at {clip.fps:g} fps, and the others differ"
        advice = "recompute the velocities from the positions"
    if abs(ratio - 1.0) <= THRESHOLDS["frame rate"].warn and likeness >= 0.8:
        found = f"velocities are those of the positions at {clip.fps:g} fps (ratio {ratio:.3f})"
    off = max(abs(ratio - 1.0), 0.1 if likeness < 0.8 else 0.0)
    return judged("frame rate", off, found, advice)


def _norms(a: Array, b: Array) -> float:
    return max(float(np.sqrt((a * a).sum() * (b * b).sum())), 1e-12)


def _smoothed(values: Array) -> Array:
    """Over five frames, so that ways to take differences do not matter."""
    return np.lib.stride_tricks.sliding_window_view(values, 5, axis=0).mean(axis=-1)
