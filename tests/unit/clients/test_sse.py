"""Events of a stream, as the standard of HTML has them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.clients.sse import EventReader


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: one\n\n", [("message", "one", "")]),
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [("message", "YHOO\n+2\n10", "")]),
        (b": note\n\ndata:a\nid: 1\n\ndata:b\n\nid\ndata:  c\n\n",
         [("message", "a", "1"), ("message", "b", "1"), ("message", " c", "")]),
        (b"data\n\ndata\ndata\n\ndata:", [("message", "", ""), ("message", "\n", "")]),
        (b"\xef\xbb\xbfevent: add\r\ndata: 1\r\n\r\n", [("add", "1", "")]),
        (b"event: add\rdata: 1\r\r", [("add", "1", "")]),
        (b"event: nothing\n\nretry: 10\nother\ndata: x\n\n", [("message", "x", "")]),
        (b"data: \xff\n\n", [("message", "\ufffd", "")]),
    ],
)  # fmt: skip
def test_streams(stream: bytes, events: list[tuple[str, str, str]]) -> None:
    reader = EventReader(1000)
    assert [event[:3] for event in reader.feed(stream)] == events
    by_bytes = EventReader(1000)
    told = [event[:3] for at in range(len(stream)) for event in by_bytes.feed(stream[at : at + 1])]
    assert told == events


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_any_bytes_in_any_pieces_are_the_same_events(pieces: list[bytes]) -> None:
    whole, parts = EventReader(10_000), EventReader(10_000)
    assert [event for piece in pieces for event in parts.feed(piece)] == whole.feed(
        b"".join(pieces)
    )


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 500, b"data: x\n" * 60])
def test_an_event_without_end(piece: bytes) -> None:
    reader = EventReader(1000)
    for _ in range(3):
        assert reader.feed(piece) == []
    assert reader.error == "sent an event of more than 1000 bytes"
