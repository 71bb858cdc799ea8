"""The table of members, with what must be cheap kept up to date: who is live, how many are in
each state, and a digest per bucket so that two views are compared by 32 numbers.

The digests cover live members and their incarnations only. Rows of the dead are dropped by each
node in its own time, and a difference in them is no reason to exchange anything.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from hyperscale.cluster.identity import Node, NodeId
from hyperscale.cluster.membership.member import Member, MemberState
from hyperscale.cluster.membership.messages import BUCKETS

# Legal moves of one row; every pair is reachable because rows merge by precedence alone, except
# that a node never becomes alive again without a higher incarnation (checked in `move`).
_LIVE: Final = (MemberState.ALIVE, MemberState.SUSPECT)


class View:
    __slots__ = ("_dead", "_digests", "_live", "_place", "_rows", "get", "suspects")

    def __init__(self) -> None:
        self._rows: dict[NodeId, Member] = {}
        self.get: Callable[[NodeId], Member | None] = self._rows.get
        self._live: list[NodeId] = []  # everyone but us that is alive or suspect
        self._place: dict[NodeId, int] = {}  # index in _live or _dead
        self._dead: list[NodeId] = []  # dead, not left: worth a ping now and then
        self._digests = [0] * BUCKETS
        self.suspects: dict[NodeId, None] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._rows.values())

    @property
    def live(self) -> int:
        """Live members, not counting ourselves."""
        return len(self._live)

    @property
    def digests(self) -> tuple[int, ...]:
        return tuple(self._digests)

    def add(self, node: Node, now: float) -> Member:
        assert node.node_id not in self._rows
        member = Member(node, now)
        member.bucket = bucket(node.node_id)
        self._rows[node.node_id] = member
        self._enlist(self._live, node.node_id)
        self._stamp(member)
        return member

    def move(self, member: Member, state: MemberState, incarnation: int, now: float) -> None:
        assert incarnation >= member.incarnation
        assert incarnation > member.incarnation or state > member.state
        node_id = member.node.node_id
        before = member.state
        self._unstamp(member)
        if before is not state:
            self._relist(node_id, before, state)
        member.state = state
        member.incarnation = incarnation
        member.changed_at = now
        self._stamp(member)

    def remove(self, member: Member) -> None:
        node_id = member.node.node_id
        self._unstamp(member)
        self._relist(node_id, member.state, MemberState.LEFT)
        del self._rows[node_id]

    def sample(
        self, rng: random.Random, count: int, exclude: tuple[NodeId, ...] = ()
    ) -> list[Member]:
        """Up to `count` different live members."""
        live = self._live
        wanted = min(len(live), count + len(exclude))
        chosen = [live[i] for i in rng.sample(range(len(live)), wanted)]
        return [self._rows[c] for c in chosen if c not in exclude][:count]

    def sample_dead(self, rng: random.Random) -> Member | None:
        return self._rows[self._dead[rng.randrange(len(self._dead))]] if self._dead else None

    def bucket_rows(self, buckets: tuple[int, ...]) -> list[Member]:
        wanted = frozenset(buckets)
        rows = [member for member in self._rows.values() if member.bucket in wanted]
        return sorted(rows, key=lambda member: member.node.node_id)

    def count(self, state: MemberState) -> int:
        return sum(member.state is state for member in self._rows.values())

    def stamp_self(self, before: Node | None, after: Node) -> None:
        """We are a row of every other view, so our own digests must cover us too."""
        if before is not None:
            self._digests[bucket(before.node_id)] ^= digest(before.node_id, before.incarnation)
        self._digests[bucket(after.node_id)] ^= digest(after.node_id, after.incarnation)

    def _relist(self, node_id: NodeId, before: MemberState, after: MemberState) -> None:
        self.suspects.pop(node_id, None)
        if after is MemberState.SUSPECT:
            self.suspects[node_id] = None
        if before in _LIVE and after in _LIVE:
            return
        if before in _LIVE:
            self._delist(self._live, node_id)
        elif before is MemberState.DEAD:
            self._delist(self._dead, node_id)
        if after in _LIVE:
            self._enlist(self._live, node_id)
        elif after is MemberState.DEAD:
            self._enlist(self._dead, node_id)

    def _enlist(self, where: list[NodeId], node_id: NodeId) -> None:
        self._place[node_id] = len(where)
        where.append(node_id)

    def _delist(self, where: list[NodeId], node_id: NodeId) -> None:
        place = self._place.pop(node_id)
        last = where.pop()
        if last != node_id:
            where[place] = last
            self._place[last] = place

    def _stamp(self, member: Member) -> None:
        if member.state in _LIVE:
            member.digest = digest(member.node.node_id, member.incarnation)
            self._digests[member.bucket] ^= member.digest

    def _unstamp(self, member: Member) -> None:
        if member.digest:
            self._digests[member.bucket] ^= member.digest
            member.digest = 0


def bucket(node_id: NodeId) -> int:
    return digest(node_id, 0) % BUCKETS


@lru_cache(maxsize=4_096)
def digest(node_id: NodeId, incarnation: int) -> int:
    """63 bits that differ for any two lives; not linear, so that sums of them cannot cancel."""
    text = f"{node_id}\0{incarnation}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1
