"""Job records of three managers on real disks: concurrent writers, a leader that is gone, a restart
of everybody."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import chain
from pathlib import Path

from hyperscale.cluster.fencing import Fence
from hyperscale.ledger.records import PeerUnreachable, QuorumRecords
from hyperscale.runtime.real import RealHost

VOTERS = ("m1", "m2", "m3")
WRITERS, EACH = 50, 20


class Managers:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hosts: dict[str, RealHost] = {}
        self.nodes: dict[str, QuorumRecords] = {}

    async def start(self, name: str) -> None:
        self.hosts[name] = RealHost(name, self.folder / name)
        records = QuorumRecords(
            self.hosts[name], "records", name, VOTERS, partial(self._send, name)
        )
        await records.open()
        self.nodes[name] = records

    async def stop(self, name: str) -> None:
        """Without a close, as after a kill."""
        del self.nodes[name]
        await self.hosts.pop(name).stop()

    async def _send(self, sender: str, to: str, request: bytes) -> bytes:
        if to not in self.nodes or sender not in self.nodes:
            raise PeerUnreachable(to)
        return await self.nodes[to].handle(sender, request)


def test_nothing_confirmed_is_lost(tmp_path: Path) -> None:
    async def main() -> None:
        managers = Managers(tmp_path)
        for name in VOTERS:
            await managers.start(name)
        leader = managers.nodes["m1"]
        await leader.lead(1)

        async def write(writer: int) -> list[int]:
            job = f"job {writer}"
            return [await leader.append(job, n, b"x" * 200, Fence(1)) for n in range(EACH)]

        written = await asyncio.gather(*map(write, range(WRITERS)))
        assert sorted(chain.from_iterable(written)) == list(range(2, 2 + WRITERS * EACH))
        await managers.stop("m1")
        successor = managers.nodes["m2"]
        await successor.lead(2)
        await successor.append("job 0", EACH, b"", Fence(2))
        for name in ("m2", "m3"):
            await managers.stop(name)
        for name in VOTERS:
            await managers.start(name)
        await managers.nodes["m1"].lead(3)
        for writer in range(WRITERS):
            kinds = [record.kind for record in managers.nodes["m1"].records(f"job {writer}")]
            assert kinds == list(range(EACH + (writer == 0)))
        for name in VOTERS:
            await managers.stop(name)

    asyncio.run(main())
