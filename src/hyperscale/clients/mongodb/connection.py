"""A connection to MongoDB: commands and replies as OP_MSG, told apart by their numbers.

An OP_MSG is a head (length, number, number of the request, 2013), 4 bytes of flags and sections; a
reply of which nothing else was asked is one section of the kind 0: a document.
"""

from __future__ import annotations

import asyncio
import socket
from itertools import count
from struct import Struct
from typing import Any

from hyperscale.clients.contract import Call
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.network import Network
from hyperscale.clients.waiting import WaitingChannel
from hyperscale.workload.results import Outcome

OP_MSG = 2013
_HEAD = Struct("<iiiiIB")
_LENGTH = Struct("<i")
_CHECKSUM = 1  # 4 bytes at the end
_NUMBERS = 2**31 - 1


class Reply:
    """What came for a command, and when."""

    __slots__ = ("document", "first_at", "last_at", "size")

    def __init__(self, document: dict[str, Any], size: int, first_at: float, last_at: float):
        self.document = document
        self.size = size
        self.first_at = first_at
        self.last_at = last_at


class Connection(WaitingChannel):
    __slots__ = ("_bson", "_buffer", "_first_at", "_most", "_numbers", "_pending")

    def __init__(
        self, bson: Any, network: Network, where: str, sock: socket.socket, most: int
    ) -> None:
        self._bson = bson
        self._most = most
        self._buffer = bytearray()
        self._first_at = 0.0
        self._numbers = count(1)
        self._pending: dict[int, asyncio.Future[Reply]] = {}
        self.begin(network, where, sock)

    def received(self, data: bytes, now: float) -> None:
        if not self._buffer:
            self._first_at = now
        self._buffer += data
        while self.end is None and len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length < _HEAD.size:
                self.over(Outcome.PROTOCOL, f"sent something that is not MongoDB: {data[:40]!r}")
            elif length > self._most:
                self.over(Outcome.PROTOCOL, f"sent a reply of more than {self._most} bytes")
            elif len(self._buffer) < length:
                return
            else:
                message = bytes(self._buffer[:length])
                del self._buffer[:length]
                self._take(message, now)
                self._first_at = now

    def _take(self, message: bytes, now: float) -> None:
        _, _, number, operation, flags, kind = _HEAD.unpack_from(message)
        if operation != OP_MSG or flags & ~_CHECKSUM or kind != 0:
            self.over(Outcome.PROTOCOL, f"sent something that is not MongoDB: {message[:40]!r}")
            return
        waiting = self._pending.pop(number, None)
        if waiting is None:
            self.over(Outcome.PROTOCOL, "sent what nobody asked for")
            return
        end = len(message) - (4 if flags & _CHECKSUM else 0)
        try:
            document = self._bson.decode(message[_HEAD.size : end])
        except self._bson.errors.BSONError as error:
            self._pending[number] = waiting
            self.over(Outcome.PROTOCOL, f"sent a document that cannot be read: {error}")
            return
        if not waiting.done():
            waiting.set_result(Reply(document, len(message), self._first_at, now))

    async def exchange(self, call: Call, command: bytes) -> Reply:
        number, waiting = self._wait()
        self.post(call, _message(number, command))
        return await waiting

    async def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        """Before the first call."""
        number, waiting = self._wait()
        self.write(_message(number, self._bson.encode(command)))
        return (await waiting).document

    def _wait(self) -> tuple[int, asyncio.Future[Reply]]:
        if self.end is not None:
            raise self.end
        number = next(self._numbers) % _NUMBERS
        waiting = self._pending[number] = self._loop.create_future()
        return number, waiting

    def shut(self) -> None:
        super().shut()
        pending, self._pending = self._pending, {}
        end = self.end or Failure(
            Outcome.RESET, f"the connection to {self.where} was closed: another call on it failed"
        )
        for waiting in pending.values():
            if not waiting.done():
                waiting.set_exception(end)


def _message(number: int, document: bytes) -> bytes:
    return _HEAD.pack(_HEAD.size + len(document), number, 0, OP_MSG, 0, 0) + document
