"""The clip as a whole: whether it can go round and round, and whether its sides do alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from consmimic.motions.checks.case import Case
from consmimic.motions.checks.finding import THRESHOLDS, Finding, judged, skipped


def loop_seam(case: Case, loop: bool) -> Finding:
    """What playing it round and round would add at the joint, beyond the steps that the clip makes anyway."""
    joints = case.clip.joint_pos
    if case.too_short:
        return skipped("loop seam", "too short to tell")
    spread = float(np.sqrt(joints.var(axis=0).sum()))
    gap = float(np.linalg.norm(joints[0] - joints[-1]))
    if not loop and (spread < 0.02 or gap > 0.5 * spread):
        return skipped("loop seam", f"not a loop: first and last pose are {gap:.2f} rad apart")
    usual = np.abs(np.diff(joints, axis=0)).max(axis=0)
    extra = np.abs(joints[0] - joints[-1]) - usual
    joint = int(extra.argmax())
    seam = max(float(extra[joint]), 0.0)
    found = (
        f"{case.robot.joint_names[joint]} would jump by {seam:.3f} rad more than it ever does, from last to first frame"
    )
    if seam <= THRESHOLDS["loop seam"].warn:
        found = "the last frame leads into the first"
    finding = judged("loop seam", seam, found, "blend the ends into each other, or do not loop the clip")
    if finding.status == "FAIL" and not loop:  # nobody said that it is one
        return replace(finding, status="WARN")
    return finding


def asymmetry(case: Case) -> Finding:
    """How far the joints are from their own mirror image some time later; the median over stretches of two cycles."""
    if len(case.robot.feet) < 2 or case.left_right is None:
        return skipped("left-right asymmetry", f"{case.robot.name} has no left and right")
    if case.cycle is None:
        return skipped("left-right asymmetry", "no gait cycle to compare the sides over")
    joints, cycle = case.clip.joint_pos, case.cycle
    mirrored = case.left_right(torch.from_numpy(joints)).numpy()
    window = min(2 * cycle, len(joints) - cycle)
    unlike = []
    for start in range(0, len(joints) - window - cycle + 1, max(cycle // 2, 1)):
        image = mirrored[start : start + window]
        spread = np.sqrt(joints[start : start + window].var(axis=0).sum())
        shifted = [joints[start + lag : start + lag + window] - image for lag in range(cycle + 1)]
        unlike.append(min(np.sqrt((step**2).sum(axis=1).mean()) for step in shifted) / max(spread, 1e-6))
    value = float(np.median(unlike))
    found = (
        f"the sides differ by {value:.2f} of how much the joints move, over a cycle of {cycle / case.clip.fps:.2f} s"
    )
    return judged(
        "left-right asymmetry",
        value,
        found,
        "meant, if it turns or sidesteps; else legs are exchanged, or the source limps: add the mirrored clip",
    )
