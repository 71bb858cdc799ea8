"""Logs for people: lines, levels, correlation, rotation, and never a wait."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from hyperscale.errors import BadInput
from hyperscale.runtime.log_writer import FileOutlet, LogWriter
from hyperscale.runtime.logs import configure, correlated, logger


@pytest.fixture(autouse=True)
def _fresh_structlog() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def run(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, check=True, text=True)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def test_a_line_is_an_object_with_time_level_component_and_event(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "gate.log"
    logs = configure(path, wall=lambda: 1_700_000_000.125)
    logger("hyperscale.gate", node="g1").info("job accepted", job_id="j1", datacenters=3)
    assert logs.stop()
    assert path.read_text() == (
        '{"timestamp":"2023-11-14T22:13:20.125Z","level":"info","component":"gate",'
        '"event":"job accepted","node":"g1","job_id":"j1","datacenters":3}\n'
    )


def test_anything_can_be_logged(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    logs = configure(path)
    loop: list[Any] = []
    loop.append(loop)
    odd = {"path": tmp_path, "bytes": b"\xff", "loop": loop, "text": "\ud800 \n \u2028", "n": 2**70}
    logger("odd").warning("all sorts", **odd)
    try:
        raise ValueError("broken")
    except ValueError:
        logger("odd").exception("it failed")
    logs.stop()
    first, second = lines_of(path)
    assert first["event"] == "all sorts"
    assert second["level"] == "error"
    assert "ValueError: broken" in second["exception"]


def test_levels_are_per_component_and_inherited_by_dots(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    logs = configure(path, level="warning", levels={"wire": "debug", "wire.noisy": "error"})
    for component in ("gate", "wire", "wire.handshake", "wire.noisy", "wires"):
        for level in ("debug", "info", "warning", "error"):
            getattr(logger(component), level)("said")
    logs.stop()
    said: dict[str, list[str]] = {}
    for line in lines_of(path):
        said.setdefault(line["component"], []).append(line["level"])
    assert said == {
        "gate": ["warning", "error"],
        "wire": ["debug", "info", "warning", "error"],
        "wire.handshake": ["debug", "info", "warning", "error"],
        "wire.noisy": ["error"],
        "wires": ["warning", "error"],
    }


def test_correlation_follows_tasks_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    logs = configure(path)
    log = logger("gate")

    async def step(name: str) -> None:
        with correlated(job_id=name):
            await asyncio.sleep(0)
            await asyncio.create_task(deeper())

    async def deeper() -> None:
        log.info("deep")

    async def main() -> None:
        await asyncio.gather(step("a"), step("b"))
        log.info("outside")

    asyncio.run(main())
    logs.stop()
    assert [line.get("job_id") for line in lines_of(path)] == ["a", "b", None]


def test_a_logger_made_before_follows_the_configuration(tmp_path: Path) -> None:
    first = configure(tmp_path / "1.log")
    log = logger("gate")
    log.info("one")
    second = configure(tmp_path / "2.log")
    log.info("two")
    second.stop()
    assert first.stop()
    assert [line["event"] for line in lines_of(tmp_path / "1.log")] == ["one"]
    assert [line["event"] for line in lines_of(tmp_path / "2.log")] == ["two"]


def test_plain_structlog_loggers_end_here_too(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    logs = configure(path, callsite=True)
    structlog.get_logger("hyperscale.runtime").error("task failed", task="t")
    logs.stop()
    (line,) = lines_of(path)
    assert (line["component"], line["filename"]) == ("runtime", "test_logs.py")
    assert {"func_name", "lineno", "thread"} <= set(line)


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_a_file_rotates_by_size_and_keeps_the_newest(tmp_path: Path) -> None:
    outlet = FileOutlet(tmp_path / "g.log", 100, 1e9, 3, 1e9, Clock(1_700_000_000.0))
    for number in range(10):
        outlet.write(b"%d" % number * 60 + b"\n")
    outlet.close()
    kept = [path.read_text()[0] for path in outlet.rotated()]
    assert (kept, (tmp_path / "g.log").read_text()[0]) == (["6", "7", "8"], "9")


def test_a_file_rotates_when_its_period_is_over(tmp_path: Path) -> None:
    clock = Clock(time.time() // 86_400 * 86_400 + 1)
    outlet = FileOutlet(tmp_path / "g.log", 10**9, 86_400, 3, 1e9, clock)
    outlet.write(b"today\n")
    clock.now += 80_000
    outlet.write(b"tonight\n")
    clock.now += 6_400
    outlet.write(b"tomorrow\n")
    outlet.close()
    assert [path.read_text() for path in outlet.rotated()] == ["today\ntonight\n"]
    assert (tmp_path / "g.log").read_text() == "tomorrow\n"


def test_a_file_of_an_earlier_period_is_finished_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "g.log"
    path.write_bytes(b"old\n")
    os.utime(path, (1_000_000, 1_000_000))
    outlet = FileOutlet(path, 10**9, 86_400, 3, 1e12)
    outlet.write(b"new\n")
    outlet.close()
    assert [old.read_text() for old in outlet.rotated()] == ["old\n"]


def test_old_files_go_and_others_stay(tmp_path: Path) -> None:
    clock = Clock(time.time())
    outlet = FileOutlet(tmp_path / "g.log", 10, 1e9, 100, 3_600, clock)
    bystander = tmp_path / "g.1.log"
    bystander.write_text("mine")
    os.utime(bystander, (1, 1))
    outlet.write(b"first line\n")
    outlet.write(b"second line\n")
    clock.now += 7_200
    outlet.write(b"third line\n")
    outlet.close()
    assert outlet.rotated() == []
    assert bystander.exists()


class StuckOutlet:
    """A disk that takes nothing until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.data = b""
        self.failure: OSError | None = None

    def write(self, data: bytes) -> None:
        self.go.wait()
        if self.failure is not None:
            raise self.failure
        self.data += data

    def sync(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


def note(event: str, count: int, detail: str) -> bytes:
    return f"{event}: {count}\n".encode()


def test_a_stuck_disk_holds_up_nobody_and_the_oldest_lines_go() -> None:
    outlet = StuckOutlet()
    writer = LogWriter(outlet, note, queue_max=100)
    for number in range(10_000):
        writer.put(b"line-%d\n" % number)
    assert not writer.flush(0.01)
    outlet.go.set()
    assert writer.flush()
    said = outlet.data.decode().splitlines()
    lines = [line for line in said if line.startswith("line-")]
    noted = sum(int(line.rpartition(" ")[2]) for line in said if "dropped" in line)
    assert lines[-1] == "line-9999"
    assert len(lines) < 1_300
    assert writer.dropped_total + len(lines) == 10_000
    assert noted == writer.dropped_total
    assert writer.stop()


def test_lines_lost_to_the_disk_are_counted_when_it_works_again(
    capfd: pytest.CaptureFixture[str],
) -> None:
    outlet = StuckOutlet()
    outlet.failure = OSError(28, "No space left on device")
    outlet.go.set()
    writer = LogWriter(outlet, note, queue_max=100)
    for _ in range(3):
        writer.put(b"lost\n")
        assert writer.flush()
    outlet.failure = None
    writer.put(b"here\n")
    assert writer.stop()
    assert outlet.data == b"log lines lost: 3\nhere\n"
    assert writer.failed_total == 3
    assert capfd.readouterr().err.count("log cannot be written") == 1


def test_a_stream_nobody_reads_cannot_hold_up_the_exit() -> None:
    writer = LogWriter(StuckOutlet(), note, queue_max=10)
    writer.put(b"x\n")
    assert not writer.stop(timeout_s=0.01)
    writer.put(b"after the end\n")


def test_the_event_loop_goes_on_while_nobody_reads(tmp_path: Path) -> None:
    """A pipe that is full blocks whoever writes to it: that must be the writer's thread."""
    program = """
import asyncio
from hyperscale.runtime.logs import configure, logger

async def main():
    logs = configure("stdout", queue_lines=1000)
    log = logger("talkative")
    for number in range(20_000):
        log.info("line", number=number, filling="x" * 100)
        await asyncio.sleep(0)
    return logs

logs = asyncio.run(main())
assert logs.dropped > 10_000, logs.dropped
print("went on", file=__import__("sys").stderr, flush=True)
logs.stop(0.05)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"went on\n"
        assert process.wait(30) == 0


def test_the_standard_streams_stay_open_and_everything_is_flushed() -> None:
    program = """
import sys
from hyperscale.runtime.logs import configure, logger
logs = configure("stdout")
for number in range(5_000):
    logger("a").info("line", number=number)
assert logs.stop()
sys.stdout.write("still open\\n")
"""
    out = run(program)
    lines = out.stdout.splitlines()
    assert lines[-1] == "still open"
    assert [json.loads(line)["number"] for line in lines[:-1]] == list(range(5_000))


def test_without_configuration_warnings_go_to_stderr() -> None:
    program = """
from hyperscale.runtime import logs
logs.logger("a").info("quiet")
logs.logger("a").warning("loud")
logs._current.stop()
"""
    out = run(program)
    assert out.stdout == ""
    assert [json.loads(line)["event"] for line in out.stderr.splitlines()] == ["loud"]


@pytest.mark.parametrize(
    "options", [{"level": "loud"}, {"levels": {"wire": "x"}}, {"queue_lines": 0}, {"rotate_s": 0}]
)
def test_bad_options_are_told(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        configure(tmp_path / "x.log", **options)


def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be opened"):
        configure(tmp_path / "file" / "x.log")


@pytest.mark.parametrize("name", ["m.us-east", "m.2026-11-16", "m-1.log", "m"])
def test_any_name_rotates_more_than_once(tmp_path: Path, name: str) -> None:
    outlet = FileOutlet(tmp_path / name, 100, 1e9, 9, 1e9, Clock(1_700_000_000.0))
    for number in range(5):
        outlet.write(b"%d" % number * 60 + b"\n")
    outlet.close()
    assert [path.read_text()[0] for path in outlet.rotated()] == ["0", "1", "2", "3"]


def test_a_writer_outlives_whatever_goes_wrong() -> None:
    class Odd:
        def __init__(self) -> None:
            self.lines: list[bytes] = []

        def write(self, data: bytes) -> None:
            if not self.lines:
                self.lines.append(b"")
                raise ValueError("a fault of ours")
            self.lines.append(data)

        def sync(self) -> None: ...

        def close(self) -> None: ...

    outlet = Odd()
    writer = LogWriter(outlet, lambda what, count, why: b"%s %d\n" % (what.encode(), count), 10)
    writer.put(b"lost\n")
    assert writer.flush()
    writer.put(b"kept\n")
    assert writer.flush()
    assert writer.stop()
    assert outlet.lines[-1] == b"log lines lost 1\nkept\n"


def test_half_a_line_does_not_spoil_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    outlet = FileOutlet(tmp_path / "g.log", 10_000, 1e9, 3, 1e9, Clock(1_700_000_000.0))
    outlet.write(b"one\n")
    with monkeypatch.context() as patched:
        patched.setattr("hyperscale.runtime.log_writer.write_all", half)
        with pytest.raises(OSError, match="space"):
            outlet.write(b"a line that does not fit\n")
    outlet.write(b"two\n")
    outlet.close()
    assert (tmp_path / "g.log").read_bytes() == b"one\ntwo\n"
