"""Arbitrary bytes into every decoder: typed refusals, bounded memory, nothing else."""

import tracemalloc

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from hyperscale.wire.envelope import Verb, pack_message, pack_plain
from hyperscale.wire.frames import COMPRESSED, encode_frame
from hyperscale.wire.sealed import Sealer
from tests.fuzz.wire_bytes import EVERYTHING, LIMIT_BYTES, SECRET, Everything, Inner, feed_all
from tests.fuzz.wire_bytes import feed_datagram as feed_one_datagram

messages = st.builds(
    Everything,
    text=st.text(max_size=50),
    number=st.integers(-(2**63), 2**63 - 1),
    blob=st.binary(max_size=50),
    table=st.dictionaries(st.text(max_size=5), st.integers(0, 10), max_size=3),
    rows=st.lists(st.builds(Inner, name=st.text(max_size=5)), max_size=3),
)


@given(st.binary(max_size=2000))
@example(b"\xff\xff\xff\xff\x00")
@example(b"\x00\x00\x00\x00\x00")
@example(b"\x91" * 1500)
@example(b"\xdf\xff\xff\xff\xff")
@example(b"\xc6\xff\xff\xff\xff")
@example(b"\x28\xb5\x2f\xfd\xa0\xff\xff\xff\xff")
def test_arbitrary_bytes(data: bytes) -> None:
    feed_all(data)


@given(messages, st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=6))
def test_bent_frames(message: Everything, bends: list[tuple[int, int]]) -> None:
    frame = bytearray(pack_message(Verb.REQUEST, 1, 1000, EVERYTHING, message))
    for at, value in bends:
        frame[at % len(frame)] = value
    feed_all(bytes(frame))


@given(st.sampled_from(list(Verb)), st.binary(max_size=100), st.booleans())
def test_every_verb_with_any_body(verb: Verb, body: bytes, compressed: bool) -> None:
    frame = pack_plain(verb, 1, 2, body)
    feed_all(encode_frame(frame[5:], COMPRESSED if compressed else 0))


@given(st.binary(max_size=800), st.integers(0, 5000), st.integers(1, 255))
def test_bent_datagrams(data: bytes, at: int, bend: int) -> None:
    datagram = bytearray(Sealer("friend", SECRET).seal(data))
    datagram[at % len(datagram)] ^= bend
    feed_one_datagram(bytes(datagram))


@given(st.integers(0, 2**32 - 1))
def test_announced_sizes_allocate_nothing(size: int) -> None:
    """Lengths inside msgpack and zstd are claims; believing one would show here."""
    claims = [
        b"\xc6" + size.to_bytes(4, "big"),
        b"\xdb" + size.to_bytes(4, "big"),
        b"\xdd" + size.to_bytes(4, "big"),
        b"\x28\xb5\x2f\xfd\xa0" + size.to_bytes(4, "little"),
        msgspec.msgpack.encode({"type": "fuzz.everything", "text": "x", "number": 1})[:-1]
        + b"\xdd"
        + size.to_bytes(4, "big"),
    ]
    for claim in claims:
        feed_all(claim)
    tracemalloc.start()
    try:
        for claim in claims:
            feed_all(claim)
        assert tracemalloc.get_traced_memory()[1] < 64 * LIMIT_BYTES
    finally:
        tracemalloc.stop()
