"""Entry point: parse, run, and turn a UserError into one line and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import tyro

from consmimic.cli.bench import Bench
from consmimic.cli.evaluate import Evaluate
from consmimic.cli.list_tasks import ListTasks
from consmimic.cli.motions import Motions
from consmimic.cli.reproduce import Reproduce
from consmimic.cli.train import Train
from consmimic.errors import UserError

DESCRIPTION = """\
Train robot policies that move in the style of your motion clips without losing the task.

One knob: alpha, the share of the task-only optimum to keep. Start with:

  consmimic train Franka-Reach             train ConsMimic at the paper's alpha
  consmimic evaluate logs/rsl_rl/*/*       scores and an HTML report of what you trained
  consmimic reproduce Franka-Reach         the paper's comparison, seeds and baselines included
"""

Command = (
    Annotated[ListTasks, tyro.conf.subcommand("list")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Motions, tyro.conf.subcommand("motions")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
)


def main(arguments: Sequence[str] | None = None) -> None:
    command = tyro.cli(
        Command,  # type: ignore[arg-type]
        prog="consmimic",
        description=DESCRIPTION,
        args=arguments,
        config=(tyro.conf.OmitSubcommandPrefixes,),
    )
    try:
        code = command.run()
    except UserError as error:
        print(f"consmimic: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(code or 0)
