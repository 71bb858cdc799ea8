"""What a gate asks of the log of jobs, whichever store keeps it.

Of all gates one owns a job, and appends to its log; every gate reads it.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hyperscale.ledger.vsr import NotPrimary, Unknown, VsrSettings
from hyperscale.nodes.gate import events
from hyperscale.nodes.gate.events import AnyEvent
from hyperscale.nodes.gate.jobs import GateJobs, condensed
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.member.passing_on import ASK_AGAIN_S
from hyperscale.nodes.protocol.sealing import Sealing
from hyperscale.runtime.host import Address, Host
from hyperscale.wire.errors import Reason, Refused
from hyperscale.wire.peer import Peer
from hyperscale.wire.serving import Call

A = TypeVar("A")


def less(payload: bytes) -> bytes:
    """What is kept of an event of a job that is over."""
    return events.encode(condensed(events.decode(payload))) if payload else payload


def job_id_of(key: str) -> str:
    return hashlib.blake2b(key.encode(), digest_size=8).hexdigest()[:15]


async def answered(call: Call, asked: Awaitable[A]) -> A:
    """What the log answers. Raises Refused when it does not: then the client asks again."""
    try:
        return await asked
    except (NotPrimary, Unknown) as error:
        why = str(error) or "this gate does not own the job any more"
        raise Refused(call.kind.name, why, ASK_AGAIN_S, Reason.OVERLOADED) from None


class JobLedger(ABC):
    def __init__(
        self, host: Host, node: Node, gates: tuple[str, ...], settings: VsrSettings
    ) -> None:
        self.sealing = Sealing(node.settings.secret, node.settings.previous_secret)
        self.jobs = GateJobs(self.sealing)
        self.me = node.settings.id
        self.on_forgotten: list[Callable[[str], None]] = []
        self._host = host
        self._node = node
        self._gates = gates
        self._settings = settings
        self._peers: dict[str, Peer] = {}

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    def resign(self) -> None:
        """The next owners need not wait until a lease has run out."""

    async def close(self) -> None:
        for peer in self._peers.values():
            peer.close()

    # -- who owns a job ------------------------------------------------------------------------

    @abstractmethod
    def members(self, job_id: str) -> tuple[str, ...]:
        """The gates that may own it."""

    @abstractmethod
    def owns(self, job_id: str) -> bool: ...

    @abstractmethod
    def owner(self, job_id: str) -> str:
        """As far as is known here; the first of its members where nothing is."""

    @abstractmethod
    def owned_groups(self) -> list[str]: ...

    @abstractmethod
    def hand_over(self, job_id: str) -> None:
        """To the next of its members, at once."""

    # -- what is known of it -------------------------------------------------------------------

    @abstractmethod
    def is_unheard_of(self, job_id: str) -> bool:
        """It would be ours to know, and nobody has told us."""

    async def is_nowhere(self, job_id: str) -> bool:
        """It is certain that there is no such job, though others were not asked. Raises Unknown."""
        return False

    @abstractmethod
    def is_nothing(self, job_id: str) -> bool:
        """Somebody wanted to submit it, and nothing came of it."""

    @abstractmethod
    def is_being_forgotten(self, job_id: str) -> bool: ...

    # -- changes -------------------------------------------------------------------------------

    @abstractmethod
    async def begin(self, job_id: str) -> None:
        """Take part in a job that somebody wants to submit. Nothing happens where it is known, or
        not for us. Raises Unknown."""

    @abstractmethod
    async def append(self, job_id: str, event: AnyEvent) -> None:
        """Returns when it is committed. Raises NotPrimary; Unknown when it may be, or not."""

    async def append_surely(self, job_id: str, event: AnyEvent) -> None:
        """Until it is committed. Raises NotPrimary."""
        while True:
            try:
                return await self.append(job_id, event)
            except Unknown:
                await self._host.clock.sleep(self._settings.retry_s)

    @abstractmethod
    async def forget(self, job_id: str) -> None:
        """Returns when it is committed that the job is over and done with. Raises NotPrimary,
        Unknown."""

    def _forgotten(self, job_id: str) -> None:
        self.jobs.forget(job_id)
        for forgotten in self.on_forgotten:
            forgotten(job_id)

    # -- other gates ---------------------------------------------------------------------------

    def peer(self, gate: str) -> Peer | None:
        """None: nobody knows where it is."""
        member = self._node.membership.core.member(gate)
        if member is None:
            return None
        address = Address(*member.node.tcp)
        known = self._peers.get(gate)
        if known is None or known.address != address:
            if known is not None:
                known.close()
            known = Peer(self._node.endpoint, address, expect_role="gate", expect_node=gate)
            self._peers[gate] = known
        return known
