"""Lines of NATS: whole, in pieces, and made of anything."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.clients.nats import protocol
from hyperscale.clients.nats.protocol import Delivered, LineReader, ProtocolError

WORDS = st.text("abc-.", min_size=1, max_size=5)


@given(WORDS, st.binary(max_size=300), st.dictionaries(WORDS, WORDS, max_size=3), st.integers(1, 9))
def test_a_message_is_read_as_it_was_written(
    subject: str, data: bytes, headers: dict[str, str], piece: int
) -> None:
    wire = protocol.publish(subject, "", headers, data)
    wire = b"PING\r\n" + wire.replace(f"HPUB {subject}".encode(), f"HMSG {subject} 7".encode(), 1)
    reader = LineReader(10_000)
    found = []
    for at in range(0, len(wire), piece):
        found += reader.feed(wire[at : at + piece])
    ping, message = found
    assert ping == ("PING", "")
    assert isinstance(message, Delivered)
    assert (message.subject, message.subscription, message.data) == (subject, 7, data)
    assert (message.headers, message.size) == (headers, len(wire) - 6)


@given(
    st.lists(
        st.sampled_from([b"MSG", b"HMSG", b" a ", b"1 ", b"99 ", b"\r\n", b"NATS/1.0", b": "])
        | st.binary(max_size=5)
    )
)
def test_anything_is_a_line_or_an_error(parts: list[bytes]) -> None:
    with suppress(ProtocolError):
        for one in LineReader(1000).feed(b"".join(parts)):
            assert isinstance(one, protocol.Line | Delivered)
