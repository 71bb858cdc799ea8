"""Real sockets: nodes find each other through dead and live seeds."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from hyperscale.cluster.discovery import DiscoverySettings, DiscoveryState, DnsName, Probe
from hyperscale.cluster.identity import Node
from hyperscale.errors import RunFailed
from hyperscale.nodes.member.bootstrap import PROBES, Bootstrap
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.identity import Identity
from hyperscale.wire.server import Server


def dead_port() -> tuple[str, int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return "127.0.0.1", listener.getsockname()[1]


class Running:
    def __init__(self, host: RealHost, role: str = "manager", cluster: str = "c") -> None:
        self.host = host
        self.role = role
        self.cluster = cluster
        self.found: list[str] = []

    async def listen(self, settings: DiscoverySettings) -> tuple[str, int]:
        """Answering, not looking yet; the address is a free one."""
        name = self.host.name
        me = Probe(self.cluster, "e", Node(name, 1, self.role, "dc", ("", 0), ("", 0)))
        self.bootstrap = Bootstrap(self.host, me, settings)
        self.bootstrap.on_found.append(lambda peer: self.found.append(peer.node_id))
        identity = Identity(
            node_id=name,
            incarnation=1,
            role=self.role,
            cluster_id=self.cluster,
            environment_id="e",
            datacenter="dc",
        )
        self.endpoint = Endpoint(
            self.host,
            Introduction(identity),
            PROBES,
            self.bootstrap.handlers,
            plaintext="loopback",
        )
        address = await Server(self.endpoint).start(Address("127.0.0.1", 0))
        return address.host, address.port

    async def look(self) -> None:
        await self.bootstrap.start(self.endpoint)


def managers(*seeds: tuple[str, int], **changes: object) -> DiscoverySettings:
    config: dict[str, object] = {"peer_roles": ("manager",), "forms_cluster": True} | changes
    return DiscoverySettings(seeds=seeds, **config)  # type: ignore[arg-type]


def test_managers_and_a_worker_join_through_one_live_seed(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            RealHost("first", tmp_path / "first") as one,
            RealHost("second", tmp_path / "second") as two,
            RealHost("worker", tmp_path / "worker") as three,
        ):
            first, second = Running(one), Running(two)
            worker = Running(three, "worker")
            seed = await first.listen(managers())
            await second.listen(managers(dead_port(), seed))
            settings = managers(dead_port(), seed, forms_cluster=False, deadline_s=30.0)
            await worker.listen(settings)
            for node in (first, second, worker):
                await node.look()
            async with asyncio.timeout(30.0):
                for node in (first, second, worker):
                    await node.bootstrap.joined()
            assert first.found == ["second"]
            assert second.found == ["first"]
            assert worker.found == ["first"]

    asyncio.run(story())


def test_a_worker_that_finds_nobody_says_whom_it_asked(tmp_path: Path) -> None:
    async def story() -> None:
        async with RealHost("w", tmp_path / "w") as host, RealHost("m", tmp_path / "m") as other:
            stranger = Running(other, cluster="staging")
            there = await stranger.listen(managers())
            worker = Running(host, "worker")
            nowhere = dead_port()
            settings = managers(
                there,
                nowhere,
                names=(DnsName("no-such-name.invalid"),),
                forms_cluster=False,
                deadline_s=1.0,
            )
            await worker.listen(settings)
            await worker.look()
            with pytest.raises(RunFailed) as failure:
                await worker.bootstrap.joined()
            assert "this is cluster 'staging', not 'c'" in failure.value.message
            assert f"127.0.0.1:{nowhere[1]}: " in failure.value.message
            assert worker.bootstrap.state is DiscoveryState.FAILED
            assert worker.found == []

    asyncio.run(story())


def test_stopping_leaves_no_task(tmp_path: Path) -> None:
    async def story() -> None:
        host = RealHost("n", tmp_path / "n")
        node = Running(host)
        await node.listen(managers(dead_port(), names=(DnsName("localhost", 1),)))
        await node.look()
        node.bootstrap.stop()
        await host.stop()
        assert host.tasks.names() == []

    asyncio.run(story())
