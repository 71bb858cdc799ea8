"""The world as node code sees it: clock, network, disk, tasks, dice.

Everything above this interface is the same in production and in the simulator. It may use
asyncio's locks, events, queues and timeouts, because both bodies run it on an asyncio event loop
(the simulator's loop lives in virtual time); it never calls `asyncio.create_task`, `time`,
`socket`, `open` or the `random` module itself.
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, Protocol

# What one pump may take between two turns of the loop: some hundred small requests.
PUMP_BYTES = 64 * 1024


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Whether what is sent to this name stays on this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Clock(Protocol):
    def now(self) -> float:
        """Monotonic seconds of this host. Only differences mean anything."""
        ...

    def wall(self) -> float:
        """Unix time of this host: a label for people, never an argument of a decision."""
        ...

    def sleep(self, seconds: float) -> Awaitable[None]: ...


class Datagrams(Protocol):
    """A bound UDP port."""

    @property
    def address(self) -> Address: ...

    def send(self, to: Address, data: bytes) -> None:
        """Send and forget; may be lost, doubled, delayed or reordered."""
        ...

    def close(self) -> None: ...


class Stream(Protocol):
    """One end of a reliable, ordered byte stream."""

    @property
    def peer(self) -> Address: ...

    def peer_certificate(self) -> bytes | None:
        """DER certificate the other side proved it holds; None on a plain stream."""
        ...

    async def read(self, limit: int) -> bytes:
        """At least one byte and at most `limit`; b"" when the other side has closed.
        Raises ConnectionError when the stream broke."""
        ...

    async def pump(self, take: Callable[[bytes], None]) -> None:
        """Give `take` what comes, as it comes, until the other side closes. Raises as `read` does,
        and whatever `take` raises."""
        while data := await self.read(PUMP_BYTES):
            take(data)
            if len(data) == PUMP_BYTES:
                await asyncio.sleep(0)  # a flood must not keep the loop for itself

    def write(self, data: bytes) -> None:
        """Queue bytes for sending; `drain` tells when there is room again."""
        ...

    async def drain(self) -> None: ...

    def close(self) -> None: ...


class Listener(Protocol):
    turned_away: Counter[str]
    """Connections that never became a stream, by reason."""

    @property
    def address(self) -> Address: ...

    def close(self) -> None:
        """Accept no more; streams already accepted live on."""
        ...


class Network(Protocol):
    async def bind(
        self, address: Address, on_datagram: Callable[[bytes, Address], None]
    ) -> Datagrams: ...

    async def listen(
        self,
        address: Address,
        on_stream: Callable[[Stream], Awaitable[None]],
        tls: ssl.SSLContext | None = None,
    ) -> Listener:
        """Each accepted stream runs `on_stream` as a task of this host and is closed after it."""
        ...

    async def connect(
        self,
        address: Address,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        timeout_s: float = 5.0,
    ) -> Stream:
        """Raises ConnectionError or TimeoutError."""
        ...

    async def resolve(self, name: str, port: int) -> list[Address]:
        """All addresses of a name; raises OSError when there is none."""
        ...


class File(Protocol):
    """An open file with one owner. Raises OSError as the operating system would; after a failed
    `sync` nobody can tell what is on disk, so the owner must treat the file as failed."""

    async def append(self, data: bytes) -> None: ...

    async def sync(self) -> None:
        """Return when everything appended before is on stable storage."""
        ...

    async def append_and_sync(self, data: bytes) -> None:
        """Both in one trip to the thread that owns the file."""
        ...

    async def truncate(self, size: int) -> None: ...

    async def close(self) -> None: ...


class Disk(Protocol):
    """A directory of this host; paths are relative to it and use '/'."""

    async def open(self, path: str) -> File:
        """Open for appending, made if missing. Making is durable only after `sync_directory`."""
        ...

    async def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes: ...

    async def size(self, path: str) -> int: ...

    async def list(self, directory: str) -> list[str]:
        """Names in a directory, sorted; empty when it does not exist."""
        ...

    async def make_directory(self, path: str) -> None: ...

    async def rename(self, old: str, new: str) -> None: ...

    async def remove(self, path: str) -> None: ...

    async def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in it durable."""
        ...


class Task(Protocol):
    @property
    def name(self) -> str: ...

    def cancel(self) -> None: ...

    def done(self) -> bool: ...

    @property
    def asyncio_task(self) -> asyncio.Task[Any]:
        """For `asyncio.wait` and `runtime.tasks.ended`. Whoever takes it looks at how it ended: a
        failure of it is not reported any more."""
        ...

    def __await__(self) -> Any: ...


class Tasks(Protocol):
    """The only way to start background work."""

    def spawn(self, name: str, work: Coroutine[Any, Any, Any]) -> Task:
        """Start work under a name. An exception that nobody awaits is reported, never lost."""
        ...

    def names(self) -> list[str]: ...

    async def stop(self) -> None:
        """Cancel everything, wait for it; afterwards no task is left and none can be started."""
        ...


class Usage(NamedTuple):
    """Shares of what this process may use, mostly between 0 and 1; None: nobody knows."""

    cpu: float | None = None
    memory: float | None = None


class Host(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def network(self) -> Network: ...

    @property
    def disk(self) -> Disk: ...

    @property
    def tasks(self) -> Tasks: ...

    @property
    def random(self) -> random.Random: ...

    def usage(self) -> Usage:
        """Of CPU time since it was last asked for, and of memory."""
        ...
