"""Human skeletons: DeepMimic's, from its joint rotations, and Isaac Lab's humanoid, whose file has the positions.

Points and orientations are named alike: {left,right}_{hip,knee,ankle,heel,toe,shoulder,elbow,hand}, and "torso",
"left_foot", "right_foot".
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.motions.retarget import rotation
from consmimic.motions.retarget.source import SourceMotion

Array = NDArray[np.float64]

_SIDES = ("left", "right")

# DeepMimic's humanoid (github.com/xbpeng/DeepMimic, data/characters/humanoid3d.txt, MIT): where each joint is in its
# parent's frame while all stand straight, in the file's own axes: x forward, y up, z to the right. m.
_CHEST = (0.0, 0.236151, 0.0)
_HIP = (0.0, 0.0, 0.084887)  # on the right
_KNEE = (0.0, -0.421546, 0.0)
_ANKLE = (0.0, -0.409870, 0.0)
_SHOULDER = (-0.02405, 0.24350, 0.18311)  # on the right, from the chest
_ELBOW = (0.0, -0.274788, 0.0)
_WRIST = (0.0, -0.258947, 0.0)

# The foot of both humanoids is a box 0.177 long, 0.055 high, its centre 0.045 before and 0.0225 below the ankle.
_SOLE_HEIGHT = 0.05
_HEEL = (-0.0435, 0.0, -_SOLE_HEIGHT)
_TOE = (0.1335, 0.0, -_SOLE_HEIGHT)

DEEPMIMIC_COLUMNS = 44
_ISAACLAB_BODIES = {
    "hip": "thigh",
    "knee": "shin",
    "ankle": "foot",
    "shoulder": "upper_arm",
    "elbow": "lower_arm",
    "hand": "hand",
}


def read_deepmimic(path: Path) -> SourceMotion:
    """DeepMimic's text: JSON, 44 columns, y up."""
    document, frames = read_frames(path, (DEEPMIMIC_COLUMNS,))
    columns = iter(np.split(frames, np.cumsum([1, 3, 4, 4, 4, 4, 1, 4, 4, 1, 4, 1, 4, 4])[:], axis=1))
    seconds = next(columns)[:, 0]
    root_pos, root, chest, _neck = (next(columns) for _ in range(4))
    points: dict[str, Array] = {}
    turns: dict[str, Array] = {}
    root = unit(root, path)
    torso = rotation.product(root, unit(chest, path))
    hinge = np.array([0.0, 0.0, 1.0])
    for side in ("right", "left"):  # the file's order
        mirrored = np.array([1.0, 1.0, 1.0 if side == "right" else -1.0])
        hip, knee, ankle, shoulder, elbow = (next(columns) for _ in range(5))
        thigh = rotation.product(root, unit(hip, path))
        shank = rotation.product(thigh, rotation.about(hinge, knee[:, 0]))
        foot = rotation.product(shank, unit(ankle, path))
        upper_arm = rotation.product(torso, unit(shoulder, path))
        forearm = rotation.product(upper_arm, rotation.about(hinge, elbow[:, 0]))
        places = _chain(root_pos, [(root, _HIP * mirrored), (thigh, _KNEE), (shank, _ANKLE)])
        points |= dict(zip((f"{side}_hip", f"{side}_knee", f"{side}_ankle"), places, strict=True))
        top = root_pos + rotation.rotate(root, np.array(_CHEST))
        places = _chain(top, [(torso, _SHOULDER * mirrored), (upper_arm, _ELBOW), (forearm, _WRIST)])
        points |= dict(zip((f"{side}_shoulder", f"{side}_elbow", f"{side}_hand"), places, strict=True))
        turns[f"{side}_foot"] = foot
    turns["torso"] = torso
    return _human(
        path,
        fps=frame_rate(path, seconds),
        root_pos=_z_up(root_pos),
        root_quat=_z_up_turn(root),
        points={name: _z_up(place) for name, place in points.items()},
        turns={name: _z_up_turn(turn) for name, turn in turns.items()},
        loops=says_loop(document),
    )


