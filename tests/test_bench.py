"""The stopwatch of ``consmimic bench``, with a clock that is told the time, and the tables that it ends in."""

from __future__ import annotations

import pytest

from consmimic.cli import bench, main
from consmimic.cli.stopwatch import Stopwatch


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Machine:
    """Each method takes as long as it says."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def inner(self, seconds: float) -> float:
        self._clock.now += seconds
        return -seconds

    def outer(self) -> float:
        self._clock.now += 1.0
        answer = self.inner(2.0)
        self._clock.now += 4.0
        return answer

    def failing(self) -> None:
        self._clock.now += 8.0
        raise KeyError


@pytest.fixture
def timed() -> tuple[Clock, Stopwatch, Machine]:
    clock = Clock()
    watch, machine = Stopwatch(clock), Machine(clock)
    for method in ("inner", "outer", "failing"):
        watch.watch(machine, method, method)
    return clock, watch, machine


def test_a_part_does_not_count_what_it_calls(timed):
    _, watch, machine = timed
    assert machine.outer() == -2.0  # they do what they did
    assert machine.inner(16.0) == -16.0
    assert watch.seconds == {"outer": 5.0, "inner": 18.0}


def test_all_time_within_a_part_is_someones_and_none_before_or_after(timed):
    clock, watch, machine = timed
    clock.now += 1000.0
    with watch.running("rest"):
        clock.now += 32.0
        machine.outer()
        clock.now += 64.0
    clock.now += 1000.0
    assert watch.seconds == {"rest": 96.0, "outer": 5.0, "inner": 2.0}


def test_a_part_that_fails_ends_all_the_same(timed):
    clock, watch, machine = timed
    with watch.running("rest"):
        with pytest.raises(KeyError):
            machine.failing()
        clock.now += 1.0
    assert watch.seconds == {"rest": 1.0, "failing": 8.0}


def test_another_object_of_the_class_is_not_timed(timed):
    clock, watch, _ = timed
    Machine(clock).outer()
    assert watch.seconds == {}


@pytest.mark.parametrize(
    ("task", "aim", "own_parts"),
    [
        ("Anymal-Forward", ">= 0.60", ["style reward scoring", "style critic", "discriminator update"]),
        ("Franka-Reach", ">= 0.80", ["style critic"]),
    ],
)
def test_bench_compares_and_says_where_the_time_goes(task, aim, own_parts, monkeypatch, capsys):
    monkeypatch.setattr(bench, "ITERATIONS", 1)
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit) as exit_:
        main(["bench", task, "--num-envs", "8", "--rounds", "1", "--threads", "1"])
    assert not exit_.value.code
    lines = {line.split("  ")[0]: line.split() for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert " ".join(lines["ConsMimic training"][-2:]) == aim
    assert ("contacts that hold" in lines) == (task == "Anymal-Forward")  # the Panda touches nothing
    for part in bench.PARTS:
        wanted = part in own_parts or part not in ("style reward scoring", "style critic", "discriminator update")
        assert (part in lines) == wanted
        if wanted:
            assert (lines[part][-1] == "–") == (part in own_parts)  # plain PPO has none of it
    whole = sum(float(lines[part][-3]) for part in bench.PARTS if part in lines)
    assert float(lines["in all"][-2]) == pytest.approx(whole, abs=0.06 * len(bench.PARTS))
