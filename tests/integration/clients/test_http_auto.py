"""`version="auto"`: nginx chooses HTTP/2 at one port and HTTP/1.1 at another."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.responses import HTTP2Response
from hyperscale.workload.results import Outcome

from .certificates import Authority
from .conftest import Run
from .scripted import client, response, serve
from .test_contract import free_port, user
from .test_http2 import APP, process

NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ }}
http {{
  log_format version "$server_protocol $request_uri $connection";
  access_log {folder}/access.log version;
  client_body_temp_path {folder}/body;
  ssl_certificate {cert}; ssl_certificate_key {cert};
  server {{
    listen 127.0.0.1:{h2} ssl http2;
    location = /to-http1 {{ return 302 https://127.0.0.1:{h1}/two; }}
    location = /to-plain {{ return 302 http://127.0.0.1:{plain}/three; }}
    location / {{ add_header Set-Cookie seen=yes; return 200 "two $http_cookie"; }}
  }}
  server {{ listen 127.0.0.1:{h1} ssl; location / {{ return 200 "one $http_cookie"; }} }}
  server {{ listen 127.0.0.1:{plain}; location / {{ return 200 "plain"; }} }}
}}
"""


class Served(NamedTuple):
    h2: str
    h1: str
    log: Path
    ca: str

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.log.read_text().splitlines()]


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[Served]:
    if not shutil.which("nginx"):
        pytest.skip("nginx is missing: apt-get install nginx")
    authority = Authority(tmp_path)
    ports = {"h2": free_port(), "h1": free_port(), "plain": free_port()}
    config = tmp_path / "nginx.conf"
    cert = authority.issue("localhost")
    config.write_text(NGINX.format(folder=tmp_path, cert=cert, **ports))
    with process("nginx", "-p", str(tmp_path), "-c", str(config), port=ports["h2"]):
        h2, h1 = (f"https://127.0.0.1:{ports[name]}" for name in ("h2", "h1"))
        yield Served(h2, h1, tmp_path / "access.log", authority.ca)


@pytest.mark.parametrize("connections", ["per_vu", "shared", "fresh"])
def test_the_server_chooses(run: Run, nginx: Served, connections: str) -> None:
    async def go() -> None:
        options = {"version": "auto", "ca": nginx.ca, "connections": connections}
        async with user(**options) as (vu, scope, _):
            for _ in range(3):
                two = await vu.http.get(f"{nginx.h2}/a")
                one = await vu.http.get(f"{nginx.h1}/b")
                assert (two.ok, one.ok) == (True, True), (two.error, one.error)
                assert isinstance(two, HTTP2Response)
                assert not isinstance(one, HTTP2Response)
                assert two.text().startswith("two")
            posted = await vu.http.post(f"{nginx.h2}/c", json={"a": 1})
            assert posted.ok, posted.error
            lines = nginx.lines()
            assert [line[:2] for line in lines] == [
                *[["HTTP/2.0", "/a"], ["HTTP/1.1", "/b"]] * 3,
                ["HTTP/2.0", "/c"],
            ]
            opened = 7 if connections == "fresh" else 2
            assert len({line[2] for line in lines}) == scope.connects == opened
            assert len(scope.noted) == 7

    run(go())


def test_calls_at_the_same_time(run: Run, nginx: Served) -> None:
    async def go() -> None:
        async with user(version="auto", ca=nginx.ca) as (vu, scope, _):
            for place in (nginx.h2, nginx.h1):
                many = await asyncio.gather(*(vu.http.get(f"{place}/{n}") for n in range(10)))
                assert all(one.ok for one in many), [one.error for one in many]
        lines = nginx.lines()
        assert sorted(line[0] for line in lines) == ["HTTP/1.1"] * 10 + ["HTTP/2.0"] * 10
        assert len({line[2] for line in lines if line[0] == "HTTP/2.0"}) == 1
        assert len(scope.noted) == 20

    run(go())


def test_redirects_and_cookies_cross_versions(run: Run, nginx: Served) -> None:
    async def go() -> None:
        async with client(version="auto", ca=nginx.ca) as vu:
            await vu.http.get(f"{nginx.h2}/")
            got = await vu.http.get(f"{nginx.h2}/to-http1")
            assert (got.status, got.text()) == (200, "one seen=yes"), got.error
            plain = await vu.http.get(f"{nginx.h2}/to-plain")
            assert (plain.status, plain.text()) == (200, "plain"), plain.error

    run(go())


@pytest.mark.parametrize(("protocol", "version"), [("h2", "2"), ("http/1.1", "1.1")])
def test_bodies_arrive_whole(run: Run, tmp_path: Path, protocol: str, version: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 1000

    async def go() -> None:
        async with client(version="auto", ca=authority.ca) as vu:
            url = f"https://127.0.0.1:{port}/"
            got = await vu.http.post(url, data=bytes(200_000))
            assert got.text() == f"{version} POST / 200000", got.error
            got = await vu.http.post(url, data=pieces())
            assert got.text() == f"{version} POST / 3000", got.error
            framed = {"Transfer-Encoding": "chunked"}
            with pytest.raises(BadInput, match="HTTP/2 does not know"):
                await vu.http.post(url, data=b"x", headers=framed)

    authority = Authority(tmp_path)
    (tmp_path / "hyper_app.py").write_text(APP)
    config = tmp_path / "hyper.toml"
    config.write_text(f'alpn_protocols = ["{protocol}"]')
    cert, port = authority.issue("localhost"), free_port()
    words = ("-m", "hypercorn", "-c", str(config), "-b", f"127.0.0.1:{port}", "--certfile", cert)
    app = f"{tmp_path}/hyper_app:app"
    with process(sys.executable, *words, "--keyfile", cert, app, port=port):
        run(go())


def test_a_server_that_chooses_nothing_and_one_that_is_not_there(run: Run, tmp_path: Path) -> None:
    async def go() -> None:
        authority = Authority(tmp_path)
        tls = authority.server(authority.issue("localhost"))
        async with (
            serve(lambda _: response(b"old"), tls=tls) as server,
            client(version="auto", ca=authority.ca) as vu,
        ):
            got = await vu.http.get(f"https://127.0.0.1:{server.port}/")
            assert (got.ok, got.content) == (True, b"old"), got.error
            gone = await vu.http.get(f"https://127.0.0.1:{free_port()}/")
            assert gone.outcome is Outcome.REFUSED

    run(go())


def test_other_versions_are_refused() -> None:
    with pytest.raises(BadInput, match=r'http.version must be "1.1" or "auto"'):
        HTTPOptions(version="2")  # type: ignore[arg-type]
