"""The door of a node: who comes in, who is turned away, and with which words."""

import asyncio
import contextlib
import random
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost, run
from hyperscale.wire import handshake
from hyperscale.wire.certificates import Credentials, Pem, make_authority
from hyperscale.wire.endpoint import Endpoint, Limits
from hyperscale.wire.envelope import HEADER, Verb, pack_message, pack_plain
from hyperscale.wire.errors import Disconnected, Reason, Refused, WireError
from hyperscale.wire.frames import FrameDecoder, encode_frame
from hyperscale.wire.handshake import INTRODUCED, Introduction
from hyperscale.wire.peer import Peer
from hyperscale.wire.server import Server
from tests.integration.wire.nodes import (
    ANY,
    Answer,
    Ask,
    credentials,
    introduction,
    registry,
    until,
)


@pytest.fixture(scope="module")
def authority() -> Pem:
    return make_authority("shop")


@contextlib.asynccontextmanager
async def door(
    folder: Path,
    mine: Introduction | None = None,
    tls: Credentials | None = None,
    limits: Limits | None = None,
    handlers: dict[Any, Any] | None = None,
) -> AsyncIterator[tuple[RealHost, Server]]:
    async with RealHost("host", folder) as host:
        endpoint = Endpoint(
            host,
            mine or introduction(),
            registry(),
            handlers or {Ask: lambda call, ask: Answer(ask.text + "!")},
            credentials=tls,
            plaintext="refused" if tls else "loopback",
            limits=limits,
        )
        server = Server(endpoint)
        await server.start(ANY)
        yield host, server


def caller(
    host: RealHost, server: Server, mine: Introduction, tls: Credentials | None = None, **kw: Any
) -> Peer:
    plaintext = "refused" if tls else "loopback"
    endpoint = Endpoint(host, mine, registry(), credentials=tls, plaintext=plaintext)  # type: ignore[arg-type]
    return Peer(endpoint, server.address, **kw)


@pytest.mark.parametrize(
    ("mine", "code", "sentence"),
    [
        (introduction("worker", cluster="bank"), Reason.WRONG_CLUSTER, "'shop', not 'bank'"),
        (
            introduction("worker", environment="staging"),
            Reason.WRONG_ENVIRONMENT,
            "this is environment 'prod', not 'staging'",
        ),
        (
            introduction("worker", protocol=(2, 0)),
            Reason.WRONG_PROTOCOL,
            r"protocol 2\.0 cannot talk to 1\.2",
        ),
        (introduction("client"), Reason.ROLE_NOT_ALLOWED, "'client' cannot connect to 'manager'"),
        (introduction("king"), Reason.ROLE_NOT_ALLOWED, "unknown role 'king'"),
    ],
)
def test_refusals_say_why(tmp_path: Path, mine: Introduction, code: str, sentence: str) -> None:
    async def main() -> None:
        async with door(tmp_path) as (host, server):
            with pytest.raises(Refused, match=sentence) as refused:
                await caller(host, server, mine).connection()
            assert refused.value.code == code
            await until(lambda: server.turned_away == {code: 1})
            assert not server.connections

    run(main())


def test_a_manager_without_gates_lets_clients_in(tmp_path: Path) -> None:
    async def main() -> None:
        async with door(tmp_path, introduction(gateless=True)) as (host, server):
            peer = caller(host, server, introduction("client"))
            assert (await peer.request(Ask("hi"), Answer)).text == "hi!"

    run(main())


def test_what_both_can_do_is_the_intersection(tmp_path: Path) -> None:
    async def main() -> None:
        async with door(tmp_path) as (host, server):
            can = {name for name, since in INTRODUCED.items() if since <= (1, 1)}
            older = introduction(
                "worker", protocol=(1, 1), capabilities=frozenset(can | {"telepathy"})
            )
            session = (await caller(host, server, older).connection()).session
            assert session.capabilities == {"cancellation", "batched_stats"}
            assert session.protocol == (1, 1)
            await until(lambda: bool(server.connections))
            assert server.connections[0].session.capabilities == session.capabilities

    run(main())


