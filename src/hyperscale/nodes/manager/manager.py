"""A manager: the jobs core joined to its cluster, its log, its workers and its clients.

It decides nothing. Records are applied as they are held by a quorum; what the core wants done is
done while this manager leads; leadership comes and goes with the election.
"""

from __future__ import annotations

import functools
from collections.abc import Generator

from hyperscale.cluster.jobs.core import Jobs
from hyperscale.cluster.jobs.effects import LogEvent
from hyperscale.cluster.jobs.events import Follow, Lead, LeaderSeen, WorkerDied
from hyperscale.cluster.membership import MemberState
from hyperscale.cluster.overload.ratelimit import RateLimitSettings
from hyperscale.errors import HyperscaleError, RunFailed
from hyperscale.ledger.records import RecordsError
from hyperscale.ledger.wal import LogClosed, LogFailed
from hyperscale.nodes.manager.applied_records import AppliedRecords
from hyperscale.nodes.manager.bodies import Bodies
from hyperscale.nodes.manager.client_api import ClientApi
from hyperscale.nodes.manager.client_queries import ClientQueries
from hyperscale.nodes.manager.commands import Commands
from hyperscale.nodes.manager.condensing import CONDENSE
from hyperscale.nodes.manager.counters import Counters
from hyperscale.nodes.manager.effect_runner import EffectRunner
from hyperscale.nodes.manager.faults import Faults
from hyperscale.nodes.manager.gate_api import GateApi
from hyperscale.nodes.manager.job_log import JobLog
from hyperscale.nodes.manager.leadership import Leadership
from hyperscale.nodes.manager.live import Live
from hyperscale.nodes.manager.lost_parts import LostParts
from hyperscale.nodes.manager.merging import Merging
from hyperscale.nodes.manager.part_events import PartEvents
from hyperscale.nodes.manager.progress_backup import BACKUP_S, ProgressBackup
from hyperscale.nodes.manager.report_filter import Pressure
from hyperscale.nodes.manager.results import ends_of
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.manager.thresholds import Thresholds
from hyperscale.nodes.manager.timers import Timers
from hyperscale.nodes.manager.watching import Watching
from hyperscale.nodes.manager.worker_api import WorkerApi
from hyperscale.nodes.manager.worker_table import WorkerTable
from hyperscale.nodes.member.access import Access
from hyperscale.nodes.member.endings import Endings
from hyperscale.nodes.member.long_work import LongWork
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.protocol.datacenters import DATACENTERS, ProbeDatacenter
from hyperscale.nodes.protocol.jobs import JOBS
from hyperscale.nodes.protocol.parts import PARTS
from hyperscale.nodes.protocol.records import RECORDS, NoteParts, RecordsRequest
from hyperscale.runtime import logs
from hyperscale.runtime.host import Host
from hyperscale.wire.messages import Registry

