"""Elections under a secret that workers do not have: what opens, and as what."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from hyperscale.nodes.member.shared_port import Channel, SharedPort
from hyperscale.runtime.host import Address
from hyperscale.wire.sealed import Sealer

SHARED = "correct horse battery staple"
MANAGERS = "another horse for managers alone"
HERE = Address("10.0.0.1", 7000)


class Wire:
    """A network that keeps what is sent and hands over what a test says."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.address = HERE
        self.received: Callable[[bytes, Address], None]

    async def bind(self, address: Address, received: Callable[[bytes, Address], None]) -> Wire:
        self.received = received
        return self

    def send(self, to: Address, data: bytes) -> None:
        self.sent.append(data)


def opened(
    name: str, managers: str | None = MANAGERS, previous: str | None = None
) -> tuple[SharedPort, Wire, list[Any]]:
    wire, heard = Wire(), []
    voters = None if managers is None else Sealer(name, managers, previous)
    port = SharedPort(SimpleNamespace(network=wire), Sealer(name, SHARED), voters)  # type: ignore[arg-type]
    coroutine = port.open(HERE)
    with pytest.raises(StopIteration):
        coroutine.send(None)
    for channel in Channel:
        port.attach(channel, lambda data, sender, at=channel: heard.append((at, data, sender.host)))
    return port, wire, heard


def carry(one: Wire, other: Wire) -> None:
    """Whatever each has sent to the other, until both are silent."""
    while one.sent or other.sent:
        for source, to in ((one, other), (other, one)):
            datagrams, source.sent = source.sent, []
            for datagram in datagrams:
                to.received(datagram, HERE)


def forge(wire: Wire, name: str, secret: str, data: bytes) -> None:
    """In anybody's name, answering what it is asked."""
    sealer = Sealer(name, secret)
    under_way = [sealer.seal(data)]
    while under_way:
        wire.received(under_way.pop(0), HERE)
        answers, wire.sent = wire.sent, []
        for answer in answers:
            asked = sealer.open(answer)
            assert asked is not None
            under_way += asked.answers


def test_managers_hear_each_other_in_both_channels() -> None:
    m1, there, _ = opened("m1")
    _, here, heard = opened("m2")
    for channel in Channel:
        m1.send(channel, HERE, b"x")
    carry(there, here)
    assert heard == [(Channel.MEMBERSHIP, b"x", "m1"), (Channel.ELECTION, b"x", "m1")]


@pytest.mark.parametrize("channel", Channel)
def test_the_secret_of_workers_opens_membership_only(channel: Channel) -> None:
    port, wire, heard = opened("m2")
    forge(wire, "m1", SHARED, bytes((channel,)) + b"x")
    assert [one for one, _, _ in heard] == [Channel.MEMBERSHIP][: channel == Channel.MEMBERSHIP]
    assert port.dropped["wrong_secret"] == (channel == Channel.ELECTION)


def test_the_secret_of_managers_is_for_elections_only() -> None:
    port, wire, heard = opened("m2")
    forge(wire, "m1", MANAGERS, bytes((Channel.MEMBERSHIP,)) + b"x")
    assert (heard, port.dropped["wrong_secret"]) == ([], 1)


def test_a_worker_opens_no_election() -> None:
    m1, there, _ = opened("m1")
    worker, here, heard = opened("w1", managers=None)
    m1.send(Channel.ELECTION, HERE, b"x")
    carry(there, here)
    assert (heard, worker.dropped["unknown_key"]) == ([], 1)


def test_the_secret_of_managers_is_changed_without_a_gap() -> None:
    other = "yet another horse of the managers"
    rounds = [(MANAGERS, None), (MANAGERS, other), (other, MANAGERS), (other, None)]
    for before, after in pairwise(rounds):
        m1, there, heard_there = opened("m1", *before)
        m2, here, heard_here = opened("m2", *after)
        for port in (m1, m2):
            port.send(Channel.ELECTION, HERE, b"x")
        carry(there, here)
        assert heard_there == [(Channel.ELECTION, b"x", "m2")]
        assert heard_here == [(Channel.ELECTION, b"x", "m1")]


def test_a_recorded_election_is_not_heard_by_a_restarted_manager() -> None:
    m1, there, _ = opened("m1")
    _, here, heard = opened("m2")
    m1.send(Channel.ELECTION, HERE, b"first")
    carry(there, here)
    m1.send(Channel.ELECTION, HERE, b"x")
    recorded = there.sent[0]
    carry(there, here)
    assert len(heard) == 2
    _, restarted, heard = opened("m2")
    restarted.received(recorded, HERE)
    assert heard == []
