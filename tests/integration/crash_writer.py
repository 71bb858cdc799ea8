"""The victim of `test_crash`: a process that writes a log and says what was acknowledged.

    python -m tests.integration.crash_writer DIR LIFE WRITERS

Its lines: `R records last_lsn checksum` once recovered, then `A lsn writer number` after each
acknowledgement, `F message` when the log failed. Every line is one write to a pipe: what was said
before a kill has been said.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from hyperscale.ledger.wal import LogFailed, Record, WalSettings, WriteAheadLog
from hyperscale.runtime.real import RealHost, run

SETTINGS = WalSettings(segment_bytes_max=256 * 1024)


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


class Seen:
    def __init__(self) -> None:
        self.records = self.last_lsn = self.checksum = 0

    def take(self, records: Sequence[Record]) -> None:
        for record in records:
            self.checksum = crc32(record.payload, self.checksum)
        self.records += len(records)
        self.last_lsn = records[-1].lsn


def payload_of(life: int, writer: int, number: int) -> bytes:
    return b"%d %d %d " % (life, writer, number) + b"x" * (number * 37 % 300)


async def write(log: WriteAheadLog, life: int, writer: int) -> None:
    number = 0
    while True:
        lsn = await log.append(payload_of(life, writer, number))
        say(f"A {lsn} {writer} {number}")
        number += 1


async def main(directory: Path, life: int, writers: int) -> None:
    async with RealHost("victim", directory) as host:
        seen = Seen()
        log = await WriteAheadLog.open(host, "wal", SETTINGS, deliver=seen.take)
        say(f"R {seen.records} {seen.last_lsn} {seen.checksum}")
        tasks = [host.tasks.spawn(f"{n}", write(log, life, n)) for n in range(writers)]
        failures = []
        for task in tasks:
            try:
                await task
            except LogFailed as error:
                failures.append(error)
        assert len(failures) == writers, "everyone is told"
        try:
            await asyncio.wait_for(log.append(b"late"), 10)
        except LogFailed as error:
            say(f"F {error.message}")


if __name__ == "__main__":
    run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
