"""Comparing whole views over a stream, so that what gossip missed is found in the end.

The caller sends 32 digests; the callee answers with its rows in the buckets that differ; the
caller sends back its own rows of those. Equal views cost a few hundred bytes whatever the size
of the cluster, and one difference costs one bucket.
"""

from __future__ import annotations

from msgspec.structs import replace

from hyperscale.cluster.identity import Endpoint, NodeId
from hyperscale.cluster.membership.effects import Exchange
from hyperscale.cluster.membership.member import Member, State
from hyperscale.cluster.membership.messages import Difference, Entry, Summary
from hyperscale.cluster.membership.rumors import Rumors
from hyperscale.cluster.membership.station import Station, Timer
from hyperscale.cluster.membership.view import bucket


class Exchanges:
    __slots__ = ("_rumors", "_station")

    def __init__(self, station: Station, rumors: Rumors) -> None:
        self._station = station
        self._rumors = rumors

    def periodic(self) -> None:
        """Ask one random live member that we may ask."""
        station = self._station
        self.schedule()
        for member in station.partners():
            self.begin(member.node.tcp)

    def schedule(self) -> None:
        station = self._station
        interval_s = station.config.exchange_interval(station.population)
        jittered_s = interval_s * (0.75 + 0.5 * station.rng.random())
        station.deadlines.set((Timer.EXCHANGE, ""), station.now + jittered_s)

    def begin(self, to: Endpoint) -> None:
        self._station.counts["exchanges"] += 1
        self._station.out.append(Exchange(to))

    def summary(self) -> Summary:
        return Summary(self._station.sender(), self._station.view.digests)

    def answer(self, summary: Summary) -> Difference:
        """The callee's part: its rows where the two differ."""
        self._rumors.greet(summary.sender)
        mine = self._station.view.digests
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
        self._rumors.greet(difference.sender)
        for entry in difference.entries:
            self._rumors.merge(entry, teller)

    def _contested(self, node_id: NodeId, differing: tuple[int, ...]) -> tuple[int, ...]:
        """The speaker's own bucket when we think ill of it: it must learn that."""
        place = bucket(node_id)
        contested = self._station.belief(node_id) is not None
        return (place,) if contested and place not in differing else ()

    def _difference(self, buckets: tuple[int, ...]) -> Difference:
        station = self._station
        entries = [self._entry(member) for member in station.view.bucket_rows(buckets)]
        if bucket(station.me.node_id) in buckets:
            state = State.LEFT if station.leaving else State.ALIVE
            entries.append(Entry(state, station.me.incarnation, station.me))
        return Difference(station.sender(), buckets, entries)

    def _entry(self, member: Member) -> Entry:
        node = member.node
        if node.incarnation != member.incarnation and member.state is State.ALIVE:
            node = replace(node, incarnation=member.incarnation)
        accusers = self._station.accusers(member) if member.state is State.SUSPECT else ()
        return Entry(member.state, member.incarnation, node, accusers)
