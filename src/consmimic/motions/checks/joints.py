"""What the joints are asked to do: limits, speeds, torques, work, and how smoothly."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from consmimic.motions import kinematics
from consmimic.motions.checks.case import LEFT_OVER, SHORTEST_FRAMES, Case
from consmimic.motions.checks.finding import THRESHOLDS, Finding, judged, skipped
from consmimic.motions.inverse_dynamics import torque_limits
from consmimic.motions.limits import beyond_range, joint_ranges
from consmimic.motions.rotation import angle_between

Array = NDArray[np.float64]


def spikes(case: Case) -> Finding:
    """How far single frames stand out of the cubic through the two before and the two after."""
    if case.too_short:
        return skipped("spikes", "too short to tell")
    tracks = {name: case.clip.joint_pos[:, i] for i, name in enumerate(case.robot.joint_names)}
    if case.base is not None:
        column = case.clip.body(case.base)
        place = case.clip.body_pos_w[:, column]
        tracks |= {f"{case.base} {axis}": place[:, i] for i, axis in enumerate("xyz")}
        turned = _product_angle(case.clip.body_quat_w[:, column])
        tracks |= {f"{case.base} orientation": turned}
    worst, name, frame, count = 0.0, "", 0, 0
    for track, values in tracks.items():
        out = np.zeros(len(values))
        out[2:-2] = np.abs(values[2:-2] - (4.0 * (values[1:-3] + values[3:-1]) - values[:-4] - values[4:]) / 6.0)
        standing_out = np.where(out > 4.0 * _usual(out), out, 0.0)  # what every stride does is no spike
        count += int((standing_out > THRESHOLDS["spikes"].warn).sum())
        if standing_out.max() > worst:
            worst, name, frame = float(standing_out.max()), track, int(standing_out.argmax())
    found = "no frame stands out" if not count else f"{name} jumps by {worst:.3f} {case.at(frame)}; {count} such values"
    return judged("spikes", worst, found, "interpolate over these frames, or cut there: a jump is two clips in one")


def _usual(out: Array) -> float:
    """The 95th percentile, or the third largest peak: a jump is in four frames, many in a short clip, but one peak."""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(out, 2), 5).max(axis=-1)
    peaks = np.sort(out[(out == around) & (out > 0.0)])
    return min(float(np.percentile(out, 95)), float(peaks[-3:].min(initial=np.inf)))


def _product_angle(quaternions: Array) -> Array:
    """How far the body has turned since the first frame, summed up with the steps' signs lost."""
    return np.concatenate([[0.0], np.cumsum(angle_between(quaternions[1:], quaternions[:-1]))])


def jerk(case: Case) -> Finding:
    """Changes of acceleration, against those that the motors could make at all."""
    limits = torque_limits(case.model, case.robot.joint_names)
    stride = max(1, round(case.clip.fps / 50.0))
    positions = case.clip.joint_pos[::stride]
    if len(positions) < SHORTEST_FRAMES:
        return skipped("jerk", "too short to tell")
    if not np.isfinite(limits).all():
        return skipped("jerk", f"{case.robot.name} has no torque limits to hold it against")
    step = stride / case.clip.fps
    change = np.abs(np.diff(positions, 3, axis=0)) / step**2  # of acceleration, within a step
    dofs = [int(case.model.joint(name).dofadr[0]) for name in case.robot.joint_names]
    share = change / (2.0 * limits / case.model.dof_M0[dofs])
    typical = np.percentile(share, 99.5, axis=0)
    joint = int(typical.argmax())
    jerk = float(np.percentile(change[:, joint], 99.5) / step)
    found = f"{case.robot.joint_names[joint]}: up to {jerk:.0f} rad/s³, {typical[joint]:.2f} × what its motor could do"
    return judged("jerk", float(typical[joint]), found, "smooth the clip: what shakes like this is noise, not motion")


def joint_limits(case: Case) -> Finding:
    lowest, highest = joint_ranges(case.model, case.robot.joint_names)
    if not np.isfinite(lowest).any():
        return skipped("joint limits", f"{case.robot.name} has no limited joints")
    beyond = beyond_range(case.model, case.robot.joint_names, case.clip.joint_pos)
    worst, name, frame = case.worst_joint(beyond)
    low, high = (bounds[case.robot.joint_names.index(name)] for bounds in (lowest, highest))
    angle = case.clip.joint_pos[frame, case.clip.joint(name)]
    found = f"{name} is at {angle:.3f} rad {case.at(frame)}; valid are {low:.3f} to {high:.3f}"
    if worst <= THRESHOLDS["joint limits"].warn:
        found = f"{name} comes nearest to its limits: {max(-worst, 0.0):.3f} rad from them"
    return judged(
        "joint limits",
        max(worst, 0.0),
        found,
        "wrong sign, zero or order of this joint, if it is far off; else retarget within the limits",
    )


def joint_speeds(case: Case) -> Finding:
    if len(case.clip) < 2:
        return skipped("joint speeds", "one frame has no speed")
    limits = np.array(case.robot.joint_velocity_limits)
    speeds = np.abs(kinematics.linear_velocity(case.clip.joint_pos, case.clip.fps))
    worst, name, frame = case.worst_joint(speeds / limits)
    limit = limits[case.robot.joint_names.index(name)]
    found = f"{name} turns at {worst * limit:.2f} rad/s {case.at(frame)}; its limit is {limit:g}"
    slower = f"slow the clip down to {100 / max(worst, 1.0):.0f} % of its speed, or cut what is too fast"
    return judged("joint speeds", worst, found, slower)


def torques(case: Case) -> Finding:
    limits = torque_limits(case.model, case.robot.joint_names)
    if case.too_short or not np.isfinite(limits).any():
        return skipped("joint torques", "too short to tell" if case.too_short else f"{case.robot.name} has no limits")
    believed = case.effort.left_over < LEFT_OVER
    if believed.mean() < 0.1:
        return skipped("joint torques", "the ground can hold the robot in too few frames; see ground forces")
    torque = np.abs(case.effort.torque[believed])
    share = np.percentile(torque, 99, axis=0) / limits
    joint = int(share.argmax())
    found = (
        f"{case.robot.joint_names[joint]} needs {share[joint] * limits[joint]:.0f} N m (99th percentile); "
        f"its limit is {limits[joint]:g}; from the {100 * believed.mean():.0f} % of frames that the ground can hold"
    )
    return judged(
        "joint torques", float(share[joint]), found, "slow the clip down, or smooth it: a policy cannot follow"
    )


def energy(case: Case) -> Finding:
    if case.too_short:
        return skipped("energy", "too short to tell")
    work, seconds = case.effort.work, max(case.clip.seconds, 1e-9)
    if case.base is None:
        return Finding(
            check="energy", status="PASS", value=None, found=f"{work:.1f} J of joint work, {work / seconds:.1f} W"
        )
    way = case.clip.body_pos_w[:, case.clip.body(case.base), :2]
    metres = float(np.linalg.norm(np.diff(way, axis=0), axis=1).sum())
    weight = float(case.model.body_mass.sum() * np.linalg.norm(case.model.opt.gravity))
    if metres < 0.5:
        found = f"{work:.0f} J of joint work, {work / seconds:.0f} W, standing"
        return Finding(check="energy", status="PASS", value=None, found=found)
    transport = work / (weight * metres)
    found = f"{work:.0f} J of joint work over {metres:.1f} m, {work / seconds:.0f} W: cost of transport {transport:.2f}"
    return judged("energy", transport, found, "look for shaking joints, a wrong frame rate or slipping feet")
