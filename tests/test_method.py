"""The paper's equations: numbers worked by hand, and laws."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch
from torch import Tensor, tensor
from torch.testing import assert_close

from consmimic.method.advantages import (
    combined_advantage,
    discounted_return,
    generalized_advantages,
    standardize,
)
from consmimic.method.constraint import (
    Constraint,
    ConstraintConfig,
    best_so_far,
    clipped,
    has_plateaued,
    relative_slack,
    smoothed,
    step_multiplier,
    task_value,
    threshold,
)
from consmimic.method.fixed_weight import multiplier_of_share, weighted_reward
from consmimic.method.tracking import nearest_sign, tracking_reward


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---------------------------------------------------------------- Eq. 1: tracking


def test_eq1_sums_weighted_squared_distances_before_the_exponential():
    state = {"position": tensor([[3.0, 4.0], [1.0, 1.0]]), "turn": tensor([[0.5], [2.0]])}
    reference = {"position": tensor([[0.0, 0.0], [1.0, 1.0]]), "turn": tensor([[0.0], [2.0]])}
    reward = tracking_reward(state, reference, {"position": 0.04, "turn": 4.0})
    assert_close(reward, tensor([math.exp(-2.0), 1.0]))  # 0.04 · (3² + 4²) + 4 · 0.5² = 2


def test_eq1_reads_only_the_subgroups_that_have_a_weight():
    state = {"hand": tensor([[1.0]]), "elbow": tensor([[9.0]])}
    reference = {"hand": tensor([[0.0]]), "elbow": tensor([[0.0]])}
    assert_close(tracking_reward(state, reference, {"hand": 1.0}), tensor([math.exp(-1.0)]))


def test_eq1_is_the_product_over_subgroups_and_falls_with_distance():
    state = {"a": random(50, 3, seed=1), "b": random(50, 2, seed=2)}
    reference = {"a": random(50, 3, seed=3), "b": random(50, 2, seed=4)}
    both = tracking_reward(state, reference, {"a": 0.3, "b": 0.7})
    alone = [tracking_reward(state, reference, {name: weight}) for name, weight in (("a", 0.3), ("b", 0.7))]
    assert_close(both, alone[0] * alone[1])
    assert ((both > 0) & (both < 1)).all()
    farther = {name: reference[name] + 1.1 * (state[name] - reference[name]) for name in state}
    assert (tracking_reward(farther, reference, {"a": 0.3, "b": 0.7}) < both).all()


def test_nearest_sign_turns_the_quaternions_on_the_far_side_only():
    reference = tensor([[1.0, 0.0, 0.0, 0.0], [0.6, 0.0, 0.8, 0.0], [0.6, 0.0, 0.8, 0.0]])
    quaternion = tensor([[-0.8, 0.6, 0.0, 0.0], [0.8, 0.0, -0.59, 0.1], [0.0, 1.0, 0.0, 0.0]])
    expected = tensor([[0.8, -0.6, 0.0, 0.0], [0.8, 0.0, -0.59, 0.1], [0.0, 1.0, 0.0, 0.0]])
    assert_close(nearest_sign(quaternion, reference), expected)


def test_nearest_sign_makes_eq1_blind_to_the_sign_of_a_quaternion():
    q = torch.nn.functional.normalize(random(100, 4, seed=5), dim=-1)
    reference = torch.nn.functional.normalize(random(100, 4, seed=6), dim=-1)
    near, far = nearest_sign(q, reference), nearest_sign(-q, reference)
    assert_close(near, far)
    assert (
        (near - reference).norm(dim=-1) <= torch.minimum((q - reference).norm(dim=-1), (q + reference).norm(dim=-1))
    ).all()


# ---------------------------------------------------------------- Eq. 4: returns


def test_eq4_discounts_by_powers_of_gamma():
    assert_close(discounted_return(tensor([[1.0], [2.0], [4.0]]), 0.5), tensor([1.0 + 1.0 + 1.0]))


def test_eq4_of_the_summed_reward_is_the_sum_of_both_streams():
    task, style = random(40, 7, seed=7), random(40, 7, seed=8)
    assert_close(discounted_return(task + style, 0.97), discounted_return(task, 0.97) + discounted_return(style, 0.97))


def test_eq4_of_a_constant_is_the_geometric_series():
    steps, gamma = 30, 0.9
    assert_close(
        discounted_return(torch.full((steps, 2), 3.0, dtype=torch.float64), gamma),
        torch.full((2,), 3.0 * (1 - gamma**steps) / (1 - gamma), dtype=torch.float64),
    )


# ---------------------------------------------------------------- GAE


def rollout(steps: int = 12, envs: int = 5) -> dict[str, Tensor]:
    dones = torch.rand((steps, envs), generator=torch.Generator().manual_seed(9)) < 0.2
    return {
        "rewards": random(steps, envs, seed=10),
        "values": random(steps, envs, seed=11),
        "last_values": random(envs, seed=12),
        "dones": dones.to(torch.uint8),  # as rsl_rl stores them
    }


def gae_by_definition(
    rewards: Tensor, values: Tensor, last_values: Tensor, dones: Tensor, gamma: float, gae_lambda: float
) -> np.ndarray:
    """Σ_l (γλ)^l δ_{t+l}, up to the end of the episode: the sum that the recursion is said to make."""
    r, v, d = rewards.tolist(), [*values.tolist(), last_values.tolist()], dones.tolist()
    steps, envs = len(r), len(r[0])
    out = np.zeros((steps, envs))
    for n in range(envs):
        for t in range(steps):
            for k in range(t, steps):
                future = 0.0 if d[k][n] else v[k + 1][n]
                out[t, n] += (gamma * gae_lambda) ** (k - t) * (r[k][n] + gamma * future - v[k][n])
                if d[k][n]:
                    break
    return out


@pytest.mark.parametrize(("gamma", "gae_lambda"), [(0.99, 0.95), (0.9, 0.5), (1.0, 1.0), (0.0, 0.7)])
def test_gae_is_the_discounted_sum_of_temporal_differences_within_an_episode(gamma, gae_lambda):
    data = rollout()
    assert 0 < data["dones"].sum() < data["dones"].numel()
    expected = gae_by_definition(**data, gamma=gamma, gae_lambda=gae_lambda)
    assert_close(generalized_advantages(**data, gamma=gamma, gae_lambda=gae_lambda), torch.from_numpy(expected))


def test_gae_with_lambda_1_is_the_monte_carlo_return_less_the_value():
    data = rollout()
    data["dones"] = torch.zeros_like(data["dones"])
    gamma, steps = 0.95, len(data["rewards"])
    advantages = generalized_advantages(**data, gamma=gamma, gae_lambda=1.0)
    for t in range(steps):
        measured = discounted_return(data["rewards"][t:], gamma) + gamma ** (steps - t) * data["last_values"]
        assert_close(advantages[t], measured - data["values"][t])


def test_gae_with_lambda_0_is_the_temporal_difference():
    data = rollout()
    alive = 1.0 - data["dones"].double()
    next_values = torch.vstack([data["values"][1:], data["last_values"]])
    differences = data["rewards"] + 0.9 * alive * next_values - data["values"]
    assert_close(generalized_advantages(**data, gamma=0.9, gae_lambda=0.0), differences)


def test_gae_lets_nothing_across_the_end_of_an_episode():
    data = rollout(steps=6, envs=1)
    data["dones"] = tensor([[0], [0], [1], [0], [0], [0]], dtype=torch.uint8)
    before = generalized_advantages(**data, gamma=0.99, gae_lambda=0.95)
    changed = data | {"rewards": data["rewards"].clone(), "values": data["values"].clone()}
    changed["rewards"][3:] += 100.0
    changed["values"][3:] -= 50.0
    after = generalized_advantages(**changed, gamma=0.99, gae_lambda=0.95)
    assert_close(after[:3], before[:3])
    assert (after[3:] != before[3:]).all()


def test_gae_of_a_perfect_critic_is_zero():
    rewards, gamma = random(20, 3, seed=13), 0.9
    values = torch.stack([discounted_return(rewards[t:], gamma) for t in range(20)])
    advantages = generalized_advantages(
        rewards, values, torch.zeros(3, dtype=torch.float64), torch.zeros(20, 3), gamma, 0.8
    )
    assert_close(advantages, torch.zeros_like(advantages), atol=1e-12, rtol=0)


# ---------------------------------------------------------------- Eq. 8: one advantage of two


def test_standardize_gives_mean_0_and_deviation_1_whatever_scale_and_offset():
    a = random(24, 16, 1, seed=14)
    assert_close(standardize(a).mean().item(), 0.0, atol=1e-12, rtol=0)
    assert_close(standardize(a).std().item(), 1.0, atol=1e-7, rtol=0)
    assert_close(standardize(3.0 * a - 7.0), standardize(a))


def test_standardize_of_a_stream_that_never_differs_is_zero_not_nan():
    assert_close(standardize(torch.full((4, 3), 2.5)), torch.zeros(4, 3))


def test_eq8_weighs_task_three_to_one_at_lambda_ln3():  # σ(ln 3) = 3/4
    a = tensor([-1.0, 1.0]) / math.sqrt(2.0)
    assert_close(combined_advantage(tensor([-1.0, 1.0]), tensor([1.0, -1.0]), tensor(math.log(3.0))), 0.5 * a)


def test_eq8_with_lambda_0_is_the_plain_mean_of_both():
    task, style = random(30, seed=15), random(30, seed=16)
    mixed = combined_advantage(task, style, tensor(0.0, dtype=torch.float64))
    assert_close(mixed, 0.5 * (standardize(task) + standardize(style)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_eq8_in_the_warm_up_is_the_task_alone_to_the_bit(dtype):
    task, style = random(24, 64, 1, seed=17).to(dtype), random(24, 64, 1, seed=18).to(dtype)
    warm_up = combined_advantage(task, style, tensor(math.inf, dtype=dtype))
    assert torch.equal(warm_up, (task - task.mean()) / (task.std() + 1e-8))  # as rsl_rl's PPO
    assert torch.equal(combined_advantage(task, style, tensor(-math.inf, dtype=dtype)), standardize(style))


# ---------------------------------------------------------------- the baselines ω^s


def test_weighted_reward_gives_style_its_share_of_the_total_weight():
    task, style = tensor([1.0, -2.0]), tensor([0.5, 1.0])
    assert_close(weighted_reward(task, style, 0.2), tensor([0.9, -1.4]))
    assert torch.equal(weighted_reward(task, style, 0.0), task)
    assert torch.equal(weighted_reward(task, style, 1.0), style)


def test_multiplier_of_share_undoes_the_sigmoid():
    for share in (0.05, 0.2, 0.5, 0.9):
        assert_close(torch.sigmoid(tensor(multiplier_of_share(share))).item(), 1.0 - share)
    assert multiplier_of_share(0.25) == pytest.approx(math.log(3.0))
    assert multiplier_of_share(0.0) == math.inf
    assert multiplier_of_share(1.0) == -math.inf


# ---------------------------------------------------------------- Eqs. 5, 7, 9: the constraint's functions


@pytest.mark.parametrize(
    ("best", "alpha", "wanted"),
    [(10.0, 0.9, 9.0), (10.0, 1.0, 10.0), (10.0, 0.0, 0.0), (-10.0, 0.9, -11.0), (0.0, 0.5, 0.0)],
)
def test_eq5_threshold_leaves_the_share_1_minus_alpha_of_the_best(best, alpha, wanted):
    assert threshold(best, alpha) == pytest.approx(wanted)


def test_eq5_threshold_never_asks_for_more_than_the_best():
    for best in (-3.0, -0.01, 0.0, 0.01, 3.0):
        assert all(threshold(best, alpha) <= best for alpha in (0.0, 0.3, 0.9, 1.0))
        assert threshold(best, 1.0) == best


@pytest.mark.parametrize("best", [12.0, -7.0, 0.25])
def test_eq7_lambda_goes_down_the_gradient_of_its_objective(best):
    value, alpha, rate = 0.8 * best + 0.3, 0.9, 0.05
    multiplier = tensor(1.3, dtype=torch.float64, requires_grad=True)
    objective = multiplier * (value - threshold(best, alpha)) / abs(best)
    (gradient,) = torch.autograd.grad(objective, multiplier)
    stepped = step_multiplier(1.3, relative_slack(value, best, alpha), rate, -10.0, 10.0)
    assert stepped == pytest.approx(1.3 - rate * gradient.item())
    assert gradient != 0


def test_eq7_lambda_rises_when_the_task_falls_short_and_falls_while_there_is_slack():
    assert relative_slack(8.0, 10.0, 0.9) == pytest.approx(-0.1)
    assert relative_slack(9.5, 10.0, 0.9) == pytest.approx(0.05)
    assert relative_slack(9.0, 10.0, 0.9) == pytest.approx(0.0)
    assert step_multiplier(0.0, -0.1, 2.0, -3.0, 5.0) == pytest.approx(0.2)
    assert step_multiplier(0.0, 0.05, 2.0, -3.0, 5.0) == pytest.approx(-0.1)


def test_relative_slack_does_not_depend_on_the_units_of_the_reward():
    assert relative_slack(850.0, 1000.0, 0.9) == pytest.approx(relative_slack(0.85, 1.0, 0.9))


def test_relative_slack_is_finite_when_the_best_is_zero():
    assert math.isfinite(relative_slack(0.5, 0.0, 0.9))


def test_lambda_may_be_negative_and_stays_within_its_bound():
    assert step_multiplier(0.1, 0.5, 1.0, -3.0, 5.0) == pytest.approx(-0.4)
    assert step_multiplier(-2.9, 0.5, 1.0, -3.0, 5.0) == -3.0
    assert step_multiplier(4.9, -0.5, 1.0, -3.0, 5.0) == 5.0


@pytest.mark.parametrize(("value", "kept"), [(0.2, 0.2), (-0.2, -0.2), (3.0, 1.0), (-3.0, -1.0), (math.inf, 1.0)])
def test_clipped_keeps_within_the_bound(value, kept):
    assert clipped(value, -1.0, 1.0) == kept


def test_eq9_only_ever_rises():
    assert best_so_far(3.0, 2.0) == 3.0
    assert best_so_far(3.0, 4.0) == 4.0
    assert best_so_far(-3.0, -2.0) == -2.0


def test_smoothed_starts_with_the_first_value_and_forgets_geometrically():
    assert smoothed(None, 8.0, 0.25) == 8.0
    assert smoothed(8.0, 4.0, 0.25) == 7.0
    assert smoothed(8.0, 4.0, 1.0) == 4.0
    value = 1.0
    for _ in range(10):
        value = smoothed(value, 0.0, 0.25)
    assert value == pytest.approx(0.75**10)


def test_plateau_is_a_rise_below_the_tolerance_over_the_whole_history():
    assert has_plateaued((100.0, 90.0, 100.4), 0.005)
    assert not has_plateaued((100.0, 100.3, 100.6), 0.005)
    assert has_plateaued((5.0, 4.0), 0.005)  # falling is no reason to go on
    assert not has_plateaued((-10.0, -9.0), 0.005)
    assert has_plateaued((-10.0, -9.99), 0.005)


# ---------------------------------------------------------------- v^g, measured


def test_task_value_of_episodes_that_only_time_out_is_the_geometric_series():
    rewards, nobody = torch.full((24, 8), 0.02), torch.zeros(24, 8, dtype=torch.bool)
    steps = torch.full((5000, 1), 0.02, dtype=torch.float64)
    assert task_value(rewards, nobody, 0.99) == pytest.approx(discounted_return(steps, 0.99).item(), rel=1e-6)
    assert task_value(rewards, nobody, 0.99) == pytest.approx(2.0)


def test_task_value_is_in_proportion_to_the_reward():
    rewards, failed = random(50, 4, seed=19).abs().float(), random(50, 4, seed=20) > 1.5
    assert failed.any()
    assert task_value(3.0 * rewards, failed, 0.97) == pytest.approx(3.0 * task_value(rewards, failed, 0.97), rel=1e-5)


def test_task_value_of_robots_that_fail_by_chance_is_the_return_of_their_episodes():
    gamma, rate, steps, robots = 0.95, 0.1, 150, 20_000
    generator = torch.Generator().manual_seed(21)
    failed = torch.rand((steps, robots), generator=generator) < rate
    rewards = torch.rand((steps, robots), generator=generator)
    # The first episode of every robot: what lies after its failure is another episode's.
    ended_before = torch.cat([torch.zeros(1, robots), failed[:-1].float().cumsum(dim=0)]) > 0
    returns = discounted_return(rewards * ~ended_before, gamma)
    standard_error = (returns.std() / math.sqrt(robots)).item()
    assert abs(task_value(rewards, failed, gamma) - returns.mean().item()) < 4.0 * standard_error
    assert standard_error < 0.01 * returns.mean()


def test_task_value_falls_when_robots_fail_more_often():
    rewards = torch.ones(20, 10)
    values = []
    for failures in (0, 1, 5, 20):
        failed = torch.zeros(20, 10, dtype=torch.bool)
        failed[:failures, 0] = True
        values.append(task_value(rewards, failed, 0.99))
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == 4


# ---------------------------------------------------------------- Algorithm 1: the constraint over iterations

QUICK = ConstraintConfig(
    alpha=0.9,
    margin=0.0,
    multiplier_init=1.0,
    multiplier_lr=1.0,
    multiplier_damping=0.0,
    slack_limit=1.0,
    multiplier_min=-3.0,
    multiplier_max=3.0,
    value_smoothing=1.0,
    warmup_min_iterations=3,
    warmup_max_iterations=20,
    plateau_window=2,
    plateau_tolerance=0.01,
)


def after(values: list[float], **changes: object) -> Constraint:
    constraint = Constraint(config=replace(QUICK, **changes))  # type: ignore[arg-type]
    for value in values:
        constraint = constraint.step(value)
    return constraint


def joint(values: list[float], **changes: object) -> Constraint:
    """After a warm-up of one iteration that leaves v^g* = 10."""
    return after([10.0, *values], warmup_min_iterations=1, warmup_max_iterations=1, **changes)


def test_in_the_warm_up_only_the_task_counts():
    constraint = after([1.0, 2.0, 3.0, 4.0])
    assert constraint.best_value is None
    assert constraint.warmup_end is None
    assert constraint.effective_multiplier == math.inf
    assert constraint.value == 4.0


def test_style_may_have_a_share_of_the_warm_up_and_goes_on_from_there():
    in_warmup = after([1.0, 2.0], warmup_style=0.2)
    assert in_warmup.best_value is None
    assert 1.0 / (1.0 + math.exp(-in_warmup.effective_multiplier)) == pytest.approx(0.8)
    assert joint([], warmup_style=0.2).multiplier == 1.0  # QUICK's multiplier_init: less than σ⁻¹(0.8) = 1.39
    assert joint([], warmup_style=0.5).multiplier == pytest.approx(0.0)  # no jump back to the task


def test_the_warm_up_ends_on_a_plateau_and_seeds_the_best_value():
    rising = after([2.0, 4.0, 6.0, 8.0, 8.05])
    assert rising.best_value is None  # 6 → 8.05 over the window
    constraint = rising.step(8.06)  # 8 → 8.06: below 1 %
    assert constraint.warmup_end == constraint.iteration == 6
    assert constraint.best_value == 8.06
    assert constraint.multiplier == constraint.effective_multiplier == 1.0
    assert constraint.warmup_values == ()


def test_the_warm_up_lasts_its_least_number_of_iterations_and_a_full_window():
    flat = [5.0] * 10
    assert after(flat[:4], warmup_min_iterations=5).best_value is None
    assert after(flat[:5], warmup_min_iterations=5).warmup_end == 5
    assert after(flat[:4], warmup_min_iterations=1, plateau_window=4).best_value is None
    assert after(flat[:5], warmup_min_iterations=1, plateau_window=4).warmup_end == 5


def test_the_warm_up_ends_at_its_most_iterations_though_the_value_still_rises():
    values = [2.0**k for k in range(10)]
    assert after(values[:6], warmup_max_iterations=7).best_value is None
    assert after(values[:7], warmup_max_iterations=7).warmup_end == 7
    assert after(values[:7], warmup_max_iterations=7).best_value == 64.0


def test_the_best_value_is_seeded_by_the_smoothed_value_not_the_last_rollout():
    constraint = after([0.0, 10.0], value_smoothing=0.1, warmup_min_iterations=1, warmup_max_iterations=2)
    assert constraint.best_value == pytest.approx(1.0)


def test_the_best_value_never_falls_and_follows_what_is_better():
    best, constraint = [], joint([])
    for value in (9.0, 11.0, 5.0, 10.5, 12.0, -3.0):
        constraint = constraint.step(value)
        best.append(constraint.best_value)
    assert best == [10.0, 11.0, 11.0, 11.0, 12.0, 12.0]


def test_the_multiplier_rises_by_the_shortfall_and_falls_by_the_slack():
    assert joint([8.0]).multiplier == pytest.approx(1.1)  # slack (8 − 9)/10
    assert joint([8.0, 8.0]).multiplier == pytest.approx(1.2)
    assert joint([9.5]).multiplier == pytest.approx(0.95)
    assert joint([9.0]).multiplier == pytest.approx(1.0)
    assert joint([9.5] * 100).multiplier == -3.0  # style may weigh more than half, up to the bound
    assert joint([0.0] * 100).multiplier == 3.0


def test_the_multiplier_aims_a_margin_above_the_threshold_but_never_above_the_best():
    assert joint([9.2], margin=0.02).multiplier == pytest.approx(1.0)  # 0.9 + 0.02 of 10
    assert joint([9.0], margin=0.02).multiplier == pytest.approx(1.02)
    assert joint([10.0], alpha=1.0, margin=0.02).multiplier == pytest.approx(1.0)


def test_a_new_best_value_counts_in_the_same_iteration():
    assert joint([20.0]).slack == pytest.approx((20.0 - 18.0) / 20.0)


def test_a_large_slack_does_not_throw_the_multiplier():
    assert joint([0.0], slack_limit=0.05).multiplier == pytest.approx(1.05)
    assert joint([10.0], slack_limit=0.05).multiplier == pytest.approx(0.95)


def test_damping_moves_what_eq8_sees_but_not_what_is_integrated():
    damped = joint([8.0], multiplier_damping=5.0)
    assert damped.multiplier == pytest.approx(1.1)
    assert damped.effective_multiplier == pytest.approx(1.1 + 5.0 * 0.1)
    assert joint([9.5], multiplier_damping=5.0).effective_multiplier == pytest.approx(0.95 - 5.0 * 0.05)
    assert joint([0.0], multiplier_damping=50.0).effective_multiplier == 3.0
    assert joint([], multiplier_damping=5.0).effective_multiplier == 1.0


def test_the_best_value_is_updated_every_update_interval_only():
    best, constraint = [], joint([], update_interval=3)
    for value in (11.0, 12.0, 13.0, 14.0, 15.0):  # iterations 2 to 6
        constraint = constraint.step(value)
        best.append(constraint.best_value)
    assert best == [10.0, 12.0, 12.0, 12.0, 15.0]


def test_a_negative_task_value_may_fall_by_its_share_before_the_multiplier_rises():
    negative = {"warmup_min_iterations": 1, "warmup_max_iterations": 1}
    assert after([-10.0, -10.5], **negative).multiplier < 1.0
    assert after([-10.0, -11.5], **negative).multiplier > 1.0


def test_a_constraint_is_never_changed_in_place():
    before = joint([])
    before.step(3.0)
    assert before == joint([])
    with pytest.raises(FrozenInstanceError):
        before.multiplier = 0.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"alpha": 1.2}, "alpha is 1.2"),
        ({"alpha": -0.1}, "alpha is -0.1"),
        ({"alpha": math.nan}, "alpha is nan"),
        ({"margin": -0.1}, "margin is -0.1"),
        ({"warmup_style": -0.1}, "warmup_style is -0.1"),
        ({"warmup_style": 1.0}, "warmup_style is 1.0"),
        ({"margin": 1.0}, "margin is 1.0"),
        ({"value_smoothing": 0.0}, "value_smoothing is 0.0"),
        ({"value_smoothing": 1.5}, "value_smoothing is 1.5"),
        ({"warmup_min_iterations": 30}, "warmup_min_iterations 30 exceeds warmup_max_iterations 20"),
    ],
)
def test_a_config_that_cannot_be_meant_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        replace(QUICK, **changes)
