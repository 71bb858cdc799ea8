"""The packets of MQTT 5 that a client sends and gets, as bytes and back. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

# The upper half of the first byte.
CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK = 2, 3, 4, 5, 6, 7, 9
PINGRESP, DISCONNECT = 13, 14

PINGREQ = b"\xc0\x00"
GOODBYE = b"\xe0\x00"
LENGTH_MAX = 268_435_455  # of four bytes with seven bits each
TEXT_MAX = 65_535

SERVER_KEEPALIVE, RECEIVE_MAXIMUM, REASON_STRING, USER_PROPERTY = 0x13, 0x21, 0x1F, 0x26
_SIZES = {
    **dict.fromkeys((0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A), 1),
    **dict.fromkeys((SERVER_KEEPALIVE, RECEIVE_MAXIMUM, 0x22, 0x23), 2),
    **dict.fromkeys((0x02, 0x11, 0x18, 0x27), 4),
}
_TEXTS = frozenset({0x03, 0x08, 0x09, 0x12, 0x15, 0x16, 0x1A, 0x1C, REASON_STRING})
_SUBSCRIPTION_IDENTIFIER = 0x0B

FAILURE = 0x80  # reason codes from here on are failures
REASONS = {
    0x80: "unspecified error",
    0x81: "malformed packet",
    0x82: "protocol error",
    0x83: "implementation specific error",
    0x84: "unsupported protocol version",
    0x85: "client identifier not valid",
    0x86: "bad user name or password",
    0x87: "not authorized",
    0x88: "server unavailable",
    0x89: "server busy",
    0x8A: "banned",
    0x8B: "server shutting down",
    0x8C: "bad authentication method",
    0x8D: "keep alive timeout",
    0x8E: "session taken over",
    0x8F: "topic filter invalid",
    0x90: "topic name invalid",
    0x91: "packet identifier in use",
    0x92: "packet identifier not found",
    0x93: "receive maximum exceeded",
    0x94: "topic alias invalid",
    0x95: "packet too large",
    0x96: "message rate too high",
    0x97: "quota exceeded",
    0x98: "administrative action",
    0x99: "payload format invalid",
    0x9A: "retain not supported",
    0x9B: "QoS not supported",
    0x9C: "use another server",
    0x9D: "server moved",
    0x9E: "shared subscriptions not supported",
    0x9F: "connection rate exceeded",
    0xA0: "maximum connect time",
    0xA1: "subscription identifiers not supported",
    0xA2: "wildcard subscriptions not supported",
}


class PacketError(Exception):
    """What came is not MQTT 5."""


class Properties(dict[int, Any]):
    @property
    def user(self) -> dict[str, str]:
        return dict(self.get(USER_PROPERTY, ()))


class Acknowledgement(NamedTuple):
    """Of the packet with that identifier; of a connection, 0."""

    packet: int
    reason: int
    properties: Properties

    def __str__(self) -> str:
        name = REASONS.get(self.reason, f"reason code {self.reason:#x}")
        said = self.properties.get(REASON_STRING)
        return f"{name}: {said}" if said else name


class Published(NamedTuple):
    topic: str
    data: bytes
    qos: int
    packet: int
    properties: Properties


# -- what a client sends ---------------------------------------------------------------------------


def text(value: str) -> bytes:
    return counted(value.encode())


def counted(data: bytes) -> bytes:
    if len(data) > TEXT_MAX:
        raise PacketError(f"a text of {len(data)} bytes, of which MQTT has {TEXT_MAX} at most")
    return len(data).to_bytes(2, "big") + data


def number(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    if value > LENGTH_MAX:
        raise PacketError(f"a packet of {value} bytes, of which MQTT has {LENGTH_MAX} at most")
    made = bytearray()
    while True:
        value, low = divmod(value, 128)
        made.append(low | (0x80 if value else 0))
        if not value:
            return bytes(made)


def packet(first: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return b"".join((bytes((first,)), number(len(body)), body))


def connect(user: str, password: str, keepalive_s: int) -> bytes:
    """Without an identifier: the server makes one up."""
    flags = 0x02 | (0x80 if user else 0) | (0x40 if password else 0)
    return packet(
        0x10,
        text("MQTT"),
        bytes((5, flags)),
        keepalive_s.to_bytes(2, "big"),
        b"\0",
        text(""),
        text(user) if user else b"",
        text(password) if password else b"",
    )


def user_properties(headers: Mapping[str, str]) -> bytes:
    body = b"".join(b"\x26" + text(name) + text(value) for name, value in headers.items())
    return number(len(body)) + body


def publish(
    topic: str, data: bytes, qos: int, retain: bool, identifier: int, headers: Mapping[str, str]
) -> bytes:
    return packet(
        PUBLISH << 4 | qos << 1 | retain,
        text(topic),
        identifier.to_bytes(2, "big") if qos else b"",
        user_properties(headers),
        data,
    )


def subscribe(topic: str, qos: int, identifier: int) -> bytes:
    return packet(0x82, identifier.to_bytes(2, "big"), b"\0", text(topic), bytes((qos,)))


def acknowledge(kind: int, identifier: int) -> bytes:
    return packet(kind << 4 | (2 if kind == PUBREL else 0), identifier.to_bytes(2, "big"))


# -- what it gets ----------------------------------------------------------------------------------


class PacketReader:
    """Cuts what comes into packets of at most `most` bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._buffer = b""

    @property
    def is_empty(self) -> bool:
        return not self._buffer

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes, int]]:
        """First byte, body and size of each packet. Raises PacketError."""
        data = self._buffer + data if self._buffer else data
        at = 0
        while (head := _length(data, at + 1)) is not None:
            length, begins = head
            if length > self._most:
                raise PacketError(f"a packet of more than {self._most} bytes")
            ends = begins + length
            if ends > len(data):
                break
            yield data[at], data[begins:ends], ends - at
            at = ends
        self._buffer = data[at:]


