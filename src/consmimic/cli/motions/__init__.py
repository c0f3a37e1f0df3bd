"""``consmimic motions …``: one file per subcommand, and one line for each below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from consmimic.cli.motions.check import Check
from consmimic.cli.motions.coverage import Coverage
from consmimic.cli.motions.show import Show

__all__ = ["Motions"]

MotionCommand = (
    Annotated[Check, tyro.conf.subcommand("check")]
    | Annotated[Show, tyro.conf.subcommand("show")]
    | Annotated[Coverage, tyro.conf.subcommand("coverage")]
)


@dataclass(frozen=True)
class Motions:
    """Clips: look at them, find what is wrong with them, and what they are worth for a task.

    Start with:

      consmimic motions check walk.npz --robot anymal_d
      consmimic motions show walk.npz --robot anymal_d --output walk.html
      consmimic motions coverage walk.npz --task Anymal-Lateral --output coverage.png
    """

    command: Annotated[MotionCommand, tyro.conf.arg(name="")]

    def run(self) -> int | None:
        return self.command.run()
