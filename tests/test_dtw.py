"""Algorithm 2 against a transcription, against dtaidistance, and against the laws it must obey."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from dtaidistance import dtw_ndim
from numpy.testing import assert_allclose, assert_array_equal

from consmimic.errors import UserError
from consmimic.evaluation import dtw
from consmimic.evaluation.dtw import dtw_path, per_frame, relaxed_dtw, relaxed_dtw_batch


def algorithm_2(seq_1: np.ndarray, seq_2: np.ndarray, corner: float = np.inf) -> float:
    """The paper's listing, line by line, with any value in D[0, 0]."""
    n, m = len(seq_1), len(seq_2)
    D = np.empty((n + 1, m + 1))
    D[0, :] = 0
    D[:, 0] = np.inf
    D[0, 0] = corner
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            c = np.linalg.norm(seq_1[i - 1] - seq_2[j - 1])
            D[i, j] = c + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    return D[n, 1:].min()


def walk(seed: int, frames: int, d: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(frames, d)).cumsum(axis=0)


def circle(frames: int, period: int) -> np.ndarray:
    """A gait of whole-numbered period: frame t and frame t + period are the same numbers."""
    angle = 2 * np.pi * (np.arange(frames) % period) / period
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


SHAPES = [(1, 1, 1), (1, 7, 2), (7, 1, 2), (2, 2, 3), (9, 9, 1), (12, 30, 3), (30, 12, 3), (20, 21, 12)]


# ---------------------------------------------------------------- against others


@pytest.mark.parametrize(("n", "m", "d"), SHAPES)
def test_it_is_algorithm_2(n, m, d):
    policy, demonstration = walk(1, n, d), walk(2, m, d)
    assert_allclose(relaxed_dtw(policy, demonstration), algorithm_2(policy, demonstration), rtol=1e-13)


@pytest.mark.parametrize(("n", "m", "d"), SHAPES)
def test_the_corner_of_algorithm_2_decides_nothing(n, m, d):
    """Line 1 read literally leaves D[0, 0] = ∞; one might expect 0. The answer is the same, bit for bit."""
    policy, demonstration = walk(1, n, d), walk(2, m, d)
    assert algorithm_2(policy, demonstration, corner=np.inf) == algorithm_2(policy, demonstration, corner=0.0)


@pytest.mark.parametrize(("n", "m", "d"), SHAPES)
def test_it_agrees_with_dtaidistance_relaxed_on_the_demonstration_only(n, m, d):
    policy, demonstration = walk(3, n, d), walk(4, m, d)
    free_ends = (0, 0, m, m)  # begin and end of the first series; begin and end of the second
    peer = dtw_ndim.distance(policy, demonstration, psi=free_ends, inner_dist="euclidean", use_c=False)
    assert_allclose(relaxed_dtw(policy, demonstration), peer, rtol=1e-12)


def test_by_hand():
    """Costs |p − q| for p = 0 and 2: [3 1 5], [1 1 3]. Best: 0 with 1 (cost 1), then 2 with 1 (cost 1)."""
    assert relaxed_dtw([[0.0], [2.0]], [[3.0], [1.0], [5.0]]) == 2.0
    assert relaxed_dtw([[0.0, 0.0]], [[3.0, 4.0], [6.0, 8.0]]) == 5.0  # √(3² + 4²)
    assert relaxed_dtw([[1.0], [0.0]], [[0.0], [1.0]]) == 1.0  # time cannot run backwards


# ---------------------------------------------------------------- laws


def test_a_sequence_is_at_distance_0_from_itself():
    assert relaxed_dtw(walk(5, 40), walk(5, 40)) == 0.0


def test_speed_does_not_matter():
    demonstration = walk(6, 40)
    holds = np.random.default_rng(7).integers(1, 5, size=40)
    assert relaxed_dtw(np.repeat(demonstration, holds, axis=0), demonstration) == 0.0
    assert relaxed_dtw(demonstration, np.repeat(demonstration, holds, axis=0)) == 0.0


def test_slower_is_free_and_faster_costs_the_frames_in_between():
    """A line at one unit per frame: at double speed 10 frames have no counterpart, each 1 unit away."""
    line = np.arange(21.0)[:, None]
    assert relaxed_dtw(np.repeat(line, 2, axis=0), line) == 0.0
    assert relaxed_dtw(line[::2], line) == 10.0


