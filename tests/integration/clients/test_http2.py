"""HTTP/2 against real servers: `h2` that does as a test says, hypercorn, nginx and our own."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from h2.settings import SettingCodes

from hyperscale.errors import BadInput
from hyperscale.http2 import frames
from hyperscale.target import running
from hyperscale.workload.results import CallFailed, Outcome
from hyperscale.workload.scope import CURRENT

from .certificates import Authority
from .conftest import Run
from .h2_server import Peer, hello, serve_h2
from .scripted import client, pool, response, serve, until
from .test_contract import CountingScope

END = frames.END_STREAM | frames.END_HEADERS


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def echo(peer: Peer, stream: int) -> None:
    asked = peer.headers[stream]
    fields = [(f"x-was-{name.lstrip(':')}", value) for name, value in asked.items()]
    peer.reply(stream, peer.bodies[stream] or b"nothing", *fields)


def test_what_a_server_sees_and_what_comes_back(run_each_way: Run) -> None:
    async def go() -> None:
        async with serve_h2(echo) as server, client() as vu:
            got = await vu.http2.post(
                f"{server.url}/a?b=c",
                json={"n": 1},
                headers={"X-Own": "yes", "Connection": "close", "TE": "gzip"},
                params={"d": "e"},
                cookies={"k": "v"},
                auth=("me", "pw"),
            )
            assert got.ok, got.error
            was = {name[6:]: value for name, value in got.headers.items() if name[:6] == "x-was-"}
            assert was["path"] == "/a?b=c&d=e"
            assert (was["method"], was["scheme"]) == ("POST", "http")
            assert was["authority"] == f"127.0.0.1:{server.port}"
            assert (was["x-own"], was["cookie"]) == ("yes", "k=v")
            assert was["authorization"].startswith("Basic ")
            assert was["content-length"] == "7"
            assert not was.keys() & {"connection", "host", "te"}
            assert got.json() == {"n": 1}
            assert got.request_bytes.startswith(b"POST /a?b=c&d=e HTTP/2\r\n")
            assert got.bytes_in > 7
            assert set(got.timings) >= {"connect", "write", "wait", "read"}
            again = await vu.http2.get(f"{server.url}/")
            assert again.connect is None
            assert len(server.peers) == 1

    run_each_way(go())


def test_over_tls(run_each_way: Run, authority: Authority) -> None:
    async def go() -> None:
        tls = authority.server(authority.issue("localhost"))
        tls.set_alpn_protocols(["h2"])
        async with serve_h2(tls=tls) as server, client(ca=authority.ca) as vu:
            got = await vu.http2.get(f"{server.url}/")
            assert (got.ok, got.content) == (True, b"hello")
            assert got.connect is not None
            assert got.connect.tls_s > 0
            plain = await vu.http2.get(server.url.replace("https", "http"), timeout=5)
            assert plain.outcome in (Outcome.PROTOCOL, Outcome.RESET), plain.error
        tls.set_alpn_protocols(["http/1.1"])
        async with serve_h2(tls=tls) as server, client(ca=authority.ca) as vu:
            got = await vu.http2.get(f"{server.url}/")
            assert got.outcome is Outcome.PROTOCOL
            assert "does not speak HTTP/2 over TLS" in got.error

    run_each_way(go())


def test_calls_at_the_same_time_share_a_connection_up_to_the_limit(run: Run) -> None:
    most = 0

    def answer(peer: Peer, stream: int) -> None:
        nonlocal most
        most = max(most, peer.http.open_inbound_streams)
        asyncio.get_running_loop().call_later(0.002, hello, peer, stream)

    async def go() -> None:
        async with serve_h2(answer, {SettingCodes.MAX_CONCURRENT_STREAMS: 3}) as server:
            async with client() as vu:
                assert (await vu.http2.get(server.url)).ok  # its settings are known then
                got = await asyncio.gather(*(vu.http2.get(server.url) for _ in range(20)))
                assert all(one.ok for one in got)
                assert (most, len(server.peers)) == (3, 1)
            async with pool(connections="shared") as shared:
                users = [shared.client() for _ in range(20)]
                await users[0].http2.get(server.url)
                got = await asyncio.gather(*(user.http2.get(server.url) for user in users))
                assert all(one.ok for one in got)
                assert most == 3
                assert 5 <= len(server.peers) <= 9  # others were opened when those were full
            async with pool(connections="fresh") as fresh:
                before, vu = len(server.peers), fresh.client()
                for _ in range(3):
                    assert (await vu.http2.get(server.url)).ok
                assert len(server.peers) == before + 3

    run(go())


def test_streams_that_never_become_free(run: Run) -> None:
    def silent(peer: Peer, stream: int) -> None:
        if len(peer.headers) == 1:
            hello(peer, stream)

    async def go() -> None:
        one = {SettingCodes.MAX_CONCURRENT_STREAMS: 1}
        async with serve_h2(silent, one) as server, client() as vu:
            assert (await vu.http2.get(server.url)).ok
            got = await asyncio.gather(
                vu.http2.get(server.url, timeout=1.0), vu.http2.get(server.url, timeout=0.3)
            )
            assert [each.outcome for each in got] == [Outcome.TIMEOUT] * 2
            assert "allowed no more streams" in got[1].error

    run(go())


def test_bodies_go_as_the_windows_allow(run_each_way: Run) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield bytes(20_000)

    async def go() -> None:
        small = {SettingCodes.INITIAL_WINDOW_SIZE: 1000}
        async with serve_h2(echo, small) as server, client() as vu:
            await vu.http2.get(server.url)
            whole = await vu.http2.post(server.url, data=b"x" * 300_000)
            assert whole.content == b"x" * 300_000, whole.error
            streamed = await vu.http2.put(server.url, data=pieces())
            assert streamed.content == bytes(400_000), streamed.error
            assert "x-was-transfer-encoding" not in streamed.headers
            received = bytearray()
            sunk = await vu.http2.post(server.url, data=b"y" * 300_000, sink=received.extend)
            assert (sunk.content, bytes(received)) == (b"", b"y" * 300_000)
            server.acknowledges = False
            late = await vu.http2.post(server.url, data=bytes(300_000), timeout=0.2)
            assert late.outcome is Outcome.TIMEOUT
            assert "had not taken the whole request" in late.error
            await until(lambda: server.resets == [frames.CANCEL])

    run_each_way(go())


def test_trailers_interim_answers_and_pings(run: Run) -> None:
    def answer(peer: Peer, stream: int) -> None:
        peer.http.ping(bytes(8))
        peer.http.send_headers(stream, [(":status", "103"), ("link", "</a>")])
        peer.reply(stream, b"body", trailers=[("x-sum", "17")])

    async def go() -> None:
        async with serve_h2(answer) as server, client() as vu:
            got = await vu.http2.get(server.url)
            assert (got.status, got.content, got.trailers["x-sum"]) == (200, b"body", "17")
            await until(lambda: server.pings == 1)

    run(go())


def test_cookies_redirects_and_expectations(run: Run) -> None:
    with running() as url:

        async def go() -> None:
            async with client(base_url=url) as vu:
                assert (await vu.http2.get("/cookies/set?a=b")).ok
                assert (await vu.http2.get("/cookies")).json() == {"cookies": {"a": "b"}}
                led = await vu.http2.get("/redirect/2")
                assert (led.status, len(led.redirects)) == (200, 2)
                assert (await vu.http2.get("/status/404", expect=404)).ok
                assert (await vu.http2.get("/status/404")).error == "404 Not Found"
                assert (await vu.http2.head("/json")).headers["content-length"] == "71"
                assert (await vu.http2.get("/gzip")).json()["message"] == "hello"
                big = await vu.http2.get("/bytes/9000000")
                assert len(big.content) == 9_000_000
                assert (await vu.http2.get("/bytes/9000000", discard_body=True)).content == b""
                last = await vu.http2.get("/close")
                assert last.content == b"Goodbye.\n"
                assert (await vu.http2.get("/chunked")).content == b"c" * 80

        run(go())


def goes_away(peer: Peer, stream: int) -> None:
    """Every connection answers two requests, and says so too late for the third."""
    if len(peer.headers) < 3:
        hello(peer, stream)
        return
    done = sorted(peer.headers)[1]
    peer.http.close_connection(last_stream_id=done)
    peer.flush()
    peer.server.seen -= 1  # it leaves this one out
    peer.transport.close()


def test_requests_that_a_leaving_server_left_out_are_made_again(run: Run) -> None:
    async def go() -> None:
        scope = CountingScope()
        CURRENT.set(scope)
        async with serve_h2(goes_away) as server, client() as vu:
            for _ in range(9):
                got = await vu.http2.post(server.url, data=b"once")
                assert got.ok, got.error
            assert (len(scope.rows), scope.failures) == (9, [])
            assert server.seen == 9
            assert len(server.peers) == 5

    run(go())


def reset(code: int) -> Callable[[Peer, int], None]:
    def answer(peer: Peer, stream: int) -> None:
        peer.http.reset_stream(stream, code)
        peer.flush()

    return answer


def raw(*sent: tuple[int, int, bytes]) -> Callable[[Peer, int], None]:
    def answer(peer: Peer, stream: int) -> None:
        for kind, flags, payload in sent:
            peer.frame(kind, flags, stream, payload)

    return answer


def endless(peer: Peer, stream: int) -> None:
    peer.frame(frames.HEADERS, frames.END_HEADERS, stream, b"\x88")
    for _ in range(40):
        peer.frame(frames.DATA, 0, stream, bytes(10_000))


def drop(peer: Peer, stream: int) -> None:
    peer.transport.abort()


BAD = {
    "reset": (reset(2), Outcome.RESET, r"reset the stream \(INTERNAL_ERROR\)"),
    "refused": (reset(7), Outcome.REFUSED, r"REFUSED_STREAM"),
    "calm": (reset(11), Outcome.RESET, r"ENHANCE_YOUR_CALM"),
    "dies": (drop, Outcome.RESET, "reset the connection|closed the connection"),
    "half": (
        raw((frames.HEADERS, 4, b"\x88\x0f\x0d\x0210"), (frames.DATA, 1, b"half")),
        Outcome.PROTOCOL,
        "sent 4 of 10 bytes of the body",
    ),
    "endless": (endless, Outcome.PROTOCOL, r"a body of more than 200000 bytes"),
    "announced": (
        raw((frames.HEADERS, 4, b"\x88\x0f\x0d\x06999999")),
        Outcome.PROTOCOL,
        r"a body of more than 200000 bytes",
    ),
    "no status": (
        raw((frames.HEADERS, END, b"\x0f\x0d\x010")),
        Outcome.PROTOCOL,
        "a response without a status",
    ),
    "capitals": (
        raw((frames.HEADERS, END, b"\x88\x00\x01X\x011")),
        Outcome.PROTOCOL,
        "a malformed header",
    ),
    "line break": (
        raw((frames.HEADERS, END, b"\x88\x00\x01x\x03a\r\n")),
        Outcome.PROTOCOL,
        "a malformed header",
    ),
    "of a connection": (
        raw((frames.HEADERS, END, b"\x88\x00\x0aconnection\x05close")),
        Outcome.PROTOCOL,
        "a header that HTTP/2 does not have",
    ),
    "body first": (raw((frames.DATA, 1, b"x")), Outcome.PROTOCOL, "a body before its headers"),
    "nothing": (raw((frames.DATA, 1, b"")), Outcome.PROTOCOL, "without an answer"),
    "push": (raw((frames.PUSH_PROMISE, 4, bytes(4))), Outcome.PROTOCOL, "sent a push"),
    "garbage": (raw((frames.PING, 0, b"x")), Outcome.PROTOCOL, "a ping that cannot be read"),
    "block": (raw((frames.HEADERS, END, b"\xff" * 30)), Outcome.PROTOCOL, "a header block"),
    "only 1xx": (
        raw(*[(frames.HEADERS, 4, b"\x08\x03103")] * 150),
        Outcome.PROTOCOL,
        "keeps sending 103",
    ),
}


@pytest.mark.parametrize("how", BAD)
def test_bad_servers(run: Run, how: str) -> None:
    answer, outcome, sentence = BAD[how]

    def once(peer: Peer, stream: int) -> None:
        if "/bad" in peer.headers[stream][":path"]:
            answer(peer, stream)
        else:
            hello(peer, stream)

    async def go() -> None:
        scope = CountingScope()
        CURRENT.set(scope)
        async with serve_h2(once) as server, client(max_response_bytes=200_000) as vu:
            got = await vu.http2.post(f"{server.url}/bad", timeout=5)
            assert got.outcome is outcome, got.error
            assert re.search(sentence, got.error), got.error
            assert [sent for _, sent in scope.failures] == [True]
            with pytest.raises(CallFailed):
                _ = got.content
            assert (await vu.http2.get(server.url)).content == b"hello"

    run(go())


@pytest.mark.parametrize(
    ("greeting", "sentence"),
    [
        (response(b"", "400 Bad Request"), "answered in HTTP/1.1, not in HTTP/2"),
        (b"\x15\x03\x01\x00\x02\x02\x0a", "did you mean https"),
        (b"220 mail.example ESMTP\r\n", "not HTTP/2"),
        (frames.frame(frames.PING, 0, 0, bytes(8)), "not HTTP/2"),
        (frames.settings({}) + b"\xff" * 40, "a frame of 16777215 bytes"),
    ],
)
def test_other_protocols_at_the_port(run_each_way: Run, greeting: bytes, sentence: str) -> None:
    async def handler(peer: object) -> None:
        await peer.reader.read(100)  # type: ignore[attr-defined]
        await peer.send(greeting)  # type: ignore[attr-defined]
        await peer.gone()  # type: ignore[attr-defined]

    async def go() -> None:
        async with serve(handler=handler) as server, client() as vu:
            got = await vu.http2.get(server.url, timeout=5)
            assert got.outcome is Outcome.PROTOCOL
            assert sentence in got.error

    run_each_way(go())


def test_a_server_that_stalls_costs_its_call_only(run: Run) -> None:
    def stalls(peer: Peer, stream: int) -> None:
        if peer.headers[stream][":path"] != "/stall":
            hello(peer, stream)

    async def go() -> None:
        async with serve_h2(stalls) as server, client() as vu:
            stalled = asyncio.ensure_future(vu.http2.get(f"{server.url}/stall", timeout=0.2))
            await until(lambda: server.seen == 1)
            assert (await vu.http2.get(server.url)).ok
            got = await stalled
            assert (got.outcome, "no response" in got.error) == (Outcome.TIMEOUT, True)
            assert server.resets == [frames.CANCEL] or not server.resets
            assert (await vu.http2.get(server.url)).ok
            assert len(server.peers) == 1
            alone = await vu.http2.get(f"{server.url}/stall", timeout=0.1)
            assert alone.outcome is Outcome.TIMEOUT
            assert (await vu.http2.get(server.url)).ok
            assert len(server.peers) == 2  # one that says nothing at all is given up

    run(go())


def test_a_call_that_is_given_up_leaves_the_others_alone(run: Run) -> None:
    def answer(peer: Peer, stream: int) -> None:
        if peer.headers[stream][":path"] != "/never":
            hello(peer, stream)

    async def go() -> None:
        scope = CountingScope()
        CURRENT.set(scope)
        async with serve_h2(answer) as server, client() as vu:
            task = asyncio.ensure_future(vu.http2.get(f"{server.url}/never"))
            await until(lambda: server.seen == 1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert [(one.outcome, sent) for one, sent in scope.failures] == [
                (Outcome.CANCELLED, True)
            ]
            assert (await vu.http2.get(server.url)).ok
            await until(lambda: server.resets == [frames.CANCEL])

    run(go())


def test_what_the_author_got_wrong(run: Run) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match="line break"):
                await vu.http2.get("http://127.0.0.1:1/", headers={"X": "a\nb"})
            with pytest.raises(BadInput, match="not a URL"):
                await vu.http2.get("shop.example")

    run(go())


def test_a_generator_or_sink_that_raises(run: Run) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"x"
        raise ZeroDivisionError

    async def go() -> None:
        async with serve_h2(echo) as server, client() as vu:
            with pytest.raises(ZeroDivisionError):
                await vu.http2.post(server.url, data=pieces())
            with pytest.raises(ValueError, match="invalid literal"):
                await vu.http2.get(server.url, sink=int)
            assert (await vu.http2.get(server.url)).ok

    run(go())


@contextmanager
def process(*words: str, port: int) -> Iterator[None]:
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                probe.settimeout(0.1)
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            with suppress(subprocess.TimeoutExpired):
                child.wait(0.05)
            assert child.returncode is None, f"{words[0]} ended with {child.returncode}"
        yield
    finally:
        child.terminate()
        child.wait(10)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


APP = """
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = b""
    while True:
        part = await receive()
        body += part.get("body", b"")
        if not part.get("more_body"):
            break
    text = f"{scope['http_version']} {scope['method']} {scope['path']} {len(body)}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text})
