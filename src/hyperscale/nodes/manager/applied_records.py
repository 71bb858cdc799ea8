"""Committed records on their way into the jobs core, and what else of a manager follows them.

All managers hold the same records: one that none of them can deal with is reported, and must not
be the end of any.
"""

from __future__ import annotations

from hyperscale.cluster.invariants import invariant
from hyperscale.cluster.jobs import records as job_records
from hyperscale.cluster.jobs.effects import Effect, answer_to
from hyperscale.cluster.jobs.events import Applied, Forgotten
from hyperscale.cluster.jobs.queries import JobQueries
from hyperscale.cluster.jobs.records import (
    Finished,
    JobRecord,
    PartEnded,
    PartLost,
    TimedOut,
    ToldLate,
)
from hyperscale.ledger.records import Record
from hyperscale.nodes.manager import part_end
from hyperscale.nodes.manager.bodies import Bodies
from hyperscale.nodes.manager.commands import Commands
from hyperscale.nodes.manager.counters import Counters
from hyperscale.nodes.manager.effect_runner import EffectRunner
from hyperscale.nodes.manager.faults import Faults
from hyperscale.nodes.manager.leadership import Leadership
from hyperscale.nodes.manager.live import Live, LivePart
from hyperscale.nodes.manager.merging import Merging
from hyperscale.nodes.manager.progress_backup import ProgressBackup
from hyperscale.nodes.manager.thresholds import Thresholds
from hyperscale.nodes.member.endings import Endings
from hyperscale.nodes.member.long_work import LongWork
from hyperscale.runtime.host import Host
from hyperscale.workload.facts import WorkflowFacts


class AppliedRecords:
    def __init__(
        self,
        host: Host,
        jobs: JobQueries,
        effects: EffectRunner,
        leadership: Leadership,
        live: Live,
        bodies: Bodies,
        merging: Merging,
        thresholds: Thresholds,
        backup: ProgressBackup,
        commands: Commands,
        endings: Endings,
        counters: Counters,
        long_work: LongWork,
        faults: Faults,
    ) -> None:
        self._host = host
        self._jobs = jobs
        self._effects = effects
        self._leadership = leadership
        self._live = live
        self._bodies = bodies
        self._merging = merging
        self._thresholds = thresholds
        self._backup = backup
        self._commands = commands
        self._endings = endings
        self._counters = counters
        self._long_work = long_work
        self._faults = faults

    def replay(self, records: list[Record]) -> None:
        """What was remembered from before, in the order it was decided."""
        for record in sorted(records, key=lambda record: record.index):
            self._effects.decide(Applied(job_records.decode(record.payload)))

    def applied(self, record: Record) -> None:
        decoded = job_records.decode(record.payload)
        about = f"record {type(decoded).__name__} of {decoded.job_id}"
        effects: list[Effect] = []
        with self._faults.contained(about):
            invariant(decoded.job_id == record.job_id, "a record is kept under the job it is about")
            event = Applied(decoded)
            effects = self._effects.decide(event)
            if answer_to(event, effects):
                self._took_effect(decoded)
            if isinstance(decoded, Finished):
                self._finished(decoded.job_id)
        for effect in effects:
            with self._faults.contained(about):
                self._effects.carry_out((effect,))

    def _took_effect(self, record: JobRecord) -> None:
        if self._leadership.term:
            self.measured(record)
        if isinstance(record, ToldLate):
            self._merging.outdated(record.job_id, record.part.workflow)
        if isinstance(record, TimedOut):
            self._counters.timed_out(self._jobs, record)

    def _finished(self, job_id: str) -> None:
        self._live.ended(job_id)
        self._backup.forget(job_id)
        self._commands.contexts.forget(job_id)
        self._bodies.forget(job_id)  # less of it is kept now
        self._merging.forget(job_id)

    def measured(self, record: JobRecord) -> None:
        """A part's true numbers take the place of what it had reported."""
        if isinstance(record, PartEnded | PartLost) and record.result:
            job = self._jobs.job(record.job_id)
            if job is not None and not job.is_over:
                facts = self._bodies.facts(job, record.part.workflow)
                reported = self._live.leave(record.part)
                self._host.tasks.spawn(
                    f"take in {record.part}",
                    self._long_work.do(lambda: self._replace(facts, record, reported)),
                )

    def _replace(
        self, facts: WorkflowFacts, record: PartEnded | PartLost, reported: LivePart | None
    ) -> None:
        job = self._jobs.job(record.job_id)
        if self._leadership.term and job is not None and not job.is_over:
            state = part_end.decode_end(record.result).state
            self._live.replace(facts, record.part, state, reported)

    def forgotten(self, job_id: str) -> None:
        """All managers forget at the same place in the log, whatever their clocks say."""
        with self._faults.contained(f"the end of {job_id}"):
            self._effects.receive(Forgotten(job_id))
        self._bodies.forget(job_id)
        self._thresholds.drop(job_id)
        self._live.ended(job_id)
        self._endings.forget(job_id)
        self._merging.forget(job_id)
