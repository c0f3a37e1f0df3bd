"""Franka-Reach: bring the hand to a pose.

The paper's Tables 3 and 4 and "Task Definition"; where they are silent, Isaac Lab's reach task.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from consmimic.envs import rewards
from consmimic.envs.commands import PoseCommand, uniform
from consmimic.envs.task import Demonstrated, Inputs, Observation, RewardTerm, Showcase, Start, Task, TrackingStyle
from consmimic.learner.ppo import ExplorationConfig
from consmimic.method.constraint import ConstraintConfig
from consmimic.motions.clip import Clip
from consmimic.motions.reach import SinusoidalReach, generate_reach
from consmimic.robots.panda import PANDA
from consmimic.sim.physics import Physics
from consmimic.tasks.presets import Preset

COMMAND = PoseCommand(
    x=(0.35, 0.45),
    y=(-0.05, 0.05),
    z=(0.20, 0.30),
    pitch=(-math.pi, math.pi),
    roll=(0.0, 0.0),  # not in the paper: roll and yaw of the default pose
    yaw=(math.pi, math.pi),
)
POINTING_DOWN = (0.0, 1.0, 0.0, 0.0)

_DEFAULT = torch.tensor(PANDA.default_joint_pos)
_COMMAND_LAYOUT = COMMAND.layout
_HAND = "hand"
_HAND_ID = PANDA.model(visuals=False).body(_HAND).id


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachState:
    """What is known of N arms after a step."""

    joint_pos: Tensor  # (N, 7)
    joint_vel: Tensor  # (N, 7)
    hand_pos: Tensor  # (N, 3)
    hand_quat: Tensor  # (N, 4)
    target_pos: Tensor  # (N, 3)
    target_quat: Tensor  # (N, 4)
    action: Tensor  # (N, 7)
    previous_action: Tensor  # (N, 7)


def sense(physics: Physics, inputs: Inputs, ids: Tensor | None = None) -> ReachState:
    hand = _HAND_ID
    target = _COMMAND_LAYOUT.split(inputs.command)
    return ReachState(
        joint_pos=physics.read("qpos", ids),
        joint_vel=physics.read("qvel", ids),
        hand_pos=physics.read("xpos", ids)[:, hand],
        hand_quat=physics.read("xquat", ids)[:, hand],
        target_pos=target["target_pos"],
        target_quat=target["target_quat"],
        action=inputs.action,
        previous_action=inputs.previous_action,
    )


def reset_joints(limits: Tensor, count: int, generator: Generator) -> Start:
    """The default pose times U(0.5, 1.5) per joint, within the limits (Isaac Lab)."""
    scaled = _DEFAULT * uniform(0.5, 1.5, (count, len(_DEFAULT)), generator)
    return Start(joint_pos=torch.clamp(scaled, limits[:, 0], limits[:, 1]))


OBSERVATIONS = (  # Table 3; joint positions are from the default pose, noise is Isaac Lab's
    Observation("joint_pos", 7, lambda s: s.joint_pos - _DEFAULT, noise=0.01),
    Observation("joint_vel", 7, lambda s: s.joint_vel, noise=0.01),
    Observation("target_pos", 3, lambda s: s.target_pos),
    Observation("target_quat", 4, lambda s: s.target_quat),
    Observation("last_action", 7, lambda s: s.action),
)

REWARDS = (  # Table 4, row by row
    RewardTerm("ee_tracking_coarse", lambda s: rewards.position_error(s.hand_pos, s.target_pos), -0.5),
    RewardTerm("ee_tracking_fine", lambda s: rewards.position_closeness(s.hand_pos, s.target_pos), 1.0),
    RewardTerm("ee_orientation", lambda s: rewards.orientation_error(s.hand_quat, s.target_quat), -0.1),
    RewardTerm("action_rate", lambda s: rewards.action_rate(s.action, s.previous_action), -0.01),
    RewardTerm("joint_vel", lambda s: rewards.squared_norm(s.joint_vel), -0.01),
)

DEMONSTRATED = (  # Table 3, "Demonstration": end-effector poses
    Demonstrated(
        name="hand_pos",
        width=3,
        from_state=lambda s: s.hand_pos,
        from_clip=lambda clip: torch.from_numpy(clip.body_pos_w[:, clip.body(_HAND)].astype("float32")),
    ),
    Demonstrated(
        name="hand_quat",
        width=4,
        from_state=lambda s: s.hand_quat,
        from_clip=lambda clip: torch.from_numpy(clip.body_quat_w[:, clip.body(_HAND)].astype("float32")),
    ),
)


def demonstration() -> Clip:
    """The built-in clip: a swaying reach from the default pose to the middle of the target box, pointing down."""
    return generate_reach(
        PANDA.model(),
        joint_names=PANDA.joint_names,
        start_joint_pos=PANDA.default_joint_pos,
        end_effector=_HAND,
        goal_pos=COMMAND.centre,
        goal_quat=POINTING_DOWN,
        path=SinusoidalReach(),
    )


ETA_MANIPULATION = 20.0  # "η = 20 for manipulation", below Eq. 12


def _showcase() -> Showcase:
    """From the default pose to the middle of the box and to its eight corners, pointing down as the clip does."""
    corners = torch.cartesian_prod(*(torch.tensor(side) for side in (COMMAND.x, COMMAND.y, COMMAND.z)))
    goals = torch.cat([torch.tensor([COMMAND.centre]), corners])
    orientation = torch.tensor(POINTING_DOWN).repeat(len(goals), 1)
    return Showcase(
        start=Start(joint_pos=_DEFAULT.unsqueeze(0)), commands=torch.cat([goals, orientation], dim=1), goals=goals
    )


FRANKA_REACH = Task(
    name="Franka-Reach",
    summary="Panda: bring the hand to a pose; the demonstration sways there on a sinusoid",
    robot=PANDA,
    timestep=1.0 / 60.0,  # Isaac Lab
    decimation=2,  # Isaac Lab: 30 Hz
    episode_seconds=4.0,  # one target an episode; Isaac Lab draws one every 4 s (docs/departures.md)
    command=COMMAND,
    sense=sense,
    reset=reset_joints,
    observations=OBSERVATIONS,
    rewards=REWARDS,
    demonstrated=DEMONSTRATED,
    style=TrackingStyle(weights={"hand_pos": 120.0, "hand_quat": 0.1}, quaternions=("hand_quat",)),
    demonstration=demonstration,
    tracking=lambda s: rewards.position_closeness(s.hand_pos, s.target_pos),
    trajectory=lambda s: s.hand_pos,
    clip_trajectory=lambda clip: torch.from_numpy(clip.body_pos_w[:, clip.body(_HAND)]),
    imitation_scale=ETA_MANIPULATION,
    showcase=_showcase(),
)

PRESETS = {
    "laptop": Preset(
        num_envs=512,
        max_iterations=700,
        hidden_dims=(64, 64),
        # Chosen on task-only runs, so that v^g has levelled out when the warm-up ends (docs/departures.md, 20).
        num_learning_epochs=3,
        desired_kl=0.03,
        exploration=ExplorationConfig(std_floor=0.1),
        # Task-only training still gains some per cent between the warm-up's end and the last iteration, which v^g*
        # cannot know of.
        constraint=ConstraintConfig(margin=0.045, warmup_min_iterations=220, warmup_max_iterations=260),
    ),
    "paper": Preset(
        num_envs=4096,
        max_iterations=20000,
        hidden_dims=(64, 64),
        constraint=ConstraintConfig(warmup_min_iterations=1000, warmup_max_iterations=10000, plateau_window=500),
    ),
}
