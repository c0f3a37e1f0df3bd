"""Training for real: what the published results claim, on one seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from consmimic.cli.main import main
from consmimic.evaluation.results import Results
from consmimic.evaluation.verdicts import settled

pytestmark = pytest.mark.slow


def test_franka_reach_keeps_its_share_and_follows_the_clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "Franka-Reach", "--seeds", "1", "--alphas", "0.8", "--style-weights", "--output", "out"])
    assert stopped.value.code == 0
    records = {record.row.method: record for record in Results.load(tmp_path / "out").records}
    task_only, consmimic = records["task-only"], records["consmimic"]
    assert task_only.row.tracking > 0.95
    assert consmimic.row.value_ratio == pytest.approx(0.8, abs=0.05)
    assert consmimic.row.imitation is not None
    assert task_only.row.imitation is not None
    assert consmimic.row.imitation > task_only.row.imitation + 0.1
    assert settled(consmimic.history)
