"""Where a number comes from: code, machine, versions."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from consmimic.sim.threads import available_threads


def commit() -> str | None:
    """The commit of the source tree that this package runs from; None where it is not a git checkout."""
    source = Path(__file__).parent
    try:
        run = subprocess.run(
            ["git", "-C", str(source), "describe", "--always", "--dirty", "--abbrev=10", "--match="],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout.strip() or None


def machine() -> str:
    """Processor, usable cores, and the versions that decide the bits."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "mujoco", "rsl-rl-lib"))
    return f"{_processor()}, {available_threads()} cores, {platform.system()}, {packages}"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
