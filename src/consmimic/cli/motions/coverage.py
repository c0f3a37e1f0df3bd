"""``consmimic motions coverage``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from consmimic.cli.options import Flag, OptionalInt, OptionalPath
from consmimic.errors import UserError
from consmimic.evaluation.coverage import coverage
from consmimic.evaluation.coverage_figure import coverage_figure
from consmimic.motions import Clip
from consmimic.tasks import task_entry

FORMATS = (".png", ".pdf", ".svg")


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How far clips are from what a task asks for, command by command, and what conflict that predicts.

    The conflict of a command is 1 - exp(-d^2), d being its distance to the nearest thing that the clips show, in
    units of the width of the task's reward kernel (0.5 m/s and 0.5 rad/s; 5 cm for targets): 0 where the clips show
    just this, 1 where they show nothing like it. Velocities are averaged over a gait cycle first.

    Try:

      consmimic motions coverage --task Anymal-Lateral --output lateral.png
      consmimic motions coverage walk.npz turn.npz --task Anymal-Forward --mirrors
    """

    clips: Annotated[
        tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="CLIP ...", help_behavior_hint="")
    ] = ()
    """Clips of the task's robot (npz). Default: the demonstration that comes with the task."""
    task: Annotated[str, tyro.conf.arg(metavar="TASK")]
    """Name of a task; `consmimic list` shows them."""
    output: OptionalPath = None
    """Figure to write (.png, .pdf or .svg); the numbers of every bin go beside it, as .json."""
    mirrors: Flag = False
    """Count the clips' mirror images too, as symmetric style training does."""
    bins: OptionalInt = None
    """Bins along each axis of the command. Default: 21 for two axes, 11 for three."""
    json: Flag = False
    """Print the numbers of every bin as JSON."""

    def run(self) -> int:
        task = task_entry(self.task).task
        if self.output is not None and self.output.suffix not in FORMATS:
            raise UserError(f"output is '{self.output}'; its name must end in one of {', '.join(FORMATS)}")
        clips = [_load(path, task.robot.joint_names) for path in self.clips] or [task.demonstration()]
        found = coverage(task, clips, mirrors=self.mirrors, bins=self.bins)
        if self.json:
            print(json.dumps(found.as_dict(), indent=1))
        else:
            for sentence in found.sentences():
                print(sentence)
        if self.output is not None:
            self.output.parent.mkdir(parents=True, exist_ok=True)
            coverage_figure(found).savefig(self.output, dpi=200)
            self.output.with_suffix(".json").write_text(json.dumps(found.as_dict(), indent=1) + "\n")
            if not self.json:
                print(self.output)
        return 0


def _load(path: Path, joint_names: tuple[str, ...]) -> Clip:
    try:
        return Clip.load(path).with_joints(joint_names)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
