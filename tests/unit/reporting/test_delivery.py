"""Points on their way: a backend that is slow, away or unwilling costs points that are counted, and
nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import pytest

from hyperscale.reporting import delivery
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend, Refused
from hyperscale.reporting.delivery import Delivery
from hyperscale.reporting.points import Points, Row
from hyperscale.reporting.reporter import Reporter

DEADLINE_S = 30.0


class Memory(Backend):
    """Does what a test says."""

    live = True

    def __init__(self) -> None:
        self.kept: list[int] = []
        self.fails: Exception | None = None
        self.fails_to_connect: Exception | None = None
        self.blocked = threading.Event()
        self.blocked.set()
        self.submissions = self.connections = self.closed = 0

    async def connect(self) -> None:
        self.connections += 1
        if self.fails_to_connect is not None:
            raise self.fails_to_connect

    async def submit(self, points: Sequence[Points]) -> None:
        self.submissions += 1
        self.blocked.wait(DEADLINE_S)
        if self.fails is not None:
            raise self.fails
        self.kept += [int(each.time_s) for each in points]

    async def close(self) -> None:
        self.closed += 1


class MemoryConfig(Config, frozen=True, kw_only=True):
    scheme = "memory"
    password: str = "hidden-word"
    holder: list[object] = []

    def backend(self) -> Backend:
        backend = self.holder[0]
        assert isinstance(backend, Memory)
        return backend


def points(number: int, rows: int = 1) -> Points:
    row = Row("step", {"step": "a"}, {"requests": 1}, {"requests": number}, {})
    return Points({"run": "r"}, float(number), 1.0, 0.0, [row] * rows)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    monkeypatch.setattr(delivery, "BACKOFF_S", (0.01, 0.02))
    monkeypatch.setattr(delivery, "PAUSES_S", (0.01, 0.01))
    return Memory()


def started(memory: Memory, told: list[str]) -> Delivery:
    made = Delivery([(Reporter(MemoryConfig(holder=[memory])), None)])
    made.start(told.append)
    return made


def test_all_arrives_in_order(memory: Memory) -> None:
    told: list[str] = []
    made = started(memory, told)
    for number in range(50):
        made.offer(points(number))
    assert made.finish() == []
    assert memory.kept == list(range(50))
    assert (memory.connections, memory.closed, told) == (1, 1, [])


def test_an_outage_loses_nothing_that_fits(memory: Memory) -> None:
    told: list[str] = []
    memory.fails = ConnectionResetError("gone; the password is hidden-word")
    made = started(memory, told)
    for number in range(20):
        made.offer(points(number))
    until(lambda: memory.submissions > 3)
    memory.fails = None
    assert made.finish() == []
    assert memory.kept == list(range(20))
    assert memory.connections > 1
    assert told == ["memory://: gone; the password is ***; up to 20,000 points are kept meanwhile"]


def test_what_does_not_fit_is_lost_from_the_oldest_on_and_counted(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "ROWS_MAX", 100)
    memory.fails_to_connect = ConnectionRefusedError("refused")
    made = started(memory, [])
    for number in range(1_000):
        made.offer(points(number, rows=10))
    until(lambda: made.lanes[0].lost >= 9_900)
    memory.fails_to_connect = None
    (error,) = made.finish()
    assert memory.kept == list(range(990, 1_000))
    assert error.message == "9,900 of 10,000 points did not reach memory://: refused"


def test_one_that_stays_away_is_given_up_at_the_end(memory: Memory) -> None:
    memory.fails = ConnectionResetError("gone")
    made = started(memory, [])
    made.offer(points(1, rows=7))
    (error,) = made.finish()
    assert error.message == "7 of 7 points did not reach memory://: gone"


def test_what_is_refused_is_lost_at_once(memory: Memory) -> None:
    told: list[str] = []
    memory.fails = Refused("HTTP 400: no such bucket")
    made = started(memory, told)
    made.offer(points(1, rows=3))
    until(lambda: made.lanes[0].lost == 3)
    memory.fails = None
    made.offer(points(2))
    (error,) = made.finish()
    assert memory.kept == [2]
    assert error.message.startswith("3 of 4 points did not reach memory://")
    assert told == ["memory://: HTTP 400: no such bucket; 3 points are lost"]


def test_one_that_blocks_for_good_keeps_nobody(memory: Memory) -> None:
    memory.blocked.clear()
    made = started(memory, [])
    made.offer(points(1))
    (error,) = made.finish(within_s=0.1)
    assert error.message.startswith("1 of 1 points did not reach memory://")
    memory.blocked.set()


def test_one_that_fails_leaves_the_others_alone(memory: Memory) -> None:
    other = Memory()
    memory.fails = ConnectionResetError("gone")
    wanted = [(Reporter(MemoryConfig(holder=[one])), None) for one in (memory, other)]
    made = Delivery(wanted)
    made.start(lambda text: None)
    made.offer(points(1))
    assert len(made.finish()) == 1
    assert other.kept == [1]
