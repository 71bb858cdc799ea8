"""A connection to a broker of MQTT: messages and their acknowledgements, both ways."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

from hyperscale.clients.contract import Call
from hyperscale.clients.messages import BrokerChannel, arrived
from hyperscale.clients.mqtt import packets
from hyperscale.clients.mqtt.packets import Acknowledgement, PacketError, PacketReader
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.network import Network
from hyperscale.workload.replies import MQTTResponse
from hyperscale.workload.results import Outcome

KEEPALIVE_S = 60
IDENTIFIERS = 65_535
_ENDS = (packets.PUBACK, packets.PUBCOMP, packets.SUBACK)


class Session(BrokerChannel):
    goodbye = packets.GOODBYE
    __slots__ = ("_answers_ping", "_held", "_in_flight", "_last", "_most", "_reader", "_timer")

    def __init__(self, network: Network, most: int, where: str, sock: socket.socket) -> None:
        self._reader = PacketReader(most)
        self._last = 0
        self._held: set[int] = set()  # messages of QoS 2 that came and were not released
        self._in_flight = 0
        self._most = IDENTIFIERS  # that may be in flight
        self._answers_ping = True
        self._timer: asyncio.TimerHandle | None = None
        self.begin_broker(network, most, where, sock)

    async def greet(self, user: str, password: str) -> None:
        """Raises Failure."""
        waiting = self.wait_for(0)
        self.control(packets.connect(user, password, KEEPALIVE_S))
        said, _, _ = await waiting
        if said.reason >= packets.FAILURE:
            raise Failure(Outcome.STATUS, f"{self.where} refused the connection: {said}")
        self._most = said.properties.get(packets.RECEIVE_MAXIMUM, IDENTIFIERS) or IDENTIFIERS
        keepalive_s = said.properties.get(packets.SERVER_KEEPALIVE, KEEPALIVE_S)
        if keepalive_s:
            self._ping(keepalive_s)

    async def publish(
        self, call: Call, answer: MQTTResponse, topic: str, data: bytes, qos: int, *rest: Any
    ) -> None:
        if not qos:
            call.begin()
            await self.put(call, packets.publish(topic, data, qos, rest[0], 0, rest[1]()))
            return
        while self._in_flight >= self._most and self.end is None:
            await self.change()
        self._in_flight += 1
        try:
            identifier = self._identifier()
            call.begin()
            made = packets.publish(topic, data, qos, rest[0], identifier, rest[1]())
            await self._acknowledged(call, answer, identifier, made)
        finally:
            self._in_flight -= 1
            self.wake()

    async def subscribe(self, call: Call, answer: MQTTResponse, topic: str, qos: int) -> None:
        identifier = self._identifier()
        self.inboxes.open(topic)  # messages may come with the acknowledgement
        try:
            made = packets.subscribe(topic, qos, identifier)
            await self._acknowledged(call, answer, identifier, made)
        except BaseException:
            self.inboxes.forget(topic)
            raise
        if not answer.ok:
            self.inboxes.forget(topic)

    async def _acknowledged(
        self, call: Call, answer: MQTTResponse, identifier: int, made: bytes
    ) -> None:
        waiting = self.wait_for(identifier)
        try:
            await self.put(call, made)
            said, size, at = await waiting
        finally:
            self.pending.pop(identifier, None)
        call.got(size, at, at)
        answer.status = said.reason
        if said.reason >= packets.FAILURE:
            answer.refused(str(said), packets.REASONS.get(said.reason, ""))

    def _identifier(self) -> int:
        while True:
            self._last = self._last % IDENTIFIERS + 1
            if self._last not in self.pending:
                return self._last

    def received(self, data: bytes, now: float) -> None:
        try:
            if 0 in self.pending and self._reader.is_empty and data[0] >> 4 != packets.CONNACK:
                raise PacketError(f"{data[:20]!r} in place of a CONNACK")
            for first, body, size in self._reader.feed(data):
                self._take(first, body, size, now)
                if self.end is not None:
                    return
        except PacketError as error:
            self.over(Outcome.PROTOCOL, f"does not speak MQTT 5: it sent {error}")

    def _take(self, first: int, body: bytes, size: int, now: float) -> None:
        kind = first >> 4
        if kind == packets.PUBLISH:
            self._message(first, body, size, now)
        elif kind == packets.PINGRESP:
            self._answers_ping = True
        elif kind == packets.CONNACK and 0 in self.pending:
            self.answered(0, (packets.acknowledgement(kind, body), size, now))
        elif kind in _ENDS:
            said = packets.acknowledgement(kind, body)
            self.answered(said.packet, (said, size, now))
        elif kind == packets.PUBREC:
            self._first_half(packets.acknowledgement(kind, body), size, now)
        elif kind == packets.PUBREL:
            identifier = packets.acknowledgement(kind, body).packet
            self._held.discard(identifier)
            self.control(packets.acknowledge(packets.PUBCOMP, identifier))
        elif kind == packets.DISCONNECT:
            said = packets.acknowledgement(kind, body)
            self.over(Outcome.STATUS, f"ended the connection: {said}")
        else:
            raise PacketError(f"a packet of the kind {kind}")

    def _first_half(self, said: Acknowledgement, size: int, now: float) -> None:
        if said.reason >= packets.FAILURE:
            self.answered(said.packet, (said, size, now))
        else:
            self.control(packets.acknowledge(packets.PUBREL, said.packet))

    def _message(self, first: int, body: bytes, size: int, now: float) -> None:
        came = packets.published(first, body)
        if came.qos == 1:
            self.control(packets.acknowledge(packets.PUBACK, came.packet))
        elif came.qos == 2:
            self.control(packets.acknowledge(packets.PUBREC, came.packet))
            if came.packet in self._held:
                return
            self._held.add(came.packet)
        for pattern in self.inboxes:
            if packets.matches(pattern, came.topic):
                made = arrived(came.topic, came.data, came.properties.user, now, size)
                self.deliver(pattern, made)
                return

    def _ping(self, keepalive_s: int) -> None:
        if not self._answers_ping:
            self.over(Outcome.RESET, f"did not answer a ping within {keepalive_s / 2:g} s")
            return
        if self._timer is not None:
            self._answers_ping = False
            self.control(packets.PINGREQ)
        self._timer = self._loop.call_later(keepalive_s / 2, self._ping, keepalive_s)

    def shut(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with suppress(OSError):
            super().shut()
