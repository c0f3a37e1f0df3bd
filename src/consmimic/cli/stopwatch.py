"""Where the time goes: methods are timed while a program runs as it always does."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any


class Stopwatch:
    """Seconds by part. What a part calls that is timed as another part counts for that one alone."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._clock = clock
        self._running: list[str] = []
        self._since = 0.0

    def watch(self, owner: Any, method: str, part: str) -> None:
        """From now on the method of this one object counts for the part."""
        function = getattr(owner, method)

        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.running(part):
                return function(*args, **kwargs)

        setattr(owner, method, timed)

    @contextmanager
    def running(self, part: str) -> Iterator[None]:
        self._note()
        self._running.append(part)
        try:
            yield
        finally:
            self._note()
            self._running.pop()

    def _note(self) -> None:
        """What has passed since the last change counts for the innermost part."""
        now = self._clock()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now
