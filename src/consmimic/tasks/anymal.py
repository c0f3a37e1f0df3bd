"""Anymal-Forward and Anymal-Lateral: walk at a commanded velocity.

The paper's Tables 5 and 6 and "Task Definition"; where they are silent, Isaac Lab's ANYmal task (docs/departures.md).
"""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Generator, Tensor

from consmimic.envs import rewards
from consmimic.envs.commands import VelocityCommand, uniform
from consmimic.envs.layout import Layout
from consmimic.envs.task import (
    AdversarialStyle,
    Demonstrated,
    Growth,
    Inputs,
    Memory,
    Observation,
    Pushes,
    RewardTerm,
    Start,
    Task,
    TaskMirror,
    Walking,
)
from consmimic.learner.ppo import ExplorationConfig
from consmimic.learner.style import StyleConfig
from consmimic.method.constraint import ConstraintConfig
from consmimic.method.symmetry import SignedPermutation, axial, mirror_layout, planar_velocity, polar
from consmimic.motions.clip import Clip
from consmimic.motions.trot import Trot, generate_trot
from consmimic.robots.anymal_d import ANYMAL_D
from consmimic.robots.mirror import MirrorPlane, mirror_of
from consmimic.rotations import from_yaw, rotate_back
from consmimic.sim.physics import Physics
from consmimic.tasks.presets import Preset

TIMESTEP, DECIMATION = 0.005, 4  # Isaac Lab: 50 Hz
STEP_SECONDS = TIMESTEP * DECIMATION
KERNEL_VARIANCE = 0.25  # σ², Isaac Lab
LONG_STEP_SECONDS = 0.5  # Table 6
CONTACT_NEWTONS = 1.0  # Isaac Lab: less is no contact
SOFT_LIMIT_SHARE = 0.95  # Isaac Lab: of the joints' ranges, about their middle
ETA_LOCOMOTION = 100.0  # η of Eq. 12

_MODEL = ANYMAL_D.model(visuals=False)
_DEFAULT = torch.tensor(ANYMAL_D.default_joint_pos)
_BASE = _MODEL.body("base").id
_GRAVITY = torch.tensor([0.0, 0.0, -1.0])


def _soft_limits() -> tuple[Tensor, Tensor]:
    low, high = torch.tensor(
        np.array([_MODEL.joint(name).range for name in ANYMAL_D.joint_names], dtype=np.float32)
    ).unbind(dim=1)
    middle, half = 0.5 * (low + high), 0.5 * SOFT_LIMIT_SHARE * (high - low)
    return middle - half, middle + half


_LOW, _HIGH = _soft_limits()


def _force_columns(bodies: tuple[str, ...]) -> Tensor:
    """Where the contact forces on the bodies are in ``sensordata``, (B, 3)."""
    starts = [int(_MODEL.sensor(f"contact_{body}").adr[0]) for body in bodies]
    return torch.tensor(starts).unsqueeze(1) + torch.arange(3)


_FEET = _force_columns(ANYMAL_D.feet)
_THIGHS = _force_columns(tuple(foot.replace("FOOT", "THIGH") for foot in ANYMAL_D.feet))
_TRUNK = _force_columns(("base",))


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkState:
    """What is known of N quadrupeds after a step. Velocities and gravity are in the base's frame."""

    base_pos: Tensor  # (N, 3), world
    lin_vel: Tensor  # (N, 3)
    ang_vel: Tensor  # (N, 3)
    gravity: Tensor  # (N, 3), a unit vector
    joint_pos: Tensor  # (N, 12)
    joint_vel: Tensor  # (N, 12)
    joint_acc: Tensor  # (N, 12), of the last substep
    torque: Tensor  # (N, 12), of the last substep
    foot_contact: Tensor  # (N, 4) bool
    touch_down: Tensor  # (N, 4) bool: in contact now, not after the last step
    air_time: Tensor  # (N, 4), s since the foot left the ground, up to now; 0 on the ground
    thigh_contact: Tensor  # (N, 4) bool
    base_contact: Tensor  # (N,) bool
    command: Tensor  # (N, 3): v_x, v_y, ω_z
    action: Tensor  # (N, 12)
    previous_action: Tensor  # (N, 12)


