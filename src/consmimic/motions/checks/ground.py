"""Feet and floor, which is flat and at z = 0."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from consmimic.motions.checks.case import LEFT_OVER, Case
from consmimic.motions.checks.finding import THRESHOLDS, Finding, judged, skipped
from consmimic.motions.kinematics import runs
from consmimic.motions.replay import Replay, Soles

Array = NDArray[np.float64]


def penetration(case: Case) -> Finding:
    soles = _above_the_floor(case)
    if not len(soles.radii):
        return skipped("ground penetration", f"nothing of {case.robot.name} can touch the floor")
    heights = case.replay.heights(soles)
    frame, point = np.unravel_index(int(heights.argmin()), heights.shape)
    deepest = -float(heights[frame, point])
    body = case.model.body(int(soles.bodies[point])).name
    share = 100.0 * float((heights.min(axis=1) < -THRESHOLDS["ground penetration"].warn).mean())
    found = f"{body} is {1000 * deepest:.1f} mm under the floor {case.at(int(frame))}; {share:.0f} % of frames too deep"
    if deepest <= THRESHOLDS["ground penetration"].warn:
        found = (
            f"the lowest point, of {body}, is {max(-1000 * deepest, 0.0):.1f} mm above the floor {case.at(int(frame))}"
        )
    lift = 1000 * max(-case.level, 0.0) if len(case.feet.radii) else 0.0
    advice = (
        f"lift the whole clip by {lift:.0f} mm" if lift > 2.0 else "lift the body in these frames, or smooth its base"
    )
    return judged("ground penetration", max(deepest, 0.0), found, advice)


def _above_the_floor(case: Case) -> Soles:
    """All that moves; of a bolted-down robot, only what is not under the floor by its mounting."""
    model = case.model
    moving = [body for body in range(1, model.nbody) if model.body_weldid[body] != 0]
    if case.base is not None:
        return Soles.of(model, moving)
    mounted = Replay.of(model, model.qpos0[None], case.clip.fps)
    clear = [body for body in moving if mounted.heights(Soles.of(model, [body])).min(initial=0.0) >= 0.0]
    return Soles.of(model, clear)


def contact(case: Case) -> Finding:
    if not len(case.feet.radii):
        return skipped("ground contact", f"{case.robot.name} has no feet")
    found = f"the lowest foot is {1000 * case.level:.0f} mm above the floor in the lowest 5 % of frames"
    if case.level <= THRESHOLDS["ground contact"].warn:
        found = "feet come down to the floor"
    return judged("ground contact", case.level, found, f"lower the whole clip by {1000 * case.level:.0f} mm")


SLOWEST = 0.75
"""Share of a stance that slip is judged by: a foot that is lifted or set down low still moves, and stands not yet."""


def slips(case: Case) -> list[Array]:
    """Horizontal speeds of each foot, stance by stance, without its fastest frames."""
    velocity = case.replay.sole_velocities(case.feet)
    speed = np.linalg.norm(velocity[..., :2], axis=-1)
    stances = []
    for foot in case.robot.feet:
        points = np.flatnonzero(case.feet.bodies == case.model.body(foot).id)
        weight = case.standing[:, points]
        mean = np.where(weight, speed[:, points], 0.0).sum(axis=1) / np.maximum(weight.sum(axis=1), 1)
        for first, last in runs(np.any(weight, axis=1)):
            if last - first >= 3:
                stances.append(np.sort(mean[first:last])[: max(1, int(SLOWEST * (last - first)))])
    return stances


def slip(case: Case) -> Finding:
    if not len(case.feet.radii):
        return skipped("foot slip", f"{case.robot.name} has no feet")
    stances = [] if case.too_short else slips(case)
    if not stances:
        return skipped("foot slip", "no foot stands long enough to slip")
    mean = float(np.concatenate(stances).mean())
    furthest = max(float(stance.sum()) for stance in stances) / case.clip.fps
    seconds = sum(map(len, stances)) / case.clip.fps
    found = (
        f"{mean:.3f} m/s on average over {len(stances)} stances ({seconds:.1f} s); "
        f"the worst slides {1000 * furthest:.0f} mm"
    )
    return judged("foot slip", mean, found, "move the base so that standing feet stay (retarget), or mend its speed")


def ground_forces(case: Case) -> Finding:
    if case.base is None:
        return skipped("ground forces", f"{case.robot.name} stands on a fixed base")
    if case.too_short:
        return skipped("ground forces", "too short to tell")
    median = float(np.median(case.effort.left_over))
    share = 100.0 * float((case.effort.left_over > LEFT_OVER).mean())
    found = f"the feet lack {median:.2f} of the weight (median); more than {LEFT_OVER:g} in {share:.0f} % of frames"
    return judged("ground forces", median, found, "the robot floats, or is thrown about: set its feet on the floor")
