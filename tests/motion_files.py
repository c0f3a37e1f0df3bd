"""Motion files of every dialect, written here from a motion that is known: what their readers are held against.

The writers know nothing of the readers: orientations go through rotation matrices and MuJoCo, not through ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np

from consmimic.motions import Clip, forward
from consmimic.motions.dialects import ReadOptions
from consmimic.robots import ROBOTS, Robot

FPS = 50.0
ANYMAL = ROBOTS["anymal_d"]
A1_TO_ANYMAL = {
    f"{theirs}_{joint}": f"{ours}_{name}"
    for theirs, ours in (("FR", "RF"), ("FL", "LF"), ("RR", "RH"), ("RL", "LH"))
    for joint, name in (("hip_joint", "HAA"), ("thigh_joint", "HFE"), ("calf_joint", "KFE"))
}
LAIKAGO_TO_ANYMAL = {
    name.replace("hip_joint", "abduction").replace("thigh_joint", "hip").replace("calf_joint", "knee"): ours
    for name, ours in A1_TO_ANYMAL.items()
}


def turned(*axes_and_angles: tuple[str, np.ndarray]) -> np.ndarray:
    """Turns one after the other, each about an axis of the frame that those before have turned; wxyz."""  # → (T, 4)
    frames = len(axes_and_angles[0][1])
    whole = np.tile([1.0, 0.0, 0.0, 0.0], (frames, 1))
    for axis, angles in axes_and_angles:
        for frame, angle in enumerate(angles):
            turn = np.zeros(4)
            mujoco.mju_axisAngle2Quat(turn, np.eye(3)["xyz".index(axis)], angle)
            mujoco.mju_mulQuat(whole[frame], whole[frame].copy(), turn)
    return whole


def matrices(quaternions: np.ndarray) -> np.ndarray:
    """(T, 4) → (T, 3, 3)."""
    found = np.empty((len(quaternions), 9))
    for matrix, quaternion in zip(found, quaternions, strict=True):
        mujoco.mju_quat2Mat(matrix, quaternion)
    return found.reshape(-1, 3, 3)


def quaternions(matrices: np.ndarray) -> np.ndarray:
    """(T, 3, 3) → (T, 4), wxyz."""
    found = np.empty((len(matrices), 4))
    for quaternion, matrix in zip(found, matrices, strict=True):
        mujoco.mju_mat2Quat(quaternion, matrix.ravel())
    return found


@dataclass(frozen=True, eq=False)
class Angles:
    """The base's attitude, each angle (T,), about y, then x, then z of the turned frame."""

    tilt: np.ndarray
    list: np.ndarray
    rotation: np.ndarray

    @property
    def quaternions(self) -> np.ndarray:
        return turned(("y", self.tilt), ("x", self.list), ("z", self.rotation))


def angles(frames: int) -> Angles:
    t = np.arange(frames) / FPS
    return Angles(0.15 * np.sin(3 * t), -0.2 + 0.1 * np.cos(4 * t), 0.4 + 0.8 * t)


def known(robot: Robot = ANYMAL, frames: int = 40) -> Clip:
    """A motion of which every number is different: joints about the default pose, a base that goes ahead on a curve."""
    model = robot.model(visuals=False)
    t = np.arange(frames)[:, None] / FPS
    joints = len(robot.joint_names)
    phase = np.arange(joints)
    joint_pos = np.array(robot.default_joint_pos) + 0.2 * np.sin(2.0 * t + phase) + 0.001 * phase
    root = forward.root_of(model, robot.joint_names)
    heading = angles(frames).rotation
    way = np.cumsum(np.stack([np.cos(heading), np.sin(heading)], axis=1), axis=0) / FPS
    height = (robot.root_height or 0.0) + 0.02 * np.sin(5.0 * t)
    return forward.posed_clip(
        model,
        fps=FPS,
        joint_names=robot.joint_names,
        joint_pos=joint_pos,
        base_pos=np.concatenate([way, height], axis=1),
        base_quat=angles(frames).quaternions,
        bodies=forward.bodies_of(model, root),
        source="known",
    )


def base(clip: Clip, field: str) -> np.ndarray:
    return getattr(clip, f"body_{field}_w")[:, 0]


def shuffled(clip: Clip) -> Clip:
    """With joints in another order."""
    order = np.random.default_rng(3).permutation(len(clip.joint_names))
    names = tuple(clip.joint_names[column] for column in order)
    return replace(clip.with_joints(names), body_names=clip.body_names)


@dataclass(frozen=True, eq=False)
class Written:
    """A file of a dialect, and what its reader needs to be told."""

    path: Path
    options: ReadOptions = ReadOptions()  # noqa: RUF009 - immutable
    mapping: dict[str, str] | None = None


def mjlab_npz(folder: Path, clip: Clip) -> Written:
    clip = shuffled(clip)
    path = folder / "mjlab.npz"
    names = ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w")
    np.savez(path, fps=[clip.fps], **{name: getattr(clip, name).astype(np.float32) for name in names})
    return Written(path, ReadOptions(joint_names=clip.joint_names))


