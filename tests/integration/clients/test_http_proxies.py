"""Through proxies of every kind, to plain and to TLS targets, and what goes wrong there."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess

import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.results import Outcome

from .certificates import Authority
from .conftest import Run
from .proxies import connect_proxy, socks_proxy
from .scripted import Peer, client, response, serve


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("kind", ["socks5", "socks5h"])
@pytest.mark.parametrize("login", [None, ("me", "p@ss:wörd")])
def test_socks(
    run: Run, authority: Authority, scheme: str, kind: str, login: tuple[str, str] | None
) -> None:
    async def go() -> None:
        asked: list[tuple[str, int]] = []
        tls = authority.server(authority.issue("localhost")) if scheme == "https" else None
        async with (
            serve(response(), tls=tls) as server,
            serve(handler=socks_proxy(asked, login)) as proxy,
        ):
            user = "me:p%40ss%3Aw%C3%B6rd@" if login else ""
            way = f"{kind}://{user}127.0.0.1:{proxy.port}"
            async with client(proxy=way, ca=authority.ca, ip="4") as vu:
                for _ in range(2):
                    got = await vu.http.get(f"{scheme}://localhost:{server.port}/x")
                    assert got.ok, got.error
            given = {"socks5": "127.0.0.1", "socks5h": "localhost"}[kind]
            assert asked == [(given, server.port)]
            assert server.requests[0].startswith(b"GET /x HTTP/1.1\r\nHost: localhost:")
            assert b"Proxy" not in server.requests[0]

    run(go())


def test_curl_speaks_with_the_same_proxy(run: Run) -> None:
    """The proxy of these tests is one for others, too."""

    async def go() -> None:
        asked: list[tuple[str, int]] = []
        async with (
            serve(response()) as server,
            serve(handler=socks_proxy(asked, ("me", "pw"))) as proxy,
        ):
            curl = await asyncio.create_subprocess_exec(
                *("curl", "-s", "-x", f"socks5h://me:pw@127.0.0.1:{proxy.port}"),
                f"http://far.test:{server.port}/",
                stdout=subprocess.PIPE,
            )
            assert (await curl.communicate())[0] == b"hello"
            assert asked == [("far.test", server.port)]

    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    run(go())


@pytest.mark.parametrize(
    ("login", "reply", "user", "sentence"),
    [
        (("me", "pw"), 0, "", "it asks for a user and password"),
        (("me", "pw"), 0, "me:other@", "it does not accept the user or password"),
        (None, 5, "", "the target refused the connection"),
    ],
)
def test_socks_that_refuses(
    run: Run, login: tuple[str, str] | None, reply: int, user: str, sentence: str
) -> None:
    async def go() -> None:
        async with (
            serve(handler=socks_proxy([], login, reply)) as proxy,
            client(proxy=f"socks5h://{user}127.0.0.1:{proxy.port}") as vu,
        ):
            got = await vu.http.get("http://far.test/")
            assert got.outcome is Outcome.REFUSED
            assert got.error == (
                f"proxy 127.0.0.1:{proxy.port} refused the tunnel to far.test:80: {sentence}"
            )

    run(go())


def test_an_http_proxy_taken_for_socks(run: Run) -> None:
    async def go() -> None:
        async def handler(peer: Peer) -> None:
            await peer.reader.read(3)
            await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        async with (
            serve(handler=handler) as proxy,
            client(proxy=f"socks5h://127.0.0.1:{proxy.port}") as vu,
        ):
            got = await vu.http.get("http://far.test/")
            assert got.outcome is Outcome.PROTOCOL
            assert "does not speak SOCKS5; did you mean http://?" in got.error

    run(go())


def test_socks_of_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        asked: list[tuple[str, int]] = []
        async with serve(response()) as server, serve(handler=socks_proxy(asked)) as proxy:
            monkeypatch.setenv("ALL_PROXY", f"socks5h://127.0.0.1:{proxy.port}")
            async with client() as vu:
                got = await vu.http.get(f"http://far.test:{server.port}/")
                assert got.ok, got.error
                assert asked == [("far.test", server.port)]
            monkeypatch.setenv("ALL_PROXY", "gopher://127.0.0.1")
            async with client() as vu:
                with pytest.raises(BadInput, match="ALL_PROXY"):
                    await vu.http.get("http://far.test/")

    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    run(go())


def test_tls_to_the_proxy(run: Run, authority: Authority) -> None:
    async def go() -> None:
        asked: list[str] = []
        own = authority.server(authority.issue("localhost"))
        far = authority.server(authority.issue("far.test"))
        async with (
            serve(response(), tls=far) as server,
            serve(handler=connect_proxy(asked), tls=own) as proxy,
            serve(response(), tls=own) as forwarding,
            client(proxy=f"https://u:p@127.0.0.1:{proxy.port}", ca=authority.ca) as vu,
            client(proxy=f"https://u:p@127.0.0.1:{forwarding.port}", ca=authority.ca) as plain,
            client(proxy=f"https://127.0.0.1:{proxy.port}") as stranger,
        ):
            for _ in range(2):
                got = await vu.http.get(f"https://far.test:{server.port}/x")
                assert got.ok, got.error
            assert len(asked) == 1
            assert asked[0].startswith(f"CONNECT far.test:{server.port} HTTP/1.1\r\n")
            assert "\r\nProxy-Authorization: Basic dTpw\r\n" in asked[0]
            assert server.requests[0].startswith(b"GET /x HTTP/1.1\r\n")

            for _ in range(2):
                got = await plain.http.get("http://far.test/y")
                assert got.ok, got.error
            assert forwarding.connections == 1
            assert forwarding.requests[0].startswith(b"GET http://far.test/y HTTP/1.1\r\n")
            assert b"\r\nProxy-Authorization: Basic dTpw\r\n" in forwarding.requests[0]

            got = await stranger.http.get("https://far.test/")
            assert got.outcome is Outcome.TLS
            assert got.error.startswith("certificate of proxy 127.0.0.1 is signed by an unknown")

    run(go())


def test_tls_to_a_proxy_without_tls(run: Run) -> None:
    async def go() -> None:
        async def handler(peer: Peer) -> None:
            await peer.reader.read(10)
            await peer.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            await peer.gone()

        async with (
            serve(handler=handler) as proxy,
            client(proxy=f"https://127.0.0.1:{proxy.port}") as vu,
        ):
            got = await vu.http.get("http://far.test/")
            assert got.outcome is Outcome.TLS
            assert got.error == (
                f"proxy 127.0.0.1:{proxy.port} does not speak TLS; did you mean http://?"
            )

    run(go())


def test_the_proxy_is_blamed_for_what_it_does(run: Run) -> None:
    async def go() -> None:
        async def hangs(peer: Peer) -> None:
            await peer.gone()

        async def closes(peer: Peer) -> None:
            await peer.request()

        async with serve(handler=hangs) as silent, serve(handler=closes) as closing:
            async with client(proxy=silent.url, timeout=0.1) as vu:
                got = await vu.http.get("http://far.test/")
                assert got.outcome is Outcome.TIMEOUT
                assert f"no response from proxy 127.0.0.1:{silent.port} within" in got.error
            async with client(proxy=closing.url) as vu:
                got = await vu.http.get("http://far.test/")
                assert got.outcome is Outcome.RESET
                assert got.error.startswith(f"proxy 127.0.0.1:{closing.port} closed the connection")

    run(go())


def test_hosts_and_local_addresses(run: Run, authority: Authority) -> None:
    async def go() -> None:
        seen: list[str] = []

        async def handler(peer: Peer) -> None:
            seen.append(peer.writer.get_extra_info("peername")[0])
            while await peer.request():
                await peer.send(response())

        tls = authority.server(authority.issue("far.test"))
        async with serve(handler=handler, tls=tls) as server:
            options = {
                "ca": authority.ca,
                "connections": "fresh",
                "hosts": {"far.test:443": f"127.0.0.1:{server.port}"},
                "local_addresses": ("127.0.0.8/30", "127.0.0.77"),
            }
            async with client(**options) as vu:
                for _ in range(6):
                    got = await vu.http.get("https://far.test/")
                    assert got.ok, got.error
        assert seen == ["127.0.0.9", "127.0.0.10", "127.0.0.77"] * 2

    run(go())


def test_a_local_address_that_is_not_ours(run: Run) -> None:
    async def go() -> None:
        async with serve(response()) as server, client(local_addresses=("192.0.2.1",)) as vu:
            got = await vu.http.get(server.url)
            assert got.outcome is Outcome.REFUSED
            assert got.error == (
                "192.0.2.1 (http.local_addresses) is not an address of this machine"
            )

    run(go())


def test_a_silent_address_holds_nobody_up(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full backlog does not answer; the call would otherwise use up its 10 s for connecting."""
    full = socket.create_server(("127.0.0.2", 0), backlog=0)
    port = full.getsockname()[1]
    fillers = []
    for _ in range(4):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(("127.0.0.2", port))
        fillers.append(filler)

    async def go() -> None:
        async def look_up(self: object, host: str) -> tuple[str, ...]:
            return ("127.0.0.1", "127.0.0.2")

        monkeypatch.setattr("hyperscale.clients.net.names.Resolver._look_up", look_up)
        async with (
            serve(response(), port=port) as server,
            client(connect_timeout=20, connections="fresh") as vu,
        ):
            for _ in range(6):
                got = await vu.http.get(f"http://two.test:{port}/")
                assert got.ok, got.error
            assert server.connections == 6

    try:
        run(go())
    finally:
        for one in (full, *fillers):
            one.close()
