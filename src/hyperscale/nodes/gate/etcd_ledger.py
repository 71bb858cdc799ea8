"""Jobs in an etcd that somebody else looks after.

Each gate has one lease there. A job is owned by the gate whose key lives under its lease; when the
lease is over etcd takes the key away, and the others, who watch, want the job. What an owner
appends is refused by etcd once the key is not its own: see `ledger.etcd.store`.

An append that got no answer may have been committed. Before the next one its owner reads what is
there; an event is known again by its `request_of`.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Final

from hyperscale.cluster.placement.rendezvous import rank
from hyperscale.errors import BadInput
from hyperscale.ledger.etcd.store import Change, Compacted, EtcdStore, Written
from hyperscale.ledger.vsr import NotPrimary, Unknown
from hyperscale.nodes.gate import events
from hyperscale.nodes.gate.etcd_held import Held
from hyperscale.nodes.gate.events import AnyEvent, Completed, Ended, Lost, Told, request_of
from hyperscale.nodes.gate.job_ledger import JobLedger, less
from hyperscale.nodes.gate.settings import LedgerSettings
from hyperscale.nodes.member.node import Node
from hyperscale.runtime.etcd import endpoints_of
from hyperscale.runtime.host import Host

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

TTL_S_MIN: Final = 2
"""etcd grants none that is shorter."""
WATCH_S: Final = 20.0
"""A watch whose connection died without a word is not waited for longer than this."""
LOOK_S: Final = 0.1
TURN_S: Final = 0.3
"""A job whose owner is gone is wanted by one gate after the other, so that they share them."""
AT_ONCE_MAX: Final = 50
_GONE: Final = 1 << 60


class EtcdLedger(JobLedger):
    def __init__(
        self,
        host: Host,
        node: Node,
        gates: tuple[str, ...],
        settings: LedgerSettings,
        commit_s: float,
        log: FilteringBoundLogger,
    ) -> None:
        super().__init__(host, node, gates, settings)
        endpoints = endpoints_of(settings.etcd, "")
        timeout_s = min(commit_s, settings.lease_s / 4) if len(endpoints) > 1 else commit_s
        prefix = f"hyperscale-gates/{node.settings.cluster}/{node.settings.env}"
        self._where = settings.etcd
        self._store = EtcdStore(endpoints, settings.access, prefix, timeout_s)
        self._log = log
        self._held: dict[str, Held] = {}
        self._wanted: set[str] = set()
        self._revision = 0
        self._lease = ""
        self._until = 0.0
        self._has_resigned = False
        self._is_away = False

    async def open(self) -> None:
        try:
            await self._read_all()
            await self._renew()
        except Unknown as error:
            raise BadInput(
                f"the jobs cannot be read from {self._where}: {error}",
                "ledger.etcd says where etcd is; ledger.store = vsr does without",
            ) from None
        self._node.spawn_vital("lease in etcd", self._keep_lease())
        self._node.spawn_vital("watch etcd", self._follow())
        self._node.spawn_vital("jobs without an owner", self._take_over())

    def resign(self) -> None:
        self._has_resigned = True
        self._until = 0.0
        self._host.tasks.spawn("resign", self._revoke())

    async def close(self) -> None:
        self._has_resigned = True
        await super().close()
        await self._revoke()
        await self._store.close()

    async def _revoke(self) -> None:
        lease, self._lease = self._lease, ""
        if lease:
            with suppress(Unknown):  # it ends by itself
                await self._store.revoke(lease)

    # -- who owns a job ------------------------------------------------------------------------

    def members(self, job_id: str) -> tuple[str, ...]:
        return tuple(rank(dict.fromkeys(self._gates, 1.0), job_id, len(self._gates)))

    def owns(self, job_id: str) -> bool:
        held = self._held.get(job_id)
        return held is not None and self._owns(held) and not held.is_closing

    def _owns(self, held: Held) -> bool:
        return held.is_mine and self._host.clock.now() < self._until

    def owner(self, job_id: str) -> str:
        held = self._held.get(job_id)
        return (held.owner if held is not None else "") or self.members(job_id)[0]

    def owned_groups(self) -> list[str]:
        return [job_id for job_id in self._held if self.owns(job_id)]

    def hand_over(self, job_id: str) -> None:
        held = self._held.get(job_id)
        if held is not None and held.is_mine:
            held.is_mine = False
            held.not_before = self._host.clock.now() + self._settings.lease_s
            self._host.tasks.spawn(f"hand over {job_id}", self._release(job_id, held.token))

    async def _release(self, job_id: str, token: int) -> None:
        while True:
            try:
                return await self._store.release(job_id, token)
            except Unknown:
                await self._host.clock.sleep(self._settings.retry_s)

    # -- what is known of it -------------------------------------------------------------------

    def is_unheard_of(self, job_id: str) -> bool:
        return job_id not in self._held

    async def is_nowhere(self, job_id: str) -> bool:
        found = await self._store.read(job_id)
        for change in filter(None, (found.head, found.owner, *found.events)):
            self._apply(change)
        return found.owner is None and found.head is None

    def is_nothing(self, job_id: str) -> bool:
        return self.owns(job_id) and self._held[job_id].next == 0

    def is_being_forgotten(self, job_id: str) -> bool:
        held = self._held.get(job_id)
        return held is not None and held.is_closing

    # -- changes -------------------------------------------------------------------------------

    async def begin(self, job_id: str) -> None:
        """Whoever is asked owns it, where nobody does."""
        held = self._held.get(job_id)
        if held is None or not held.owner:
            await self._claim(job_id)

    async def append(self, job_id: str, event: AnyEvent) -> None:
        held, request = self._mine(job_id), request_of(event)
        async with held.lock:
            while True:
                self._mine(job_id)
                if held.is_unsure:
                    await self._catch_up(job_id, held)
                if request in held.requests:
                    return
                number, written = held.next, Written(request, events.encode(event))
                replaces = None
                if isinstance(event, Told | Ended | Lost):
                    replaces = held.told.get(event.datacenter)
                held.is_unsure = True
                head = await self._store.append(
                    *(job_id, held.token, held.head, number, written, replaces)
                )
                if head is not None:
                    held.is_unsure = False
                    held.head = head
                    held.created = held.created or head
                    self._fold(job_id, held, number, written)
                    break
        if isinstance(event, Completed):
            self._host.tasks.spawn(f"condense {job_id}", self._condense(job_id, held.token))

    async def forget(self, job_id: str) -> None:
        held = self._mine(job_id)
        held.is_closing = True
        try:
            if not await self._store.forget(job_id, held.token):
                held.is_mine = False
                raise NotPrimary(None)
            held.is_mine, held.owner = False, ""
            if not held.next:
                self._held.pop(job_id, None)
        except BaseException:
            held.is_closing = False
            raise

    async def _condense(self, job_id: str, token: int) -> None:
        with suppress(Unknown):  # it is forgotten whole, before long
            for change in (await self._store.read(job_id)).events:
                assert change.written is not None
                payload = less(change.written.payload)
                if payload != change.written.payload:
                    written = Written(change.written.request, payload)
                    await self._store.rewrite(job_id, token, change.number, written)

    def _mine(self, job_id: str) -> Held:
        held = self._held.get(job_id)
        if held is None or not self._owns(held) or held.is_closing:
            raise NotPrimary(held.owner if held is not None and held.owner != self.me else None)
        return held

    async def _claim(self, job_id: str) -> None:
        if self._has_resigned or not self._lease or self._host.clock.now() >= self._until:
            raise Unknown("this gate has no lease in etcd at the moment", "ask again")
        held = self._held.setdefault(job_id, Held())
        async with held.lock:
            if held.is_mine or held.is_closing:
                return
            self._wanted.add(job_id)
            await self._store.claim(job_id, self.me, self._lease)
            with suppress(NotPrimary):  # somebody else was faster
                await self._catch_up(job_id, held)

    async def _catch_up(self, job_id: str, held: Held) -> None:
        """With everything that was committed before this call. Raises NotPrimary, Unknown."""
        found = await self._store.read(job_id, held.next - 1)
        if found.owner is not None:
            self._apply(found.owner)
        if (
            found.owner is None
            or found.owner.created != held.token  # the watch knows of a later one
            or found.owner.lease != self._lease
        ):
            held.is_mine = False
            raise NotPrimary(held.owner or None)
        created = 0 if found.head is None else found.head.created
        if held.next and created != held.created:
            if self._revision >= found.owner.revision:  # we have heard of all that was before
                self._forget(job_id, held)
            raise Unknown(f"job {job_id} is about to be forgotten", "ask again")
        held.created = created
        held.head = 0 if found.head is None else found.head.revision
        for change in found.events:
            self._apply(change)
        held.is_mine, held.is_unsure = True, False

    # -- what etcd tells -----------------------------------------------------------------------

    def _apply(self, change: Change) -> None:
        job_id = change.job_id
        held = self._held.get(job_id)
        if held is None:
            if change.value is None:
                return
            held = self._held[job_id] = Held()
        if change.kind == "owner":
            self._apply_owner(held, change)
            if not held.owner and not held.next:
                self._held.pop(job_id, None)
            held.unowned_since = self._host.clock.now()
        elif change.kind == "head":
            if change.value is not None:
                held.created = max(held.created, change.created)
            elif change.revision > held.created:
                self._forget(job_id, held)
        elif change.written is not None and change.revision >= held.created:
            self._fold(job_id, held, change.number, change.written)
        self._wanted.add(job_id)

    def _apply_owner(self, held: Held, change: Change) -> None:
        if change.value is None:
            if change.revision > held.token:
                held.owner, held.token, held.lease, held.is_mine = "", change.revision, "", False
        elif change.created >= held.token:
            if change.created != held.token:
                held.is_mine = False
            held.owner, held.token, held.lease = change.value.decode(), change.created, change.lease

    def _fold(self, job_id: str, held: Held, number: int, written: Written) -> None:
        if number < held.next:
            return
        if not written.payload:  # its parts are deleted, as the rest of it will be
            held.next = _GONE
            return
        event = events.decode(written.payload)
        held.next = number + 1
        held.requests.add(written.request)
        if isinstance(event, Told):
            held.told[event.datacenter] = number
        elif isinstance(event, Ended | Lost):
            held.told.pop(event.datacenter, None)
        self.jobs.apply(self._host.clock.now(), job_id, event)

    def _forget(self, job_id: str, held: Held) -> None:
        self._forgotten(job_id)
        if held.owner:
            self._held[job_id] = Held(held.owner, held.token, held.lease, held.is_mine)
        else:
            self._held.pop(job_id, None)

    async def _read_all(self) -> None:
        revision, found = await self._store.everything()
        there = {(one.kind, one.job_id) for one in found}
        for job_id, held in list(self._held.items()):
            if held.next and ("head", job_id) not in there and held.created <= revision:
                self._forget(job_id, held)
            if ("owner", job_id) not in there and held.token <= revision:
                held.owner, held.lease, held.is_mine = "", "", False
                self._wanted.add(job_id)
        for change in sorted(found, key=lambda one: one.kind != "head"):
            self._apply(change)
        self._revision = revision

    # -- for as long as this gate lives --------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            try:
                if not self._revision:
                    await self._read_all()
                async with asyncio.timeout(WATCH_S):
                    async with aclosing(self._store.watch(self._revision + 1)) as watch:
                        async for revision, changes in watch:
                            for change in changes:
                                self._apply(change)
                            self._revision = revision
            except TimeoutError:
                continue
            except Compacted:
                self._revision = 0
            except Unknown:
                await self._host.clock.sleep(self._settings.retry_s)

    async def _keep_lease(self) -> None:
        while True:
            wait_s = min(self._settings.heartbeat_s, self._settings.lease_s / 3)
            try:
                await self._renew()
                if self._is_away:
                    self._log.info("etcd answers again")
                self._is_away = False
            except Unknown as error:
                wait_s = min(wait_s, self._settings.retry_s)
                if not self._is_away:
                    self._log.warning("etcd does not answer", reason=str(error))
                self._is_away = True
            await self._host.clock.sleep(wait_s)

    async def _renew(self) -> None:
        """The lease counts from when it was asked for."""
        if self._has_resigned:
            return
        asked_at, lease = self._host.clock.now(), self._lease
        if not lease or not await self._store.keep_alive(lease):
            for held in self._held.values():
                held.is_mine = False
            self._wanted.update(self._held)
            self._until = 0.0
            self._lease = ""
            self._lease = await self._store.grant(max(TTL_S_MIN, math.ceil(self._settings.lease_s)))
        if not self._has_resigned:
            self._until = asked_at + self._settings.lease_s * (1 - self._settings.drift)

    async def _take_over(self) -> None:
        while True:
            await self._host.clock.sleep(LOOK_S)
            self._wanted = {job_id for job_id in self._wanted if self._is_wanted(job_id)}
            due = [job_id for job_id in self._wanted if self._is_due(job_id, self._held[job_id])]
            await asyncio.gather(*map(self._try_to_claim, due[:AT_ONCE_MAX]))

    def _is_wanted(self, job_id: str) -> bool:
        """Nobody owns it; or we do, and the answer to our claim was lost."""
        held = self._held.get(job_id)
        if held is None or held.is_mine or held.is_closing:
            return False
        return not held.owner or held.lease == self._lease

    def _is_due(self, job_id: str, held: Held) -> bool:
        now = self._host.clock.now()
        if self._has_resigned or now >= self._until:
            return False
        turn = 0 if held.owner else self.members(job_id).index(self.me)
        return now >= max(held.not_before, held.unowned_since + turn * TURN_S)

    async def _try_to_claim(self, job_id: str) -> None:
        with suppress(Unknown):  # it is tried again
            await self._claim(job_id)
