"""Human skeletons: DeepMimic's, from its joint rotations, and Isaac Lab's humanoid, whose file has the positions.

Points and orientations are named alike: {left,right}_{hip,knee,ankle,heel,toe,shoulder,elbow,hand}, and "torso",
"left_foot", "right_foot".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.motions import rotation
from consmimic.motions.dialects.recording import Recording, unit_quaternions
from consmimic.motions.retarget.source import SourceMotion, base_of

Array = NDArray[np.float64]

_SIDES = ("left", "right")

# DeepMimic's humanoid (github.com/xbpeng/DeepMimic, data/characters/humanoid3d.txt, MIT): where each joint is in its
# parent's frame while all stand straight; x forward, y left, z up. m.
_CHEST = (0.0, 0.0, 0.236151)
_HIP = (0.0, 0.084887, 0.0)  # on the left
_KNEE = (0.0, 0.0, -0.421546)
_ANKLE = (0.0, 0.0, -0.409870)
_SHOULDER = (-0.02405, 0.18311, 0.24350)  # on the left, from the chest
_ELBOW = (0.0, 0.0, -0.274788)
_WRIST = (0.0, 0.0, -0.258947)

# The foot of both humanoids is a box 0.177 long, 0.055 high, its centre 0.045 before and 0.0225 below the ankle.
_SOLE_HEIGHT = 0.05
_HEEL = (-0.0435, 0.0, -_SOLE_HEIGHT)
_TOE = (0.1335, 0.0, -_SOLE_HEIGHT)

_LEFT = np.array([0.0, 1.0, 0.0])
_ISAACLAB_BODIES = {
    "hip": "thigh",
    "knee": "shin",
    "ankle": "foot",
    "shoulder": "upper_arm",
    "elbow": "lower_arm",
    "hand": "hand",
}


def from_deepmimic(recording: Recording) -> SourceMotion:
    """The skeleton's points by forward kinematics."""
    root_pos, root = base_of(recording)
    balls = {name: recording.ball_quat[:, column] for column, name in enumerate(recording.ball_names)}
    names = recording.joint_names or ()
    hinges = {name: rotation.about(_LEFT, recording.joint_pos[:, column]) for column, name in enumerate(names)}
    points: dict[str, Array] = {}
    turns: dict[str, Array] = {}
    torso = rotation.product(root, balls["chest"])
    top = root_pos + rotation.rotate(root, np.array(_CHEST))
    for side, outward in (("right", -1.0), ("left", 1.0)):
        mirrored = np.array([1.0, outward, 1.0])
        thigh = rotation.product(root, balls[f"{side}_hip"])
        shank = rotation.product(thigh, hinges[f"{side}_knee"])
        upper_arm = rotation.product(torso, balls[f"{side}_shoulder"])
        forearm = rotation.product(upper_arm, hinges[f"{side}_elbow"])
        places = _chain(root_pos, [(root, _HIP * mirrored), (thigh, _KNEE), (shank, _ANKLE)])
        points |= dict(zip((f"{side}_hip", f"{side}_knee", f"{side}_ankle"), places, strict=True))
        places = _chain(top, [(torso, _SHOULDER * mirrored), (upper_arm, _ELBOW), (forearm, _WRIST)])
        points |= dict(zip((f"{side}_shoulder", f"{side}_elbow", f"{side}_hand"), places, strict=True))
        turns[f"{side}_foot"] = rotation.product(shank, balls[f"{side}_ankle"])
    turns["torso"] = torso
    return _human(recording, root_pos, root, points, turns)


def from_isaaclab(recording: Recording) -> SourceMotion:
    """The points are its bodies."""
    if recording.body_pos is None or recording.body_quat is None:
        raise UserError(f"motion '{recording.source}' is not as Isaac Lab has it: {'; '.join(recording.warnings)}")
    limbs = {f"{side}_{point}": f"{side}_{body}" for side in _SIDES for point, body in _ISAACLAB_BODIES.items()}
    absent = [body for body in ("pelvis", "torso", *limbs.values()) if body not in recording.body_names]
    if absent:
        has = ", ".join(recording.body_names)
        raise UserError(f"motion '{recording.source}' lacks body {', '.join(absent)}; it has {has}")
    rotations = unit_quaternions(recording.body_quat, f"motion '{recording.source}': a body's rotation")
    columns = {name: column for column, name in enumerate(recording.body_names)}
    positions = recording.body_pos.astype(np.float64)
    return _human(
        recording,
        positions[:, columns["pelvis"]],
        rotations[:, columns["pelvis"]],
        {point: positions[:, columns[body]] for point, body in limbs.items()},
        {name: rotations[:, columns[name]] for name in ("torso", "left_foot", "right_foot")},
    )


def _human(
    recording: Recording, root_pos: Array, root_quat: Array, points: dict[str, Array], turns: dict[str, Array]
) -> SourceMotion:
    stance = {}
    for side in _SIDES:
        ankle, foot = points[f"{side}_ankle"], turns[f"{side}_foot"]
        points[f"{side}_heel"] = ankle + rotation.rotate(foot, np.array(_HEEL))
        points[f"{side}_toe"] = ankle + rotation.rotate(foot, np.array(_TOE))
        hip, knee = points[f"{side}_hip"], points[f"{side}_knee"]
        leg = np.linalg.norm(knee - hip, axis=-1).mean() + np.linalg.norm(ankle - knee, axis=-1).mean()
        in_root = rotation.rotate(rotation.inverse(root_quat), hip - root_pos).mean(axis=0)
        stance[f"{side}_ankle"] = in_root - leg * rotation.UP  # legs straight down
    return SourceMotion(
        name=Path(recording.source).name,
        fps=recording.fps,
        root_pos=root_pos,
        root_quat=root_quat,
        points=points,
        turns=turns,
        feet={side: (f"{side}_heel", f"{side}_toe") for side in _SIDES},
        stance=stance,
        foot_height=_SOLE_HEIGHT,
        touch_height=0.012,  # these feet have no toe joint: the rigid toe leaves the ground while the real one pushes
        loops=recording.loops,
    )


def _chain(start: Array, links: list[tuple[Array, Array | tuple[float, ...]]]) -> list[Array]:
    places = []
    for turn, offset in links:
        start = start + rotation.rotate(turn, np.asarray(offset))
        places.append(start)
    return places
