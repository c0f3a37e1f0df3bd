"""Filmstrips and figures of docs/motions.md: the built-in motions, and real clips that were retargeted.

    python scripts/motion_gallery.py [FOLDER OF REAL CLIPS]

Writes pictures to docs/images and prints the table of how well feet, joints and arms do.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from consmimic.evaluation.coverage import coverage
from consmimic.evaluation.coverage_figure import coverage_figure
from consmimic.evaluation.filmstrip import film
from consmimic.motions import Clip
from consmimic.motions.checks.case import Case
from consmimic.motions.checks.ground import slips
from consmimic.motions.gait import cycle_frames
from consmimic.motions.limits import beyond_range
from consmimic.motions.retarget import Retargeting, correspondence_of, read_source, retarget
from consmimic.motions.trot import Trot, generate_trot
from consmimic.motions.walk import Walk, generate_walk
from consmimic.robots import ROBOTS, Robot
from consmimic.tasks import task_entry

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH = 1200  # pixels
REAL = {
    "deepmimic-walk-gr1": ("deepmimic_mit/humanoid3d_walk.txt", "gr1"),
    "isaaclab-walk-gr1": ("isaaclab_bsd3/humanoid_walk.npz", "gr1"),
    "laikago-trot-anymal": ("pybullet_zlib/laikago_walk.txt", "anymal_d"),
}


def about(robot: Robot) -> dict[str, object]:
    return {
        "model": robot.model(visuals=False),
        "joint_names": robot.joint_names,
        "default_joint_pos": robot.default_joint_pos,
        "joint_velocity_limits": robot.joint_velocity_limits,
    }


def generated() -> dict[str, tuple[Clip, Robot]]:
    gr1, anymal = ROBOTS["gr1"], ROBOTS["anymal_d"]
    walk = generate_walk(**about(gr1), root="base_link", feet=gr1.feet, walk=Walk(speed=1.2, strides=3))
    trot = generate_trot(**about(anymal), root="base", feet=anymal.feet, trot=Trot())
    return {"generated-walk-gr1": (walk, gr1), "generated-trot-anymal": (trot, anymal)}


def retargeted(folder: Path) -> dict[str, tuple[Clip, Robot]]:
    clips = {}
    for name, (file, robot_name) in REAL.items():
        robot = ROBOTS[robot_name]
        source, _ = read_source(folder / file)
        pairs, settings = correspondence_of(robot_name), Retargeting()
        done = retarget(source, robot=robot_name, pairs=pairs, settings=settings, **about(robot))
        clips[name] = (done.clip, robot)
    return clips


def one_cycle(clip: Clip) -> tuple[float, float]:
    """When it begins and ends, in the middle of the clip, in s."""
    cycle = cycle_frames(clip.joint_pos, clip.fps) or len(clip) - 1
    start = (len(clip) - 1 - cycle) // 2
    return start / clip.fps, (start + cycle) / clip.fps


def row(clip: Clip, robot: Robot) -> tuple[str, ...]:
    model = robot.model(visuals=False)
    case = Case.of(clip, robot, robot.left_right(model))
    stances = slips(case)
    lowest = 1000 * case.replay.heights(case.feet).min()
    beyond = np.degrees(max(0.0, float(beyond_range(model, robot.joint_names, clip.joint_pos).max())))
    fastest = float((np.abs(clip.joint_vel) / robot.joint_velocity_limits).max())
    return (
        robot.name,
        f"{np.linalg.norm(case.replay.body_pos[-1, 1, :2] - case.replay.body_pos[0, 1, :2]) / clip.seconds:.2f}",
        f"{1000 * np.concatenate(stances).mean():.1f}",
        f"{max(0.0, -lowest):.2f}",
        f"{beyond:.1f}",
        f"{fastest:.2f}",
        *counter_phase(clip),
    )


def counter_phase(clip: Clip) -> tuple[str, str]:
    """Correlation of the hips' pitch, and of each hip with its shoulder, of the less clear side."""
    if "left_hip_pitch_joint" not in clip.joint_names:
        return "–", "–"

    def joint(name: str) -> np.ndarray:
        return clip.joint_pos[:, clip.joint(f"{name}_pitch_joint")]

    hips = np.corrcoef(joint("left_hip"), joint("right_hip"))[0, 1]
    arms = [np.corrcoef(joint(f"{side}_hip"), joint(f"{side}_shoulder"))[0, 1] for side in ("left", "right")]
    return f"{hips:.2f}", f"{max(arms):.2f}"


def save(image: np.ndarray, path: Path) -> None:
    """Small: 96 colours are enough for a robot."""
    height = round(image.shape[0] * WIDTH / image.shape[1])
    small = Image.fromarray(image).resize((WIDTH, height), Image.Resampling.LANCZOS)
    small.quantize(96, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    clips = generated() | (retargeted(Path(sys.argv[1])) if len(sys.argv) > 1 else {})
    columns = ("clip", "robot", "m/s", "slip mm/s", "under the floor mm", "beyond limits °", "speed / limit")
    columns += ("hip · hip", "hip · shoulder")
    print(f"| {' | '.join(columns)} |\n|---|---|{'--:|' * (len(columns) - 2)}")
    for name, (clip, robot) in clips.items():
        strip = film(robot.model(), clip, 8, span=one_cycle(clip))
        save(np.concatenate(strip.images, axis=1), IMAGES / f"{name}.png")
        print(f"| {name} | {' | '.join(row(clip, robot))} |")
    lateral = task_entry("Anymal-Lateral").task
    coverage_figure(coverage(lateral, [lateral.demonstration()])).savefig(
        IMAGES / "coverage-anymal-lateral.png", dpi=110
    )


if __name__ == "__main__":
    main()
