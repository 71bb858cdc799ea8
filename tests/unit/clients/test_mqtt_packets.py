"""Packets of MQTT: whole, in pieces, and made of anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.clients.mqtt import packets
from hyperscale.clients.mqtt.packets import PacketError, PacketReader


@given(
    st.text(max_size=20),
    st.binary(max_size=300),
    st.sampled_from([0, 1, 2]),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
    st.integers(1, 7),
)
def test_a_message_is_read_as_it_was_written(
    topic: str, data: bytes, qos: int, headers: dict[str, str], piece: int
) -> None:
    wire = packets.publish(topic, data, qos, True, 7, headers)
    reader = PacketReader(10_000)
    found = [
        one
        for at in range(0, len(wire), piece)
        for one in reader.feed(wire[at : at + piece])
    ]  # fmt: skip
    ((first, body, size),) = found
    assert size == len(wire)
    came = packets.published(first, body)
    assert (came.topic, came.data, came.qos) == (topic, data, qos)
    assert came.packet == (7 if qos else 0)
    assert came.properties.user == headers


@given(st.binary(max_size=60))
def test_anything_is_a_packet_or_an_error_that_says_so(data: bytes) -> None:
    try:
        for first, body, _ in PacketReader(1000).feed(data):
            if first >> 4 == packets.PUBLISH:
                packets.published(first, body)
            else:
                packets.acknowledgement(first >> 4, body)
    except PacketError as error:
        assert str(error)  # noqa: PT017 - not all of it is an error


@pytest.mark.parametrize(
    ("pattern", "topic", "is_one"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/b/c", False),
        ("a/+", "a/b", True),
        ("a/+", "a", False),
        ("+/+", "/a", True),
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("#", "a/b", True),
        ("#", "$SYS/a", False),
        ("+/a", "$SYS/a", False),
        ("$SYS/#", "$SYS/a", True),
        ("$share/g/a/+", "a/b", True),
        ("$share/g/a/+", "b/b", False),
    ],
)
def test_which_messages_are_of_a_subscription(pattern: str, topic: str, is_one: bool) -> None:
    assert packets.matches(pattern, topic) is is_one
