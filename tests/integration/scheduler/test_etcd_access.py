"""An etcd that asks for certificates and passwords, and one that loses members."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hyperscale.errors import BadInput
from hyperscale.runtime.etcd import ANONYMOUS, EtcdAccess
from hyperscale.scheduler.leader.election import Election, ElectionUnavailable
from hyperscale.scheduler.leader.opening import open_election
from hyperscale.scheduler.store.memory import MemoryGround
from hyperscale.scheduler.store.store import Store
from hyperscale.target.certificate import write_certificate
from tests.integration.scheduler.bad_wire import bad_wire
from tests.integration.scheduler.etcd_cluster import EtcdCluster, etcd_cluster
from tests.unit.scheduler.leader.election_cases import zero
from tests.unit.scheduler.worlds import host_of

TTL_S = 10.0
PREFIX = "hyperscale-scheduler"


Place = tuple[EtcdCluster, EtcdAccess]


@pytest.fixture(scope="module")
def with_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """TLS, and a user who may touch the election's keys only."""
    directory = tmp_path_factory.mktemp("etcd")
    files = write_certificate(directory, "127.0.0.1")
    with etcd_cluster(directory, 1, files) as cluster:
        for words in (
            ("user", "add", "root:top"),
            ("user", "grant-role", "root", "root"),
            ("role", "add", "elections"),
            ("role", "grant-permission", "elections", "readwrite", f"{PREFIX}/", f"{PREFIX}0"),
            ("user", "add", "scheduler:secret"),
            ("user", "grant-role", "scheduler", "elections"),
            ("auth", "enable"),
        ):
            cluster.control(*words)
        yield cluster, EtcdAccess(user="scheduler", password="secret", ca=str(files[0]))


@pytest.fixture(scope="module")
def mutual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("etcd")
    files = write_certificate(directory, "127.0.0.1")
    certificate, key = map(str, files)
    with etcd_cluster(directory, 1, files, mutual=True) as cluster:
        yield cluster, EtcdAccess(ca=certificate, cert=certificate, key=key)


def candidate(cluster: EtcdCluster, access: EtcdAccess, node: str = "one") -> Election:
    return open_election(host_of(), cluster.address, Store(MemoryGround()), node, "", TTL_S, access)


@pytest.mark.parametrize("place", ["with_users", "mutual"])
def test_who_is_known_may_lead(place: str, request: pytest.FixtureRequest) -> None:
    cluster, access = request.getfixturevalue(place)

    async def run() -> None:
        one, two = candidate(cluster, access), candidate(cluster, access, "two")
        async with asyncio.timeout(60):
            first = await one.campaign(zero)
            waiting = asyncio.create_task(two.campaign(zero))
            leader = await two.leader()
            assert leader is not None
            assert (leader.node, leader.token) == ("one", first.token)
            await one.resign()
            assert (await waiting).token > first.token
            await two.close()
            await one.close()

    asyncio.run(run())


def test_a_token_that_etcd_has_forgotten_is_asked_for_again(with_users: Place) -> None:
    cluster, access = with_users

    async def run() -> None:
        election = candidate(cluster, access)
        async with asyncio.timeout(60):
            assert await election.leader() is None
            cluster.kill(0)
            with pytest.raises(ElectionUnavailable):
                await election.leader()
            await asyncio.to_thread(cluster.heal, 0)
            assert await election.leader() is None
            term = await election.campaign(zero)
            assert term.remaining_s > 0
            await election.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("place", "change"),
    [
        ("with_users", {"password": "wrong"}),
        ("with_users", {"user": "", "password": ""}),
        ("with_users", {"ca": ""}),
        ("mutual", {"cert": "", "key": ""}),
    ],
    ids=["wrong password", "nobody", "unknown authority", "no certificate"],
)
def test_strangers_get_no_lease(
    place: str, change: dict[str, str], request: pytest.FixtureRequest
) -> None:
    cluster, access = request.getfixturevalue(place)

    async def run() -> None:
        election = candidate(cluster, replace(access, **change))
        with pytest.raises(ElectionUnavailable):
            await election.leader()
        await election.close()

    asyncio.run(run())


@pytest.mark.parametrize("field", ["ca", "cert"])
def test_files_that_cannot_be_used_are_told_at_once(tmp_path: Path, field: str) -> None:
    bad = tmp_path / "bad.pem"
    bad.write_text("not a certificate")
    access = replace(ANONYMOUS, **{field: str(bad), "key": str(bad)})
    for file in (access, replace(access, **{field: str(tmp_path / "missing.pem")})):
        with pytest.raises(BadInput, match="TLS files"):
            open_election(
                host_of(), "etcds://127.0.0.1:2379", Store(MemoryGround()), "one", access=file
            )


def test_a_member_that_hangs_costs_no_lease(tmp_path: Path) -> None:
    """Paused, it accepts connections and never answers: worse than one that is gone."""

    async def run(cluster: EtcdCluster) -> None:
        election = open_election(host_of(), cluster.address, Store(MemoryGround()), "one", ttl_s=10)
        async with asyncio.timeout(60):
            term = await election.campaign(zero)
            cluster.signal(0, signal.SIGSTOP)
            try:
                await asyncio.sleep(9)  # longer than the lease is trusted without renewal
                assert term.remaining_s > 0, "renewed through another member"
            finally:
                cluster.signal(0, signal.SIGCONT)
            await election.close()

    with etcd_cluster(tmp_path, 3) as cluster:
        asyncio.run(run(cluster))


def test_a_member_that_hangs_holds_up_no_goodbye(with_users: Place) -> None:
    cluster, access = with_users

    async def run() -> None:
        member = cluster.address.removeprefix("etcds://")
        async with bad_wire(member) as (wire, address):
            election = open_election(
                host_of(), f"etcds://{address}", Store(MemoryGround()), "one", access=access
            )
            assert await election.leader() is None
            wire.cut()
            async with asyncio.timeout(15):  # TLS alone would wait for 30
                await election.close()
            wire.mend()

    asyncio.run(run())
