"""The write-ahead log under crashes, torn and lying disks, full disks, slow disks and rot.

Each host is alone with its disk: writers append, give up, append many; a follower builds a state
from what is durable; now and then the state is checkpointed, the log compacted, closed and opened
again. The checkers hold every start against what was acknowledged before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from hyperscale.errors import HyperscaleError
from hyperscale.ledger.checkpoints import Checkpoints, restore
from hyperscale.ledger.wal import (
    LogClosed,
    LogCompacted,
    LogDamaged,
    LogFailed,
    Record,
    WalSettings,
    WriteAheadLog,
)
from hyperscale.ledger.wal.repair import repair
from hyperscale.runtime.host import Host, Task
from hyperscale.sim.checkers import Checker
from hyperscale.sim.faults import Limits
from hyperscale.sim.host import SimHost
from hyperscale.sim.scenario import Scenario
from hyperscale.sim.scenarios.wal_bugs import applied, broken_host, plant
from hyperscale.sim.scenarios.wal_checkers import (
    BoundedWait,
    DurableAck,
    FailStop,
    NothingLost,
    Numbering,
    Recovery,
    Row,
    SameState,
    fold,
)
from hyperscale.sim.world import World

LOG, CHECKPOINTS = "wal", "checkpoints"
WRITERS = 5
THINK_S_MAX = 0.12
PAYLOAD_BYTES_MAX = 700
LIFE_S_MAX = 6.0
CHECKPOINT_EVERY_S = 0.7

SETTINGS = WalSettings(
    segment_bytes_max=6_000,
    batch_entries_max=6,
    batch_bytes_max=2_000,
    queue_entries_max=4,
    queue_bytes_max=2_000,
    read_bytes=1_000,
)
"""Small enough that a second of work rotates, fills the queue and splits batches."""


class Wal(Scenario):
    name = "wal"
    summary = "logs keep what they acknowledged, through crashes, torn, full, slow and rotten disks"
    nodes_default = 2
    safety_s = 10.0
    liveness_s = 30.0
    faults = (
        "crash-kept",
        "crash-lost-unsynced",
        "crash-torn",
        "append-error",
        "sync-error",
        "disk-full",
        "disk-slow",
        "wall-step",
        "bit-rot",
    )
    limits = Limits(down_max_s=1.0, gap_s_min=0.3, gap_s_max=6.0, cut_max_s=3.0, error_max=0.05)
    planted_bugs: ClassVar = {
        "ack-before-sync": "DurableAck",
        "name-before-sync": "NothingLost",
        "forget-directory": "DurableAck",
        "sync-again": "DurableAck",
        "silent-repair": "NothingLost",
        "compact-too-far": "NothingLost",
        "number-again": "Numbering",
        "answer-backwards": "Numbering",
        "forgive-the-disk": "FailStop",
        "replay-twice": "SameState",
        "checkpoint-ahead": "SameState",
        "lose-waiters": "BoundedWait",
    }

    def __init__(self, nodes: int | None = None, planted_bug: str = "") -> None:
        super().__init__(nodes, planted_bug)
        self.acked_at: dict[str, float] = {}
        self.refused: set[str] = set()

    async def setup(self, world: World) -> None:
        for name in self.node_names():
            world.add(name, lambda host: WalNode(self, world, host).run())

    def checkers(self) -> list[Checker]:
        return [
            DurableAck(),
            NothingLost(),
            Numbering(),
            FailStop(),
            SameState(),
            BoundedWait(),
        ]

    def goal(self, world: World) -> str:
        world.observe("polled")
        silent = [
            f"{name} has acknowledged nothing"
            for name in world.core
            if name not in self.refused and self.acked_at.get(name, -1.0) < world.healed_at
        ]
        return "; ".join(silent)

    def forgives(self, task: str, error: BaseException) -> bool:
        return isinstance(error, LogFailed) or super().forgives(task, error)


class WalNode:
    """One generation of a host; `_live` is one opening of its log."""

    def __init__(self, scenario: Wal, world: World, host: SimHost) -> None:
        self._scenario = scenario
        self._bug = scenario.planted_bug
        self._world = world
        self._host: Host = broken_host(host, self._bug)
        self._generation = host.generation
        self._lives = 0
        self._state, self._state_lsn = (0, 0), 0
        self._trouble: asyncio.Event
        self._numbers = 0

    async def run(self) -> None:
        while True:
            self._lives += 1
            self._trouble = asyncio.Event()
            try:
                log = await self._open()
            except (LogDamaged, LogCompacted) as refusal:
                await self._refuse(refusal)
                continue
            await self._live(log)

    async def _open(self) -> WriteAheadLog:
        self._state, self._state_lsn = (0, 0), 0
        checkpoints = Checkpoints(self._host, CHECKPOINTS)
        restored = await restore(self._host, LOG, checkpoints, self._load, self._apply, SETTINGS)
        self._checkpoints, log = checkpoints, restored.log
        plant(log, self._bug)
        rows = [row_of(record) async for record in log.read()]
        found = Recovery(
            rows=rows,
            rows_again=[row_of(record) async for record in log.read()],
            first_lsn=log.first_lsn,
            next_lsn=log.recovered.next_lsn,
            cut_bytes=log.recovered.cut_bytes,
            checkpoint_lsn=restored.checkpoint.lsn if restored.checkpoint else 0,
            state=self._state,
        )
        self._observe("recovered", life=self._life, found=found)
        return log

    async def _refuse(self, refusal: HyperscaleError) -> None:
        """Damage is for people to look at; a node that helps itself in silence is the bug."""
        if self._bug == "silent-repair" and isinstance(refusal, LogDamaged):
            await repair(self._host.disk, self._host.clock, LOG, SETTINGS)
            return
        self._observe("refused", error=refusal.message)
        self._scenario.refused.add(self._host.name)
        await asyncio.Event().wait()

    async def _live(self, log: WriteAheadLog) -> None:
        tasks = [
            self._host.tasks.spawn(f"writer {number}", self._append_on(log, number))
            for number in range(WRITERS)
        ]
        tasks.append(self._host.tasks.spawn("follower", self._follow(log)))
        tasks.append(self._host.tasks.spawn("checkpointer", self._checkpoint_on(log)))
        try:
            async with asyncio.timeout(self._host.random.uniform(0.5, LIFE_S_MAX)):
                await self._trouble.wait()
        except TimeoutError:
            pass
        await self._close(log, tasks)

    async def _close(self, log: WriteAheadLog, tasks: list[Task]) -> None:
        try:
            await log.close()
        finally:
            for task in tasks:
                await task
        if log.failure is not None:
            self._observe("log_failed", life=self._life)
            await self._append_to_a_failed(log)
            raise log.failure
        self._observe("closed", life=self._life)

    async def _append_to_a_failed(self, log: WriteAheadLog) -> None:
        try:
            await self._append(log, 0)
        except LogFailed:
            return

    # -- writers ------------------------------------------------------------------------------

    async def _append_on(self, log: WriteAheadLog, writer: int) -> None:
        dice = self._host.random
        try:
            while True:
                await self._host.clock.sleep(dice.random() ** 3 * THINK_S_MAX)
                chance = dice.random()
                if chance < 0.1:
                    await self._give_up(log, writer)
                elif chance < 0.2:
                    await self._append_many(log, writer)
                else:
                    await self._append(log, writer)
        except LogClosed:
            return
        except LogFailed:
            self._observe("log_failed", life=self._life)
            self._trouble.set()

    async def _append(self, log: WriteAheadLog, writer: int) -> None:
        token, payload = self._record(writer)
        self._observe("appending", token=token)
        try:
            lsn = await log.append(payload)
        except HyperscaleError:
            self._observe("answered", token=token)
            raise
        self._acked(lsn, token)

    async def _append_many(self, log: WriteAheadLog, writer: int) -> None:
        records = [self._record(writer) for _ in range(self._host.random.randint(2, 9))]
        for token, _ in records:
            self._observe("appending", token=token)
        try:
            lsns = await log.append_many([payload for _, payload in records])
        except HyperscaleError:
            for token, _ in records:
                self._observe("answered", token=token)
            raise
        for lsn, (token, _) in zip(lsns, records, strict=True):
            self._durable(lsn, token)

    async def _give_up(self, log: WriteAheadLog, writer: int) -> None:
        """A caller that is cancelled at a random moment; what became of its record is unknown."""
        token, payload = self._record(writer)
        self._observe("appending", token=token)
        try:
            async with asyncio.timeout(self._host.random.random() ** 2 * 0.01):
                await log.append(payload)
        except TimeoutError:
            pass
        finally:
            self._observe("answered", token=token)

    def _acked(self, lsn: int, token: str) -> None:
        self._observe("acked", life=self._life, lsn=lsn, token=token)
        self._durable(lsn, token)

    def _durable(self, lsn: int, token: str) -> None:
        self._observe("durable", life=self._life, lsn=lsn, token=token)
        self._observe("answered", token=token)
        self._scenario.acked_at[self._host.name] = self._world.now

    def _record(self, writer: int) -> tuple[str, bytes]:
        self._numbers += 1
        token = f"{self._life}.{writer}.{self._numbers}"
        padding = bytes(int(self._host.random.random() ** 4 * PAYLOAD_BYTES_MAX))
        return token, f"<{token}>".encode() + padding

    # -- the state ----------------------------------------------------------------------------

    def _load(self, state: bytes) -> None:
        count, digest, lsn = map(int, state.split())
        self._state, self._state_lsn = (count, digest), lsn

    def _apply(self, records: Sequence[Record]) -> None:
        for row in applied([row_of(record) for record in records], self._bug):
            self._state, self._state_lsn = fold(self._state, row), row[0]

    async def _follow(self, log: WriteAheadLog) -> None:
        try:
            async for record in log.follow(self._state_lsn + 1):
                lsn, token = row_of(record)
                self._observe("followed", lsn=lsn, token=token)
                self._state, self._state_lsn = fold(self._state, (lsn, token)), lsn
        except LogDamaged as damage:
            self._observe("refused", error=damage.message)
            self._trouble.set()
        except LogFailed:
            self._trouble.set()

    async def _checkpoint_on(self, log: WriteAheadLog) -> None:
        while not self._trouble.is_set() and log.failure is None and not log.closed:
            await self._host.clock.sleep(self._host.random.uniform(0, 2 * CHECKPOINT_EVERY_S))
            lsn, (count, digest) = self._state_lsn, self._state
            if log.closed or not count:
                continue
            ahead = 2 if self._bug == "checkpoint-ahead" else 0
            try:
                await self._checkpoints.save(lsn + ahead, f"{count} {digest} {lsn}".encode())
                safe_lsn = self._checkpoints.safe_lsn
                await log.compact(log.last_lsn if self._bug == "compact-too-far" else safe_lsn)
            except OSError:
                self._trouble.set()

    def _observe(self, kind: str, **facts: object) -> None:
        self._world.observe(kind, node=self._host.name, **facts)

    @property
    def _life(self) -> str:
        return f"{self._host.name}.{self._generation}.{self._lives}"


def row_of(record: Record) -> Row:
    return record.lsn, record.payload[1 : record.payload.index(b">")].decode()
