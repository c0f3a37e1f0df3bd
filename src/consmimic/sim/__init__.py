"""Physics of many robots at once, torch in and torch out.

Environments know :class:`Physics` only; :class:`CpuPhysics` runs it on ``mujoco.batch``, and an engine for GPUs
can take its place.
"""

from typing import TYPE_CHECKING

from consmimic.sim.physics import Physics
from consmimic.sim.threads import available_threads

if TYPE_CHECKING:
    from consmimic.sim.cpu import CpuPhysics

__all__ = ["CpuPhysics", "Physics", "available_threads"]


def __getattr__(name: str) -> object:
    """``CpuPhysics`` is imported when asked for: MuJoCo before 4.0 has no ``mujoco.batch``."""
    if name == "CpuPhysics":
        from consmimic.sim.cpu import CpuPhysics

        return CpuPhysics
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
