"""The jobs that this gate owns: one run in each of their datacenters, and one end.

Whoever is primary of a job's group runs it. A gate that is deposed lets go of it; the next one
begins where the log ends. Nothing here decides: an end counts once it is committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from hyperscale.cluster.datacenters import Verdict
from hyperscale.engine.results import aggregate_of
from hyperscale.ledger.vsr import NotPrimary, Unknown
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.results import encode
from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.picture import News
from hyperscale.nodes.gate.barrier import Barrier
from hyperscale.nodes.gate.counters import Counters
from hyperscale.nodes.gate.datacenter_run import DatacenterRun, withdraw
from hyperscale.nodes.gate.datacenters import Datacenters
from hyperscale.nodes.gate.events import AnyEvent, Commanded, Completed, Lost, Withdrawn
from hyperscale.nodes.gate.job_ledger import JobLedger
from hyperscale.nodes.gate.jobs import GateJob
from hyperscale.nodes.gate.merging import BY_THRESHOLD, LATE_S, aggregates_of, results_of, status_of
from hyperscale.nodes.gate.numbers import LiveNumbers
from hyperscale.nodes.gate.settings import GateSettings
from hyperscale.nodes.gate.thresholds import JUDGED_EVERY_S, Thresholds
from hyperscale.nodes.member.long_work import LongWork
from hyperscale.nodes.protocol.jobs import DatacenterView, JobUpdate, Snapshot, SteerJob, Window
from hyperscale.runtime.host import Host, Task

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

LOOK_S = 0.1
PATIENT_S = 120.0  # with a datacenter that answers, and takes nothing
# A watcher that is further behind gets a snapshot instead.
WINDOWS_MAX = 500


class OwnedJob:
    run_class = DatacenterRun
    barrier_class = Barrier

    def __init__(
        self,
        host: Host,
        job: GateJob,
        ledger: JobLedger,
        datacenters: Mapping[str, Cluster],
        settings: GateSettings,
        counts: Counters,
        log: FilteringBoundLogger,
        reach: Datacenters,
    ) -> None:
        self.job = job
        self._counts = counts
        self._reach = reach
        self._log = log
        self._host = host
        self._ledger = ledger
        self._settings = settings
        self._long_work = LongWork(host.clock)
        self._patient_since: dict[str, float] = {}
        self.runs = {
            name: self.run_class(host, name, datacenters.get(name), job, self._note, self._is_lost)
            for name in job.running_in
        }
        self._numbers = LiveNumbers(host.clock)
        self._ended = {name: aggregates_of(job, end) for name, end in job.ends.items()}
        self.thresholds = Thresholds(job)
        self._windows: deque[Window] = deque(maxlen=WINDOWS_MAX)
        self._index = 0
        self._replaced_at = 0  # windows before this one do not add up to what is known now

    async def run(self) -> None:
        """Until its end is committed. Raises NotPrimary."""
        job, tasks = self.job, self._host.tasks
        running = [
            tasks.spawn(f"run {job.job_id} in {run.name}", self._run_in(run))
            for run in self.runs.values()
        ]
        beside = [
            tasks.spawn(f"begin {job.job_id}", self._begin()),
            tasks.spawn(f"totals of {job.job_id}", self._keep_totals()),
            tasks.spawn(f"thresholds of {job.job_id}", self._judge()),
        ]
        try:
            for task in running:
                await task
        finally:
            for task in (*running, *beside):
                task.cancel()
        if job.is_over or job.running_in:
            return
        status, reason = status_of(job)
        elapsed_s = self._host.clock.now() - job.known_since
        making = results_of(job, self._settings.node.cluster, elapsed_s, self.thresholds.judges)
        results = await self._long_work.run(making)
        completed = Completed(status, reason, encode(results, indent=0))
        await self._ledger.append_surely(job.job_id, completed)

    async def _begin(self) -> None:
        if self.job.is_held:
            barrier = self.barrier_class(
                self._host,
                self.job,
                self.runs,
                self._ledger,
                self._settings.begin_within_s,
                self._log,
                self._reach.is_cut_off,
            )
            with suppress(NotPrimary):
                await barrier.run()

    async def _keep_totals(self) -> None:
        """So that a datacenter that dies together with this gate does not take back what it told
        long ago."""
        job = self.job
        while True:
            await self._host.clock.sleep(self._settings.totals_s)
            for name in job.running_in:
                totals, before = self.runs[name].totals(), job.told.get(name)
                if totals.requests <= (0 if before is None else before.requests):
                    continue
                try:
                    await self._ledger.append(job.job_id, totals)
                except NotPrimary:
                    return
                except Unknown:
                    continue  # it is said again, with more

    async def _judge(self) -> None:
        job = self.job
        while self.thresholds.judges:
            await self._host.clock.sleep(JUDGED_EVERY_S)
            if any(self.runs[name].picture.view is None for name in job.running_in):
                continue  # an owner that has not been told all yet would see too little load
            crossed = self.thresholds.look(self.told())
            events: list[AnyEvent] = [*self.thresholds.news()]
            if crossed is not None and not job.ending:
                reason = f"threshold {crossed.threshold.expression} was crossed"
                stop = SteerJob(
                    job_id=job.job_id, action="stop", by=BY_THRESHOLD, reason=reason,
                    command_id=BY_THRESHOLD,
                )  # fmt: skip
                events.append(Commanded(stop))
                self._counts.aborted += 1
            try:
                for event in events:
                    await self._ledger.append(job.job_id, event)
            except NotPrimary:
                return
            except Unknown:
                continue  # it is news still

    def told(self) -> dict[str, list[WorkflowAggregate]]:
        """What is known of each datacenter, those that are over among them."""
        found = dict(self._ended)
        found |= {name: list(run.picture.aggregates().values()) for name, run in self.runs.items()}
        return found

    async def _run_in(self, run: DatacenterRun) -> None:
        end = await run.run()
        if isinstance(end, Lost):
            why = "not ready" if run.gave_up else "silent"
            self._counts.lost[run.name, why] += 1
            self._reach.failed(run.name)
            self._log.warning(
                "datacenter lost", job=self.job.job_id, datacenter=run.name, reason=end.reason
            )
        else:
            end = msgspec.structs.replace(end, late_s=self._late_s(run))
            self._counts.ended[run.name, end.status] += 1
            self._counts.late += end.late_s >= LATE_S
        with suppress(NotPrimary):
            await self._ledger.append_surely(self.job.job_id, end)

    def _late_s(self, run: DatacenterRun) -> float:
        """After the first datacenter in which the load began."""
        known = [one.began_at for one in self.runs.values() if one.began_at is not None]
        return 0.0 if run.began_at is None else round(run.began_at - min(known), 3)

    def _is_lost(self, name: str, asked_later: bool) -> bool:
        """Not while it may be our own line that is cut; and where another gate reaches it, that
        one may go on with the job. A datacenter that is led, and asks for patience, has it for a
        while: what was accepted is not dropped because somebody is busy."""
        if asked_later and self._reach.is_led(name):
            now = self._host.clock.now()
            since = self._patient_since.setdefault(name, now)
            if now < since + PATIENT_S:
                self._log.warning("datacenter busy", job=self.job.job_id, datacenter=name)
                return False
        job_id, others = self.job.job_id, [one for one in self.job.running_in if one != name]
        verdict = self._reach.verdict(name, others, self._ledger.members(job_id))
        if verdict is Verdict.LOST:
            return True
        self._log.warning(
            "datacenter silent, not given up", job=job_id, datacenter=name, verdict=verdict.value
        )
        if verdict is Verdict.HAND_OVER:
            self._ledger.hand_over(job_id)
        return False

    # -- numbers -------------------------------------------------------------------------------

    def together(self) -> DatacenterView:
        """All datacenters, those that are over among them."""
        whole = [one for several in self.told().values() for one in several]
        return self._numbers.put_into(DatacenterView(name="all", status=""), whole)

    def _note(self, run: DatacenterRun, update: JobUpdate, news: News) -> None:
        self._counts.told[run.name] += 1
        self._patient_since.pop(run.name, None)
        if news.replaced:
            self._replaced_at = self._index + 1
            self._index += 1
        for progress in news.progress:
            if progress.held or news.replaced:
                continue
            self._index += 1
            window = progress.window
            delta = msgspec.structs.replace(window.delta, vus=self._vus(window.workflow))
            self._windows.append(msgspec.structs.replace(window, index=self._index, delta=delta))

    def _vus(self, workflow: str) -> int:
        return sum(run.picture.aggregates()[workflow].vus for run in self.runs.values())

    def since(self, index: int | None) -> tuple[list[Window], list[Snapshot], int]:
        """What a watcher that has seen `index` lacks."""
        behind = index is not None and self._windows and self._windows[0].index > index + 1
        if index is None or index < self._replaced_at or behind:
            return [], self._snapshots(), self._index
        return [window for window in self._windows if window.index > index], [], self._index

    def _snapshots(self) -> list[Snapshot]:
        made = []
        for facts in self.job.body.workflows:
            whole = aggregate_of(facts)
            for several in self.told().values():
                for one in several:
                    if one.name == facts.name:
                        whole.absorb(one.export())
            made.append(
                Snapshot(
                    workflow=facts.name,
                    index=self._index,
                    elapsed_s=whole.elapsed_s,
                    state=whole.export(),
                )
            )
        return made


class Owner:
    owned_class = OwnedJob

    def __init__(
        self,
        host: Host,
        ledger: JobLedger,
        datacenters: Mapping[str, Cluster],
        settings: GateSettings,
        log: FilteringBoundLogger,
        reach: Datacenters,
    ) -> None:
        self._host = host
        self._reach = reach
        self._ledger = ledger
        self._datacenters = datacenters
        self._settings = settings
        self._log = log
        self.counts = Counters()
        self._owned: dict[str, tuple[OwnedJob, Task]] = {}
        self._withdrawing: dict[tuple[str, str], Task] = {}

    @property
    def owns(self) -> int:
        return len(self._owned)

    def owned(self, job_id: str) -> OwnedJob | None:
        found = self._owned.get(job_id)
        return None if found is None else found[0]

    async def run(self) -> None:
        while True:
            for job in self._ledger.jobs.unsettled():
                self._look_at(job)
                self._look_at_lost(job)
            await self._host.clock.sleep(LOOK_S)

    def _look_at(self, job: GateJob) -> None:
        owns, running = self._ledger.owns(job.job_id), job.job_id in self._owned
        if owns and not running and not job.is_over:
            owned = self.owned_class(
                self._host,
                job,
                self._ledger,
                self._datacenters,
                self._settings,
                self.counts,
                self._log,
                self._reach,
            )
            task = self._host.tasks.spawn(f"own {job.job_id}", self._carry_out(owned))
            self._owned[job.job_id] = (owned, task)
            is_new = job.begun is None and not job.told and not job.ends
            self.counts.taken["new" if is_new else "taken over"] += 1
            self._log.info("owns job", job=job.job_id, datacenters=job.running_in)
        elif running and not owns:
            _, task = self._owned.pop(job.job_id)
            task.cancel()
            self._log.info("owns job no more", job=job.job_id)

    def _look_at_lost(self, job: GateJob) -> None:
        owns = self._ledger.owns(job.job_id)
        for name in set(job.to_withdraw) & set(self._datacenters):
            task = self._withdrawing.get((job.job_id, name))
            if owns and task is None:
                work = self._withdraw(job, name)
                task = self._host.tasks.spawn(f"withdraw {job.job_id} from {name}", work)
                self._withdrawing[job.job_id, name] = task
            elif task is not None and not owns:
                task.cancel()
                del self._withdrawing[job.job_id, name]

    async def _withdraw(self, job: GateJob, name: str) -> None:
        """Its result stands, so what runs there would be load that nobody reports."""
        try:
            await withdraw(self._host, self._datacenters[name], job.job_id)
            self._log.info("job withdrawn", job=job.job_id, datacenter=name)
            await self._ledger.append_surely(job.job_id, Withdrawn(name))
        except NotPrimary:
            return  # `_look_at_lost` sees it
        self._withdrawing.pop((job.job_id, name), None)

    async def _carry_out(self, owned: OwnedJob) -> None:
        job_id = owned.job.job_id
        try:
            await owned.run()
        except NotPrimary:
            return  # `_look_at` sees it
        except Exception as error:  # noqa: BLE001 - it is said, and tried again
            self._log.exception("job not carried out", job=job_id, error=repr(error))
            await self._host.clock.sleep(1.0)
        self._owned.pop(job_id, None)
