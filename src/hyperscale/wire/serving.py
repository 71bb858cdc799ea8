"""The other side's requests: judged, decoded, handled, answered.

A plain function as handler is called on the spot; it must not block, and costs no task. An
`async def` runs as a task of the host, an async generator as a task that pushes updates. Whatever
a handler raises ends in an answer and in our log, never in the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from hyperscale.runtime.host import Task
from hyperscale.wire.deadlines import Deadlines
from hyperscale.wire.envelope import Envelope, Verb, pack_message, pack_plain, read_message
from hyperscale.wire.errors import Failure, Reason, Refusal, Refused
from hyperscale.wire.messages import Kind, Priority

if TYPE_CHECKING:
    from hyperscale.wire.connection import Connection
    from hyperscale.wire.handshake import Identity

# Tasks one connection may have running for it; CRITICAL is not counted against it.
IN_FLIGHT_MAX = 1024
# What a refused caller is told to wait when nobody knows better.
RETRY_AFTER_S = 0.1

_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class Call:
    """Who asks, and how long the answer is of use to them."""

    connection: Connection
    kind: Kind
    budget_s: float | None

    @property
    def peer(self) -> Identity:
        return self.connection.peer


Handler = Callable[[Call, Any], Any]
"""`def` or `async def` returning the reply (None for one-way kinds), or an async generator."""


class Admission(Protocol):
    """Decides who gets a slot when a node has too much to do."""

    def enter(self, kind: Kind, peer: Identity) -> float | None:
        """None: come in, and `leave` follows. Otherwise seconds to wait before trying again."""
        ...

    def leave(self, kind: Kind, peer: Identity) -> None: ...


class Shape:
    PLAIN, COROUTINE, UPDATES = range(3)


def shape_of(handler: Handler) -> int:
    call = handler if inspect.isroutine(handler) else getattr(handler, "func", handler)
    if not inspect.isroutine(call):
        call = call.__call__
    if inspect.isasyncgenfunction(call):
        return Shape.UPDATES
    return Shape.COROUTINE if inspect.iscoroutinefunction(call) else Shape.PLAIN


class Handlers:
    """Message struct to handler, looked at once."""

    def __init__(self, handlers: Mapping[type[msgspec.Struct], Handler]) -> None:
        self.of = {struct: (handler, shape_of(handler)) for struct, handler in handlers.items()}


@dataclass(slots=True)
class Work:
    """Something running for the other side."""

    kind: Kind
    admitted: bool
    task: Task | None = None
    credits: int = 0
    credit_event: asyncio.Event | None = None


class Serving:
    def __init__(self, connection: Connection) -> None:
        endpoint = connection.endpoint
        self._connection = connection
        self._tasks = endpoint.host.tasks
        self._registry = endpoint.registry
        self._handlers = endpoint.handlers.of
        self._admission = endpoint.admission
        self._in_flight_max = endpoint.limits.in_flight_max
        self._report = endpoint.report
        self._outbox = connection.outbox
        self._running: dict[int, Work] = {}
        self._deadlines = Deadlines(self.cancelled)
        self._one_way = 0
        self.counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._running)

    def requested(self, envelope: Envelope, flags: int) -> None:
        id = envelope.id
        kind: Kind | None = None
        try:
            kind = self._registry.named(envelope.name, envelope.version)
            handler, shape = self._find(kind, envelope.verb)
            if self._admission is not None or self._outbox.congested or shape:
                self._admit(kind, id)
            message = read_message(kind, flags, envelope.body)
            call = Call(self._connection, kind, envelope.number / 1000 or None)
            if shape == Shape.PLAIN:
                self._answer(id, kind, handler(call, message))
            else:
                self._start(id, handler, shape, call, message)
        except Exception as error:  # noqa: BLE001 - a handler may raise anything
            self._not_answered(id, kind, error, envelope.verb == Verb.SEND)
            self._release(id)
            return
        if shape == Shape.PLAIN and self._running:
            self._release(id)
