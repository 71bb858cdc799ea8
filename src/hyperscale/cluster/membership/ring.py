"""The order in which members are probed: shuffled laps, newcomers at a random place.

Every member is visited once per lap, so no member waits longer than two laps, and a walk costs
one step per probe.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from hyperscale.cluster.identity import NodeId


class Ring:
    __slots__ = ("_members", "_next", "_order", "_rng")

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._order: list[NodeId] = []
        self._members: set[NodeId] = set()
        self._next = 0

    def __len__(self) -> int:
        return len(self._members)

    def add(self, node_id: NodeId) -> None:
        if node_id in self._members:
            return
        self._members.add(node_id)
        self._order.insert(self._rng.randint(self._next, len(self._order)), node_id)

    def remove(self, node_id: NodeId) -> None:
        if node_id in self._members:
            self._members.remove(node_id)
            index = self._order.index(node_id)
            del self._order[index]
            if index < self._next:
                self._next -= 1

    def next(self, ready: Callable[[NodeId], bool]) -> NodeId | None:
        """The next member that is ready to be probed; None when a whole lap found none."""
        for _ in range(len(self._order)):
            if self._next >= len(self._order):
                self._rng.shuffle(self._order)
                self._next = 0
            node_id = self._order[self._next]
            self._next += 1
            if ready(node_id):
                return node_id
        return None