def sense(physics: Physics, inputs: Inputs, ids: Tensor | None = None) -> WalkState:
    qpos, qvel = physics.read("qpos", ids), physics.read("qvel", ids)
    quaternion = qpos[:, 3:7]
    sensors = physics.read("sensordata", ids)
    foot_contact = _touched(sensors[:, _FEET])
    was_in_air = inputs.memory > 0.0
    return WalkState(
        base_pos=qpos[:, :3],
        lin_vel=rotate_back(quaternion, qvel[:, :3]),
        ang_vel=qvel[:, 3:6],
        gravity=rotate_back(quaternion, _GRAVITY.expand(len(qpos), 3)),
        joint_pos=qpos[:, 7:],
        joint_vel=qvel[:, 6:],
        joint_acc=physics.read("qacc", ids)[:, 6:],
        torque=physics.read("actuator_force", ids),
        foot_contact=foot_contact,
        touch_down=foot_contact & was_in_air,
        air_time=torch.where(foot_contact & ~was_in_air, 0.0, inputs.memory + STEP_SECONDS),
        thigh_contact=_touched(sensors[:, _THIGHS]),
        base_contact=_touched(sensors[:, _TRUNK]).squeeze(1),
        command=inputs.command,
        action=inputs.action,
        previous_action=inputs.previous_action,
    )


def _touched(forces: Tensor) -> Tensor:  # (N, B, 3) → (N, B)
    return torch.linalg.vector_norm(forces, dim=-1) > CONTACT_NEWTONS


AIR_TIME = Memory(
    layout=Layout({"air_time": 4}),
    note=lambda s: torch.where(s.foot_contact, 0.0, s.air_time),
)


def reset(limits: Tensor, count: int, generator: Generator) -> Start:  # noqa: ARG001 - the soft limits are used
    """Isaac Lab: anywhere within ± 0.5 m, any heading, joints at U(0.5, 1.5) of the default pose, moving."""
    xy = uniform(-0.5, 0.5, (count, 2), generator)
    scaled = _DEFAULT * uniform(0.5, 1.5, (count, len(_DEFAULT)), generator)
    return Start(
        joint_pos=torch.clamp(scaled, _LOW, _HIGH),
        root_pos=torch.cat([xy, torch.full((count, 1), 0.6)], dim=1),
        root_quat=from_yaw(uniform(-math.pi, math.pi, (count,), generator)),
        root_lin_vel=uniform(-0.5, 0.5, (count, 3), generator),
        root_ang_vel=uniform(-0.5, 0.5, (count, 3), generator),
    )


def randomise(physics: Physics, generator: Generator) -> None:
    """Isaac Lab: another base mass (± 5 kg, inertia in proportion) and centre of mass (± 5, 5, 1 cm) for each robot."""
    count = physics.num_envs
    added = uniform(-5.0, 5.0, (count,), generator).numpy()
    shift = (torch.tensor([0.05, 0.05, 0.01]) * uniform(-1.0, 1.0, (count, 3), generator)).numpy()
    mass, inertia, centre = (physics.vary(name) for name in ("body_mass", "body_inertia", "body_ipos"))
    inertia[:, _BASE] *= (1.0 + added / mass[:, _BASE])[:, None]
    mass[:, _BASE] += added
    centre[:, _BASE] += shift


OBSERVATIONS = (  # Table 5; noise is Isaac Lab's
    Observation("base_lin_vel", 3, lambda s: s.lin_vel, noise=0.1),
    Observation("base_ang_vel", 3, lambda s: s.ang_vel, noise=0.2),
    Observation("projected_gravity", 3, lambda s: s.gravity, noise=0.05),
    Observation("velocity_command", 3, lambda s: s.command),
    Observation("joint_pos", 12, lambda s: s.joint_pos - _DEFAULT, noise=0.01),
    Observation("joint_vel", 12, lambda s: s.joint_vel, noise=1.5),
    Observation("last_action", 12, lambda s: s.action),
)


def _tracks_velocity(s: WalkState) -> Tensor:
    return rewards.velocity_closeness(s.lin_vel[:, :2], s.command[:, :2], KERNEL_VARIANCE)


def _stands_still(s: WalkState) -> Tensor:
    """What track_lin_vel_xy would be without moving."""
    return rewards.velocity_closeness(torch.zeros_like(s.command[:, :2]), s.command[:, :2], KERNEL_VARIANCE)


def _tracks_turning(s: WalkState) -> Tensor:
    return rewards.velocity_closeness(s.ang_vel[:, 2:], s.command[:, 2:], KERNEL_VARIANCE)


