"""HTTP/3 against real servers: `aioquic` that does as a test says, hypercorn and our own target."""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import contextmanager
from pathlib import Path

import pytest
from aioquic.h3.connection import ErrorCode

from hyperscale.errors import BadInput
from hyperscale.target.process import Options, TargetProcess
from hyperscale.workload.http_options import ClientCert
from hyperscale.workload.responses import HTTP2Response, HTTP3Response
from hyperscale.workload.results import Outcome
from hyperscale.workload.scope import CURRENT

from .certificates import Authority
from .conftest import Run
from .h3_server import Peer, hello, serve_h3
from .scripted import client, pool
from .test_contract import CountingScope, free_port, user
from .test_http2 import APP, process


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def cert(authority: Authority) -> str:
    return authority.issue("localhost")


def echo(peer: Peer, stream: int) -> None:
    asked = peer.headers[stream]
    fields = [(f"x-was-{name.lstrip(':')}", value) for name, value in asked.items()]
    peer.reply(stream, peer.bodies[stream] or b"nothing", *fields, trailers=[("x-end", "yes")])


def test_what_a_server_sees_and_what_comes_back(
    run_each_way: Run, authority: Authority, cert: str
) -> None:
    async def go() -> None:
        async with serve_h3(cert, echo) as server, user(ca=authority.ca) as (vu, scope, _):
            got = await vu.http3.post(
                f"{server.url}/a?b=c",
                json={"n": 1},
                headers={"X-Own": "yes", "Connection": "close"},
                params={"d": "e"},
                cookies={"k": "v"},
                auth=("me", "pw"),
            )
            assert got.ok, got.error
            assert isinstance(got, HTTP3Response)
            was = {name[6:]: value for name, value in got.headers.items() if name[:6] == "x-was-"}
            assert (was["method"], was["scheme"], was["path"]) == ("POST", "https", "/a?b=c&d=e")
            assert was["authority"] == f"127.0.0.1:{server.port}"
            assert (was["x-own"], was["cookie"], was["content-length"]) == ("yes", "k=v", "7")
            assert not was.keys() & {"connection", "host"}
            assert (got.json(), dict(got.trailers)) == ({"n": 1}, {"x-end": "yes"})
            assert got.request_bytes.startswith(b"POST /a?b=c&d=e HTTP/3\r\n")
            assert got.bytes_in > 7 < got.bytes_out
            assert set(got.timings) >= {"connect", "write", "wait", "read"}
            again = await vu.http3.get(f"{server.url}/")
            assert again.connect is None
            many = await asyncio.gather(*(vu.http3.get(f"{server.url}/{n}") for n in range(150)))
            assert [one.headers["x-was-path"] for one in many] == [f"/{n}" for n in range(150)]
            assert len(server.peers) == scope.connects == 1, "streams of one connection"
            assert server.seen == len(scope.rows) == 152
            for started, sent, first_byte, ended, *_ in scope.rows:
                assert started <= sent <= first_byte <= ended

    run_each_way(go())


