"""What a retargeting had to bend: how far the robot is from the scaled source, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from consmimic.errors import UserError
from consmimic.motions import rotation
from consmimic.motions.kinematics import runs
from consmimic.motions.retarget.targets import FootTarget

Array = NDArray[np.float64]

_STILL, _ABOVE = 0.005, 0.002
"""m. What a foot that stands may slip in one stance, and how deep a sole may be under the ground."""
_ON_LIMIT = 1e-3
"""rad. A joint this near to its limit is on it."""
_TOUCHING = 0.001
"""m. Corners this little above the lowest one touch the ground while the foot stands."""


@dataclass(frozen=True)
class Distance:
    """Over all frames; m, or rad for a turn."""

    mean: float
    largest: float

    @staticmethod
    def of(values: Array) -> Distance:
        return Distance(float(values.mean()), float(values.max()))

    def __str__(self) -> str:
        return f"{self.mean:.4f}, at most {self.largest:.4f}"


@dataclass(frozen=True, kw_only=True)
class RetargetReport:
    """Lengths in m, angles in rad, times in s. `before` is the source scaled to the robot, and nothing else done."""

    source: str
    robot: str
    scale: float
    """Robot's legs over source's; the base's way and height scale alike."""
    speed: float
    """Mean speed of the base over the ground, m/s."""
    slowed: float
    """How many times longer the clip takes than the source because joints are not fast enough."""
    stretched: float
    """How many times longer one lap takes besides, so that it is a whole number of frames."""
    ground_slope: float
    """What the ground rose under the source, m/s; taken out."""
    repeated: int
    """How many times each frame was in the source; the copies are left out."""
    healed: int
    """Jumps within the clip or at its seam that were closed."""
    feet_apart: float
    """How much further out each foot was set because the hips cannot swing the legs in as far as the source's."""
    end_effectors: Mapping[str, Distance]
    """How far each foot is from where the scaled source has it, and each hand from where the source's arm points."""
    missed: Mapping[str, Distance]
    """How far each is from what was aimed at, once feet were locked."""
    base: Distance
    base_turn: Distance
    at_limit: Mapping[str, float]
    """Share of the frames in which a joint is on its limit; joints that never are, are left out."""
    fastest_joint: str
    fastest_share: float
    """Of its speed limit."""
    seam_before: float | None
    """How far the worst point jumps where the loop closes, against its steps before and after. None: no loop."""
    seam_after: float | None
    slip_before: float
    """How far the worst foot slips in one stance."""
    slip_after: float
    penetration_before: float
    """How deep the worst sole goes under the ground."""
    penetration_after: float

    def table(self) -> Table:
        table = Table(box=None, pad_edge=False, title=f"{self.source} → {self.robot}", title_justify="left")
        for column in ("", "scaled source", "retargeted"):
            table.add_column(column, justify="left" if not column else "right", no_wrap=True)
        table.add_row("slip of a standing foot, mm", _mm(self.slip_before), _mm(self.slip_after))
        table.add_row("sole under the ground, mm", _mm(self.penetration_before), _mm(self.penetration_after))
        if self.seam_before is not None and self.seam_after is not None:
            table.add_row("jump at the loop's seam, mm", _mm(self.seam_before), _mm(self.seam_after))
        for name, distance in {"base": self.base, **self.end_effectors}.items():
            table.add_row(f"{name} moved, mean / most, mm", "", f"{_mm(distance.mean)} / {_mm(distance.largest)}")
        turn = np.degrees([self.base_turn.mean, self.base_turn.largest])
        table.add_row("base turned, mean / most, degrees", "", f"{turn[0]:.1f} / {turn[1]:.1f}")
        for joint, share in self.at_limit.items():
            table.add_row(f"{joint} on its limit, of the frames", "", f"{share:.0%}")
        table.add_row(f"fastest joint ({self.fastest_joint}), of its limit", "", f"{self.fastest_share:.0%}")
        table.add_row("lengths, times the source's", "", f"{self.scale:.3f}")
        table.add_row("duration, times the source's", "", f"{self.slowed * self.stretched:.3f}")
        table.add_row("speed of the base, m/s", "", f"{self.speed:.2f}")
        return table

    def remarks(self) -> list[str]:
        """What a user should know before using the clip, one sentence each."""
        said = []
        if self.slip_after > _STILL:
            said.append(f"a standing foot slips by {_mm(self.slip_after)} mm: the robot cannot follow this motion")
        if self.penetration_after > _ABOVE:
            said.append(
                f"a sole is {_mm(self.penetration_after)} mm under the ground: the robot cannot follow this motion"
            )
        if self.slowed > 1.0:
            said.append(f"slowed down {self.slowed:.2f} times: joints would exceed their speed limits")
        if self.repeated > 1:
            said.append(f"each frame of the source was there {self.repeated} times; the copies were left out")
        if self.ground_slope:
            said.append(f"the ground under the source rose by {self.ground_slope:.3f} m/s; it was levelled")
        if self.healed:
            said.append(f"jumps that were closed: {self.healed}")
        if self.feet_apart:
            said.append(
                f"each foot stands {_mm(self.feet_apart)} mm further out: hips cannot swing the legs further in"
            )
        often = {joint: share for joint, share in self.at_limit.items() if share > 0.1}
        if often:
            joints = ", ".join(f"{joint} {share:.0%}" for joint, share in often.items())
            said.append(f"often on their limits: {joints}")
        return said

    def save(self, path: Path) -> None:
        try:
            with path.open("x") as file:
                json.dump(asdict(self), file, indent=2)
                file.write("\n")
        except FileExistsError:
            raise UserError(f"{path} exists; choose another name or remove it first") from None


def largest_slip(feet: Mapping[str, FootTarget], places: Mapping[str, Array], turns: Mapping[str, Array]) -> float:
    """How far what touches the ground moves on it, summed over the worst stance. A ball or edge that rolls does not."""
    worst = 0.0
    for body, foot in feet.items():
        corners = foot.sole.world_corners(places[body], turns[body])
        touching = corners[..., 2] < corners[..., 2].min(axis=1, keepdims=True) + _TOUCHING
        turn = rotation.product(turns[body][1:], rotation.inverse(turns[body][:-1]))
        down = -foot.sole.radius * rotation.UP
        step = corners[1:] + rotation.rotate(turn, down)[:, None] - corners[:-1] - down
        moved = np.where(touching[:-1], np.linalg.norm(step[..., :2], axis=-1), 0.0).max(axis=1)
        for first, end in runs(foot.stance):
            worst = max(worst, float(moved[first : end - 1].sum()))
    return worst


def deepest(feet: Mapping[str, FootTarget], places: Mapping[str, Array], turns: Mapping[str, Array]) -> float:
    """How deep any sole is under the ground, 0 if none is."""
    return max(0.0, *(-float(foot.sole.lowest(places[body], turns[body]).min()) for body, foot in feet.items()))


def shares_at_limit(joint_names: tuple[str, ...], joint_pos: Array, low: Array, high: Array) -> dict[str, float]:
    share = (np.minimum(joint_pos - low, high - joint_pos) < _ON_LIMIT).mean(axis=0)
    return {name: float(s) for name, s in sorted(zip(joint_names, share, strict=True), key=lambda pair: -pair[1]) if s}


def _mm(metres: float) -> str:
    return f"{1000.0 * metres:.1f}"
