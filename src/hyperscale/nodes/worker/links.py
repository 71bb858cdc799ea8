"""Connections from a worker to its managers: one per address, each with its own circuit (B T-22).

Answers that tell whether a manager leads are noted as contact. The others are not: whoever refuses
has heard us, and may still be unable to command us.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hyperscale.cluster.overload import Category, Circuits, CircuitSettings, CircuitStatus
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

    @property
    def cut_off(self) -> bool:
        return self._contact.is_cut_off(self._clock.now())

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
        answer = await peer.request(message, expect, timeout_s)
        if peer.identity is not None:
            self._note(now, peer.identity.node_id, answer)
        return answer

    def _note(self, asked_at: float, manager: str, answer: object) -> None:
        contact = self._contact
        if isinstance(answer, ProgressAnswer) and answer.known:
            contact.led(asked_at, manager, answer.term)
        elif isinstance(answer, Registered):
            contact.know(answer.voters)
            if answer.accepted or answer.elected:
                contact.led(asked_at, manager, answer.term)
            elif answer.leader != manager:  # one that leads and does not take us is no contact
                now = self._clock.now()
                contact.heard(asked_at, now, manager, answer.term, answer.leaderless_s)

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
