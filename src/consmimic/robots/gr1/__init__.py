"""Fourier GR-1 (GR1T2): legs, waist, shoulders and elbows, 23 joints; head and wrists do not move.

Figures are from Fourier's URDF (FFTAI/Wiki-GRx-Models, commit 7d96c75), made symmetric, and from training
configurations of Fourier's and others; masses, gains and limits of the model itself are in gr1.xml.
"""

from pathlib import Path

from consmimic.robots.mirror import MirrorPlane
from consmimic.robots.robot import Robot

_LEG = {  # joint: default angle (FFTAI/Wiki-GRx-Gym, commit c91bbba) and speed limit (the URDF's)
    "hip_roll": (0.0, 7.64),
    "hip_yaw": (0.0, 9.8),
    "hip_pitch": (-0.2618, 18.54),
    "knee_pitch": (0.5236, 18.54),
    "ankle_pitch": (-0.2618, 10.26),
    "ankle_roll": (0.0, 10.26),
}
_WAIST = {"waist_yaw": (0.0, 9.8), "waist_pitch": (0.0, 9.8), "waist_roll": (0.0, 9.8)}
_LEFT_ARM = {
    "shoulder_pitch": (0.0, 6.28),
    "shoulder_roll": (0.2, 6.28),
    "shoulder_yaw": (0.0, 5.24),
    "elbow_pitch": (-0.3, 5.24),
}
_RIGHT_ARM = _LEFT_ARM | {"shoulder_roll": (-0.2, 6.28)}
_JOINTS = {
    f"{prefix}{joint}_joint": figures
    for prefix, joints in (
        ("left_", _LEG),
        ("right_", _LEG),
        ("", _WAIST),
        ("left_", _LEFT_ARM),
        ("right_", _RIGHT_ARM),
    )
    for joint, figures in joints.items()
}

GR1 = Robot(
    name="gr1",
    mjcf=Path(__file__).parent / "gr1.xml",
    joint_names=tuple(_JOINTS),  # in the order of the URDF
    default_joint_pos=tuple(angle for angle, _ in _JOINTS.values()),
    action_scale=0.25,  # robot_lab, commit 09f7fb4
    joint_velocity_limits=tuple(speed for _, speed in _JOINTS.values()),
    root_height=0.898268,
    feet=("left_foot_roll_link", "right_foot_roll_link"),
    mirror_planes=(MirrorPlane(name="left_right", normal="y", swapped=(("left", "right"),)),),
)
