"""Our side of exchanges we started: requests waiting for an answer, subscriptions, pings."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from hyperscale.wire.deadlines import Deadlines
from hyperscale.wire.envelope import (
    NUMBER_MAX,
    OVERHEAD_BYTES,
    REQUEST,
    UPDATE,
    Envelope,
    Verb,
    pack_message,
    pack_plain,
)
from hyperscale.wire.envelope import read_message as read
from hyperscale.wire.errors import (
    DeadlineExceeded,
    Disconnected,
    Failure,
    Malformed,
    Refusal,
    Refused,
    RemoteFailed,
    WireError,
)
from hyperscale.wire.messages import Kind, Registry, decode_plain, too_large
from hyperscale.wire.outbox import Outbox
from hyperscale.wire.updates import Updates

R = TypeVar("R")
_Asked = tuple[asyncio.Future[Any], Kind | None, type | None]
"""Who waits, for the answer to which kind, and of which type it must be; a ping has neither."""
_ID_MASK = 2**32 - 1


class Calls:
    def __init__(self, registry: Registry, outbox: Outbox) -> None:
        self._registry = registry
        self._outbox = outbox
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, _Asked] = {}
        self._subscribed: dict[int, Updates[Any]] = {}
        self._deadlines = Deadlines(self._expired)
        self._last_id = 0
        self._ended: str | None = None
        self.late_answers = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._subscribed)

    async def request(self, message: object, expect: type[R], timeout_s: float) -> R:
        kind = self._registry.of(message)
        if self._ended is not None or self._outbox.congested:
            timeout_s = await self._room(kind, timeout_s)
        id = self._new_id()
        budget_ms = int(timeout_s * 1000) or 1
        frame = pack_message(REQUEST, id, min(budget_ms, NUMBER_MAX), kind, message)
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting[id] = (future, kind, expect)
        self._deadlines.add(id, timeout_s)
        self._outbox.put(frame)
        try:
            reply = await future
        except asyncio.CancelledError:
            self._give_up(id)
            raise
        if type(reply) is not expect:
            raise RemoteFailed(kind.name, f"answered with {type(reply).__name__}")
        return reply

    async def send(self, message: object) -> None:
        if self._outbox.congested:
            await self._outbox.room()
        self._check_open()
        self._send(message)

    def tell(self, message: object) -> bool:
        if self._outbox.congested or self._ended is not None:
            return False
        self._send(message)
        return True

    def _send(self, message: object) -> None:
        self._outbox.put(pack_message(Verb.SEND, 0, 0, self._registry.of(message), message))

    def subscribe(self, message: object, expect: type[R], window: int) -> Updates[R]:
        self._check_open()
        kind = self._registry.of(message)
        id = self._new_id()
        frame = pack_message(Verb.SUBSCRIBE, id, 0, kind, message)

        def credit(count: int) -> None:
            self._outbox.put(pack_plain(Verb.CREDIT, id, count))

        def cancel() -> None:
            if self._subscribed.pop(id, None) is not None:
                self._outbox.put(pack_plain(Verb.CANCEL, id))

        updates = self._subscribed[id] = Updates(kind.name, expect, window, credit, cancel)
        self._outbox.put(frame)
        credit(window)
        return updates

    async def ping(self, timeout_s: float) -> None:
        self._check_open()
        id = self._new_id()
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting[id] = (future, None, None)
        self._deadlines.add(id, timeout_s)
        self._outbox.put(pack_plain(Verb.PING, id))
        try:
            await future
        except asyncio.CancelledError:
            self._forget(id)
            raise

    def answered(self, envelope: Envelope, flags: int) -> None:
        entry = self._waiting.pop(envelope.id, None)
        if entry is None:
            self.late_answers += 1
            return
        self._deadlines.forget(envelope.id)
        future = entry[0]
        if future.done():
            return
        try:
            kind = self._registry.named(envelope.name, envelope.version)
            future.set_result(read(kind, flags, envelope.body))
        except Refused as error:
            future.set_exception(RemoteFailed(error.kind, f"answered badly: {error.reason}"))

    def updated(self, envelope: Envelope, flags: int) -> None:
        updates = self._subscribed.get(envelope.id)
        if updates is None:
            self.late_answers += 1
            return
        try:
            kind = self._registry.named(envelope.name, envelope.version)
            updates.put(read(kind, flags, envelope.body))
        except Refused as error:
            self._finish(envelope.id, RemoteFailed(error.kind, f"sent badly: {error.reason}"))

    def unwanted(self, envelope: Envelope, size: int) -> bool:
        """Whether an answer still arriving is not worth keeping: nobody asked for it, or it is
        larger than what was asked for may be. Whoever waits for such a one hears of it."""
        expect: type | None
        if envelope.verb == UPDATE:
            updates = self._subscribed.get(envelope.id)
            expect = None if updates is None else updates.expect
        else:
            expect = self._waiting.get(envelope.id, (None, None, None))[2]
        if expect is None:
            self.late_answers += 1
            return True
        kind = self._registry.by_struct[expect]
        if size <= kind.max_bytes + OVERHEAD_BYTES:
            return False
        self._finish(envelope.id, RemoteFailed(kind.name, str(too_large(kind, size))))
        return True

    def ended(self, envelope: Envelope) -> None:
        self._finish(envelope.id, None)

    def ponged(self, envelope: Envelope) -> None:
        entry = self._forget(envelope.id)
        if entry is not None and not entry[0].done():
            entry[0].set_result(None)

    def refused(self, envelope: Envelope) -> None:
        said: Refusal = decode_plain(Refusal, envelope.body)
        self._finish(
            envelope.id, Refused(said.kind, said.reason, said.retry_after_s, code=said.code)
        )

    def failed(self, envelope: Envelope) -> None:
        said: Failure = decode_plain(Failure, envelope.body)
        self._finish(envelope.id, RemoteFailed(said.kind, said.error))

    def close(self, sentence: str) -> None:
        """Everything still waiting ends with Disconnected."""
        self._ended = sentence
        self._deadlines.close()
        for future, _, _ in self._waiting.values():
            if not future.done():
                future.set_exception(Disconnected(sentence, maybe_done=True))
        self._waiting.clear()
        for updates in self._subscribed.values():
            updates.finish(Disconnected(sentence))
        self._subscribed.clear()

    def _finish(self, id: int, error: WireError | None) -> None:
        entry = self._forget(id)
        if entry is not None:
            if error is None:
                raise Malformed("the end of updates in answer to a request")
            if not entry[0].done():
                entry[0].set_exception(error)
            return
        updates = self._subscribed.pop(id, None)
        if updates is None:
            self.late_answers += 1
        else:
            updates.finish(error)

    def _forget(self, id: int) -> _Asked | None:
        self._deadlines.forget(id)
        return self._waiting.pop(id, None)

    def _give_up(self, id: int) -> None:
        """Nobody wants this answer any more: say so, that the work may stop."""
        if self._forget(id) is not None:
            self._outbox.put(pack_plain(Verb.CANCEL, id))

    def _expired(self, id: int) -> None:
        future, kind, _ = self._waiting[id]
        if not future.done():
            what = f"{kind.name} was not answered" if kind else "a ping was not answered"
            future.set_exception(DeadlineExceeded(f"{what} in time"))
        self._give_up(id)

    async def _room(self, kind: Kind, timeout_s: float) -> float:
        """Wait until there is room to send, and return what is left of the time."""
        self._check_open()
        until = self._loop.time() + timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                await self._outbox.room()
        except TimeoutError:
            raise DeadlineExceeded(f"{kind.name} could not be sent in time") from None
        self._check_open()
        return max(until - self._loop.time(), 0.001)

    def _check_open(self) -> None:
        if self._ended is not None:
            raise Disconnected(self._ended)

    def _new_id(self) -> int:
        id = (self._last_id + 1) & _ID_MASK
        while id in self._waiting or id in self._subscribed:
            id = (id + 1) & _ID_MASK
        self._last_id = id
        return id
