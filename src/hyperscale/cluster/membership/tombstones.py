"""Memory of nodes that are gone from the view, so that stale talk cannot bring them back.

A tombstone refuses everything said about incarnations up to the one that ended. The owner itself
returns by exceeding it. Bounded: the oldest stone goes first.
"""

from __future__ import annotations

from hyperscale.cluster.identity import NodeId


class Tombstones:
    __slots__ = ("_maximum", "_stones")

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._stones: dict[NodeId, tuple[int, float]] = {}

    def __len__(self) -> int:
        return len(self._stones)

    def put(self, node_id: NodeId, incarnation: int, until: float) -> None:
        known = self._stones.pop(node_id, None)
        if known is not None:
            incarnation, until = max(incarnation, known[0]), max(until, known[1])
        elif len(self._stones) >= self._maximum:
            del self._stones[next(iter(self._stones))]
        self._stones[node_id] = (incarnation, until)

    def incarnation(self, node_id: NodeId, now: float) -> int | None:
        """The incarnation that ended, while the stone stands."""
        stone = self._stones.get(node_id)
        if stone is None:
            return None
        if stone[1] <= now:
            del self._stones[node_id]
            return None
        return stone[0]

    def remove(self, node_id: NodeId) -> None:
        self._stones.pop(node_id, None)
