"""The evaluation scores, against numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consmimic.errors import UserError
from consmimic.evaluation.scores import (
    ETA,
    circular_median,
    imitation_score,
    mean_air_time,
    mechanical_work,
    phase_difference,
    swing_durations,
    symmetry_score,
    touch_downs,
)


def feet(*rows: str) -> np.ndarray:
    """One string per foot, '#' on the ground and '.' in the air -> (T, feet)."""
    return np.array([[mark == "#" for mark in row] for row in rows]).T


# ---------------------------------------------------------------- Eqs. 12 and 13


def test_eta_is_the_papers():
    assert dict(ETA) == {"manipulation": 20.0, "locomotion": 100.0}


@pytest.mark.parametrize(("distance", "score"), [(0, 1.0), (5, 0.75), (20, 0.0), (21, 0.0), (1e9, 0.0)])
def test_eq12_falls_from_1_to_0_at_eta_and_stays_there(distance, score):
    assert imitation_score(distance, ETA["manipulation"]) == score


def test_eq12_takes_many_distances():
    assert_array_equal(imitation_score([[0, 25], [50, 200]], ETA["locomotion"]), [[1, 0.75], [0.5, 0]])


def test_eq13_averages_the_distances_to_the_mirror_images():
    assert symmetry_score([30], 100) == 0.7
    assert symmetry_score([10, 20, 60], 100) == 0.7
    assert_allclose(symmetry_score([[10, 0], [20, 0], [60, 300]], 100), [0.7, 0.0])


def test_eq13_cuts_off_the_mean_and_not_each_mirror():
    """Mean of 0 and 160 over η = 100 is 0.8; cutting each mirror at 1 first would leave 0.5."""
    assert_allclose(symmetry_score([0, 160], 100), 0.2)


# ---------------------------------------------------------------- W_mech


def test_work_by_hand():
    """Two joints, two steps of 0.5 s: (2·3 + 1·(−4)) · 0.5 + (0 + 5·2) · 0.5 = 1 + 5 J."""
    torque, velocity = [[2, 1], [7, 5]], [[3, -4], [0, 2]]
    assert mechanical_work(torque, velocity, 0.5) == 6.0
    assert mechanical_work(torque, velocity, 0.5, absolute=True) == 10.0


def test_work_is_the_energy_a_motor_gives_to_a_mass_and_takes_back():
    """Spinning inertia 2 up to 3 rad/s takes I ω²/2 = 9 J; braking returns them, or costs 9 J more."""
    inertia, t = 2.0, np.linspace(0, 2, 20_001)
    velocity = np.where(t < 1, 3 * t, 3 * (2 - t))[:, None]
    torque = np.where(t < 1, 3.0, -3.0)[:, None] * inertia
    dt = t[1]
    assert_allclose(mechanical_work(torque[t < 1], velocity[t < 1], dt), 9, rtol=1e-3)
    assert_allclose(mechanical_work(torque, velocity, dt), 0, atol=1e-2)
    assert_allclose(mechanical_work(torque, velocity, dt, absolute=True), 18, rtol=1e-3)


def test_work_of_many_episodes_and_the_zeros_after_their_end():
    generator = np.random.default_rng(0)
    torque, velocity = generator.normal(size=(2, 50, 4, 12))  # (T, N, joints)
    torque[30:, 2] = 0.0
    work = mechanical_work(torque, velocity, 0.02)
    assert work.shape == (4,)
    assert_allclose(work[2], mechanical_work(torque[:30, 2], velocity[:30, 2], 0.02))


# ---------------------------------------------------------------- T_air


def test_only_swings_with_both_ends_count():
    contact = feet(
        "..##...##.#..",  # cut at both ends; 3 and 1 frames in the air
        "#....########",  # 4
    )
    assert_allclose(swing_durations(contact, 0.1), [0.3, 0.1, 0.4])
    assert_allclose(mean_air_time(contact, 0.1), 0.8 / 3)


def test_each_step_weighs_the_same_whichever_foot_takes_it():
    contact = feet("#.#.#.#", "#.....#")  # three swings of 1 and one of 5 frames
    assert_allclose(mean_air_time(contact, 0.02), 0.02 * (1 + 1 + 1 + 5) / 4)


def test_a_trot_with_a_known_duty_factor():
    """Period 0.5 s, 40 % of it in the air, diagonal pairs in antiphase."""
    phase = (np.arange(500) * 0.01 / 0.5)[:, None] + [0.0, 0.5, 0.5, 0.0]
    assert_allclose(mean_air_time(np.round(phase % 1, 6) < 0.6, 0.01), 0.2)


@pytest.mark.parametrize("contact", [feet("####"), feet("...."), feet("##.."), feet("..##"), np.zeros((0, 4), bool)])
def test_without_a_completed_step_there_is_no_air_time(contact):
    assert np.isnan(mean_air_time(contact, 0.02))


# ---------------------------------------------------------------- which feet step together


def foot(marks: str) -> np.ndarray:
    return feet(marks)[:, 0]


def test_a_foot_comes_down_where_it_was_in_the_air_before():
    assert touch_downs(foot("##..##.#...#")).tolist() == [4, 7, 11]
    assert touch_downs(foot("..##")).tolist() == [2]  # in the air from the start on
    assert (
        touch_downs(foot("####")).tolist()
        == touch_downs(foot("....")).tolist()
        == touch_downs(foot("##..")).tolist()
        == []
    )


def test_a_bounce_is_no_touch_down():
    assert touch_downs(foot("#...#.##...#"), shortest_swing=2).tolist() == [4, 11]
    assert touch_downs(foot("#...#.##...#"), shortest_swing=3).tolist() == [4, 11]
    assert touch_downs(foot("#...#.##...#"), shortest_swing=4).tolist() == []


def steps(offset: int, period: int = 20, in_air: int = 8, frames: int = 200) -> np.ndarray:
    """A foot that comes down every ``period`` frames, first at ``offset``."""
    return (np.arange(frames) - offset) % period < period - in_air


@pytest.mark.parametrize(
    ("late", "apart"),
    [(0, 0.0), (1, 0.05), (5, 0.25), (10, 0.5), (15, 0.25), (19, 0.05)],  # a lead counts as much as a lag
)
def test_phase_difference_of_feet_that_step_at_the_same_rate(late, apart):
    assert phase_difference(steps(7), steps(7 + late)) == pytest.approx(apart)
    assert phase_difference(steps(7 + late), steps(7)) == pytest.approx(apart)


def test_feet_that_step_together_but_not_to_the_frame_are_near_0_and_not_near_a_half():
    """Touch-downs of b now just before, now just after a's: phases 0.95 and 0.05 are neighbours on the circle."""
    b = np.zeros(200, dtype=bool)
    for number in range(10):
        down = 7 + 20 * number + (-1 if number % 2 else 1)
        b[down : down + 12] = True
    assert phase_difference(steps(7), b) == pytest.approx(0.05)


