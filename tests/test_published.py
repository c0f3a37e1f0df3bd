"""What is published comes from rows, and every row says where it comes from."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from consmimic.evaluation.results import Results, read_rows
from consmimic.evaluation.verdicts import by_method

ROOT = Path(__file__).parent.parent
SUMMARIES = sorted((ROOT / "results").glob("*/summary.json"))


def test_there_are_results_of_franka_reach():
    assert "franka-reach" in [path.parent.name for path in SUMMARIES]


def test_the_readmes_tables_are_made_of_the_rows():
    with_tables = runpy.run_path(str(ROOT / "scripts" / "update_readme.py"))["with_tables"]
    readme = (ROOT / "README.md").read_text()
    assert "<!-- results: franka-reach -->" in readme
    assert with_tables(readme) == readme, "run `make readme`"


@pytest.mark.parametrize("path", SUMMARIES, ids=lambda path: path.parent.name)
def test_every_row_says_where_it_comes_from(path: Path):
    for row in read_rows(path):
        assert row.command.startswith("consmimic train")
        assert f"--seed {row.seed}" in row.command
        assert row.commit
        assert "dirty" not in row.commit
        assert "torch" in row.machine
        assert row.wall_s > 0
        assert row.env_steps > 0


@pytest.mark.parametrize("path", SUMMARIES, ids=lambda path: path.parent.name)
def test_ratios_are_to_the_mean_task_only_value(path: Path):
    rows = json.loads(path.read_text())
    baseline = [row["value"] for row in rows if row["method"] == "task-only"]
    for row in rows:
        assert row["value_ratio"] == pytest.approx(row["value"] / (sum(baseline) / len(baseline)))


@pytest.mark.parametrize("path", SUMMARIES, ids=lambda path: path.parent.name)
def test_every_method_has_every_seed_and_its_curves(path: Path):
    results = Results.load(path.parent)
    seeds = {label: [row.seed for row in group] for label, group in by_method(results.rows).items()}
    assert len({tuple(s) for s in seeds.values()}) == 1
    for record in results.records:
        steps = record.history["env_steps"]
        assert int(steps[-1]) == record.row.env_steps