def test_bodies_of_all_kinds_arrive_whole(run: Run, authority: Authority, cert: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"x" * 50_000

    async def go() -> None:
        async with serve_h3(cert, echo) as server, client(ca=authority.ca) as vu:
            for body in (b"y" * 3_000_000, pieces()):
                got = await vu.http3.post(server.url, data=body)
                assert got.ok, got.error
                assert len(got.content) in (2_000_000, 3_000_000)
                assert got.bytes_out > len(got.content)
            head = await vu.http3.head(server.url)
            assert head.ok, head.error

    run(go())


def test_an_answer_to_head_may_tell_a_length(run: Run, authority: Authority, cert: str) -> None:
    def answer(peer: Peer, stream: int) -> None:
        peer.fields(stream, (":status", "200"), ("content-length", "5"), end=True)
        peer.transmit()

    async def go() -> None:
        async with serve_h3(cert, answer) as server, client(ca=authority.ca) as vu:
            assert (await vu.http3.head(server.url)).headers["content-length"] == "5"
            got = await vu.http3.get(server.url)
            assert (got.outcome, len(server.peers)) == (Outcome.PROTOCOL, 1)
            assert "sent 0 of 5 bytes" in got.error

    run(go())


def test_early_data_is_for_what_may_be_seen_twice(
    run: Run, authority: Authority, cert: str
) -> None:
    async def go() -> None:
        options = {"ca": authority.ca, "connections": "fresh", "early_data": True}
        async with serve_h3(cert, echo) as server, user(**options) as (vu, scope, _):
            got = [await vu.http3.get(server.url) for _ in range(3)]
            got.append(await vu.http3.post(server.url, data=b"once"))
            assert all(one.ok for one in got), [one.error for one in got]
            assert server.early == [False, True, True, True]
            assert got[3].content == b"once"
            assert server.seen == len(scope.rows) == 4
        async with serve_h3(cert) as server, client(ca=authority.ca, connections="fresh") as vu:
            assert [(await vu.http3.get(server.url)).ok for _ in range(2)] == [True, True]
            assert server.early == [False, False], "only those who ask for it"

    run(go())


def refusing(code: int) -> Callable[[Peer, int], None]:
    def answer(peer: Peer, stream: int) -> None:
        peer.reset(stream, code)

    return answer


def closing(peer: Peer, stream: int) -> None:
    peer.close(ErrorCode.H3_INTERNAL_ERROR, "on fire")


def half(peer: Peer, stream: int) -> None:
    peer.fields(stream, (":status", "200"), ("content-length", "10"))
    peer.http.send_data(stream, b"12345", end_stream=True)
    peer.transmit()


def garbage(peer: Peer, stream: int) -> None:
    peer.raw(stream, b"\x01\x05HTTP/1.1 200 OK\r\n\r\n", end=True)


def endless_fields(peer: Peer, stream: int) -> None:
    peer.raw(stream, b"\x01\x80\x10\x00\x00" + bytes(300_000))


def many_fields(peer: Peer, stream: int) -> None:
    peer.reply(stream, b"", *((f"x-{n}", "y" * 1000) for n in range(100)))


def large(peer: Peer, stream: int) -> None:
    peer.reply(stream, bytes(300_000))


BAD = {
    "reset": (refusing(ErrorCode.H3_INTERNAL_ERROR), Outcome.RESET, "H3_INTERNAL_ERROR"),
    "refused": (refusing(ErrorCode.H3_REQUEST_REJECTED), Outcome.RESET, "left this request out"),
    "closed": (closing, Outcome.RESET, "on fire"),
    "half": (half, Outcome.PROTOCOL, "sent 5 of 10 bytes"),
    "garbage": (garbage, Outcome.PROTOCOL, "QPACK"),
    "endless fields": (endless_fields, Outcome.PROTOCOL, "max_header_bytes"),
    "many fields": (many_fields, Outcome.PROTOCOL, "max_header_bytes"),
    "large": (large, Outcome.PROTOCOL, "max_response_bytes"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_bad_servers(run: Run, authority: Authority, cert: str, name: str) -> None:
    answer, outcome, words = BAD[name]

    async def go() -> None:
        options = {"ca": authority.ca, "max_response_bytes": 100_000}
        async with serve_h3(cert, answer) as server, user(**options) as (vu, scope, _):
            got = await vu.http3.get(server.url)
            assert got.outcome is outcome, got.error
            assert words in got.error
            assert (len(scope.rows), scope.failures[-1][0]) == (0, got)
            server.answer = hello
            assert (await vu.http3.get(server.url)).text() == "hello", "the next one goes well"

    run(go())


def test_who_is_not_there_or_something_else(
    run_each_way: Run, authority: Authority, cert: str
) -> None:
    async def go() -> None:
        async with client(ca=authority.ca) as vu:
            gone = await vu.http3.get(f"https://127.0.0.1:{free_port()}/")
            assert (gone.outcome, "nobody listens" in gone.error) == (Outcome.REFUSED, True)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
                mute.bind(("127.0.0.1", 0))
                got = await vu.http3.get(f"https://127.0.0.1:{mute.getsockname()[1]}/", timeout=0.3)
                assert got.outcome is Outcome.TIMEOUT, got.error
            async with serve_h3(cert, alpn="other") as server:
                got = await vu.http3.get(server.url)
                assert got.outcome is Outcome.PROTOCOL, got.error
                assert "not HTTP/3" in got.error

    run_each_way(go())


def test_certificates_are_judged_as_for_http(run: Run, authority: Authority, cert: str) -> None:
    async def go() -> None:
        async with serve_h3(cert) as server:
            async with client() as vu:
                got = await vu.http3.get(server.url)
                assert (got.outcome, "unknown authority" in got.error) == (Outcome.TLS, True)
            async with client(verify=False) as vu:
                assert (await vu.http3.get(server.url)).ok
            async with client(ca=authority.ca, server_name="shop.example") as vu:
                got = await vu.http3.get(server.url)
                assert (got.outcome, "another name" in got.error) == (Outcome.TLS, True)
        async with (
            serve_h3(authority.issue("localhost", days=-1)) as server,
            client(ca=authority.ca) as vu,
        ):
            got = await vu.http3.get(server.url)
            assert (got.outcome, "has expired" in got.error) == (Outcome.TLS, True)

    run(go())


def test_a_client_certificate_is_read_before_the_run(run: Run, tmp_path: Path) -> None:
    async def go() -> None:
        with pytest.raises(BadInput, match="cannot be read"):
            async with client(certs=(ClientCert("*.example", cert="no.pem"),)) as vu:
                await vu.http3.get("https://shop.example/")

    run(go())


def test_what_quic_cannot_do_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        for options, url, words in (
            ({}, "http://127.0.0.1/", "has TLS always"),
            ({"proxy": "http://127.0.0.1:1"}, "https://127.0.0.1/", "does not pass on"),
            ({"tls_max": "1.2"}, "https://127.0.0.1/", "TLS 1.3 only"),
            ({"unix_socket": "/tmp/x"}, "https://127.0.0.1/", "over UDP"),
        ):
            async with client(**options) as vu:
                with pytest.raises(BadInput, match=words):
                    await vu.http3.get(url)

    run(go())


def test_a_silent_server_and_its_connection(run: Run, authority: Authority, cert: str) -> None:
    async def go() -> None:
        async with (
            serve_h3(cert, lambda peer, stream: None) as server,
            user(ca=authority.ca) as (vu, scope, _),
        ):
            assert (await vu.http3.get(server.url, timeout=1.0)).outcome is Outcome.TIMEOUT
            assert [sent for _, sent in scope.failures] == [True]
            server.answer = hello
            assert (await vu.http3.get(server.url)).ok
            assert server.seen == 2

    run(go())


@pytest.mark.parametrize("connections", ["per_vu", "shared", "fresh"])
def test_what_is_counted_is_what_the_target_counted(run: Run, connections: str) -> None:
    with TargetProcess(Options(tls=True)) as target:

        async def go() -> None:
            scope = CountingScope()
            ca = str(target.certificate)
            async with pool(base_url=target.url, ca=ca, connections=connections) as made:

                async def one() -> None:
                    CURRENT.set(scope)
                    vu = made.client()
                    for _ in range(10):
                        got = await vu.http3.get("/json")
                        assert got.ok, got.error

                await asyncio.gather(*(one() for _ in range(5)))
                stats = (await made.client().http.get("/stats")).json()
                assert stats["paths"]["/json"] == len(scope.rows) == 50
                assert scope.connects == {"per_vu": 5, "shared": 1, "fresh": 50}[connections]

        run(go())


@contextmanager
def hypercorn(folder: Path, cert: str, port: int):  # type: ignore[no-untyped-def]
    (folder / "hyper_app.py").write_text(APP)
    (folder / "hyper.toml").write_text(f'quic_bind = ["127.0.0.1:{port}"]')
    words = ("-m", "hypercorn", "-c", str(folder / "hyper.toml"), "-b", f"127.0.0.1:{port}")
    app = f"{folder}/hyper_app:app"
    with process(sys.executable, *words, "--certfile", cert, "--keyfile", cert, app, port=port):
        yield f"https://127.0.0.1:{port}"


def test_hypercorn_and_its_alt_svc(
    run: Run, tmp_path: Path, authority: Authority, cert: str
) -> None:
    async def go() -> None:
        async with client(ca=authority.ca) as vu:
            got = await vu.http3.post(f"{url}/b", data=bytes(200_000))
            assert got.text() == "3 POST /b 200000", got.error
        async with user(ca=authority.ca, version="auto") as (vu, scope, _):
            first = await vu.http.get(f"{url}/1")
            others = [await vu.http.get(f"{url}/{n}") for n in range(2, 5)]
            assert first.text() == "2 GET /1 0", first.error
            assert [one.text() for one in others] == [f"3 GET /{n} 0" for n in range(2, 5)]
            assert all(isinstance(one, HTTP3Response) for one in others)
            assert (len(scope.rows), scope.connects) == (4, 2)

    with hypercorn(tmp_path, cert, free_port()) as url:
        run(go())


NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ }}
http {{
  access_log off; ssl_certificate {cert}; ssl_certificate_key {cert};
  client_body_temp_path {folder}/body;
  server {{
    listen 127.0.0.1:{port} ssl;
    location / {{ add_header Alt-Svc 'h3=":{quic}"; ma=60'; return 200 "one"; }}
  }}
}}
"""


@pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed (Debian: nginx)")
def test_an_alternative_is_a_hint(
    run: Run, tmp_path: Path, authority: Authority, cert: str
) -> None:
    async def go() -> None:
        gone, port = free_port(), free_port()
        config = tmp_path / "nginx.conf"
        async with serve_h3(cert) as server:
            for quic, texts in ((server.port, ["one", "hello", "hello"]), (gone, ["one"] * 3)):
                config.write_text(NGINX.format(folder=tmp_path, cert=cert, port=port, quic=quic))
                with process("nginx", "-p", str(tmp_path), "-c", str(config), port=port):
                    async with user(ca=authority.ca, version="auto") as (vu, scope, _):
                        got = [await vu.http.get(f"https://127.0.0.1:{port}/") for _ in texts]
                        assert [one.text() for one in got] == texts
                        assert not scope.failures, "that nobody is there is no failure"
                        assert len(scope.rows) == 3
                        assert not isinstance(got[0], HTTP2Response)

    run(go())
