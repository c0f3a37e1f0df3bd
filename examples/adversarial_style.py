"""Style from clips that have no clock: a discriminator compares what the robot does with what the clips show.

A point moves on a plane. The task: be near the goal. The clip: going round it, counter-clockwise. Nothing says where
on the circle to be when. Run it:

    python examples/adversarial_style.py
"""

import math

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

STEP = 0.2


class PointEnv(VecEnv):
    """As you would write it for plain PPO, but for the three things that are marked."""

    num_envs = 256
    num_actions = 2
    max_episode_length = 50
    device = "cpu"

    def __init__(self):
        self.cfg = {}
        self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.long)
        self.position = torch.randn(self.num_envs, 2)

    def demonstration_pairs(self):  # <- 1. the clip's features now and one step later, each (T, features)
        angles = torch.arange(0.0, 20.0, STEP / 0.7)
        circle = 0.7 * torch.stack([angles.cos(), angles.sin()], dim=1)
        return circle[:-1], circle[1:]

    def get_observations(self):
        seen = {"policy": self.position.clone(), "style": self.position.clone()}  # <- 2. the same features of the robot
        return TensorDict(seen, batch_size=[self.num_envs])

    def step(self, actions):
        self.position = self.position + STEP * torch.tanh(actions)
        task_reward = torch.exp(-self.position.square().sum(dim=1))

        self.episode_length_buf = self.episode_length_buf + 1
        dones = self.episode_length_buf >= self.max_episode_length
        extras = {"time_outs": dones, "final_obs": self.get_observations()}  # <- 3. before the reset; if you can
        self.position[dones] = torch.randn(int(dones.sum()), 2)
        self.episode_length_buf[dones] = 0
        return self.get_observations(), task_reward, dones, extras


def turns_per_second(env, policy, steps=40, dt=0.1) -> float:
    """How fast the points go round, counter-clockwise, in an episode's last steps."""
    env.episode_length_buf = torch.zeros(env.num_envs, dtype=torch.long)
    turned = 0.0
    with torch.inference_mode():
        for step in range(steps):
            before = env.position.clone()
            env.step(policy(env.get_observations()))
            cross = before[:, 0] * env.position[:, 1] - before[:, 1] * env.position[:, 0]
            angle = torch.atan2(cross, (before * env.position).sum(dim=1))
            turned += angle.mean().item() / (2.0 * math.pi) if step >= steps // 2 else 0.0
    return turned / (steps // 2 * dt)


def main(alpha: float = 0.6, iterations: int = 250) -> dict[str, float]:
    """Train, and return what the last iteration logged as ``ConsMimic/*``, and how fast the points go round."""
    torch.manual_seed(0)
    mlp = {"class_name": "MLPModel", "hidden_dims": [32, 32], "activation": "elu"}
    train_cfg = {
        "num_steps_per_env": 25,
        "save_interval": 1000,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**mlp, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0}},
        "critic": mlp,
        "algorithm": {
            "class_name": "consmimic.learner:ConsMimicPPO",
            "constraint_cfg": {"alpha": alpha, "warmup_max_iterations": 60},
            "style_cfg": {"source": "adversarial", "hidden_dims": [64, 32], "learning_rate": 1e-3, "batch_size": 256},
            "exploration_cfg": {"std_floor": 0.1},
            "entropy_coef": 0.0,
        },
    }
    env = PointEnv()
    runner = OnPolicyRunner(env, train_cfg, log_dir=None, device="cpu")
    last: dict[str, float] = {}
    runner.alg.on_iteration = lambda report: last.update(report.scalars)
    runner.learn(iterations)
    return last | {"turns_per_second": turns_per_second(env, runner.get_inference_policy())}


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.3f}")
