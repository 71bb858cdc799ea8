"""What a worker says to its managers: who it is, how its parts go, what became of them.

Three loops over one standing: register with whoever leads, report to the leader, empty the outbox.
None of them waits for another, and none gives up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.identity import Node
from hyperscale.cluster.jobs.records import Part
from hyperscale.nodes.protocol.parts import (
    AskExtension,
    EventAnswer,
    ExtensionAnswer,
    LeaveWorker,
    Left,
    PartEvent,
    ProgressAnswer,
    Registered,
    RegisterWorker,
    ReportProgress,
    TellEvent,
)
from hyperscale.nodes.worker.links import Links
from hyperscale.nodes.worker.outbox import Outbox, key_of
from hyperscale.nodes.worker.parts import Parts
from hyperscale.nodes.worker.registration import Registration
from hyperscale.nodes.worker.reporting import ReportBuffer, ReportPace
from hyperscale.nodes.worker.runner import MachineUse
from hyperscale.nodes.worker.settings import WorkerSettings
from hyperscale.runtime import logs
from hyperscale.runtime.host import Address, Host
from hyperscale.runtime.timed_event import TimedEvent
from hyperscale.wire.errors import Refused, WireError

# A leader answers when a quorum holds the event, or when a part is torn down; then we ask again.
EVENT_TIMEOUT_S: Final = 15.0
# Every core may have a part that waits for its teardown, and others must be told beside them.
EVENTS_AT_ONCE_MAX: Final = 256
# Nothing is so late that it is looked for only after this long, should a wake-up be missed.
GLANCE_S: Final = 1.0
# A worker that ran late may have lost its leader meanwhile.
EXTENSION_TRIES: Final = 5
# What a refusal without a time of its own is worth.
REFUSED_PAUSE_S: Final = 0.1


class ManagerSession:
    def __init__(
        self,
        host: Host,
        settings: WorkerSettings,
        registration: Registration,
        links: Links,
        outbox: Outbox,
        buffer: ReportBuffer,
        me: Callable[[], Node],
        use: Callable[[], MachineUse],
    ) -> None:
        self.parts: Parts  # the worker gives it: each of the two calls the other
        self.life = 0
        """The incarnation this process began with; the worker tells it at its start."""
        self.warnings: tuple[str, ...] = ()
        """What the operator should know; managers show it."""
        self.counts: Counter[str] = Counter()
        self._host = host
        self._clock = host.clock
        self._settings = settings
        self._registration = registration
        self._links = links
        self._outbox = outbox
        self._buffer = buffer
        self._pace = ReportPace(host.clock.now(), settings.flush_s, settings.contact_s)
        self._me = me
        self._use = use
        self._telling: Counter[Address] = Counter()
        self._expecting = False
        self._seeking = TimedEvent()
        self._numbers = TimedEvent()
        self._untold = TimedEvent()
        self._log = logs.logger("worker", node_id=settings.node.id)

    # -- waking ------------------------------------------------------------------------------

    def changed(self) -> None:
        """A part changed its state, or cores came free: not to be left to the next contact."""
        self._pace.hasten()
        self._numbers.set()
        self._untold.set()

    def moved(self) -> None:
        """There are numbers to report; told for every delta, so it wakes nobody twice."""
        if self._expecting:
            self._expecting = False
            self._numbers.set()

    def seek(self, likely: Address | None = None) -> None:
        """The standing is lost, or may have changed without us."""
        self._registration.seek(self._clock.now(), likely)
        self._seeking.set()

    async def _pause(self, event: TimedEvent, seconds: float) -> None:
        await event.wait(min(max(seconds, 0.001), GLANCE_S))
        event.clear()

    # -- registering -------------------------------------------------------------------------

    async def register(self) -> None:
        """All managers of a round are asked side by side: one that hangs must not keep us from
        those that answer."""
        standing = self._registration
        while True:
            now = self._clock.now()
            asked = standing.whom(now)
            if asked is not None:
                self._host.tasks.spawn(f"register with {asked}", self._register_with(asked))
                continue
            wait_s = GLANCE_S if standing.registered else standing.next_at - now
            await self._pause(self._seeking, wait_s)

    async def _register_with(self, asked: Address) -> None:
        standing = self._registration
        try:
            answer = await self._links.ask(
                asked, self._introduction(), Registered, self._settings.request_timeout_s
            )
        except WireError as error:
            self.counts["registrations_failed"] += 1
            self._log.debug("not registered", manager=str(asked), reason=str(error))
            standing.failed(asked)
            return
        self._heard(answer)
        if standing.answered(self._clock.now(), asked, answer):
            self._registered(asked, answer)
        self._seeking.set()

    def _introduction(self) -> RegisterWorker:
        return RegisterWorker(
            node=self._me(),
            total_cores=self.parts.cores.total,
            free_cores=self.parts.cores.free,
            parts=self.parts.statuses(),
            draining=self.parts.draining,
            life=self.life,
            cut_off=self._links.cut_off,
            warnings=self.warnings,
        )

    def _registered(self, leader: Address, answer: Registered) -> None:
        self.counts["registrations"] += 1
        self._log.info(
            "registered",
            leader=answer.leader,
            address=str(leader),
            term=answer.term,
            correlation_id=f"term-{answer.term}",
        )
        self._outbox.hasten(self._clock.now())
        self._buffer.unanswered()
        self._pace.begin_anew()
        self.changed()

    def _heard(self, answer: Registered | ProgressAnswer) -> None:
        if answer.unwanted and answer.term >= self._registration.term:
            self.parts.unwanted(self._clock.now(), answer.unwanted)

    # -- reporting ---------------------------------------------------------------------------

    async def report(self) -> None:
        standing, pace = self._registration, self._pace
        while True:
            now = self._clock.now()
            waiting = self._buffer.waiting
            due_at = pace.due_at(waiting)
            if standing.leader is None or now < due_at:
                self._expecting = not waiting
                wait_s = GLANCE_S if standing.leader is None else due_at - now
                await self._pause(self._numbers, wait_s)
            else:
                await self._report_to(now, standing.leader)

    async def _report_to(self, now: float, leader: Address) -> None:
        wanted = None if self._pace.holding_back else self._buffer.next_snapshot()
        quiet = wanted is None and self._pace.may_be_quiet(now)
        self._pace.sent(now, quiet=quiet)
        report = self._next_report(wanted)
        try:
            if quiet and self._links.tell(leader, report):
                self.counts["reports"] += 1
                return
            answer = await self._links.ask(
                leader, report, ProgressAnswer, self._settings.request_timeout_s
            )
        except Refused as refusal:
            self._buffer.unanswered()
            # It is alive and busy: numbers wait, and it keeps us on its list.
            self.counts["reports_refused"] += 1
            if refusal.retry_after_s is None:
                self._log.warning("report refused", leader=str(leader), reason=refusal.reason)
                self.seek()
            await self._clock.sleep(min(refusal.retry_after_s or REFUSED_PAUSE_S, GLANCE_S))
            return
        except WireError as error:
            self._buffer.unanswered()
            self.counts["reports_failed"] += 1
            self._log.info("leader does not answer", leader=str(leader), reason=str(error))
            if self._registration.leader == leader:
                self.seek(leader)
            return
        self.counts["reports"] += 1
        self._answered(leader, report, answer)

    def _next_report(self, wanted: tuple[Part, Fence] | None) -> ReportProgress:
        state = None if wanted is None else self.parts.snapshot(wanted)
        snapshot = None if wanted is None or state is None else (wanted[0], state)
        use = self._use()
        return ReportProgress(
            worker=self._settings.node.id,
            incarnation=self._me().incarnation,
            free_cores=self.parts.cores.free,
            parts=self._buffer.take(
                self.parts.held(), snapshot, numbers=not self._pace.holding_back
            ),
            cpu_percent=use.cpu_percent,
            memory_percent=use.memory_percent,
            draining=self.parts.draining,
        )

    def _answered(self, leader: Address, report: ReportProgress, answer: ProgressAnswer) -> None:
        now = self._clock.now()
        elsewhere = answer.leader_address
        standing = self._registration
        standing.hear_term(now, answer.term, leader)
        if not answer.known:
            self._buffer.unanswered()
            self.seek(leader if elsewhere is None else Address(*elsewhere))
            return
        if elsewhere is not None and self._redirected(Address(*elsewhere)):
            self._buffer.unanswered()
            return
        self._buffer.answered(report.parts, answer.taken)
        self._pace.hear(answer)
        self._buffer.want(answer.wanted)
        self._heard(answer)

    def _redirected(self, leader: Address) -> bool:
        """True when it is another than the one we report to."""
        if leader == self._registration.leader:
            return False
        self.seek(leader)
        return True

    # -- events ------------------------------------------------------------------------------

    async def tell(self) -> None:
        while True:
            now = self._clock.now()
            leader = self._registration.leader
            if leader is not None:
                room = EVENTS_AT_ONCE_MAX - self._telling[leader]
                for event in self._outbox.take(now, max(0, room)):
                    self._telling[leader] += 1
                    name = f"tell {type(event).__name__} {event.part}"
                    self._host.tasks.spawn(name, self._tell(leader, event))
            next_due = self._outbox.next_due
            wait_s = GLANCE_S if next_due is None or leader is None else next_due - now
            await self._pause(self._untold, wait_s)

    async def _tell(self, leader: Address, event: PartEvent) -> None:
        key = key_of(event)
        try:
            answer = await self._links.ask_patiently(
                leader, TellEvent(event=event), EventAnswer, EVENT_TIMEOUT_S
            )
        except WireError as error:
            self.counts["events_failed"] += 1
            self._log.info("event not told", part=str(event.part), reason=str(error))
            self._outbox.unsettled(self._clock.now(), key)
            return
        finally:
            self._telling[leader] -= 1
            self._untold.set()
        now = self._clock.now()
        if answer.settled:
            self._outbox.settled(key)
            self.parts.settled(now, event)
            return
        self._outbox.unsettled(now, key)
        if answer.leader_address is not None:
            self._redirected(Address(*answer.leader_address))

    # -- single words ------------------------------------------------------------------------

    async def ask_extension(self, reason: str) -> ExtensionAnswer | None:
        """We run late and know it: better to say so than to be taken for dead (A-32, D-39)."""
        for _ in range(EXTENSION_TRIES):
            leader = self._registration.leader
            question = AskExtension(
                worker=self._settings.node.id,
                reason=reason,
                progress=self.parts.progress(),
                active_parts=len(self.parts),
            )
            if leader is not None:
                try:
                    return await self._links.ask(
                        leader, question, ExtensionAnswer, self._settings.request_timeout_s
                    )
                except WireError as error:
                    self._log.info("extension not asked", leader=str(leader), reason=str(error))
            await self._clock.sleep(self._settings.contact_s)
        return None

    async def leave(self) -> None:
        """To whoever leads, once; membership tells the others."""
        leader = self._registration.leader
        if leader is None:
            return
        word = LeaveWorker(worker=self._settings.node.id, incarnation=self._me().incarnation)
        try:
            await self._links.ask(leader, word, Left, self._settings.request_timeout_s)
        except WireError as error:
            self._log.info("left without goodbye", leader=str(leader), reason=str(error))
