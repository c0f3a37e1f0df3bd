"""What a check says, and the thresholds that it is said by."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["PASS", "WARN", "FAIL", "SKIP"]


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Values above are a warning, or a failure; never, where it is infinite."""

    unit: str
    warn: float
    fail: float
    why: str


THRESHOLDS = {
    "numbers": Threshold(
        unit="values", warn=0, fail=0, why="one NaN is enough to make every weight of a network NaN within an update"
    ),
    "quaternion order": Threshold(
        unit="m", warn=math.inf, fail=math.inf, why="fails where the other order fits the bodies three times as well"
    ),
    "leg order": Threshold(
        unit="m", warn=math.inf, fail=math.inf, why="fails where other legs fit the bodies three times as well"
    ),
    "bodies fit joints": Threshold(
        unit="m", warn=0.005, fail=0.03, why="5 mm: link lengths rounded elsewhere; 30 mm: another robot or joint order"
    ),
    "frame rate": Threshold(
        unit="share", warn=0.05, fail=0.15, why="25 for 30 and 50 for 60 fps are 0.17 to 0.2; filters make up to 0.05"
    ),
    "spikes": Threshold(unit="rad or m", warn=0.07, fail=0.1, why="how far a frame stands out of the four around it"),
    "jerk": Threshold(
        unit="× motor", warn=2.0, fail=5.0, why="1: as if torques went from one end to the other in 20 ms"
    ),
    "ground penetration": Threshold(
        unit="m", warn=0.002, fail=0.01, why="2 mm: as deep as a robot's own contacts are soft; 10 mm lifts or trips it"
    ),
    "ground contact": Threshold(
        unit="m",
        warn=0.02,
        fail=0.05,
        why="height of the lowest foot in the lowest 5 % of frames: who stands does not float",
    ),
    "foot slip": Threshold(
        unit="m/s", warn=0.05, fail=0.1, why="mean speed of feet that stand: friction would hold them still"
    ),
    "ground forces": Threshold(
        unit="× weight", warn=0.3, fail=math.inf, why="median force on the base that neither feet nor joints can exert"
    ),
    "joint limits": Threshold(
        unit="rad", warn=0.001, fail=0.02, why="1 mrad is rounding; 20 mrad (1°) cannot be reached"
    ),
    "joint speeds": Threshold(
        unit="× limit", warn=1.005, fail=1.1, why="published limits; up to 1.1 costs a lag of some frames"
    ),
    "joint torques": Threshold(
        unit="× limit",
        warn=1.0,
        fail=5.0,
        why="99th percentile; feet share the load by assumption, and policies cut corners; 5: another robot's",
    ),
    "energy": Threshold(unit="J/(N m)", warn=3.0, fail=math.inf, why="cost of transport: legged robots have 0.2 to 2"),
    "loop seam": Threshold(
        unit="rad", warn=0.05, fail=0.2, why="the step from last to first frame, beyond the largest other"
    ),
    "left-right asymmetry": Threshold(
        unit="share",
        warn=0.35,
        fail=math.inf,
        why="0: left does as right, half a cycle on; 1.4: unrelated; turns have some",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The answer of one check."""

    check: str
    status: Status
    found: str
    """In words, with where it is worst."""
    value: float | None = None
    """The number that is held against the threshold."""
    advice: str = ""
    """What to do, where there is something to do."""

    @property
    def threshold(self) -> Threshold:
        return THRESHOLDS[self.check]


@dataclass(frozen=True, kw_only=True)
class ClipReport:
    """All findings on a clip, causes first."""

    source: str
    robot: str
    frames: int
    fps: float
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """The worst of all."""
        found = {finding.status for finding in self.findings}
        return "FAIL" if "FAIL" in found else "WARN" if "WARN" in found else "PASS"

    def of(self, *statuses: Status) -> tuple[str, ...]:
        """The names of the checks that ended so."""
        return tuple(finding.check for finding in self.findings if finding.status in statuses)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: unbounded thresholds are null."""
        rows = []
        for finding in self.findings:
            limit = finding.threshold
            bounds = {"warn_above": _finite(limit.warn), "fail_above": _finite(limit.fail)}
            rows.append(
                {**asdict(finding), "value": _finite(finding.value), "unit": limit.unit, **bounds, "why": limit.why}
            )
        about = {"source": self.source, "robot": self.robot, "frames": self.frames, "fps": self.fps}
        return {**about, "status": self.status, "findings": rows}


def judged(check: str, value: float, found: str, advice: str) -> Finding:
    limit = THRESHOLDS[check]
    status: Status = "WARN" if value > limit.warn else "PASS"
    if value > limit.fail or math.isnan(value):  # NaN: numbers so large that they overflow
        status = "FAIL"
    return Finding(check=check, status=status, value=value, found=found, advice="" if status == "PASS" else advice)


def skipped(check: str, why: str) -> Finding:
    return Finding(check=check, status="SKIP", found=why)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
