"""Large messages that are still arriving, by who sends them.

Half a message is kept until its other half comes, for as long as its sender likes. So one node has
only so many bytes on their way to us at once, over all of its connections. Managers are not
counted: they send each other the log.
"""

from __future__ import annotations

from collections import Counter

from hyperscale.wire.identity import Identity

# Two of the largest messages there are, and some.
ARRIVING_BYTES_MAX = 128 * 1024 * 1024


class Arriving:
    def __init__(self) -> None:
        self._bytes: Counter[str] = Counter()

    def take(self, peer: Identity, size: int) -> bool:
        """Whether a message of that size may come."""
        if peer.role == "manager":
            return True
        if self._bytes[peer.node_id] + size > ARRIVING_BYTES_MAX:
            return False
        self._bytes[peer.node_id] += size
        return True

    def give_back(self, peer: Identity, size: int) -> None:
        if peer.role == "manager":
            return
        self._bytes[peer.node_id] -= size
        if self._bytes[peer.node_id] <= 0:
            del self._bytes[peer.node_id]
