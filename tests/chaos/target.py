"""The target of a round, in a namespace of its own: it writes down every request and answers.

One line a request: when (the machine's monotonic clock, which all processes share), the address
it came from, the workflow and the user. `python -m tests.chaos.target HOST PORT FILE`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: text/plain\r\n\r\nok"


@dataclass(frozen=True)
class Hit:
    """One request served."""

    at_s: float
    worker: str
    workflow: str
    user: int


class _Connection(asyncio.Protocol):
    def __init__(self, log: TextIO) -> None:
        self._log = log
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._source = transport.get_extra_info("peername")[0]

    def data_received(self, data: bytes) -> None:
        *heads, self._unread = (self._unread + data).split(b"\r\n\r\n")
        for head in heads:
            path = head.split(b" ", 2)[1].decode()
            _, workflow, user = path.split("/")
            self._log.write(f"{time.monotonic():.4f} {self._source} {workflow} {user}\n")
            self._transport.write(ANSWER)


async def serve(host: str, port: int, file: Path) -> None:
    with file.open("w", buffering=1) as log:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(log), host, port, backlog=1024)
        await server.serve_forever()


def hits(file: Path) -> list[Hit]:
    """What was served so far; its last line may be under way."""
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    found = [line.split(" ") for line in lines]
    return [Hit(float(at), source, workflow, int(user)) for at, source, workflow, user in found]


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