def test_a_caller_that_expects_another_role_leaves(tmp_path: Path) -> None:
    async def main() -> None:
        async with door(tmp_path) as (host, server):
            peer = caller(host, server, introduction("gate"), expect_role="gate")
            with pytest.raises(Refused, match=r"a gate was expected at .*, not a manager"):
                await peer.connection()

    run(main())


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
        b"\xff\xff\xff\xff\x00",
        b"\x00\x00\x00\x00\x00",
        pack_plain(Verb.PING),
        pack_plain(Verb.HELLO, body=b"nonsense"),
        pack_plain(Verb.HELLO, body=b"\x80"),
        (20_000).to_bytes(4, "big") + b"\0",
    ],
)
def test_strangers_are_shown_out_without_a_word(tmp_path: Path, said: bytes) -> None:
    async def main() -> None:
        async with door(tmp_path) as (host, server):
            stream = await host.network.connect(server.address)
            stream.write(said)
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(stream.read(100), 10) == b""
            await until(lambda: server.turned_away == {"malformed": 1})
            peer = caller(host, server, introduction("worker"))
            assert (await peer.request(Ask("still here"), Answer)).text == "still here!"

    run(main())


def test_silence_at_the_door_has_an_end(tmp_path: Path) -> None:
    async def main() -> None:
        async with door(tmp_path, limits=Limits(greeting_timeout_s=0.05)) as (host, server):
            stream = await host.network.connect(server.address)
            assert await asyncio.wait_for(stream.read(1), 10) == b""
            assert server.turned_away == {"deadlineexceeded": 1}

    run(main())


def test_mutual_tls(tmp_path: Path, authority: Pem) -> None:
    async def main() -> None:
        tls = credentials(tmp_path / "m", authority, "manager")
        async with door(tmp_path, tls=tls) as (host, server):
            worker = credentials(tmp_path / "w", authority, "worker")
            peer = caller(host, server, introduction("worker"), worker, expect_role="manager")
            assert (await peer.request(Ask("sealed"), Answer)).text == "sealed!"

    run(main())


def test_a_certificate_beats_what_its_holder_says(tmp_path: Path, authority: Pem) -> None:
    async def main() -> None:
        tls = credentials(tmp_path / "m", authority, "manager")
        async with door(tmp_path, tls=tls) as (host, server):
            worker = credentials(tmp_path / "w", authority, "worker")
            with pytest.raises(Refused, match="for role 'worker', not 'gate'") as refused:
                await caller(host, server, introduction("gate"), worker).connection()
            assert refused.value.code == Reason.WRONG_CERTIFICATE
            staging = credentials(tmp_path / "s", authority, "worker", environment="staging")
            with pytest.raises(Refused, match="this is environment 'prod', not 'staging'"):
                await caller(host, server, introduction("worker"), staging).connection()
            with pytest.raises(Refused, match="for node 'worker-1', not 'worker-2'") as refused:
                await caller(host, server, introduction("worker", "worker-2"), worker).connection()
            assert refused.value.code == Reason.WRONG_CERTIFICATE
            client = credentials(tmp_path / "c", authority, "client")
            with pytest.raises(Refused, match="'client' cannot connect to 'manager'"):
                await caller(host, server, introduction("client"), client).connection()

    run(main())


def test_a_server_from_elsewhere_is_not_believed(tmp_path: Path, authority: Pem) -> None:
    async def main() -> None:
        tls = credentials(tmp_path / "m", authority, "manager", cluster="bank")
        async with door(tmp_path, introduction(cluster="bank"), tls=tls) as (host, server):
            worker = credentials(tmp_path / "w", authority, "worker")
            with pytest.raises(Refused, match="cluster"):
                await caller(host, server, introduction("worker"), worker).connection()

    run(main())


def test_a_foreign_authority_or_none_opens_nothing(tmp_path: Path, authority: Pem) -> None:
    async def main() -> None:
        tls = credentials(tmp_path / "m", authority, "manager")
        async with door(tmp_path, tls=tls) as (host, server):
            foreign = credentials(tmp_path / "f", make_authority("shop"), "worker")
            with pytest.raises(WireError):
                await caller(host, server, introduction("worker"), foreign).connection()
            mixed = Credentials(tls.ca, foreign.certificate, foreign.key)
            with pytest.raises(WireError):
                await caller(host, server, introduction("worker"), mixed).connection()
            with pytest.raises(WireError):
                await caller(host, server, introduction("worker")).connection()
            assert not server.connections

    run(main())


