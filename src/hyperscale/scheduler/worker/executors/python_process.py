"""A process for `python` jobs as its parent sees it: calls go in, answers come out, in order.

A call is a body on one socket and a ticket on another. The process takes a ticket before it begins
a call, and its parent can take tickets back from the same socket: whoever has the ticket has the
call, so a call is either begun or withdrawn, never both. At most one call is begun and unanswered.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Final, cast

import msgspec

from hyperscale.scheduler.worker.executors.orphans import MARK, Children
from hyperscale.scheduler.worker.executors.processes import kill_tree
from hyperscale.scheduler.worker.executors.python_child import HEAD, MOVED, TICKET, Call, Returned

_TICKETS_BYTES: Final = 64 * 1024
_LAST_WORDS_S: Final = 1.0
"""What a killed process had written arrives at once, unless something it left holds the socket."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Returned).decode


class Fate(Enum):
    """Of a call that gets no answer."""

    ENDED = "the process ended under it"
    WITHDRAWN = "it was not begun"


Pending = asyncio.Future[Returned | Fate]


class PythonProcess(asyncio.Protocol):
    """Made by `start`."""

    process: asyncio.subprocess.Process

    def __init__(
        self, tickets: socket.socket, taken: socket.socket, over: Callable[[], None]
    ) -> None:
        self._tickets = tickets
        self._taken = taken
        self._over = over
        self._pending: dict[int, Pending] = {}
        self._number = 0
        self._received = bytearray()
        self._lost = asyncio.Event()
        self.killed = False
        self.moved: Callable[[], None] = lambda: None
        """Told when the call that runs has written something."""

    @property
    def gone(self) -> bool:
        return self._lost.is_set()

    @classmethod
    async def start(cls, children: Children) -> PythonProcess:
        """Raises OSError."""
        mark = children.mark()
        ours, theirs = socket.socketpair()
        tickets, taken = socket.socketpair()
        made = cls(tickets, taken, lambda: children.unmark(mark))
        try:
            with theirs:
                made.process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "hyperscale.scheduler.worker.executors.python_child"),
                    str(taken.fileno()),
                    stdin=theirs.fileno(),
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    pass_fds=(taken.fileno(),),
                    env={**os.environ, MARK: mark},
                    start_new_session=True,
                )
            ours.setblocking(False)
            await asyncio.get_running_loop().create_connection(lambda: made, sock=ours)
        except BaseException:
            for end in (ours, tickets, taken):
                end.close()
            made._over()
            raise
        return made

    def send(self, calls: Sequence[Call]) -> list[Pending]:
        loop, gone = asyncio.get_running_loop(), self.gone
        sent: list[Pending] = []
        bodies: list[bytes] = []
        numbers: list[bytes] = []
        for call in calls:
            self._number += 1
            pending: Pending = loop.create_future()
            sent.append(pending)
            if gone:
                pending.set_result(Fate.WITHDRAWN)
                continue
            self._pending[self._number] = pending
            body = _encode(call)
            bodies += (HEAD.pack(self._number, len(body)), body)
            numbers.append(TICKET.pack(self._number))
        if bodies:
            self._transport.write(b"".join(bodies))
            with suppress(OSError):  # it has just ended: connection_lost tells
                self._tickets.send(b"".join(numbers))
        return sent

    def withdraw(self) -> None:
        """What was not begun is not going to be."""
        try:
            tickets = self._taken.recv(_TICKETS_BYTES, socket.MSG_DONTWAIT)
        except OSError:
            return
        for (number,) in TICKET.iter_unpack(tickets):
            _settle(self._pending.pop(number), Fate.WITHDRAWN)

    async def kill(self) -> None:
        """Returns when it is gone and every call has its answer or its fate."""
        self.killed = True
        self.withdraw()
        await kill_tree(self.process, grace_s=0)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                await self._lost.wait()
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        start = 0
        while len(received) >= start + HEAD.size:
            number, size = HEAD.unpack_from(received, start)
            end = start + HEAD.size + size
            if len(received) < end:
                break
            body, start = received[start + HEAD.size : end], end
            if number == MOVED:
                self.moved()
            else:
                _settle(self._pending.pop(number), _decode(body))
        del received[:start]

    def connection_lost(self, _: Exception | None) -> None:
        self.withdraw()
        self._lost.set()
        self._over()
        for end in (self._tickets, self._taken):
            end.close()
        left, self._pending = self._pending, {}
        for pending in left.values():
            _settle(pending, Fate.ENDED)


def _settle(pending: Pending, outcome: Returned | Fate) -> None:
    if not pending.done():
        pending.set_result(outcome)
