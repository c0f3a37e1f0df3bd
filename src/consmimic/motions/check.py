"""What is wrong with a clip on a robot, in numbers, and what to do about it.

Each check is one function in :mod:`consmimic.motions.checks`. Causes come before what follows from them: a wrong
quaternion order also makes feet slip, so mend findings from the top. The floor is flat, at z = 0. Torques rest on the
assumption that :mod:`consmimic.motions.inverse_dynamics` states.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from consmimic.errors import UserError
from consmimic.method.symmetry import SignedPermutation
from consmimic.motions.checks import ground, joints, reading, whole
from consmimic.motions.checks.case import Case, CheckedRobot
from consmimic.motions.checks.damage import Damage, read_fields, repaired
from consmimic.motions.checks.finding import ClipReport, Finding, judged
from consmimic.motions.clip import ARRAYS, Clip
from consmimic.motions.files import memory_budget

_BYTES_PER_BODY = 256
"""Of each frame, measured on our robots: 125 to 250."""


def check_file(
    path: Path, robot: CheckedRobot, *, left_right: SignedPermutation | None = None, loop: bool = False
) -> ClipReport:
    """Check an npz; numbers that are none are a finding here, where :meth:`Clip.load` refuses the file."""
    fields = read_fields(path)
    _check_size(path, fields, robot)
    return check_clip(repaired(fields), robot, left_right=left_right, loop=loop, damage=Damage.of(fields))


def check_clip(
    clip: Clip,
    robot: CheckedRobot,
    *,
    left_right: SignedPermutation | None = None,
    loop: bool = False,
    damage: Damage | None = None,
) -> ClipReport:
    """``left_right`` mirrors ``robot.joint_names``; ``loop``: the clip is meant to be played round and round."""
    case = Case.of(clip, robot, left_right)
    findings = (
        _numbers(damage or Damage()),
        *reading.orders(case),
        reading.bodies_fit_joints(case),
        reading.frame_rate(case),
        joints.spikes(case),
        joints.jerk(case),
        ground.penetration(case),
        ground.contact(case),
        ground.slip(case),
        ground.ground_forces(case),
        joints.joint_limits(case),
        joints.joint_speeds(case),
        joints.torques(case),
        joints.energy(case),
        whole.loop_seam(case, loop),
        whole.asymmetry(case),
    )
    return ClipReport(source=clip.source, robot=robot.name, frames=len(clip), fps=clip.fps, findings=findings)


def _check_size(path: Path, fields: dict[str, Any], robot: CheckedRobot) -> None:
    """Checks hold poses of all bodies and what follows from them for all frames at once."""
    frames = len(fields["joint_pos"])
    size = sum(fields[name].nbytes for name in ARRAYS) + frames * _BYTES_PER_BODY * robot.model(visuals=False).nbody
    if size > memory_budget(path):
        raise UserError(
            f"{path}: to check its {frames} frames would take {size / 1e6:.0f} MB of memory; valid are up to "
            f"{memory_budget(path) / 1e6:.0f} MB for a file of that size: cut it into parts (consmimic motions trim)"
        )


def _numbers(damage: Damage) -> Finding:
    found = damage.where or "every value is a finite number, every quaternion has length 1"
    advice = "cut these frames out, or make the clip anew; below they are replaced by straight lines"
    return judged("numbers", damage.values, found, advice)
