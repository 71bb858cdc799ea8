"""The scheduler's port under siege by whoever reaches it, before any token is asked for."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hyperscale.scheduler.http.limits import HEAD_BYTES_MAX, HEAD_S
from tests.integration.scheduler.scheduler_process import (
    SchedulerProcess,
    scheduler_process,
    until,
)

FEW_FILES = 256
HELD = 300
WAIT_S = HEAD_S + 20


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerProcess]:
    with scheduler_process(tmp_path_factory.mktemp("scheduler"), "--no-worker") as running:
        yield running


def connected(scheduler: SchedulerProcess) -> socket.socket:
    parts = urlsplit(scheduler.url)
    assert parts.hostname
    assert parts.port
    connection = socket.create_connection((parts.hostname, parts.port), timeout=WAIT_S)
    connection.settimeout(WAIT_S)
    return connection


def answers(scheduler: SchedulerProcess) -> bool:
    with urllib.request.urlopen(f"{scheduler.url}/health/live", timeout=30) as answer:
        return bool(json.load(answer)["status"] == "alive")


def ending(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    heard = b""
    try:
        while piece := connection.recv(65536):
            heard += piece
    except ConnectionError:
        pass
    return heard


def test_a_large_head_is_cut_off(scheduler: SchedulerProcess) -> None:
    with connected(scheduler) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        with pytest.raises(ConnectionError):
            connection.sendall(b"a" * (64 << 20))
    assert answers(scheduler)


def test_a_head_within_the_limit_is_read_with_its_body(scheduler: SchedulerProcess) -> None:
    body = json.dumps({"name": "large", "payload": {"url": "http://x/", "body": "b" * 60_000}})
    head = (
        f"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nX: {'a' * (HEAD_BYTES_MAX - 1000)}\r\n\r\n"
    )
    with connected(scheduler) as connection:
        for _ in range(3):  # on one connection
            connection.sendall((head + body).encode())
            heard = b""
            while b"\r\n\r\n" not in heard:
                heard += connection.recv(65536)
            assert heard.startswith(b"HTTP/1.1 201"), heard
            length = int(heard.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            while len(heard.partition(b"\r\n\r\n")[2]) < length:
                heard += connection.recv(65536)
        oversized = head.replace("X: ", "Y: " + "b" * 1000 + "\r\nX: ")
        connection.sendall((oversized + body).encode())
        assert ending(connection).startswith(b"HTTP/1.1 431")


def test_who_never_ends_a_head_is_cut_off(scheduler: SchedulerProcess) -> None:
    silent, slow, late = (connected(scheduler) for _ in range(3))
    with silent, slow, late:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-a: ")
        late.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert late.recv(65536).startswith(b"HTTP/1.1 200")
        late.sendall(b"GET /health/live HTTP/1.1\r\n")
        for connection in (silent, slow, late):
            ending(connection)


def test_many_that_say_nothing_keep_nobody_out(tmp_path: Path) -> None:
    """The limit of files is low, so that what is held is more than the server may have open."""
    few = (
        "import os, resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({FEW_FILES}, {FEW_FILES}))\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'hyperscale', *sys.argv[1:]])\n"
    )
    errors = tmp_path / "scheduler.err"
    words = ("scheduler", "--port", "0", "--no-worker", "--open", "--store", "sqlite:jobs.db")
    with errors.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-c", few, *words], stderr=file, cwd=tmp_path)
    try:
        until(lambda: "scheduler at" in errors.read_text(), "the start")
        url = errors.read_text().partition("scheduler at ")[2].split()[0]
        parts = urlsplit(url)
        with ExitStack() as held:
            for _ in range(HELD):
                one = held.enter_context(socket.create_connection((parts.hostname, parts.port), 30))
                one.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-a: ")
            with urllib.request.urlopen(f"{url}/health/ready", timeout=30) as answer:
                assert answer.status == 200
        assert "connections dropped" in errors.read_text()
    finally:
        process.terminate()
        assert process.wait(60) == 0


def test_the_limit_of_open_files_is_raised(scheduler: SchedulerProcess) -> None:
    soft, hard = resource.prlimit(scheduler.process.pid, resource.RLIMIT_NOFILE)
    assert soft == hard
