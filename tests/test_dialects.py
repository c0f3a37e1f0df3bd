"""Readers: each dialect gives back the motion that was written, real clips convert or are refused with a way out."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consmimic.errors import UserError
from consmimic.motions import Clip, forward
from consmimic.motions.convert import Conversion, conversion_budget, convert, read_mapping, write_table
from consmimic.motions.dialects import DIALECTS, ReadOptions, detect, read_motion
from consmimic.motions.files import Npz
from consmimic.motions.limits import beyond_range
from consmimic.motions.retarget import read_source
from consmimic.robots import ROBOTS, Robot, robot_by_name
from motion_files import (
    ANYMAL,
    FPS,
    LAIKAGO_TO_ANYMAL,
    ROBOT_DIALECTS,
    Written,
    angles,
    base,
    csv,
    deepmimic_text,
    human,
    json_frames,
    known,
    lafan1_csv,
    matrices,
    mjlab_npz,
)
from real_clips import FILES, FOLDER, real, retargeted

MODEL = ANYMAL.model(visuals=False)
ARRAYS = ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w")


def converted(written: Written, robot: Robot = ANYMAL, **options: object) -> Conversion:
    reading = read_motion(written.path, written.options)
    return convert(
        reading.recording,
        MODEL if robot is ANYMAL else robot.model(visuals=False),
        robot=robot.name,
        joint_names=robot.joint_names,
        mapping=written.mapping,
        most_bytes=conversion_budget(written.path),
        **options,  # type: ignore[arg-type]
    )


def assert_same_rotations(a: np.ndarray, b: np.ndarray, atol: float) -> None:
    assert_allclose(np.abs((a * b).sum(axis=-1)), 1.0, atol=atol)


# ---------------------------------------------------------------- what was written is read


@pytest.mark.parametrize("name", ROBOT_DIALECTS)
def test_a_known_motion_is_read_back_whatever_the_joint_order(tmp_path, name):
    original = known()
    made = converted(ROBOT_DIALECTS[name](tmp_path, original))
    clip = made.clip
    assert clip.fps == pytest.approx(FPS)
    assert clip.joint_names == ANYMAL.joint_names
    assert clip.body_names == original.body_names
    assert_allclose(clip.joint_pos, original.joint_pos, atol=1e-6)
    assert_allclose(clip.body_pos_w, original.body_pos_w, atol=2e-6)
    assert_same_rotations(clip.body_quat_w, original.body_quat_w, atol=1e-9)
    assert_allclose(clip.joint_vel, original.joint_vel, atol=2e-5)
    assert_allclose(clip.body_ang_vel_w, original.body_ang_vel_w, atol=1e-4)
    unasked = [note for note in made.warnings if "loco-mujoco" not in name and note]
    assert unasked == []


@pytest.mark.parametrize("name", ROBOT_DIALECTS)
def test_the_dialect_is_found_out_and_said(tmp_path, name):
    written = ROBOT_DIALECTS[name](tmp_path, known(frames=5))
    dialect, why = detect(written.path)
    assert dialect.name == name.partition(" ")[0]
    assert why
    assert read_motion(written.path, written.options, dialect.name).recording.joint_pos.shape == (5, 12)


@pytest.mark.parametrize("name", ["mjlab", "mjlab with names", "isaaclab", "amp_for_hardware"])
def test_velocities_in_the_file_are_compared_with_differences_of_positions(tmp_path, name):
    original = known()
    right = converted(ROBOT_DIALECTS[name](tmp_path, original))
    assert any("joint velocities" in note and "off by 0%" in note for note in right.notes)
    (tmp_path / "wrong").mkdir()
    wrong = converted(ROBOT_DIALECTS[name](tmp_path / "wrong", replace(original, joint_vel=0.5 * original.joint_vel)))
    assert any("off by 50%" in note and "fit a frame rate of 25.0 Hz" in note for note in wrong.warnings)


@pytest.mark.parametrize("name", ["mjlab", "amp_for_hardware"])
def test_the_velocity_of_the_base_is_compared_in_the_frame_that_it_is_in(tmp_path, name):
    made = converted(ROBOT_DIALECTS[name](tmp_path, known()))
    frame = {"mjlab": "world", "amp_for_hardware": "base's own"}[name]
    assert any(f"in the {frame} frame, is off by 0%" in note for note in made.notes)


def test_bodies_in_the_file_are_compared_with_the_model(tmp_path):
    original = known()
    original.save(tmp_path / "right.npz")
    made = converted(Written(tmp_path / "right.npz"))
    assert any(note.startswith("bodies") and "off by 0.0 mm" in note for note in made.notes)
    swapped = replace(original, joint_names=("RF_HAA", "LF_HFE", "LF_KFE", "LF_HAA", *original.joint_names[4:]))
    swapped.save(tmp_path / "swapped.npz")
    made = converted(Written(tmp_path / "swapped.npz"))
    assert any("joints mixed up" in warning for warning in made.warnings)


def test_the_human_skeleton_is_read_with_z_up(tmp_path):
    root_pos, root, balls, hinges = human()
    reading = read_motion(deepmimic_text(tmp_path, root_pos, root, balls, hinges))
    recording = reading.recording
    assert reading.dialect.name == "deepmimic"
    assert recording.fps == pytest.approx(FPS)
    assert_allclose(recording.root_pos, root_pos, atol=1e-8)
    assert_same_rotations(recording.root_quat, root, atol=1e-9)  # type: ignore[arg-type]
    assert recording.joint_names == ("right_knee", "right_elbow", "left_knee", "left_elbow")
    assert_allclose(recording.joint_pos, hinges, atol=1e-8)
    assert recording.ball_names[0] == "chest"
    assert recording.ball_names[-1] == "left_shoulder"
    assert_same_rotations(recording.ball_quat, balls, atol=1e-9)


def test_a_knee_that_bends_carries_the_human_shank_back(tmp_path):
    """A turn by a positive angle about the axis to the left takes what points down to behind."""
    down = np.array([0.0, 0.0, -1.0])
    turn = np.array([np.cos(0.4), 0.0, np.sin(0.4), 0.0])  # 0.8 rad about y
    assert (matrices(turn[None])[0] @ down)[0] < -0.7
    root_pos, root, balls, hinges = human(3)
    hinges[:, 0] = 0.8
    path = deepmimic_text(tmp_path, root_pos, root, balls, hinges)
    in_file = json.loads(path.read_text())["Frames"][0]
    assert in_file[8 + 4 + 4 + 4] == pytest.approx(-0.8)  # DeepMimic's knees bend to negative angles
    assert read_motion(path).recording.joint_pos[0, 0] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("joints", "robot", "some"),
    [
        (29, "Unitree G1", {3: "left_knee_joint", 12: "waist_yaw_joint", 28: "right_wrist_yaw_joint"}),
        (27, "Unitree H1_2", {0: "left_hip_yaw_joint", 12: "torso_joint", 16: "left_elbow_joint"}),
        (19, "Unitree H1", {4: "left_ankle_joint", 10: "torso_joint", 18: "right_elbow_joint"}),
    ],
)
def test_retargeted_lafan1_is_told_by_its_columns(tmp_path, joints, robot, some):
    reading = read_motion(lafan1_csv(tmp_path, joints).path)
    assert reading.dialect.name == "lafan1"
    assert robot in reading.why
    recording = reading.recording
    assert recording.fps == 30.0
    assert recording.joint_names is not None
    for column, name in some.items():
        assert recording.joint_names[column] == name
        assert_allclose(recording.joint_pos[:, column], 0.01 * column)


def test_a_table_may_be_separated_by_blanks_or_semicolons(tmp_path):
    written = csv(tmp_path, known(frames=4))
    text = written.path.read_text()
    for separator in (" ", "\t", ";", ", "):
        written.path.write_text(text.replace(",", separator) + "\n\n")
        assert_allclose(converted(written).clip.joint_pos, known(frames=4).joint_pos, atol=1e-8)


def test_frames_that_last_unequally_are_made_even(tmp_path):
    """20 columns: the duration of each frame first. One frame of three lasts twice as long."""
    rows = np.zeros((4, 20))
    rows[:, 0] = [0.02, 0.04, 0.02, 0.02]
    rows[:, 1:8] = [0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 0.5]
    rows[:, 8] = [0.0, 1.0, 3.0, 4.0]  # a rad per 0.02 s
    json_frames(tmp_path / "uneven.txt", rows, Loop="wrap")
    recording = read_motion(tmp_path / "uneven.txt").recording
    assert recording.fps == pytest.approx(50.0)
    assert_allclose(recording.joint_pos[:, 0], [0.0, 1.0, 2.0, 3.0, 4.0], atol=1e-9)
    assert any("unequally" in warning for warning in recording.warnings)


def test_loco_mujocos_frame_rate_is_told_by_its_velocities(tmp_path):
    written = ROBOT_DIALECTS["loco-mujoco"](tmp_path, known(frames=100))
    recording = read_motion(written.path).recording
    assert recording.fps == 50.0
    assert any("velocities fit" in note for note in recording.notes)
    assert read_motion(written.path, ReadOptions(fps=100.0)).recording.fps == 100.0


# ---------------------------------------------------------------- time


def test_resampling_goes_along_the_motion(tmp_path):
    written = ROBOT_DIALECTS["csv"](tmp_path, known(frames=41))
    clip = converted(written, fps=100.0).clip
    assert (clip.fps, len(clip)) == (100.0, 81)
    assert_allclose(clip.joint_pos[::2], known(frames=41).joint_pos, atol=1e-8)
    halfway = clip.body_quat_w[1::2, 0]
    before, after = known(frames=41).body_quat_w[:-1, 0], known(frames=41).body_quat_w[1:, 0]
    middle = before + after
    assert_same_rotations(halfway, middle / np.linalg.norm(middle, axis=1, keepdims=True), atol=1e-9)


def test_the_frame_rate_that_the_user_gives_is_taken_and_a_difference_told(tmp_path):
    written = mjlab_npz(tmp_path, known())
    recording = read_motion(written.path, replace(written.options, fps=25.0)).recording
    assert recording.fps == 25.0
    assert any("the file says 50 Hz" in warning for warning in recording.warnings)


def test_joints_beyond_their_limits_and_degrees_are_noticed(tmp_path):
    far = known(frames=5)
    far.joint_pos[3, far.joint("RF_KFE")] = 0.25  # its limit is 0
    far.save(tmp_path / "far.npz")
    warnings = converted(Written(tmp_path / "far.npz")).warnings
    assert any("in 20% of the frames: RF_KFE by 0.25 rad in frame 3" in warning for warning in warnings)
    degrees = replace(known(frames=5), joint_pos=np.degrees(known(frames=5).joint_pos))
    degrees.save(tmp_path / "degrees.npz")
    assert any("are these degrees?" in warning for warning in converted(Written(tmp_path / "degrees.npz")).warnings)


# ---------------------------------------------------------------- which way is up


def table(clip: Clip, order: list[int], turn: np.ndarray | None = None) -> np.ndarray:
    """A table with quaternions in some order; ``turn`` is of the world, as a matrix."""
    rotation = np.eye(3) if turn is None else turn
    quat = np.empty((len(clip), 4))
    for row, matrix in zip(quat, matrices(base(clip, "quat")), strict=True):
        mujoco.mju_mat2Quat(row, (rotation @ matrix).ravel())
    return np.concatenate([base(clip, "pos") @ rotation.T, quat[:, order], clip.joint_pos], axis=1)


def read_table(path: Path, values: np.ndarray, **options: object):
    np.savetxt(path, values, delimiter=",")
    joint_names = ANYMAL.joint_names
    return read_motion(path, ReadOptions(fps=FPS, joint_names=joint_names, **options)).recording  # type: ignore[arg-type]


def test_quaternions_in_the_wrong_order_are_noticed_by_a_base_that_would_lie(tmp_path):
    original = known()
    recording = read_table(tmp_path / "wxyz.csv", table(original, [0, 1, 2, 3]))
    assert_same_rotations(recording.root_quat, base(original, "quat"), atol=1e-9)  # type: ignore[arg-type]
    assert any("read as wxyz" in warning for warning in recording.warnings)
    as_stated = read_table(tmp_path / "xyzw.csv", table(original, [1, 2, 3, 0]))
    assert_same_rotations(as_stated.root_quat, base(original, "quat"), atol=1e-9)  # type: ignore[arg-type]
    assert as_stated.warnings == ()
    assert any("quaternions xyzw" in note and "as wxyz it would be" in note for note in as_stated.notes)


def test_the_order_that_the_user_gives_is_taken(tmp_path):
    original = known()
    recording = read_table(tmp_path / "asked.csv", table(original, [0, 1, 2, 3]), quat_order="wxyz")
    assert_same_rotations(recording.root_quat, base(original, "quat"), atol=1e-9)  # type: ignore[arg-type]
    assert recording.warnings == ()
    stubborn = read_table(tmp_path / "stubborn.csv", table(original, [0, 1, 2, 3]), quat_order="xyzw", up="z")
    assert any("if it should not lie down" in warning for warning in stubborn.warnings)


def test_a_walk_along_x_in_the_wrong_order_would_go_backwards(tmp_path):
    """xyzw of no turn, (0, 0, 0, 1), is half a turn about z as wxyz: upright, so only the way that it goes tells."""
    straight = np.zeros((30, 19))
    straight[:, 0] = np.arange(30) / FPS
    straight[:, 2] = 0.5
    straight[:, 6] = 1.0
    wrong = read_table(tmp_path / "straight.csv", straight)
    assert wrong.warnings == ()  # as the format has it
    npz = tmp_path / "straight.npz"
    arrays = {"joint_pos": straight[:, 7:], "body_pos_w": straight[:, None, :3], "body_quat_w": straight[:, None, 3:7]}
    np.savez(npz, fps=FPS, **arrays)
    recording = read_motion(npz).recording
    assert any("goes backwards" in warning and "--quat-order xyzw" in warning for warning in recording.warnings)


def test_y_up_is_noticed_or_asked_for(tmp_path):
    original = known()
    z_to_y = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    values = table(original, [1, 2, 3, 0], z_to_y)
    values[:, 3:7] = _with_base_axes(values[:, 3:7], z_to_y)
    for options in ({}, {"up": "y"}):
        path = tmp_path / f"y{len(options)}.csv"
        recording = read_table(path, values, **options)
        assert_allclose(recording.root_pos, base(original, "pos"), atol=1e-8)
        assert_same_rotations(recording.root_quat, base(original, "quat"), atol=1e-8)  # type: ignore[arg-type]
        assert bool(recording.warnings) == (options == {})


def _with_base_axes(xyzw: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """The base's own axes turned as well: R → R turnᵀ."""
    found = np.empty_like(xyzw)
    for row, matrix in zip(found, matrices(xyzw[:, [3, 0, 1, 2]]), strict=True):
        quaternion = np.empty(4)
        mujoco.mju_mat2Quat(quaternion, (matrix @ turn.T).ravel())
        row[:] = quaternion[[1, 2, 3, 0]]
    return found


