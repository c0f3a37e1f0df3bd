"""The learner's tests on the oldest rsl_rl that pyproject.toml promises, one in between, and the newest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

RUN = """
import importlib.metadata, pathlib, sys
import pytest, rsl_rl
target, tests = sys.argv[1:]
assert pathlib.Path(rsl_rl.__file__).is_relative_to(target), rsl_rl.__file__
print("rsl_rl", importlib.metadata.version("rsl-rl-lib"))
sys.exit(pytest.main([tests, "-q", "-p", "no:cacheprovider"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("wanted", ["==5.0.1", "==5.4.2", ">=5.5,<6"])
def test_the_learner_works_with_rsl_rl(wanted, tmp_path):
    target = str(tmp_path)
    install = ["pip", "install", "--quiet", "--no-deps", "--target", target, f"rsl-rl-lib{wanted}"]
    subprocess.run([sys.executable, "-m", *install], check=True)
    result = subprocess.run(
        [sys.executable, "-c", RUN, target, str(TESTS / "test_learner.py")],
        env=os.environ | {"PYTHONPATH": target},
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]
    version = result.stdout.split()[1]
    assert wanted == f"=={version}" or (wanted.startswith(">=") and version.startswith("5."))
    assert " skipped" not in result.stdout
