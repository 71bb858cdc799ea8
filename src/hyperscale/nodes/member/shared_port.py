"""One UDP port for everything a node says in datagrams, sealed as one.

Membership and election each believe that they own a port. A byte in front tells them apart, so a
firewall has one port to open. All members seal under the cluster secret. Where voters have a secret
of their own, elections are sealed under that one, and nothing that any other member could have
sealed is taken for an election. The election addresses voters by name; where a voter is right now,
membership knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import IntEnum

from hyperscale.runtime.host import Address, Datagrams, Host
from hyperscale.wire.sealed import DATAGRAM_BYTES_MAX, Sealer

Received = Callable[[bytes, Address], None]
CHANNEL_BYTES = 1


class Channel(IntEnum):
    MEMBERSHIP = 1
    ELECTION = 2


_ELECTION = bytes((Channel.ELECTION,))


class SharedPort:
    def __init__(self, host: Host, sealer: Sealer | None, voters: Sealer | None = None) -> None:
        """No `sealer` leaves datagrams open, on loopback. `voters` seals elections; None: the same
        that seals everything."""
        self._host = host
        self._sealer = sealer
        self._voters = voters
        self._port: Datagrams | None = None
        self._channels: dict[int, Received] = {}
        self.counts: Counter[str] = Counter()

    async def open(self, address: Address) -> None:
        self._port = await self._host.network.bind(address, self._received)

    @property
    def address(self) -> Address:
        assert self._port is not None
        return self._port.address

    @property
    def overhead_bytes(self) -> int:
        """What is around a channel's own bytes in a datagram."""
        sealed = 0 if self._sealer is None else DATAGRAM_BYTES_MAX - self._sealer.payload_bytes_max
        return sealed + CHANNEL_BYTES

    @property
    def dropped(self) -> Counter[str]:
        """Datagrams nobody here looked at, by reason."""
        sealers = [one for one in (self._sealer, self._voters) if one is not None]
        return sum((one.dropped for one in sealers), self.counts.copy())

    def attach(self, channel: Channel, received: Received) -> ChannelPort:
        self._channels[channel] = received
        return ChannelPort(self, channel)

    def detach(self, channel: Channel) -> None:
        self._channels.pop(channel, None)

    def send(self, channel: Channel, to: Address, data: bytes) -> None:
        assert self._port is not None
        framed = bytes((channel,)) + data
        sealer = self._sealer
        if channel is Channel.ELECTION and self._voters is not None:
            sealer = self._voters
        self._port.send(to, framed if sealer is None else sealer.seal(framed))

    def _received(self, data: bytes, source: Address) -> None:
        assert self._port is not None
        sender, voters = source, self._voters
        by_voters = voters is not None and voters.knows(data)
        sealer = voters if by_voters else self._sealer
        if sealer is not None:
            opened = sealer.open(data)
            if opened is None:
                return
            for answer in opened.answers:
                self._port.send(source, answer)
            if opened.data is None:
                return
            data, sender = opened.data, Address(opened.sender, 0)
        if voters is not None and by_voters != (data[:1] == _ELECTION):
            self.counts["wrong_secret"] += 1
            return
        received = self._channels.get(data[0]) if data else None
        if received is None:
            self.counts["unknown_channel"] += 1
            return
        received(data[CHANNEL_BYTES:], sender)


class ChannelPort:
    """`Datagrams` of one channel."""

    def __init__(self, port: SharedPort, channel: Channel) -> None:
        self._port = port
        self._channel = channel
        self._open = True

    @property
    def address(self) -> Address:
        return self._port.address

    def send(self, to: Address, data: bytes) -> None:
        if self._open:
            self._port.send(self._channel, to, data)

    def close(self) -> None:
        self._open = False
        self._port.detach(self._channel)


class NamedPort(ChannelPort):
    """Takes node ids for addresses. Whoever is not known yet is not reached, as on any network."""

    def __init__(
        self, port: SharedPort, channel: Channel, find: Callable[[str], Address | None]
    ) -> None:
        super().__init__(port, channel)
        self._find = find

    def send(self, to: Address, data: bytes) -> None:
        where = self._find(to.host)
        if where is not None:
            super().send(where, data)
