"""Gates before a manager: each row of the table of failures (G-80) that needs no replication."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hyperscale.ledger.idempotency import Answer, GateCache, Kind, content_digest
from hyperscale.runtime.tasks import RealTasks
from tests.fixtures.journals import HandClock, MemoryJournal
from tests.unit.ledger.idempotency.node import Node, key

DIGEST = content_digest(b"spec")


class Cluster:
    """Two gates, a manager that can be restarted, and a network that can lose either way."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.clock = HandClock()
        self.tasks = RealTasks()
        self.gates = [GateCache(self.clock), GateCache(self.clock)]
        self.manager = Node(self.journal, self.clock, self.tasks)
        self.lose_request = self.lose_answer = False

    async def restart_manager(self) -> None:
        self.manager = Node(MemoryJournal(self.journal.records), self.clock, self.tasks)
        await self.manager.start()

    async def submit(self, gate: int, job_id: str, number: int = 0) -> Answer:
        async def forward() -> Answer:
            if self.lose_request:
                raise ConnectionError("lost on the way there")
            answer = await self.manager.submit(key(number), job_id)
            if self.lose_answer:
                raise ConnectionError("lost on the way back")
            return answer

        return await self.gates[gate].through(key(number), DIGEST, job_id, forward)


def in_cluster(scene: Callable[[Cluster], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        cluster = Cluster()
        await scene(cluster)
        await cluster.tasks.stop()

    asyncio.run(main())


def test_a_gate_that_dies_before_forwarding() -> None:
    async def scene(cluster: Cluster) -> None:
        cluster.lose_request = True
        with pytest.raises(ConnectionError):
            await cluster.submit(0, "job-a")
        cluster.lose_request = False
        answer = await cluster.submit(1, "job-b")
        assert (answer.job_id, cluster.manager.jobs_of(key())) == ("job-b", ["job-b"])

    in_cluster(scene)


def test_a_gate_that_dies_after_forwarding() -> None:
    async def scene(cluster: Cluster) -> None:
        cluster.lose_answer = True
        with pytest.raises(ConnectionError):
            await cluster.submit(0, "job-a")
        cluster.lose_answer = False
        for gate in (0, 1):
            answer = await cluster.submit(gate, "job-b")
            assert (answer.kind, answer.job_id) == (Kind.ACCEPTED, "job-a")
        assert cluster.manager.jobs_of(key()) == ["job-a"]

    in_cluster(scene)


def test_a_manager_that_dies_before_its_log_has_anything() -> None:
    async def scene(cluster: Cluster) -> None:
        cluster.journal.failure = OSError("killed")
        with pytest.raises(OSError, match="killed"):
            await cluster.submit(0, "job-a")
        await cluster.restart_manager()
        assert (await cluster.submit(0, "job-b")).job_id == "job-b"

    in_cluster(scene)


def test_a_manager_that_dies_after_reserving() -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.manager.ledger.reserve(key(), "job-a", DIGEST)
        await cluster.restart_manager()
        assert (await cluster.submit(0, "job-b")).job_id == "job-b"
        assert cluster.manager.jobs_of(key()) == ["job-b"]

    in_cluster(scene)


def test_a_retry_while_the_original_is_under_way_through_another_gate() -> None:
    async def scene(cluster: Cluster) -> None:
        cluster.journal.gate = asyncio.Event()
        asking = [asyncio.ensure_future(cluster.submit(gate, f"job-{gate}")) for gate in (0, 1)]
        for _ in range(20):
            await asyncio.sleep(0)
        cluster.journal.gate.set()
        answers = await asyncio.gather(*asking)
        assert {(a.job_id, a.answer) for a in answers} == {("job-0", b"accepted job-0")}

    in_cluster(scene)


def test_a_clock_that_jumps_forgets_nothing() -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.submit(0, "job-a")
        cluster.clock.time = 1e9
        await cluster.restart_manager()
        cluster.gates = [GateCache(cluster.clock), GateCache(cluster.clock)]
        assert (await cluster.submit(1, "job-b")).job_id == "job-a"

    in_cluster(scene)


def test_after_its_time_a_retry_is_a_new_job() -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.submit(0, "job-a")
        cluster.clock.time += 301
        assert (await cluster.submit(0, "job-b")).job_id == "job-b"

    in_cluster(scene)


@pytest.mark.parametrize("seed", range(10))
def test_a_storm_of_retries_with_lost_messages_and_restarts(seed: int) -> None:
    async def scene(cluster: Cluster) -> None:
        dice = random.Random(seed)
        told: dict[int, set[str]] = {number: set() for number in range(8)}

        async def client(number: int, retry: int) -> None:
            await asyncio.sleep(0)
            try:
                answer = await cluster.submit(dice.randrange(2), f"job-{number}-{retry}", number)
            except ConnectionError:
                return
            if answer.kind is Kind.ACCEPTED:
                told[number].add(answer.job_id)

        for retry in range(12):
            cluster.lose_request, cluster.lose_answer = dice.random() < 0.2, dice.random() < 0.3
            await asyncio.gather(*(client(n, retry) for n in told for _ in range(3)))
            if dice.random() < 0.4:
                await cluster.restart_manager()
        cluster.lose_request = cluster.lose_answer = False
        await asyncio.gather(*(client(n, 99) for n in told))
        for number, job_ids in told.items():
            assert cluster.manager.jobs_of(key(number)) == list(job_ids)
            assert len(job_ids) == 1

    in_cluster(scene)
