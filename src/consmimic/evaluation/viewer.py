"""A clip in MuJoCo's own viewers: its window where there is a screen, its web page where there is none."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Literal

import mujoco
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.motions import Clip
from consmimic.motions.forward import clip_positions
from consmimic.robots import Robot

Kind = Literal["window", "web"]


def has_screen() -> bool:
    """Whether a window could be opened."""
    return not sys.platform.startswith("linux") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def play(clip: Clip, robot: Robot, kind: Kind) -> None:
    """Round and round in real time, until the viewer is closed."""
    model = robot.model()
    data = mujoco.MjData(model)
    qpos = clip_positions(model, clip, robot.joint_names)
    data.qpos[:] = qpos[0]
    mujoco.mj_forward(model, data)
    if kind == "window":
        from mujoco import viewer  # needs a window system

        with viewer.launch_passive(model, data) as window:
            _loop(model, data, qpos, clip.fps, window.sync, window.is_running)
        return
    try:
        from mujoco.studio import launch_web, viewer_protocol
    except ImportError as error:
        raise UserError(f"the web viewer needs MuJoCo >= 4.0 with mujoco.studio: {error}") from None
    with launch_web.launch(viewer_protocol.ViewerConfig(title=f"{robot.name}: {clip.source}", gfx="web")) as page:
        page.set_model(model, data=data)
        _loop(model, data, qpos, clip.fps, page.sync, page.is_running)


def _loop(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    qpos: NDArray,
    fps: float,
    sync: Callable[[], object],
    running: Callable[[], bool],
) -> None:
    started = time.monotonic()
    while running():
        frame = int((time.monotonic() - started) * fps) % len(qpos)
        data.qpos[:] = qpos[frame]
        data.time = frame / fps
        mujoco.mj_forward(model, data)
        sync()
        time.sleep(max(0.0, 1.0 / fps - 0.002))
