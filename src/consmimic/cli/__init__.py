"""The command line: ``consmimic list | train | evaluate | reproduce | bench``."""

from consmimic.cli.main import main

__all__ = ["main"]