"""


def test_hypercorn(run: Run, tmp_path: Path, authority: Authority) -> None:
    (tmp_path / "hyper_app.py").write_text(APP)
    cert = authority.issue("localhost")
    port = free_port()
    words = ("-m", "hypercorn", "-b", f"127.0.0.1:{port}", "--certfile", cert, "--keyfile", cert)

    async def go() -> None:
        async with client(ca=authority.ca) as vu:
            url = f"https://127.0.0.1:{port}"
            got = await vu.http2.get(f"{url}/a")
            assert got.text() == "2 GET /a 0", got.error
            got = await vu.http2.post(f"{url}/b", data=bytes(200_000))
            assert got.text() == "2 POST /b 200000", got.error
            many = await asyncio.gather(*(vu.http2.get(f"{url}/{n}") for n in range(150)))
            assert [one.text() for one in many] == [f"2 GET /{n} 0" for n in range(150)]

    with process(sys.executable, *words, f"{tmp_path}/hyper_app:app", port=port):
        run(go())


NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
  access_log {folder}/access.log; keepalive_requests 7; root {folder};
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  server {{
    listen 127.0.0.1:{port} ssl http2; ssl_certificate {cert}; ssl_certificate_key {cert};
  }}
}}
"""


@pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed (Debian: nginx)")
def test_nginx_which_ends_its_connections(run: Run, tmp_path: Path, authority: Authority) -> None:
    cert = authority.issue("localhost")
    port = free_port()
    (tmp_path / "page.html").write_text("x" * 50_000)
    config = tmp_path / "nginx.conf"
    config.write_text(NGINX.format(folder=tmp_path, port=port, cert=cert))

    async def go() -> None:
        scope = CountingScope()
        CURRENT.set(scope)
        async with client(ca=authority.ca) as vu:
            url = f"https://127.0.0.1:{port}/page.html"
            for _ in range(50):
                got = await vu.http2.get(url)
                assert len(got.content) == 50_000, got.error
            got = await asyncio.gather(*(vu.http2.get(url) for _ in range(50)))
            assert all(one.ok for one in got), [one.error for one in got if not one.ok]
        lines = (tmp_path / "access.log").read_text().splitlines()
        assert len(lines) == len(scope.rows) == 100
        assert scope.connects >= 100 // 7

    with process("nginx", "-p", str(tmp_path), "-c", str(config), port=port):
        run(go())


def test_what_is_counted_is_what_the_target_counted(run: Run) -> None:
    with running() as url:

        async def go() -> None:
            scope = CountingScope()
            async with pool(base_url=url) as made:

                async def user() -> None:
                    CURRENT.set(scope)
                    vu = made.client()
                    for _ in range(20):
                        assert (await vu.http2.get("/json")).ok

                await asyncio.gather(*(user() for _ in range(10)))
                stats = (await made.client().http.get("/stats")).json()
                assert stats["paths"]["/json"] == len(scope.rows) == 200

        run(go())
