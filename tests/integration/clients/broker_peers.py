"""The least that a message broker can be: it takes messages and acknowledges them."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from pamqp import commands, frame
from pamqp.body import ContentBody


class BrokerPeer(asyncio.Protocol):
    """Answers as `server.behaviour` says; what comes before the first message, always."""

    def __init__(self, server: Any, _answer: bytes) -> None:
        self.server = server
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.server.peers.append(transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (size := self.read(self.buffer)) is not None:
            self.buffer = self.buffer[size:]

    def read(self, data: bytes) -> int | None:
        """The size of the packet that was answered; None: it is not whole yet."""
        raise NotImplementedError

    def message(self, acknowledgement: bytes) -> None:
        self.server.seen += 1
        if self.server.behaviour == "echo":
            self.transport.write(acknowledgement)
        elif self.server.behaviour == "closes":
            self.transport.close()


class MQTTPeer(BrokerPeer):
    def read(self, data: bytes) -> int | None:
        if len(data) < 2 or len(data) < 2 + data[1]:  # none of these has 128 bytes
            return None
        packet = data[2 : 2 + data[1]]
        if data[0] >> 4 == 1:
            self.transport.write(b"\x20\x03\x00\x00\x00")
        elif data[0] >> 4 == 3:
            at = 2 + int.from_bytes(packet[:2], "big")
            self.message(b"\x40\x02" + packet[at : at + 2])
        return 2 + len(packet)


class MongoDBPeer(BrokerPeer):
    def read(self, data: bytes) -> int | None:
        if len(data) < 16 or len(data) < int.from_bytes(data[:4], "little"):
            return None
        reply = b"\x11\0\0\0\x01ok\0\0\0\0\0\0\0\xf0\x3f\0"  # {"ok": 1.0}
        head = (21 + len(reply), 1, int.from_bytes(data[4:8], "little"), 2013, 0, 0)
        self.message(struct.pack("<iiiiIB", *head) + reply)
        return int.from_bytes(data[:4], "little")


class NATSPeer(BrokerPeer):
    _taken = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.write(b'INFO {"max_payload":1000000}\r\n')

    def read(self, data: bytes) -> int | None:
        line, ends, rest = data.partition(b"\r\n")
        if not ends:
            return None
        if line.startswith(b"HPUB"):
            size = int(line.split()[-1]) + 2
            self._taken = len(rest) >= size
            return len(line) + 2 + size if self._taken else None
        if line == b"PING":
            if self._taken:
                self.message(b"PONG\r\n")
            else:
                self.transport.write(b"PONG\r\n")
        return len(line) + 2


class RabbitMQPeer(BrokerPeer):
    _answers = {
        "Connection.StartOk": commands.Connection.Tune(0, 131_072, 0),
        "Connection.Open": commands.Connection.OpenOk(),
        "Channel.Open": commands.Channel.OpenOk(),
        "Confirm.Select": commands.Confirm.SelectOk(),
    }
    _messages = 0

    def read(self, data: bytes) -> int | None:
        if data[:4] == b"AMQP" and len(data) >= 8:
            self.transport.write(frame.marshal(commands.Connection.Start(), 0))
            return 8
        if len(data) < 7 or len(data) < 8 + int.from_bytes(data[3:7], "big"):
            return None
        size, channel, came = frame.unmarshal(data)
        answer = self._answers.get(came.name)
        if answer is not None:
            self.transport.write(frame.marshal(answer, channel))
        elif isinstance(came, ContentBody):
            self._messages += 1
            self.message(frame.marshal(commands.Basic.Ack(self._messages), channel))
        return size
