"""A worker: a member that runs parts of workflows on its cores, and is fenced when it is alone.

It joins the cluster as every node does, registers with the managers' leader, and obeys whoever
leads. Load never depends on one manager: it goes on while one that leads answers over TCP, or a
majority of them says that nobody does, and ends when that was `fence_s` ago, also in processes this
one can no longer reach, by their lease.
"""

from __future__ import annotations

from typing import Final

import msgspec

from hyperscale.cluster.membership import Change, Changed
from hyperscale.cluster.overload import RateLimitSettings
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.protocol.parts import PARTS, DrainAnswer, DrainOrder, WorkerPulse
from hyperscale.nodes.worker.contact import Contact
from hyperscale.nodes.worker.health import WorkerHealth
from hyperscale.nodes.worker.links import Links
from hyperscale.nodes.worker.manager_session import ManagerSession
from hyperscale.nodes.worker.outbox import Outbox
from hyperscale.nodes.worker.parts import Parts
from hyperscale.nodes.worker.registration import Registration
from hyperscale.nodes.worker.reporting import ReportBuffer
from hyperscale.nodes.worker.runner import MachineUse, Runner
from hyperscale.nodes.worker.settings import WorkerSettings
from hyperscale.runtime import logs
from hyperscale.runtime.host import Address, Host, Task
from hyperscale.wire.errors import Reason, Refused
from hyperscale.wire.serving import Call

# How late a limit, a silence or our own lateness is noticed at most.
TICK_S: Final = 0.1
TICKS_PER_LOOK: Final = 5  # at managers, the machine and our own state: twice a second
# An event per part and a few to spare; beyond it no new part is taken on.
EVENTS_MAX: Final = 1_024
# Between two requests for an extension: shorter than the first grant (15 s).
EXTENSION_EVERY_S: Final = 10.0
# For the last results of a draining worker, once all parts have ended.
LAST_RESULTS_S: Final = 15.0
# A leader may start, steer and end every core of ours several times a second.
COMMANDS_PER_WINDOW: Final = 2_000


LIMITS: Final = RateLimitSettings(
    limits=dict.fromkeys(
        ("dispatch.part", "start.part", "tear.down.part", "ask.parts"), COMMANDS_PER_WINDOW
    )
)


