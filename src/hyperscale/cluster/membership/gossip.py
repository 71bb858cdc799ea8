"""Datagrams that carry nothing but news, sent only while there is some."""

from __future__ import annotations

from hyperscale.cluster.membership.effects import Send
from hyperscale.cluster.membership.messages import Gossip, encode
from hyperscale.cluster.membership.station import Station, Timer


class GossipRounds:
    __slots__ = ("_station",)

    def __init__(self, station: Station) -> None:
        self._station = station

    def round(self) -> None:
        """The same datagram to a few members: packed and encoded once."""
        station, config = self._station, self._station.config
        targets = station.view.sample(station.rng, config.gossip_fanout)
        if targets and len(station.news):
            empty = encode(station.header, Gossip(station.sender(), []))
            room = config.datagram_bytes_max - config.seal_bytes_max - len(empty) - 2
            limit = config.retransmits(station.population)
            updates = station.news.take(room, limit, len(targets))
            data = encode(station.header, Gossip(station.sender(), updates))
            for member in targets:
                station.out.append(Send(member.node.udp, data))
        station.deadlines.cancel((Timer.GOSSIP, ""))
        if len(station.news) and targets:
            station.deadlines.set((Timer.GOSSIP, ""), station.now + config.gossip_interval_s)
        if station.leaving and (station.me.node_id not in station.news or not targets):
            station.deadlines.set((Timer.LEAVING, ""), station.now)
