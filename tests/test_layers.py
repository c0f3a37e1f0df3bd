"""Which group may import which: the order that ``consmimic/__init__.py`` gives, read from every import."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import consmimic

PACKAGE = Path(consmimic.__file__).parent
BELOW_ALL = ("errors", "rotations")
"""Modules that every group may import; they may import one another and nothing else of ours."""
ORDER = tuple(name for name in re.findall(r"``(\w+)``", consmimic.__doc__ or "") if name not in BELOW_ALL)
MODULES = sorted(PACKAGE.rglob("*.py"))


def group_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0]


def imported(source: str) -> Iterator[str]:
    """Every module that the source imports anywhere, in functions and behind TYPE_CHECKING too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            assert node.module is not None
            if node.module == "consmimic":
                yield from (f"consmimic.{alias.name}" for alias in node.names)
            else:
                yield node.module


def forbidden(group: str, source: str) -> list[str]:
    """What a module of the group imports against the order."""
    if group in ("__init__", "__main__"):
        return []
    allowed = {*BELOW_ALL, *ORDER[: ORDER.index(group) + 1]} if group in ORDER else set(BELOW_ALL)
    return [name for name in imported(source) if name.startswith("consmimic.") and name.split(".")[1] not in allowed]


def third_party(folder: str) -> set[str]:
    names = {
        name.partition(".")[0] for path in MODULES if group_of(path) == folder for name in imported(path.read_text())
    }
    return names - set(sys.stdlib_module_names) - {"consmimic"}


def test_the_order_names_every_group_that_there_is():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert sorted(ORDER) == sorted(folders)
    files = {path.stem for path in PACKAGE.glob("*.py")}
    assert files == {"__init__", "__main__", *BELOW_ALL}
    assert ORDER[0] == "method"
    assert ORDER[-1] == "cli"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_its_group_and_those_before_it(path):
    assert forbidden(group_of(path), path.read_text()) == []


def test_the_check_sees_imports_wherever_they_hide():
    hidden = """
from typing import TYPE_CHECKING
import consmimic.tasks
from consmimic import cli
if TYPE_CHECKING:
    from consmimic.evaluation.scores import ETA
def f():
    from consmimic.runs import train
"""
    names = ["consmimic.tasks", "consmimic.cli", "consmimic.evaluation.scores", "consmimic.runs"]
    assert sorted(forbidden("envs", hidden)) == sorted(names)
    assert sorted(forbidden("evaluation", hidden)) == ["consmimic.cli"]
    assert forbidden("cli", hidden) == []
    assert forbidden("errors", "from consmimic.method import tracking") == ["consmimic.method"]


def test_the_mathematics_needs_torch_alone():
    assert third_party("method") == {"torch"}


def test_the_learner_knows_no_simulator():
    assert third_party("learner") <= {"torch", "tensordict", "rsl_rl"}


def test_only_the_evaluation_draws():
    drawing = {
        group_of(path) for path in MODULES for name in imported(path.read_text()) if name.startswith("matplotlib")
    }
    assert drawing <= {"evaluation"}


LOADING = """
import importlib, pkgutil, sys
sys.modules["mujoco.batch"] = None

def load(group):
    folder = importlib.import_module(f"consmimic.{group}").__path__
    for module in pkgutil.iter_modules(folder):
        importlib.import_module(f"consmimic.{group}.{module.name}")

load("method")
assert not {"rsl_rl", "mujoco", "consmimic.learner"} & set(sys.modules), "method loads more than torch"
load("learner")
assert "mujoco" not in sys.modules, "learner loads a simulator"
load("motions")
from consmimic import errors, robots, sim
try:
    sim.CpuPhysics
except errors.UserError as error:
    assert "MuJoCo >= 4.0" in str(error), error
else:
    sys.exit("mujoco.batch was not blocked")
"""


def test_the_core_loads_without_mujoco_batch_and_the_learner_without_any_simulator():
    """MuJoCo before 4.0, which mjlab needs, has no mujoco.batch."""
    done = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
