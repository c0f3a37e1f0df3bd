"""How people walk: normative joint angles over the gait cycle, and how they and the steps change with speed.

The tables are ours: rounded angles of healthy adults at their natural cadence, at every 5 % of the cycle from one heel
strike to the next, after the curves of D. A. Winter, "The Biomechanics and Motor Control of Human Gait" (1991), and of
J. Perry and J. M. Burnfield, "Gait Analysis" (2010). Key figures (peaks and when they come) are theirs; what lies
between is true to a few degrees, far less than people differ. Speeds are compared as Froude did, v/√(g L), and lengths
by the length L of the leg, from hip to sole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Degrees at 0, 5, …, 95 % of the cycle. Flexion is positive; at the ankle, dorsiflexion. The hip's is that of the thigh
# from the vertical: against the pelvis, which people tilt forward, it would be 10° more.
_HIP = (22, 21.5, 20, 17, 13, 8.5, 3.5, -2, -8, -14, -19, -19, -12, -1, 9, 17, 22.5, 25, 25, 23.5)
_KNEE = (4, 10, 17, 19, 17, 13, 9, 6, 5, 7, 13, 24, 39, 54, 63, 64, 56, 41, 22, 7)
_ANKLE = (0, -5, -4, 0, 3, 5, 6.5, 8, 9.5, 10, 7, -2, -15, -19, -13, -6, -1, 1, 1.5, 1)
_TOE_OFF = 0.62
"""Of the cycle, in the tables."""
_HARMONICS = 7
"""As many as walking has (Winter: 99.7 % of a foot's power is in the first seven)."""

GRAVITY = 9.81
NATURAL_SPEED = 0.45
"""v/√(g L): 1.35 m/s for a leg of 0.92 m."""
_STEP_PER_ROOT_SPEED = 1.17
"""Step length over L is this times √(v/√(g L)): the walk ratio of step length to cadence, which people keep at all
speeds (N. Sekiya and H. Nagasaki, 1998: 0.0064 m per step/min)."""


@dataclass(frozen=True, kw_only=True)
class Gait:
    """What a person with a leg of length `leg` m does at `speed` m/s."""

    speed: float
    leg: float

    @property
    def froude_speed(self) -> float:
        return self.speed / float(np.sqrt(GRAVITY * self.leg))

    @property
    def vigour(self) -> float:
        """1 at the natural speed."""
        return self.froude_speed / NATURAL_SPEED

    @property
    def step_length(self) -> float:
        return _STEP_PER_ROOT_SPEED * self.leg * float(np.sqrt(self.froude_speed))

    @property
    def cycle_seconds(self) -> float:
        return 2.0 * self.step_length / self.speed

    @property
    def duty(self) -> float:
        """Share of the cycle that a foot is on the ground: 62 % at the natural speed, less at higher speeds (about
        65 to 59 % from slow to fast)."""
        return float(np.clip(0.62 - 0.2 * (self.froude_speed - NATURAL_SPEED), 0.54, 0.68))

    def in_tables(self, cycle: Array) -> Array:
        """Where in the cycle of the tables the leg is: its toe-off comes later or earlier than here."""
        shift = (_TOE_OFF - self.duty) / np.sin(np.pi * self.duty) ** 2
        return cycle + shift * np.sin(np.pi * cycle) ** 2

    def hip(self, cycle: Array) -> Array:
        """Flexion, rad. Its excursion is as much larger as the steps are longer."""
        mean = np.radians(np.mean(_HIP))
        return mean + np.sqrt(self.vigour) * (_curve(_HIP, self.in_tables(cycle)) - mean)

    def knee(self, cycle: Array) -> Array:
        """Flexion, rad. The wave of the stance grows with speed, that of the swing hardly does (Winter)."""
        stance_wave = np.maximum(np.array(_KNEE) - _KNEE[8], 0.0) * (np.arange(20) < 8)
        growth = np.clip(self.vigour, 0.4, 1.4) - 1.0
        return _curve(np.array(_KNEE) + growth * stance_wave, self.in_tables(cycle))

    def ankle(self, cycle: Array) -> Array:
        """Dorsiflexion, rad."""
        return _curve(_ANKLE, self.in_tables(cycle))

    @property
    def pelvis_rotation(self) -> float:
        """rad to either side about the vertical; each leg's side is ahead when its heel strikes (Perry: 5°)."""
        return float(np.radians(5.0) * np.clip(self.vigour, 0.5, 1.5))

    @property
    def trunk_rotation(self) -> float:
        """rad to either side, against the pelvis (about 4°)."""
        return float(np.radians(4.0) * np.clip(self.vigour, 0.5, 1.5))

    @property
    def pelvis_list(self) -> float:
        """rad to either side; the side of the swinging leg is lower (Perry: 4°)."""
        return float(np.radians(4.0))

    def shoulder(self, cycle: Array) -> Array:
        """Flexion, rad, farthest back when the heel of the same side strikes: 24° back to 8° ahead at the natural speed
        (M. P. Murray et al., 1967)."""
        return np.radians(-8.0 - 16.0 * np.clip(self.vigour, 0.4, 1.4) * np.cos(2.0 * np.pi * cycle))

    def elbow(self, cycle: Array) -> Array:
        """Flexion, rad, most when the arm is ahead (about 20° to 40°)."""
        return np.radians(29.0 - 11.0 * np.clip(self.vigour, 0.4, 1.4) * np.cos(2.0 * np.pi * cycle))


def _curve(degrees: tuple[float, ...] | Array, cycle: Array) -> Array:
    """The table as a Fourier series, rad."""
    coefficients = np.fft.rfft(np.radians(degrees))[: _HARMONICS + 1] / len(degrees)
    coefficients[1:] *= 2.0
    waves = np.exp(2j * np.pi * np.multiply.outer(cycle, np.arange(_HARMONICS + 1)))
    return (waves @ coefficients).real
