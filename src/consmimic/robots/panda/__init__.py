"""Franka Emika Panda: seven joints, a hand with its fingers closed.

Figures are from Franka Robotics' franka_description (commit 566ba44, Apache-2.0) and from Isaac Lab's
reach task (commit f4aa17f, BSD-3-Clause); masses, gains and limits of the model itself are in panda.xml.
"""

from pathlib import Path

from consmimic.robots.mirror import MirrorPlane
from consmimic.robots.robot import Robot

PANDA = Robot(
    name="panda",
    mjcf=Path(__file__).parent / "panda.xml",
    joint_names=("joint1", "joint2", "joint3", "joint4", "joint5", "joint6", "joint7"),
    default_joint_pos=(0.0, -0.569, 0.0, -2.81, 0.0, 3.037, 0.741),  # Isaac Lab, FRANKA_PANDA_CFG
    action_scale=0.5,  # Isaac Lab, reach task
    end_effector="hand",  # Isaac Lab's panda_hand; the site `tcp` lies 0.1034 m ahead of it
    joint_velocity_limits=(2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61),  # joint_limits.yaml
    mirror_planes=(MirrorPlane(name="left_right", normal="y", swapped=()),),
)