REWARDS = (  # Table 6, row by row
    RewardTerm("track_lin_vel_xy", _tracks_velocity, 1.0),
    RewardTerm("track_ang_vel_z", _tracks_turning, 0.5),
    RewardTerm("lin_vel_z", lambda s: s.lin_vel[:, 2].square(), -2.0),
    RewardTerm("ang_vel_xy", lambda s: rewards.squared_norm(s.ang_vel[:, :2]), -0.05),
    RewardTerm("joint_torque", lambda s: rewards.squared_norm(s.torque), -2.5e-5),
    RewardTerm("joint_acc", lambda s: rewards.squared_norm(s.joint_acc), -2.5e-7),
    RewardTerm("action_rate", lambda s: rewards.action_rate(s.action, s.previous_action), -0.01),
    RewardTerm("power", lambda s: rewards.power(s.torque, s.joint_vel), -5e-5),
    RewardTerm("feet_air_time", lambda s: rewards.long_steps(s.touch_down, s.air_time, LONG_STEP_SECONDS), 0.125),
    RewardTerm("undesired_contacts", lambda s: rewards.count(s.thigh_contact), -1.0),
    RewardTerm("flat_orientation", lambda s: rewards.squared_norm(s.gravity[:, :2]), -5.0),
    RewardTerm("joint_limits", lambda s: rewards.limit_violation(s.joint_pos, _LOW, _HIGH), -1.0),
)


def _base(clip: Clip, field: str) -> Tensor:
    return torch.from_numpy(getattr(clip, field)[:, clip.body("base")].astype(np.float32))


def _in_base_frame(clip: Clip, field: str) -> Tensor:
    return rotate_back(_base(clip, "body_quat_w"), _base(clip, field))


DEMONSTRATED = (  # Table 5, "Demonstration"
    Demonstrated(
        name="base_lin_vel",
        width=3,
        from_state=lambda s: s.lin_vel,
        from_clip=lambda clip: _in_base_frame(clip, "body_lin_vel_w"),
    ),
    Demonstrated(
        name="base_ang_vel",
        width=3,
        from_state=lambda s: s.ang_vel,
        from_clip=lambda clip: _in_base_frame(clip, "body_ang_vel_w"),
    ),
    Demonstrated(
        name="projected_gravity",
        width=3,
        from_state=lambda s: s.gravity,
        from_clip=lambda clip: rotate_back(_base(clip, "body_quat_w"), _GRAVITY.expand(len(clip), 3)),
    ),
    Demonstrated(
        name="joint_pos",
        width=12,
        from_state=lambda s: s.joint_pos,
        from_clip=lambda clip: torch.from_numpy(clip.joint_pos.astype(np.float32)),
    ),
    Demonstrated(
        name="joint_vel",
        width=12,
        from_state=lambda s: s.joint_vel,
        from_clip=lambda clip: torch.from_numpy(clip.joint_vel.astype(np.float32)),
    ),
)


def _mirror(plane: MirrorPlane) -> TaskMirror:
    joints = mirror_of(_MODEL, plane, ANYMAL_D.joint_names).joints
    blocks = {
        "base_lin_vel": polar(plane.normal),
        "base_ang_vel": axial(plane.normal),
        "projected_gravity": polar(plane.normal),
        "velocity_command": planar_velocity(plane.normal),
        "joint_pos": joints,  # the default pose, which it is counted from, is its own mirror image
        "joint_vel": joints,
        "last_action": joints,
    }

    def of(parts: Sequence[Observation | Demonstrated]) -> SignedPermutation:
        layout = {part.name: part.width for part in parts}
        return mirror_layout(layout, {name: blocks[name] for name in layout})

    return TaskMirror(name=plane.name, observation=of(OBSERVATIONS), action=joints, features=of(DEMONSTRATED))


MIRRORS = tuple(_mirror(plane) for plane in ANYMAL_D.mirror_planes)


def demonstration(trot: Trot = Trot()) -> Clip:  # noqa: B008 - immutable
    """The built-in clip: trotting straight ahead on flat ground, at 0.3 to 1.5 m/s."""
    return generate_trot(
        _MODEL,
        root="base",
        joint_names=ANYMAL_D.joint_names,
        default_joint_pos=ANYMAL_D.default_joint_pos,
        joint_velocity_limits=ANYMAL_D.joint_velocity_limits,
        feet=ANYMAL_D.feet,
        trot=trot,
    )


_FORWARD = VelocityCommand(
    lin_vel_x=(-3.0, 3.0),
    lin_vel_y=(0.0, 0.0),
    ang_vel_z=(-1.0, 1.0),
    standing_share=0.02,  # Isaac Lab
    resample_seconds=10.0,  # Isaac Lab
)
_LATERAL = replace(_FORWARD, lin_vel_x=(0.0, 0.0), lin_vel_y=(-2.0, 2.0))


