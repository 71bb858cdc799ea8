"""The target over real sockets, spoken to by the standard library's client or by hand."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hyperscale.errors import BadInput
from hyperscale.target import Options, Target, TargetProcess, running

DEADLINE = 20.0


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running() as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=DEADLINE)
    yield connection
    connection.close()


def fetch(client: http.client.HTTPConnection, path: str) -> tuple[int, bytes]:
    client.request("GET", path)
    response = client.getresponse()
    return response.status, response.read()


def dial(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=DEADLINE)


def read_all(sock: socket.socket) -> bytes:
    received = bytearray()
    while data := sock.recv(1_000_000):
        received += data
    return bytes(received)


def stats_of(url: str) -> dict[str, Any]:
    with dial(url) as sock:
        sock.sendall(b"GET /stats HTTP/1.1\r\nConnection: close\r\n\r\n")
        stats: dict[str, Any] = json.loads(read_all(sock).split(b"\r\n\r\n", 1)[1])
        return stats


def test_many_requests_on_one_connection(client: http.client.HTTPConnection) -> None:
    for path, length in [("/bytes/10", 10), ("/bytes/0", 0), ("/bytes/300000", 300_000)] * 3:
        status, body = fetch(client, path)
        assert (status, len(body)) == (200, length)


def test_a_body_larger_than_any_buffer(client: http.client.HTTPConnection) -> None:
    status, body = fetch(client, "/bytes/20000000")
    assert (status, len(body)) == (200, 20_000_000)


def test_chunked_is_understood(client: http.client.HTTPConnection) -> None:
    assert fetch(client, "/chunked?chunks=3&size=5") == (200, b"c" * 15)


def test_pipelined_answers_come_in_order_behind_a_delay(url: str) -> None:
    paths = ["/delay/30", "/status/404", "/bytes/5", "/delay/10", "/status/503"]
    with dial(url) as sock:
        sock.sendall(b"".join(f"GET {path} HTTP/1.1\r\n\r\n".encode() for path in paths))
        sock.sendall(b"GET /close HTTP/1.1\r\n\r\n")
        received = read_all(sock)
    codes = [int(part.split()[0]) for part in received.split(b"HTTP/1.1 ")[1:]]
    assert codes == [200, 404, 200, 200, 503, 200]


def test_a_client_that_reads_late_still_gets_every_answer(url: str) -> None:
    with dial(url) as sock:
        count = 20
        sock.sendall(b"GET /bytes/1000000 HTTP/1.1\r\n\r\n" * count)
        sock.sendall(b"GET /close HTTP/1.1\r\n\r\n")
        assert len(read_all(sock)) > count * 1_000_000


def test_the_server_measures_its_own_delays(client: http.client.HTTPConnection) -> None:
    fetch(client, "/stats/reset")
    for _ in range(3):
        fetch(client, "/delay/5")
    stats = json.loads(fetch(client, "/stats")[1])
    assert stats["requests"] == 3
    assert stats["delays"]["/delay/5"]["count"] == 3
    assert stats["delays"]["/delay/5"]["mean_ms"] > 3


def test_reset_is_a_reset_and_not_a_close(url: str) -> None:
    with dial(url) as sock:
        sock.sendall(b"GET /reset HTTP/1.1\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            read_all(sock)


def test_garbage_is_not_http(client: http.client.HTTPConnection) -> None:
    with pytest.raises(http.client.BadStatusLine):
        fetch(client, "/garbage")


def test_the_endless_header_goes_on_until_the_client_leaves(url: str) -> None:
    with dial(url) as sock:
        sock.sendall(b"GET /endless-header HTTP/1.1\r\n\r\n")
        received = 0
        while received < 5_000_000:
            data = sock.recv(65_536)
            assert data
            assert b"\r\n\r\n" not in data
            received += len(data)


def test_a_stall_makes_everyone_wait() -> None:
    """An answer due in the middle of a stall comes at its end."""
    with running() as url, dial(url) as delayed, dial(url) as stalling:
        delayed.sendall(b"GET /delay/500 HTTP/1.1\r\nConnection: close\r\n\r\n")
        end = time.monotonic() + DEADLINE
        while "/delay/500" not in stats_of(url)["paths"]:
            assert time.monotonic() < end
        stalling.sendall(b"GET /stall?ms=1000 HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert b"Stalled for 1000 ms" in read_all(stalling)
        assert read_all(delayed).startswith(b"HTTP/1.1 200")
        assert stats_of(url)["delays"]["/delay/500"]["max_ms"] >= 900


def test_tls_with_its_own_certificate_trusted() -> None:
    with TargetProcess(Options(tls=True)) as process:
        assert process.certificate is not None
        trusting = ssl.create_default_context(cafile=str(process.certificate))
        trusting.verify_flags |= ssl.VERIFY_X509_STRICT
        parts = urlsplit(process.url)
        assert parts.scheme == "https"
        for host in ("127.0.0.1", "localhost"):
            client = http.client.HTTPSConnection(
                host, parts.port, timeout=DEADLINE, context=trusting
            )
            assert fetch(client, "/json")[0] == 200
            client.close()
        stranger = http.client.HTTPSConnection(parts.netloc, timeout=DEADLINE)
        with pytest.raises(ssl.SSLCertVerificationError):
            fetch(stranger, "/json")
        folder = process.certificate.parent
    assert not folder.exists()


def test_a_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "s")

    async def scene() -> bytes:
        target = Target()
        assert await target.start(unix_socket=path) == "http://localhost"
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET /json HTTP/1.1\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        await target.stop()
        return answer

    assert asyncio.run(asyncio.wait_for(scene(), DEADLINE)).startswith(b"HTTP/1.1 200 OK")


def test_in_process_on_the_standard_loop_and_stop_cuts_connections() -> None:
    async def scene() -> None:
        async with Target() as target:
            parts = urlsplit(target.url)
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            await target.stop()
            with pytest.raises(OSError, match=r".*"):
                await asyncio.open_connection(parts.hostname, parts.port)
            writer.close()

    asyncio.run(asyncio.wait_for(scene(), DEADLINE))


def test_ipv6() -> None:
    async def scene() -> str:
        target = Target()
        url = await target.start("::1")
        await target.stop()
        return url

    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    assert asyncio.run(scene()).startswith("http://[::1]:")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"host": "192.0.2.1"}, "no address 192.0.2.1"),
        ({"host": "no.such.host.invalid"}, "no address no.such.host.invalid"),
        ({"port": 70_000}, "no port 70000"),
        ({"unix_socket": "/nowhere/at/all"}, "Unix socket /nowhere/at/all"),
        ({"unix_socket": "/tmp/" + "x" * 200}, "Unix socket"),
    ],
)
def test_places_nobody_can_listen_on(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        asyncio.run(Target().start(**arguments))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=sentence), running(**arguments):  # type: ignore[arg-type]
        pass


def test_a_port_in_use_is_one_sentence_and_a_hint(url: str) -> None:
    port = urlsplit(url).port or 0
    with pytest.raises(BadInput, match=f"Port {port} on 127.0.0.1 is already in use") as caught:
        asyncio.run(Target().start(port=port))
    assert "another port" in caught.value.hint
    with pytest.raises(BadInput, match=f"Port {port} on"), running(port=port):
        pass


def test_hundreds_of_clients_at_once(url: str) -> None:
    """More connections than the usual backlog, from several threads, each answered in full."""
    lengths: list[int] = []

    def many() -> None:
        socks = [dial(url) for _ in range(75)]
        for sock in socks:
            sock.sendall(b"GET /bytes/1000 HTTP/1.1\r\nConnection: close\r\n\r\n")
        lengths.extend(len(read_all(sock).split(b"\r\n\r\n", 1)[1]) for sock in socks)
        for sock in socks:
            sock.close()

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert lengths == [1000] * 300
