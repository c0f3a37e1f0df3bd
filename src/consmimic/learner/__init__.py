"""Algorithm 1 on rsl_rl: name ``consmimic.learner:ConsMimicPPO`` as the algorithm of an OnPolicyRunner."""

from consmimic.learner.ppo import ConsMimicPPO, IterationReport

__all__ = ["ConsMimicPPO", "IterationReport"]
