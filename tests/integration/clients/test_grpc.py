"""gRPC against grpcio's server, against the embedded target, and against bad servers."""

from __future__ import annotations

import asyncio
import importlib
import pickle
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import BadInput
from hyperscale.http2 import frames
from hyperscale.target import running
from hyperscale.workload.arguments import Data
from hyperscale.workload.protos import Protos
from hyperscale.workload.results import CallFailed, Outcome
from hyperscale.workload.scope import CURRENT

from .conftest import Run
from .grpc_server import PROTO, Counts, grpc_serving
from .h2_server import Peer, serve_h2
from .scripted import client, pool, serve
from .test_contract import CountingScope, say

BUY, WATCH, LOAD, TALK = (f"shop.Shop/{name}" for name in ("Buy", "Watch", "Load", "Talk"))


@pytest.fixture(scope="module")
def proto(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("protos") / "shop.proto"
    file.write_text(PROTO)
    return file


@pytest.fixture(scope="module")
def protos(proto: Path) -> Protos:
    return Protos(str(proto))


@pytest.fixture(scope="module")
def shop(protos: Protos) -> Iterator[Counts]:
    with grpc_serving(protos.descriptors()) as counts:
        yield counts


def address(counts: Counts) -> str:
    return f"grpc://127.0.0.1:{counts.port}"


def test_a_call_with_all_that_goes_with_it(run_each_way: Run, shop: Counts, protos: Protos) -> None:
    async def go() -> None:
        scope = CountingScope()
        CURRENT.set(scope)
        async with client() as vu:
            got = await vu.grpc.unary(
                address(shop),
                BUY,
                {"item": "tea", "amount": 2, "at": "2026-01-02T03:04:05Z"},
                protos=protos,
                metadata={"X-User": "ada", "key-bin": b"\xff\x00"},
                timeout="2s",
                name="buying",
                tags={"kind": "hot"},
            )
            assert got.ok, got.error
            assert (got.message.text, got.json()) == ("2 tea", {"text": "2 tea"})
            assert (got.metadata["shop-id"], got.trailers["cost"]) == ("7", "low")
            assert (shop.metadata["x-user"], shop.metadata["key-bin"]) == ("ada", b"\xff\x00")
            assert 0 < shop.left_ms <= 2000
            assert (got.status, got.status_name) == (0, "OK")
            assert scope.noted == [("grpc", "UNARY", "buying")]
            assert got.bytes_in > 0 < got.bytes_out
            again = await vu.grpc.unary(address(shop), BUY, {"item": "x"}, protos=protos)
            assert again.connect is None

    run_each_way(go())


def test_the_three_kinds_of_streams(run_each_way: Run, shop: Counts, protos: Protos) -> None:
    async def orders() -> AsyncIterator[dict[str, Any]]:
        for number in range(50):
            yield {"item": f"x{number}" * 100, "amount": number}

    async def go() -> None:
        scope = CountingScope()
        CURRENT.set(scope)
        before = shop.calls
        async with client() as vu:
            grpc, where = vu.grpc, address(shop)
            watched = await grpc.server_stream(where, WATCH, {"amount": 300}, protos=protos)
            assert [one.cents for one in watched.messages] == list(range(300)), watched.error
            loaded = await grpc.client_stream(where, LOAD, orders(), protos=protos)
            assert loaded.message.cents == sum(range(50)), loaded.error
            talked = await grpc.bidi_stream(where, TALK, orders(), protos=protos)
            assert [one.text[:2] for one in talked.messages] == [f"x{n}"[:2] for n in range(50)]
            async with grpc.open(where, TALK, protos=protos) as talk:
                for word in ("one", "two"):
                    await talk.send({"item": word})
                    assert (await talk.receive()).text == word
                await talk.end()
                assert await talk.receive() is None
            assert talk.response.ok
            assert shop.calls - before == len(scope.rows) == 4

    run_each_way(go())


def test_what_describes_a_service(run: Run, shop: Counts, proto: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "grpc_tools.protoc", f"-I{proto.parent}", "--include_imports"]
    made = [f"-o{tmp_path}/shop.binpb", f"--python_out={tmp_path}", str(proto)]
    subprocess.run([*words, *made], check=True)

    async def go() -> None:
        async with client() as vu:
            for given in (None, str(proto), f"{tmp_path}/shop.binpb", Protos([str(proto)])):
                got = await vu.grpc.unary(address(shop), BUY, {"item": "tea"}, protos=given)
                assert got.json() == {"text": "0 tea"}, got.error
            sys.path.insert(0, str(tmp_path))
            try:
                module = importlib.import_module("shop_pb2")
            finally:
                sys.path.remove(str(tmp_path))
            order = module.Order(item="tea", amount=3)
            assert (await vu.grpc.unary(address(shop), BUY, order)).message == module.Bill(
                text="3 tea"
            )
            typed = Data({"item": "typed"})
            for source in (module, Protos(module), pickle.loads(pickle.dumps(Protos(module)))):
                got = await vu.grpc.unary(address(shop), BUY, typed, protos=source)
                assert got.message.text == "0 typed"
            assert typed.optimized.keys() == {f"/{BUY}"}

    run(go())


def test_failures_are_told_in_the_words_of_grpc(run: Run, shop: Counts, protos: Protos) -> None:
    async def go() -> None:
        scope = CountingScope()
        CURRENT.set(scope)
        async with client(max_response_bytes=100_000) as vu:

            async def buy(item: str, amount: int = 0, **named: Any) -> Any:
                order = {"item": item, "amount": amount}
                return await vu.grpc.unary(address(shop), BUY, order, protos=protos, **named)

            got = await buy("nothing")
            assert (got.outcome, got.status) == (Outcome.STATUS, 5)
            assert got.error == "NOT_FOUND: no such thing: ☕"
            with pytest.raises(CallFailed, match="NOT_FOUND"):
                _ = got.message
            late = await buy("slow", 600, timeout=0.15)
            assert late.outcome in (Outcome.TIMEOUT, Outcome.STATUS)
            assert "no response" in late.error or "DEADLINE_EXCEEDED" in late.error
            big = await buy("big", 200_000)
            assert (big.outcome, "more than 100000 bytes" in big.error) == (Outcome.PROTOCOL, True)
            packed = await buy("zip", compress="gzip")
            assert packed.message.text == "0 zip" * 100
            assert packed.bytes_in < 400
            unknown = await vu.grpc.unary(address(shop), "shop.Other/Do", b"x")
            assert (unknown.outcome, unknown.status_name) == (Outcome.STATUS, "UNIMPLEMENTED")
            assert len(scope.failures) == 4
            assert all(sent for _, sent in scope.failures)

    run(go())


@pytest.mark.parametrize(
    ("arguments", "named", "reason"),
    [
        (("shop.Shop", {}), {}, "not a method of gRPC"),
        (("shop.Shop/Sell", {}), {}, "has no method Sell"),
        (("shop.Other/Do", {}), {}, "has no service shop.Other"),
        ((BUY, {"price": 1}), {}, "is not a shop.Order"),
        ((BUY, 17), {}, "a message of gRPC is 17"),
        ((WATCH, {}), {}, "gives many messages: unary is not for it"),
        ((BUY, {}), {"metadata": {"grpc-x": "1"}}, "gRPC uses it itself"),
        ((BUY, {}), {"metadata": {"x": "a\nb"}}, "line break"),
        ((BUY, {}), {"metadata": {"x": b"a"}}, "metadata 'x' is bytes"),
        ((BUY, {}), {"compress": "br"}, "must be 'gzip'"),
        ((BUY, {}), {"protos": "none.proto"}, "is not a file"),
        ((BUY, {}), {"protos": 17}, "Protos takes paths"),
    ],
)
def test_what_the_author_got_wrong(
    run: Run, shop: Counts, arguments: tuple[Any, ...], named: dict[str, Any], reason: str
) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match=reason):
                await vu.grpc.unary(address(shop), *arguments, **named)

    run(go())


