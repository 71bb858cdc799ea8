"""Nodes in one process on real sockets: what is hard to see from outside."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from hyperscale.nodes.member.node import Node
from hyperscale.nodes.member.settings import NodeSettings, read_settings
from hyperscale.runtime.real import RealHost

from .node_cluster import FAST

DEADLINE_S = 20.0


def settings(folder: Path, name: str, **more: object) -> NodeSettings:
    secret = folder / "secret"
    secret.write_text("correct horse battery staple")
    flags = {"id": name, "bind": "127.0.0.1:0", "plaintext": True, "secret_file": str(secret)}
    return read_settings({**flags, "data": str(folder / name), "set": list(FAST), **more}, {}, {})


@contextlib.asynccontextmanager
async def running(made: NodeSettings) -> AsyncIterator[Node]:
    """Ends as a crash does: nobody is told."""
    async with RealHost(made.id, made.data) as host:
        node = Node(host, made)
        await node.start()
        yield node


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - conditions of another node have no event
            await asyncio.sleep(0.01)


def address(node: Node) -> str:
    return str(node.server.address)


def state(node: Node, name: str) -> str:
    member = node.membership.core.member(name)
    return "" if member is None else member.state.name.lower()


def test_nothing_is_left_after_leaving(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(settings(tmp_path, "a")) as one:
            seeds = [address(one)]
            made = settings(tmp_path, "b", seed=seeds, metrics="127.0.0.1:0", voters="b")
            async with RealHost("b", made.data) as host:
                node = Node(host, made)
                await node.start()
                await until(lambda: state(one, "b") == "alive")
                await until(lambda: node.election is not None and node.election.may_lead())
                await node.stop()
                await until(lambda: state(one, "b") == "left")
                await host.stop()
                assert host.tasks.names() == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(story())


def test_a_node_that_lost_its_disk_is_heard_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(settings(tmp_path, "a")) as one:
            seeds = [address(one)]
            async with running(settings(tmp_path, "b", seed=seeds)) as first_life:
                await until(lambda: state(one, "b") == "alive")
                place = address(first_life)
            await until(lambda: state(one, "b") == "dead")
            fresh = settings(tmp_path, "b", seed=seeds, bind=place, data=str(tmp_path / "new"))
            async with running(fresh) as second_life:
                await until(lambda: state(one, "b") == "alive")
                life = second_life.membership.me.incarnation
                row = one.membership.core.member("b")
                assert row is not None
                await until(lambda: row.rtt_s is not None and row.incarnation == life > 1)

    asyncio.run(story())


def test_the_page_for_prometheus(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(settings(tmp_path, "a", metrics="127.0.0.1:0")) as node:
            assert node.metrics_address is not None
            text = await get(*node.metrics_address, "/metrics")
            assert text.startswith("HTTP/1.1 200 OK\r\n")
            assert 'hyperscale_members{state="alive"} 0\n' in text
            assert 'hyperscale_admission_shed_total{priority="low"} 0\n' in text
            assert (await get(*node.metrics_address, "/")).startswith("HTTP/1.1 404 ")
            assert (await get(*node.metrics_address, "x" * 9_000)).startswith("HTTP/1.1 405 ")

    asyncio.run(story())


async def get(host: str, port: int, path: str) -> str:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    async with asyncio.timeout(DEADLINE_S):
        answer = await reader.read()
    writer.close()
    return answer.decode()
