"""The workers' side of a manager: who is there, and what they report.

Only the leader listens to workers; any other manager tells them who leads. What a worker says of
itself must come over its own connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from hyperscale.cluster import overload
from hyperscale.cluster.identity import JUMP_MAX
from hyperscale.cluster.identity import Node as Identity
from hyperscale.cluster.jobs.effects import Effect, ForgetWorker, answer_to
from hyperscale.cluster.jobs.events import (
    CpuUse,
    ExtensionAsked,
    PartReport,
    Unwanted,
    WorkerAlive,
    WorkerAnswered,
    WorkerDied,
    WorkerLeft,
    WorkerRegistered,
    WorkerReported,
)
from hyperscale.cluster.jobs.pool import Worker
from hyperscale.cluster.jobs.queries import JobQueries
from hyperscale.cluster.membership import Change, Changed
from hyperscale.cluster.overload.priority import RETRY_AFTER_S, sheds
from hyperscale.nodes.manager import dispatch
from hyperscale.nodes.manager.bodies import Bodies
from hyperscale.nodes.manager.commands import Commands
from hyperscale.nodes.manager.counters import Counters
from hyperscale.nodes.manager.effect_runner import EffectRunner
from hyperscale.nodes.manager.leadership import Leadership
from hyperscale.nodes.manager.live import Live
from hyperscale.nodes.manager.part_events import PartEvents, check_own
from hyperscale.nodes.manager.report_filter import DELAYS_MS, Pressure, ReportFilter
from hyperscale.nodes.manager.worker_table import WorkerTable
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.member.passing_on import ASK_AGAIN_S
from hyperscale.nodes.protocol.parts import (
    AskExtension,
    ExtensionAnswer,
    LeaveWorker,
    Left,
    PartStatus,
    Progress,
    ProgressAnswer,
    Registered,
    RegisterWorker,
    ReportProgress,
    TellEvent,
)
from hyperscale.runtime.host import Address, Clock
from hyperscale.wire.errors import Reason, Refused
from hyperscale.wire.serving import Call


class WorkerApi:
    def __init__(
        self,
        clock: Clock,
        node: Node,
        jobs: JobQueries,
        effects: EffectRunner,
        leadership: Leadership,
        live: Live,
        bodies: Bodies,
        commands: Commands,
        table: WorkerTable,
        part_events: PartEvents,
        pressure: Pressure,
        counters: Counters,
    ) -> None:
        self._clock = clock
        self._node = node
        self._jobs = jobs
        self._effects = effects
        self._leadership = leadership
        self._live = live
        self._bodies = bodies
        self._commands = commands
        self._table = table
        self._part_events = part_events
        self._pressure = pressure
        self._counters = counters
        self._filter = ReportFilter()
        self.started = False
        self.reports = 0
        self.reports_unknown = 0
        self.reports_refused = 0
        effects.on(ForgetWorker, lambda effect: self._forget(effect.worker))

    def handlers(self) -> dict[type[msgspec.Struct], Callable[[Call, Any], Any]]:
        return {
            RegisterWorker: self.register,
            TellEvent: self._part_events.tell,
            ReportProgress: self.progress,
            AskExtension: self.extension,
            LeaveWorker: self.leave,
        }

    def retire(self) -> None:
        """We do not lead any more."""
        self._commands.stop()
        self._table.clear()
        self._filter.clear()

    def _forget(self, worker: str) -> None:
        self._table.forget(worker)
        self._filter.forget(worker)
        self._commands.sender.drop(worker)

    # -- registering -------------------------------------------------------------------------

    def register(self, call: Call, ask: RegisterWorker) -> Registered:
        leadership, node = self._leadership, ask.node
        check_own(call, node.node_id)
        if not self.started:
            raise Refused(
                call.kind.name, "this manager is still starting", ASK_AGAIN_S, Reason.OVERLOADED
            )
        self._node.membership.confirm(node.node_id)
        here = Registered(
            accepted=False,
            leader=leadership.leader,
            leader_address=leadership.leader_address(),
            managers=tuple(self._managers()),
            term=leadership.newest_term,
            voters=tuple(sorted(self._node.settings.voters)),
        )
        if not leadership.leads():
            return msgspec.structs.replace(
                here,
                reason="this manager does not lead",
                elected=leadership.is_elected(),
                leaderless_s=leadership.leaderless_s(),
            )
        known = self._jobs.pool.workers.get(node.node_id)
        if known is not None and node.incarnation < known.incarnation and self._is_gone(known):
            self._effects.receive(WorkerLeft(known.name, known.incarnation))
            known = None
        if reason := self._not_this_life(node, known):
            return msgspec.structs.replace(here, reason=reason)
        self._commands.sender.at(node.node_id, Address(*node.tcp))
        if known is not None and known.incarnation == node.incarnation and self._unreached(known):
            reason = f"no connection can be made to {Address(*node.tcp)}"
            return msgspec.structs.replace(here, reason=reason)
        self._table.registered(ask)
        self._adopt(node.node_id, ask.parts)
        unwanted = self._effects.ask(
            WorkerRegistered(
                node.node_id,
                node.incarnation,
                ask.total_cores,
                ask.free_cores,
                [dispatch.report_of(status) for status in ask.parts],
                ask.draining,
                ask.life,
                ask.cut_off,
            )
        )
        return msgspec.structs.replace(here, accepted=True, unwanted=unwanted)

    def _not_this_life(self, node: Identity, known: Worker | None) -> str:
        """Why not, or nothing. Whoever has its key must not keep the worker's next life out."""
        if known is not None and node.incarnation < known.incarnation:
            return "a later life of this worker is known"
        member = self._node.membership.core.member(node.node_id)
        lives = [one.incarnation for one in (known, member) if one is not None]
        return (
            "nobody lives that often" if node.incarnation > max(lives, default=0) + JUMP_MAX else ""
        )

    def _is_gone(self, worker: Worker) -> bool:
        """It is silent and has nothing: its life may have been a lie."""
        held = self._jobs.replicated.by_worker.get(worker.name)
        return not held and self._jobs.pool.is_lost(self._clock.now(), worker)

    def _managers(self) -> list[Identity]:
        membership = self._node.membership
        others = [one for one in membership.core.active() if one.role == "manager"]
        managers = {one.node_id: one for one in [membership.me, *others]}
        return [managers[name] for name in sorted(managers)]

    def _adopt(self, worker: str, statuses: tuple[PartStatus, ...]) -> None:
        """Parts that were started before we led: their numbers are asked for."""
        for status in statuses:
            part = status.part
            placement = self._jobs.replicated.placement(part)
            job = self._jobs.job(part.job_id)
            if placement is None or job is None or placement.fence != status.fence:
                continue
            if placement.worker != worker:
                continue
            self._live.follow(
                self._bodies.facts(job, part.workflow),
                placement,
                fresh=status.state == "preparing",
                parts=len(job.workflows[part.workflow].parts),
            )

    def _unreached(self, worker: Worker) -> bool:
        """It must not believe to be under command; whether it is again is tried at once."""
        if not self._jobs.pool.is_unreached(self._clock.now(), worker):
            return False
        self._commands.reach(worker.name)
        return True

    # -- reports -----------------------------------------------------------------------------

    def progress(self, call: Call, report: ReportProgress) -> ProgressAnswer | None:
        """Nobody waits for an answer to most of them: what they need to know, they are told with
        the next answer."""
        worker, leadership = report.worker, self._leadership
        check_own(call, worker)
        now = self._clock.now()
        self._admit(call, now, report)
        if not leadership.leads():
            self.reports_unknown += 1
            return ProgressAnswer(
                known=False,
                term=leadership.newest_term,
                leader_address=leadership.leader_address(),
            )
        known = self._jobs.pool.workers.get(worker)
        if known is not None and self._unreached(known):
            return ProgressAnswer(known=False, term=leadership.term)
        unwanted: Unwanted = ()
        effects: list[Effect] = []
        if not self._filter.is_repeat(now, report):
            event = WorkerReported(
                worker,
                report.incarnation,
                report.free_cores,
                [self.part_report(progress) for progress in report.parts],
                report.draining,
                self._table.is_degraded(worker),
                _cpu_use(report),
            )
            effects = self._effects.decide(event)
            answer = answer_to(event, effects)
            if answer is None:
                self.reports_unknown += 1
                self._filter.pass_next(worker)
                return ProgressAnswer(known=False, term=leadership.term)
            unwanted = answer
            self._table.reported(report)
        elif not call.one_way:
            self._effects.decide(WorkerAnswered(worker))
        wanted = [p.part for p in report.parts if not self._live.heard(p, worker)]
        for told in report.parts:
            if told.test_stop is not None:
                self._part_events.stop_test(told, worker)
        if unwanted:  # and it may be told so again at once
            self._filter.pass_next(worker)
        if len(effects) > 1:  # beside the answer
            self._effects.carry_out(effects)
        self.reports += 1
        self._pressure.deltas += sum([len(p.deltas) for p in report.parts])
        if call.one_way:
            return None
        level = self._pressure.level(now)
        return ProgressAnswer(
            term=leadership.term,
            level=level,
            delay_ms=DELAYS_MS[level],
            taken=tuple([self._live.taken(p) for p in report.parts]),
            wanted=tuple(wanted),
            unwanted=unwanted,
        )

    def _admit(self, call: Call, now: float, report: ReportProgress) -> None:
        """As the node's admission would, at the price of ten thousand a second."""
        load = self._node.admission.load
        if sheds(load, overload.Priority.NORMAL):
            why, wait_s = "this node is overloaded", RETRY_AFTER_S[load]
        else:
            why, wait_s = "too many reports", self._filter.wait_s(now, report)
        if wait_s:
            self.reports_refused += 1
            raise Refused(call.kind.name, why, wait_s, Reason.OVERLOADED)

    # -- more time, leaving ------------------------------------------------------------------

    def extension(self, call: Call, ask: AskExtension) -> ExtensionAnswer:
        check_own(call, ask.worker)
        if not self._leadership.leads():
            return ExtensionAnswer(granted=False, denial="this manager does not lead")
        grant = self._effects.ask(ExtensionAsked(ask.worker, ask.reason, ask.progress))
        self._counters.extensions["granted" if grant.granted else "denied"] += 1
        return ExtensionAnswer(
            granted=grant.granted,
            extension_s=grant.seconds,
            remaining=grant.remaining,
            denial=grant.denial,
            warning=grant.warning,
            grace_s=grant.grace_s,
        )

    def leave(self, call: Call, leave: LeaveWorker) -> Left:
        check_own(call, leave.worker)
        if self._leadership.leads():
            self._effects.receive(WorkerLeft(leave.worker, leave.incarnation))
        return Left()

    def changed(self, event: Changed) -> None:
        """What the membership says of workers."""
        node = event.node
        if node.role != "worker" or not self._leadership.leads():
            return
        if event.change is Change.DIED:
            self._effects.receive(WorkerDied(node.node_id, event.incarnation))
        elif event.change is Change.LEFT:
            self._effects.receive(WorkerLeft(node.node_id, event.incarnation))
        elif event.change in (Change.JOINED, Change.REFUTED):
            self._effects.receive(WorkerAlive(node.node_id, event.incarnation))

    @staticmethod
    def part_report(progress: Progress) -> PartReport:
        return PartReport(
            progress.part,
            progress.fence,
            progress.state,
            progress.elapsed_s,
            progress.moved,
            cores_done=progress.cores_done,
            idle_s=progress.idle_s,
        )


def _cpu_use(report: ReportProgress) -> CpuUse | None:
    """None when numbers of its generators are held back."""
    shares = [delta.cpu for told in report.parts for delta in told.deltas]
    if report.parts and not shares:
        return None
    return CpuUse(report.cpu_percent, 100.0 * max(shares, default=0.0))
