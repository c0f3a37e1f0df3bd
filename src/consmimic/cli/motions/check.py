"""``consmimic motions check``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from consmimic.cli.options import Flag
from consmimic.motions.check import check_file
from consmimic.motions.checks.finding import ClipReport, Finding
from consmimic.robots import robot_by_name

COLOURS = {"PASS": "green", "WARN": "yellow", "FAIL": "red", "SKIP": "dim"}


@dataclass(frozen=True)
class Check:
    """Find what is wrong with a clip on a robot: how the file is read, feet, joints, torques, seams.

    Mend what it finds from the top: causes come before what follows from them. Exit code 0: nothing failed, 1:
    something did, 2: bad input.

    Try:

      consmimic motions check walk.npz --robot anymal_d
      consmimic motions check walk.npz --robot anymal_d --json | jq .status
    """

    clip: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CLIP")]
    """An npz; `consmimic motions convert` makes one of other formats."""
    robot: Annotated[str, tyro.conf.arg(metavar="ROBOT")]
    """The robot whose clip it is: panda, anymal_d or gr1."""
    loop: Flag = False
    """The clip is meant to be played round and round: a jump at its seam fails."""
    json: Flag = False
    """Everything as JSON: values, units, thresholds and the reasons for them."""

    def run(self) -> int:
        robot = robot_by_name(self.robot)
        left_right = robot.left_right(robot.model(visuals=False))
        report = check_file(self.clip, robot, left_right=left_right, loop=self.loop)
        if self.json:
            print(json.dumps(report.as_dict(), indent=1))
        else:
            Console().print(findings_table(report))
            print(_summary(report, self.clip))
        return 1 if report.status == "FAIL" else 0


def findings_table(report: ClipReport) -> Table:
    """A row for each check, and below it what to do where something is to be done."""
    table = Table(box=None, pad_edge=False)
    for column in ("check", "", "value", "found, and what to do"):
        table.add_column(
            column, justify="right" if column == "value" else "left", no_wrap=column != "found, and what to do"
        )
    for finding in report.findings:
        colour = COLOURS[finding.status]
        words = finding.found + (f"\n[{colour}]→ {finding.advice}[/{colour}]" if finding.advice else "")
        table.add_row(finding.check, f"[{colour}]{finding.status}[/{colour}]", _value(finding), words)
    return table


def _value(finding: Finding) -> str:
    if finding.value is None:
        return ""
    shown = f"{finding.value:.3g}" if finding.value >= 1e-4 else "0"
    return f"{shown} {finding.threshold.unit}"


def _summary(report: ClipReport, path: Path) -> str:
    about = f"{path}: {report.frames} frames at {report.fps:g} fps on {report.robot}"
    failed, warned = report.of("FAIL"), report.of("WARN")
    if not failed and not warned:
        return f"{about}: nothing wrong found"
    parts = [f"{word} {', '.join(names)}" for word, names in (("fails", failed), ("warns of", warned)) if names]
    return f"{about}: {'; '.join(parts)}"
