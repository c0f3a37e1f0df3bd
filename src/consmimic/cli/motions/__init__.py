"""``consmimic motions …``: one file per subcommand, and one line for each below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from consmimic.cli.motions.bench import Bench
from consmimic.cli.motions.concat import Concat
from consmimic.cli.motions.convert import Convert
from consmimic.cli.motions.generate import Generate
from consmimic.cli.motions.mirror import Mirror
from consmimic.cli.motions.reset_states import ResetStates
from consmimic.cli.motions.retarget import Retarget
from consmimic.cli.motions.slow_down import SlowDown
from consmimic.cli.motions.trim import Trim

__all__ = ["Motions"]

MotionCommand = (
    Annotated[Convert, tyro.conf.subcommand("convert")]
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
    """Clips: bring them in from any format, make them, change them.

    Nothing is ever overwritten. Start with:

      consmimic motions convert walk.csv --robot anymal_d --fps 30 --joint-names robot walk.npz
      consmimic motions generate trot trot.npz
    """

    command: Annotated[MotionCommand, tyro.conf.arg(name="")]

    def run(self) -> int | None:
        return self.command.run()