def test_a_single_stumble_does_not_move_the_phase_difference():
    stumbled = steps(7)
    stumbled[87:93] = False  # one touch-down 6 frames late
    assert phase_difference(steps(7), stumbled) == 0.0


def test_phase_difference_follows_a_cycle_that_changes_its_length():
    """b in the middle between two touch-downs of a, whether these are 16, 20 or 24 frames apart."""
    downs = np.cumsum([4, 16, 20, 24, 16, 24])
    a, b = np.zeros(120, dtype=bool), np.zeros(120, dtype=bool)
    a[downs] = True
    b[(downs[:-1] + downs[1:]) // 2] = True
    assert phase_difference(a, b) == 0.5


def test_bounces_would_count_as_steps():
    bounced = steps(7)
    bounced[8::20] = False  # a frame in the air right after every touch-down
    assert phase_difference(steps(7), bounced, shortest_swing=3) == 0.0
    assert phase_difference(bounced, steps(12), shortest_swing=3) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("a", "b"),
    [("#.#.#.#", "#######"), ("#######", "#.#.#.#"), ("#.#.##", "#.#.#."), ("#.#.#.#........", "#........#.#.#.")],
)
def test_without_three_steps_each_or_a_common_cycle_there_is_no_phase_difference(a, b):
    assert np.isnan(phase_difference(foot(a), foot(b)))


def test_circular_median_goes_around_the_circle():
    assert circular_median([0.98, 0.02, 0.01]) == 0.01
    assert circular_median([0.9, 0.95, 0.1, 0.4, 0.0]) == 0.0
    assert circular_median([0.3]) == 0.3


def test_circular_median_of_phases_within_half_a_circle_is_the_median_wherever_they_lie():
    phases = np.random.default_rng(0).uniform(0.0, 0.45, 11)
    for shift in (0.0, 0.3, 0.8):
        assert_allclose(circular_median((phases + shift) % 1.0), (np.median(phases) + shift) % 1.0)


# ---------------------------------------------------------------- bad input


def test_bad_input_is_named():
    for distance in (-1, np.nan, []):
        with pytest.raises(UserError, match="distances must be finite and >= 0"):
            imitation_score(distance, 20)
    for eta in (0, -1, np.nan):
        with pytest.raises(UserError, match="eta must be finite and > 0"):
            imitation_score(1, eta)
    with pytest.raises(UserError, match="one distance for each mirror"):
        symmetry_score(3.0, 100)
    with pytest.raises(UserError, match="expected one"):
        mechanical_work(np.zeros((5, 12)), np.zeros((5, 11)), 0.02)
    with pytest.raises(UserError, match="NaN"):
        mechanical_work(np.full((5, 12), np.nan), np.zeros((5, 12)), 0.02)
    with pytest.raises(UserError, match="timestep must be finite and > 0"):
        mechanical_work(np.zeros((5, 12)), np.zeros((5, 12)), 0)
    with pytest.raises(UserError, match="expected booleans"):
        mean_air_time(np.ones((5, 4)), 0.02)
    with pytest.raises(UserError, match=r"expected booleans \(T,\)"):
        phase_difference(np.ones((5, 4), dtype=bool), np.ones(5, dtype=bool))
    with pytest.raises(UserError, match="shortest_swing must be finite and > 0"):
        touch_downs(foot("#.#"), shortest_swing=0)
