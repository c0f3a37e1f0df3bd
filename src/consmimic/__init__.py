"""Constrained style learning: move like the clips, keep a share α of the task.

Groups, in the order in which they may import one another (a test holds the order):
``method`` (the paper's mathematics), ``learner`` (on rsl_rl), ``motions``, ``sim``, ``robots``, ``envs``,
``tasks``, ``runs``, ``evaluation``, ``cli``. ``errors`` and ``rotations`` are below them all.
"""

__version__ = "0.1.0"