def _length(data: bytes, at: int) -> tuple[int, int] | None:
    """A number and where it ends; None: it is not whole."""
    value = 0
    for shift in range(4):
        if at + shift >= len(data):
            return None
        byte = data[at + shift]
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value, at + shift + 1
    raise PacketError("a length of more than four bytes")


class _Fields:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    @property
    def is_over(self) -> bool:
        return self._at >= len(self._body)

    def take(self, size: int) -> bytes:
        begins, self._at = self._at, self._at + size
        if self._at > len(self._body):
            raise PacketError("a packet that is too short")
        return self._body[begins : self._at]

    def rest(self) -> bytes:
        return self._body[self._at :]

    def integer(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def text(self) -> str:
        try:
            return self.take(self.integer(2)).decode()
        except UnicodeDecodeError:
            raise PacketError("a text that is not UTF-8") from None

    def number(self) -> int:
        found = _length(self._body, self._at)
        if found is None:
            raise PacketError("a packet that is too short")
        value, self._at = found
        return value

    def properties(self) -> Properties:
        length = self.number()
        fields = _Fields(self.take(length))
        found = Properties()
        while not fields.is_over:
            kind = fields.number()
            if kind == USER_PROPERTY:
                found.setdefault(kind, []).append((fields.text(), fields.text()))
            elif kind in _SIZES:
                found[kind] = fields.integer(_SIZES[kind])
            elif kind in _TEXTS:
                found[kind] = fields.take(fields.integer(2)).decode("utf-8", "replace")
            elif kind == _SUBSCRIPTION_IDENTIFIER:
                fields.number()
            else:
                raise PacketError(f"a property {kind:#x}, which there is not")
        return found


def acknowledgement(kind: int, body: bytes) -> Acknowledgement:
    """What a server says of a connection, a message, a subscription or the end. Raises
    PacketError."""
    fields = _Fields(body)
    if kind == DISCONNECT:
        identifier = 0
    elif kind == CONNACK:
        identifier, _ = 0, fields.take(1)
    else:
        identifier = fields.integer(2)
    if kind == SUBACK:
        properties = fields.properties()
        return Acknowledgement(identifier, fields.integer(1), properties)
    reason = 0 if fields.is_over else fields.integer(1)
    properties = Properties() if fields.is_over else fields.properties()
    return Acknowledgement(identifier, reason, properties)


def published(first: int, body: bytes) -> Published:
    """A message. Raises PacketError."""
    fields = _Fields(body)
    topic, qos = fields.text(), first >> 1 & 3
    if qos == 3:
        raise PacketError("a message of QoS 3")
    identifier = fields.integer(2) if qos else 0
    properties = fields.properties()
    return Published(topic, fields.rest(), qos, identifier, properties)


def matches(pattern: str, topic: str) -> bool:
    """Whether a message at that topic is of the subscription."""
    if pattern.startswith("$share/"):
        pattern = pattern.split("/", 2)[-1]
    if topic.startswith("$") and pattern[:1] in ("+", "#"):
        return False
    words, names = pattern.split("/"), topic.split("/")
    for at, word in enumerate(words):
        if word == "#":
            return True
        if at >= len(names) or word not in ("+", names[at]):
            return False
    return len(words) == len(names)
