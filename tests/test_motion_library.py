"""The library: draws as often as asked, never across the end of a clip, the same from disk as from the clips."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from consmimic.errors import UserError
from consmimic.motions import Clip
from consmimic.motions.library import AliasTable, MotionLibrary
from consmimic.motions.operations import trimmed
from motion_files import known

LENGTHS = (2, 40, 1, 7, 25)


def numbered(length: int, clip: int) -> Clip:
    """Joint 0 says which clip it is, joint 1 which frame."""
    motion = trimmed(known(frames=50), 0.0, (length - 1) / 50.0)
    joint_pos = motion.joint_pos.copy()
    joint_pos[:, 0], joint_pos[:, 1] = clip, np.arange(length)
    return replace(motion, joint_pos=joint_pos, source=f"clip {clip}")


@pytest.fixture(scope="module")
def clips() -> list[Clip]:
    return [numbered(length, number) for number, length in enumerate(LENGTHS)]


@pytest.fixture(scope="module")
def library(clips, tmp_path_factory) -> MotionLibrary:
    return MotionLibrary.build(tmp_path_factory.mktemp("library") / "all", clips, fps=50.0)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# ---------------------------------------------------------------- the alias table


@pytest.mark.parametrize(
    "weights", [[1.0], [1.0, 1.0, 1.0], [0.0, 1.0], [5.0, 0.0, 1.0, 1e-3, 40.0], [0.1] * 7 + [0.0]]
)
def test_the_alias_table_draws_with_the_probabilities_that_it_was_given(weights):
    """What it keeps and what it passes on add up to the probabilities, exactly: nothing needs to be drawn for that."""
    table = AliasTable.of(weights)
    n = len(weights)
    probability = table.keep / n
    probability = probability.index_add(0, table.other, (1.0 - table.keep) / n)
    assert_allclose(probability, np.array(weights) / sum(weights), atol=1e-12)
    assert ((table.keep >= 0.0) & (table.keep <= 1.0)).all()


def test_draws_are_as_often_as_their_weights_and_never_of_weight_0():
    weights = torch.tensor([3.0, 0.0, 1.0, 6.0])
    drawn = torch.bincount(AliasTable.of(weights.tolist()).draw(100_000, seeded()), minlength=4)
    assert drawn[1] == 0
    assert_allclose(drawn / 100_000, weights / 10.0, atol=0.006)  # 4 standard deviations


# ---------------------------------------------------------------- what is on disk


def test_the_frames_are_those_of_the_clips(library, clips):
    assert len(library) == sum(LENGTHS)
    assert library.sources == tuple(f"clip {number}" for number in range(5))
    assert library.seconds == pytest.approx(sum(clip.seconds for clip in clips))
    everything = library._frames(torch.arange(len(library)))
    for name in ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w"):
        expected = np.concatenate([getattr(clip, name) for clip in clips])
        assert getattr(everything, name).dtype == torch.float32
        assert_allclose(getattr(everything, name), expected, rtol=1e-6, atol=1e-6)


def test_clips_are_matched_by_name_and_resampled(tmp_path, clips):
    other = clips[1].with_joints(clips[1].joint_names[::-1]).resampled(100.0)
    library = MotionLibrary.build(tmp_path / "mixed", [clips[1], other], fps=50.0)
    assert library.lengths.tolist() == [40, 40]
    frames = library._frames(torch.arange(80))
    assert_allclose(frames.joint_pos[:40], frames.joint_pos[40:], atol=1e-5)


def test_drawing_leaves_the_file_as_it_is(tmp_path, clips):
    library = MotionLibrary.build(tmp_path / "kept", clips, fps=50.0)
    before = (tmp_path / "kept" / "frames.f32").read_bytes()
    batch = library.sample_states(10, seeded())
    batch.rows.zero_()
    library._rows.zero_()
    assert (tmp_path / "kept" / "frames.f32").read_bytes() == before


def test_a_library_is_never_written_over_and_never_left_half_written(tmp_path, clips):
    MotionLibrary.build(tmp_path / "all", clips, fps=50.0)
    with pytest.raises(UserError, match="exists"):
        MotionLibrary.build(tmp_path / "all", clips, fps=50.0)
    for bad, message in (
        ([], "at least one clip"),
        ([clips[0], clips[1].with_joints(clips[1].joint_names[:3])], "lacks joint"),
    ):
        with pytest.raises(UserError, match=message):
            MotionLibrary.build(tmp_path / "bad", bad, fps=50.0)
    with pytest.raises(UserError, match="2 weights for 5 clips"):
        MotionLibrary.build(tmp_path / "bad", clips, fps=50.0, weights=[1.0, 2.0])
    assert [path.name for path in tmp_path.iterdir()] == ["all"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda about: about.pop("fps"), "library.json is damaged"),
        (lambda about: about.update(schema_version=9), "schema 9; this version reads 1"),
        (lambda about: about["clips"].pop(), "bytes, but library.json tells of"),
        (lambda about: about.update(clips=[]), "no frames"),
        (lambda about: about.update(weights=[-1.0] * 5), "weights of clips"),
    ],
)
def test_a_damaged_library_is_refused(tmp_path, clips, change, message):
    MotionLibrary.build(tmp_path / "all", clips, fps=50.0)
    path = tmp_path / "all" / "library.json"
    about = json.loads(path.read_text())
    change(about)
    path.write_text(json.dumps(about))
    with pytest.raises(UserError, match=message):
        MotionLibrary.open(tmp_path / "all")
    path.write_text("{")
    with pytest.raises(UserError, match="not valid JSON"):
        MotionLibrary.open(tmp_path / "all")
    with pytest.raises(UserError, match="no motion library"):
        MotionLibrary.open(Path(tmp_path / "none"))


# ---------------------------------------------------------------- draws


def test_transitions_are_a_frame_apart_and_never_cross_the_end_of_a_clip(library):
    before, after = library.sample_transitions(20_000, seeded())
    assert torch.equal(before.joint_pos[:, 0], after.joint_pos[:, 0])  # the same clip
    assert torch.equal(before.joint_pos[:, 1] + 1.0, after.joint_pos[:, 1])  # the next frame
    seen = {(int(clip), int(frame)) for clip, frame in before.joint_pos[:, :2]}
    assert seen == {(clip, frame) for clip, length in enumerate(LENGTHS) for frame in range(length - 1)}


def test_without_weights_every_transition_and_every_state_is_as_likely(library):
    places = library.sample_transition_places(70_000, seeded())
    counts = torch.bincount(places, minlength=len(library))
    possible = counts[counts > 0]
    assert len(possible) == sum(length - 1 for length in LENGTHS) == 70
    assert_allclose(possible, 1000.0, atol=160.0)  # 5 standard deviations
    states = library.sample_states(75_000, seeded()).joint_pos[:, :2].to(torch.int64)
    counts = torch.bincount(states[:, 0] * 100 + states[:, 1])
    assert_allclose(counts[counts > 0], 1000.0, atol=160.0)
    assert (counts > 0).sum() == 75


def test_weights_say_how_often_a_clip_is_drawn_from(library):
    weighted = library.weighted([1.0, 1.0, 5.0, 0.0, 2.0])
    clips = weighted.clip_of(weighted.sample_transition_places(40_000, seeded()))
    shares = torch.bincount(clips, minlength=5) / 40_000
    assert_allclose(shares, [0.25, 0.25, 0.0, 0.0, 0.5], atol=0.01)  # clip 2 has no transition
    states = weighted.sample_states(45_000, seeded()).joint_pos[:, 0].to(torch.int64)
    assert_allclose(torch.bincount(states, minlength=5) / 45_000, np.array([1, 1, 5, 0, 2]) / 9.0, atol=0.012)


def test_the_weights_are_kept_on_disk(tmp_path, clips):
    MotionLibrary.build(tmp_path / "all", clips, fps=50.0, weights=[0.0, 1.0, 0.0, 0.0, 3.0])
    library = MotionLibrary.open(tmp_path / "all")
    assert library.weights == (0.0, 1.0, 0.0, 0.0, 3.0)
    assert set(library.clip_of(library.sample_transition_places(100, seeded())).tolist()) == {1, 4}


def test_the_generator_decides(library):
    a, b, c = (library.sample_transition_places(50, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_where_there_are_no_transitions_that_is_said(tmp_path, clips):
    library = MotionLibrary.build(tmp_path / "single", [clips[2]], fps=50.0)
    assert len(library.sample_states(5, seeded())) == 5
    with pytest.raises(UserError, match="no transitions"):
        library.sample_transitions(5, seeded())
    with pytest.raises(UserError, match="0 or more"):
        library.weighted([-1.0])
