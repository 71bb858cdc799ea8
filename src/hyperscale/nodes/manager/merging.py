"""Workflows and jobs that are over: the numbers of their parts as one, merged in steps."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from hyperscale._version import __version__
from hyperscale.cluster.jobs.effects import MakeResults
from hyperscale.cluster.jobs.events import ResultsMade
from hyperscale.cluster.jobs.queries import JobQueries
from hyperscale.cluster.jobs.state import JobState
from hyperscale.errors import RunFailed
from hyperscale.metrics import exported
from hyperscale.metrics import results as metrics_results
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.results import Environment, Results, WorkflowResult
from hyperscale.nodes.manager.bodies import Bodies
from hyperscale.nodes.manager.effect_runner import EffectRunner
from hyperscale.nodes.manager.job_log import JobLog
from hyperscale.nodes.manager.results import (
    encoded_within,
    ends_of,
    job_results,
    merged,
    merging,
)
from hyperscale.nodes.manager.thresholds import Thresholds
from hyperscale.nodes.member.long_work import LongWork
from hyperscale.nodes.protocol.jobs import Body, WorkflowDone
from hyperscale.runtime.host import Host

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

Key = tuple[str, str]  # job, workflow
Whole = asyncio.Future[WorkflowAggregate]


class Merging:
    """Of each workflow once, however many watch it."""

    def __init__(
        self,
        host: Host,
        cluster: str,
        jobs: JobQueries,
        effects: EffectRunner,
        bodies: Bodies,
        thresholds: Thresholds,
        job_log: JobLog,
        long_work: LongWork,
        log: FilteringBoundLogger,
    ) -> None:
        self._host = host
        self._cluster = cluster
        self._jobs = jobs
        self._effects = effects
        self._bodies = bodies
        self._thresholds = thresholds
        self._job_log = job_log
        self._long_work = long_work
        self._log = log
        effects.on(MakeResults, self.make_results)
        self._wholes: dict[Key, Whole] = {}
        self._told: dict[Key, WorkflowDone] = {}

    def forget(self, job_id: str) -> None:
        for known in (self._wholes, self._told):
            for key in [key for key in known if key[0] == job_id]:
                del known[key]

    def clear(self) -> None:
        self._wholes.clear()
        self._told.clear()

    # -- a workflow --------------------------------------------------------------------------

    def done(self, job: JobState, name: str) -> WorkflowDone | None:
        """A finished workflow, for whoever watches; None while it is being merged."""
        key = (job.job_id, name)
        if key not in self._told:
            result = self._result(job, name)
            if result is None:
                return None
            self._told[key] = _done(job, name, result)
        return self._told[key]

    def _result(self, job: JobState, name: str) -> WorkflowResult | None:
        if job.finished is None:
            whole = self._whole(job, name)
            return whole.result().freeze() if whole.done() and not whole.exception() else None
        if not job.finished.results:
            return merged(self._bodies.facts(job, name), job.workflows[name], job).freeze()
        results = metrics_results.decode(job.finished.results)
        return next(workflow for workflow in results.workflows if workflow.name == name)

    def _whole(self, job: JobState, name: str) -> Whole:
        """Of a workflow of which nothing changes any more, as far as one can tell."""
        key = (job.job_id, name)
        whole = self._wholes.get(key)
        if whole is None:
            whole = self._wholes[key] = asyncio.get_running_loop().create_future()
            merge = self._merge(job, name, whole)
            self._host.tasks.spawn(f"merge {name} of {job.job_id}", merge)
        return whole

    def outdated(self, job_id: str, name: str) -> None:
        """A lost worker came back and told more: to be merged again. Who watches has been told."""
        self._wholes.pop((job_id, name), None)

    async def _merge(self, job: JobState, name: str, whole: Whole) -> None:
        steps = merging(self._bodies.facts(job, name), job.workflows[name], job)
        try:
            whole.set_result(await self._long_work.run(steps))
        except Exception as error:  # noqa: BLE001 - whoever makes the job's results says what it was
            whole.set_exception(error)
            whole.exception()  # it may be that nobody does

    # -- a job -------------------------------------------------------------------------------

    def make_results(self, effect: MakeResults) -> None:
        job = self._jobs.job(effect.job_id)
        if job is not None:
            elapsed_s = self._jobs.age_s(self._host.clock.now(), job.job_id)
            work = self._make_results(job, effect, elapsed_s)
            self._host.tasks.spawn(f"results of {job.job_id}", work)

    async def _make_results(self, job: JobState, effect: MakeResults, elapsed_s: float) -> None:
        job_id, status, reason = effect.job_id, effect.status, effect.reason
        states: tuple[bytes, ...] = ()
        try:
            room_bytes = self._job_log.room_bytes(job_id, reason)
            results = encoded_within(await self._results(job, effect, elapsed_s), room_bytes)
            if job.submitted.for_gate:
                states = await self._states(job, room_bytes - len(results))
        except Exception as error:  # noqa: BLE001 - whatever it is, every job must end
            self._log.exception("no results", job=job_id, error=repr(error))
            status, results = "failed", b""
            reason = f"its results could not be put together: {error}"
        self._effects.receive(ResultsMade(job_id, status, reason, results, states))

    async def _results(self, job: JobState, effect: MakeResults, elapsed_s: float) -> Results:
        body = self._bodies.of(job)
        aggregates = [
            await asyncio.shield(self._whole(job, facts.name)) for facts in body.workflows
        ]
        return job_results(
            body,
            job,
            effect.status,
            elapsed_s=elapsed_s,
            lost=self._jobs.lost_sentences(job.job_id),
            judges=self._thresholds.of(job),
            environment=self._environment(body),
            aggregates=aggregates,
        )

    async def _states(self, job: JobState, room_bytes: int) -> tuple[bytes, ...]:
        """With the course over time if there is room for it. Raises RunFailed."""
        wholes = [await asyncio.shield(self._whole(job, name)) for name in job.workflows]
        for states in (
            tuple(whole.export() for whole in wholes),
            tuple(exported.spread(whole.brief()) for whole in wholes),
        ):
            if sum(map(len, states)) < room_bytes:
                return states
        raise RunFailed("their numbers are too much to be kept for the gates")

    def _environment(self, body: Body) -> Environment:
        return Environment(
            hyperscale=__version__,
            workers=len(self._jobs.pool.workers),
            host=f"cluster {self._cluster}",
            command=body.command,
        )


def _done(job: JobState, name: str, result: WorkflowResult) -> WorkflowDone:
    workflow = job.workflows[name]
    hints = (end.hint for end in ends_of(workflow) if end.hint)
    return WorkflowDone(
        workflow=name,
        status=workflow.lifecycle.public,
        result=msgspec.json.encode(result),
        error=workflow.error,
        hint=next(hints, ""),
    )