def test_a_robot_that_lies_on_the_floor_is_not_stood_up(tmp_path):
    lying = np.zeros((30, 19))
    lying[:, 2] = 0.12
    lying[:, 3:7] = [0.0, -np.sqrt(0.5), 0.0, np.sqrt(0.5)]  # xyzw, on its back
    recording = read_table(tmp_path / "lying.csv", lying)
    assert_allclose(recording.root_pos, lying[:, :3])
    assert any("90° away from the sky" in warning for warning in recording.warnings)


# ---------------------------------------------------------------- what is refused, and what to do


REFUSED = {
    "no names": (
        csv,
        ReadOptions(fps=FPS),
        r"12 joints without names, as many as anymal_d: name them.*--joint-names robot",
    ),
    "no frame rate": (csv, ReadOptions(joint_names=ANYMAL.joint_names), "does not say its frame rate: give --fps"),
    "too few names": (csv, ReadOptions(fps=FPS, joint_names=("a", "b")), "has 12 joints, but 2 names: a, b"),
    "a name twice": (csv, ReadOptions(fps=FPS, joint_names=("a",) * 12), "named twice"),
    "frame rate": (csv, ReadOptions(fps=1e9, joint_names=ANYMAL.joint_names), "not believable; valid are 1 to 10000"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_user_must_add_is_said(tmp_path, case):
    write, options, message = REFUSED[case]
    written = replace(write(tmp_path, known(frames=5)), options=options)
    with pytest.raises(UserError, match=message):
        converted(written)


def test_joints_that_are_missing_are_named_and_further_ones_left_out(tmp_path):
    clip = known(frames=5)
    renamed = replace(clip, joint_names=("hip", *clip.joint_names[1:]))
    renamed.save(tmp_path / "clip.npz")
    with pytest.raises(UserError, match=r"lacks the joints LF_HAA of anymal_d.*--mapping"):
        converted(Written(tmp_path / "clip.npz"))
    made = converted(Written(tmp_path / "clip.npz", mapping={"hip": "LF_HAA"}))
    assert_array_equal(made.clip.joint_pos, clip.joint_pos)
    more = replace(
        clip,
        joint_names=(*clip.joint_names, "thumb"),
        joint_pos=np.pad(clip.joint_pos, ((0, 0), (0, 1))),
        joint_vel=np.pad(clip.joint_vel, ((0, 0), (0, 1))),
    )
    more.save(tmp_path / "more.npz")
    made = converted(Written(tmp_path / "more.npz"))
    assert any("left out: thumb" in note for note in made.notes)


def test_a_mapping_must_name_joints_that_there_are(tmp_path):
    known(frames=5).save(tmp_path / "clip.npz")
    with pytest.raises(UserError, match="unknown joint of .* in the mapping 'toe'"):
        converted(Written(tmp_path / "clip.npz", mapping={"toe": "LF_HAA"}))
    with pytest.raises(UserError, match="unknown joint of anymal_d in the mapping 'toe'"):
        converted(Written(tmp_path / "clip.npz", mapping={"LF_HAA": "toe"}))


@pytest.mark.parametrize(("name", "text"), [("m.yaml", "a: b\nc: d\n"), ("m.json", '{"a": "b", "c": "d"}')])
def test_a_mapping_file_is_yaml_or_json(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert read_mapping(tmp_path / name) == {"a": "b", "c": "d"}
    for bad in ("[1, 2]", "{", "a: [1, 2", '{"a": 1}', "!!python/object/apply:os.system ['true']", "\0"):
        (tmp_path / name).write_text(bad)
        with pytest.raises(UserError, match=name):
            read_mapping(tmp_path / name)


def test_a_moving_base_does_not_fit_a_robot_that_is_bolted_down(tmp_path):
    panda = ROBOTS["panda"]
    clip = known(panda, frames=5)
    path = tmp_path / "panda.csv"
    moving = np.concatenate([np.zeros((5, 6)), np.ones((5, 1)), clip.joint_pos], axis=1)
    np.savetxt(path, moving, delimiter=",")
    written = Written(path, ReadOptions(fps=FPS, joint_names=panda.joint_names))
    assert_allclose(converted(written, panda).clip.body_pos_w, clip.body_pos_w, atol=1e-12)
    moving[:, 0] = np.arange(5)
    np.savetxt(path, moving, delimiter=",")
    with pytest.raises(UserError, match=r"moves by 4.00 m, but panda is bolted"):
        converted(written, panda)


def test_another_morphology_is_refused_with_what_is_missing_and_the_way_out(tmp_path):
    human_text = deepmimic_text(tmp_path, *human(5))
    with pytest.raises(UserError, match=r"DeepMimic's human skeleton.*ball joints chest.*LF_HAA.*motions retarget"):
        converted(Written(human_text))
    laikago = replace(ROBOT_DIALECTS["motion_imitation"](tmp_path, known(frames=5)), mapping=None)
    with pytest.raises(UserError, match=r"a Laikago or A1.*FR_abduction.*LF_HAA.*motions retarget.*--mapping"):
        converted(laikago)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        b"\x00" * 100,
        b"{",
        b'{"Skeleton": {}}',
        b"[1, 2, 3]",
        b"1,2,3\n1,2,3\n",
        b"PK\x05\x06" + b"\0" * 18,
    ],
)
def test_what_is_no_motion_is_refused(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UserError, match="file"):
        read_motion(path)


def test_a_header_in_a_table_is_refused_by_its_line(tmp_path):
    written = csv(tmp_path, known(frames=3))
    rows = written.path.read_text().splitlines()
    for broken, message in (
        ([rows[0], "x,y,z", rows[1]], "line 2 holds 'x', which is no number"),
        ([rows[0], rows[1] + ",1.0"], "line 2 has 20 numbers, the first has 19"),
        ([rows[0], rows[1].replace(rows[1].split(",")[8], "nan", 1)], "is nan in frame 1"),
    ):
        written.path.write_text("\n".join(broken))
        with pytest.raises(UserError, match=message):
            converted(written)


def test_an_unknown_dialect_or_robot_is_refused_with_those_there_are(tmp_path):
    written = csv(tmp_path, known(frames=3))
    with pytest.raises(UserError, match="unknown dialect 'bvh'. Valid: mjlab, isaaclab"):
        read_motion(written.path, dialect="bvh")
    with pytest.raises(UserError, match="a table of 19 columns; that is not DeepMimic"):
        read_motion(written.path, dialect="deepmimic")
    with pytest.raises(UserError, match="unknown robot 'anymal'. Valid: panda, anymal_d"):
        robot_by_name("anymal")
    with pytest.raises(UserError, match="no motion at"):
        read_motion(tmp_path / "nowhere.npz")


def test_every_dialect_says_what_it_is():
    assert len({dialect.summary for dialect in DIALECTS.values()}) == len(DIALECTS) == 9


# ---------------------------------------------------------------- pickles


class Ran:
    """Unpickling this leaves a trace."""

    def __reduce__(self):
        return os.mkdir, ("it-ran",)


def pickled(path: Path, **changes: object) -> Path:
    content = {
        "joints_list": list(ANYMAL.joint_names),
        "joint_positions": np.zeros((5, 12)),
        "root_position": np.zeros((5, 3)),
        "root_quaternion": np.tile([0.0, 0.0, 0.0, 1.0], (5, 1)),
        "fps": 50.0,
    }
    np.save(path, content | changes, allow_pickle=True)  # type: ignore[arg-type]
    return path


def test_a_pickle_is_read_only_if_allowed_and_even_then_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pickle.loads(pickle.dumps(Ran()))
    Path("it-ran").rmdir()  # the trap works
    good = pickled(tmp_path / "good.npy")
    with pytest.raises(UserError, match="is pickled.*--allow-pickle"):
        read_motion(good)
    allowed = ReadOptions(allow_pickle=True)
    assert read_motion(good, allowed).recording.joint_pos.shape == (5, 12)
    for key in ("joints_list", "joint_positions", "root_position", "fps", "anything"):
        bad = pickled(tmp_path / f"{key}.npy", **{key: Ran()})
        with pytest.raises(UserError):
            read_motion(bad)
        with pytest.raises(UserError, match="it wants to call 'posix.mkdir'"):
            read_motion(bad, allowed)
    assert not Path("it-ran").exists()


def test_pickles_of_all_protocols_lists_and_single_precision_are_read(tmp_path):
    frames = np.linspace(0.0, 1.0, 60).reshape(5, 12)
    allowed = ReadOptions(allow_pickle=True)
    variants = (frames, frames.astype(np.float32), list(frames), frames.tolist(), np.asfortranarray(frames))
    for number, value in enumerate(variants):
        path = pickled(tmp_path / f"{number}.npy", joint_positions=value, fps=np.float32(50.0))
        assert_allclose(read_motion(path, allowed).recording.joint_pos, frames, atol=1e-7)
    with (tmp_path / "0.npy").open("rb") as file:
        np.lib.format.read_magic(file)
        np.lib.format.read_array_header_1_0(file)
        header, content = (tmp_path / "0.npy").read_bytes()[: file.tell()], pickle.load(file)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path = tmp_path / f"protocol{protocol}.npy"
        path.write_bytes(header + pickle.dumps(content, protocol=protocol))
        assert_allclose(read_motion(path, allowed).recording.joint_pos, frames, atol=1e-7)


def test_objects_in_an_npz_are_never_unpickled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mjlab", "isaaclab", "loco-mujoco"):
        written = ROBOT_DIALECTS[name](tmp_path, known(frames=5))
        with np.load(written.path) as file:
            members = {key: file[key] for key in file.files}
        for key in members:
            np.savez(written.path, **(members | {key: np.array(Ran(), dtype=object)}))  # type: ignore[arg-type]
            options = replace(written.options, allow_pickle=True)
            with pytest.raises(UserError):
                raise UserError(str(converted(replace(written, options=options)).notes))
    assert not Path("it-ran").exists()


# ---------------------------------------------------------------- sizes that are claimed


def npy_claiming(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


def test_an_array_that_claims_to_be_giant_is_refused_before_it_is_made(tmp_path):
    written = mjlab_npz(tmp_path, known(frames=5))
    with np.load(written.path) as file:
        members = {key: file[key] for key in file.files if key != "joint_pos"}
    np.savez(written.path, **members)
    whole = written.path.read_bytes()
    for shape, descr in (
        ((10**9, 12), "<f8"),
        ((10**12,), "<f4"),
        ((10**10,), "<U1"),
        ((10**10,), "<U0"),
        ((1,), "<U9999999999"),
    ):
        written.path.write_bytes(whole)
        with zipfile.ZipFile(written.path, "a") as archive:
            archive.writestr("joint_pos.npy", npy_claiming(shape, descr))
        with pytest.raises(UserError, match="joint_pos"):
            read_motion(written.path)


def test_names_of_characters_that_there_are_not_are_refused(tmp_path):
    for code, order in ((0xFFFFFFFF, "<"), (0x110000, "<"), (0xD800, "<"), (0, ">"), (0x0A, "<")):
        names = np.array([code] * 3, dtype=np.uint32).astype(f"{order}u4")
        with zipfile.ZipFile(tmp_path / "names.npz", "w") as archive:
            archive.writestr("names.npy", npy_claiming((1,), f"{order}U3") + names.tobytes())
        if code == 0:
            assert Npz(tmp_path / "names.npz").strings("names") == ("",)
            continue
        with pytest.raises(UserError, match="text"):
            Npz(tmp_path / "names.npz").strings("names")


def test_an_array_that_inflates_beyond_its_file_is_refused(tmp_path):
    written = mjlab_npz(tmp_path, known(frames=5))
    with zipfile.ZipFile(written.path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("big.npy", npy_claiming((2**25,)) + bytes(2**28))
    assert written.path.stat().st_size < 2**20
    with pytest.raises(UserError, match="would take 268 MB of memory, too much for a file of 0.3 MB"):
        Npz(written.path).read("big")


def test_a_clip_that_would_be_far_larger_than_its_file_is_not_made(tmp_path):
    written = csv(tmp_path, known(frames=40))
    with pytest.raises(UserError, match="a clip of .* frames, 12 joints and 17 bodies would take"):
        converted(replace(written, options=replace(written.options, fps=1.0)), fps=10_000.0)


# ---------------------------------------------------------------- there and back


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=lambda robot: robot.name)
def test_npz_to_csv_and_back_is_the_same(tmp_path, robot):
    assert_round_trip(tmp_path, known(robot), robot)


def assert_round_trip(folder: Path, clip: Clip, robot: Robot) -> None:
    model = robot.model(visuals=False)
    clip.save(folder / "before.npz")
    write_table(Clip.load(folder / "before.npz"), model, folder / "between.csv")
    options = ReadOptions(fps=clip.fps, joint_names=clip.joint_names)
    after = converted(Written(folder / "between.csv", options), robot).clip
    for name in ARRAYS:
        assert_allclose(getattr(after, name), getattr(clip, name), atol=1e-6)


def test_a_table_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "table.csv"
    write_table(known(frames=5), MODEL, path)
    before = path.read_bytes()
    with pytest.raises(UserError, match="exists"):
        write_table(known(frames=6), MODEL, path)
    with pytest.raises(UserError, match="there is no folder"):
        write_table(known(frames=6), MODEL, tmp_path / "none" / "table.csv")
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["table.csv"]
    assert angles(5).tilt.shape == (5,)


# ---------------------------------------------------------------- real clips


@real
@pytest.mark.parametrize("robot", ROBOTS.values(), ids=lambda robot: robot.name)
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_real_clip_converts_or_is_refused_with_a_way_out(tmp_path, path, robot):
    try:
        clip = converted(Written(path), robot).clip
    except UserError as error:
        refusal = str(error)
    else:
        assert_round_trip(tmp_path, clip, robot)
        return
    if path.suffix not in (".txt", ".npz") or "license" in path.name.lower():
        assert "no dialect that is known" in refusal
    elif "skeleton" in path.name:
        assert "description of a skeleton" in refusal
    else:
        assert "consmimic motions retarget" in refusal
        assert robot.name in refusal


MOTIONS = [path for path in FILES if path.suffix in (".txt", ".npz") and "license" not in path.name.lower()]
MOTIONS = [path for path in MOTIONS if "skeleton" not in path.name]
NO_HOME = {"humanoid_02-constspeed_UnitreeG1.npz": "Known are: .*--from-robot"}
"""Motions that no robot of ours can take yet, and what their users are told."""


@real
@pytest.mark.parametrize("path", MOTIONS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_real_motion_becomes_a_clip_that_plays_on_a_robot_and_round_trips(tmp_path, path):
    pytest.importorskip("mink")
    if path.name in NO_HOME:
        with pytest.raises(UserError, match=NO_HOME[path.name]):
            read_source(path)
        return
    robot = ROBOTS["gr1" if "human" in path.name or "walker" in str(path) else "anymal_d"]
    clip = retargeted(str(path.relative_to(FOLDER)), robot.name).clip
    model = robot.model(visuals=False)
    assert beyond_range(model, clip.joint_names, clip.joint_pos).max() < 1e-6
    assert (np.abs(clip.joint_vel) < np.array(robot.joint_velocity_limits) * (1 + 1e-6)).all()
    for values in forward.poses(model, forward.clip_positions(model, clip, robot.joint_names)):
        assert np.isfinite(values).all()
    assert_round_trip(tmp_path, clip, robot)


@real
def test_a_real_laikago_with_its_legs_named_round_trips_on_anymal(tmp_path):
    path = FOLDER / "pybullet_zlib" / "laikago_walk.txt"
    clip = converted(Written(path, mapping=LAIKAGO_TO_ANYMAL)).clip
    assert clip.fps == pytest.approx(16.0)
    heading = matrices(base(clip, "quat"))[:, :2, 0]
    way = base(clip, "pos")[-1, :2] - base(clip, "pos")[0, :2]
    assert (heading @ way > 0.95 * np.linalg.norm(way)).all()  # it looks where it walks
    assert_round_trip(tmp_path, clip, ANYMAL)


@real
def test_real_humans_walk_ahead_upright_at_the_published_speeds():
    for name, speed in (("deepmimic_mit/humanoid3d_walk.txt", 0.98), ("isaaclab_bsd3/humanoid_walk.npz", 1.52)):
        recording = read_motion(FOLDER / name).recording
        assert recording.root_pos is not None
        assert recording.root_quat is not None
        way = recording.root_pos[-1] - recording.root_pos[0]
        assert np.linalg.norm(way[:2]) / recording.seconds == pytest.approx(speed, abs=0.02)
        ahead = matrices(recording.root_quat)[:, :, 0].mean(axis=0)
        assert ahead @ way > 0.97 * np.linalg.norm(way)
        assert recording.root_pos[:, 2].min() > 0.7
