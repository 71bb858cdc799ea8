"""What a hostile or hurried peer does to the client's sockets: every call ends, and truly."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import select
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import termios
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from subprocess import PIPE, STDOUT
from time import perf_counter

import pytest

from hyperscale.clients import ClientPool
from hyperscale.clients.io.channel import RECEIVE_BYTES, RECORD_BYTES, Channel
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.results import Outcome

from .certificates import Authority
from .conftest import Run
from .scripted import Peer, client, pool, response, serve, until
from .threaded import tls_server

CANCELLED = (Outcome.CANCELLED,)
RESET_AT_CLOSE = struct.pack("ii", 1, 0)
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\n"


@contextlib.contextmanager
def plain_server(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """On threads and blocking sockets, so that it goes on while the client does not. Gives its
    port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)

    def serve_one(peer: socket.socket) -> None:
        with contextlib.suppress(OSError), peer:
            peer.settimeout(10)
            talk(peer)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                peer = listener.accept()[0]
                threading.Thread(target=serve_one, args=(peer,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


# -- deadlines -------------------------------------------------------------------------------------


def test_a_call_that_waits_for_a_connection_ends_in_time_while_others_connect(run: Run) -> None:
    async def go() -> None:
        async with (
            serve(handler=lambda peer: peer.gone()) as server,
            pool(connections="shared", max_connections=1) as made,
        ):
            url = server.url.replace("http:", "https:")  # a handshake that never ends
            first = asyncio.ensure_future(made.client().http.get(url))
            await until(lambda: server.connections == 1)
            got = await made.client().http.get(url, timeout=0.1)
            assert got.outcome is Outcome.TIMEOUT
            assert "became free in the shared pool" in got.error
            assert not first.done()
            first.cancel()

    run(go())


def test_a_call_with_less_time_than_others_ends_in_time_in_the_queue(run: Run) -> None:
    async def go() -> None:
        async with (
            serve(handler=lambda peer: peer.gone()) as server,
            pool(connections="shared", max_connections=1) as made,
        ):
            first = asyncio.ensure_future(made.client().http.get(server.url))
            await until(lambda: made._http._due > perf_counter() + 1)  # after a look at all calls
            got = await made.client().http.get(server.url, timeout=0.1)
            assert got.outcome is Outcome.TIMEOUT
            assert "became free in the shared pool" in got.error
            assert not first.done()
            first.cancel()

    run(go())


def test_a_look_at_all_calls_just_before_a_request_is_written_does_not_lose_its_deadline(
    run: Run,
) -> None:
    async def go() -> None:
        async def handler(peer: Peer) -> None:
            await peer.request()
            await peer.send(response())
            await peer.gone()

        async with serve(handler=handler) as server, pool(timeout=60) as made:
            vu = made.client()
            assert (await vu.http.get(server.url)).ok
            call = asyncio.ensure_future(vu.http.get(server.url, timeout=0.1))
            await asyncio.sleep(0)
            assert [one.busy and one.sent_at is None for one in made._http.connections] == [True]
            made._http._due = 0.0
            made.sweep(perf_counter())
            assert (await call).outcome is Outcome.TIMEOUT

    run(go())


# -- the end of a body -----------------------------------------------------------------------------


def test_a_body_that_is_cut_off_by_a_reset_is_not_complete(run: Run) -> None:
    begun, gone = threading.Event(), threading.Event()

    def talk(peer: socket.socket) -> None:
        peer.recv(65536)
        peer.sendall(UNTIL_CLOSE)
        begun.wait(10)
        peer.sendall(bytes(RECEIVE_BYTES))  # all that one read takes
        while struct.unpack("i", fcntl.ioctl(peer, termios.TIOCOUTQ, bytes(4)))[0]:
            pass
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        peer.close()
        gone.set()

    async def go(port: int) -> None:
        async with pool() as made:
            call = asyncio.ensure_future(made.client().http.get(f"http://127.0.0.1:{port}/"))
            await until(lambda: any(one._received for one in made._http.connections))
            begun.set()
            gone.wait(10)  # in this turn of the loop: then all of it is there at once
            got = await call
            assert got.outcome is Outcome.RESET, got

    with plain_server(talk) as port:
        run(go(port))


@pytest.mark.skipif(ssl.OPENSSL_VERSION_INFO < (3,), reason="OpenSSL tells no resets apart")
def test_a_body_within_tls_that_is_cut_off_by_a_reset_is_not_complete(
    run: Run, authority: Authority
) -> None:
    begun = threading.Event()

    def talk(peer: ssl.SSLSocket) -> None:
        peer.recv(65536)
        peer.sendall(UNTIL_CLOSE + b"the beginning")
        begun.wait(10)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        peer.close()

    async def go(port: int) -> None:
        async with pool(ca=authority.ca) as made:
            call = asyncio.ensure_future(made.client().http.get(f"https://127.0.0.1:{port}/"))
            await until(lambda: any(one._received for one in made._http.connections))
            begun.set()
            got = await call
            assert got.outcome is Outcome.RESET, got

    with tls_server(authority.server(authority.issue("localhost")), talk) as port:
        run(go(port))


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_tls_server_that_says_farewell_and_waits_ends_a_body(
    run: Run, authority: Authority, version: str
) -> None:
    def talk(peer: ssl.SSLSocket) -> None:
        peer.recv(65536)
        peer.sendall(UNTIL_CLOSE + bytes(3 * RECORD_BYTES - len(UNTIL_CLOSE)))
        with contextlib.suppress(OSError):
            peer.unwrap()  # until the client has said farewell, too

    async def go(port: int) -> None:
        async with client(ca=authority.ca, tls_max=version, timeout=3) as vu:
            for _ in range(10):
                got = await vu.http.get(f"https://127.0.0.1:{port}/")
                assert got.ok, got.error

    with tls_server(authority.server(authority.issue("localhost")), talk) as port:
        run(go(port))


# -- uploads and downloads -------------------------------------------------------------------------


def test_a_generator_that_never_waits_does_not_keep_the_others_waiting(run: Run) -> None:
    def talk(peer: socket.socket) -> None:
        while peer.recv(1 << 20):
            pass

    ended: list[str] = []

    async def long() -> AsyncIterator[bytes]:
        limit = perf_counter() + 5
        while perf_counter() < limit:
            yield b"x" * 100
        ended.append("the upload")

    async def go(port: int) -> None:
        async with client() as vu:
            url = f"http://127.0.0.1:{port}/"
            got = await vu.http.post(url, data=long(), timeout=0.1)
            assert got.outcome is Outcome.TIMEOUT
            assert not ended

    with plain_server(talk) as port:
        run(go(port))


@pytest.mark.parametrize("streamed", [False, True])
def test_what_the_server_never_took_is_not_counted_as_sent(run: Run, streamed: bool) -> None:
    size = 10_000_000

    def talk(peer: socket.socket) -> None:
        peer.recv(65536)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)

    async def pieces() -> AsyncIterator[bytes]:
        yield bytes(size)

    async def go(port: int) -> None:
        async with client() as vu:
            for _ in range(20):  # a reset may be heard of by reading first
                data = pieces() if streamed else bytes(size)
                got = await vu.http.post(f"http://127.0.0.1:{port}/", data=data)
                assert got.outcome is Outcome.RESET
                assert 0 < got.bytes_out < size

    with plain_server(talk) as port:
        run(go(port))


def test_a_sink_that_raised_is_not_called_again(run: Run) -> None:
    async def go() -> None:
        calls = []

        def sink(piece: bytes) -> None:
            calls.append(len(piece))
            raise RuntimeError("enough")

        async with serve(response(bytes(2_000_000))) as server, client() as vu:
            with pytest.raises(RuntimeError, match="enough"):
                await vu.http.get(server.url, sink=sink)
            assert len(calls) == 1

    run(go())


# -- what came before the request is not its answer ------------------------------------------------


def test_what_came_unasked_for_is_no_answer_however_many_connections_have_it(run: Run) -> None:
    users = 600
    asked, come = threading.Event(), threading.Event()

    def answer(listener: socket.socket) -> None:
        peers = [listener.accept()[0] for _ in range(users)]
        for peer in peers:
            peer.recv(65536)
            peer.sendall(response(b"first"))
        asked.wait(10)
        for peer in peers:
            peer.sendall(response(b"stray", "408 Request Timeout"))
        come.set()
        with contextlib.suppress(OSError):
            while True:
                peer = listener.accept()[0]
                peer.recv(65536)
                peer.sendall(response(b"again"))
                peers.append(peer)

    async def go(listener: socket.socket) -> None:
        async with pool() as made:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
            clients = [made.client() for _ in range(users)]
            got = await asyncio.gather(*(vu.http.get(url) for vu in clients))
            assert {one.content for one in got} == {b"first"}
            asked.set()
            come.wait(10)  # in this turn of the loop: it sees nothing of what comes
            got = await asyncio.gather(*(vu.http.get(url) for vu in clients))
            assert {one.content for one in got} == {b"again"}

    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        run(go(listener))
        listener.shutdown(socket.SHUT_RDWR)


# -- opening ---------------------------------------------------------------------------------------


def test_a_unix_socket_with_a_full_backlog_is_waited_for(run: Run, tmp_path: Path) -> None:
    def answer(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer = listener.accept()[0]
                peer.recv(65536)
                peer.sendall(response())

    async def go(listener: socket.socket, path: str) -> None:
        async with pool(unix_socket=path) as made:
            calls = [
                asyncio.ensure_future(made.client().http.get("http://any.host/")) for _ in range(20)
            ]
            for _ in range(3):
                await asyncio.sleep(0)
            threading.Thread(target=answer, args=(listener,), daemon=True).start()
            got = await asyncio.gather(*calls)
            assert {one.outcome for one in got} == {Outcome.OK}, {one.error for one in got}

    with socket.socket(socket.AF_UNIX) as listener:
        path = str(tmp_path / "s")
        listener.bind(path)
        listener.listen(1)
        run(go(listener, path))
        listener.shutdown(socket.SHUT_RDWR)


def test_a_name_that_tls_cannot_ask_for_fails_the_call(run: Run, authority: Authority) -> None:
    async def go() -> None:
        tls = authority.server(authority.issue("localhost"))
        async with serve(response(), tls=tls) as server:
            name = "a" * 64 + ".test"
            async with client(ca=authority.ca, hosts={name: "127.0.0.1"}) as vu:
                got = await vu.http.get(f"https://{name}:{server.port}/")
                assert got.outcome is Outcome.TLS
                assert "is no name that TLS can ask for" in got.error

    run(go())


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_sessions_are_continued_when_each_connection_is_closed(
    run: Run, authority: Authority, version: str
) -> None:
    def talk(peer: ssl.SSLSocket) -> None:
        peer.recv(65536)
        body = str(peer.session_reused).encode()
        peer.sendall(response(body, "200 OK", "Connection: close"))

    async def go(port: int) -> None:
        options = {"ca": authority.ca, "tls_resume": True, "tls_max": version}
        async with client(**options) as vu:
            seen = [(await vu.http.get(f"https://127.0.0.1:{port}/")).text() for _ in range(3)]
        assert seen == ["False", "True", "True"]

    with tls_server(authority.server(authority.issue("localhost")), talk) as port:
        run(go(port))


def test_tls_handshakes_beyond_a_number_wait_for_their_turn_and_not_in_its_time(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hyperscale.clients.http.origin_pool.HANDSHAKES_MAX", 2)

    async def go() -> None:
        at_once: list[int] = []
        peers: set[Peer] = set()

        async def handler(peer: Peer) -> None:
            peers.add(peer)
            at_once.append(len(peers))
            await peer.gone()
            peers.remove(peer)

        async with serve(handler=handler) as server, pool(connect_timeout=0.2) as made:
            url = server.url.replace("http:", "https:")
            calls = [asyncio.ensure_future(made.client().http.get(url)) for _ in range(5)]
            await asyncio.sleep(0)
            hurried = await made.client().http.get(url, timeout=0.1)  # behind all the others
            got = await asyncio.gather(*calls)
            assert {one.outcome for one in (*got, hurried)} == {Outcome.TIMEOUT}
            assert all(one.error.endswith("took longer than 0.2 s") for one in got)
            assert len(at_once) == 5
            assert max(at_once) <= 3  # one that is given up is seen to go a moment later

    run(go())


# -- descriptors -----------------------------------------------------------------------------------


def test_a_closed_tls_connection_writes_nothing_where_its_descriptor_is_used_again(
    run: Run, authority: Authority
) -> None:
    def talk(peer: ssl.SSLSocket) -> None:
        while peer.recv(65536):
            pass

    async def go(port: int) -> None:
        async with pool(ca=authority.ca) as made:
            url = f"https://127.0.0.1:{port}/"
            call = asyncio.ensure_future(made.client().http.post(url, data=bytes(100)))
            await until(lambda: any(one.sent_at for one in made._http.connections))
            (connection,) = made._http.connections
            connection.unsent = memoryview(b"rest")  # closed without a farewell
            descriptor = connection._fd
            call.cancel()
            await asyncio.wait([call])
            ours, theirs = socket.socketpair()
            with ours, theirs:
                assert descriptor in (ours.fileno(), theirs.fileno())
                with pytest.raises(OSError, match="closed"):
                    connection.write(b"secret")
                for one in (ours, theirs):
                    one.setblocking(False)
                    with pytest.raises(BlockingIOError):
                        one.recv(100)

    with tls_server(authority.server(authority.issue("localhost")), talk) as port:
        run(go(port))


@pytest.mark.parametrize("secure", [False, True])
def test_nothing_is_sent_or_left_open_after_the_end_of_the_pool(
    run: Run, authority: Authority, secure: bool
) -> None:
    async def go() -> None:
        tls = authority.server(authority.issue("localhost")) if secure else None
        async with serve(response(), tls=tls) as server:
            for turns in range(30):
                server.requests.clear()
                async with pool(ca=authority.ca) as made:
                    call = asyncio.ensure_future(made.client().http.get(server.url))
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    sent = any(one.sent_at for one in made._http.connections) or call.done()
                got = await call
                assert got.outcome in ((Outcome.OK, Outcome.CANCELLED) if sent else CANCELLED)
                assert not made._http.connections
                assert made._http._ticking is None

    run(go())


# -- TLS that makes a new handshake ----------------------------------------------------------------


@contextlib.contextmanager
def renegotiating_server(pem: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """OpenSSL's own, which Python's cannot be: sends what it is told, a line "R" asks for a new
    handshake."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["openssl", "s_server", "-accept", str(port), "-cert", pem, "-tls1_2", "-crlf"]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=STDOUT) as server:
        try:
            assert server.stdout is not None
            while b"ACCEPT" not in server.stdout.readline():
                assert server.poll() is None
            yield server, port
        finally:
            server.kill()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl on this machine")
def test_a_write_that_has_to_wait_for_the_peer_does_not_spin(
    run: Run, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Channel] = []
    writable = Channel.writable

    def counting(self: Channel) -> None:
        tried.append(self)
        writable(self)

    monkeypatch.setattr(Channel, "writable", counting)

    async def go(server: subprocess.Popen[bytes], port: int) -> None:
        assert server.stdin is not None

        def say(lines: bytes) -> None:
            server.stdin.write(lines)
            server.stdin.flush()

        answer = b"HTTP/1.1 200 OK\nContent-Length: 4\n\nok\n"
        async with pool(ca=authority.ca) as made:
            vu, url = made.client(), f"https://127.0.0.1:{port}/"
            call = asyncio.ensure_future(vu.http.get(url))
            await until(lambda: any(one.sent_at for one in made._http.connections))
            say(answer)
            assert (await call).ok
            say(b"R\n")
            (connection,) = made._http.connections
            assert select.select([connection._fd], [], [], 10)[0]
            server.send_signal(signal.SIGSTOP)
            call = asyncio.ensure_future(vu.http.get(url))
            await until(lambda: bool(tried))
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(tried) <= 2
            server.send_signal(signal.SIGCONT)
            await until(lambda: all(one.unsent is None for one in made._http.connections))
            say(answer)
            got = await call
            assert got.ok, got.error
            assert got.connect is None

    with renegotiating_server(authority.issue("localhost")) as (server, port):
        run(go(server, port))


# -- the end of the loop ---------------------------------------------------------------------------


def test_a_lookup_that_outlives_the_event_loop_ends_in_silence(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ended = threading.Event(), threading.Event()
    raised: list[object] = []

    def look_up(*_: object) -> list[tuple[object, ...]]:
        asked.set()
        ended.wait(10)
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 0))]

    async def go() -> None:
        made = ClientPool(HTTPOptions())
        call = asyncio.ensure_future(made.client().http.get("http://some.test/"))
        await until(asked.is_set)
        assert not call.done()

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(threading, "excepthook", lambda args: raised.append(args.exc_value))
    run(go())
    ended.set()
    for thread in threading.enumerate():
        if thread.name == "lookup":
            thread.join(10)
    assert not raised


def test_a_long_body_within_tls_that_ends_too_early_is_told_at_once(
    run: Run, tmp_path: Path
) -> None:
    """The server says farewell in the middle of a body that is received in place, and waits."""
    authority = Authority(tmp_path)
    length = 200_000

    def talk(peer: ssl.SSLSocket) -> None:
        peer.recv(65536)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length)
        peer.sendall(bytes(length // 2))
        with contextlib.suppress(OSError):
            peer.unwrap()  # waits for the client's own

    async def go(port: int) -> None:
        async with client(ca=authority.ca, timeout=20.0) as vu:
            got = await vu.http.get(f"https://127.0.0.1:{port}/")
            assert (got.outcome, got.bytes_in > length // 2) == (Outcome.RESET, True)
            assert f"after {length // 2} of {length} bytes" in got.error

    with tls_server(authority.server(authority.issue("localhost")), talk) as port:
        run(go(port))