def test_old_tls_is_not_spoken(tmp_path: Path, authority: Pem) -> None:
    async def main() -> None:
        tls = credentials(tmp_path / "m", authority, "manager")
        async with door(tmp_path, tls=tls) as (host, server):
            old = credentials(tmp_path / "w", authority, "worker").client_context()
            old.minimum_version = ssl.TLSVersion.TLSv1_2
            old.maximum_version = ssl.TLSVersion.TLSv1_2
            with pytest.raises(ConnectionError):
                await host.network.connect(server.address, old, "localhost")

    run(main())


@pytest.mark.parametrize("verify", [True, False])
def test_the_hostname_is_checked_when_asked(tmp_path: Path, authority: Pem, verify: bool) -> None:
    async def main() -> None:
        tls = credentials(tmp_path / "m", authority, "manager", hosts=("elsewhere.example",))
        async with door(tmp_path, tls=tls) as (host, server):
            worker = credentials(tmp_path / "w", authority, "worker", verify_hostname=verify)
            peer = caller(host, server, introduction("worker"), worker)
            if verify:
                with pytest.raises(Disconnected, match="certificate"):
                    await peer.connection()
                named = caller(
                    host, server, introduction("worker"), worker, server_name="elsewhere.example"
                )
                await named.connection()
            else:
                await peer.connection()

    run(main())


def test_plaintext_is_for_loopback_and_only_when_asked_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with RealHost("host", tmp_path) as host:
            careful = Endpoint(host, introduction(), registry())
            with pytest.raises(ValueError, match="needs TLS"):
                await Server(careful).start(ANY)
            loopback = Endpoint(host, introduction(), registry(), plaintext="loopback")
            with pytest.raises(ValueError, match="needs TLS"):
                await Server(loopback).start(Address("0.0.0.0", 0))
            with pytest.raises(ValueError, match="needs TLS"):
                await Peer(loopback, Address("10.0.0.1", 1)).connection()

    run(main())


@pytest.mark.parametrize(
    ("greeting", "code"),
    [
        (
            {"cluster_id": "bank", "environment_id": "prod", "protocol": [1, 2], "role": 17},
            "cluster",
        ),
        (
            {"cluster_id": "shop", "environment_id": "prod", "protocol": [9, 0], "who": "?"},
            "protocol",
        ),
    ],
)
def test_nothing_else_is_looked_at_before_cluster_and_protocol(
    tmp_path: Path, greeting: dict[str, object], code: str
) -> None:
    """Fields that would be malformed do not matter to a stranger's refusal."""

    async def main() -> None:
        async with door(tmp_path) as (host, server):
            stream = await host.network.connect(server.address)
            body = msgspec.msgpack.encode({"environment_id": "prod", **greeting})
            stream.write(pack_plain(Verb.HELLO, body=body))
            answer = await asyncio.wait_for(stream.read(1000), 10)
            assert f"wrong_{code}".encode() in answer
            assert b"manager-1" not in answer
            await until(lambda: server.turned_away == {f"wrong_{code}": 1})

    run(main())


def test_garbage_after_a_good_greeting_costs_only_its_own_connection(tmp_path: Path) -> None:
    dice = random.Random(3)

    async def main() -> None:
        async with door(tmp_path) as (host, server):
            friend = caller(host, server, introduction("worker"))
            await friend.connection()
            for _ in range(60):
                stream = await host.network.connect(server.address)
                decoder = FrameDecoder()
                await handshake.call(stream, decoder, introduction("worker", "stranger"))
                for _ in range(dice.randrange(1, 5)):
                    body = dice.randbytes(dice.randrange(0, 60))
                    verb = dice.randrange(0, 20)
                    kind = dice.choice([b"", b"test.ask", b"test.watch", b"\xff\xfe"])
                    head = HEADER.pack(verb, dice.randrange(3), dice.randrange(99), 1, len(kind))
                    stream.write(encode_frame(head + kind + body, dice.choice([0, 0, 1, 2])))
                stream.write(dice.randbytes(30))
                assert (await friend.request(Ask("still"), Answer)).text == "still!"
                stream.close()
            await until(lambda: len(server.connections) == 1)

    run(main())


