"""One way into every decoder of the wire, for property tests and the fuzzer.

`feed_all` may raise nothing: each decoder's typed refusals are caught here, and anything else is
a bug. It asserts that no decoder keeps more than its limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from hyperscale.nodes.member.bootstrap import PROBES
from hyperscale.nodes.member.exchanges import EXCHANGES
from hyperscale.nodes.member.queries import QUERIES
from hyperscale.nodes.protocol.jobs import JOBS, AskJobs, SteerJob, SubmitJob
from hyperscale.nodes.protocol.parts import PARTS, LeaveWorker, ReportProgress
from hyperscale.nodes.protocol.records import RECORDS
from hyperscale.wire import compression
from hyperscale.wire.certificates import identity_of
from hyperscale.wire.envelope import (
    Envelope,
    Verb,
    pack_message,
    pack_plain,
    read_message,
    unpack,
    unpack_beginning,
)
from hyperscale.wire.errors import Failure, Malformed, Refusal, Refused
from hyperscale.wire.frames import FrameDecoder
from hyperscale.wire.handshake import Greeting, Introduction, Threshold, _judge
from hyperscale.wire.identity import Identity
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
REAL = Registry()
for _more in (JOBS, PARTS, RECORDS, QUERIES, PROBES, EXCHANGES):
    REAL.include(_more)
KINDS = sorted(REAL, key=lambda kind: kind.name)
ME = Introduction(
    Identity(
        node_id="m1",
        incarnation=1,
        role="manager",
        cluster_id="c",
        environment_id="e",
        datacenter="d",
    )
)


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


def feed_messages(data: bytes) -> None:
    """The first byte chooses one of the kinds that nodes really send."""
    if data:
        kind = KINDS[data[0] % len(KINDS)]
        for flags in (0, 1):
            with suppress(Refused):
                read_message(kind, flags, data[1:])


def feed_greeting(data: bytes) -> None:
    with suppress(Refused, Malformed):
        _judge(data, ME, None)
    with suppress(Refused, Malformed):
        _judge(ME.greeting(), ME, data)


def frames() -> Iterator[bytes]:
    yield pack_message(Verb.REQUEST, 1, 1000, EVERYTHING, Everything("x", 1, b"b", True, ("a", 2)))
    yield pack_message(Verb.REPLY, 1, 0, EVERYTHING, Everything("x" * 3_000, 1))
    yield pack_plain(Verb.HELLO, body=ME.greeting())
    yield SEALER.seal(b"hello")


def messages() -> Iterator[bytes]:
    for message in (
        AskJobs(),
        SubmitJob(job_id="x", body=b"ab" * 100),
        SteerJob(job_id="a", action="cancel"),
        ReportProgress(worker="w", incarnation=1, free_cores=1),
        LeaveWorker(worker="w", incarnation=1),
    ):
        at = KINDS.index(REAL.of(message))
        yield bytes((at,)) + msgspec.msgpack.encode(message)


def greetings() -> Iterator[bytes]:
    yield ME.greeting()