def test_addresses(run: Run) -> None:
    async def go() -> None:
        async with client() as vu:
            for bad in ("ftp://shop.example:1", "grpc://shop.example:1/path/more"):
                with pytest.raises(BadInput, match="not an address of gRPC"):
                    await vu.grpc.unary(bad, BUY, b"")

    run(go())


def test_a_server_that_does_not_describe_itself(run: Run, protos: Protos) -> None:
    with grpc_serving(protos.descriptors(), reflects=False) as counts:

        async def go() -> None:
            async with client() as vu:
                with pytest.raises(BadInput, match="has no reflection"):
                    await vu.grpc.unary(address(counts), "shop.Other/Do", {})

        run(go())


def raw(*sent: tuple[int, int, bytes]) -> Callable[[Peer, int], None]:
    def answer(peer: Peer, stream: int) -> None:
        for kind, flags, payload in sent:
            peer.frame(kind, flags, stream, payload)

    return answer


def reply(data: bytes, *trailers: tuple[str, str], **named: str) -> Callable[[Peer, int], None]:
    fields = [
        ("content-type", "application/grpc"),
        *((k.replace("_", "-"), v) for k, v in named.items()),
    ]

    def answer(peer: Peer, stream: int) -> None:
        peer.reply(stream, data, *fields, trailers=list(trailers))

    return answer