class Worker:
    def __init__(self, host: Host, settings: WorkerSettings, runner: Runner) -> None:
        now = host.clock.now()
        self.settings = settings
        self.contact = Contact(now, settings.fence_s)
        self.registration = Registration(now, host.random)
        self.outbox = Outbox(EVENTS_MAX, host.random)
        self._host = host
        self._runner = runner
        self.links = Links(host, self.contact)
        self._buffer = ReportBuffer()
        self.session = ManagerSession(
            host,
            settings,
            self.registration,
            self.links,
            self.outbox,
            self._buffer,
            me=lambda: self.node.membership.me,
            use=lambda: self._use,
        )
        self.parts = Parts(
            host,
            settings,
            runner,
            self.outbox,
            self._buffer,
            on_change=self.session.changed,
            on_numbers=self.session.moved,
            on_term=self._heard_term,
            lease_s=lambda: self.contact.remaining_s(host.clock.now()),
        )
        self.session.parts = self.parts
        handlers = self.parts.handlers | {DrainOrder: self._on_drain}
        self.node = Node(host, settings.node, PARTS, handlers, LIMITS)
        self._health = WorkerHealth()
        self._use = MachineUse(0.0, 0.0)
        self._pulse: WorkerPulse | None = None
        self._started = False
        self._fenced = self._fading = False
        self._leased_at = now
        self._extension_at = now
        self._tasks: list[Task] = []
        self.over = self.node.over
        """Set when it cannot go on by itself. Whoever runs it must `stop` it: nobody minds its
        load any more but the lease."""
        self._log = logs.logger("worker", node_id=settings.node.id)

    @property
    def failure(self) -> Exception | None:
        return self.node.failure

    # -- life --------------------------------------------------------------------------------

    async def start(self) -> None:
        """Raises BadInput or OSError."""
        await self._runner.open()
        await self.node.start()
        self.links.endpoint = self.node.endpoint
        self.session.life = self.node.membership.me.incarnation
        self.node.membership.on_change(self._member_changed)
        self._look()
        self._started = True
        loops = (
            ("keep watch", self._watch()),
            ("register", self.session.register()),
            ("report", self.session.report()),
            ("tell", self.session.tell()),
        )
        self._tasks = [self.node.spawn_vital(name, work) for name, work in loops]

    async def drain(self) -> None:
        """Take on nothing new; return when all is over and told, or the time for it is."""
        if self.parts.drain_state.leaving:
            return
        self.parts.drain_state.leaving = True
        self._log.info("draining", parts=len(self.parts), limit_s=self.settings.drain_s)
        self._look()
        self.session.changed()
        clock = self._host.clock
        until = clock.now() + self.settings.drain_s
        while not self.parts.empty and clock.now() < until:
            await clock.sleep(TICK_S)
        if not self.parts.idle:
            self.parts.cut_off(clock.now(), "its worker was told to leave")
        until = clock.now() + LAST_RESULTS_S
        while not (self.parts.idle and not len(self.outbox)) and clock.now() < until:
            await clock.sleep(TICK_S)
        self._log.info("drained", untold=len(self.outbox))

    async def stop(self) -> None:
        """Leave nothing running, whatever is under way, then say goodbye: what we have is given to
        others as soon as they hear it."""
        for task in self._tasks:
            task.cancel()
        await self._runner.close()
        await self.session.leave()
        self.links.close()
        await self.node.stop()

    # -- watching ----------------------------------------------------------------------------

    async def _watch(self) -> None:
        clock, ticks = self._host.clock, 0
        while True:
            asleep_at = clock.now()
            await clock.sleep(TICK_S)
            now = clock.now()
            ticks += 1
            if ticks % TICKS_PER_LOOK == 0:
                self._look()
            self._mind_contact(now)
            self.parts.tick(now)
            self._mind_lateness(now, now - asleep_at - TICK_S)

    def _mind_contact(self, now: float) -> None:
        if self.contact.is_cut_off(now):
            silent_s = self.contact.silent_s(now)
            reason = f"no leader and no majority without one has answered for {silent_s:.1f} s"
            count = self.parts.cut_off(now, reason)
            if not self._fenced:
                self._log.warning("cut off", silent_s=round(silent_s, 1), parts_ended=count)
            self._fenced = True
            return
        if self._fenced:
            self._log.info("back in touch")
            self._fenced = False
        faded, self._fading = self._fading, self.contact.is_fading(now)
        if self._fading:
            if self.registration.registered:
                self.session.seek(self.registration.leader)
            elif len(self.parts):
                self.registration.hurry(now)
        is_back = faded and not self._fading  # and the lease may have no second left
        if is_back or now - self._leased_at >= self.settings.contact_s:
            self._leased_at = now
            self.parts.in_touch(now)

    def _mind_lateness(self, now: float, late_s: float) -> None:
        if late_s < self.settings.starved_s or not len(self.parts):
            return
        if now - self._extension_at >= EXTENSION_EVERY_S:
            self._extension_at = now
            self._log.warning("running late", late_s=round(late_s, 2))
            self._host.tasks.spawn("ask for an extension", self._ask_extension())

    async def _ask_extension(self) -> None:
        answer = await self.session.ask_extension("resource_contention")
        if answer is None:
            return
        say = self._log.warning if answer.warning or not answer.granted else self._log.info
        say(
            "extension granted" if answer.granted else "extension denied",
            seconds=answer.extension_s,
            remaining=answer.remaining,
            reason=answer.denial,
            grace_s=answer.grace_s,
        )

    def _look(self) -> None:
        """The managers, and the health of this worker."""
        core = self.node.membership.core
        managers = [member for member in core.members() if member.node.role == "manager"]
        found = [Address(*member.node.tcp) for member in managers if member.live]
        if not found:
            # With nobody left, those of old may be back before membership knows.
            found = [Address(*member.node.tcp) for member in managers]
            found += [Address(*seed) for seed in self.settings.node.seeds]
        self.registration.know(found)
        leader = self.registration.leader
        self.links.keep([*self.registration.managers, *([leader] if leader else [])])
        self._use = self._runner.use()
        self._tell_pulse()

    def _tell_pulse(self) -> None:
        state = self._health.judge(
            registered=self.registration.registered,
            draining=self.parts.draining,
            cpu_percent=self._use.cpu_percent,
            memory_percent=self._use.memory_percent,
            health_score=self.node.membership.core.health_score,
        )
        last = self._pulse
        free, total = self.parts.cores.free, self.parts.cores.total
        if last is not None and (last.state, last.free_cores) == (state, free):
            return
        version = 1 if last is None else last.version + 1
        self._pulse = WorkerPulse(state=state, total_cores=total, free_cores=free, version=version)
        self.node.pulse = msgspec.msgpack.encode(self._pulse)

    # -- what others say ---------------------------------------------------------------------

    def _on_drain(self, call: Call, order: DrainOrder) -> DrainAnswer:
        """Of an administrator, through the leader."""
        drain_state = self.parts.drain_state
        if not self._heard_term(order.term, call.peer.node_id):
            return DrainAnswer(obeyed=False, reason="a leader of a later term has spoken")
        if drain_state.leaving:
            return DrainAnswer(obeyed=False, reason=drain_state.off)
        drain_state.obey(order)
        self._log.info(
            "in service again" if order.undo else "drained", by=order.by, parts=len(self.parts)
        )
        self._look()
        self.session.changed()
        return DrainAnswer(obeyed=True, parts=len(self.parts))

    def _heard_term(self, term: int, speaker: str) -> bool:
        """A command of a term; False when a later one is known."""
        if not self._started:
            raise Refused("", "this worker is still starting", 0.5, Reason.OVERLOADED)
        member = self.node.membership.core.member(speaker)
        place = None if member is None else Address(*member.node.tcp)
        before = self.registration.registered
        present = self.registration.hear_term(self._host.clock.now(), term, place)
        if before and not self.registration.registered:
            self.session.seek(place)
        return present

    def _member_changed(self, event: Changed) -> None:
        """Our leader died or left: look for the next one without waiting for a silence."""
        gone = event.change in (Change.DIED, Change.LEFT)
        if event.node.role == "manager" and gone:
            self._look()
            if self.registration.leader == Address(*event.node.tcp):
                self.session.seek()
