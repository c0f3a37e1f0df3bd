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
    """What was seen and done, and after that each of its mirror images: N → (|G| + 1)·N, as rsl_rl wants it.

    The environment's ``policy_mirrors()`` says what each mirror makes of every observation group and of ``action``.
    """
    mirrors = getattr(env, "policy_mirrors", list)()
    if not mirrors:
        raise UserError(
            "mirror images are wanted for the policy update, but the environment knows no mirrors: it needs "
            "policy_mirrors(), for each mirror a SignedPermutation by observation group and one for 'action'"
        )

    def images(part: str, values: Tensor) -> Tensor:
        if part not in mirrors[0]:
            raise UserError(f"the mirrors know nothing of the observation group '{part}'")
        return torch.cat([values, *(mirror[part](values) for mirror in mirrors)])

    seen = None
    if obs is not None:
        count = len(obs) * (len(mirrors) + 1)
        groups = list(map(str, obs.keys()))
        seen = TensorDict({group: images(group, obs[group]) for group in groups}, batch_size=[count])
    return seen, None if actions is None else images("action", actions)
