"""The words members say to each other, as tagged msgspec arrays with limits.

Datagrams: ping, ack, ping-request, relayed ack, nack, gossip. Each carries its sender in full and
updates about third parties in whatever room is left. Streams: a summary of one's view, then the
differing parts of both views. In front of each message stand the protocol version and a tag of
the cluster's name, so that strangers are refused before anything is decoded. One typed pass
decodes a message with all its updates and limits. None of these structs can be part of a cycle,
so the garbage collector need not know them (`gc=False`).
"""

from __future__ import annotations

import struct
import zlib
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from hyperscale.cluster.coordinates import Coordinate
from hyperscale.cluster.identity import Endpoint, Incarnation, Name, Node, NodeId

PROTOCOL_VERSION: Final = 1
_HEADER: Final = struct.Struct(">BI")
HEADER_BYTES: Final = _HEADER.size

UPDATES_MAX: Final = 64  # more cannot fit in a datagram
ACCUSERS_MAX: Final = 8
BUCKETS: Final = 32  # parts of a view that are compared and exchanged apart
EXCHANGE_BYTES_MAX: Final = 8 * 1024 * 1024  # ten thousand members with room to spare

Sequence32 = Annotated[int, Meta(ge=0)]
Accusers = Annotated[tuple[Name, ...], Meta(max_length=ACCUSERS_MAX)]


class Refused(Exception):
    """A datagram or stream message that is not for us or not well formed; `reason` is a counter
    name: "version", "cluster", "malformed", "impostor"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


# --- updates about a member, spread by gossip -------------------------------------------------


class Alive(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=0):
    node: Node

    @property
    def node_id(self) -> NodeId:
        return self.node.node_id

    @property
    def incarnation(self) -> int:
        return self.node.incarnation


class Suspect(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    node_id: Name
    incarnation: Incarnation
    accusers: Accusers


class Dead(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    node_id: Name
    incarnation: Incarnation
    declared_by: Name


class Left(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=3):
    node_id: Name
    incarnation: Incarnation


Update = Alive | Suspect | Dead | Left


# --- messages ---------------------------------------------------------------------------------


class Sender(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Who speaks, where it is on the map, and the newest heartbeat of its role: opaque bytes with
    a version that grows within one incarnation."""

    node: Node
    coordinate: Coordinate | None = None
    heartbeat_version: int = 0
    heartbeat: bytes = b""


Updates = Annotated[list[Update], Meta(max_length=UPDATES_MAX)]


class Ping(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="p"):
    sender: Sender
    sequence: Sequence32
    target: Name  # an old address may have a new owner: only the addressee answers
    updates: Updates


class Ack(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="a"):
    sender: Sender
    sequence: Sequence32
    updates: Updates


class PingRequest(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="r"):
    """Please ping `target` for me and tell me within `wait_s`: an ack if it answered, else a
    nack, which proves that at least you and I can talk."""

    sender: Sender
    sequence: Sequence32
    target: Name
    address: Endpoint
    wait_s: Annotated[float, Meta(gt=0.0, le=60.0)]
    updates: Updates


class RelayedAck(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="i"):
    sender: Sender
    sequence: Sequence32
    target: Node
    updates: Updates


class Nack(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="n"):
    sender: Sender
    sequence: Sequence32
    target: Name
    updates: Updates


class Gossip(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="g"):
    sender: Sender
    updates: Updates


Datagram = Ping | Ack | PingRequest | RelayedAck | Nack | Gossip


class ViewEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One row of a view."""

    state: Annotated[int, Meta(ge=0, le=3)]
    incarnation: Incarnation
    node: Node
    accusers: Accusers = ()


class Summary(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="s"):
    """A number per bucket of the view; equal numbers mean equal members."""

    sender: Sender
    digests: Annotated[tuple[int, ...], Meta(min_length=BUCKETS, max_length=BUCKETS)]


class Difference(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="d"):
    """My rows in the buckets that differ."""

    sender: Sender
    buckets: Annotated[tuple[int, ...], Meta(max_length=BUCKETS)]
    entries: list[ViewEntry]


Exchanged = Summary | Difference

# --- bytes ------------------------------------------------------------------------------------

_UNDECODABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_encoder = msgspec.msgpack.Encoder()
_datagrams: msgspec.msgpack.Decoder[Datagram] = msgspec.msgpack.Decoder(Datagram)
_exchanges: msgspec.msgpack.Decoder[Exchanged] = msgspec.msgpack.Decoder(Exchanged)


def header(cluster: str) -> bytes:
    return _HEADER.pack(PROTOCOL_VERSION, zlib.crc32(cluster.encode()))


def size_of(update: Update) -> int:
    """Bytes it takes in a message."""
    return len(_encoder.encode(update))


def encode(head: bytes, message: Datagram | Exchanged) -> bytes:
    return head + _encoder.encode(message)


def decode_datagram(head: bytes, data: bytes) -> Datagram:
    if not data.startswith(head):
        raise _stranger(head, data)
    try:
        return _datagrams.decode(data[HEADER_BYTES:])
    except _UNDECODABLE:
        raise Refused("malformed") from None


def decode_exchange(head: bytes, data: bytes) -> Exchanged:
    if not data.startswith(head):
        raise _stranger(head, data)
    try:
        return _exchanges.decode(data[HEADER_BYTES:])
    except _UNDECODABLE:
        raise Refused("malformed") from None


def check_speaker(sender: Sender, speaker: NodeId | None) -> None:
    """`speaker` is who proved to have sent it, where that is known."""
    if speaker is not None and speaker != sender.node.node_id:
        raise Refused("impostor")


def _stranger(head: bytes, data: bytes) -> Refused:
    if len(data) < HEADER_BYTES:
        return Refused("malformed")
    return Refused("version" if data[0] != head[0] else "cluster")
