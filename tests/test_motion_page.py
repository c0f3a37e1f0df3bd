"""A clip's page: self-contained, with what a check found, drawn with or without a graphics library."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from matplotlib.image import imread

from consmimic.cli import main
from consmimic.errors import UserError
from consmimic.evaluation import filmstrip as strips
from consmimic.evaluation.filmstrip import GraphicsError, Offscreen, film, filmstrip
from consmimic.evaluation.motion_page import write_motion_page
from consmimic.evaluation.viewer import play
from consmimic.motions import Clip
from consmimic.motions.trot import Trot
from consmimic.robots import ROBOTS
from consmimic.tasks import task_entry
from consmimic.tasks.anymal import demonstration

ANYMAL, PANDA = ROBOTS["anymal_d"], ROBOTS["panda"]


@pytest.fixture(scope="module")
def trot() -> Clip:
    return demonstration(Trot(speeds=(0.9,)))


@pytest.fixture(scope="module")
def reach() -> Clip:
    return task_entry("Franka-Reach").task.demonstration()


@pytest.fixture
def no_graphics(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "off")


# ---------------------------------------------------------------- filmstrip


def test_frames_are_spread_from_the_first_to_the_last(trot, no_graphics):  # noqa: ARG001
    strip = film(ANYMAL.model(), trot, 5)
    assert strip.frames == [0, 25, 50, 75, 100]
    assert film(ANYMAL.model(), trot, 3, span=(0.5, 1.5)).frames == [25, 50, 75]
    assert film(ANYMAL.model(), trot, 1).frames == [0]
    assert len(film(ANYMAL.model(), trot, 500, span=(0.0, 0.1)).frames) == 6


@pytest.mark.parametrize(("change", "message"), [({"frames": 0}, "at least 1"), ({"span": (3.0, 4.0)}, "0 to 2.00 s")])
def test_what_cannot_be_filmed_is_refused(trot, change, message):
    with pytest.raises(UserError, match=message):
        film(ANYMAL.model(), trot, **({"frames": 4} | change))


def test_stick_figures_say_why_and_show_the_motion(trot, reach, no_graphics):  # noqa: ARG001
    for robot, clip in ((ANYMAL, trot), (PANDA, reach)):
        strip = film(robot.model(), clip, 3)
        assert strip.without_graphics == "MUJOCO_GL is 'off'"
        dark = [(image.sum(axis=-1) < 200).mean() for image in strip.images]
        assert all(0.002 < share < 0.2 for share in dark)
        assert np.abs(strip.images[0].astype(int) - strip.images[1]).mean() > 0.1


def test_a_broken_driver_is_an_excuse_not_a_crash(trot, monkeypatch):
    def broken(*_):
        raise OSError("libEGL.so.1: cannot open shared object file")

    monkeypatch.setattr(strips, "_gl_context", broken)
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    strip = film(ANYMAL.model(), trot, 2)
    assert strip.without_graphics is not None
    assert "libEGL.so.1: cannot open" in strip.without_graphics


def test_the_strip_is_one_picture(trot, no_graphics):  # noqa: ARG001
    image = filmstrip(ANYMAL.model(), trot, 4, dpi=100)
    assert image.dtype == np.uint8
    assert image.shape[1] == 460
    assert image.shape[2] == 3


def test_mujocos_pictures_keep_the_robot_in_the_middle(trot):
    """The camera goes along: dark and red parts stay where they are while the base goes 1.8 m."""
    model = ANYMAL.model()
    try:
        Offscreen(model, 8, 8).__exit__()
    except GraphicsError as error:
        pytest.skip(str(error))
    strip = film(model, trot, 2)
    assert strip.without_graphics is None
    for image in strip.images:
        colours = image.astype(int)
        rows, columns = np.nonzero(colours[..., 0] - colours[..., 1] > 60)  # the red shell
        height, width, _ = image.shape
        assert len(rows) > 0.01 * height * width
        assert abs(columns.mean() - 0.5 * width) < 0.15 * width
        assert abs(rows.mean() - 0.45 * height) < 0.2 * height


# ---------------------------------------------------------------- page


def test_the_page_stands_alone_and_says_what_the_check_found(trot, tmp_path, no_graphics):  # noqa: ARG001
    path = tmp_path / "deep" / "page.html"
    sunk = replace(trot, body_pos_w=trot.body_pos_w - [0.0, 0.0, 0.03])
    assert write_motion_page(sunk, ANYMAL, path, frames=3) == "MUJOCO_GL is 'off'"
    page = path.read_text()
    assert page.count("data:image/png;base64,") == page.count("<img ") == 5  # film, cycle, joints, path, feet
    assert "http" not in page.replace("data:image/png;base64,", "")
    assert "Drawn as stick figures: MUJOCO_GL is" in page
    assert "under the floor" in page
    assert page.count("✗ fail") == 1


def test_an_arms_page_has_no_feet(reach, tmp_path, no_graphics):  # noqa: ARG001
    path = tmp_path / "page.html"
    write_motion_page(reach, PANDA, path, frames=2)
    assert "<h2>Feet</h2>" not in path.read_text()
    assert "<h2>Joints</h2>" in path.read_text()


def test_the_picture_has_all_figures_under_one_another(trot, tmp_path, no_graphics):  # noqa: ARG001
    path = tmp_path / "page.png"
    write_motion_page(trot, ANYMAL, path, frames=2)
    height, width, _ = imread(path).shape
    assert height > 1200
    assert width > 1000


def call(*words: object) -> int:
    with pytest.raises(SystemExit) as exit_:
        main([str(word) for word in words])
    return int(exit_.value.code or 0)


def test_the_command_writes_beside_the_clip_and_says_where(trot, tmp_path, capsys, no_graphics):  # noqa: ARG001
    clip = tmp_path / "clip.npz"
    trot.save(clip)
    assert call("motions", "show", clip, "--robot", "anymal_d", "--frames", 2) == 0
    shown = capsys.readouterr()
    assert shown.out.strip() == str(tmp_path / "clip.html")
    assert shown.err.strip() == "drawn as stick figures: MUJOCO_GL is 'off'"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--output", "page.gif"), "must end in one of .html, .png"),
        (("--viewer", "window"), "no screen for a window"),
    ],
)
def test_bad_input_exits_with_2(words, message, trot, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    clip = tmp_path / "clip.npz"
    trot.save(clip)
    assert call("motions", "show", clip, "--robot", "anymal_d", *words) == 2
    assert message in " ".join(capsys.readouterr().err.split())


# ---------------------------------------------------------------- viewer


class Window:
    """Stands for MuJoCo's, which needs a screen; closes itself after a while."""

    def __init__(self, data: mujoco.MjData) -> None:
        self.data = data
        self.seen: list[np.ndarray] = []

    def __enter__(self) -> Window:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def is_running(self) -> bool:
        return len(self.seen) < 10

    def sync(self) -> None:
        self.seen.append(self.data.qpos.copy())


def test_the_clip_is_played_frame_by_frame(trot, monkeypatch):
    from mujoco import viewer

    opened: list[Window] = []
    monkeypatch.setattr(viewer, "launch_passive", lambda _, data: opened.append(Window(data)) or opened[0])
    play(trot, ANYMAL, "window")
    (window,) = opened
    frames = trot.body_pos_w[:, 0]
    for pose in window.seen:
        assert np.abs(frames - pose[:3]).sum(axis=1).min() < 1e-12
    assert len({pose[0] for pose in window.seen}) > 2


def test_outputs_never_lie_half_written(trot, tmp_path, monkeypatch, no_graphics):  # noqa: ARG001
    monkeypatch.chdir(tmp_path)
    write_motion_page(trot, ANYMAL, Path("page.html"), frames=1)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
