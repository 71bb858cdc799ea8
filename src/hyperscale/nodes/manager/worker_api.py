"""The workers' side of a manager: who is there, and what they report.

Only the leader listens to workers; any other manager tells them who leads. What a worker says of
itself must come over its own connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hyperscale.cluster import overload
from hyperscale.cluster.identity import Node as Identity
from hyperscale.cluster.jobs.inputs import CpuUse, Ended, PartReport, Unwanted
from hyperscale.cluster.membership import Change, Changed
from hyperscale.cluster.overload.priority import RETRY_AFTER_S, sheds
from hyperscale.errors import RunFailed
from hyperscale.nodes.manager import dispatch, part_end
from hyperscale.nodes.manager.leadership import ASK_AGAIN_S
from hyperscale.nodes.manager.report_filter import ReportFilter
from hyperscale.nodes.manager.results import TEST_FAILED, TEST_STOPPED
from hyperscale.nodes.protocol.jobs import WorkerView
from hyperscale.nodes.protocol.parts import (
    AskExtension,
    EventAnswer,
    ExtensionAnswer,
    LeaveWorker,
    Left,
    PartEnd,
    PartEvent,
    PartPrepared,
    PartStatus,
    PartTornDown,
    Progress,
    ProgressAnswer,
    Registered,
    RegisterWorker,
    ReportProgress,
    TellEvent,
    WorkerPulse,
)
from hyperscale.runtime.host import Address
from hyperscale.wire.errors import Reason, Refused
from hyperscale.wire.serving import Call

if TYPE_CHECKING:
    from hyperscale.cluster.jobs.effects import Effect
    from hyperscale.cluster.jobs.pool import Worker
    from hyperscale.cluster.jobs.state import JobState
    from hyperscale.nodes.manager.manager import Manager

# Reports beyond what we take in: how long each worker should pause, by level.
DELAYS_MS = (0, 50, 200, 450)
# By how loaded this node is. A pause of level 1 is no longer than a worker with one core makes
# anyway, and a stressed node refuses: what a busy one asks for has to be enough.
LEVELS_BY_LOAD = (0, 2, 3, 3)
# What comes in is counted over this long: after a moment's delay a second brings more than it
# should, and the one before it less. A loop that runs late is noticed sooner than this.
PRESSURE_S = 3.0
# States of workers whose cores nobody can use.
ABSENT: Final = ("dead", "cut off")
WARNINGS_MAX: Final = 8  # of one worker
WARNING_CHARS_MAX: Final = 500
_pulses = msgspec.msgpack.Decoder(WorkerPulse)


class WorkerApi:
    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._known: dict[str, ReportProgress | RegisterWorker] = {}
        self._warnings: dict[str, tuple[str, ...]] = {}
        self._filter = ReportFilter()
        self._deltas_before = 0
        self._deltas_since = 0.0
        self._flow_level = 0
        self.reports = 0
        self.reports_unknown = 0
        self.reports_refused = 0
        self.deltas = 0

    def handlers(self) -> dict[type[msgspec.Struct], Callable[[Call, Any], Any]]:
        return {
            RegisterWorker: self.register,
            TellEvent: self.event,
            ReportProgress: self.progress,
            AskExtension: self.extension,
            LeaveWorker: self.leave,
        }

    def retire(self) -> None:
        """We do not lead any more."""
        self._manager.commands.sender.drop_all()
        self._manager.commands.contexts.clear()
        self._known.clear()
        self._warnings.clear()
        self._filter.clear()

    # -- what workers say --------------------------------------------------------------------

    def register(self, call: Call, ask: RegisterWorker) -> Registered:
        manager = self._manager
        self._own(call, ask.node.node_id)
        if not manager.started:
            raise Refused(
                call.kind.name, "this manager is still starting", ASK_AGAIN_S, Reason.OVERLOADED
            )
        manager.node.membership.confirm(ask.node.node_id)
        where = {
            "leader": manager.leadership.leader,
            "leader_address": manager.leadership.leader_address(),
            "managers": tuple(self._managers()),
            "term": manager.leadership.newest_term,
            "voters": tuple(sorted(manager.settings.node.voters)),
        }
        if not manager.leadership.leads():
            return Registered(
                accepted=False,
                reason="this manager does not lead",
                elected=manager.leadership.is_elected(),
                leaderless_s=manager.leadership.leaderless_s(),
                **where,  # type: ignore[arg-type]
            )
        node = ask.node
        known = manager.jobs.pool.workers.get(node.node_id)
        if known is not None and node.incarnation < known.incarnation:
            reason = "a later life of this worker is known"
            return Registered(accepted=False, reason=reason, **where)  # type: ignore[arg-type]
        manager.commands.sender.at(node.node_id, Address(*node.tcp))
        if known is not None and known.incarnation == node.incarnation and self._unreached(known):
            reason = f"no connection can be made to {Address(*node.tcp)}"
            return Registered(accepted=False, reason=reason, **where)  # type: ignore[arg-type]
        self._known[node.node_id] = ask
        self._warnings[node.node_id] = _bounded(ask.warnings)
        self._adopt(node.node_id, ask.parts)
        unwanted, effects = manager.jobs.worker_registered(
            manager.now(),
            node.node_id,
            node.incarnation,
            ask.total_cores,
            ask.free_cores,
            [dispatch.report_of(status) for status in ask.parts],
            ask.draining,
            ask.life,
            ask.cut_off,
        )
        manager.carry_out(effects)
        return Registered(accepted=True, unwanted=unwanted, **where)  # type: ignore[arg-type]

    async def event(self, call: Call, tell: TellEvent) -> EventAnswer:
        manager = self._manager
        event = tell.event
        self._own(call, event.worker)
        self._own_part(call, event)
        if isinstance(event, PartEnd) and manager.leadership.leads():
            ended = event
            event = await manager.long_work.do(lambda: self._readable(ended))
        if not manager.leadership.leads():
            return EventAnswer(
                settled=False,
                reason="this manager does not lead",
                leader_address=manager.leadership.leader_address(),
            )
        now, jobs = manager.now(), manager.jobs
        match event:
            case PartPrepared():
                context = dispatch.encode_values(event.context)
                settled, effects = jobs.prepared(
                    now, event.part, event.fence, event.worker, context
                )
            case PartEnd():
                self._stop_test(event, event.worker)  # before the end of the last part ends the job
                settled, effects = jobs.ended(
                    now,
                    Ended(
                        event.part,
                        event.fence,
                        event.worker,
                        event.outcome,
                        event.measured_s,
                        event.iterations,
                        part_end.encode_end(event),
                        event.error,
                        "; ".join(event.lost),
                    ),
                )
            case PartTornDown():
                settled, effects = jobs.torn_down(
                    now, event.part, event.fence, event.worker, event.warning, event.requests
                )
        waiting = None if settled else manager.settling(event.part, event.fence)
        manager.carry_out(effects)
        if waiting is None:
            return EventAnswer(settled=True)
        settled = await waiting
        return EventAnswer(settled=settled, reason="" if settled else "no quorum yet")

    def progress(self, call: Call, report: ReportProgress) -> ProgressAnswer | None:
        """Nobody waits for an answer to most of them: what they need to know, they are told with
        the next answer."""
        manager = self._manager
        worker = report.worker
        self._own(call, worker)
        now = manager.now()
        self._judge(call, now, worker)
        leadership = manager.leadership
        if not leadership.leads():
            self.reports_unknown += 1
            return ProgressAnswer(
                known=False,
                term=leadership.newest_term,
                leader_address=leadership.leader_address(),
            )
        known = manager.jobs.pool.workers.get(worker)
        if known is not None and self._unreached(known):
            return ProgressAnswer(known=False, term=leadership.term)
        unwanted: Unwanted = ()
        effects: list[Effect] = []
        if not self._filter.holds(now, report):
            heard = manager.jobs.worker_heard(
                now,
                worker,
                report.incarnation,
                report.free_cores,
                [self._progressed(progress) for progress in report.parts],
                report.draining,
                self._is_degraded(worker),
                _cpu_use(report),
            )
            if heard is None:
                self.reports_unknown += 1
                self._filter.repeat(worker)
                return ProgressAnswer(known=False, term=leadership.term)
            unwanted, effects = heard
            self._known[worker] = msgspec.structs.replace(report, parts=())
        elif not call.one_way:
            manager.jobs.worker_answered(now, worker)
        wanted = [p.part for p in report.parts if not manager.live.heard(p, worker)]
        for told in report.parts:
            if told.test_stop is not None:
                self._stop_test(told, worker)
        if unwanted:  # and it may be told so again at once
            self._filter.repeat(worker)
        if effects:
            manager.carry_out(effects)
        self.reports += 1
        self.deltas += sum([len(p.deltas) for p in report.parts])
        if call.one_way:
            return None
        level = self.pressure(now)
        return ProgressAnswer(
            term=leadership.term,
            level=level,
            delay_ms=DELAYS_MS[level],
            taken=tuple([manager.live.taken(p) for p in report.parts]),
            wanted=tuple(wanted),
            unwanted=unwanted,
        )

    def _judge(self, call: Call, now: float, worker: str) -> None:
        """As the door would, at the price of ten thousand a second."""
        load = self._manager.node.admission.load
        if sheds(load, overload.Priority.NORMAL):
            why, wait_s = "this node is overloaded", RETRY_AFTER_S[load]
        else:
            why, wait_s = "too many reports", self._filter.wait_s(now, worker)
        if wait_s:
            self.reports_refused += 1
            raise Refused(call.kind.name, why, wait_s, Reason.OVERLOADED)

    def extension(self, call: Call, ask: AskExtension) -> ExtensionAnswer:
        manager = self._manager
        self._own(call, ask.worker)
        if not manager.leadership.leads():
            return ExtensionAnswer(granted=False, denial="this manager does not lead")
        grant, effects = manager.jobs.extension(manager.now(), ask.worker, ask.reason, ask.progress)
        manager.counters.extensions["granted" if grant.granted else "denied"] += 1
        manager.carry_out(effects)
        return ExtensionAnswer(
            granted=grant.granted,
            extension_s=grant.seconds,
            remaining=grant.remaining,
            denial=grant.denial,
            warning=grant.warning,
            grace_s=grant.grace_s,
        )

    def leave(self, call: Call, leave: LeaveWorker) -> Left:
        manager = self._manager
        self._own(call, leave.worker)
        if manager.leadership.leads():
            manager.carry_out(
                manager.jobs.worker_left(manager.now(), leave.worker, leave.incarnation)
            )
        return Left()

    def changed(self, event: Changed) -> None:
        """What the membership says of workers."""
        manager, node = self._manager, event.node
        if node.role != "worker" or not manager.leadership.leads():
            return
        now = manager.now()
        if event.change is Change.DIED:
            effects = manager.jobs.worker_dead(now, node.node_id, event.incarnation)
        elif event.change is Change.LEFT:
            effects = manager.jobs.worker_left(now, node.node_id, event.incarnation)
        elif event.change in (Change.JOINED, Change.REFUTED):
            effects = manager.jobs.worker_alive(now, node.node_id, event.incarnation)
        else:
            return
        manager.carry_out(effects)

    # -- helpers -----------------------------------------------------------------------------

    def views(
        self, job_id: str = "", may_read: Callable[[JobState], bool] = lambda job: True
    ) -> list[WorkerView]:
        """With the parts of all jobs, or of one, that may be read."""
        manager = self._manager
        rows = []
        for name, worker in sorted(manager.jobs.pool.workers.items()):
            held = manager.jobs.replicated.by_worker.get(name, {})
            jobs = {part.job_id: manager.jobs.job(part.job_id) for part in held}
            shown = {one for one, job in jobs.items() if job is not None and may_read(job)}
            if job_id:
                shown &= {job_id}
            parts = [part for part in sorted(held) if part.job_id in shown]
            if job_id and not parts:
                continue
            told = self._known.get(name)
            numbers = [manager.live.requests(part) for part in parts]
            report = told if isinstance(told, ReportProgress) else None
            member = manager.node.membership.core.member(name)
            rows.append(
                WorkerView(
                    worker=name,
                    address=str(Address(*member.node.tcp)) if member is not None else "",
                    state=self._state(worker),
                    total_cores=worker.total,
                    free_cores=0
                    if manager.jobs.pool.is_lost(manager.now(), worker)
                    else max(0, worker.total - manager.jobs.pool.booked(worker)),
                    parts=tuple(str(part) for part in parts),
                    requests=sum(requests for requests, _ in numbers),
                    rate=sum(rate for _, rate in numbers),
                    cpu_percent=report.cpu_percent if report else 0.0,
                    memory_percent=report.memory_percent if report else 0.0,
                    routing=manager.jobs.routing(name),
                    heard_s=max(0.0, manager.now() - worker.heard_at),
                    warnings=self._warnings.get(name, ()),
                )
            )
        return rows

    def _unreached(self, worker: Worker) -> bool:
        """It must not believe to be under command; whether it is again is tried at once."""
        manager = self._manager
        if not manager.jobs.pool.is_unreached(manager.now(), worker):
            return False
        manager.commands.reach(worker.name)
        return True

    def _state(self, worker: Worker) -> str:
        if worker.dead_at is not None:
            return "dead"
        if not worker.registered:
            return "expected"
        if self._manager.jobs.pool.is_lost(self._manager.now(), worker):
            return "cut off"
        if worker.draining:
            return "draining"
        return "degraded" if worker.degraded else "healthy"

    def _own(self, call: Call, worker: str) -> None:
        if call.peer.node_id != worker:
            raise Refused(call.kind.name, f"{call.peer.node_id} speaks for {worker}")

    def _own_part(self, call: Call, event: PartEvent) -> None:
        """Tokens of parts are small numbers: whoever guesses one must not speak for the part."""
        holder = self._manager.jobs.holder(event.part, event.fence)
        if holder and holder != event.worker:
            why = f"{event.part} is placed on {holder}, not on {event.worker}"
            raise Refused(call.kind.name, why)

    def _managers(self) -> list[Identity]:
        node = self._manager.node
        others = [one for one in node.membership.core.active() if one.role == "manager"]
        managers = {one.node_id: one for one in [node.membership.me, *others]}
        return [managers[name] for name in sorted(managers)]

    def forget(self, worker: str) -> None:
        self._known.pop(worker, None)
        self._filter.forget(worker)
        self._manager.commands.sender.drop(worker)

    def _adopt(self, worker: str, statuses: tuple[PartStatus, ...]) -> None:
        """Parts that were started before we led: their numbers are asked for."""
        manager = self._manager
        for status in statuses:
            placement = manager.jobs.replicated.placement(status.part)
            job = manager.jobs.job(status.part.job_id)
            if placement is None or job is None or placement.fence != status.fence:
                continue
            if placement.worker != worker:
                continue
            facts = next(
                f for f in manager.body_of(job).workflows if f.name == status.part.workflow
            )
            parts = len(job.workflows[status.part.workflow].parts)
            fresh = status.state == "preparing"
            manager.live.follow(facts, placement, fresh=fresh, parts=parts)

    def _readable(self, end: PartEnd) -> PartEnd:
        """Numbers nobody can read must not get into the records: every leader would meet them."""
        job = self._manager.jobs.job(end.part.job_id)
        if job is None or end.part.workflow not in job.workflows:
            return end
        names = (*[end.part.job_id] * 3, *[end.part.workflow] * 2, end.worker, end.error)
        try:
            part_end.check_end(
                self._manager.body_of(job), end, self._manager.job_log.room_bytes(*names)
            )
        except RunFailed as error:
            self._manager.log.warning("end not readable", part=str(end.part), reason=error.message)
            return PartEnd(
                part=end.part,
                fence=end.fence,
                worker=end.worker,
                outcome="failed",
                error=error.message,
            )
        return end

    def _stop_test(self, told: Progress | PartEnd, worker: str) -> None:
        """A test that stops itself stops everywhere, if the part is one of that worker's."""
        manager = self._manager
        placement = manager.jobs.replicated.placement(told.part)
        if told.test_stop is None or placement is None:
            return
        if placement.fence != told.fence or placement.worker != worker:
            return
        by = TEST_FAILED if told.test_stop.failed else TEST_STOPPED
        _, effects = manager.jobs.steer(
            manager.now(), told.part.job_id, "stop", by=by, reason=told.test_stop.reason
        )
        manager.carry_out(effects)

    def _progressed(self, progress: Progress) -> PartReport:
        return PartReport(
            progress.part,
            progress.fence,
            progress.state,
            progress.elapsed_s,
            progress.moved,
            cores_done=progress.cores_done,
            idle_s=progress.idle_s,
        )

    def _is_degraded(self, worker: str) -> bool:
        """By its own judgement, told with its probes (B-31)."""
        vitals = self._manager.node.vitals.get(worker)
        if vitals is None or not vitals.pulse:
            return False
        try:
            return _pulses.decode(vitals.pulse).state == "degraded"
        except msgspec.MsgspecError:
            return False

    def pressure(self, now: float) -> int:
        """How much more comes in than we can take: 0 none .. 3 hold back (A-46). A node that is
        busy with whatever it may be asks for half as much, before it is stressed and refuses."""
        most = self._manager.settings.progress_per_s_max
        if now - self._deltas_since >= PRESSURE_S:
            per_s = (self.deltas - self._deltas_before) / (now - self._deltas_since)
            self._flow_level = sum(per_s >= limit * most for limit in (0.70, 0.85, 0.95))
            self._deltas_before, self._deltas_since = self.deltas, now
        return max(self._flow_level, LEVELS_BY_LOAD[self._manager.node.admission.load])


def _cpu_use(report: ReportProgress) -> CpuUse | None:
    """None when numbers of its generators are held back."""
    shares = [delta.cpu for told in report.parts for delta in told.deltas]
    if report.parts and not shares:
        return None
    return CpuUse(report.cpu_percent, 100.0 * max(shares, default=0.0))


def _bounded(warnings: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one[:WARNING_CHARS_MAX] for one in warnings[:WARNINGS_MAX])
