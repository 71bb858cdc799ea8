"""Frames against another library's, in any pieces; and bytes of all kinds, which break nothing."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame, Opcode
from websockets.protocol import Protocol, Side, State

from hyperscale.websocket_frames import BINARY, COMPRESSED, TEXT, Deflate, FrameReader, frame

MOST = 300_000
payloads = st.one_of(
    st.binary(max_size=300),
    st.integers(0, 70_000).map(lambda size: bytes(range(256)) * (size // 256 + 1)),
)
messages = st.lists(st.tuples(st.sampled_from([TEXT, BINARY]), payloads), max_size=6)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in pairwise(places)]


def as_text(kind: int, payload: bytes) -> bytes:
    return payload.decode("latin-1").encode()[:MOST] if kind == TEXT else payload


@given(messages, st.lists(st.integers(0, 1_000_000), max_size=8), st.booleans())
def test_what_we_read_is_what_another_library_sent(
    sent: list[tuple[int, bytes]], cuts: list[int], in_fragments: bool
) -> None:
    data, told = b"", []
    for kind, payload in sent:
        content = as_text(kind, payload)
        told.append((kind, content))
        half = len(content) // 2
        parts = [content[:half], content[half:]] if in_fragments else [content]
        for at, part in enumerate(parts):
            opcode = Opcode(kind) if at == 0 else Opcode.CONT
            data += Frame(opcode, part, fin=at == len(parts) - 1).serialize(mask=False)
    reader = FrameReader(False, MOST)
    heard = [event for piece in pieces(data, cuts) for event in reader.feed(piece)]
    assert reader.error is None
    assert heard == told


@given(messages, st.booleans())
def test_what_we_send_another_library_reads(
    sent: list[tuple[int, bytes]], compressed: bool
) -> None:
    peer = Protocol(Side.SERVER, state=State.OPEN, max_size=None)
    if compressed:
        peer.extensions = [PerMessageDeflate(False, False, 15, 15)]
    ours = Deflate() if compressed else None
    for kind, payload in sent:
        content = as_text(kind, payload)
        packed = ours.compress(content) if ours else content
        peer.receive_data(frame(kind | (COMPRESSED if ours else 0), packed, masked=True))
        (heard,) = peer.events_received()
        assert isinstance(heard, Frame)
        assert (heard.opcode, bytes(heard.data)) == (kind, content)


@given(messages)
def test_compression_there_and_back(sent: list[tuple[int, bytes]]) -> None:
    peer = Protocol(Side.SERVER, state=State.OPEN, max_size=None)
    peer.extensions = [PerMessageDeflate(False, False, 15, 15)]
    reader = FrameReader(False, MOST, Deflate())
    for kind, payload in sent:
        content = as_text(kind, payload)
        (peer.send_text if kind == TEXT else peer.send_binary)(content)
        heard = [event for part in peer.data_to_send() for event in reader.feed(part)]
        assert heard == [(kind, content)]


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5), st.booleans())
def test_any_bytes_end_in_events_or_an_error(data: bytes, cuts: list[int], masked: bool) -> None:
    whole = FrameReader(masked, 100, Deflate())
    events = list(whole.feed(data))
    assert all(len(payload) <= 125 for _, payload in events)
    parts = FrameReader(masked, 100, Deflate())
    in_pieces = [event for piece in pieces(data, cuts) for event in parts.feed(piece)]
    assert in_pieces == events
    assert str(parts.error) == str(whole.error)
