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
