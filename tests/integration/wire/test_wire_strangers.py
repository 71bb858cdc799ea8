"""Those who connect and say nothing: how many files they cost, and that others still come in."""

from __future__ import annotations

import asyncio
import resource
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from hyperscale.runtime import listening
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import run
from hyperscale.wire import server as wire_server
from hyperscale.wire.certificates import make_authority
from hyperscale.wire.endpoint import Limits
from tests.integration.wire.nodes import Answer, Ask, credentials, introduction, until
from tests.integration.wire.test_wire_door import caller, door

SLOTS = 8
STRANGERS = 40


async def strangers(stack: ExitStack, address: Address, count: int) -> list[socket.socket]:
    loop = asyncio.get_running_loop()
    found = []
    for _ in range(count):
        one = stack.enter_context(socket.socket())
        one.setblocking(False)
        await loop.sock_connect(one, address)
        found.append(one)
    return found


def turned_away(idle: list[socket.socket]) -> int:
    count = 0
    for one in idle:
        try:
            count += one.recv(1) == b""
        except BlockingIOError:
            continue
        except ConnectionError:
            count += 1
    return count


def test_tls_handshakes_are_bounded_and_idle_ones_give_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "HANDSHAKES_MAX", SLOTS)
    monkeypatch.setattr(listening, "GIVE_WAY_S", 0.02)
    monkeypatch.setattr(listening, "HANDSHAKES_OF_SOURCE_MAX", SLOTS)
    authority = make_authority("shop")

    async def main() -> None:
        tls = credentials(tmp_path / "m", authority, "manager")
        worker = credentials(tmp_path / "w", authority, "worker")
        with ExitStack() as stack:
            async with door(tmp_path, tls=tls) as (host, server):
                listener = host.network._listeners[0]
                idle = await strangers(stack, server.address, STRANGERS)
                peer = caller(host, server, introduction("worker"), worker)
                assert (await peer.request(Ask("hi"), Answer)).text == "hi!"
                assert len(listener._handshakes) <= SLOTS
                await until(lambda: turned_away(idle) >= STRANGERS - SLOTS)

    run(main())


def test_those_who_do_not_greet_give_way_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_server, "GIVE_WAY_S", 0.0)

    async def main() -> None:
        limits = Limits(greetings_max=SLOTS, greeting_timeout_s=60.0)
        with ExitStack() as stack:
            async with door(tmp_path, limits=limits) as (host, server):
                idle = await strangers(stack, server.address, STRANGERS)
                peer = caller(host, server, introduction("worker"))
                assert (await peer.request(Ask("hi"), Answer)).text == "hi!"
                await until(lambda: turned_away(idle) >= STRANGERS - SLOTS)

    run(main())


CHILD = """
import asyncio, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96))
from hyperscale.cluster.election import Durable
from hyperscale.nodes.member.term_file import TermFile
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost, run

async def idle(stream):
    await stream.read(1)

async def main():
    async with RealHost("a", Path(sys.argv[1])) as host:
        term = TermFile(host.disk, "election")
        await term.load()
        listener = await host.network.listen(Address("127.0.0.1", 0), idle)
        print(listener.address.port, flush=True)
        while not listener.turned_away['out_of_files']:
            await asyncio.sleep(0.01)
        await term.save(Durable(7, "a"))
        print((await term.load()).term, flush=True)
        await asyncio.to_thread(sys.stdin.read)

run(main())
"""


def test_strangers_leave_the_files_that_a_vote_takes(tmp_path: Path) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 512:
        pytest.skip("too few files to be many strangers")
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    with (
        ExitStack() as stack,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as child,
    ):
        assert child.stdout is not None
        port = int(child.stdout.readline())
        for _ in range(200):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert child.stdout.readline().strip() == "7"
        child.communicate()
    assert child.returncode == 0
