"""Physics of many robots at once, torch in and torch out.

Environments know :class:`Physics` only; :class:`CpuPhysics` runs it on ``mujoco.batch``, and an engine for GPUs
can take its place.
"""

from typing import TYPE_CHECKING

from consmimic.errors import UserError
from consmimic.sim.physics import Physics
from consmimic.sim.threads import available_threads

if TYPE_CHECKING:
    from consmimic.sim.cpu import CpuPhysics

__all__ = ["CpuPhysics", "Physics", "available_threads"]


def __getattr__(name: str) -> object:
    """``CpuPhysics`` is imported when asked for: MuJoCo before 4.0 has no ``mujoco.batch``."""
    if name == "CpuPhysics":
        try:
            from consmimic.sim.cpu import CpuPhysics
        except ImportError as error:
            raise UserError(
                f"physics on the CPU needs MuJoCo >= 4.0 and Python >= 3.11 (mujoco.batch): {error}"
            ) from None
        return CpuPhysics
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
