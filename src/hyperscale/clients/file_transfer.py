"""Calls about files, which FTP, SFTP and SCP have in common.

A session of each does the talking; what is sent is read before the clock starts.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar

from hyperscale.clients.contract import Call
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.payload import payload_of
from hyperscale.clients.per_address import AddressClient, AddressPool
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL, File
from hyperscale.workload.folders import FileGlob
from hyperscale.workload.replies import FileResponse
from hyperscale.workload.results import Outcome
from hyperscale.workload.texts import shown

PIECE_BYTES = 256 * 1024

Sent = Sequence[tuple[str, bytes]]
"""Names beneath the path that is written to, and what is in each; one alone has no name."""


class Session(Protocol):
    turn: AbstractAsyncContextManager[Any]
    """Held by a call: a protocol may take one at a time."""

    @property
    def is_open(self) -> bool: ...

    def shut(self) -> None: ...

    async def read(self, path: str, call: Call, answer: Any, most: int) -> bytes: ...

    async def write(self, path: str, sent: Sent, call: Call, answer: Any) -> None: ...


class FolderSession(Session, Protocol):
    async def names(self, path: str, call: Call, answer: Any, most: int) -> list[str]: ...

    async def remove(self, path: str, call: Call, answer: Any) -> None: ...


P = TypeVar("P", bound=AddressPool)
S = TypeVar("S", bound=Session)
F = TypeVar("F", bound=FolderSession)
R = TypeVar("R", bound=FileResponse)


class Pieces:
    """What comes of a file or a folder, up to a limit, and when."""

    def __init__(self, call: Call, where: str, most: int) -> None:
        self._call = call
        self._where = where
        self._most = most
        self._kept: list[bytes] = []
        self._size = 0
        self._first_at = 0.0

    def add(self, piece: bytes) -> None:
        self._first_at = self._first_at or perf_counter()
        self._size += len(piece)
        if self._size > self._most:
            text = f"{self._where} sent more than {self._most} bytes (http.max_response_bytes)"
            raise Failure(Outcome.PROTOCOL, text)
        self._kept.append(piece)

    def end(self) -> bytes:
        now = perf_counter()
        self._call.got(self._size, self._first_at or now, now)
        return b"".join(self._kept)


class FileClient(AddressClient[P, S, R], Generic[P, S, R]):
    """Reads and writes files."""

    async def get(
        self, address: str | URL, path: str, *, timeout: Any = None, name: str | None = None
    ) -> R:
        """What is in a file."""
        path = _checked(path)
        most = self._pool.options.max_response_bytes

        async def talk(session: S, call: Call, answer: R) -> None:
            async with session.turn:
                answer.content = await session.read(path, call, answer, most)

        return await self._on("GET", address, talk, timeout, name, f"GET {path}".encode())

    async def put(
        self,
        address: str | URL,
        path: str,
        source: Any,
        *,
        timeout: Any = None,
        name: str | None = None,
    ) -> R:
        """Write a file: bytes, text or a `File`. A `Directory` or `FileGlob` is written beneath
        the path, which must be a folder that is there."""
        path, sent = _checked(path), _sent(source)

        async def talk(session: S, call: Call, answer: R) -> None:
            async with session.turn:
                await session.write(path, sent, call, answer)
            answer.names = [one for one, _ in sent if one]

        return await self._on("PUT", address, talk, timeout, name, f"PUT {path}".encode())


class FolderClient(FileClient[P, F, R], Generic[P, F, R]):
    """Lists and deletes as well."""

    async def list(
        self, address: str | URL, path: str = "", *, timeout: Any = None, name: str | None = None
    ) -> R:
        """The names in a folder."""
        path = _checked(path or ".")
        most = self._pool.options.max_response_bytes

        async def talk(session: F, call: Call, answer: R) -> None:
            async with session.turn:
                answer.names = sorted(await session.names(path, call, answer, most))
            answer.content = "\n".join(answer.names).encode()

        return await self._on("LIST", address, talk, timeout, name, f"LIST {path}".encode())

    async def delete(
        self, address: str | URL, path: str, *, timeout: Any = None, name: str | None = None
    ) -> R:
        """Delete a file."""
        path = _checked(path)

        async def talk(session: F, call: Call, answer: R) -> None:
            async with session.turn:
                await session.remove(path, call, answer)

        return await self._on("DELETE", address, talk, timeout, name, f"DELETE {path}".encode())


def _checked(path: Any) -> str:
    if not isinstance(path, str) or not path or any(one in path for one in "\r\n\0"):
        raise BadInput(f"{shown(path)} is not the path of a file", 'write "/folder/name"')
    return path


def _sent(source: Any) -> builtins.list[tuple[str, bytes]]:
    match source:
        case FileGlob():
            return [(name, file.body()[0]) for name, file in source.files()]
        case File():
            return [("", source.body()[0])]
        case _:
            return [("", payload_of(source))]