def own_npz(folder: Path, clip: Clip) -> Written:
    shuffled(clip).save(folder / "own.npz")
    return Written(folder / "own.npz")


def isaaclab_npz(folder: Path, clip: Clip) -> Written:
    clip = shuffled(clip)
    path = folder / "isaaclab.npz"
    np.savez(
        path,
        fps=int(clip.fps),
        dof_names=np.array(clip.joint_names),
        body_names=np.array(clip.body_names),
        dof_positions=clip.joint_pos.astype(np.float32),
        dof_velocities=clip.joint_vel.astype(np.float32),
        body_positions=clip.body_pos_w.astype(np.float32),
        body_rotations=clip.body_quat_w.astype(np.float32),
        body_linear_velocities=clip.body_lin_vel_w.astype(np.float32),
        body_angular_velocities=clip.body_ang_vel_w.astype(np.float32),
    )
    return Written(path)


def loco_mujoco_npz(folder: Path, clip: Clip) -> Written:
    """Velocities are there to tell the frame rate."""
    clip, attitude = shuffled(clip), angles(len(clip))
    x, y, z = base(clip, "pos").T
    values = {"pelvis_tx": x, "pelvis_tz": y, "pelvis_ty": z}
    values |= {"pelvis_tilt": attitude.tilt, "pelvis_list": attitude.list, "pelvis_rotation": attitude.rotation}
    values |= dict(zip(clip.joint_names, clip.joint_pos.T, strict=True))
    velocities = {f"dq_{name}": np.gradient(value, 1.0 / clip.fps) for name, value in values.items()}
    path = folder / "loco.npz"
    np.savez(path, **{f"q_{name}": value for name, value in values.items()}, **velocities)
    return Written(path)


def csv(folder: Path, clip: Clip) -> Written:
    clip = shuffled(clip)
    path = folder / "table.csv"
    table = np.concatenate([base(clip, "pos"), base(clip, "quat")[:, [1, 2, 3, 0]], clip.joint_pos], axis=1)
    np.savetxt(path, table, delimiter=",", fmt="%.9f")
    return Written(path, ReadOptions(fps=clip.fps, joint_names=clip.joint_names))


def json_frames(path: Path, frames: np.ndarray, **header: object) -> None:
    rows = ",\n".join("[" + ", ".join(f"{number:.9f}" for number in row) + "]" for row in frames)
    about = "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in header.items())
    path.write_text("{\n" + about + '\n"Frames":\n[\n' + rows + "\n]\n}\n")


def _legs(clip: Clip, names: dict[str, str], values: str) -> np.ndarray:
    """Of the joints in the order FR, FL, RR, RL that these texts have."""
    return getattr(clip, values)[:, [clip.joint(ours) for ours in names.values()]]


def amp_for_hardware_text(folder: Path, clip: Clip) -> Written:
    own = matrices(base(clip, "quat")).transpose(0, 2, 1)
    feet = [clip.body(foot) for foot in ("RF_FOOT", "LF_FOOT", "RH_FOOT", "LH_FOOT")]
    toes = np.einsum("tij,tfj->tfi", own, clip.body_pos_w[:, feet] - base(clip, "pos")[:, None]).reshape(len(clip), 12)
    frames = [
        base(clip, "pos"),
        base(clip, "quat")[:, [1, 2, 3, 0]],
        _legs(clip, A1_TO_ANYMAL, "joint_pos"),
        toes,
        np.einsum("tij,tj->ti", own, base(clip, "lin_vel")),
        np.einsum("tij,tj->ti", own, base(clip, "ang_vel")),
        _legs(clip, A1_TO_ANYMAL, "joint_vel"),
        np.gradient(toes, 1.0 / clip.fps, axis=0),
    ]
    path = folder / "amp.txt"
    json_frames(path, np.concatenate(frames, axis=1), LoopMode="Wrap", FrameDuration=1.0 / clip.fps, MotionWeight=0.5)
    return Written(path, mapping=A1_TO_ANYMAL)


def motion_imitation_text(folder: Path, clip: Clip) -> Written:
    """The Laikago's base frame: x to the left, y up, z ahead."""
    ahead, left, up = np.moveaxis(matrices(base(clip, "quat")), -1, 0)
    laikago = quaternions(np.stack([left, up, ahead], axis=-1))
    frames = [base(clip, "pos"), laikago[:, [1, 2, 3, 0]], _legs(clip, LAIKAGO_TO_ANYMAL, "joint_pos")]
    path = folder / "laikago.txt"
    json_frames(path, np.concatenate(frames, axis=1), LoopMode="Wrap", FrameDuration=1.0 / clip.fps)
    return Written(path, mapping=LAIKAGO_TO_ANYMAL)


