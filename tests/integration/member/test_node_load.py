"""What a node's load is made of: its own CPU, its group's memory, the queues of its role."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hyperscale.cluster.overload import LoadLevel
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.member.queries import AskStatus, Status
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.runtime.host import Address, Usage
from hyperscale.runtime.real import RealHost
from hyperscale.runtime.usage import ProcessUsage
from hyperscale.wire.errors import Reason, Refused
from hyperscale.wire.peer import Peer
from tests.unit.runtime.test_usage import version_2

ANY = Address("127.0.0.1", 0)


async def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(3_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen within 30 s")


class Fixed(ProcessUsage):
    def __init__(self, usage: Usage) -> None:
        super().__init__()
        self._usage = usage
        self.reads = 0

    def read(self) -> Usage:
        self.reads += 1
        return self._usage


@asynccontextmanager
async def node(folder: Path, usage: ProcessUsage, role: str = "manager") -> AsyncIterator[Node]:
    settings = NodeSettings(id="n1", bind=ANY, data=folder, role=role, plaintext="loopback")
    async with RealHost("n1", folder, usage=usage) as host:
        made = Node(host, settings)
        made.admission.sample_every_s = 0.01
        await made.start()
        yield made
        await made.stop()


def test_a_group_without_memory_left_is_overload(tmp_path: Path) -> None:
    """And it is told so: nothing but what is critical is taken on."""

    async def story() -> None:
        version_2(tmp_path / "group", 1_000_000, 990_000)
        usage = ProcessUsage(tmp_path / "group", Path("/nowhere"))
        async with node(tmp_path, usage) as made:
            await eventually(lambda: made.admission.load is LoadLevel.OVERLOADED)
            peer = Peer(made.endpoint, Address(*made.membership.me.tcp))
            with pytest.raises(Refused) as refused:
                await peer.request(AskStatus(), Status)
            assert refused.value.code == Reason.OVERLOADED

    asyncio.run(story())


@pytest.mark.parametrize(
    ("cpu", "load"),
    [
        (0.6, LoadLevel.HEALTHY),
        (0.75, LoadLevel.BUSY),
        (0.9, LoadLevel.STRESSED),
        (0.97, LoadLevel(3)),
    ],
)
def test_a_managers_own_cpu_counts(tmp_path: Path, cpu: float, load: LoadLevel) -> None:
    async def story() -> None:
        usage = Fixed(Usage(cpu=cpu, memory=0.1))
        async with node(tmp_path, usage) as made:
            await eventually(lambda: made.admission.load is load and usage.reads > 3)
            assert made.admission.load is load

    asyncio.run(story())


def test_the_cores_of_a_worker_are_meant_to_be_full(tmp_path: Path) -> None:
    async def story() -> None:
        usage = Fixed(Usage(cpu=1.0, memory=0.1))
        async with node(tmp_path, usage, role="worker") as made:
            await eventually(lambda: usage.reads > 5)
            assert made.admission.load is LoadLevel.HEALTHY

    asyncio.run(story())


def test_the_queue_of_the_role_counts(tmp_path: Path) -> None:
    async def story() -> None:
        async with node(tmp_path, Fixed(Usage())) as made:
            made.queue = lambda: 0.9
            await eventually(lambda: made.admission.load is LoadLevel.STRESSED)

    asyncio.run(story())
