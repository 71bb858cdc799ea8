"""What clients of message brokers have in common: messages that wait for their reader, and when
they were sent.

Every message that a client publishes says in a header when that was. The client that consumes it
takes that for the end-to-end latency; on two machines it is as good as their clocks agree.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from time import time_ns
from typing import Any, ClassVar, NamedTuple

from hyperscale.clients.contract import Call
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.network import Network
from hyperscale.clients.waiting import WaitingChannel
from hyperscale.errors import BadInput
from hyperscale.workload.replies import MessageResponse
from hyperscale.workload.results import Outcome
from hyperscale.workload.scope import CURRENT
from hyperscale.workload.texts import shown

SENT_AT = "hyperscale-sent-at"  # nanoseconds since 1970
MESSAGE_BYTES = 200  # what a message that nobody consumed takes beside its data, about


class Message(NamedTuple):
    topic: str
    data: bytes
    headers: Mapping[str, str]
    at: float
    latency_ms: float | None
    size: int
    more: Any = None  # of its protocol


def stamped(headers: Mapping[str, Any] | None) -> dict[str, str]:
    """The author's headers, and when the message was sent. Raises BadInput."""
    made = {}
    if headers:
        if not isinstance(headers, Mapping):
            raise BadInput(f"headers are {shown(headers)} but must be a dict")
        made = {str(name): str(value) for name, value in headers.items()}
    made[SENT_AT] = str(time_ns())
    return made


def arrived(
    topic: str, data: bytes, headers: Mapping[str, str], at: float, size: int, more: Any = None
) -> Message:
    sent_at = headers.get(SENT_AT, "")
    latency = None
    if sent_at.isascii() and sent_at.isdecimal() and len(sent_at) < 20:
        latency = max(0.0, (time_ns() - int(sent_at)) / 1e6)
    return Message(topic, data, headers, at, latency, size, more)


class Inbox:
    """Messages of one subscription that nobody has consumed yet."""

    def __init__(self) -> None:
        self._messages: deque[Message] = deque()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._end: Failure | None = None

    def put(self, message: Message) -> None:
        self._messages.append(message)
        self._wake()

    def close(self, end: Failure) -> None:
        self._end = end
        self._wake(all_of_them=True)

    def _wake(self, all_of_them: bool = False) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                if not all_of_them:
                    return

    async def take(self) -> Message:
        """The next one; raises Failure when none will come."""
        while not self._messages:
            if self._end is not None:
                raise self._end
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if self._messages:  # it was woken for one, which another may have
                    self._wake()
                raise
        return self._messages.popleft()


class Inboxes:
    """Those of a connection; together they hold `most` bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._unread = 0
        self._of: dict[str, Inbox] = {}

    def __contains__(self, topic: str) -> bool:
        return topic in self._of

    def __iter__(self) -> Any:
        return iter(self._of)

    def open(self, topic: str) -> None:
        self._of.setdefault(topic, Inbox())

    def forget(self, topic: str) -> None:
        self._of.pop(topic, None)

    def end(self, topic: str, why: Failure) -> None:
        """Those that wait are told; what comes next begins anew."""
        inbox = self._of.pop(topic, None)
        if inbox is not None:
            inbox.close(why)

    def put(self, topic: str, message: Message) -> bool:
        """False: there are too many unread ones."""
        self._unread += message.size + MESSAGE_BYTES
        self._of[topic].put(message)
        return self._unread <= self._most

    async def take(self, topic: str) -> Message:
        message = await self._of[topic].take()
        self._unread -= message.size + MESSAGE_BYTES
        return message

    def close(self, end: Failure) -> None:
        for inbox in self._of.values():
            inbox.close(end)


class BrokerChannel(WaitingChannel):
    """A connection on which a broker acknowledges what `pending` waits for, by its key, and sends
    messages."""

    __slots__ = ("inboxes", "pending")
    goodbye: ClassVar[bytes] = b""

    def begin_broker(self, network: Network, most: int, where: str, sock: socket.socket) -> None:
        self.inboxes = Inboxes(most)
        self.pending: dict[Any, asyncio.Future[Any]] = {}
        self.begin(network, where, sock)

    def wait_for(self, key: Any) -> asyncio.Future[Any]:
        if self.end is not None:
            raise self.end
        waiting = self.pending[key] = self._loop.create_future()
        return waiting

    def answered(self, key: Any, value: Any) -> None:
        waiting = self.pending.pop(key, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(value)

    def deliver(self, topic: str, message: Message) -> None:
        if not self.inboxes.put(topic, message):
            self.over(Outcome.PROTOCOL, "sent more messages than may wait unconsumed")

    def control(self, data: bytes) -> None:
        """Write it behind all that is not sent yet, in no call."""
        if self.unsent is not None:
            self.send_later(memoryview(bytes(self.unsent) + data))
            return
        with suppress(OSError):  # the read tells how it ended
            self.write(data)

    def shut(self) -> None:
        if self.is_open and self.end is None and self.goodbye:
            self.control(self.goodbye)
        super().shut()
        end = self.end = self.end or Failure(
            Outcome.RESET, f"the connection to {self.where} was closed: another call on it failed"
        )
        pending, self.pending = self.pending, {}
        for waiting in pending.values():
            if not waiting.done():
                waiting.set_exception(end)
                waiting.exception()  # who waits may be gone
        self.inboxes.close(end)


def consumed(kind: str, message: Message, call: Call, answer: MessageResponse) -> None:
    call.got(message.size, message.at, message.at)
    answer.content = message.data
    answer.topic = message.topic
    answer.headers = message.headers
    answer.latency_ms = message.latency_ms
    if message.latency_ms is not None:
        CURRENT.get().measure(f"{kind}_msg_latency", "distribution", message.latency_ms)
