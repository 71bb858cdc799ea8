"""Connections from a worker to its managers: one per address, each with its own circuit (B T-22).

Every answer of a manager is noted as contact, a refusal too: whoever refuses has heard us. What it
is worth depends on whether that manager leads, which only some answers tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hyperscale.cluster.calm import Category, Circuits, CircuitSettings, CircuitStatus
from hyperscale.nodes.protocol.parts import ProgressAnswer, Registered
from hyperscale.nodes.worker.contact import Contact
from hyperscale.runtime.host import Address, Host
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.errors import DeadlineExceeded, Disconnected, Refused, RemoteFailed, WireError
from hyperscale.wire.peer import Peer

R = TypeVar("R")

# Shorter than elsewhere (10 s): a manager that is back must hear of us before `fence_s` is over.
CIRCUIT_OPEN_S = 1.0


class Links:
    def __init__(self, host: Host, contact: Contact) -> None:
        self._clock = host.clock
        self._contact = contact
        self._circuits = Circuits(CircuitSettings(open_s=CIRCUIT_OPEN_S))
        self._peers: dict[Address, Peer] = {}
        self.endpoint: Endpoint | None = None

    async def ask(self, address: Address, message: object, expect: type[R], timeout_s: float) -> R:
        """Raises the types of `wire.errors`; Disconnected at once while the circuit is open."""
        now = self._clock.now()
        circuit = self._circuits.of(now, str(address))
        ticket = circuit.allow(now)
        if ticket is None:
            raise Disconnected(f"{address} has not answered lately")
        try:
            answer = await self._request(now, address, message, expect, timeout_s)
        except (Refused, RemoteFailed):
            circuit.succeeded(self._clock.now(), ticket)
            raise
        except DeadlineExceeded:
            circuit.failed(self._clock.now(), ticket, Category.TIMEOUT)
            raise
        except WireError:
            circuit.failed(self._clock.now(), ticket, Category.NETWORK)
            raise
        circuit.succeeded(self._clock.now(), ticket)
        return answer

    def tell(self, address: Address, message: object) -> bool:
        """One way, over a connection that is there and takes it; False when there is none."""
        return self._peer(address).tell(message)

    async def ask_patiently(
        self, address: Address, message: object, expect: type[R], timeout_s: float
    ) -> R:
        """What a manager may take its time to answer: a late one says nothing about it."""
        now = self._clock.now()
        if self._circuits.is_open(now, str(address)):
            raise Disconnected(f"{address} has not answered lately")
        return await self._request(now, address, message, expect, timeout_s)

    async def _request(
        self, now: float, address: Address, message: object, expect: type[R], timeout_s: float
    ) -> R:
        peer = self._peer(address)
        try:
            answer = await peer.request(message, expect, timeout_s)
        except (Refused, RemoteFailed):
            if peer.connected:  # not turned away at the door, perhaps by somebody else
                self._heard(now, peer)
            raise
        self._heard(now, peer)
        if isinstance(answer, Registered):
            self._contact.know(answer.voters)
        if _leads(answer):
            self._contact.led(now)
        return answer

    def _heard(self, asked_at: float, peer: Peer) -> None:
        if peer.identity is not None:
            self._contact.heard(asked_at, peer.identity.node_id)

    def circuits(self) -> dict[str, CircuitStatus]:
        """By the manager's address."""
        return self._circuits.statuses(self._clock.now())

    def keep(self, addresses: Iterable[Address]) -> None:
        """Hang up on everybody else."""
        wanted = set(addresses)
        for address in [address for address in self._peers if address not in wanted]:
            self._peers.pop(address).close()

    def close(self) -> None:
        self.keep(())

    def _peer(self, address: Address) -> Peer:
        peer = self._peers.get(address)
        if peer is None:
            assert self.endpoint is not None, "not started"
            peer = self._peers[address] = Peer(self.endpoint, address, expect_role="manager")
        return peer


def _leads(answer: object) -> bool:
    """Only said under a valid lease."""
    if isinstance(answer, Registered):
        return answer.accepted
    return isinstance(answer, ProgressAnswer) and answer.known
