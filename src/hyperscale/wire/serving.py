"""The other side's requests: judged, decoded, handled, answered.

A plain function as handler is called on the spot; it must not block, and costs no task. An
`async def` runs as a task of the host, an async generator as a task that pushes updates. Whatever
a handler raises ends in an answer and in our log, never in the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from hyperscale.runtime.host import Task
from hyperscale.wire.deadlines import Deadlines
from hyperscale.wire.envelope import (
    REPLY,
    SEND,
    SUBSCRIBE,
    Envelope,
    Verb,
    pack_message,
    pack_plain,
    read_message,
)
from hyperscale.wire.errors import Failure, Reason, Refusal, Refused
from hyperscale.wire.messages import Kind, Priority

if TYPE_CHECKING:
    from hyperscale.wire.connection import Connection
    from hyperscale.wire.identity import Identity

# Tasks one connection may have running for it; CRITICAL is not counted against it, nor are
# subscriptions that an admission has let in.
IN_FLIGHT_MAX = 1024
# What a refused caller is told to wait when nobody knows better.
RETRY_AFTER_S = 0.1
# Updates one subscriber may be ahead in asking; far above any sensible window.
CREDITS_MAX = 1_000_000

_encode = msgspec.msgpack.Encoder().encode


class Call(NamedTuple):
    """Who asks, and for how many seconds the answer is of use to them (None: no limit). Nobody
    waits for the answer to what was sent one way."""

    connection: Connection
    peer: Identity
    kind: Kind
    budget_s: float | None
    one_way: bool = False


Handler = Callable[[Call, Any], Any]
"""`def` or `async def` returning the reply (None for one-way kinds), or an async generator."""


class Denial(NamedTuple):
    """Why somebody does not come in, and how long to wait before trying again."""

    reason: str
    retry_after_s: float
    code: str = Reason.OVERLOADED


class Admission(Protocol):
    """Decides who gets a slot when a node has too much to do."""

    def enter(self, kind: Kind, peer: Identity) -> Denial | None:
        """None: come in, and `leave` follows."""
        ...

    def leave(self, kind: Kind, peer: Identity) -> None: ...

    def subscribe(self, kind: Kind, peer: Identity) -> Denial | None:
        """Of somebody who has come in. None: updates may flow for as long as they like, without a
        slot, and `unsubscribe` follows."""
        ...

    def unsubscribe(self, kind: Kind, peer: Identity) -> None: ...


class Shape(Enum):
    PLAIN = "def"
    COROUTINE = "async def"
    UPDATES = "async generator"


def shape_of(handler: Handler) -> Shape:
    called: Any = handler
    while isinstance(called, functools.partial):
        called = called.func
    if not inspect.isroutine(called):
        called = called.__call__
    if inspect.isasyncgenfunction(called):
        return Shape.UPDATES
    return Shape.COROUTINE if inspect.iscoroutinefunction(called) else Shape.PLAIN


def shaped(
    handlers: Mapping[type[msgspec.Struct], Handler],
) -> dict[type[msgspec.Struct], tuple[Handler, Shape]]:
    """Handlers with their shapes, looked at once and not per message."""
    return {struct: (handler, shape_of(handler)) for struct, handler in handlers.items()}


@dataclass(slots=True)
class Work:
    """A task running for the other side, and the updates it may still push."""

    verb: int
    id: int
    kind: Kind
    task: Task | None = None
    begun: bool = False
    cancelled: bool = False
    credits: int = 0
    credited: asyncio.Event | None = None


class Serving:
    def __init__(self, connection: Connection) -> None:
        endpoint = connection.endpoint
        self._connection = connection
        self._peer = connection.peer
        self._tasks = endpoint.host.tasks
        self._registry = endpoint.registry
        self._handlers = endpoint.handlers
        self._allowed = endpoint.kinds_from(connection.peer.role)
        self._may_send = endpoint.may_send
        self._admission = endpoint.admission
        self._in_flight_max = endpoint.limits.in_flight_max
        self._report = endpoint.report
        self._outbox = connection.outbox
        self._running: dict[int, Work] = {}
        self._deadlines = Deadlines(self.cancelled)
        self._subscriptions = 0  # of those running, let in by the admission
        self._one_way_key = 0
        self._task_names: dict[Kind, str] = {}
        self.counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._running)

    def requested(self, envelope: Envelope, flags: int) -> None:
        """A REQUEST, SEND or SUBSCRIBE."""
        verb, id = envelope.verb, envelope.id
        try:
            kind = self._registry.named(envelope.name, envelope.version)
            if self._allowed is not None and kind not in self._allowed:
                raise self._not_for(kind)
            handler, shape = self._find(kind, verb)
            plain = shape is Shape.PLAIN
            by_the_door = self._admission is not None and not (plain and kind.self_judged)
            if by_the_door or not plain or self._outbox.congested:
                self._admit(kind, by_the_door, shape is Shape.UPDATES)
        except Refused as refusal:
            self.refuse(verb, id, refusal)
            return
        try:
            message = read_message(kind, flags, envelope.body)
            budget_s = envelope.number / 1000 or None
            call = Call(self._connection, self._peer, kind, budget_s, verb == SEND)
            if not plain:
                self._start(verb, id, handler, shape, call, message)
                return
            self._reply(verb, id, handler(call, message))
        except Exception as error:  # noqa: BLE001 - a handler may raise anything
            self._not_done(verb, id, kind, error)
        if by_the_door:
            self._leave(kind, verb == SUBSCRIBE)

    def cancelled(self, key: int) -> None:
        """Nobody waits for it any more. Its slot is taken until the task has ended: a handler that
        cleans up for long, or never ends, still costs what it costs."""
        work = self._running.get(key)
        if work is None or work.task is None or work.cancelled:
            return
        work.cancelled = True
        work.task.cancel()
        if not work.begun:  # and never will: there is no end to wait for
            self._finished(key, work)

    def credited(self, id: int, count: int) -> None:
        work = self._running.get(id)
        if work is not None and work.credited is not None:
            work.credits = min(work.credits + count, CREDITS_MAX)
            work.credited.set()

    def refuse(self, verb: int, id: int, refusal: Refused) -> None:
        self.counts[refusal.code] += 1
        if verb != SEND:
            said = Refusal(refusal.kind, refusal.code, refusal.reason, refusal.retry_after_s)
            self._outbox.put(pack_plain(Verb.REFUSED, id, body=_encode(said)))

    def close(self) -> None:
        for key in list(self._running):
            self.cancelled(key)
        self._deadlines.close()

    def _not_for(self, kind: Kind) -> Refused:
        roles = sorted((self._may_send or {}).get(kind.name, ()))
        may = f"it may come from {' or '.join(roles)}" if roles else "nobody may ask it"
        said = f"a {self._peer.role} ({self._peer.node_id}) may not send it: {may}"
        return Refused(kind.name, said, code=Reason.ROLE_NOT_ALLOWED)

    def _find(self, kind: Kind, verb: int) -> tuple[Handler, Shape]:
        found = self._handlers.get(kind.struct)
        if found is None or (found[1] is Shape.UPDATES) != (verb == SUBSCRIBE):
            raise Refused(kind.name, "this node does not answer it", code=Reason.NOT_ANSWERED)
        return found

    def _admit(self, kind: Kind, by_the_door: bool, subscribes: bool) -> None:
        if kind.priority is not Priority.CRITICAL:
            counted = len(self._running) - self._subscriptions
            full = counted >= self._in_flight_max
            if full or self._outbox.overfull:
                why = "too many requests at once" if full else "answers are not read fast enough"
                raise Refused(kind.name, why, RETRY_AFTER_S, Reason.OVERLOADED)
        if by_the_door and self._admission is not None:
            denial = self._admission.enter(kind, self._peer)
            if denial is None and subscribes:  # what lasts for hours must not hold a slot
                denial = self._admission.subscribe(kind, self._peer)
                self._admission.leave(kind, self._peer)
            if denial is not None:
                raise Refused(kind.name, *denial)

    def _leave(self, kind: Kind, subscribed: bool = False) -> None:
        if self._admission is None:
            return
        if subscribed:
            self._admission.unsubscribe(kind, self._peer)
        else:
            self._admission.leave(kind, self._peer)

    def _start(
        self, verb: int, id: int, handler: Handler, shape: Shape, call: Call, message: Any
    ) -> None:
        key = id
        if verb == SEND:
            key = self._one_way_key = self._one_way_key - 1
        if key in self._running:
            raise Refused(call.kind.name, f"id {id} is in use", code=Reason.MALFORMED)
        work = Work(verb, id, call.kind)
        if shape is Shape.UPDATES:
            work.credited = asyncio.Event()
            self._subscriptions += self._admission is not None
            job = self._push(key, work, handler, call, message)
        else:
            job = self._handle(key, work, handler, call, message)
        work.task = self._tasks.spawn(self._task_name(call.kind), job)
        self._running[key] = work
        if call.budget_s is not None:
            self._deadlines.add(key, call.budget_s)

    async def _handle(
        self, key: int, work: Work, handler: Handler, call: Call, message: Any
    ) -> None:
        work.begun = True
        try:
            result = await handler(call, message)
            if self._outbox.congested:
                await self._outbox.room()
            self._reply(work.verb, work.id, result)
        except Exception as error:  # noqa: BLE001 - a handler may raise anything
            self._not_done(work.verb, work.id, work.kind, error)
        finally:
            self._finished(key, work)

    async def _push(self, key: int, work: Work, handler: Handler, call: Call, message: Any) -> None:
        work.begun = True
        try:
            async with contextlib.aclosing(handler(call, message)) as updates:
                while True:
                    await self._credit(work)
                    try:
                        update = await anext(updates)
                    except StopAsyncIteration:
                        break
                    kind = self._registry.of(update)
                    self._outbox.put(pack_message(Verb.UPDATE, work.id, 0, kind, update))
            self._outbox.put(pack_plain(Verb.END, work.id))
        except Exception as error:  # noqa: BLE001 - a handler may raise anything
            self._not_done(work.verb, work.id, work.kind, error)
        finally:
            self._finished(key, work)

    async def _credit(self, work: Work) -> None:
        assert work.credited is not None
        while work.credits == 0:
            work.credited.clear()
            await work.credited.wait()
        work.credits -= 1
        if self._outbox.congested:
            await self._outbox.room()

    def _task_name(self, kind: Kind) -> str:
        name = self._task_names.get(kind)
        if name is None:
            name = self._task_names[kind] = f"{kind.name} for {self._peer.node_id}"
        return name

    def _finished(self, key: int, work: Work) -> None:
        """Give the slot back."""
        del self._running[key]
        self._subscriptions -= work.credited is not None and self._admission is not None
        self._deadlines.forget(key)
        self._leave(work.kind, work.verb == SUBSCRIBE)

    def _reply(self, verb: int, id: int, result: Any) -> None:
        if verb != SEND:
            kind = self._registry.of(result)
            self._outbox.put(pack_message(REPLY, id, 0, kind, result))

    def _not_done(self, verb: int, id: int, kind: Kind, error: Exception) -> None:
        if isinstance(error, Refused):
            self.refuse(verb, id, error)
            return
        self.counts["failed"] += 1
        self._report(self._task_name(kind), error)
        if verb != SEND:
            said = Failure(kind.name, type(error).__name__)
            self._outbox.put(pack_plain(Verb.FAILED, id, body=_encode(said)))
