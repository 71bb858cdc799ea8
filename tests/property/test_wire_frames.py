"""Frames and replay windows over random histories."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.wire.errors import Malformed
from hyperscale.wire.frames import FrameDecoder, encode_frame
from hyperscale.wire.replay import WINDOW, Window

payloads = st.lists(st.binary(min_size=0, max_size=200), max_size=30)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(payloads, st.lists(st.integers(0, 10_000), max_size=40))
def test_any_split_gives_the_same_frames(sent: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(encode_frame(payload, index % 2) for index, payload in enumerate(sent))
    decoder = FrameDecoder()
    got: list[tuple[int, bytes]] = []
    for piece in pieces(stream, cuts):
        decoder.feed(piece)
        got += decoder
    assert got == [(index % 2, payload) for index, payload in enumerate(sent)]
    assert decoder.buffered_bytes == 0


@given(payloads)
def test_one_byte_at_a_time(sent: list[bytes]) -> None:
    decoder = FrameDecoder()
    got: list[bytes] = []
    for byte in b"".join(encode_frame(payload) for payload in sent):
        decoder.feed(bytes([byte]))
        got += [payload for _, payload in decoder]
    assert got == sent


@given(st.integers(1001, 2**32 - 1), st.lists(st.integers(0, 50), max_size=5))
def test_the_limit_holds_before_the_payload_arrives(length: int, cuts: list[int]) -> None:
    decoder = FrameDecoder(limit_bytes=1000)
    start = encode_frame(b"fine") + length.to_bytes(4, "big") + b"\0"
    got: list[bytes] = []
    refused = False
    for piece in pieces(start, cuts):
        decoder.feed(piece)
        try:
            for _, payload in decoder:
                got.append(payload)
        except Malformed:
            refused = True
    assert refused
    assert got == [b"fine"]


@given(payloads, st.sets(st.integers(0, 29)), st.lists(st.integers(0, 10_000), max_size=60))
def test_screened_frames_vanish_without_being_kept(
    sent: list[bytes], unwanted: set[int], cuts: list[int]
) -> None:
    """What a screen refuses never piles up; all others arrive, whatever the pieces."""
    marked = [bytes([index in unwanted]) + payload for index, payload in enumerate(sent)]
    stream = b"".join(encode_frame(payload) for payload in marked)

    def screen(flags: int, size: int, beginning: bytes) -> bool | None:
        return bool(beginning[0]) if beginning else None

    decoder = FrameDecoder(screen=screen)
    got: list[bytes] = []
    for piece in pieces(stream, cuts):
        decoder.feed(piece)
        got += [payload for _, payload in decoder]
    wanted = [payload for index, payload in enumerate(marked) if index not in unwanted]
    assert [payload for payload in got if not payload[0]] == wanted
    assert decoder.buffered_bytes == 0


@given(st.lists(st.integers(0, 3 * WINDOW), max_size=200))
def test_no_number_is_accepted_twice(arrivals: list[int]) -> None:
    """And whatever is neither old nor behind the window is accepted."""
    window = Window()
    accepted: set[int] = set()
    for number in arrivals:
        new = window.is_new(number)
        assert new == (number not in accepted and max(accepted, default=-1) - number < WINDOW)
        if new:
            window.mark(number)
            accepted.add(number)
