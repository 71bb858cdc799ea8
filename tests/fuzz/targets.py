"""What is fuzzed, by name: what takes the bytes, and some bytes to begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tests.fixtures.http_replies import REPLIES
from tests.fuzz import (
    cluster_bytes,
    gate_bytes,
    http_bytes,
    stored_bytes,
    stream_bytes,
    wire_bytes,
)


class Target(NamedTuple):
    feed: Callable[[bytes], None]
    """Raises nothing but for a bug."""
    seeds: Callable[[], Iterable[bytes]]


TARGETS = {
    "frames": Target(wire_bytes.feed_all, wire_bytes.frames),
    "messages": Target(wire_bytes.feed_messages, wire_bytes.messages),
    "greetings": Target(wire_bytes.feed_greeting, wire_bytes.greetings),
    "datagrams": Target(cluster_bytes.feed_datagram, cluster_bytes.datagrams),
    "ledger": Target(gate_bytes.feed_ledger, gate_bytes.bundles),
    "packed": Target(stored_bytes.feed_packed, stored_bytes.packed),
    "states": Target(stored_bytes.feed_state, stored_bytes.states),
    "wal": Target(stored_bytes.feed_wal, stored_bytes.segments),
    "bundles": Target(stored_bytes.feed_bundle, stored_bytes.bundles),
    "http2": Target(stream_bytes.feed_http2, stream_bytes.answers),
    "websocket": Target(stream_bytes.feed_websocket, stream_bytes.messages),
    "http": Target(
        http_bytes.feed_all,
        lambda: [reply.data for reply in REPLIES.values() if len(reply.data) <= 1_000],
    ),
}
