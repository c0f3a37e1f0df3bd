"""Mirror images in the policy update: of what the policy sees and does, and that rsl_rl learns from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict
from torch import Tensor
from torch.testing import assert_close

from consmimic.envs import TaskEnv
from consmimic.errors import UserError
from consmimic.learner.mirroring import with_mirror_images
from consmimic.method.symmetry import SignedPermutation, axial, concatenate, identity, planar_velocity, polar, separate
from consmimic.robots.anymal_d import ANYMAL_D
from consmimic.tasks import Method, runner_config, task_entry
from consmimic.tasks.anymal import ANYMAL_FORWARD, PRESETS

N = 5
PLANES = ANYMAL_D.mirror_planes


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def env() -> TaskEnv:
    return TaskEnv(replace(ANYMAL_FORWARD, randomise=None), N, threads=1)


def sample() -> tuple[TensorDict, Tensor]:
    seen = {"policy": random(N, 48), "critic": random(N, 48, seed=1), "style": random(N, 33, seed=2)}
    return TensorDict(seen, batch_size=[N]), random(N, 12, seed=3)


def test_separate_undoes_concatenate():
    blocks = [polar("x"), identity(2), planar_velocity("y")]
    parts = separate(concatenate(blocks), [3, 2, 3])
    assert all(part.equals(block) for part, block in zip(parts, blocks, strict=True))
    with pytest.raises(ValueError, match="is no permutation"):
        separate(SignedPermutation(torch.tensor([1, 0]), torch.ones(2)), [1, 1])  # mixes the parts


def test_samples_come_first_then_an_image_of_each_and_the_mirrors_take_turns(env):
    obs, actions = sample()
    seen, done = with_mirror_images(env, obs, actions)
    assert seen is not None
    assert done is not None
    assert seen.batch_size == torch.Size([2 * N])
    left_right, front_back = ANYMAL_FORWARD.mirrors
    mirrors = env.policy_mirrors()
    assert len(mirrors) < N  # so that one of them has a second turn
    assert torch.equal(done[:N], actions)
    for group in ("policy", "critic", "style"):
        assert torch.equal(seen[group][:N], obs[group])
    for row in range(N):
        mirror = mirrors[row % len(mirrors)]
        for group in ("policy", "critic", "style"):
            assert torch.equal(seen[group][N + row], mirror[group](obs[group][row]))
        assert torch.equal(done[N + row], mirror["action"](actions[row]))
    left, front, both = seen["policy"][N : N + 3]
    assert torch.equal(left, left_right.observation(obs["policy"][0]))
    assert torch.equal(front, front_back.observation(obs["policy"][1]))
    assert torch.equal(both, front_back.observation(left_right.observation(obs["policy"][2])))


def test_either_may_be_mirrored_alone(env):
    obs, actions = sample()
    seen, nothing = with_mirror_images(env, obs)
    assert seen is not None
    assert nothing is None
    nothing, done = with_mirror_images(env, actions=actions)
    assert nothing is None
    assert done is not None
    both = with_mirror_images(env, obs, actions)
    assert (seen == both[0]).all()
    assert torch.equal(done, both[1])


@pytest.mark.parametrize("plane", ANYMAL_D.mirror_planes, ids=lambda plane: plane.name)
def test_the_image_of_an_observation_is_what_the_mirrored_robot_observes(env, plane):
    """The simulation is put into the mirrored state and asked again."""
    mirror = ANYMAL_FORWARD.mirrors[ANYMAL_D.mirror_planes.index(plane)]
    for seed in range(3):
        env.step(0.3 * random(N, 12, seed=seed))
    before = env._observe(env.state())
    inputs, qpos, qvel = env._inputs, env.physics.read("qpos"), env.physics.read("qvel")
    sides = [polar(plane.normal), SignedPermutation(torch.arange(1), torch.ones(1)), axial(plane.normal)]
    env.physics.write("qpos", torch.cat([concatenate(sides)(qpos[:, :7]), mirror.action(qpos[:, 7:])], dim=1))
    turned = concatenate([polar(plane.normal), axial(plane.normal)])
    env.physics.write("qvel", torch.cat([turned(qvel[:, :6]), mirror.action(qvel[:, 6:])], dim=1))
    env.physics.forward()
    command, action = planar_velocity(plane.normal)(inputs.command), mirror.action(inputs.action)
    env._inputs = replace(inputs, command=command, action=action)
    after = env._observe(env.state())
    assert_close(after["critic"], mirror.observation(before["critic"]), rtol=1e-5, atol=1e-5)
    assert_close(after["style"], mirror.features(before["style"]), rtol=1e-5, atol=1e-5)
    assert (after["critic"] - before["critic"]).abs().max() > 0.1
    env._inputs = inputs


def test_an_environment_without_mirrors_is_told_what_to_give(env):
    obs, _ = sample()
    with pytest.raises(UserError, match=r"needs policy_mirrors\(\)"):
        with_mirror_images(TaskEnv(replace(ANYMAL_FORWARD, mirrors=()), 1, threads=1), obs)
    obs["height_scan"] = random(N, 3)
    with pytest.raises(UserError, match="nothing of the observation group 'height_scan'"):
        with_mirror_images(env, obs)


# ---------------------------------------------------------------- in training


def trained(policy_symmetry: bool) -> tuple[OnPolicyRunner, list[dict[str, float]]]:
    changes: dict[str, Any] = {
        "num_envs": 8,
        "hidden_dims": [16],
        "style.hidden_dims": [8],
        "style.updates": 2,
        "style.batch_size": 16,
        "num_steps_per_env": 8,
        "policy_symmetry": policy_symmetry,
    }
    torch.manual_seed(0)
    env = TaskEnv(ANYMAL_FORWARD, 8, threads=1)
    runner = OnPolicyRunner(env, runner_config(PRESETS["laptop"].with_changes(changes), Method(alpha=0.7)), None, "cpu")
    losses: list[dict[str, float]] = []
    update = runner.alg.update

    def noted() -> dict[str, float]:
        losses.append(update())
        return losses[-1]

    runner.alg.update = noted  # type: ignore[method-assign]
    runner.learn(2)
    return runner, losses


def test_the_policy_learns_from_mirror_images_where_that_is_asked_for():
    runner, losses = trained(policy_symmetry=True)
    plain, plain_losses = trained(policy_symmetry=False)
    assert all(loss["symmetry"] > 0.0 for loss in losses)  # how far the policy is from its mirror images
    assert all("symmetry" not in loss for loss in plain_losses)
    ours, theirs = (list(r.alg.get_policy().parameters()) for r in (runner, plain))
    assert any(not torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_tasks_without_mirrors_refuse_it():
    from consmimic.cli.train import Train

    assert not task_entry("Franka-Reach").task.mirrors
    with pytest.raises(UserError, match="policy_symmetry is true, but Franka-Reach has no mirrors"):
        Train(task="Franka-Reach", set=("policy_symmetry=true",)).params()
    assert Train(task="Anymal-Lateral", set=("policy_symmetry=true",)).params().preset.policy_symmetry