OK = ("grpc-status", "0")
MESSAGE = b"\0\0\0\0\2ok"
BAD: dict[str, tuple[Callable[[Peer, int], None], Outcome, str]] = {
    "http": (lambda p, s: p.reply(s, b"x", status=503), Outcome.PROTOCOL, "HTTP 503, not in gRPC"),
    "html": (
        lambda p, s: p.reply(s, b"x", ("content-type", "text/html")),
        Outcome.PROTOCOL,
        "'text/html', not in gRPC",
    ),
    "no status": (reply(MESSAGE), Outcome.PROTOCOL, "without a status"),
    "odd status": (reply(MESSAGE, ("grpc-status", "x")), Outcome.PROTOCOL, "without a status"),
    "own status": (reply(b"", ("grpc-status", "77")), Outcome.STATUS, "status 77"),
    "half": (reply(b"\0\0\0\0\7half", OK), Outcome.PROTOCOL, "half a message"),
    "none": (reply(b"", OK), Outcome.PROTOCOL, "0 messages as the answer"),
    "two": (reply(MESSAGE * 2, OK), Outcome.PROTOCOL, "2 messages as the answer"),
    "large": (reply(b"\0\xff\xff\xff\xff", OK), Outcome.PROTOCOL, "more than 200000 bytes"),
    "zipped": (reply(b"\1\0\0\0\1x", OK), Outcome.PROTOCOL, "compressed as 'identity'"),
    "not gzip": (
        reply(b"\1\0\0\0\1x", OK, grpc_encoding="gzip"),
        Outcome.PROTOCOL,
        "is not gzip|cut short",
    ),
    "body first": (raw((frames.DATA, 0, MESSAGE)), Outcome.PROTOCOL, "before its headers"),
    "reset": (raw((frames.RST_STREAM, 0, b"\0\0\0\2")), Outcome.RESET, "INTERNAL_ERROR"),
    "dies": (lambda p, s: p.transport.abort(), Outcome.RESET, "the connection"),
}


@pytest.mark.parametrize("how", BAD)
def test_bad_servers(run: Run, how: str) -> None:
    answer, outcome, sentence = BAD[how]

    def once(peer: Peer, stream: int) -> None:
        (answer if "Bad" in peer.headers[stream][":path"] else say)(peer, stream)

    async def go() -> None:
        scope = CountingScope()
        CURRENT.set(scope)
        async with serve_h2(once) as server, client(max_response_bytes=200_000) as vu:
            where = f"grpc://127.0.0.1:{server.port}"
            got = await vu.grpc.unary(where, "shop.Shop/Bad", b"x", timeout=5)
            assert got.outcome is outcome, got.error
            assert re.search(sentence, got.error), got.error
            assert [sent for _, sent in scope.failures] == [True]
            assert (await vu.grpc.unary(where, "shop.Shop/Good", b"x")).messages == [b"ok"]

    run(go())


def test_a_port_that_speaks_http1(run: Run) -> None:
    async def go() -> None:
        async with serve(b"HTTP/1.1 400 Bad Request\r\n\r\n") as server, client() as vu:
            got = await vu.grpc.unary(f"grpc://127.0.0.1:{server.port}", BUY, b"x", timeout=5)
            assert got.outcome is Outcome.PROTOCOL
            assert "answered in HTTP/1.1" in got.error

    run(go())


def test_an_endless_stream_and_one_that_nobody_reads_on(run: Run) -> None:
    def endless(peer: Peer, stream: int) -> None:
        peer.http.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
        peer.flush()
        for _ in range(50):
            peer.raw(frames.frame(frames.DATA, 0, stream, b"\0\0\0\x27\x0b" + bytes(9995)))

    async def go() -> None:
        async with serve_h2(endless) as server, client(max_response_bytes=200_000) as vu:
            where = f"grpc://127.0.0.1:{server.port}"
            got = await vu.grpc.server_stream(where, WATCH, b"x")
            assert got.outcome is Outcome.PROTOCOL
            assert "more than 200000 bytes" in got.error
            assert len(got.raw_messages) == 20
            with pytest.raises(ZeroDivisionError):
                async with vu.grpc.open(where, TALK, protos=None) as talk:
                    raise ZeroDivisionError
            del talk

    run(go())


def test_an_iterator_that_raises(run: Run, shop: Counts, protos: Protos) -> None:
    def orders() -> Iterator[dict[str, Any]]:
        yield {"item": "tea"}
        raise ZeroDivisionError

    async def go() -> None:
        async with client() as vu:
            with pytest.raises(ZeroDivisionError):
                await vu.grpc.client_stream(address(shop), LOAD, orders(), protos=protos)
            assert (await vu.grpc.unary(address(shop), BUY, {"item": "x"}, protos=protos)).ok

    run(go())


def test_the_targets_echo(run: Run) -> None:
    with running() as url:
        where = url.replace("http", "grpc")

        async def go() -> None:
            scope = CountingScope()
            async with pool() as made:

                async def user() -> None:
                    CURRENT.set(scope)
                    grpc = made.client().grpc
                    for _ in range(10):
                        got = await grpc.unary(where, "hyperscale.Echo/Say", {"text": "hi"})
                        assert got.message.text == "hi", got.error

                await asyncio.gather(*(user() for _ in range(10)))
                grpc = made.client().grpc
                again = await grpc.server_stream(
                    where, "hyperscale.Echo/Repeat", {"text": "x", "count": 500}
                )
                assert len(again.messages) == 500
                refused = await grpc.unary(where, "hyperscale.Echo/Say", {"count": -7})
                assert refused.error == "PERMISSION_DENIED: as you wish"
                stats = (await made.client().http.get(f"{url}/stats")).json()
                assert stats["paths"]["/hyperscale.Echo/Say"] == len(scope.rows) + 1 == 101

        run(go())