def amp_rsl_rl_npy(folder: Path, clip: Clip) -> Written:
    clip = shuffled(clip)
    content = {
        "joints_list": list(clip.joint_names),
        "joint_positions": list(clip.joint_pos),
        "root_position": list(base(clip, "pos")),
        "root_quaternion": list(base(clip, "quat")[:, [1, 2, 3, 0]]),
        "fps": clip.fps,
    }
    path = folder / "amp_rsl_rl.npy"
    np.save(path, content, allow_pickle=True)  # type: ignore[arg-type]
    return Written(path, ReadOptions(allow_pickle=True))


ROBOT_DIALECTS: dict[str, Callable[[Path, Clip], Written]] = {
    "mjlab": mjlab_npz,
    "mjlab with names": own_npz,
    "isaaclab": isaaclab_npz,
    "loco-mujoco": loco_mujoco_npz,
    "csv": csv,
    "amp_for_hardware": amp_for_hardware_text,
    "motion_imitation": motion_imitation_text,
    "amp-rsl-rl": amp_rsl_rl_npy,
}
"""Dialects of robots' motions, which a converted file of ANYmal's joints shows to be read rightly."""


def deepmimic_text(folder: Path, root_pos: np.ndarray, root: np.ndarray, balls: np.ndarray, hinges: np.ndarray) -> Path:
    """From a world and bodies with z up. balls: (T, 8, 4), hinges: (T, 4), about the axis to the left."""
    to_y_up = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])

    def with_y_up(rotations: np.ndarray) -> np.ndarray:
        return quaternions(to_y_up @ matrices(rotations) @ to_y_up.T)

    chest, neck, r_hip, r_ankle, r_shoulder, l_hip, l_ankle, l_shoulder = (
        with_y_up(balls[:, number]) for number in range(8)
    )
    r_knee, r_elbow, l_knee, l_elbow = (-hinges[:, number : number + 1] for number in range(4))
    durations = np.full((len(root_pos), 1), 1.0 / FPS)
    right, left = (r_hip, r_knee, r_ankle, r_shoulder, r_elbow), (l_hip, l_knee, l_ankle, l_shoulder, l_elbow)
    frames = [durations, root_pos @ to_y_up.T, with_y_up(root), chest, neck, *right, *left]
    path = folder / "human.txt"
    json_frames(path, np.concatenate(frames, axis=1), Loop="wrap")
    return path


def human(frames: int = 30) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A skeleton's motion of which every number is different: what :func:`deepmimic_text` writes."""
    t = np.arange(frames) / FPS
    root_pos = np.stack([t, 0.1 * np.sin(t), 0.9 + 0.02 * np.sin(6 * t)], axis=1)
    balls = [
        turned(("x", 0.1 * n * np.sin(t + n)), ("y", 0.3 * np.cos(3 * t + n)), ("z", 0.05 * n * t)) for n in range(8)
    ]
    hinges = np.stack([0.5 + 0.1 * n + 0.3 * np.sin(4 * t + n) for n in range(4)], axis=1)
    return root_pos, angles(frames).quaternions, np.stack(balls, axis=1), hinges


def lafan1_csv(folder: Path, joints: int, frames: int = 30) -> Written:
    """Retargeted LAFAN1 for a robot with so many joints; the columns' angles are their numbers, in hundredths."""
    pos, quat, _, _ = human(frames)
    table = np.concatenate([pos, quat[:, [1, 2, 3, 0]], np.tile(0.01 * np.arange(joints), (frames, 1))], axis=1)
    path = folder / f"lafan_{joints}.csv"
    np.savetxt(path, table, delimiter=",", fmt="%.6f")
    return Written(path)


def isaaclab_human(folder: Path, frames: int = 30) -> Path:
    """Isaac Lab's humanoid, stiff as a puppet: its limbs are carried along by the pelvis of :func:`human`."""
    heights = {"thigh": -0.04, "shin": -0.46, "foot": -0.87, "upper_arm": 0.48, "lower_arm": 0.2, "hand": -0.05}
    places = {"pelvis": (0.0, 0.0, 0.0), "torso": (0.0, 0.0, 0.24)} | {
        f"{side}_{limb}": (0.0, sign * (0.1 if height < -0.03 and limb != "hand" else 0.2), height)
        for side, sign in (("left", 1.0), ("right", -1.0))
        for limb, height in heights.items()
    }
    root_pos, root, _, _ = human(frames)
    carried = np.einsum("tij,bj->tbi", matrices(root), np.array(list(places.values())))
    path = folder / "isaaclab_human.npz"
    np.savez(
        path,
        fps=int(FPS),
        dof_names=np.array(["left_knee", "right_knee"]),
        dof_positions=np.zeros((frames, 2), dtype=np.float32),
        body_names=np.array(list(places)),
        body_positions=(root_pos[:, None] + carried).astype(np.float32),
        body_rotations=np.repeat(root[:, None], len(places), axis=1).astype(np.float32),
    )
    return path
