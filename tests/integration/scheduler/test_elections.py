"""The contract of elections on real services: SQLite, Redis, one etcd; and three etcd members.
Each case has names of its own on the service it shares with the others."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from hyperscale.scheduler.errors import StaleLeader
from hyperscale.scheduler.leader.election import Election, ElectionUnavailable, LeasedElection
from hyperscale.scheduler.leader.opening import open_election
from hyperscale.scheduler.store.memory import MemoryGround
from hyperscale.scheduler.store.opening import open_store
from hyperscale.scheduler.store.sqlite.ground import SqliteGround
from hyperscale.scheduler.store.store import Store
from tests.integration.scheduler.bad_wire import bad_wire
from tests.integration.scheduler.etcd_cluster import EtcdCluster, etcd_cluster
from tests.integration.scheduler.postgres_store import Postgres, postgres
from tests.integration.scheduler.redis_server import redis_server
from tests.unit.scheduler.leader.election_cases import TTL_S, ElectionCases, Ground, zero
from tests.unit.scheduler.worlds import host_of


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with etcd_cluster(tmp_path_factory.mktemp("etcd"), 1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


def at_address(make: Callable[[], str]) -> Ground:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Callable[[str], Election]]:
        address = make()
        yield lambda node: open_election(
            host_of(), address, Store(MemoryGround()), node, f"http://{node}", TTL_S
        )

    return opened


class TestSqliteElection(ElectionCases):
    @pytest.fixture
    def ground(self, tmp_path: Path) -> Ground:
        @asynccontextmanager
        async def opened() -> AsyncIterator[Callable[[str], Election]]:
            store = Store(await SqliteGround.open(tmp_path / "jobs.db"))
            try:
                yield lambda node: open_election(host_of(), "local", store, node, "", TTL_S)
            finally:
                await store.close()

        return opened


class TestRedisElection(ElectionCases):
    @pytest.fixture
    def ground(self, tmp_path: Path) -> Iterator[Ground]:
        with redis_server(tmp_path) as server:
            yield at_address(lambda: server.url)


class TestEtcdElection(ElectionCases):
    @pytest.fixture
    def ground(self, etcd: EtcdCluster) -> Ground:
        return at_address(lambda: f"{etcd.address}/{uuid.uuid4().hex}")


class TestPostgresElection(ElectionCases):
    @pytest.fixture
    def ground(self, database: Postgres) -> Ground:
        return at_address(database.fresh)

    def test_a_killed_session_frees_the_lead_and_fences_its_leader(
        self, database: Postgres
    ) -> None:
        async def run() -> None:
            url = await database.create()
            store = await open_store(url)
            one = open_election(host_of(), url, store, "one", ttl_s=10)
            two = open_election(host_of(), url, store, "two", ttl_s=10)
            async with asyncio.timeout(60):
                first = await one.campaign(store.epoch)
                assert await store.epoch() == first.token
                await database.run(
                    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
                )
                second = await two.campaign(store.epoch)
                with pytest.raises(StaleLeader):
                    await store.promote(0, epoch=first.token)
                assert await store.promote(0, epoch=second.token) == 0
                await first.lost.wait()
            await one.close()
            await two.close()
            await store.close()

        asyncio.run(run())


def test_three_members_survive_the_loss_of_one(tmp_path: Path) -> None:
    async def run(cluster: EtcdCluster) -> None:
        one = open_election(host_of(), cluster.address, Store(MemoryGround()), "one", ttl_s=10)
        two = open_election(host_of(), cluster.address, Store(MemoryGround()), "two", ttl_s=10)
        async with asyncio.timeout(60):
            first = await one.campaign(zero)
            waiting = asyncio.create_task(two.campaign(zero))
            cluster.kill(0)
            await asyncio.sleep(10)  # longer than the lease is trusted without renewal
            assert first.remaining_s > 0, "renewed through another member"
            assert not waiting.done()
            await one.resign()
            second = await waiting
            assert second.token > first.token
            await one.close()
            await two.close()

    with etcd_cluster(tmp_path, 3) as cluster:
        asyncio.run(run(cluster))


def test_cut_off_from_etcd_a_leader_falls_silent_by_itself(tmp_path: Path) -> None:
    async def run(cluster: EtcdCluster) -> None:
        election = open_election(host_of(), cluster.address, Store(MemoryGround()), "one", ttl_s=4)
        assert isinstance(election, LeasedElection)
        term = await election.campaign(zero)
        cluster.kill(0)
        async with asyncio.timeout(30):
            await term.lost.wait()
        assert term.remaining_s == 0
        await election.close()

    with etcd_cluster(tmp_path, 1) as cluster:
        asyncio.run(run(cluster))


def test_cut_off_alone_a_leader_is_silent_before_the_next_one_speaks(etcd: EtcdCluster) -> None:
    """Its etcd lives and others reach it: nobody tells the leader that it leads no more."""
    prefix = uuid.uuid4().hex

    async def run() -> None:
        async with asyncio.timeout(60), bad_wire(etcd.hosts[0]) as (wire, address):
            one = open_election(
                host_of(), f"etcd://{address}/{prefix}", Store(MemoryGround()), "one", ttl_s=4
            )
            two = open_election(
                host_of(), f"{etcd.address}/{prefix}", Store(MemoryGround()), "two", ttl_s=4
            )
            first = await one.campaign(zero)
            wire.cut()
            second = await two.campaign(zero)
            assert first.remaining_s == 0
            assert second.token > first.token
            wire.mend()
            again = asyncio.create_task(one.campaign(zero))
            await two.resign()
            assert (await again).token > second.token
            await one.close()
            await two.close()

    asyncio.run(run())


def test_a_wire_that_breaks_one_time_in_four_costs_no_lease(etcd: EtcdCluster) -> None:
    async def run() -> None:
        async with asyncio.timeout(90), bad_wire(etcd.hosts[0]) as (wire, address):
            election = open_election(
                host_of(),
                f"etcd://{address}/{uuid.uuid4().hex}",
                Store(MemoryGround()),
                "one",
                ttl_s=6,
            )
            term = await election.campaign(zero)
            wire.loss = 0.25
            while wire.broken < 5:
                await asyncio.sleep(0.1)  # between looks, until the deadline above
                with suppress(ElectionUnavailable):
                    await election.leader()
                assert term.remaining_s > 0
            wire.loss = 0.0
            await election.close()

    asyncio.run(run())
