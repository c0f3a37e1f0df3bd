"""The real clips beside the repository, where they are there, and what retargeting makes of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from consmimic.motions.retarget import Retargeted, Retargeting, SourceMotion, correspondence_of, read_source, retarget
from consmimic.robots import ROBOTS

FOLDER = Path(__file__).parents[2] / "shared" / "motions"
FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file()) if FOLDER.is_dir() else []
real = pytest.mark.skipif(not FILES, reason="the folder of real clips is not there")

MODELS = {name: ROBOTS[name].model(visuals=False) for name in ("anymal_d", "gr1")}
HUMANS = ("deepmimic_mit/humanoid3d_walk.txt", "isaaclab_bsd3/humanoid_walk.npz")
DOGS = ("pybullet_zlib/laikago_walk.txt",)


def onto(robot: str, source: SourceMotion, **settings) -> Retargeted:
    target = ROBOTS[robot]
    return retarget(
        source,
        robot=robot,
        model=MODELS[robot],
        pairs=correspondence_of(robot),
        joint_names=target.joint_names,
        default_joint_pos=target.default_joint_pos,
        joint_velocity_limits=settings.pop("joint_velocity_limits", target.joint_velocity_limits),
        settings=Retargeting(**settings),
    )


@cache
def retargeted(name: str, robot: str) -> Retargeted:
    return onto(robot, read_source(FOLDER / name)[0])
