"""A live connection between two nodes, the same from both ends.

Either side may request, send and subscribe; any number of exchanges share the stream. `run` reads
until the end, and whatever the end was, everything waiting hears of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hyperscale.runtime.host import Stream
from hyperscale.wire.calls import Calls
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.envelope import (
    ASKING,
    OVERHEAD_BYTES,
    REPLY,
    UPDATE,
    Envelope,
    Verb,
    pack_plain,
    unpack,
    unpack_beginning,
)
from hyperscale.wire.errors import DeadlineExceeded, Disconnected, Malformed, Reason, Refused
from hyperscale.wire.frames import FrameDecoder
from hyperscale.wire.handshake import Session
from hyperscale.wire.identity import Identity
from hyperscale.wire.messages import too_large
from hyperscale.wire.outbox import Outbox
from hyperscale.wire.serving import Serving
from hyperscale.wire.updates import Updates

R = TypeVar("R")
# Reasons and errors in words; everything else of the protocol itself is a few bytes.
CONTROL_BYTES_MAX = 64 * 1024
# From here on a message counts among what its sender may have on its way at once.
LARGE_BYTES = 1024 * 1024
LARGE_RETRY_S = 1.0


class Connection:
    def __init__(
        self, endpoint: Endpoint, stream: Stream, session: Session, decoder: FrameDecoder
    ) -> None:
        self.endpoint = endpoint
        self.session = session
        self._stream = stream
        self._decoder = decoder
        decoder.limit_bytes = endpoint.registry.largest_bytes + OVERHEAD_BYTES
        decoder.screen = self._screen
        decoder.arrived = self._arrived
        self._arriving = 0
        self.outbox = Outbox(endpoint.host, stream, self.close)
        self._calls = Calls(endpoint.registry, self.outbox)
        self._serving = Serving(self)
        self._reader: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self.closed = False
        self._heard = True
        endpoint.live.add(self)

    @property
    def peer(self) -> Identity:
        return self.session.peer

    @property
    def counts(self) -> dict[str, int]:
        """What was refused or failed here, and answers that came too late, by reason."""
        return {**self._serving.counts, "late_answers": self._calls.late_answers}

    def in_flight(self) -> tuple[int, int]:
        """(our exchanges waiting for the other side, tasks running for it)."""
        return len(self._calls), len(self._serving)

    def request(
        self, message: object, expect: type[R], timeout_s: float | None = None
    ) -> Coroutine[Any, Any, R]:
        """Ask and wait for an answer of type `expect`. Raises the types of `errors`."""
        if timeout_s is None:
            timeout_s = self.endpoint.limits.request_timeout_s
        return self._calls.request(message, expect, timeout_s)

    async def send(self, message: object) -> None:
        """Send one way. Returns when there is room for it, not when it has arrived."""
        await self._calls.send(message)

    def tell(self, message: object) -> bool:
        """Send one way if it can be done at once."""
        return self._calls.tell(message)

    def subscribe(self, message: object, expect: type[R], window: int = 64) -> Updates[R]:
        """Updates until either side ends them; at most `window` wait here unread."""
        return self._calls.subscribe(message, expect, window)

    async def ping(self, timeout_s: float | None = None) -> float:
        """Seconds there and back through both event loops."""
        started = self.endpoint.host.clock.now()
        await self._calls.ping(timeout_s or self.endpoint.limits.keepalive_timeout_s)
        return self.endpoint.host.clock.now() - started

    async def wait_closed(self) -> None:
        await self._ended.wait()

    def close(self, sentence: str = "the connection was closed") -> None:
        if self.closed:
            return
        self.closed = True
        self._ended.set()
        self._serving.close()
        self._calls.close(sentence)
        self.outbox.close()
        self._arrived()
        self._decoder.close()
        self._stream.close()
        if self._reader is not None and self._reader is not asyncio.current_task():
            self._reader.cancel()

    async def run(self) -> None:
        """Read and act until the end; returns, or raises CancelledError when cancelled from
        outside."""
        self._reader = asyncio.current_task()
        keepalive = self.endpoint.host.tasks.spawn(
            f"keepalive {self.peer.node_id}", self._keep_alive()
        )
        sentence = f"{self.peer.role} {self.peer.node_id} closed the connection"
        try:
            self._take(b"")  # what came with the handshake
            await self._stream.pump(self._take)
        except Malformed as error:
            sentence = f"{self.peer.role} {self.peer.node_id} does not speak the protocol: {error}"
        except (ConnectionError, Disconnected) as error:
            sentence = str(error)
        except asyncio.CancelledError:
            if not self.closed:
                raise
            if self._reader is not None:
                self._reader.uncancel()
        finally:
            keepalive.cancel()
            self.close(sentence)

    def _take(self, data: bytes) -> None:
        self._heard = True
        decoder, act = self._decoder, self._act
        decoder.feed(data)
        for flags, payload in decoder:
            act(flags, payload)
            if self.closed:  # by a handler: what came after is not read
                raise Disconnected("the connection was closed")

    def _act(self, flags: int, payload: bytes) -> None:
        envelope = unpack(payload)
        verb = envelope.verb
        if verb in ASKING:
            self._serving.requested(envelope, flags)
        elif verb == REPLY:
            self._calls.answered(envelope, flags)
        elif verb == UPDATE:
            self._calls.updated(envelope, flags)
        else:
            self._control(envelope)

    def _control(self, envelope: Envelope) -> None:
        match envelope.verb:
            case Verb.REFUSED:
                self._calls.refused(envelope)
            case Verb.FAILED:
                self._calls.failed(envelope)
            case Verb.CANCEL:
                self._serving.cancelled(envelope.id)
            case Verb.CREDIT:
                self._serving.credited(envelope.id, envelope.number)
            case Verb.END:
                self._calls.ended(envelope)
            case Verb.PING:
                self.outbox.put(pack_plain(Verb.PONG, envelope.id))
            case Verb.PONG:
                self._calls.ponged(envelope)
            case verb:
                raise Malformed(f"verb {verb} is not allowed after the handshake")

    def _screen(self, flags: int, size: int, beginning: bytes) -> bool | None:
        """Refuse by its first bytes what is larger than its kind allows, or not wanted here."""
        envelope = unpack_beginning(beginning)
        if envelope is None:
            return None
        if envelope.verb in (REPLY, UPDATE):
            return self._calls.unwanted(envelope, size)
        if envelope.verb not in ASKING:
            if size > CONTROL_BYTES_MAX:
                raise Malformed(f"verb {envelope.verb} with {size:,} bytes")
            return False
        try:
            self._check_arriving(envelope, size)
        except Refused as refusal:
            self._serving.refuse(envelope.verb, envelope.id, refusal)
            return True
        return False

    def _check_arriving(self, envelope: Envelope, size: int) -> None:
        endpoint = self.endpoint
        kind = endpoint.registry.named(envelope.name, envelope.version)
        if size > kind.max_bytes + OVERHEAD_BYTES:
            raise too_large(kind, size)
        if kind.struct not in endpoint.handlers:
            raise Refused(kind.name, "this node does not answer it", code=Reason.NOT_ANSWERED)
        if size > LARGE_BYTES and not endpoint.arriving.take(self.peer, size):
            raise Refused(
                kind.name,
                f"{self.peer.node_id} sends too many large messages at once",
                LARGE_RETRY_S,
                Reason.OVERLOADED,
            )
        self._arriving = size if size > LARGE_BYTES else 0

    def _arrived(self) -> None:
        if self._arriving:
            self.endpoint.arriving.give_back(self.peer, self._arriving)
            self._arriving = 0

    async def _keep_alive(self) -> None:
        limits = self.endpoint.limits
        while True:
            self._heard = False
            await self.endpoint.host.clock.sleep(limits.keepalive_s)
            if self._heard:
                continue
            try:
                await self._calls.ping(limits.keepalive_timeout_s)
            except DeadlineExceeded:
                self.close(f"{self.peer.role} {self.peer.node_id} does not answer pings")
                return
            except Disconnected:
                return
