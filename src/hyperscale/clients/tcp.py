"""TCP: bytes there and back, for protocols that have no client of their own."""

from __future__ import annotations

import asyncio
import re
import socket
from typing import Any, ClassVar

from hyperscale.clients.contract import Call
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.payload import payload_of
from hyperscale.clients.per_address import AddressClient, AddressPool
from hyperscale.clients.waiting import WaitingChannel
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL
from hyperscale.workload.replies import TCPResponse
from hyperscale.workload.results import Outcome
from hyperscale.workload.texts import shown

Until = int | bytes | str | re.Pattern[bytes] | None
"""How much to receive: so many bytes, up to and with a delimiter, up to the end of what a pattern
meets; None: what comes first."""


class TCPPool(AddressPool):
    kind = "tcp"
    schemes: ClassVar = {"tcp": False, "tls": True}

    def client(self) -> TCPClient:
        return TCPClient(self)


class TCPClient(AddressClient[TCPPool, "Connection", TCPResponse]):
    response = TCPResponse

    async def request(
        self,
        address: str | URL,
        data: Any,
        *,
        until: Until = None,
        timeout: Any = None,
        name: str | None = None,
    ) -> TCPResponse:
        """Send the data and receive the answer."""
        checked = checked_until(until)
        sent = payload_of(data)

        async def talk(connection: Connection, call: Call, answer: TCPResponse) -> None:
            async with connection.turn:
                call.begin()
                await connection.put(call, sent)
                answer.content = await connection.receive(call, checked)

        return await self._on("REQUEST", address, talk, timeout, name, sent)

    async def send(
        self, address: str | URL, data: Any, *, timeout: Any = None, name: str | None = None
    ) -> TCPResponse:
        """Send the data; an answer, if there is one, is for `receive`."""
        sent = payload_of(data)

        async def talk(connection: Connection, call: Call, answer: TCPResponse) -> None:
            call.begin()
            await connection.put(call, sent)

        return await self._on("SEND", address, talk, timeout, name, sent)

    async def receive(
        self,
        address: str | URL,
        *,
        until: Until = None,
        timeout: Any = None,
        name: str | None = None,
    ) -> TCPResponse:
        """Receive what the server sends next."""
        checked = checked_until(until)

        async def talk(connection: Connection, call: Call, answer: TCPResponse) -> None:
            call.begin()
            answer.content = await connection.receive(call, checked)

        return await self._on("RECEIVE", address, talk, timeout, name)

    async def _open(self, endpoint: Endpoint, call: Call) -> Connection:
        pool = self._pool
        sock, call.connect = await pool.network.open(endpoint, pool.tls)
        return Connection(pool, endpoint.authority, sock)


class Connection(WaitingChannel):
    """`turn` keeps requests that are made at the same time from taking each other's answers."""

    __slots__ = ("_buffer", "_first_at", "_last_at", "_most", "turn")

    def __init__(self, pool: TCPPool, where: str, sock: socket.socket) -> None:
        self.turn = asyncio.Lock()
        self._most = pool.options.max_response_bytes
        self._buffer = bytearray()
        self._first_at = self._last_at = 0.0  # when what is in the buffer came
        self.begin(pool.network, where, sock)

    def received(self, data: bytes, now: float) -> None:
        if not self._buffer:
            self._first_at = now
        self._last_at = now
        self._buffer += data
        if len(self._buffer) > self._most:
            self.over(Outcome.PROTOCOL, f"sent {self._most} bytes and more unread")
        self.wake()

    @property
    def has_answer(self) -> bool:
        return bool(self._buffer)

    async def receive(self, call: Call, until: Until) -> bytes:
        searched = 0
        while True:
            size = found(self._buffer, until, searched)
            if size is not None:
                break
            searched = len(self._buffer)
            if self.end is not None:
                if self.end.outcome is Outcome.RESET and searched:
                    what = f"closed the connection after {searched} bytes, before {shown(until)}"
                    raise Failure(Outcome.RESET, f"{self.where} {what}")
                raise self.end
            await self.change()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        call.got(size, self._first_at, self._last_at)
        return data


def checked_until(until: Until) -> Until:
    if isinstance(until, str):
        until = until.encode()
    if isinstance(until, bool) or not isinstance(until, int | bytes | re.Pattern | None):
        raise BadInput(
            f"until is {shown(until)} but is a length, a delimiter or a pattern of bytes"
        )
    if (isinstance(until, int) and until < 1) or until == b"":
        raise BadInput(f"until is {shown(until)}, which nothing can meet")
    if isinstance(until, re.Pattern) and not isinstance(until.pattern, bytes):
        raise BadInput(f"until is a pattern of text, {until.pattern!r}", "write rb'...'")
    return until


def found(buffer: bytearray, until: Until, searched: int) -> int | None:
    """How many bytes are what was asked for; `searched`: so many had been looked at in vain."""
    if until is None:
        return len(buffer) or None
    if isinstance(until, int):
        return until if len(buffer) >= until else None
    if isinstance(until, bytes):
        at = buffer.find(until, max(0, searched - len(until) + 1))
        return at + len(until) if at >= 0 else None
    assert isinstance(until, re.Pattern)
    match = until.search(buffer)
    return match.end() or None if match else None
