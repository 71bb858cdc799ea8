"""What a frame of a connection says: a verb, whom it answers, and perhaps a message.

    verb  id     number  version  name length | name ... | body ...
    u8    u32    u32     u8       u8

`id` is chosen by the side that started the exchange; answers repeat it. `number` is the time left
in milliseconds for REQUEST and SUBSCRIBE, and how many more updates are welcome for CREDIT. Only
the body is ever compressed, so that a kind can be judged by its first bytes.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, NamedTuple

from hyperscale.wire import compression
from hyperscale.wire.compression import THRESHOLD_BYTES
from hyperscale.wire.errors import Malformed, Reason, Refused
from hyperscale.wire.frames import COMPRESSED
from hyperscale.wire.messages import NAME_BYTES_MAX, Kind, decode_body, encode_body


class Verb(IntEnum):
    HELLO = 1
    WELCOME = 2
    REQUEST = 3
    SEND = 4
    REPLY = 5
    REFUSED = 6
    FAILED = 7
    CANCEL = 8
    SUBSCRIBE = 9
    UPDATE = 10
    END = 11
    CREDIT = 12
    PING = 13
    PONG = 14


# Plain numbers for the code that runs per message: looking up an enum member takes longer than
# comparing it.
REQUEST, SEND, SUBSCRIBE = int(Verb.REQUEST), int(Verb.SEND), int(Verb.SUBSCRIBE)
REPLY, UPDATE = int(Verb.REPLY), int(Verb.UPDATE)
ASKING = frozenset({REQUEST, SEND, SUBSCRIBE})

HEADER = struct.Struct("!BIIBB")
HEADER_BYTES = HEADER.size
OVERHEAD_BYTES = 1 + HEADER_BYTES + NAME_BYTES_MAX
NUMBER_MAX = 2**32 - 1

# Frame prefix and header in one go: one call per message instead of two.
_FRAME_HEADER = struct.Struct("!IBBIIBB")
_AFTER_LENGTH = 1 + HEADER_BYTES
_pack = _FRAME_HEADER.pack


class Envelope(NamedTuple):
    verb: int
    id: int
    number: int
    version: int
    name: bytes
    body: bytes


def pack_message(verb: int, id: int, number: int, kind: Kind, message: object) -> bytes:
    """A whole frame. Raises Refused when the message is larger than its kind allows."""
    body = encode_body(kind, message)
    flags = 0
    if len(body) >= THRESHOLD_BYTES:
        packed = compression.compress(body)
        if packed is not None:
            body, flags = packed, COMPRESSED
    name = kind.wire_name
    length = _AFTER_LENGTH + len(name) + len(body)
    return _pack(length, flags, verb, id, number, kind.version, len(name)) + name + body


def pack_plain(verb: int, id: int = 0, number: int = 0, body: bytes = b"") -> bytes:
    """A whole frame of the protocol itself, without a kind."""
    return _pack(_AFTER_LENGTH + len(body), 0, verb, id, number, 0, 0) + body


def unpack(payload: bytes) -> Envelope:
    """Raises Malformed."""
    if len(payload) < HEADER_BYTES:
        raise Malformed("a frame too short to say anything")
    verb, id, number, version, name_bytes = HEADER.unpack_from(payload)
    start = HEADER_BYTES + name_bytes
    if start > len(payload):
        raise Malformed("a frame that ends inside the name of its kind")
    return Envelope(verb, id, number, version, payload[HEADER_BYTES:start], payload[start:])


def unpack_beginning(payload: bytes) -> Envelope | None:
    """As `unpack`, of a frame still arriving; None when the name is not there yet."""
    if len(payload) < HEADER_BYTES or len(payload) < HEADER_BYTES + payload[HEADER_BYTES - 1]:
        return None
    return unpack(payload)


def read_message(kind: Kind, flags: int, body: bytes) -> Any:
    """The struct inside a body. Raises Refused, naming the kind."""
    if flags & COMPRESSED:
        try:
            body = compression.decompress(body, kind.max_bytes)
        except Malformed as error:
            raise Refused(kind.name, str(error), code=Reason.MALFORMED) from None
    return decode_body(kind, body)
