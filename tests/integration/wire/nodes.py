"""Two nodes on loopback, for tests: their messages, certificates and worlds."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost
from hyperscale.wire.certificates import CertificateIdentity, Credentials, Pem, make_node
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.identity import Identity
from hyperscale.wire.messages import Priority, Registry
from hyperscale.wire.peer import Peer
from hyperscale.wire.server import Server

ANY = Address("127.0.0.1", 0)
DEADLINE_S = 10.0


class Ask(msgspec.Struct, tag="test.ask"):
    text: str


class Answer(msgspec.Struct, tag="test.answer"):
    text: str


class Tell(msgspec.Struct, tag="test.tell"):
    text: str


class Often(msgspec.Struct, tag="test.often"):
    text: str


class Watch(msgspec.Struct, tag="test.watch"):
    count: int


class Tick(msgspec.Struct, tag="test.tick"):
    number: int


class Urgent(msgspec.Struct, tag="test.urgent"):
    text: str


class Small(msgspec.Struct, tag="test.small"):
    text: str


def registry() -> Registry:
    made = Registry()
    for struct in (Ask, Answer, Tell, Watch, Tick):
        made.add(struct, priority=Priority.NORMAL)
    made.add(Urgent, priority=Priority.CRITICAL)
    made.add(Often, priority=Priority.NORMAL, self_judged=True)
    made.add(Small, priority=Priority.LOW, max_bytes=1000)
    return made


def introduction(
    role: str = "manager",
    node_id: str = "",
    cluster: str = "shop",
    environment: str = "prod",
    datacenter: str = "eu-1",
    **options: Any,
) -> Introduction:
    identity = Identity(
        node_id=node_id or f"{role}-1",
        incarnation=1,
        role=role,
        cluster_id=cluster,
        environment_id=environment,
        datacenter=datacenter,
    )
    return Introduction(identity, **options)


def credentials(
    folder: Path,
    authority: Pem,
    role: str,
    cluster: str = "shop",
    environment: str = "prod",
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1"),
    verify_hostname: bool = True,
) -> Credentials:
    identity = CertificateIdentity(role, cluster, environment, "eu-1")
    node = make_node(authority, identity, f"{role}-1", hosts)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "ca.pem", folder / "node.pem", folder / "key.pem"]
    contents = (authority.certificate, node.certificate, node.key)
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return Credentials(*paths, verify_hostname=verify_hostname)


class Pair:
    """A listening manager and a worker that calls it, each in a world of its own."""

    def __init__(self, folder: Path) -> None:
        self.reports: list[tuple[str, BaseException | None]] = []
        report = lambda name, error: self.reports.append((name, error))  # noqa: E731
        self.manager = RealHost("manager", folder / "m", report=report)
        self.worker = RealHost("worker", folder / "w", report=report)
        self.report = report
        self.server: Server
        self.peer: Peer


@contextlib.asynccontextmanager
async def connected(
    folder: Path,
    handlers: Mapping[Any, Any],
    back: Mapping[Any, Any] | None = None,
    **options: Any,
) -> AsyncIterator[Pair]:
    """Plain text on loopback; `back` is what the calling side answers."""
    pair = Pair(folder)
    options.setdefault("plaintext", "loopback")
    serving = Endpoint(
        pair.manager, introduction(), registry(), handlers, report=pair.report, **options
    )
    calling = Endpoint(
        pair.worker,
        introduction("worker"),
        registry(),
        back or {},
        plaintext="loopback",
        limits=options.get("limits"),
        report=pair.report,
    )
    pair.server = Server(serving)
    address = await pair.server.start(ANY)
    pair.peer = Peer(calling, address)
    try:
        yield pair
    finally:
        await pair.worker.stop()
        await pair.manager.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - conditions of another node have no event
            await asyncio.sleep(0.001)
