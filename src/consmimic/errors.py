"""Errors that a user can act on: each names the thing, what was found, and the valid choices."""

from __future__ import annotations

from collections.abc import Iterable


class UserError(Exception):
    """Bad input. The command line prints its one line and exits with code 2."""


def unknown(kind: str, name: str, choices: Iterable[str]) -> UserError:
    """An error for a name that is not among the valid ones."""
    return UserError(f"unknown {kind} '{name}'. Valid: {', '.join(choices)}")
