"""``consmimic motions …``: one file per subcommand, and one line for each below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from consmimic.cli.motions.bench import Bench
from consmimic.cli.motions.check import Check
from consmimic.cli.motions.concat import Concat
from consmimic.cli.motions.convert import Convert
from consmimic.cli.motions.coverage import Coverage
from consmimic.cli.motions.generate import Generate
from consmimic.cli.motions.mirror import Mirror
from consmimic.cli.motions.reset_states import ResetStates
from consmimic.cli.motions.retarget import Retarget
from consmimic.cli.motions.show import Show
from consmimic.cli.motions.slow_down import SlowDown
from consmimic.cli.motions.trim import Trim

__all__ = ["Motions"]

MotionCommand = (
    Annotated[Convert, tyro.conf.subcommand("convert")]
    | Annotated[Show, tyro.conf.subcommand("show")]
    | Annotated[Check, tyro.conf.subcommand("check")]
    | Annotated[Coverage, tyro.conf.subcommand("coverage")]
    | Annotated[Generate, tyro.conf.subcommand("generate")]
    | Annotated[Retarget, tyro.conf.subcommand("retarget")]
    | Annotated[Mirror, tyro.conf.subcommand("mirror")]
    | Annotated[Trim, tyro.conf.subcommand("trim")]
    | Annotated[Concat, tyro.conf.subcommand("concat")]
    | Annotated[SlowDown, tyro.conf.subcommand("slow-down")]
    | Annotated[ResetStates, tyro.conf.subcommand("reset-states")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
)


@dataclass(frozen=True)
class Motions:
    """Clips: bring them in from any format, look at them, find what is wrong with them, change them.

    Nothing is ever overwritten. Start with:

      consmimic motions convert walk.csv --robot anymal_d --fps 30 --joint-names robot walk.npz
      consmimic motions retarget humanoid3d_walk.txt person.npz --robot gr1
      consmimic motions generate trot trot.npz
      consmimic motions check trot.npz --robot anymal_d
      consmimic motions show trot.npz --robot anymal_d --output trot.html
      consmimic motions coverage trot.npz --task Anymal-Lateral --output coverage.png
    """

    command: Annotated[MotionCommand, tyro.conf.arg(name="")]

    def run(self) -> int | None:
        return self.command.run()
