"""The evaluation scores, against numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consmimic.errors import UserError
from consmimic.evaluation.scores import (
    ETA,
    imitation_score,
    mean_air_time,
    mechanical_work,
    swing_durations,
    symmetry_score,
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
