"""Real processes, killed at random moments while they write; what they said decides.

The oracle is this process: it hears each acknowledgement through a pipe and reads the files
itself. 25 kills by default; `TESTS_CRASH_KILLS=500` for a long evening.
"""

from __future__ import annotations

import asyncio
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import pytest

from hyperscale.ledger.wal import Record, WriteAheadLog
from hyperscale.ledger.wal.inspection import inspect
from hyperscale.runtime.real import RealHost
from tests.integration.crash_writer import SETTINGS, payload_of

KILLS = int(os.environ.get("TESTS_CRASH_KILLS", "25"))
SEED = int(os.environ.get("TESTS_CRASH_SEED", "1"))
WRITERS = 24
DEADLINE_S = 60.0
ROOT = Path(__file__).parents[2]
Rows = list[tuple[int, bytes]]
COMMAND = [sys.executable, "-m", "tests.integration.crash_writer"]


class Victim:
    """A writing process and everything it has said."""

    def __init__(self, directory: Path, life: int, prefix: list[str] | None = None) -> None:
        self.life = life
        self._process = subprocess.Popen(
            [*(prefix or []), *COMMAND, str(directory), str(life), str(WRITERS)],
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        assert self._process.stdout is not None
        self._pipe = self._process.stdout.fileno()
        os.set_blocking(self._pipe, False)
        self._heard = bytearray()

    def listen(self, seconds: float, until: bytes | None = None) -> bool:
        """Hear what it says for a while, or until it has said something; False at its end."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not (until and until in self._heard):
            if select.select([self._pipe], [], [], left)[0]:
                said = os.read(self._pipe, 1 << 20)
                if not said:
                    return False
                self._heard += said
        return True

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self.end()

    def end(self) -> int:
        assert not self.listen(DEADLINE_S), "it does not end"
        return self._process.wait(DEADLINE_S)

    def lines(self, letter: str) -> Iterator[list[str]]:
        """Whole lines only: a kill may cut the last one short."""
        whole = bytes(self._heard[: self._heard.rfind(b"\n") + 1]).decode()
        for line in whole.splitlines():
            if line.startswith(letter):
                yield line.split(maxsplit=3)[1:]


class Oracle:
    """What must be in the log."""

    def __init__(self) -> None:
        self.rows: Rows = []
        self._acked: dict[int, bytes] = {}
        self._told: dict[tuple[int, int], int] = defaultdict(int)

    def hear(self, victim: Victim) -> None:
        said = [tuple(map(int, words)) for words in victim.lines("A")]
        self.expect(victim.life, [(lsn, writer, number) for lsn, writer, number in said])

    def expect(self, life: int, acked: list[tuple[int, int, int]]) -> None:
        for lsn, writer, number in acked:
            assert lsn not in self._acked, f"LSN {lsn} was given twice"
            self._acked[lsn] = payload_of(life, writer, number)
            self._told[life, writer] = number + 1

    def judge(self, rows: Rows) -> None:
        lsns = [lsn for lsn, _ in rows]
        assert all(a < b for a, b in pairwise(lsns))
        found = dict(rows)
        lost = {lsn for lsn, payload in self._acked.items() if found.get(lsn) != payload}
        assert not lost, f"acknowledged and lost: {sorted(lost)[:5]}"
        assert rows[: len(self.rows)] == self.rows, "what was there once is there for good"
        numbers: dict[tuple[int, int], list[int]] = defaultdict(list)
        for _, payload in rows:
            life, writer, number = map(int, payload.split()[:3])
            assert payload == payload_of(life, writer, number), "what nobody wrote"
            numbers[life, writer].append(number)
        for key, seen in numbers.items():
            assert seen == list(range(len(seen))), f"writer {key}: in order, each once"
            assert len(seen) <= self._told[key] + 1, "a writer has one record under way"
        self.rows = rows


def rows_on_disk(directory: Path) -> Rows:
    """Everything a start would recover, without changing a byte."""
    rows: Rows = []

    def take(records: object) -> None:
        assert isinstance(records, list)
        rows.extend((record.lsn, record.payload) for record in records)

    async def work() -> None:
        async with RealHost("oracle", directory) as host:
            found = await inspect(host.disk, "wal", SETTINGS, deliver=take)
            assert found.damage() is None

    asyncio.run(work())
    return rows


def recovered_as(rows: Rows) -> list[str]:
    checksum = 0
    for _, payload in rows:
        checksum = crc32(payload, checksum)
    return [str(len(rows)), str(rows[-1][0] if rows else 0), str(checksum)]


def test_nothing_acknowledged_is_lost_however_often_the_process_is_killed(tmp_path: Path) -> None:
    dice, oracle, acked_lives = random.Random(SEED), Oracle(), 0
    for life in range(KILLS):
        victim = Victim(tmp_path, life)
        if dice.random() < 0.8:
            assert victim.listen(DEADLINE_S, until=b"A "), "it ended by itself"
        victim.listen(dice.random() ** 2 * 0.4)
        victim.kill()
        for recovered in victim.lines("R"):
            assert recovered == recovered_as(oracle.rows)
        oracle.hear(victim)
        acked_lives += any(True for _ in victim.lines("A"))
        oracle.judge(rows_on_disk(tmp_path))
    assert acked_lives >= KILLS // 2
    assert len(oracle.rows) > KILLS * WRITERS


def test_a_file_that_may_not_grow_fails_the_log_and_loses_nothing(tmp_path: Path) -> None:
    """EFBIG from the kernel itself, in the middle of a batch."""
    limit = ["sh", "-c", 'ulimit -f 200; exec "$@"', "sh"]  # blocks of 512 B, in some shells 1 KB
    victim = Victim(tmp_path, 0, limit)
    assert victim.end() == 0
    assert [words[0] for words in victim.lines("F")] == ["the"], "the late append failed too"
    oracle = Oracle()
    oracle.hear(victim)
    assert len(list(victim.lines("A"))) > 100
    oracle.judge(rows_on_disk(tmp_path))
    again = Victim(tmp_path, 1)
    assert again.listen(DEADLINE_S, until=b"A ")
    again.kill()
    assert list(again.lines("R")) == [recovered_as(oracle.rows)]
    oracle.hear(again)
    oracle.judge(rows_on_disk(tmp_path))


@pytest.mark.parametrize(
    "tampered",
    [
        pytest.param(lambda rows: rows[:-1], id="lost"),
        pytest.param(lambda rows: [*rows, rows[-1]], id="twice"),
        pytest.param(lambda rows: [*rows, (99, payload_of(0, 0, 7))], id="never written"),
        pytest.param(lambda rows: [(2, rows[0][1]), (1, rows[1][1])], id="out of order"),
        pytest.param(lambda rows: [rows[0], (2, rows[1][1] + b"?")], id="changed"),
    ],
)
def test_the_oracle_itself_notices(tampered: Callable[[Rows], Rows]) -> None:
    oracle, rows = Oracle(), [(1, payload_of(0, 0, 0)), (2, payload_of(0, 0, 1))]
    oracle.expect(0, [(1, 0, 0), (2, 0, 1)])
    oracle.judge(rows)
    with pytest.raises(AssertionError):
        oracle.judge(tampered(rows))


def _own_file_system(folder: Path) -> list[str]:
    """A command prefix that mounts a disk of 600 KB on a folder, for its process alone."""
    script = f'mount -t tmpfs -o size=600k none {folder} && exec "$@"'
    prefix = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    if shutil.which("unshare") is None:
        pytest.skip("this system has no unshare: no small disk can be mounted")
    if subprocess.run([*prefix, "true"], capture_output=True, timeout=30).returncode:
        pytest.skip("this system lets nobody mount a small disk")
    return prefix


def test_a_full_disk_fails_the_log_and_everyone_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    victim = Victim(folder, 0, _own_file_system(folder))
    assert victim.end() == 0
    assert any("No space left on device" in " ".join(words) for words in victim.lines("F"))
    assert len(list(victim.lines("A"))) > 100


def test_the_writer_thread_leaks_no_descriptor(tmp_path: Path) -> None:
    """One file stays open whatever is appended, rotated and read."""

    async def work() -> None:
        async with RealHost("test", tmp_path) as host:
            log = await WriteAheadLog.open(host, "wal", SETTINGS)
            await log.append(b"x")
            before = len(os.listdir("/proc/self/fd"))
            for _ in range(20):
                await log.append_many([b"x" * 200] * 500)
            records: list[Record] = [record async for record in log.read()]
            assert len(records) == 10_001
            assert log.segment_count > 5
            assert len(os.listdir("/proc/self/fd")) <= before
            await log.close()
            assert len(os.listdir("/proc/self/fd")) < before

    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not list open descriptors")
    asyncio.run(work())