def read_isaaclab(path: Path) -> SourceMotion:
    """Isaac Lab's humanoid npz: body positions and rotations by name, z up."""
    if not path.is_file():
        raise UserError(f"no motion at {path}")
    if not zipfile.is_zipfile(path):
        raise UserError(f"motion '{path}' is not an npz file, or only the beginning of one")
    needed = ("fps", "body_names", "body_positions", "body_rotations")
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name in needed if name not in file]
            if missing:
                raise UserError(f"motion '{path}' lacks {', '.join(missing)}; it has {', '.join(file.files)}")
            fps, names = float(file["fps"]), [str(name) for name in file["body_names"]]
            positions, rotations = (file[name].astype(np.float64) for name in needed[2:])
    except UserError:
        raise
    except Exception as error:  # a damaged file can raise anything
        raise UserError(f"motion '{path}' cannot be read as npz: {error}") from None
    absent = [body for body in ("pelvis", "torso", *_isaaclab_limbs().values()) if body not in names]
    if absent:
        raise UserError(f"motion '{path}' lacks body {', '.join(absent)}; it has {', '.join(names)}")
    for array, size in ((positions, 3), (rotations, 4)):
        if array.ndim != 3 or array.shape[1:] != (len(names), size):
            raise UserError(f"motion '{path}': an array of {len(names)} bodies has shape {array.shape}")
    rotations = unit(rotations, path)
    return _human(
        path,
        fps=fps,
        root_pos=positions[:, names.index("pelvis")],
        root_quat=rotations[:, names.index("pelvis")],
        points={point: positions[:, names.index(body)] for point, body in _isaaclab_limbs().items()},
        turns={name: rotations[:, names.index(name)] for name in ("torso", "left_foot", "right_foot")},
        loops=False,
    )


def read_frames(path: Path, widths: tuple[int, ...]) -> tuple[Mapping[str, object], Array]:
    """The JSON of a text motion and its table, of one of the widths."""
    try:
        document = json.loads(path.read_text())
        frames = np.array(document["Frames"], dtype=np.float64)
    except FileNotFoundError:
        raise UserError(f"no motion at {path}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(f"motion '{path}' is not JSON with a table 'Frames' of numbers") from None
    valid = " or ".join(map(str, widths))
    if frames.ndim != 2 or frames.shape[1] not in widths:
        raise UserError(f"motion '{path}' has a table of shape {frames.shape}; it needs {valid} columns")
    if not np.isfinite(frames).all():
        raise UserError(
            f"motion '{path}' is not finite (NaN or inf) in frame {np.argwhere(~np.isfinite(frames))[0][0]}"
        )
    return document, frames


def frame_rate(path: Path, seconds: Array) -> float:
    """From the durations of the frames; that of the last may be anything."""
    duration = float(np.median(seconds[:-1])) if len(seconds) > 1 else 0.0
    if not 1e-4 < duration < 10.0:
        raise UserError(f"motion '{path}': a frame lasts {duration:g} s; valid are 0.0001 to 10")
    return 1.0 / duration


def says_loop(document: Mapping[str, object]) -> bool:
    return str(document.get("Loop", document.get("LoopMode", ""))).lower() == "wrap"


def unit(quaternions: Array, path: Path) -> Array:
    norms = np.linalg.norm(quaternions, axis=-1, keepdims=True)
    if np.abs(norms - 1.0).max() > 0.05:
        frame = int(np.abs(norms - 1.0).reshape(len(norms), -1).max(axis=1).argmax())
        raise UserError(f"motion '{path}': what should be a unit quaternion is not, in frame {frame}")
    return quaternions / norms


def _human(
    path: Path,
    *,
    fps: float,
    root_pos: Array,
    root_quat: Array,
    points: dict[str, Array],
    turns: dict[str, Array],
    loops: bool,
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
        name=path.name,
        fps=fps,
        root_pos=root_pos,
        root_quat=root_quat,
        points=points,
        turns=turns,
        feet={side: (f"{side}_heel", f"{side}_toe") for side in _SIDES},
        stance=stance,
        foot_height=_SOLE_HEIGHT,
        touch_height=0.012,  # these feet have no toe joint: the rigid toe leaves the ground while the real one pushes
        loops=loops,
    )


def _chain(start: Array, links: list[tuple[Array, Array | tuple[float, ...]]]) -> list[Array]:
    places = []
    for turn, offset in links:
        start = start + rotation.rotate(turn, np.asarray(offset))
        places.append(start)
    return places


def _z_up(vector: Array) -> Array:
    x, y, z = np.moveaxis(vector, -1, 0)
    return np.stack([x, -z, y], axis=-1)


def _z_up_turn(quaternion: Array) -> Array:
    return np.concatenate([quaternion[..., :1], _z_up(quaternion[..., 1:])], axis=-1)


def _isaaclab_limbs() -> dict[str, str]:
    return {f"{side}_{point}": f"{side}_{body}" for side in _SIDES for point, body in _ISAACLAB_BODIES.items()}
