"""Mirror images for the policy update, through rsl_rl's symmetry extension (Mittal et al., 2024).

This is beside the paper's Eqs. 10 and 11, which put symmetry into the style; it puts it into the policy.
"""

from __future__ import annotations

from typing import Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict
from torch import Tensor

from consmimic.errors import UserError

SYMMETRY_CFG: dict[str, Any] = {
    "data_augmentation_func": "consmimic.learner.mirroring:with_mirror_images",
    "use_data_augmentation": True,
    "use_mirror_loss": False,
    "mirror_loss_coeff": 0.0,
}
"""rsl_rl's ``symmetry_cfg`` for environments that have ``policy_mirrors()``."""


def with_mirror_images(
    env: VecEnv, obs: TensorDict | None = None, actions: Tensor | None = None
) -> tuple[TensorDict | None, Tensor | None]:
    """What was seen and done, and after that one mirror image of each: N → 2·N.

    The environment's ``policy_mirrors()`` says what each mirror makes of every observation group and of ``action``.
    The mirrors take turns, row by row; the rows of a mini-batch come in random order, so in time every sample meets
    every mirror, at half the cost of all three images at once.
    """
    mirrors = getattr(env, "policy_mirrors", list)()
    if not mirrors:
        raise UserError(
            "mirror images are wanted for the policy update, but the environment knows no mirrors: it needs "
            "policy_mirrors(), for each mirror a SignedPermutation by observation group and one for 'action'"
        )

    def with_images(part: str, values: Tensor) -> Tensor:
        if part not in mirrors[0]:
            raise UserError(f"the mirrors know nothing of the observation group '{part}'")
        images = torch.empty_like(values)
        for turn, mirror in enumerate(mirrors):
            images[turn :: len(mirrors)] = mirror[part](values[turn :: len(mirrors)])
        return torch.cat([values, images])

    seen = None
    if obs is not None:
        groups = {str(group): with_images(str(group), obs[group]) for group in obs.keys()}  # noqa: SIM118 - a TensorDict
        seen = TensorDict(groups, batch_size=[2 * len(obs)])
    return seen, None if actions is None else with_images("action", actions)
