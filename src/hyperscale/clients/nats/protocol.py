"""The lines of NATS that a client sends and gets, as bytes and back. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

LINE_MAX = 64 * 1024  # an INFO of a large cluster has some thousands of bytes
PING, PONG = b"PING\r\n", b"PONG\r\n"
VERSION = b"NATS/1.0"


class ProtocolError(Exception):
    """What came is not NATS."""


class Line(NamedTuple):
    """`words` of INFO and -ERR are one text."""

    verb: str
    words: str


class Delivered(NamedTuple):
    """`status` is that of a message without data, such as 503 where nobody answers."""

    subject: str
    subscription: int
    reply: str
    status: int
    reason: str
    headers: dict[str, str]
    data: bytes
    size: int


# -- what a client sends ---------------------------------------------------------------------------


def connect(**options: Any) -> bytes:
    return b"CONNECT %b\r\n" % msgspec.json.encode(options)


def publish(subject: str, reply: str, headers: Mapping[str, str], data: bytes) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = b"%b\r\n%b\r\n" % (VERSION, lines.encode())
    words = f"{subject} {reply} " if reply else f"{subject} "
    sizes = b"%d %d" % (len(head), len(head) + len(data))
    return b"".join((b"HPUB ", words.encode(), sizes, b"\r\n", head, data, b"\r\n"))


def subscribe(subject: str, group: str, number: int) -> bytes:
    words = f"{subject} {group}" if group else subject
    return f"SUB {words} {number}\r\n".encode()


# -- what it gets ----------------------------------------------------------------------------------


class LineReader:
    """Cuts what comes into lines and messages, of which none has more than `most` bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._buffer = b""

    def feed(self, data: bytes) -> Iterator[Line | Delivered]:
        """Raises ProtocolError."""
        data = self._buffer + data if self._buffer else data
        at = 0
        while (ends := data.find(b"\r\n", at)) >= 0:
            line = data[at:ends]
            begins = ends + 2
            verb, _, words = line.partition(b" ")
            verb = verb.upper()
            if verb in (b"MSG", b"HMSG"):
                made = self._message(verb == b"HMSG", words, data, begins, begins - at)
                if made is None:
                    break
                message, begins = made
                yield message
            else:
                yield Line(_text(verb), _text(words))
            at = begins
        self._buffer = data[at:]
        if len(self._buffer) > LINE_MAX and self._buffer.find(b"\r\n", 0, LINE_MAX) < 0:
            raise ProtocolError(f"a line of more than {LINE_MAX} bytes")

    def _message(
        self, has_headers: bool, line: bytes, data: bytes, begins: int, line_size: int
    ) -> tuple[Delivered, int] | None:
        words = _text(line).split()
        sizes = words[-2:] if has_headers else words[-1:]
        named = words[: -len(sizes)]
        if len(named) not in (2, 3) or not all(
            one.isdecimal() and one.isascii() and len(one) < 12 for one in (*sizes, named[1])
        ):
            raise ProtocolError(f"a message with the head {line[:60]!r}")
        head, size = (int(sizes[0]) if has_headers else 0), int(sizes[-1])
        if size > self._most:
            raise ProtocolError(f"a message of more than {self._most} bytes")
        ends = begins + size
        if head > size:
            raise ProtocolError("headers that are longer than their message")
        if len(data) < ends + 2:
            return None
        if data[ends : ends + 2] != b"\r\n":
            raise ProtocolError("a message that is longer than its head says")
        status, reason, headers = _headers(data[begins : begins + head]) if head else (0, "", {})
        reply = named[2] if len(named) == 3 else ""
        body = data[begins + head : ends]
        whole = line_size + size + 2
        made = Delivered(named[0], int(named[1]), reply, status, reason, headers, body, whole)
        return made, ends + 2


def _headers(head: bytes) -> tuple[int, str, dict[str, str]]:
    first, *lines = _text(head).split("\r\n")
    if not first.startswith(VERSION.decode()):
        raise ProtocolError(f"headers that begin with {first[:20]!r}")
    code, _, reason = first[len(VERSION) :].strip().partition(" ")
    found = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            found[name] = value.strip()
    return int(code) if code.isdecimal() and code.isascii() else 0, reason, found


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def info(line: Line) -> dict[str, Any]:
    """What a server says of itself. Raises ProtocolError."""
    try:
        told = msgspec.json.decode(line.words, type=dict[str, Any]) if line.verb == "INFO" else None
    except msgspec.DecodeError:
        told = None
    if told is None:
        raise ProtocolError(f"{f'{line.verb} {line.words}'[:60]!r} in place of its INFO")
    return told
