"""Elections under a secret that workers do not have: what opens, and as what."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hyperscale.nodes.member.shared_port import Channel, MakeSealer, SharedPort
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


def sealing(name: str, secret: str) -> MakeSealer:
    return lambda epoch: Sealer(name, epoch, secret)


def opened(name: str, managers: str | None = MANAGERS) -> tuple[SharedPort, Wire, list[Any]]:
    wire, heard = Wire(), []
    voters = None if managers is None else sealing(name, managers)
    port = SharedPort(SimpleNamespace(network=wire), sealing(name, SHARED), voters)  # type: ignore[arg-type]
    coroutine = port.open(HERE, 1)
    with pytest.raises(StopIteration):
        coroutine.send(None)
    for channel in Channel:
        port.attach(channel, lambda data, sender, at=channel: heard.append((at, data, sender.host)))
    return port, wire, heard


def test_managers_hear_each_other_in_both_channels() -> None:
    m1, sent, _ = opened("m1")
    _, arriving, heard = opened("m2")
    for channel in Channel:
        m1.send(channel, HERE, b"x")
    for datagram in sent.sent:
        arriving.received(datagram, HERE)
    assert heard == [(Channel.MEMBERSHIP, b"x", "m1"), (Channel.ELECTION, b"x", "m1")]


@pytest.mark.parametrize("channel", Channel)
def test_the_secret_of_workers_opens_membership_only(channel: Channel) -> None:
    port, wire, heard = opened("m2")
    forged = Sealer("m1", 5, SHARED).seal(bytes((channel,)) + b"x")
    wire.received(forged, HERE)
    assert [one for one, _, _ in heard] == [Channel.MEMBERSHIP][: channel == Channel.MEMBERSHIP]
    assert port.dropped["wrong_secret"] == (channel == Channel.ELECTION)


def test_the_secret_of_managers_is_for_elections_only() -> None:
    port, wire, heard = opened("m2")
    wire.received(Sealer("m1", 5, MANAGERS).seal(bytes((Channel.MEMBERSHIP,)) + b"x"), HERE)
    assert (heard, port.dropped["wrong_secret"]) == ([], 1)


def test_a_worker_opens_no_election() -> None:
    m1, sent, _ = opened("m1")
    worker, wire, heard = opened("w1", managers=None)
    m1.send(Channel.ELECTION, HERE, b"x")
    wire.received(sent.sent[0], HERE)
    assert (heard, worker.dropped["unknown_key"]) == ([], 1)


def test_a_later_life_seals_elections_anew() -> None:
    m1, sent, _ = opened("m1")
    _, arriving, heard = opened("m2")
    m1.renew(9)
    m1.send(Channel.ELECTION, HERE, b"x")
    arriving.received(sent.sent[0], HERE)
    assert heard == [(Channel.ELECTION, b"x", "m1")]
