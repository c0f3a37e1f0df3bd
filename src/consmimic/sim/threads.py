"""How many threads this process may use."""

from __future__ import annotations

import os


def available_threads() -> int:
    """Cores that this process may run on: the affinity mask, which containers and job schedulers narrow."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
