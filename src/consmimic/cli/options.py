"""How optional flags look in the help: a plain word for the value, and no "(default: None)"."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro


def _arg(metavar: str):
    return tyro.conf.arg(metavar=metavar, help_behavior_hint="")


OptionalInt = Annotated[int | None, _arg("N")]
OptionalRate = Annotated[float | None, _arg("HZ")]
OptionalShare = Annotated[float | None, _arg("SHARE")]
OptionalPath = Annotated[Path | None, _arg("PATH")]
OptionalClip = Annotated[str | None, _arg("NAME|PATH")]
OptionalName = Annotated[str | None, _arg("NAME")]
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")]
KeyValues = Annotated[tuple[str, ...], _arg("[KEY=VALUE ...]")]
