"""Tasks as data: the registry, presets against Tables 9 and 10, and the configuration made of them."""

from __future__ import annotations

import pytest

from consmimic.errors import UserError
from consmimic.tasks import Method, Preset, runner_config, task_entry, task_names
from consmimic.tasks.franka_reach import PRESETS

PAPER_TABLE_10 = {
    "num_steps_per_env": 24,
    "clip_param": 0.2,
    "num_mini_batches": 4,
    "gamma": 0.99,
    "max_iterations": 20000,
    "entropy_coef": 0.005,
    "learning_rate": 1e-3,
}


@pytest.mark.parametrize(("key", "value"), PAPER_TABLE_10.items())
def test_the_paper_preset_is_table_10(key: str, value: float):
    assert getattr(PRESETS["paper"], key) == value


def test_the_paper_preset_has_table_9s_networks_and_4096_environments():
    assert PRESETS["paper"].hidden_dims == (64, 64)
    assert PRESETS["paper"].num_envs == 4096
    assert PRESETS["paper"].exploration.std_floor == 0.0


def test_table_10s_alpha_is_franka_reachs_default():
    assert task_entry("Franka-Reach").default_alpha == 0.9


@pytest.mark.parametrize("name", ["Anymal-Forward", "Anymal-Lateral"])
def test_anymals_paper_preset_is_tables_9_and_10(name: str):
    entry = task_entry(name)
    preset = entry.preset("paper")
    assert {key: getattr(preset, key) for key in PAPER_TABLE_10} == PAPER_TABLE_10
    assert preset.num_envs == 4096
    assert preset.hidden_dims == (512, 256, 128)
    assert preset.style.source == "adversarial"
    assert preset.style.hidden_dims == (1024, 512)
    assert preset.exploration.std_floor == 0.0
    assert entry.default_alpha == 0.7


def test_both_presets_of_every_task():
    for name in task_names():
        assert {"laptop", "paper"} <= set(task_entry(name).presets)


def test_unknown_names_say_what_is_valid():
    with pytest.raises(UserError, match="unknown task 'Franka'. Valid: Franka-Reach"):
        task_entry("Franka")
    with pytest.raises(UserError, match="unknown preset 'desktop'. Valid: laptop, paper"):
        task_entry("Franka-Reach").preset("desktop")


def test_changes_reach_nested_keys_and_leave_the_rest():
    preset = PRESETS["laptop"].with_changes({"constraint.multiplier_lr": 0.25, "num_envs": 8})
    assert preset.constraint.multiplier_lr == 0.25
    assert preset.constraint.value_smoothing == PRESETS["laptop"].constraint.value_smoothing
    assert preset.num_envs == 8
    assert preset.entropy_coef == PRESETS["laptop"].entropy_coef


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_env": 8}, "unknown preset key 'num_env'. Valid: num_envs,"),
        ({"constraint.rate": 1.0}, "unknown key in preset key constraint 'rate'. Valid: alpha,"),
        ({"num_envs.x": 1}, "unknown preset key 'num_envs.x'"),
        ({"num_envs": 0}, "num_envs is 0"),
        ({"num_envs": "many"}, "num_envs is 'many'"),
        ({"constraint.alpha": 2.0}, "alpha is 2.0"),
    ],
)
def test_wrong_changes_are_refused(changes: dict, message: str):
    with pytest.raises(UserError, match=message):
        PRESETS["laptop"].with_changes(changes)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ({"name": "amp"}, "unknown method 'amp'. Valid: consmimic, task-only, fixed"),
        ({"alpha": 1.5}, "alpha is 1.5"),
        ({"alpha": None}, "alpha is None"),
        ({"name": "fixed"}, "needs --style-weight"),
        ({"name": "fixed", "style_weight": 1.5}, "valid are 0 to 1"),
        ({"name": "task-only", "style_weight": 0.5}, "belongs to the method fixed"),
        ({"name": "task-only", "alpha": 0.5}, "belongs to the method consmimic"),
        ({"alpha": 0.9, "mix": "sum"}, "unknown mix 'sum'. Valid: rewards, advantages"),
    ],
)
def test_methods_refuse_what_is_not_theirs(method: dict, message: str):
    with pytest.raises(UserError, match=message):
        Method(**method)


def test_the_methods_alpha_goes_before_the_presets():
    config = runner_config(PRESETS["laptop"], Method(alpha=0.7))
    assert config["algorithm"]["constraint_cfg"]["alpha"] == 0.7
    assert "fixed_weight_cfg" not in config["algorithm"]


def test_task_only_is_the_fixed_weight_zero():
    algorithm = runner_config(PRESETS["laptop"], Method(name="task-only"))["algorithm"]
    assert algorithm["fixed_weight_cfg"] == {"style_weight": 0.0, "mix": "rewards"}
    assert "constraint_cfg" not in algorithm


def test_each_configuration_is_its_own():
    first = runner_config(PRESETS["laptop"], Method(alpha=0.9))
    first["actor"]["hidden_dims"].append(1)
    first["algorithm"]["constraint_cfg"]["alpha"] = 0.0
    second = runner_config(PRESETS["laptop"], Method(alpha=0.9))
    assert second["actor"]["hidden_dims"] == [64, 64]
    assert second["algorithm"]["constraint_cfg"]["alpha"] == 0.9


def test_presets_are_rsl_rls_names():
    assert {"num_steps_per_env", "clip_param", "desired_kl", "lam"} <= set(Preset.__dataclass_fields__)
