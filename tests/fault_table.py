"""Which faults the check finds in which clips, as a table for docs/motions.md: ``python tests/fault_table.py``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import planted
from consmimic.motions import Clip
from consmimic.motions.check import check_file
from consmimic.motions.checks.finding import ClipReport
from consmimic.robots import ROBOTS, Robot
from real_clips import FILES, retargeted
from test_motion_check import CLEAN, FAULTS, LEFT_RIGHT, RETARGETED, TRUE_WARNINGS, checked, saved


def with_nan(clip: Clip, robot: Robot) -> ClipReport:
    joints = clip.joint_pos.copy()
    joints[20, 0] = np.nan
    with tempfile.TemporaryDirectory() as folder:
        path = saved(clip, Path(folder) / "clip.npz", joint_pos=joints)
        return check_file(path, robot, left_right=LEFT_RIGHT[robot.name])


def cell(report: ClipReport, cause: str) -> str:
    return "found" if cause in report.of("FAIL") else "**missed**"


def main() -> None:
    clips = {name: (*made(), TRUE_WARNINGS.get(name, ())) for name, made in CLEAN.items()}
    for name, (robot, warnings) in RETARGETED.items() if FILES else ():
        clips[Path(name).stem] = (retargeted(name, robot).clip, ROBOTS[robot], warnings)
    rows: dict[str, Callable[[Clip, Robot], str]] = {}
    for fault, about in FAULTS.items():

        def row(clip: Clip, robot: Robot, about=about) -> str:
            base_only = len(clip.body_names) == 1 and bool(robot.feet)
            if (not robot.feet and not about.arms) or (base_only and not about.on_base):
                return "–"
            return cell(checked(about.plant(clip), robot), about.cause)

        rows[f"{fault} → {about.cause}"] = row
    rows["beyond limits → joint limits"] = lambda clip, robot: cell(
        checked(planted.beyond_limits(robot)(clip), robot), "joint limits"
    )
    rows["NaN → numbers"] = lambda clip, robot: cell(with_nan(clip, robot), "numbers")
    print(f"| fault → check | {' | '.join(clips)} |\n|---|{'---|' * len(clips)}")
    for name, row in rows.items():
        print(f"| {name} | {' | '.join(row(clip, robot) for clip, robot, _ in clips.values())} |")
    clean = []
    for clip, robot, true in clips.values():
        report = checked(clip, robot)
        false = [*report.of("FAIL"), *(warning for warning in report.of("WARN") if warning not in true)]
        clean.append(f"**{', '.join(false)}**" if false else "none")
    print(f"| nothing: false alarms | {' | '.join(clean)} |")


if __name__ == "__main__":
    main()
