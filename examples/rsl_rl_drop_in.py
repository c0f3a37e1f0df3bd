"""ConsMimic in an rsl_rl project of your own: one config entry, and a style reward in the environment's extras.

A point moves on a plane. The task: be at the goal. The style: move on a circle about it. Run it:

    python examples/rsl_rl_drop_in.py
"""

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict


class PointEnv(VecEnv):
    """As you would write it for plain PPO, but for one line."""

    num_envs = 256
    num_actions = 2
    max_episode_length = 50
    device = "cpu"

    def __init__(self):
        self.cfg = {}
        self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.long)
        self.position = torch.randn(self.num_envs, 2)

    def get_observations(self):
        return TensorDict({"policy": self.position.clone()}, batch_size=[self.num_envs])

    def step(self, actions):
        self.position = self.position + 0.2 * torch.tanh(actions)
        distance = self.position.norm(dim=1)
        task_reward = torch.exp(-distance.square())
        extras = {"style_reward": torch.exp(-4.0 * (distance - 0.7).square())}  # <- the one line, in [0, 1]

        self.episode_length_buf = self.episode_length_buf + 1
        dones = self.episode_length_buf >= self.max_episode_length
        extras["time_outs"] = dones
        self.position[dones] = torch.randn(int(dones.sum()), 2)
        self.episode_length_buf[dones] = 0
        return self.get_observations(), task_reward, dones, extras


def main(alpha: float = 0.8, iterations: int = 200) -> dict[str, float]:
    """Train, and return what the last iteration logged as ``ConsMimic/*``."""
    torch.manual_seed(0)
    mlp = {"class_name": "MLPModel", "hidden_dims": [32, 32], "activation": "elu"}
    train_cfg = {
        "num_steps_per_env": 25,
        "save_interval": 1000,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**mlp, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0}},
        "critic": mlp,
        "algorithm": {
            "class_name": "consmimic.learner:ConsMimicPPO",  # instead of "PPO"
            "constraint_cfg": {"alpha": alpha, "warmup_max_iterations": 60},
            "entropy_coef": 0.0,
        },
    }
    runner = OnPolicyRunner(PointEnv(), train_cfg, log_dir=None, device="cpu")
    last: dict[str, float] = {}
    runner.alg.on_iteration = lambda report: last.update(report.scalars)
    runner.learn(iterations)
    return last


if __name__ == "__main__":
    for name, value in main().items():
        print(f"ConsMimic/{name}: {value:.3f}")