def test_a_full_house_takes_no_more(tmp_path: Path) -> None:
    async def main() -> None:
        async with door(tmp_path, limits=Limits(connections_max=1)) as (host, server):
            await caller(host, server, introduction("worker")).connection()
            with pytest.raises(Disconnected):
                await caller(host, server, introduction("worker", "second")).connection()
            assert server.turned_away == {"full": 1}

    run(main())


def test_a_cancelled_request_keeps_its_slot_until_its_task_has_ended(tmp_path: Path) -> None:
    released = asyncio.Event()
    started: list[str] = []
    ended: list[str] = []

    async def slow(call: Any, ask: Ask) -> Answer:
        started.append(ask.text)
        try:
            await asyncio.Event().wait()
        finally:
            await released.wait()
            ended.append(ask.text)
        return Answer("")

    async def main() -> None:
        async with RealHost("host", tmp_path) as host:
            endpoint = Endpoint(
                host,
                introduction(),
                registry(),
                {Ask: slow},
                plaintext="loopback",
                limits=Limits(in_flight_max=1),
            )
            server = Server(endpoint)
            await server.start(ANY)
            stream = await host.network.connect(server.address)
            await handshake.call(stream, FrameDecoder(), introduction("worker"))
            kind = registry().of(Ask(""))
            stream.write(pack_message(Verb.REQUEST, 1, 0, kind, Ask("first")))
            await until(lambda: started == ["first"])
            (connection,) = server.connections
            stream.write(pack_plain(Verb.CANCEL, 1) + pack_plain(Verb.CANCEL, 1))
            stream.write(pack_message(Verb.REQUEST, 2, 0, kind, Ask("second")))
            await until(lambda: connection.counts.get(Reason.OVERLOADED) == 1)
            assert connection.in_flight()[1] == 1
            released.set()
            await until(lambda: connection.in_flight()[1] == 0)
            assert ended == ["first"]
            stream.write(pack_message(Verb.REQUEST, 2, 0, kind, Ask("third")))
            await until(lambda: started == ["first", "third"])

    run(main())


def test_a_request_cancelled_before_it_began_gives_its_slot_back(tmp_path: Path) -> None:
    async def never(call: Any, ask: Ask) -> Answer:
        raise AssertionError("it was cancelled in the same read")

    async def main() -> None:
        async with door(tmp_path, handlers={Ask: never}) as (host, server):
            stream = await host.network.connect(server.address)
            await handshake.call(stream, FrameDecoder(), introduction("worker"))
            kind = registry().of(Ask(""))
            ask = pack_message(Verb.REQUEST, 1, 0, kind, Ask("x"))
            stream.write(ask + pack_plain(Verb.CANCEL, 1) + pack_plain(Verb.PING, 7))
            assert await asyncio.wait_for(stream.read(100), 10)
            (connection,) = server.connections
            assert connection.in_flight()[1] == 0
            assert "failed" not in connection.counts

    run(main())


def test_an_answer_is_taken_only_from_the_node_that_was_asked(
    tmp_path: Path, authority: Pem
) -> None:
    async def main() -> None:
        tls = credentials(tmp_path / "m", authority, "manager")
        async with door(tmp_path, tls=tls) as (host, server):
            calling = Endpoint(
                host,
                introduction("worker"),
                registry(),
                credentials=credentials(tmp_path / "w", authority, "worker"),
            )
            other = Peer(calling, server.address, expect_role="manager", expect_node="manager-2")
            with pytest.raises(Disconnected, match=r"manager-1 is at .*, not manager-2"):
                await other.request(Ask("who"), Answer)
            assert not other.connected
            elsewhere = Peer(calling, server.address, expect_datacenter="mars")
            with pytest.raises(Disconnected, match=r"of datacenter \S+, not of mars"):
                await elsewhere.request(Ask("who"), Answer)
            meant = Peer(calling, server.address, expect_role="manager", expect_node="manager-1")
            assert await meant.request(Ask("who"), Answer) == Answer("who!")

    run(main())
