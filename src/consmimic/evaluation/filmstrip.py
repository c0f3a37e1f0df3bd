"""A clip as a row of pictures: MuJoCo's own where it can draw, stick figures where no graphics library works."""

# MuJoCo ships no type stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import mujoco
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from consmimic.errors import UserError
from consmimic.evaluation.figures import FAINT, INK, STYLE
from consmimic.motions import Clip, rotation
from consmimic.motions.forward import base_qpos, clip_positions, floating_base

Array = NDArray[np.float64]
Image = NDArray[np.uint8]  # (H, W, 3)

PIXELS = 340  # height of a picture
AZIMUTH, ELEVATION = 125.0, -14.0  # degrees; of the camera, against where the robot heads
INCHES = 1.15  # width of a picture
PLACED: dict[Any, Any] = {**STYLE, "figure.constrained_layout.use": False}
MARGIN = 0.1  # m about the middles of the robot's shapes


@dataclass(frozen=True, eq=False)
class Filmstrip:
    """Pictures of some frames of a clip."""

    images: Sequence[Image]
    frames: Sequence[int]
    fps: float
    without_graphics: str | None
    """Why these are stick figures; None where MuJoCo drew."""

    @property
    def figure(self) -> Figure:
        """The pictures side by side, at most eight in a row, with their times."""
        columns = min(len(self.images), 8)
        rows = -(-len(self.images) // columns)
        pixels = self.images[0].shape
        height = INCHES * pixels[0] / pixels[1]
        with mpl.rc_context(PLACED):
            figure = Figure(figsize=(INCHES * columns, rows * (height + 0.18)))
            axes = figure.subplots(rows, columns, squeeze=False)
            figure.subplots_adjust(0, 0, 1, 1 - 0.16 / (rows * (height + 0.18)), wspace=0.02, hspace=0.16)
            for ax in axes.flat:
                ax.set_axis_off()
            for ax, image, frame in zip(axes.flat, self.images, self.frames, strict=False):
                ax.imshow(image, interpolation="lanczos")
                ax.set_title(f"{frame / self.fps:.2f} s", fontsize=6.5, pad=2, color=INK)
        return figure


def filmstrip(model: mujoco.MjModel, clip: Clip, frames: int = 8, *, dpi: int = 200) -> Image:
    """The pictures side by side as one; see :func:`film` for more."""
    canvas = FigureCanvasAgg(film(model, clip, frames).figure)
    canvas.figure.set_dpi(dpi)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def film(
    model: mujoco.MjModel,
    clip: Clip,
    frames: int = 8,
    *,
    span: tuple[float, float] | None = None,  # s, from when to when; None: the whole clip
    azimuth: float = AZIMUTH,
) -> Filmstrip:
    """Evenly spread frames, from the first to the last; the camera goes with the robot and looks from one side."""
    if frames < 1:
        raise UserError(f"frames is {frames}; a filmstrip needs at least 1")
    first, last = (0.0, clip.seconds) if span is None else (max(span[0], 0.0), min(span[1], clip.seconds))
    if last < first:
        raise UserError(f"span is {span}; the clip has 0 to {clip.seconds:.2f} s")
    chosen = np.unique(np.linspace(first * clip.fps, last * clip.fps, frames).round().astype(int)).tolist()
    joints = tuple(name for name in clip.joint_names if _has_joint(model, name))
    qpos = clip_positions(model, clip, joints)
    size, camera = _view(model, qpos, azimuth)
    poses = qpos[chosen]
    try:
        with Offscreen(model, *size) as offscreen:
            return Filmstrip([offscreen.draw(pose, camera(pose)) for pose in poses], chosen, clip.fps, None)
    except GraphicsError as error:
        return Filmstrip(_stick_figures(model, poses, size, camera), chosen, clip.fps, str(error))


def _has_joint(model: mujoco.MjModel, name: str) -> bool:
    return mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) >= 0


# ---------------------------------------------------------------- camera