def test_what_surrounds_the_matched_stretch_is_free():
    policy, demonstration = walk(8, 20), walk(9, 30)
    bare = relaxed_dtw(policy, demonstration)
    far = np.full((15, 3), 1e3)
    surrounded = relaxed_dtw(policy, np.concatenate([far, demonstration, far]))
    assert surrounded == bare > 0
    assert relaxed_dtw(demonstration[10:20], demonstration) == 0.0


def test_a_longer_demonstration_is_never_further_away():
    policy, demonstration = walk(10, 15), walk(11, 60)
    distances = [relaxed_dtw(policy, demonstration[:m]) for m in range(1, 61, 6)]
    assert all(later <= earlier for earlier, later in pairwise(distances))


def test_standing_still_on_one_demonstrated_pose_scores_perfectly_but_not_the_reverse():
    """A limit of the measure (docs/metrics.md): nothing asks the policy to cover the demonstration."""
    demonstration = walk(12, 40)
    still = np.repeat(demonstration[17:18], 25, axis=0)
    assert relaxed_dtw(still, demonstration) == 0.0
    assert relaxed_dtw(demonstration, still) > 1.0


def test_a_gait_longer_than_the_clip_needs_the_clip_looped():
    """Time only runs forward through the demonstration: it has no way back to the start of a cycle."""
    period = 20
    policy = circle(65, period)[5:]  # three cycles, starting at another phase
    assert relaxed_dtw(policy, circle(period, period)) > 10.0
    assert relaxed_dtw(policy, circle(60 + period, period)) == 0.0


def test_mean_distance_grows_with_noise():
    demonstration = walk(13, 50)
    noise = np.random.default_rng(14).normal(size=(32, 50, 3))
    means = [relaxed_dtw_batch(demonstration + s * noise, demonstration).mean() for s in (0.0, 0.1, 0.3, 1.0, 3.0)]
    assert means[0] == 0.0
    assert all(more > less for less, more in pairwise(means))


def test_it_scales_with_the_values_and_ignores_where_the_origin_is():
    policy, demonstration = walk(15, 20), walk(16, 25)
    distance = relaxed_dtw(policy, demonstration)
    assert relaxed_dtw(4 * policy, 4 * demonstration) == 4 * distance
    shift = np.array([8.0, -4.0, 2.0])
    assert_allclose(relaxed_dtw(policy + shift, demonstration + shift), distance)


def test_a_motion_and_its_mirror_image_are_equally_far_both_ways():
    """A mirror keeps lengths and undoes itself: DTW(τ, Lτ) = DTW(Lτ, LLτ). Eq. 13 has no asymmetry."""
    motion = walk(17, 30)
    mirrored = motion * [1, -1, 1]
    assert relaxed_dtw(motion, mirrored) == relaxed_dtw(mirrored, motion) > 0


@pytest.mark.parametrize("window", [50, 100, 200])
def test_a_symmetric_gait_is_not_its_own_mirror_image_within_one_window(window):
    """A limit of Eq. 13 (docs/metrics.md): half a cycle of the mirror image is missing at its end."""
    left = 0.4 * np.sin(2 * np.pi * np.arange(window + 25)[:, None] / 50 + [0.0, 0.7, 1.4])
    right = -left  # half a cycle of 50 frames later
    gait, mirrored = np.concatenate([left, right], axis=1), np.concatenate([right, left], axis=1)
    assert_allclose(relaxed_dtw(gait[:window], mirrored[:window]), 18.58, atol=0.01)
    assert_allclose(relaxed_dtw(gait[:window], mirrored), 0.0, atol=1e-10)


# ---------------------------------------------------------------- batches


@pytest.mark.parametrize("group", [1, 20, 64, 10**6])
def test_the_batch_equals_one_at_a_time_bit_for_bit_however_it_is_grouped(monkeypatch, group):
    policies, demonstration = np.stack([walk(seed, 20) for seed in range(9)]), walk(50, 33)
    one_by_one = [relaxed_dtw(policy, demonstration) for policy in policies]
    monkeypatch.setattr(dtw, "DIAGONAL_ELEMENTS", group)
    assert_array_equal(relaxed_dtw_batch(policies, demonstration), one_by_one)


@pytest.mark.parametrize("group", [1, 64, 10**6])
def test_each_sequence_may_have_its_own_demonstration(monkeypatch, group):
    policies = np.stack([walk(seed, 20) for seed in range(5)])
    mirrored = policies * [1, -1, 1]
    one_by_one = [relaxed_dtw(p, q) for p, q in zip(policies, mirrored, strict=True)]
    monkeypatch.setattr(dtw, "DIAGONAL_ELEMENTS", group)
    assert_array_equal(relaxed_dtw_batch(policies, mirrored), one_by_one)


