"""A manager: the jobs core joined to its cluster, its records, its workers and its clients.

It decides nothing. Records are applied as they are held by a quorum; what the core wants done is
done while this manager leads; leadership comes and goes with the election.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Sequence

import msgspec

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs import records as job_records
from hyperscale.cluster.jobs.core import Jobs
from hyperscale.cluster.jobs.effects import (
    Acknowledge,
    Append,
    CollectReported,
    Command,
    Dispatch,
    Effect,
    ForgetWorker,
    LogEvent,
    MakeResults,
    Start,
    Teardown,
)
from hyperscale.cluster.jobs.inputs import Heard
from hyperscale.cluster.jobs.records import (
    Finished,
    JobRecord,
    Part,
    PartEnded,
    PartLost,
    Placement,
    Submitted,
    TimedOut,
    ToldLate,
)
from hyperscale.cluster.jobs.state import JobState
from hyperscale.cluster.membership import State as MemberState
from hyperscale.cluster.overload.ratelimit import RateLimitSettings
from hyperscale.engine.thresholds import Judge
from hyperscale.errors import HyperscaleError, RunFailed
from hyperscale.ledger.records import Record, RecordsError
from hyperscale.ledger.wal import LogClosed, LogFailed
from hyperscale.metrics.exported import DamagedState, spread
from hyperscale.nodes.manager import part_end
from hyperscale.nodes.manager.client_api import ClientApi
from hyperscale.nodes.manager.commands import Commands
from hyperscale.nodes.manager.condensing import CONDENSE
from hyperscale.nodes.manager.counters import Counters
from hyperscale.nodes.manager.faults import Faults
from hyperscale.nodes.manager.job_log import JobLog
from hyperscale.nodes.manager.leadership import Leadership
from hyperscale.nodes.manager.live import Live, LivePart
from hyperscale.nodes.manager.long_work import LongWork
from hyperscale.nodes.manager.merging import Merging
from hyperscale.nodes.manager.progress_backup import ProgressBackup
from hyperscale.nodes.manager.results import ends_of
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.manager.thresholds import Thresholds
from hyperscale.nodes.manager.timers import Timers
from hyperscale.nodes.manager.views import Endings
from hyperscale.nodes.manager.waiting import Waiting
from hyperscale.nodes.manager.worker_api import WorkerApi
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.protocol.jobs import JOBS, Body
from hyperscale.nodes.protocol.parts import PARTS, PartEnd
from hyperscale.nodes.protocol.records import RECORDS, NoteParts, RecordsRequest
from hyperscale.runtime import logs
from hyperscale.runtime.host import Host
from hyperscale.runtime.timed_event import TimedEvent
from hyperscale.wire.messages import Registry
from hyperscale.workload.facts import WorkflowFacts

LEAD_RETRY_S = 0.5
# A job is watched by who submits it, so one is as often asked for as the other. A share of a
# stressed manager is one for each of a thousand workers.
LIMITS = RateLimitSettings(limits={"submit.job": 50, "watch.job": 50}, stressed_budget=10_000)


class Manager:
    def __init__(self, host: Host, settings: ManagerSettings) -> None:
        self.host = host
        self.settings = settings
        self.id = settings.node.id
        self.log = logs.logger("manager", node_id=self.id)
        self.faults = Faults(self.log)
        self.counters = Counters()
        self.jobs = Jobs(settings.jobs, host.random, CONDENSE)
        self.live = Live()
        self.progress_backup = ProgressBackup(self)
        self.endings = Endings()
        kinds = Registry()
        for more in (JOBS, PARTS, RECORDS):
            kinds.include(more)
        self.node = Node(host, settings.node, kinds, limits=LIMITS)
        self.node.queue = self._queue
        self.node.syncing = lambda: self.records.status().newcomer
        self.leadership = Leadership(host, self.node)
        self.job_log = JobLog(self)
        self.records = self.job_log.records
        self.commands = Commands(self)
        self.worker_api = WorkerApi(self)
        self.client_api = ClientApi(self)
        self.node.answer(
            {RecordsRequest: self.job_log.asked, NoteParts: self.progress_backup.heard}
        )
        self.node.answer(self.worker_api.handlers())
        self.node.answer(self.client_api.handlers())
        self.over = self.node.over
        self.started = False
        self._failure: Exception | None = None
        self._accepting: Waiting[str, None] = Waiting()
        self._settling: Waiting[tuple[Part, Fence], bool] = Waiting()
        self._bodies: dict[str, Body] = {}
        self.thresholds = Thresholds(self)
        self.long_work = LongWork(host.clock)
        self.merging = Merging(self)
        self.changed = TimedEvent()

    @property
    def failure(self) -> Exception | None:
        return self._failure or self.node.failure

    @property
    def durability(self) -> str:
        return "quorum" if len(self.settings.node.voters) > 1 else "local"

    def now(self) -> float:
        return self.host.clock.now()

    def _queue(self) -> float:
        """Records that a majority has not confirmed yet, of as many as may be under way."""
        return self.records.status().pending_share

    # -- life --------------------------------------------------------------------------------

    async def start(self) -> None:
        try:
            await self.records.open()
        except HyperscaleError as error:
            raise RunFailed(f"{self.id} cannot start: {error.message}", error.hint) from error
        self._replay()
        self.records.on_applied.append(self._applied)
        self.records.on_forgotten.append(self._forgotten)
        await self.node.start()
        assert self.node.election is not None, "a manager votes"
        self.node.membership.on_change(self.worker_api.changed)
        self.node.election.on_become_leader.append(self._elected)
        self.node.election.on_lose_leadership.append(self._deposed)
        self.node.election.on_leader_change.append(self._leader_changed)
        self.started = True
        voters = len(self.settings.node.voters)
        if voters % 2 == 0:
            self.log.warning("an even number of voters", voters=voters, may_fail=voters // 2 - 1)
        Timers(self).start()
        self.host.tasks.spawn("watch the records", self._watch_records())
        if self.node.election.may_lead():
            self._elected(self.node.election.term)

    def reload(self) -> None:
        self.node.reload()

    async def stop(self) -> None:
        """Hand over, leave, and let go of the files; jobs go on without us."""
        self._deposed(self.leadership.term, "it is shutting down")
        await self.node.stop()
        await self.records.close()

    def _replay(self) -> None:
        """What was remembered from before, in the order it was decided."""
        now = self.now()
        known = [record for job in self.records.jobs() for record in self.records.records(job)]
        for record in sorted(known, key=lambda record: record.index):
            self.jobs.applied(now, job_records.decode(record.payload))

    async def _watch_records(self) -> None:
        self._failure = await self.records.failed()
        self.log.critical("the records failed", error=str(self._failure))
        self.over.set()

    # -- leadership --------------------------------------------------------------------------

    def _elected(self, term: int) -> None:
        self.host.tasks.spawn(f"lead term {term}", self._lead(term))

    async def _lead(self, term: int) -> None:
        """Find all that may have been acknowledged before, then decide."""
        election = self.node.election
        assert election is not None
        while election.may_lead() and election.term == term:
            try:
                await self.records.lead(term)
                self.live.clear()
                await self.long_work.run(self._recall_finished())
                if election.may_lead() and election.term == term:
                    self._take_over(term)
                return
            except RecordsError as error:
                self.log.warning("cannot lead yet", term=term, reason=error.message)
                await self.host.clock.sleep(LEAD_RETRY_S)
            except (LogFailed, LogClosed):
                return  # this manager is at its end, and says so elsewhere
            except Exception as error:
                # Elected and silent, it would keep the others from leading.
                self.leadership.term = 0
                self.log.critical("cannot take over", term=term, exc_info=error)
                self._failure = error
                self.over.set()
                return

    def _take_over(self, term: int) -> None:
        self.leadership.term = term
        self.log.info("leading", term=term, jobs=len(self.jobs.jobs()))
        self.carry_out(self.jobs.lead(self.now(), term))
        self._tell_deaths()

    def _recall_finished(self) -> Generator[None, None, None]:
        """What parts of running jobs have measured before this leadership, one part at a time."""
        for job in self.jobs.jobs():
            if job.is_over:
                continue
            self.thresholds.take_over(job)
            for facts in self.body_of(job).workflows:
                workflow = job.workflows[facts.name]
                for end in ends_of(workflow):
                    self.live.keep(facts, end.part, end.state)
                    yield
                for placement in workflow.live():
                    self.live.follow(
                        facts, placement, fresh=not workflow.started, parts=len(workflow.parts)
                    )

    def _tell_deaths(self) -> None:
        core = self.node.membership.core
        for worker in sorted(self.jobs.placed_on()):
            member = core.member(worker)
            if member is not None and member.state is MemberState.DEAD:
                self.carry_out(self.jobs.worker_dead(self.now(), worker, member.node.incarnation))

    def _deposed(self, term: int, reason: str) -> None:
        if self.leadership.term:
            self.log.info("not leading any more", term=term, reason=reason)
        self.leadership.term = 0
        self.records.follow(self.leadership.newest_term)
        self.jobs.follow(self.now())
        self.worker_api.retire()
        self.live.clear()
        self.thresholds.clear()
        self.merging.clear()
        self._settling.tell_all(False)
        self._accepting.tell_all(RunFailed("leadership ended before it was held"))

    def _leader_changed(self, term: int, leader: str | None) -> None:
        if leader != self.id:
            self.records.follow(term)
            self.jobs.look(self.now(), led=leader is not None)

    # -- records -----------------------------------------------------------------------------

    def _applied(self, record: Record) -> None:
        decoded = job_records.decode(record.payload)
        about = f"record {type(decoded).__name__} of {decoded.job_id}"
        effects: list[Effect] = []
        with self.faults.contained(about):
            effects = self.jobs.applied(self.now(), decoded)
            if isinstance(decoded, Submitted):
                self.accept(decoded.job_id, None)
            if self.leadership.term and self.jobs.took_effect:
                self._measured(decoded)
            if isinstance(decoded, ToldLate) and self.jobs.took_effect:
                self.merging.outdated(decoded.job_id, decoded.part.workflow)
            if isinstance(decoded, TimedOut) and self.jobs.took_effect:
                self.counters.timed_out(self.jobs, decoded)
            if isinstance(decoded, Finished):
                self.live.ended(decoded.job_id)
                self.progress_backup.forget(decoded.job_id)
                self.commands.contexts.forget(decoded.job_id)
                self._bodies.pop(decoded.job_id, None)  # less of it is kept now
                self.merging.forget(decoded.job_id)
        for effect in effects:
            with self.faults.contained(about):
                self.carry_out((effect,))

    def _measured(self, record: JobRecord) -> None:
        """A part's true numbers take the place of what it had reported."""
        if isinstance(record, PartEnded | PartLost) and record.result:
            job = self.jobs.job(record.job_id)
            if job is not None and not job.is_over:
                facts = next(
                    f for f in self.body_of(job).workflows if f.name == record.part.workflow
                )
                reported = self.live.leave(record.part)
                self.host.tasks.spawn(
                    f"take in {record.part}",
                    self.long_work.do(lambda: self._replace(facts, record, reported)),
                )

    def _replace(
        self, facts: WorkflowFacts, record: PartEnded | PartLost, reported: LivePart | None
    ) -> None:
        job = self.jobs.job(record.job_id)
        if self.leadership.term and job is not None and not job.is_over:
            state = part_end.decode_end(record.result).state
            self.live.replace(facts, record.part, state, reported)

    def _forgotten(self, job_id: str) -> None:
        """All managers forget at the same place in the log, whatever their clocks say."""
        with self.faults.contained(f"the end of {job_id}"):
            self.carry_out(self.jobs.forget(self.now(), job_id))
        self._bodies.pop(job_id, None)
        self.thresholds.drop(job_id)
        self.live.ended(job_id)
        self.endings.forget(job_id)
        self.merging.forget(job_id)

    # -- what the core wants -----------------------------------------------------------------

    def carry_out(self, effects: Sequence[Effect]) -> None:
        self.changed.set()
        for effect in effects:
            match effect:
                case Append(record):
                    self.host.tasks.spawn(
                        f"hold {type(record).__name__}", self.job_log.append(record)
                    )
                case Dispatch():
                    self.commands.dispatch(effect)
                case Start():
                    self.commands.start(effect)
                case Command():
                    self.commands.command(effect)
                case Teardown():
                    self.commands.tear_down(effect)
                case Acknowledge(_, part, fence):
                    self._settling.tell((part, fence), True)
                case CollectReported():
                    self._collect_reported(effect)
                case MakeResults():
                    self.merging.make_results(effect)
                case ForgetWorker(worker):
                    self.worker_api.forget(worker)
                case LogEvent():
                    self._tell(effect)

    def _collect_reported(self, effect: CollectReported) -> None:
        placement = effect.placement
        part = placement.part
        pace = self.live.pace(part)  # before it is left out
        at_s, iterations, state = self._heard_of(placement)
        end = PartEnd(
            part=placement.part,
            fence=placement.fence,
            worker=placement.worker,
            outcome="cut off",
            iterations=iterations,
            state=state,
            lost=(effect.reason,),
        )
        result = part_end.encode_end(end) if state else b""
        if len(result) > self.job_log.room_bytes(part.job_id, str(part), effect.reason):
            result = b""
        heard = Heard(at_s, iterations, result, pace)
        self.carry_out(self.jobs.part_lost(self.now(), placement, heard))

    def _heard_of(self, placement: Placement) -> tuple[float, int, bytes]:
        """By us, or by the leader before us."""
        part, fence = placement.part, placement.fence
        heard = self.live.close(part, fence)
        backup = self.progress_backup.of(part, fence)
        if heard[2] or backup is None:
            return heard
        try:
            return backup.at_s, backup.iterations, spread(backup.state, placement.resume_at_s)
        except DamagedState as error:
            self.log.warning("backup of a part not readable", part=str(part), reason=error.message)
            return heard

    def _tell(self, effect: LogEvent) -> None:
        job = self.jobs.job(effect.job_id)
        correlation_id = job.submitted.correlation_id if job is not None else effect.job_id
        say = getattr(self.log, effect.level)
        say(effect.event, job=effect.job_id, correlation_id=correlation_id, **effect.facts)

    # -- what others need --------------------------------------------------------------------

    def accepting(self, job_id: str) -> Awaitable[None]:
        """Resolves when the job's first record is held; raises why it is not."""
        future = self._accepting.add(job_id)
        if self.jobs.job(job_id) is not None:
            self.accept(job_id, None)
        return future

    def accept(self, job_id: str, error: HyperscaleError | None) -> None:
        self._accepting.tell(job_id, error)

    def settling(self, part: Part, fence: Fence) -> Awaitable[bool]:
        """Resolves when the worker may forget the end of this part."""
        return self._settling.add((part, fence))

    def body_of(self, job: JobState) -> Body:
        body = self._bodies.get(job.job_id)
        if body is None:
            body = msgspec.msgpack.decode(job.submitted.body, type=Body)
            self._bodies[job.job_id] = body
        return body

    def judges(self, job: JobState) -> list[Judge]:
        return self.thresholds.of(job)
