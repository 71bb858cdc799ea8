"""What workers tell of their parts, once each: prepared, ended, torn down.

A worker repeats what it told until it hears that it is settled: held by a quorum, or of no use to
anybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.effects import Acknowledge, answer_to
from hyperscale.cluster.jobs.events import Ended, Prepared, Steer, TeardownEnded
from hyperscale.cluster.jobs.queries import JobQueries
from hyperscale.cluster.jobs.records import Part
from hyperscale.errors import RunFailed
from hyperscale.nodes.manager import dispatch, part_end
from hyperscale.nodes.manager.bodies import Bodies
from hyperscale.nodes.manager.effect_runner import EffectRunner
from hyperscale.nodes.manager.job_log import JobLog
from hyperscale.nodes.manager.leadership import Leadership
from hyperscale.nodes.manager.results import TEST_FAILED, TEST_STOPPED
from hyperscale.nodes.manager.waiters import Waiters
from hyperscale.nodes.member.long_work import LongWork
from hyperscale.nodes.protocol.parts import (
    EventAnswer,
    PartEnd,
    PartEvent,
    PartPrepared,
    PartTornDown,
    Progress,
    TellEvent,
)
from hyperscale.wire.errors import Refused
from hyperscale.wire.serving import Call

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class PartEvents:
    def __init__(
        self,
        jobs: JobQueries,
        effects: EffectRunner,
        leadership: Leadership,
        bodies: Bodies,
        job_log: JobLog,
        long_work: LongWork,
        log: FilteringBoundLogger,
    ) -> None:
        self._jobs = jobs
        self._effects = effects
        self._leadership = leadership
        self._bodies = bodies
        self._job_log = job_log
        self._long_work = long_work
        self._log = log
        self._acknowledged: Waiters[tuple[Part, Fence], bool] = Waiters()
        effects.on(Acknowledge, lambda end: self._acknowledged.resolve((end.part, end.fence), True))

    def abandon(self) -> None:
        """This manager does not lead any more: workers tell the next leader."""
        self._acknowledged.resolve_all(False)

    async def tell(self, call: Call, tell: TellEvent) -> EventAnswer:
        event = tell.event
        check_own(call, event.worker)
        self._check_holder(call, event)
        if isinstance(event, PartEnd) and self._leadership.leads():
            ended = event
            event = await self._long_work.do(lambda: self._readable(ended))
        if not self._leadership.leads():
            return EventAnswer(
                settled=False,
                reason="this manager does not lead",
                leader_address=self._leadership.leader_address(),
            )
        if isinstance(event, PartEnd):
            self.stop_test(event, event.worker)  # before the end of the last part ends the job
        told = _as_event(event)
        effects = self._effects.decide(told)
        settled = answer_to(told, effects)
        waiting = None if settled else self._acknowledged.add((event.part, event.fence))
        self._effects.carry_out(effects)
        if waiting is None:
            return EventAnswer(settled=True)
        settled = await waiting
        return EventAnswer(settled=settled, reason="" if settled else "no quorum yet")

    def stop_test(self, told: Progress | PartEnd, worker: str) -> None:
        """A test that stops itself stops everywhere, if the part is one of that worker's."""
        placement = self._jobs.replicated.placement(told.part)
        if told.test_stop is None or placement is None:
            return
        if placement.fence != told.fence or placement.worker != worker:
            return
        by = TEST_FAILED if told.test_stop.failed else TEST_STOPPED
        reason = told.test_stop.reason
        self._effects.ask(Steer(told.part.job_id, "stop", by=by, reason=reason))

    def _check_holder(self, call: Call, event: PartEvent) -> None:
        """Tokens of parts are small numbers: whoever guesses one must not speak for the part."""
        holder = self._jobs.holder(event.part, event.fence)
        if holder and holder != event.worker:
            why = f"{event.part} is placed on {holder}, not on {event.worker}"
            raise Refused(call.kind.name, why)

    def _readable(self, end: PartEnd) -> PartEnd:
        """Numbers nobody can read must not get into the records: every leader would meet them."""
        job = self._jobs.job(end.part.job_id)
        if job is None or end.part.workflow not in job.workflows:
            return end
        names = (*[end.part.job_id] * 3, *[end.part.workflow] * 2, end.worker, end.error)
        try:
            part_end.check_end(self._bodies.of(job), end, self._job_log.room_bytes(*names))
        except RunFailed as error:
            self._log.warning("end not readable", part=str(end.part), reason=error.message)
            return PartEnd(
                part=end.part,
                fence=end.fence,
                worker=end.worker,
                outcome="failed",
                error=error.message,
            )
        return end


def check_own(call: Call, worker: str) -> None:
    """What a worker says of itself must come over its own connection. Raises Refused."""
    if call.peer.node_id != worker:
        raise Refused(call.kind.name, f"{call.peer.node_id} speaks for {worker}")


def _as_event(event: PartEvent) -> Prepared | Ended | TeardownEnded:
    match event:
        case PartPrepared():
            context = dispatch.encode_values(event.context)
            return Prepared(event.part, event.fence, context)
        case PartEnd():
            return Ended(
                event.part,
                event.fence,
                event.worker,
                event.outcome,
                event.measured_s,
                event.iterations,
                part_end.encode_end(event),
                event.error,
                "; ".join(event.lost),
            )
        case PartTornDown():
            return TeardownEnded(event.part, event.fence, event.warning, event.requests)