def _walking(gait_command: tuple[float, float, float], across: tuple[str, Tensor], kept_by: str) -> Walking:
    """``kept_by``: the mirror that asks for the same walk."""
    return Walking(
        gait_command=gait_command,
        across=across,
        up=("omega_z", torch.linspace(*_FORWARD.ang_vel_z, 9)),
        velocity=lambda s: torch.cat([s.lin_vel[:, :2], s.ang_vel[:, 2:]], dim=1),
        clip_velocity=lambda clip: torch.cat(
            [_in_base_frame(clip, "body_lin_vel_w")[:, :2], _in_base_frame(clip, "body_ang_vel_w")[:, 2:]], dim=1
        ),
        torque=lambda s: s.torque,
        joint_vel=lambda s: s.joint_vel,
        contact=lambda s: s.foot_contact,
        feet=tuple(foot.removesuffix("_FOOT") for foot in ANYMAL_D.feet),
        diagonal_pairs=(("LF", "RH"), ("RF", "LH")),
        front_pair=("LF", "RF"),
        mirrors=tuple(mirror.action for mirror in MIRRORS if mirror.name == kept_by),
    )


def _growth(command: VelocityCommand) -> Growth:
    """From ± 0.8 m/s on."""
    fastest = max(command.lin_vel_x[1], command.lin_vel_y[1])
    return Growth(start=0.8 / fastest, following=_tracks_velocity, standing=_stands_still, enough=0.2, seconds=40.0)


ANYMAL_FORWARD = Task(
    name="Anymal-Forward",
    summary="ANYmal D: walk forward and back at up to 3 m/s; the demonstration trots forward at up to 1.5 m/s",
    robot=ANYMAL_D,
    timestep=TIMESTEP,
    decimation=DECIMATION,
    episode_seconds=20.0,  # Isaac Lab
    command=_FORWARD,
    sense=sense,
    reset=reset,
    observations=OBSERVATIONS,
    rewards=REWARDS,
    demonstrated=DEMONSTRATED,
    style=AdversarialStyle(),
    demonstration=demonstration,
    other_demonstrations={"limping": lambda: demonstration(Trot(asymmetry=1.0))},
    tracking=lambda s: (2.0 * _tracks_velocity(s) + _tracks_turning(s)) / 3.0,
    trajectory=lambda s: s.joint_pos,
    clip_trajectory=lambda clip: torch.from_numpy(clip.joint_pos),
    imitation_scale=ETA_LOCOMOTION,
    imitation_span=(2.0, 4.0),
    walking=_walking((2.0, 0.0, 0.0), ("v_x", torch.linspace(*_FORWARD.lin_vel_x, 13)), kept_by="left_right"),
    mirrors=MIRRORS,
    memory=AIR_TIME,
    growth=_growth(_FORWARD),
    pushes=Pushes(interval=(10.0, 15.0), speed=0.5),  # Isaac Lab
    randomise=randomise,
    terminated=lambda s: s.base_contact,
)

ANYMAL_LATERAL = replace(
    ANYMAL_FORWARD,
    name="Anymal-Lateral",
    summary="ANYmal D: walk sideways at up to 2 m/s; the demonstration only ever trots forward",
    command=_LATERAL,
    growth=_growth(_LATERAL),
    walking=_walking((0.0, 1.0, 0.0), ("v_y", torch.linspace(*_LATERAL.lin_vel_y, 13)), kept_by="front_back"),
)

PRESETS = {
    "laptop": Preset(
        num_envs=1024,
        max_iterations=410,
        hidden_dims=(128, 128),
        desired_kl=0.02,
        entropy_coef=0.0,
        style=StyleConfig(source="adversarial", hidden_dims=(256, 128), updates=4, batch_size=512),
        # Why so much margin, and style in the warm-up: docs/departures.md, 41 and 42.
        constraint=ConstraintConfig(
            margin=0.18, warmup_style=0.2, warmup_min_iterations=240, warmup_max_iterations=270
        ),
        exploration=ExplorationConfig(std_floor=0.08, growing_entropy_coef=0.01),
    ),
    "paper": Preset(
        num_envs=4096,
        max_iterations=20000,
        hidden_dims=(512, 256, 128),
        style=StyleConfig(source="adversarial"),
        constraint=ConstraintConfig(warmup_min_iterations=1000, warmup_max_iterations=10000, plateau_window=500),
    ),
}
