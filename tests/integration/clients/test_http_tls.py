"""TLS with real certificates: whom we trust, who we are, through a proxy, and what goes wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hyperscale.clients import ClientPool
from hyperscale.errors import BadInput
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.results import Outcome

from .certificates import Authority
from .conftest import Run
from .scripted import Peer, client, response, serve


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


def test_own_authority_keep_alive_and_phases(run: Run, authority: Authority) -> None:
    async def go() -> None:
        tls = authority.server(authority.issue("localhost"))
        async with serve(response(), tls=tls) as server, client(ca=authority.ca) as vu:
            got = await vu.http.get(server.url)
            assert got.ok, got.error
            assert got.connect.tls_s > 0
            big = await vu.http.post(server.url, data=bytes(500_000))
            assert big.ok
            assert big.connect is None
            assert server.connections == 1

    run(go())


@pytest.mark.parametrize(
    ("name", "made", "options", "sentence"),
    [
        ("localhost", {"self_signed": True}, {}, "certificate of 127.0.0.1 is self-signed; pass a"),
        ("localhost", {}, {"ca": None}, "is signed by an unknown authority; pass a CA or --insec"),
        ("other", {}, {}, "certificate of 127.0.0.1 is for another name"),
        ("localhost", {"days": -1}, {}, "certificate of 127.0.0.1 has expired"),
        ("localhost", {}, {"server_name": "wrong.test"}, "is for another name"),
    ],
)
def test_certificates_that_are_not_trusted(
    run: Run,
    authority: Authority,
    name: str,
    made: dict[str, object],
    options: dict[str, object],
    sentence: str,
) -> None:
    async def go() -> None:
        tls = authority.server(authority.issue(name, **made))
        async with serve(response(), tls=tls) as server:
            async with client(**{"ca": authority.ca, **options}) as vu:
                got = await vu.http.get(server.url)
                assert got.outcome is Outcome.TLS
                assert sentence in got.error
            async with client(verify=False) as vu:
                assert (await vu.http.get(server.url)).ok

    run(go())


def test_server_name(run: Run, authority: Authority) -> None:
    async def go() -> None:
        asked: list[str | None] = []
        tls = authority.server(authority.issue("named.test"))
        tls.sni_callback = lambda _socket, name, _context: asked.append(name)
        options = {"ca": authority.ca, "server_name": "named.test"}
        async with serve(response(), tls=tls) as server, client(**options) as vu:
            assert (await vu.http.get(server.url)).ok
            assert asked == ["named.test"]

    run(go())


def test_client_certificate(run: Run, authority: Authority) -> None:
    async def go() -> None:
        tls = authority.server(authority.issue("localhost"), asks=True)
        async with serve(response(), tls=tls) as server:
            async with client(ca=authority.ca, cert=authority.issue("me")) as vu:
                assert (await vu.http.get(server.url)).ok
            async with client(ca=authority.ca) as vu:
                got = await vu.http.get(server.url)
                assert got.outcome in (Outcome.TLS, Outcome.RESET)

    run(go())


def test_tls_to_a_plain_port_and_plain_to_a_tls_port(run: Run, authority: Authority) -> None:
    async def go() -> None:
        async def handler(peer: Peer) -> None:
            await peer.reader.read(10)
            await peer.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            await peer.gone()

        tls = authority.server(authority.issue("localhost"))
        async with (
            serve(handler=handler) as plain,
            serve(response(), tls=tls) as secure,
            client() as vu,
        ):
            got = await vu.http.get(plain.url.replace("http:", "https:"))
            assert got.outcome is Outcome.TLS
            assert got.error == f"127.0.0.1:{plain.port} does not speak TLS; did you mean http://?"
            got = await vu.http.get(secure.url.replace("https:", "http:"))
            assert got.outcome in (Outcome.PROTOCOL, Outcome.RESET)

    run(go())


def test_a_server_that_hangs_up_in_the_handshake(run: Run) -> None:
    async def go() -> None:
        async def handler(peer: Peer) -> None:
            await peer.reader.read(10)

        async with serve(handler=handler) as server, client() as vu:
            got = await vu.http.get(server.url.replace("http:", "https:"))
            assert got.outcome in (Outcome.TLS, Outcome.RESET)
            assert f"127.0.0.1:{server.port}" in got.error

    run(go())


def test_a_handshake_that_never_ends(run: Run) -> None:
    async def go() -> None:
        async with (
            serve(handler=lambda peer: peer.gone()) as server,
            client(connect_timeout=0.1) as vu,
        ):
            got = await vu.http.get(server.url.replace("http:", "https:"))
            assert got.outcome is Outcome.TIMEOUT

    run(go())


def test_tunnel_through_a_proxy(run: Run, authority: Authority) -> None:
    async def go() -> None:
        asked: list[bytes] = []

        async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)

        async def handler(peer: Peer) -> None:
            request = await peer.request()
            asked.append(request)
            port = int(request.split(b" ")[1].rpartition(b":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            try:
                await asyncio.gather(copy(peer.reader, writer), copy(reader, peer.writer))
            finally:
                writer.close()

        tls = authority.server(authority.issue("far.test"))
        async with serve(response(), tls=tls) as server, serve(handler=handler) as proxy:
            address = proxy.url.replace("//", "//user:pw@")
            async with client(proxy=address, ca=authority.ca) as vu:
                for _ in range(2):
                    got = await vu.http.get(f"https://far.test:{server.port}/x")
                    assert got.ok, got.error
            where = f"far.test:{server.port}"
            assert asked == [
                f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n"
                "Proxy-Authorization: Basic dXNlcjpwdw==\r\n\r\n".encode()
            ]
            assert server.requests[0].startswith(b"GET /x HTTP/1.1\r\n")
            assert b"Proxy-Auth" not in server.requests[0]

    run(go())


@pytest.mark.parametrize(
    ("answer", "outcome", "sentence"),
    [
        (
            b"HTTP/1.1 407 Who are you\r\n\r\n",
            Outcome.REFUSED,
            "refused the tunnel to far.test:443",
        ),
        (b"nonsense", Outcome.PROTOCOL, "not HTTP"),
        (b"", Outcome.PROTOCOL, "closed the connection"),
    ],
)
def test_proxy_without_a_tunnel(run: Run, answer: bytes, outcome: Outcome, sentence: str) -> None:
    async def go() -> None:
        async def handler(peer: Peer) -> None:
            await peer.request()
            await peer.send(answer)

        async with serve(handler=handler) as proxy, client(proxy=proxy.url) as vu:
            got = await vu.http.get("https://far.test/")
            assert got.outcome is outcome
            assert sentence in got.error

    run(go())


def test_files_that_cannot_be_used(authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"missing\.pem"):
        ClientPool(HTTPOptions(ca=str(tmp_path / "missing.pem")))
    with pytest.raises(BadInput, match=r"http\.cert"):
        ClientPool(HTTPOptions(cert=str(tmp_path / "missing.pem")))
    with pytest.raises(BadInput, match=r"http\.cert"):
        ClientPool(HTTPOptions(cert=authority.ca))