LEAD_RETRY_S = 0.5
THRESHOLDS_EVERY_S = 1.0  # those that may abort are looked at this often
REACH_EVERY_S = 1.0  # whether doubtful workers can be commanded
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
        self.started = False
        self._failure: Exception | None = None
        self._make_node()
        self._make_core()
        self._make_apis()
        self.timers = Timers(host, self.node, self.leadership)
        self.over = self.node.over

    def _make_node(self) -> None:
        kinds = Registry()
        for more in (JOBS, PARTS, RECORDS, DATACENTERS):
            kinds.include(more)
        only_gates = self.settings.only_gates
        self.node = Node(self.host, self.settings.node, kinds, limits=LIMITS, only_gates=only_gates)
        self.node.queue = lambda: self.records.status().pending_share
        self.node.syncing = lambda: self.records.status().newcomer
        self.leadership = Leadership(self.host, self.node)

    def _make_core(self) -> None:
        """The jobs core, its log, and what its effects and records lead to."""
        host, settings, log = self.host, self.settings, self.log
        self.core = Jobs(settings.jobs, host.random, CONDENSE)
        self.jobs = jobs = self.core.queries
        self.effects = effects = EffectRunner(self.core, host.clock)
        effects.on(LogEvent, self._log_event)
        self.live = Live()
        self.bodies = Bodies()
        self.long_work = LongWork(host.clock)
        self.job_log = JobLog(
            host, self.id, settings.node.voters, settings.records, settings.jobs,
            self.leadership, effects, self.faults, log,
        )  # fmt: skip
        self.records = self.job_log.records
        others = [voter for voter in settings.node.voters if voter != self.id]
        self.backup = ProgressBackup(self.live, jobs.replicated, self.leadership, others)
        self.lost_parts = LostParts(self.live, self.backup, self.job_log, effects, log)
        self.thresholds = Thresholds(effects, self.bodies, self.live)
        self.merging = Merging(
            host, settings.node.cluster, jobs, effects, self.bodies, self.thresholds,
            self.job_log, self.long_work, log,
        )  # fmt: skip
        self.commands = Commands(
            host, lambda: self.node.endpoint, jobs, effects, self.leadership, self.live,
            self.bodies, log,
        )  # fmt: skip
        self.endings = Endings()
        self.applied_records = AppliedRecords(
            host, jobs, effects, self.leadership, self.live, self.bodies, self.merging,
            self.thresholds, self.backup, self.commands, self.endings, self.counters,
            self.long_work, self.faults,
        )  # fmt: skip

    def _make_apis(self) -> None:
        """What workers, clients and other managers may ask."""
        settings, clock, jobs, log = self.settings, self.host.clock, self.jobs, self.log
        self.worker_table = WorkerTable(clock, self.node, jobs, self.live)
        self.pressure = Pressure(settings.progress_per_s_max, lambda: self.node.admission.load)
        self.part_events = PartEvents(
            jobs, self.effects, self.leadership, self.bodies, self.job_log, self.long_work, log
        )
        self.worker_api = WorkerApi(
            clock, self.node, jobs, self.effects, self.leadership, self.live, self.bodies,
            self.commands, self.worker_table, self.part_events, self.pressure, self.counters,
        )  # fmt: skip
        access = Access(settings.jobs_of_others, settings.node.credentials is not None)
        self.client_queries = ClientQueries(
            clock, self.id, access, jobs, self.live, self.endings, self.worker_table
        )
        self.watching = Watching(
            clock, settings, jobs, self.leadership, self.live, self.bodies, self.merging,
            self.client_queries,
        )  # fmt: skip
        self.client_api = ClientApi(
            settings.node, access, jobs, self.effects, self.job_log, self.leadership,
            self.long_work, self.commands.sender, self.client_queries, self.watching, log,
        )  # fmt: skip
        self.gate_api = GateApi(self.node, self.leadership, jobs)
        self.node.answer({ProbeDatacenter: self.gate_api.probe})
        self.node.answer({RecordsRequest: self.job_log.asked, NoteParts: self.backup.heard})
        self.node.answer(self.worker_api.handlers())
        self.node.answer(self.client_api.handlers())

    @property
    def failure(self) -> Exception | None:
        return self._failure or self.node.failure

    def now(self) -> float:
        return self.host.clock.now()

    # -- life --------------------------------------------------------------------------------

    async def start(self) -> None:
        try:
            await self.records.open()
        except HyperscaleError as error:
            raise RunFailed(f"{self.id} cannot start: {error.message}", error.hint) from error
        known = [record for job in self.records.jobs() for record in self.records.records(job)]
        self.applied_records.replay(known)
        self.records.on_applied.append(self.applied_records.applied)
        self.records.on_forgotten.append(self.applied_records.forgotten)
        await self.node.start()
        assert self.node.election is not None, "a manager votes"
        self.node.membership.on_change(self.worker_api.changed)
        self.node.election.on_become_leader.append(self._elected)
        self.node.election.on_lose_leadership.append(self._deposed)
        self.node.election.on_leader_change.append(self._leader_changed)
        self.started = self.worker_api.started = True
        voters = len(self.settings.node.voters)
        if voters % 2 == 0:
            self.log.warning("an even number of voters", voters=voters, may_fail=voters // 2 - 1)
        self._start_timers()
        self.host.tasks.spawn("watch the records", self._watch_records())
        if self.node.election.may_lead():
            self._elected(self.node.election.term)

    def _start_timers(self) -> None:
        timers, settings = self.timers, self.settings
        timers.keep_deadlines(self.core, self.effects)
        timers.every(settings.window_s, "windows", lambda: self.live.turn())
        timers.while_leading(THRESHOLDS_EVERY_S, "thresholds", self._check_thresholds)
        timers.while_leading(settings.jobs.orphan_scan_s, "orphans", self.commands.ask_parts)
        timers.while_leading(BACKUP_S, "progress backup", self.backup.tell)
        timers.while_leading(REACH_EVERY_S, "doubtful workers", self.commands.reach_doubtful)

    def _check_thresholds(self) -> None:
        for job in self.jobs.jobs():
            if not job.is_over and not job.ending:
                check = functools.partial(self.thresholds.check, job)
                self.timers.attempt("thresholds", check)

    def reload(self) -> None:
        self.node.reload()

    async def stop(self) -> None:
        """Hand over, leave, and let go of the files; jobs go on without us."""
        self._deposed(self.leadership.term, "it is shutting down")
        await self.node.stop()
        await self.records.close()

    async def _watch_records(self) -> None:
        self._failure = await self.records.failed()
        self.log.critical("the records failed", error=str(self._failure))
        self.over.set()

    def _log_event(self, effect: LogEvent) -> None:
        job = self.jobs.job(effect.job_id)
        correlation_id = job.submitted.correlation_id if job is not None else effect.job_id
        say = getattr(self.log, effect.level)
        say(effect.event, job=effect.job_id, correlation_id=correlation_id, **effect.facts)

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
        self.effects.receive(Lead(term))
        self._tell_deaths()

    def _recall_finished(self) -> Generator[None, None, None]:
        """What parts of running jobs have measured before this leadership, one part at a time."""
        for job in self.jobs.jobs():
            if job.is_over:
                continue
            self.thresholds.take_over(job)
            for facts in self.bodies.of(job).workflows:
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
                self.effects.receive(WorkerDied(worker, member.node.incarnation))

    def _deposed(self, term: int, reason: str) -> None:
        if self.leadership.term:
            self.log.info("not leading any more", term=term, reason=reason)
        self.leadership.term = 0
        self.records.follow(self.leadership.newest_term)
        self.effects.decide(Follow())
        self.worker_api.retire()
        self.live.clear()
        self.thresholds.clear()
        self.merging.clear()
        self.part_events.abandon()
        self.job_log.abandon()

    def _leader_changed(self, term: int, leader: str | None) -> None:
        if leader != self.id:
            self.records.follow(term)
            self.effects.decide(LeaderSeen(leader is not None))
