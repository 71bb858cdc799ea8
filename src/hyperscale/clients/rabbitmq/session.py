"""A connection to RabbitMQ, with a channel to publish on and one for each queue that is consumed.

A server that refuses something closes the channel it was asked on: the others go on, and the next
call opens another.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from hyperscale.clients.contract import Call
from hyperscale.clients.extras import library
from hyperscale.clients.messages import BrokerChannel, Message, arrived
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.network import Network
from hyperscale.workload.replies import RabbitMQResponse
from hyperscale.workload.results import Outcome

PUBLISHING = 1  # the channel
PREFETCH = 100  # messages that the server sends before the first of them is acknowledged
HEARTBEAT_S = 60
_HEAD = struct.Struct(">BHI")  # kind, channel, size
_TOO_SHORT = 8
_CAPABILITIES = (
    "authentication_failure_close",
    "basic.nack",
    "connection.blocked",
    "consumer_cancel_notify",
    "publisher_confirms",
)


def amqp() -> SimpleNamespace:
    """What we use of pamqp, which reads and writes single frames."""
    commands = library("pamqp.commands", "rabbitmq")
    return SimpleNamespace(
        Basic=commands.Basic,
        Channel=commands.Channel,
        Confirm=commands.Confirm,
        Connection=commands.Connection,
        Queue=commands.Queue,
        ContentBody=library("pamqp.body", "rabbitmq").ContentBody,
        ContentHeader=library("pamqp.header", "rabbitmq").ContentHeader,
        Heartbeat=library("pamqp.heartbeat", "rabbitmq").Heartbeat,
        Error=library("pamqp.exceptions", "rabbitmq").PAMQPException,
        hello=library("pamqp.header", "rabbitmq").ProtocolHeader().marshal(),
        marshal=library("pamqp.frame", "rabbitmq").marshal,
        unmarshal=library("pamqp.frame", "rabbitmq").unmarshal,
    )


class Refusal(NamedTuple):
    code: int
    text: str


class _Content:
    """A message that comes in several frames."""

    def __init__(self, method: Any) -> None:
        self.method = method
        self.header: Any = None
        self.parts: list[bytes] = []
        self.missing = 0
        self.size = 0


class Session(BrokerChannel):
    """`pending` are answers to what was asked on a channel, by its number, and the confirmations of
    messages, by their tags: (PUBLISHING, 7)."""

    __slots__ = (
        "_amqp",
        "_buffer",
        "_channels",
        "_closing",
        "_contents",
        "_frame_max",
        "_limit",
        "_queues",
        "_returned",
        "_tag",
        "_timer",
        "_turn",
    )

    def __init__(
        self, network: Network, most: int, where: str, sock: socket.socket, amqp: SimpleNamespace
    ) -> None:
        self._amqp = amqp
        self._limit = most
        self._buffer = b""
        self._frame_max = 131_072
        self._channels: set[int] = set()  # that are open
        self._closing: set[int] = set()  # of which the server has not said that they are closed
        self._contents: dict[int, _Content] = {}
        self._queues: dict[int, str] = {}
        self._tag = 0
        self._returned: dict[int, Refusal] = {}
        self._turn = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self.begin_broker(network, most, where, sock)

    # -- connecting -------------------------------------------------------------------------------

    async def log_in(self, user: str, password: str, vhost: str) -> None:
        """Raises Failure."""
        amqp = self._amqp
        waiting = self.wait_for(0)
        self.control(amqp.hello)
        await waiting
        capabilities = dict.fromkeys(_CAPABILITIES, True)
        tune = await self._greeting(
            amqp.Connection.StartOk(
                {"product": "hyperscale", "capabilities": capabilities},
                response=f"\0{user}\0{password}",
            )
        )
        self._frame_max = tune.frame_max or self._frame_max
        heartbeat_s = min(tune.heartbeat or HEARTBEAT_S, HEARTBEAT_S)
        self._send(0, amqp.Connection.TuneOk(tune.channel_max, self._frame_max, heartbeat_s))
        await self._greeting(amqp.Connection.Open(vhost))
        self._beat(heartbeat_s)

    async def _greeting(self, asked: Any) -> Any:
        waiting = self.wait_for(0)
        self._send(0, asked)
        told = await waiting
        if isinstance(told, Refusal):
            text = f"{self.where} refused the connection: {told.code} {told.text}"
            raise Failure(Outcome.STATUS, text)
        return told

    def _beat(self, every_s: float) -> None:
        if self._timer is not None:
            self._send(0, self._amqp.Heartbeat())
        self._timer = self._loop.call_later(every_s / 2, self._beat, every_s)

    # -- calls ------------------------------------------------------------------------------------

    async def declare(self, call: Call, answer: RabbitMQResponse, queue: str, **how: bool) -> None:
        channel = self._free_channel()
        asked = self._amqp.Queue.Declare(queue=queue, **how)
        if await self._open(channel, answer):
            call.begin()
            await self._ask(call, answer, channel, asked)
            self._close(channel)

    async def publish(
        self,
        call: Call,
        answer: RabbitMQResponse,
        method: Any,
        data: bytes,
        headers: Mapping[str, str],
        persistent: bool,
    ) -> None:
        """Until the server has confirmed it."""
        amqp = self._amqp
        if PUBLISHING not in self._channels:
            async with self._turn:  # calls at the same time share the channel
                if PUBLISHING not in self._channels:
                    self._tag = 0
                    if not await self._open(PUBLISHING, answer):
                        return
                    await self._ask(None, answer, PUBLISHING, amqp.Confirm.Select())
                    if not answer.ok:
                        return
        call.begin()
        self._tag += 1
        tag = self._tag
        properties = amqp.Basic.Properties(
            headers=dict(headers), delivery_mode=2 if persistent else 1, message_id=str(tag)
        )
        frames = [method, amqp.ContentHeader(0, len(data), properties)]
        size = self._frame_max - _TOO_SHORT
        frames += [amqp.ContentBody(data[at : at + size]) for at in range(0, len(data), size)]
        waiting = self.wait_for((PUBLISHING, tag))
        try:
            wire = b"".join([amqp.marshal(frame, PUBLISHING) for frame in frames])
            await self.put(call, wire)
            told, received, at = await waiting
        finally:
            self.pending.pop((PUBLISHING, tag), None)
            refusal = self._returned.pop(tag, None)
        call.got(received, at, at)
        refusal = told if isinstance(told, Refusal) else refusal
        if refusal is not None:
            _refuse(answer, refusal)

    async def subscribe(self, answer: RabbitMQResponse, queue: str) -> None:
        amqp = self._amqp
        channel = self._free_channel()
        self._queues[channel] = queue
        self.inboxes.open(queue)
        try:
            await self._open(channel, answer)
            if answer.ok:
                await self._ask(None, answer, channel, amqp.Basic.Qos(prefetch_count=PREFETCH))
            if answer.ok:
                await self._ask(None, answer, channel, amqp.Basic.Consume(queue=queue))
        except BaseException:
            self._forget(channel)
            raise
        if not answer.ok:
            self._forget(channel)

    def _forget(self, channel: int) -> None:
        queue = self._queues.pop(channel, None)
        if queue is not None:
            self.inboxes.forget(queue)
        self._close(channel)

    def _close(self, channel: int) -> None:
        if channel in self._channels:
            self._channels.discard(channel)
            self._closing.add(channel)
            self._send(channel, self._amqp.Channel.Close(200, "", 0, 0))

    async def take(self, queue: str) -> Message:
        message = await self.inboxes.take(queue)
        channel, tag = message.more
        if channel in self._channels:
            self._send(channel, self._amqp.Basic.Ack(tag))
        return message

    def _free_channel(self) -> int:
        channel = PUBLISHING + 1
        taken = (self._channels, self._closing, self.pending, self._queues)
        while any(channel in some for some in taken):
            channel += 1
        return channel

    async def _open(self, channel: int, answer: RabbitMQResponse) -> bool:
        await self._ask(None, answer, channel, self._amqp.Channel.Open())
        if answer.ok:
            self._channels.add(channel)
        return answer.ok

    async def _ask(
        self, call: Call | None, answer: RabbitMQResponse, channel: int, asked: Any
    ) -> None:
        waiting = self.wait_for(channel)
        wire = self._amqp.marshal(asked, channel)
        try:
            if call is None:
                self.control(wire)
            else:
                await self.put(call, wire)
            told, received, at = await waiting
        finally:
            self.pending.pop(channel, None)
        if call is not None:
            call.got(received, at, at)
        if isinstance(told, Refusal):
            _refuse(answer, told)

    def _send(self, channel: int, frame: Any) -> None:
        self.control(self._amqp.marshal(frame, channel))

    # -- what comes -------------------------------------------------------------------------------

    def received(self, data: bytes, now: float) -> None:
        data = self._buffer + data if self._buffer else data
        at = 0
        try:
            while len(data) - at >= _HEAD.size and self.end is None:
                kind, channel, size = _HEAD.unpack_from(data, at)
                if kind not in (1, 2, 3, 8) or size > self._frame_max:
                    raise ValueError(f"{data[at : at + 20]!r}")
                ends = at + _HEAD.size + size + 1
                if ends > len(data):
                    break
                _, _, frame = self._amqp.unmarshal(data[at:ends])
                self._frame(channel, frame, ends - at, now)
                at = ends
        except (self._amqp.Error, ValueError, LookupError, TypeError, struct.error) as error:
            self.over(Outcome.PROTOCOL, f"does not speak AMQP 0-9-1: it sent {error}")
        if data[:1] == b"A":  # how a server says which protocol it wants
            self.over(Outcome.PROTOCOL, f"does not speak AMQP 0-9-1: it sent {data[:8]!r}")
        self._buffer = data[at:]

    def _frame(self, channel: int, frame: Any, size: int, now: float) -> None:
        amqp = self._amqp
        name = getattr(frame, "name", "")
        content = self._contents.get(channel)
        if isinstance(frame, amqp.Heartbeat):
            return
        if isinstance(frame, amqp.ContentHeader | amqp.ContentBody):
            if content is None:
                raise ValueError("a part of a message that never began")
            self._part(channel, content, frame, size, now)
        elif name in ("Basic.Deliver", "Basic.Return"):
            made = self._contents[channel] = _Content(frame)
            made.size = size
        elif name == "Connection.Close":
            self._send(0, amqp.Connection.CloseOk())
            told = Refusal(frame.reply_code, frame.reply_text)
            if 0 in self.pending:
                self.answered(0, told)
            else:
                self.over(Outcome.STATUS, f"ended the connection: {told.code} {told.text}")
        elif name == "Channel.Close":
            self._send(channel, amqp.Channel.CloseOk())
            self._closed(channel, Refusal(frame.reply_code, frame.reply_text), size, now)
        elif name in ("Basic.Ack", "Basic.Nack"):
            refusal = None if name == "Basic.Ack" else Refusal(0, "the server did not take it")
            self._confirmed(frame, refusal or frame, size, now)
        elif name == "Basic.Cancel":
            self._closed(channel, Refusal(404, "NOT_FOUND - the queue was deleted"), size, now)
        elif name == "Channel.CloseOk":
            self._closing.discard(channel)
        elif channel == 0:
            self.answered(0, frame)  # Connection.Blocked as well, when nobody waits
        else:
            self.answered(channel, (frame, size, now))

    def _confirmed(self, frame: Any, told: Any, size: int, now: float) -> None:
        tags = [(PUBLISHING, frame.delivery_tag)]
        if frame.multiple:
            keys = [key for key in self.pending if isinstance(key, tuple)]
            tags = [key for key in keys if key[1] <= frame.delivery_tag]
        for key in tags:
            self.answered(key, (told, size, now))
            size = 0  # the first has it all

    def _closed(self, channel: int, refusal: Refusal, size: int, now: float) -> None:
        self._channels.discard(channel)
        self._contents.pop(channel, None)
        queue = self._queues.pop(channel, None)
        if queue is not None:
            text = f"{self.where} ended the consumer: {refusal.code} {refusal.text}"
            self.inboxes.end(queue, Failure(Outcome.STATUS, text))
        self.answered(channel, (refusal, size, now))
        if channel == PUBLISHING:
            for key in [key for key in self.pending if isinstance(key, tuple)]:
                self.answered(key, (refusal, size, now))

    def _part(self, channel: int, content: _Content, frame: Any, size: int, now: float) -> None:
        content.size += size
        if content.header is None:
            content.header = frame.properties
            content.missing = frame.body_size
            if content.missing > self._limit:
                raise ValueError(f"a message of more than {self._limit} bytes")
        else:
            content.parts.append(frame.value)
            content.missing -= len(frame.value)
        if content.missing <= 0:
            del self._contents[channel]
            self._message(channel, content, now)

    def _message(self, channel: int, content: _Content, now: float) -> None:
        method, properties = content.method, content.header
        if method.name == "Basic.Return":
            tag = properties.message_id or ""
            if tag.isdecimal():
                self._returned[int(tag)] = Refusal(method.reply_code, method.reply_text)
            return
        queue = self._queues.get(channel)
        if queue is None:
            return
        headers = {name: _text(value) for name, value in (properties.headers or {}).items()}
        more = (channel, method.delivery_tag)
        data = b"".join(content.parts)
        made = arrived(method.routing_key, data, headers, now, content.size, more)
        self.deliver(queue, made)

    def shut(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.is_open and self.end is None:
            self._send(0, self._amqp.Connection.Close(200, "", 0, 0))
        super().shut()


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes | bytearray) else str(value)


def _refuse(answer: RabbitMQResponse, refusal: Refusal) -> None:
    answer.status = refusal.code
    answer.refused(f"{refusal.code} {refusal.text}", refusal.text.partition(" ")[0])
