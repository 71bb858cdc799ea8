"""Consistent hash ring: who owns a key, and who comes next.

Every node owns the arcs before its 150 points, so shares differ by about 1/sqrt(150) = 8 %, and a
node that comes or goes moves only the keys on its own arcs, about 1/N of all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from hyperscale.cluster.placement.hashing import stable_hash

RING_SIZE = 2**32


class RingEmpty(LookupError):
    def __init__(self) -> None:
        super().__init__("no gates available: the ring is empty")


class HashRing:
    """Name nodes by what everybody knows of them, their advertised TCP address, or rings differ."""

    def __init__(self, nodes: Iterable[str] = (), points_per_node: int = 150) -> None:
        if points_per_node < 1:
            raise ValueError("points_per_node must be at least 1")
        self._points_per_node = points_per_node
        self._nodes: set[str] = set()
        self._points: list[tuple[int, str]] = []
        for node in sorted(nodes):
            self.add(node)

    @property
    def nodes(self) -> list[str]:
        return sorted(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, node: str) -> bool:
        return node in self._nodes

    def add(self, node: str) -> bool:
        """False if it was there already. Points that collide lie in the order of node names."""
        if node in self._nodes:
            return False
        self._nodes.add(node)
        self._points += [
            (stable_hash(f"{node}:{i}") % RING_SIZE, node) for i in range(self._points_per_node)
        ]
        self._points.sort()
        return True

    def remove(self, node: str) -> bool:
        if node not in self._nodes:
            return False
        self._nodes.discard(node)
        self._points = [point for point in self._points if point[1] != node]
        return True

    def owner(self, key: str) -> str:
        """First node clockwise from the key."""
        if not self._points:
            raise RingEmpty
        return self._points[self._start(key)][1]

    def owners(self, key: str, count: int = 2) -> list[str]:
        """The owner and its backups: the first `count` distinct nodes clockwise, or all of them
        if there are fewer."""
        if not self._points:
            raise RingEmpty
        wanted = min(count, len(self._nodes))
        start = self._start(key)
        found: dict[str, None] = {}
        for step in range(len(self._points)):
            if len(found) == wanted:
                break
            found[self._points[(start + step) % len(self._points)][1]] = None
        return list(found)

    def _start(self, key: str) -> int:
        """Index of the first point at or after the key's position, around the ring."""
        position = stable_hash(key) % RING_SIZE
        return bisect_right(self._points, (position, "")) % len(self._points)
