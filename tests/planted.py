"""Clips with one thing wrong, and what is wrong with them: for whatever looks for faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import mujoco
import numpy as np

from consmimic.motions import Clip, kinematics
from consmimic.motions.forward import clip_positions, floating_base
from consmimic.motions.replay import Replay
from consmimic.robots import Robot


def moved(clip: Clip, offset: np.ndarray) -> Clip:
    """Every body moved alike, (T, 3) or (3,), with velocities to match."""
    positions = clip.body_pos_w + np.broadcast_to(offset, (len(clip), 3))[:, None]
    return replace(clip, body_pos_w=positions, body_lin_vel_w=kinematics.linear_velocity(positions, clip.fps))


def slipping(clip: Clip) -> Clip:
    """All of it carried sideways at 0.2 m/s."""
    drift = np.zeros((len(clip), 3))
    drift[:, 1] = 0.2 * np.arange(len(clip)) / clip.fps
    return moved(clip, drift)


def sunk(clip: Clip) -> Clip:
    return moved(clip, np.array([0.0, 0.0, -0.03]))


def floating(clip: Clip) -> Clip:
    return moved(clip, np.array([0.0, 0.0, 0.08]))


def xyzw(clip: Clip) -> Clip:
    """Written in the other order."""
    return replace(clip, body_quat_w=np.roll(clip.body_quat_w, -1, axis=-1))


def half_speed(clip: Clip) -> Clip:
    """Said to have half as many frames a second."""
    return replace(clip, fps=clip.fps / 2)


def slightly_slow(clip: Clip) -> Clip:
    """60 fps taken for 50, or 30 for 25."""
    return replace(clip, fps=clip.fps / 1.2)


def spiked(clip: Clip) -> Clip:
    joints = clip.joint_pos.copy()
    joints[len(clip) // 2, 1] += 0.3
    return replace(clip, joint_pos=joints, joint_vel=kinematics.linear_velocity(joints, clip.fps))


def seamed(clip: Clip) -> Clip:
    """From the middle on another motion: 0.25 rad away."""
    joints = clip.joint_pos.copy()
    joints[len(clip) // 2 :, 2] += 0.25
    return replace(clip, joint_pos=joints, joint_vel=kinematics.linear_velocity(joints, clip.fps))


def noisy(clip: Clip) -> Clip:
    joints = clip.joint_pos + np.random.default_rng(0).normal(scale=0.08, size=clip.joint_pos.shape)
    return replace(clip, joint_pos=joints, joint_vel=kinematics.linear_velocity(joints, clip.fps))


def beyond_limits(robot: Robot) -> Callable[[Clip], Clip]:
    def planted(clip: Clip) -> Clip:
        joints = clip.joint_pos.copy()
        highest = float(robot.model(visuals=False).joint(robot.joint_names[0]).range[1])
        joints[:, 0] += highest + 0.05 - joints[:, 0].max()
        return replace(clip, joint_pos=joints)

    return planted


def swapped_legs(clip: Clip) -> Clip:
    """The joints of left and right have each other's names, the bodies their own."""
    sides = {"left": "right", "LF": "RF", "LH": "RH"}
    sides |= {right: left for left, right in sides.items()}
    names = tuple("_".join(sides.get(word, word) for word in name.split("_")) for name in clip.joint_names)
    return replace(clip, joint_names=names)


def base_only(clip: Clip) -> Clip:
    """As formats have it that know the root and the joints."""
    fields = ("body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w")
    return replace(clip, body_names=clip.body_names[:1], **{name: getattr(clip, name)[:, :1] for name in fields})


def turned(clip: Clip, angle: float) -> Clip:
    """Walking another way: everything turned about z."""
    c, s = np.cos(angle), np.sin(angle)
    about = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    quaternion = np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
    quats = clip.body_quat_w.copy()
    for index in np.ndindex(quats.shape[:-1]):
        mujoco.mju_mulQuat(quats[index], quaternion, clip.body_quat_w[index])
    vectors = {n: getattr(clip, n) @ about.T for n in ("body_pos_w", "body_lin_vel_w", "body_ang_vel_w")}
    return replace(clip, body_quat_w=quats, **vectors)


def with_all_bodies(clip: Clip, robot: Robot) -> Clip:
    """Every body of the model, by forward kinematics."""
    model = robot.model(visuals=False)
    replay = Replay.of(model, clip_positions(model, clip, robot.joint_names), clip.fps)
    assert floating_base(model) in (None, "base")
    return replace(
        clip,
        body_names=tuple(model.body(i).name for i in range(1, model.nbody)),
        body_pos_w=replay.body_pos[:, 1:],
        body_quat_w=replay.body_quat[:, 1:],
        body_lin_vel_w=kinematics.linear_velocity(replay.body_pos[:, 1:], clip.fps),
        body_ang_vel_w=kinematics.angular_velocity(replay.body_quat[:, 1:], clip.fps),
    )
