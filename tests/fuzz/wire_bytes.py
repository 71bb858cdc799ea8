"""One way into every decoder of the wire, for property tests and the fuzzer.

`feed_all` may raise nothing: each decoder's typed refusals are caught here, and anything else is
a bug. It asserts that no decoder keeps more than its limit.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from hyperscale.wire import compression
from hyperscale.wire.certificates import identity_of
from hyperscale.wire.envelope import Envelope, read_message, unpack, unpack_beginning
from hyperscale.wire.errors import Failure, Malformed, Refusal, Refused
from hyperscale.wire.frames import FrameDecoder
from hyperscale.wire.handshake import Greeting, Threshold
from hyperscale.wire.messages import Priority, Registry, decode_plain
from hyperscale.wire.sealed import Sealer

LIMIT_BYTES = 4096
SECRET = "a secret for fuzzing only 4711"


class Inner(msgspec.Struct, array_like=True):
    name: str
    values: list[float] = []


class Everything(msgspec.Struct, tag="fuzz.everything"):
    """A field of every shape that messages use."""

    text: str
    number: int
    blob: bytes = b""
    flag: bool = False
    pair: tuple[str, int] | None = None
    table: dict[str, int] = {}
    rows: list[Inner] = []


REGISTRY = Registry()
EVERYTHING = REGISTRY.add(Everything, priority=Priority.LOW, max_bytes=LIMIT_BYTES)
SEALER = Sealer("fuzzed", SECRET)


def feed_all(data: bytes) -> None:
    feed_frames(data)
    feed_frames(data, chunk=7)
    feed_body(0, data)
    feed_body(1, data)
    feed_datagram(data)
    with suppress(Refused):
        identity_of(data)
    with suppress(Malformed):
        unpack_beginning(data)
        open_envelope(0, unpack(data))
    with suppress(Malformed):
        assert len(compression.decompress(data, LIMIT_BYTES)) <= LIMIT_BYTES
    for struct in (Threshold, Greeting, Refusal, Failure):
        with suppress(Malformed):
            decode_plain(struct, data)


def feed_frames(data: bytes, chunk: int = 0) -> None:
    decoder = FrameDecoder(LIMIT_BYTES, lambda flags, size, start: len(start) > 3 or None)
    step = chunk or max(len(data), 1)
    with suppress(Malformed):
        for at in range(0, len(data), step):
            decoder.feed(data[at : at + step])
            for flags, payload in decoder:
                open_envelope(flags, unpack(payload))
            assert decoder.buffered_bytes <= LIMIT_BYTES + step


def open_envelope(flags: int, envelope: Envelope) -> None:
    with suppress(Refused):
        kind = REGISTRY.named(envelope.name, envelope.version)
        read_message(kind, flags, envelope.body)


def feed_body(flags: int, data: bytes) -> None:
    with suppress(Refused):
        assert isinstance(read_message(EVERYTHING, flags, data), Everything)


def feed_datagram(data: bytes) -> None:
    before = SEALER.dropped.total()
    assert SEALER.open(data) is None
    assert SEALER.dropped.total() == before + 1
