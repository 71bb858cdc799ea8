"""Records of several voters in one simulated world, joined by calls instead of a network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from hyperscale.cluster.fencing import Fence
from hyperscale.ledger.checkpoints import Policy
from hyperscale.ledger.records import PeerUnreachable, QuorumRecords, Record, RecordsSettings
from hyperscale.ledger.wal import WalSettings
from hyperscale.sim.world import World
from tests.unit.sim.worlds import finish, world_of

SETTINGS = RecordsSettings(
    quorum_timeout_s=2.0,
    request_timeout_s=0.5,
    checkpoint=Policy(records=1_000_000, seconds=1e9),
    wal=WalSettings(segment_bytes_max=4_000),
)
FENCE = Fence(1)


class Cluster:
    def __init__(self, world: World, names: tuple[str, ...], settings: RecordsSettings) -> None:
        self.world = world
        self.names = names
        self.settings = settings
        self.cut: set[str] = set()
        self.nodes: dict[str, QuorumRecords] = {}
        self.applied: dict[str, list[Record]] = {}
        self.forgotten: dict[str, list[str]] = {}
        self.meddle: Callable[[str, str, bytes], bytes] = lambda _from, _to, data: data

    async def start(self, name: str) -> QuorumRecords:
        records = QuorumRecords(
            self.world.host(name),
            "records",
            name,
            self.names,
            partial(self._send, name),
            self.settings,
        )
        await records.open()
        self.nodes[name] = records
        self.applied[name] = []
        self.forgotten[name] = []
        records.on_applied.append(self.applied[name].append)
        records.on_forgotten.append(self.forgotten[name].append)
        return records

    async def start_all(self) -> None:
        for name in self.names:
            await self.start(name)

    async def belong(self) -> None:
        """All that began with empty disks have been brought up to date, and count."""
        await self.until(lambda: not any(node.status().newcomer for node in self.nodes.values()))

    async def kill(self, name: str) -> None:
        """Lose what is not on stable storage, and everything in memory."""
        del self.nodes[name]
        self.world.crash(name, "lost-unsynced")
        self.world.restart(name)
        await asyncio.sleep(0.01)

    async def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(600):
            if holds():
                return
            await asyncio.sleep(0.05)
        raise AssertionError("it never came true")

    async def settled(self) -> None:
        """Everybody who is there has applied what the leader has."""
        leader = next(node for node in self.nodes.values() if node.status().ready)
        reached = [self.nodes[name] for name in self.nodes if name not in self.cut]
        await self.until(
            lambda: (
                {node.status().applied_index for node in reached} == {leader.status().last_index}
            )
        )

    async def _send(self, sender: str, to: str, data: bytes) -> bytes:
        await asyncio.sleep(0.001)
        if {sender, to} & self.cut or to not in self.nodes:
            raise PeerUnreachable(to)
        reply = await self.nodes[to].handle(sender, self.meddle(sender, to, data))
        await asyncio.sleep(0.001)
        if {sender, to} & self.cut:
            raise PeerUnreachable(to)
        return reply


def play(
    story: Callable[[Cluster], Coroutine[Any, Any, None]],
    names: tuple[str, ...] = ("a", "b", "c"),
    settings: RecordsSettings = SETTINGS,
) -> None:
    world = world_of(*names)
    finish(world, story(Cluster(world, names, settings)))


def payloads(records: QuorumRecords, job_id: str) -> list[bytes]:
    return [record.payload for record in records.records(job_id)]
