"""The examples run, and show what they say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_the_drop_in_keeps_its_share_of_the_task_and_takes_up_the_style():
    main = runpy.run_path(str(EXAMPLES / "rsl_rl_drop_in.py"))["main"]
    strict, loose = main(alpha=1.0), main(alpha=0.8)
    assert loose["v_task"] == pytest.approx(loose["threshold"], rel=0.05)
    assert loose["style_reward"] > strict["style_reward"] + 0.1
    assert strict["v_task"] > loose["v_task"]


def test_a_discriminator_teaches_to_go_round_for_the_share_of_the_task_that_may_be_spent():
    main = runpy.run_path(str(EXAMPLES / "adversarial_style.py"))["main"]
    last = main()
    assert last["v_task"] > 0.95 * last["threshold"]
    assert last["style_reward"] > 0.6
    assert 0.2 < last["turns_per_second"] < 0.5  # the clip: 0.45; without style the points stay at the goal
