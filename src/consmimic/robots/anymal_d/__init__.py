"""ANYbotics ANYmal D, without payload: twelve joints, four round feet.

Figures are from ANYbotics' anymal_d_simple_description (fork of leggedrobotics, commit 4b237da, BSD-3-Clause) and
from Isaac Lab (commit f4aa17f, BSD-3-Clause); masses, motors and limits of the model itself are in anymal_d.xml.
"""

from pathlib import Path

from consmimic.robots.mirror import MirrorPlane
from consmimic.robots.robot import Robot

ANYMAL_D = Robot(
    name="anymal_d",
    mjcf=Path(__file__).parent / "anymal_d.xml",
    joint_names=tuple(f"{leg}_{joint}" for leg in ("LF", "RF", "LH", "RH") for joint in ("HAA", "HFE", "KFE")),
    default_joint_pos=(0.0, 0.4, -0.8, 0.0, 0.4, -0.8, 0.0, -0.4, 0.8, 0.0, -0.4, 0.8),  # Isaac Lab, ANYMAL_D_CFG
    action_scale=0.5,  # Isaac Lab, velocity task
    joint_velocity_limits=(7.5,) * 12,  # Isaac Lab: where the motor has no torque left; the URDF says 8.5
    root_height=0.58851,
    feet=("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"),
    mirror_planes=(
        MirrorPlane(name="left_right", normal="y", swapped=(("LF", "RF"), ("LH", "RH"))),
        MirrorPlane(name="front_back", normal="x", swapped=(("LF", "LH"), ("RF", "RH"))),
    ),
)
