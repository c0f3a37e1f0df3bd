"""``consmimic evaluate``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.console import Console

from consmimic.cli.options import OptionalInt, OptionalPath
from consmimic.errors import UserError
from consmimic.evaluation.evaluate import EPISODES, evaluate_run, gather
from consmimic.evaluation.report import illustrations, summary, write_report
from consmimic.evaluation.results import Results
from consmimic.evaluation.tables import summary_table
from consmimic.runs import RunFolder
from consmimic.runs.folder import LOGS, experiment_name
from consmimic.runs.training import load_clip
from consmimic.tasks import task_entry


@dataclass(frozen=True)
class Evaluate:
    """Score trained policies and write a report: task, imitation, what was kept, figures, and where it all came from.

    Give the runs of one task; with task-only runs among them the report says what share of the task each one kept.
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN ...", help_behavior_hint="")]
    """Run folders."""
    episodes: int = EPISODES
    """Episodes for each policy, the same for all."""
    output: OptionalPath = None
    """Folder for summary.json, the figures and report.html. Default: RUN/report, or a new one for several runs."""
    threads: OptionalInt = None
    """Threads of the physics. Default: the cores that this process may use."""

    def run(self) -> int:
        if not self.runs:
            raise UserError("name at least one run folder, such as logs/rsl_rl/franka-reach/*")
        folders = [RunFolder.open(path) for path in self.runs]
        for folder in folders:
            if not folder.checkpoints():
                raise UserError(f"{folder.path} has no checkpoint (model_*.pt) to evaluate")
        trained = sorted({(folder.params().task, folder.params().preset_name) for folder in folders})
        if len(trained) > 1:
            several = ", ".join(f"{task} ({preset})" for task, preset in trained)
            raise UserError(f"the runs are of several tasks or presets: {several}; evaluate one at a time")
        output = self.output or self._default_output(folders)
        evaluate_all(folders, output, episodes=self.episodes, threads=self.threads)
        return 0

    def _default_output(self, folders: Sequence[RunFolder]) -> Path:
        if len(folders) == 1:
            return folders[0].path / "report"
        stamp = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        return LOGS / experiment_name(folders[0].params().task) / "reports" / stamp


def evaluate_all(
    folders: Sequence[RunFolder], output: Path, *, episodes: int = EPISODES, threads: int | None = None
) -> Results:
    """Evaluate the runs, write results and report into the folder, print the table and the report's path."""
    torch.set_num_threads(1)
    console = Console()
    records = []
    with console.status("evaluating") as status:
        for number, folder in enumerate(folders, start=1):
            status.update(f"evaluating {number} of {len(folders)}: {folder.path.name}")
            records.append(evaluate_run(folder, episodes=episodes, threads=threads))
    clips = {folder.params().clip for folder in folders}
    clip = next(iter(clips)) if len(clips) == 1 else None
    results = gather(records, load_clip(task_entry(records[0].row.task).task, clip))
    results.save(output)
    task = results.rows[0].task
    write_report(results, output / "report.html", title=f"{task}: what was learned")
    for illustration in illustrations(results):
        figures = output / "figures"
        figures.mkdir(exist_ok=True)
        illustration.figure.savefig(figures / f"{illustration.name}.png", dpi=160)
    console.print(summary_table(results.rows))
    for sentence in summary(results):
        print(sentence)
    print(f"report: {output / 'report.html'}")
    return results
