"""A node under siege: strangers at its port, its files used up, one node with many connections."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from hyperscale.runtime import listening
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import run
from hyperscale.wire import server as wire_server
from hyperscale.wire.certificates import make_authority
from hyperscale.wire.endpoint import Limits
from hyperscale.wire.errors import Reason, Refused
from tests.fixtures.private import write_private
from tests.integration.cluster.node_cluster import MemberProcess, until, write_certificate
from tests.integration.wire.nodes import Answer, Ask, credentials, introduction
from tests.integration.wire.test_wire_door import caller, door

HELLO_BEGUN = b"\x16\x03\x01\x02\x00"
STRANGERS = 40
ELSEWHERE = "127.0.0.9"


async def besiege(stack: ExitStack, address: Address, count: int, said: bytes) -> None:
    """Connections of another machine, as far as an address tells."""
    loop = asyncio.get_running_loop()
    for _ in range(count):
        one = stack.enter_context(socket.socket())
        one.setblocking(False)
        one.bind((ELSEWHERE, 0))
        await loop.sock_connect(one, address)
        await loop.sock_sendall(one, said)


def test_handshakes_of_one_source_leave_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "HANDSHAKES_MAX", 8)
    monkeypatch.setattr(listening, "HANDSHAKES_OF_SOURCE_MAX", 4, raising=False)
    monkeypatch.setattr(listening, "GIVE_WAY_S", 60.0)
    monkeypatch.setattr(listening, "GIVE_WAY_TO_OWN_S", 60.0, raising=False)
    monkeypatch.setattr(listening, "TLS_HANDSHAKE_TIMEOUT_S", 60.0)
    authority = make_authority("shop")

    async def main() -> None:
        tls = credentials(tmp_path / "m", authority, "manager")
        worker = credentials(tmp_path / "w", authority, "worker")
        with ExitStack() as stack:
            async with door(tmp_path, tls=tls) as (host, server):
                await besiege(stack, server.address, STRANGERS, HELLO_BEGUN)
                peer = caller(host, server, introduction("worker"), worker)
                assert (await peer.request(Ask("hi"), Answer)).text == "hi!"
                assert server.turned_away["too_many_of_source"] == STRANGERS - 4

    run(main())


def test_greetings_of_one_source_leave_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_server, "GIVE_WAY_S", 60.0)
    monkeypatch.setattr(wire_server, "GIVE_WAY_TO_OWN_S", 60.0, raising=False)

    async def main() -> None:
        limits = Limits(greetings_max=8, greetings_of_source_max=4, greeting_timeout_s=60.0)
        with ExitStack() as stack:
            async with door(tmp_path, limits=limits) as (host, server):
                await besiege(stack, server.address, STRANGERS, b"\0")
                peer = caller(host, server, introduction("worker"))
                assert (await peer.request(Ask("hi"), Answer)).text == "hi!"
                assert server.turned_away["too_many_of_source"] == STRANGERS - 4

    run(main())


def test_one_node_has_only_so_many_connections(tmp_path: Path) -> None:
    async def main() -> None:
        async with door(tmp_path, limits=Limits(connections_of_node_max=2)) as (host, server):
            for _ in range(2):
                await caller(host, server, introduction("worker")).connection()
            with pytest.raises(Refused, match="worker-1 has 2 connections") as refused:
                await caller(host, server, introduction("worker")).connection()
            assert refused.value.code == Reason.OVERLOADED
            assert refused.value.retry_after_s
            other = caller(host, server, introduction("worker", "worker-2"))
            assert (await other.request(Ask("hi"), Answer)).text == "hi!"

    run(main())


def test_failed_handshakes_are_counted_and_told(tmp_path: Path) -> None:
    authority = make_authority("dev")
    write_certificate(tmp_path / "certs", authority, "a")
    write_private(tmp_path / "secret", "a secret of at least thirty-two characters")
    whose = ("--cluster", "dev", "--env", "test", "--certs", "certs", "--secret-file", "secret")
    node = MemberProcess(tmp_path, "a", *whose, "--metrics", "127.0.0.1:0")
    try:
        host, _, port = node.address.rpartition(":")
        stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        stranger.check_hostname = False
        stranger.verify_mode = ssl.CERT_NONE
        for _ in range(20):
            with (
                socket.create_connection((host, int(port))) as plain,
                stranger.wrap_socket(plain) as sealed,
                suppress(OSError),
            ):
                sealed.sendall(b"hello")
                while sealed.recv(100):
                    pass
        page = str(node.saying("ready")["metrics"])
        until(lambda: 'turned_away_total{reason="tls_failed"} 20' in metrics(page), "the count")
        assert node.saying("turned away")["reason"] == "tls_failed"
        assert len(node.events("turned away")) <= 2
    finally:
        node.end()


def metrics(page: str, path: str = "/metrics") -> str:
    host, _, port = page.rpartition(":")
    with socket.create_connection((host, int(port))) as asked:
        asked.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        with asked.makefile() as answer:
            return answer.read()


NO_FILES = """
import asyncio, os, resource, sys, threading
from pathlib import Path
from hyperscale.runtime.real import RealHost, run

async def main():
    async with RealHost("a", Path(sys.argv[1])) as host:
        await host.disk.make_directory("log")
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        taken = []
        while True:
            try:
                taken.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        print("none left", flush=True)
        opening = asyncio.ensure_future(host.disk.open("log/1"))
        await asyncio.to_thread(sys.stdin.readline)
        print("done" if opening.done() else "waits", flush=True)
        os.close(taken.pop())
        file = await opening
        await file.append_and_sync(b"x")
        os.close(taken.pop())
        await host.disk.sync_directory("log")
        print("written", flush=True)

run(main())
"""


def test_a_file_that_cannot_be_opened_now_is_opened_later(tmp_path: Path) -> None:
    """Too many open files is no failure of the disk."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 128:
        pytest.skip("too few files")
    command = [sys.executable, "-c", NO_FILES, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == "none left\n"
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "waits\n"
        assert child.stdout.readline() == "written\n"
    assert (tmp_path / "log" / "1").read_bytes() == b"x"
