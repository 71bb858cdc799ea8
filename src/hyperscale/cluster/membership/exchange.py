"""Comparing whole views over a stream, so that what gossip missed is found in the end.

The caller sends 32 digests; the callee answers with its rows in the buckets that differ; the
caller sends back its own rows of those. Equal views cost a few hundred bytes whatever the size
of the cluster, and one difference costs one bucket.
"""

from __future__ import annotations

from msgspec.structs import replace

from hyperscale.cluster.identity import Endpoint, NodeId
from hyperscale.cluster.membership.effects import Exchange
from hyperscale.cluster.membership.member import Member, MemberState
from hyperscale.cluster.membership.messages import Difference, Summary, ViewEntry
from hyperscale.cluster.membership.state import SharedState, Timer
from hyperscale.cluster.membership.updates import Updates
from hyperscale.cluster.membership.view import bucket


class Exchanges:
    __slots__ = ("_shared", "_updates")

    def __init__(self, shared: SharedState, updates: Updates) -> None:
        self._shared = shared
        self._updates = updates

    def periodic(self) -> None:
        """Ask one random live member that we may ask."""
        shared = self._shared
        self.schedule()
        for member in shared.partners():
            self.begin(member.node.tcp)

    def schedule(self) -> None:
        shared = self._shared
        interval_s = shared.config.exchange_interval(shared.population)
        jittered_s = interval_s * (0.75 + 0.5 * shared.rng.random())
        shared.deadlines.set((Timer.EXCHANGE, ""), shared.now + jittered_s)

    def begin(self, to: Endpoint) -> None:
        self._shared.counts["exchanges"] += 1
        self._shared.out.append(Exchange(to))

    def summary(self) -> Summary:
        return Summary(self._shared.sender(), self._shared.view.digests)

    def answer(self, summary: Summary) -> Difference:
        """The callee's part: its rows where the two differ."""
        self._updates.greet(summary.sender, proven=True)
        mine = self._shared.view.digests
        differing = tuple(
            index
            for index, (ours, theirs) in enumerate(zip(mine, summary.digests, strict=True))
            if ours != theirs
        )
        belief_bucket = self._contested(summary.sender.node.node_id, differing)
        return self._difference(differing + belief_bucket)

    def reply(self, difference: Difference) -> Difference:
        """The caller's part: merge, then show what we had in the same buckets."""
        buckets = tuple(sorted({index for index in difference.buckets if index >= 0}))
        mine = self._difference(buckets)
        self.merge(difference)
        return mine

    def merge(self, difference: Difference) -> None:
        teller = difference.sender.node.node_id
        self._updates.greet(difference.sender, proven=True)
        for entry in difference.entries:
            self._updates.merge(entry, teller)

    def _contested(self, node_id: NodeId, differing: tuple[int, ...]) -> tuple[int, ...]:
        """The speaker's own bucket when we think ill of it: it must learn that."""
        place = bucket(node_id)
        contested = self._shared.belief(node_id) is not None
        return (place,) if contested and place not in differing else ()

    def _difference(self, buckets: tuple[int, ...]) -> Difference:
        shared = self._shared
        entries = [self._entry(member) for member in shared.view.bucket_rows(buckets)]
        if bucket(shared.me.node_id) in buckets:
            state = MemberState.LEFT if shared.leaving else MemberState.ALIVE
            entries.append(ViewEntry(state, shared.me.incarnation, shared.me))
        return Difference(shared.sender(), buckets, entries)

    def _entry(self, member: Member) -> ViewEntry:
        node = member.node
        if node.incarnation != member.incarnation and member.state is MemberState.ALIVE:
            node = replace(node, incarnation=member.incarnation)
        accusers = self._shared.accusers(member) if member.state is MemberState.SUSPECT else ()
        return ViewEntry(member.state, member.incarnation, node, accusers)
