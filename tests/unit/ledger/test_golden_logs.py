"""Directories that were written once, by the first version of each format, open for ever."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from hyperscale.cluster.fencing import Fence
from hyperscale.ledger.checkpoints import Checkpoints
from hyperscale.ledger.records import LocalRecords, Record
from hyperscale.ledger.wal import WriteAheadLog
from hyperscale.runtime.real import RealHost
from tests.unit.ledger.golden import FOLDER


def copied(name: str, to: Path) -> Path:
    shutil.copytree(FOLDER / name, to / name)
    return to


def test_a_log(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("node", copied("wal-1", tmp_path)) as host:
            log = await WriteAheadLog.open(host, "wal-1")
            found = [record async for record in log.read()]
            assert [(record.lsn, record.payload) for record in found] == [
                *((n, b"record %d " % n * n) for n in range(1, 7)),
                *((7 + n, b"second life %d" % n) for n in range(3)),
            ]
            assert [record.kind for record in found[:6]] == [2, 3, 1, 2, 3, 1]
            assert [record.level for record in found[:6]] == [1, 2, 3, 0, 1, 2]
            assert found[0].stamp_us // 10**12 == 1794
            assert log.recovered.cut_bytes == 20
            assert await log.append(b"third life") > 9
            await log.close()

    asyncio.run(main())


def test_a_checkpoint(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("node", copied("checkpoint-1", tmp_path)) as host:
            checkpoints = Checkpoints(host, "checkpoint-1")
            found = await checkpoints.load()
            assert found is not None
            assert (found.facts.lsn, found.facts.replicated_lsn) == (4, 3)
            assert found.state == b"the state up to record 4"
            assert checkpoints.passed_over == []

    asyncio.run(main())


def test_job_records(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("node", copied("records-1", tmp_path)) as host:
            records = LocalRecords(host, "records-1", "m1")
            await records.open()
            assert records.status().term == 5
            await records.lead(6)
            assert records.jobs() == ["job-a", "job-c"]
            assert records.records("job-a") == (
                Record(2, "job-a", 1, b"created", Fence(3)),
                Record(4, "job-a", 2, b"ended", Fence(3, 0, 2), 300.0),
            )
            assert records.records("job-c") == (
                Record(5, "job-c", 1, b"created later", Fence(3, 2)),
                Record(8, "job-c", 2, b"in term 5", Fence(5)),
            )
            await records.close()

    asyncio.run(main())
