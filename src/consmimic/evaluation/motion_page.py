"""One self-contained HTML page, or one PNG, about a clip on a robot: what it looks like, and what is wrong with it."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import matplotlib as mpl
import matplotlib.image
import mujoco
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.evaluation.filmstrip import film
from consmimic.evaluation.motion_figures import feet_figure, joint_figure, path_figure
from consmimic.evaluation.page import Illustration, badge, illustrated, table, table_row, write_page
from consmimic.motions import Clip
from consmimic.motions.check import check_clip
from consmimic.motions.checks.case import Case
from consmimic.motions.checks.finding import ClipReport, Finding
from consmimic.motions.gait import cycle_frames
from consmimic.robots import Robot

FORMATS = (".html", ".png")
_BADGES = {"PASS": ("yes", "✓ pass"), "WARN": ("warn", "! warn"), "FAIL": ("no", "✗ fail"), "SKIP": ("open", "– none")}

FILM = "Evenly spread over the whole clip. The camera goes with the robot."
CYCLE = "One gait cycle, from the middle of the clip."
JOINTS = "Each panel is as high as the joint's range; red is beyond it."
PATH = "Dot: start, square: end. Height and speed are those of the body's frame."
FEET = """Height of each foot's lowest point above a flat floor at z = 0, and bars where it is taken to stand: low, and
neither sinking nor rising."""


def write_motion_page(clip: Clip, robot: Robot, path: Path, *, frames: int = 8) -> str | None:
    """Write the page or the picture, by the path's ending. Returns why figures are drawn as sticks, if they are."""
    if path.suffix not in FORMATS:
        raise UserError(f"output is '{path}'; its name must end in one of {', '.join(FORMATS)}")
    clip = clip.with_joints(robot.joint_names)
    model = robot.model()
    illustrations, excuse = motion_illustrations(clip, robot, model, frames=frames)
    if path.suffix == ".png":
        path.parent.mkdir(parents=True, exist_ok=True)
        matplotlib.image.imsave(path, stacked([illustration.figure for illustration in illustrations]))
        return excuse
    report = check_clip(clip, robot, left_right=robot.left_right(model))
    about = (
        robot.name,
        f"{len(clip)} frames at {clip.fps:g} fps",
        f"{clip.seconds:.2f} s",
        f"{len(clip.joint_names)} joints",
        f"{len(clip.body_names)} bodies",
    )
    parts = [
        f"<h1>{escape(_title(clip))}</h1>",
        f'<p class="about">{" · ".join(map(escape, about))}</p>',
        f'<p class="caption">Source: {escape(clip.source)}</p>',
        f'<p class="caution">Drawn as stick figures: {escape(excuse)}.</p>' if excuse else "",
        *map(illustrated, illustrations[:1]),
        findings_html(report),
        *map(illustrated, illustrations[1:]),
    ]
    write_page(path, f"{_title(clip)} on {robot.name}", parts)
    return excuse


def _title(clip: Clip) -> str:
    """The file's name, or what made it."""
    first = clip.source.split("(")[0].strip()
    return Path(first).name or "clip"


def motion_illustrations(
    clip: Clip, robot: Robot, model: mujoco.MjModel, *, frames: int = 8
) -> tuple[list[Illustration], str | None]:
    """The figures, and why they are stick figures, if they are."""
    whole = film(model, clip, frames)
    found = [Illustration("filmstrip", "Filmstrip", FILM, whole.figure)]
    cycle = cycle_frames(clip.joint_pos, clip.fps)
    if cycle is not None and len(clip) > 2 * cycle and robot.feet:
        start = (len(clip) - cycle) // 2 / clip.fps
        one = film(model, clip, frames, span=(start, start + cycle / clip.fps))
        found.append(Illustration("cycle", f"One cycle, {cycle / clip.fps:.2f} s", CYCLE, one.figure))
    found.append(Illustration("joints", "Joints", JOINTS, joint_figure(robot, model, clip)))
    found.append(Illustration("path", "Path", PATH, path_figure(clip, clip.body_names[0])))
    if robot.feet and len(clip) > 2:
        found.append(Illustration("feet", "Feet", FEET, feet_figure(Case.of(clip, robot, None))))
    return found, whole.without_graphics


def findings_html(report: ClipReport) -> str:
    """The table of a check."""
    rows = [table_row(escape(finding.check), _cells(finding)) for finding in report.findings]
    return f"""<h2>Check</h2>
{table("findings", ("check", "", "found", "what to do"), rows)}
<p class="caption">Mend from the top: causes come before what follows from them. Torques assume that the feet that
stand share what the base needs, by least squares within the friction of 0.8.</p>"""


def _cells(finding: Finding) -> tuple[str, str, str]:
    return badge(*_BADGES[finding.status]), escape(finding.found), escape(finding.advice)


def stacked(figures: Sequence[Figure], dpi: int = 150) -> NDArray[np.uint8]:
    """The figures under one another, as one picture."""
    images = []
    with mpl.rc_context({"savefig.facecolor": "white"}):
        for figure in figures:
            figure.set_dpi(dpi)
            canvas = FigureCanvasAgg(figure)
            canvas.draw()
            images.append(np.asarray(canvas.buffer_rgba())[..., :3].copy())
    width = max(image.shape[1] for image in images)
    padded = [np.full((image.shape[0] + dpi // 8, width, 3), 255, dtype=np.uint8) for image in images]
    for page, image in zip(padded, images, strict=True):
        left = (width - image.shape[1]) // 2
        page[: image.shape[0], left : left + image.shape[1]] = image
    return np.concatenate(padded)
