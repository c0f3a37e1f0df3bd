"""Unitree's Laikago and A1, as the text motions of motion_imitation, PyBullet and AMP_for_hardware have them.

Joints: abduction, hip and knee of FR, FL, RR, RL. Points are named {LF,RF,LH,RH}_{hip,knee,foot}.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consmimic.motions import rotation
from consmimic.motions.dialects.recording import Recording
from consmimic.motions.retarget.source import SourceMotion, base_of

Array = NDArray[np.float64]

LEGS = ("RF", "LF", "RH", "LH")
"""In the order of the files."""


@dataclass(frozen=True, kw_only=True)
class Quadruped:
    """x forward, y left, z up; offsets of a left leg while its angles are 0. m, rad."""

    front_hip: tuple[float, float, float]
    """Of the abduction joint, from the root."""
    hind_hip: tuple[float, float, float]
    upper: tuple[float, float, float]
    """From abduction to hip …"""
    thigh: tuple[float, float, float]
    """… to knee …"""
    shank: tuple[float, float, float]
    """… to the centre of the foot."""
    foot_radius: float
    zero: tuple[float, float, float]
    """Added to the angles in the file: abduction, hip, knee."""
    stance: tuple[float, float, float]
    """Angles in the file, standing at ease."""
    right_abduction: float
    """Which way the right legs' abduction counts in the file: 1 outwards, as the left ones', −1 inwards."""

    def leg(self, name: str, angles: Array) -> tuple[Array, Array, Array]:
        """Hip, knee and foot in the root's frame."""  # (T, 3) → 3 × (T, 3)
        left = name[0] == "L"
        abduction, hip, knee = np.moveaxis(angles + self.zero, -1, 0)
        outward = abduction if left else self.right_abduction * abduction
        upper, thigh, shank = np.array([self.upper, self.thigh, self.shank]) * [1.0, 1.0 if left else -1.0, 1.0]
        about_x = rotation.about(np.array([1.0, 0.0, 0.0]), outward if left else -outward)
        thigh_turn = rotation.product(about_x, rotation.about(np.array([0.0, 1.0, 0.0]), hip))
        shank_turn = rotation.product(thigh_turn, rotation.about(np.array([0.0, 1.0, 0.0]), knee))
        origin = np.array(self.front_hip if name[1] == "F" else self.hind_hip) * [1.0, 1.0 if left else -1.0, 1.0]
        hip_point = origin + rotation.rotate(about_x, upper)
        knee_point = hip_point + rotation.rotate(thigh_turn, thigh)
        return hip_point, knee_point, knee_point + rotation.rotate(shank_turn, shank)


_LAIKAGO = {
    # PyBullet's laikago_toes.urdf (pybullet 3.2.7, pybullet_data/laikago, E. Coumans; model used by permission of
    # Unitree). Left and right upper offsets differ there by 2 mm; their mean is taken.
    "front_hip": (0.242889, 0.0817145, 0.0),
    "hind_hip": (-0.194401, 0.0817145, 0.0),
    "upper": (0.0, 0.05471, 0.0),
    "thigh": (-0.1422, -0.02069, -0.20833),
    "shank": (-0.022, 0.0, -0.25),
    "foot_radius": 0.03,
}
SKELETONS = {
    # PyBullet's laikago_walk counts as the robot's software does: thighs hang down at 0, abduction to one side.
    # Zeros and stance: motion_imitation, laikago_constants.py (google-research, Apache-2.0).
    "laikago": Quadruped(**_LAIKAGO, zero=(0.0, -0.6, 0.66), stance=(0.0, 0.67, -1.25), right_abduction=-1.0),
    # motion_imitation's own clips count as the model does: with these zeros, and with no others, planted feet stay
    # where they are, within 1 mm. Stance: the first frame of its clips.
    "laikago-model": Quadruped(**_LAIKAGO, zero=(0.0, 0.0, 0.0), stance=(0.0, 0.27, -0.86), right_abduction=1.0),
    # Unitree A1 as in motion_imitation, a1.py: legs 0.2 + 0.2, hips 0.0838 outward (google-research, Apache-2.0).
    "a1": Quadruped(
        front_hip=(0.183, 0.047, 0.0),
        hind_hip=(-0.183, 0.047, 0.0),
        upper=(0.0, 0.08505, 0.0),
        thigh=(0.0, 0.0, -0.2),
        shank=(0.0, 0.0, -0.2),
        foot_radius=0.02,
        zero=(0.0, 0.0, 0.0),
        stance=(0.0, 0.9, -1.8),
        right_abduction=-1.0,
    ),
}


def from_quadruped(recording: Recording, body: Quadruped) -> SourceMotion:
    """With the skeleton that the motion was made for: its files do not say which."""
    root_pos, root_quat = base_of(recording)
    points = {}
    for column, leg in zip(range(0, 12, 3), LEGS, strict=True):
        places = body.leg(leg, recording.joint_pos[:, column : column + 3])
        for joint, place in zip(("hip", "knee", "foot"), places, strict=True):
            points[f"{leg}_{joint}"] = root_pos + rotation.rotate(root_quat, place)
    return SourceMotion(
        name=Path(recording.source).name,
        fps=recording.fps,
        root_pos=root_pos,
        root_quat=root_quat,
        points=points,
        turns={},
        feet={leg: (f"{leg}_foot",) for leg in LEGS},
        stance={f"{leg}_foot": body.leg(leg, np.array([body.stance]))[2][0] for leg in LEGS},
        foot_height=body.foot_radius,
        touch_radius=body.foot_radius,
        loops=recording.loops,
    )