Camera = Callable[[Array], mujoco.MjvCamera]


def _view(model: mujoco.MjModel, qpos: Array, azimuth: float) -> tuple[tuple[int, int], Camera]:
    """Height and width of the pictures, and pose → camera: all of the robot is in the picture, in every frame."""
    heading, base = 0.0, floating_base(model)
    start = None if base is None else base_qpos(model, base).start
    if start is not None:
        heading = float(np.degrees(rotation.heading(qpos[0, start + 3 : start + 7])))
    low, high = _extent(model, qpos[:: max(1, len(qpos) // 20)], start)
    middle = 0.5 * (low + high)
    across = 0.5 * float(np.linalg.norm(high[:2] - low[:2]))
    up = 0.5 * float(high[2] - low[2]) + MARGIN + across * float(np.sin(np.radians(-ELEVATION)))
    shape = float(np.clip((0.85 * across + MARGIN) / up, 0.55, 1.3))
    distance = (
        max(up, (0.85 * across + MARGIN) / shape) / np.tan(np.radians(0.5 * model.vis.global_.fovy)) + 0.4 * across
    )

    def of(pose: Array) -> mujoco.MjvCamera:
        camera = mujoco.MjvCamera()
        camera.type = mujoco.mjtCamera.mjCAMERA_FREE
        camera.azimuth, camera.elevation, camera.distance = heading + azimuth, ELEVATION, distance
        camera.lookat = middle if start is None else [pose[start], pose[start + 1], middle[2]]
        return camera

    return (PIXELS, round(PIXELS * shape)), of


def _extent(model: mujoco.MjModel, poses: Array, start: int | None) -> tuple[Array, Array]:
    """The box that the robot fills, about its base where that floats."""
    data, centres = mujoco.MjData(model), []
    moving = np.flatnonzero(model.geom_bodyid > 0)
    for pose in poses:
        data.qpos[:] = pose
        mujoco.mj_kinematics(model, data)
        shift = np.zeros(3) if start is None else np.array([*pose[start : start + 2], 0.0])
        centres.append(data.geom_xpos[moving] - shift)
    return np.concatenate(centres).min(axis=0), np.concatenate(centres).max(axis=0)


# ---------------------------------------------------------------- with graphics


class GraphicsError(Exception):
    """No library here can draw; says which were tried."""


class Offscreen:
    """MuJoCo's renderer without a window; closed when left."""

    def __init__(self, model: mujoco.MjModel, height: int, width: int) -> None:
        self._model = copy.copy(model)
        self._model.vis.global_.offwidth, self._model.vis.global_.offheight = width, height
        self._model.vis.quality.shadowsize = min(int(model.vis.quality.shadowsize), 2048)
        self._data = mujoco.MjData(self._model)
        self._rectangle = mujoco.MjrRect(0, 0, width, height)
        self._context, self._renderer = _first_that_works(self._model, width, height)
        self._scene = mujoco.MjvScene(self._model, maxgeom=10_000)

    def __enter__(self) -> Offscreen:
        return self

    def __exit__(self, *_: object) -> None:
        self._renderer.free()
        self._context.free()

    def draw(self, qpos: Array, camera: mujoco.MjvCamera) -> Image:
        model, data = self._model, self._data
        data.qpos[:] = qpos
        mujoco.mj_forward(model, data)
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, camera, everything, self._scene)
        mujoco.mjr_render(self._rectangle, self._scene, self._renderer)
        image = np.empty((self._rectangle.height, self._rectangle.width, 3), dtype=np.uint8)
        mujoco.mjr_readPixels(image, None, self._rectangle, self._renderer)
        return np.flipud(image).copy()


def _first_that_works(model: mujoco.MjModel, width: int, height: int) -> tuple[Any, mujoco.MjrContext]:
    """MUJOCO_GL says which; else a window system's where there is one, and what needs none where not."""
    chosen = os.environ.get("MUJOCO_GL", "").lower()
    if chosen in ("off", "disable", "disabled", "false", "0"):
        raise GraphicsError(f"MUJOCO_GL is '{chosen}'")
    headless = sys.platform.startswith("linux") and not chosen and not os.environ.get("DISPLAY")
    tried = []
    for name in ("egl", "osmesa") if headless else (chosen or "default",):
        context = None
        try:
            context = _gl_context(name, width, height)
            context.make_current()
            renderer = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
            mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, renderer)
            return context, renderer
        except Exception as error:  # whatever a missing or broken driver raises
            tried.append(f"{name}: {' '.join(str(error).split())[:80] or type(error).__name__}")
            if context is not None:
                with suppress(Exception):
                    context.free()
            if headless:
                os.environ.pop("PYOPENGL_PLATFORM", None)  # set by the one that failed
    raise GraphicsError(f"no graphics library works ({'; '.join(tried)})")


def _gl_context(name: str, width: int, height: int) -> Any:
    if name == "egl":
        from mujoco.egl import GLContext
    elif name == "osmesa":
        from mujoco.osmesa import GLContext
    else:
        from mujoco import GLContext
    return GLContext(width, height)


# ---------------------------------------------------------------- without graphics


def _stick_figures(model: mujoco.MjModel, poses: Array, size: tuple[int, int], camera: Camera) -> list[Image]:
    """A line from each body to its parent, seen by the same camera."""
    data = mujoco.MjData(model)
    parents = [(b, int(model.body_parentid[b])) for b in range(1, model.nbody) if model.body_parentid[b] != 0]
    images = []
    for pose in poses:
        data.qpos[:] = pose
        mujoco.mj_kinematics(model, data)
        images.append(_stick_figure(data.xpos.copy(), parents, size, camera(pose), model.vis.global_.fovy))
    return images


def _stick_figure(
    points: Array, lines: Sequence[tuple[int, int]], size: tuple[int, int], camera: mujoco.MjvCamera, fovy: float
) -> Image:
    height, width = size
    project = _projection(camera)
    with mpl.rc_context(PLACED):
        figure = Figure(figsize=(width / 100, height / 100), dpi=100)
        ax = figure.add_axes((0, 0, 1, 1))
        reach = camera.distance * float(np.tan(np.radians(0.5 * fovy)))
        ax.set(xlim=(-reach * width / height, reach * width / height), ylim=(-reach, reach))
        ax.set_axis_off()
        x, y = np.round(2.0 * np.array(camera.lookat[:2])) / 2.0
        ticks = np.arange(-3.0, 3.01, 0.5)
        grid = [[(x + t, y - 3.0, 0.0), (x + t, y + 3.0, 0.0)] for t in ticks]
        grid += [[(x - 3.0, y + t, 0.0), (x + 3.0, y + t, 0.0)] for t in ticks]
        ax.add_collection(LineCollection(list(project(np.array(grid))), colors="#DDDDDD", linewidths=0.8))
        shadows = points * [1.0, 1.0, 0.0]
        for places, colour, thickness in ((shadows, "#C9C9C9", 2.0), (points, INK, 2.6)):
            segments = project(np.array([[places[a], places[b]] for a, b in lines]).reshape(-1, 2, 3))
            ax.add_collection(LineCollection(list(segments), colors=colour, linewidths=thickness, capstyle="round"))
        ax.plot(*project(points[1:]).T, "o", color=FAINT, markersize=2.5)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _projection(camera: mujoco.MjvCamera) -> Callable[[Array], Array]:
    """World points to the picture's plane, in m, without perspective."""  # (…, 3) → (…, 2)
    turn, tilt = np.radians(camera.azimuth), np.radians(camera.elevation)
    forward = np.array([np.cos(tilt) * np.cos(turn), np.cos(tilt) * np.sin(turn), np.sin(tilt)])
    right = np.array([np.sin(turn), -np.cos(turn), 0.0])
    up = np.cross(right, forward)
    return lambda points: (points - camera.lookat) @ np.stack([right, up], axis=1)
