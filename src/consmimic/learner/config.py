"""Config dictionaries, as rsl_rl takes them, to the records that the learner uses; unknown keys are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from consmimic.errors import UserError, unknown

C = TypeVar("C")


def from_dict(record: type[C], values: Mapping[str, Any], where: str) -> C:
    """Build the dataclass; a wrong key names the valid ones, a wrong value says what is valid."""
    valid = [field.name for field in fields(record)]  # type: ignore[arg-type]
    for key in values:
        if key not in valid:
            raise unknown(f"key in {where}", key, valid)
    try:
        return record(**values)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: {error}") from None