@pytest.mark.parametrize("padding", [0.0, np.nan, np.inf, -1e300])
def test_episodes_of_different_length_ignore_their_padding(padding):
    lengths = np.array([1, 7, 20, 13])
    policies, demonstration = np.stack([walk(seed, 20) for seed in range(4)]), walk(51, 25)
    expected = [relaxed_dtw(p[:length], demonstration) for p, length in zip(policies, lengths, strict=True)]
    for policy, length in zip(policies, lengths, strict=True):
        policy[length:] = padding
    assert_array_equal(relaxed_dtw_batch(policies, demonstration, lengths), expected)


def test_inputs_are_left_alone():
    policies, demonstration = np.ones((2, 5, 3)), np.zeros((4, 3))
    policies.setflags(write=False)
    demonstration.setflags(write=False)
    assert_allclose(relaxed_dtw_batch(policies, demonstration), 5 * np.sqrt(3))


def test_per_frame_is_the_distance_over_the_policys_frames():
    offset = walk(18, 40) + 1000 * np.eye(3)[0]  # so far away that all pairs cost about 1000
    assert_allclose(per_frame(relaxed_dtw(offset, walk(18, 40)), 40), 1000, rtol=0.05)
    assert_array_equal(per_frame([6.0, 6.0], [3, 2]), [2.0, 3.0])


# ---------------------------------------------------------------- the path


@pytest.mark.parametrize(("n", "m", "d"), SHAPES)
def test_the_path_costs_the_distance_and_moves_by_single_steps(n, m, d):
    policy, demonstration = walk(19, n, d), walk(20, m, d)
    path = dtw_path(policy, demonstration)
    cost = np.linalg.norm(policy[path[:, 0]] - demonstration[path[:, 1]], axis=-1).sum()
    assert_allclose(cost, relaxed_dtw(policy, demonstration), rtol=1e-12)
    assert {tuple(step) for step in np.diff(path, axis=0).tolist()} <= {(1, 0), (0, 1), (1, 1)}
    assert (path[0, 0], path[-1, 0]) == (0, n - 1)


def test_the_path_finds_the_stretch_it_was_cut_from():
    demonstration = walk(21, 60)
    path = dtw_path(demonstration[20:45], demonstration)
    assert_array_equal(path, np.stack([np.arange(25), np.arange(20, 45)], axis=-1))


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("policy", "demonstration", "message"),
    [
        (np.zeros((0, 3)), np.zeros((4, 3)), r"policy has shape \(0, 3\)"),
        (np.zeros((4, 3)), np.zeros((0, 3)), r"demonstration has shape \(0, 3\)"),
        (np.zeros((4, 0)), np.zeros((4, 0)), r"policy has shape \(4, 0\)"),
        (np.zeros(4), np.zeros((4, 1)), r"policy has shape \(4,\)"),
        (np.zeros((4, 3)), np.zeros((4, 2)), "3 values per frame, the demonstration has 2"),
        (np.full((4, 3), np.nan), np.zeros((4, 3)), "policy holds NaN or infinity"),
        (
            np.zeros((4, 3)),
            np.array([[0, 0, 0], [0, np.inf, 0]]),
            r"demonstration holds NaN .* index \(1, 1\)",
        ),
    ],
)
def test_bad_sequences_are_named(policy, demonstration, message):
    with pytest.raises(UserError, match=message):
        relaxed_dtw(policy, demonstration)
    with pytest.raises(UserError, match=message):
        dtw_path(policy, demonstration)


def test_bad_batches_are_named():
    policies, demonstration = np.zeros((2, 5, 3)), np.zeros((4, 3))
    with pytest.raises(UserError, match="policies has shape"):
        relaxed_dtw_batch(policies[:0], demonstration)
    with pytest.raises(UserError, match="2 policies but 3 demonstrations"):
        relaxed_dtw_batch(policies, np.zeros((3, 4, 3)))
    for lengths in ([5], [0, 5], [5, 6], [1.5, 2.0]):
        with pytest.raises(UserError, match="lengths must be 2 whole numbers from 1 to 5"):
            relaxed_dtw_batch(policies, demonstration, lengths)
    policies[1, 2, 0] = np.nan
    with pytest.raises(UserError, match=r"\(1, 2\)"):
        relaxed_dtw_batch(policies, demonstration, [5, 3])
    with pytest.raises(UserError, match="frames must be >= 1"):
        per_frame(1.0, 0)
