"""The first thing a new leader does: find, on a majority, everything that may be committed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hyperscale.ledger.records.api import NotLeader, PeerUnreachable
from hyperscale.ledger.records.messages import Fetch, Fetched, FetchState, Recover, Recovered, State
from hyperscale.ledger.records.replica import Replica
from hyperscale.ledger.records.replicator import PeerClient
from hyperscale.ledger.records.settings import RecordsSettings
from hyperscale.ledger.records.snapshots import PartialState
from hyperscale.ledger.records.states import Role
from hyperscale.runtime.host import Host


class Recovery:
    """One attempt to recover in one term. Ends when the replica leads; cancelled by its caller when
    that takes too long, and may then be tried again."""

    def __init__(
        self,
        host: Host,
        replica: Replica,
        client: PeerClient,
        settings: RecordsSettings,
        *,
        turned: Callable[[], None],
        changed: Callable[[], Awaitable[None]],
        install: Callable[[bytes | bytearray], Awaitable[None]],
    ) -> None:
        """`changed` waits for the next change of the replica; `install` replaces the state."""
        self._host = host
        self._replica = replica
        self._client = client
        self._settings = settings
        self._turned = turned
        self._changed = changed
        self._install = install

    async def run(self, term: int) -> None:
        replica = self._replica
        asking = [
            self._host.tasks.spawn(f"records recover from {peer}", self._ask(peer, term))
            for peer in replica.peers
        ]
        try:
            while (donor := await self._donor(term)) != replica.name:
                await self._adopt(donor, term)
        finally:
            for task in asking:
                task.cancel()
        if replica.role is Role.RECOVERING:
            replica.begin()
            self._turned()

    async def _ask(self, peer: str, term: int) -> None:
        """Until it has promised; again when it is needed again."""
        replica = self._replica
        while replica.leads(term) and replica.role is Role.RECOVERING:
            if not replica.has_answered(peer):
                try:
                    reply = await self._client.ask(peer, Recover(term), Recovered)
                except PeerUnreachable:
                    pass
                else:
                    replica.answered(peer, term, reply)
                    self._turned()
            await self._host.clock.sleep(self._settings.retry_s)

    async def _donor(self, term: int) -> str:
        while True:
            if not self._replica.leads(term):
                raise NotLeader(f"term {term} is over", "a newer leader takes records")
            if self._replica.role is Role.LEADING:
                return self._replica.name  # another call for the same term was first
            donor = self._replica.donor()
            if donor is not None:
                return donor
            await self._changed()

    async def _adopt(self, donor: str, term: int) -> None:
        """Make this log equal to the donor's, which stands still. A donor that falls silent does
        not count as having answered: another majority is needed."""
        replica = self._replica
        first = replica.commit_index + 1
        try:
            while replica.leads(term):
                reply = await self._client.ask(donor, Fetch(term, first), Fetched)
                replica.adopt(term, reply)
                self._turned()
                if not reply.granted:
                    break
                if reply.dropped:
                    await self._fetch_state(donor, term)
                    first = replica.commit_index + 1
                elif reply.entries:
                    first = reply.entries[-1].index + 1
                else:
                    return
        except PeerUnreachable:
            pass
        replica.unanswered(donor)

    async def _fetch_state(self, donor: str, term: int) -> None:
        partial_state, offset = PartialState(self._settings.state_bytes_max), 0
        while (whole := partial_state.whole()) is None:
            part = await self._client.ask(donor, FetchState(term, offset), State)
            if not part.total:
                raise PeerUnreachable(f"{donor} gives no state")
            try:
                taken = partial_state.take(donor, part)
            except ValueError as error:
                raise PeerUnreachable(f"{donor}: {error}") from error
            if taken <= offset:
                raise PeerUnreachable(f"{donor} gives no more of its state")
            offset = taken
        await self._install(whole)
