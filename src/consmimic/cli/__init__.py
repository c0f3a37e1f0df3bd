"""The command line: ``consmimic list | train | evaluate | reproduce | motions | bench``."""

from consmimic.cli.main import main

__all__ = ["main"]
