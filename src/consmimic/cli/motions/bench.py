"""``consmimic motions bench``: how fast hours of motion are opened and drawn from, measured now."""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from consmimic.errors import UserError
from consmimic.motions.library import MotionLibrary
from consmimic.runs.provenance import machine
from consmimic.tasks.anymal import demonstration

FPS = 50.0


@dataclass(frozen=True)
class Bench:
    """Build a library of many clips, open it, and draw transitions from it.

    Aims: 10 hours at 50 Hz open in less than 2 s and give 1,000,000 transitions a second on two cores.
    """

    hours: float = 10.0
    """Of motion, at 50 Hz; the built-in trot again and again."""
    batch: int = 4096
    """Transitions drawn at once."""
    rounds: int = 7
    """Measurements; the median counts."""
    threads: int = 1
    """Threads of torch. One does it; more wait for one another where other programs take their cores."""

    def run(self) -> int:
        if not 0.001 <= self.hours <= 1000.0 or self.batch < 1 or self.rounds < 1:
            raise UserError("hours must be 0.001 to 1000, batch and rounds at least 1")
        if self.threads < 1:
            raise UserError(f"threads is {self.threads}; at least 1 is needed")
        torch.set_num_threads(self.threads)
        clip = demonstration().resampled(FPS)
        copies = max(1, round(3600.0 * self.hours / clip.seconds))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "library"
            MotionLibrary.build(path, (clip for _ in range(copies)), fps=FPS)
            started = time.perf_counter()
            library = MotionLibrary.open(path)
            opened = time.perf_counter() - started
            generator = torch.Generator().manual_seed(0)
            draws = {
                "transitions": lambda: library.sample_transitions(self.batch, generator),
                "states": lambda: library.sample_states(self.batch, generator),
                "where transitions are": lambda: library.sample_transition_places(self.batch, generator),
            }
            print(f"{machine()}, {self.threads} threads")
            print(
                f"{library.seconds / 3600.0:.1f} h in {copies} clips, {len(library):,} frames of "
                f"{library.layout.width} numbers, {len(library) * library.layout.width * 4 / 1e6:,.0f} MB on disk"
            )
            print(f"opened in {opened:.3f} s (aim: < 2 s)")
            for name, draw in draws.items():
                by_clock, by_processor = self._rates(draw)
                aim = " (aim: >= 1,000,000)" if name == "transitions" else ""
                print(f"{name}: {by_clock:,.0f} per second{aim}; {by_processor:,.0f} per second of one core's work")
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1000)
            print(f"memory of the process at most: {most / 1e6:,.0f} MB, what of the library is mapped included")
        return 0

    def _rates(self, draw: Callable[[], object]) -> tuple[float, float]:
        """By the clock, and by the time that the cores spent: a busy machine lowers only the first. Medians."""
        times = max(1, 1_000_000 // self.batch)

        def once() -> tuple[float, float]:
            clock, processor = time.perf_counter(), time.process_time()
            for _ in range(times):
                draw()
            drawn = times * self.batch
            return drawn / (time.perf_counter() - clock), drawn / (time.process_time() - processor)

        once()
        measured = [once() for _ in range(self.rounds)]
        return statistics.median(a for a, _ in measured), statistics.median(b for _, b in measured)
