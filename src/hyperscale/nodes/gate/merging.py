"""The end of a job in many datacenters: numbers merged, never averaged; one verdict."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from hyperscale._version import __version__
from hyperscale.cluster.jobs.records import JobStatus
from hyperscale.engine.results import Course, aggregate_of, assemble, carried_out, unjudged
from hyperscale.engine.thresholds import Judge
from hyperscale.errors import BadInput, ExitCode, RunFailed
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.histogram import Histogram
from hyperscale.metrics.results import (
    Cut,
    DatacenterResult,
    Environment,
    Results,
    WorkflowResult,
    decode,
)
from hyperscale.nodes.gate.events import Ended, Lost, Told
from hyperscale.nodes.gate.jobs import GateJob
from hyperscale.nodes.gate.numbers import service_times
from hyperscale.nodes.gate.shares import body_in, is_split
from hyperscale.workload.facts import WorkflowFacts

BY_THRESHOLD = "threshold"  # who ends a job of which one is crossed
LATE_S = 0.5  # less is the way of the word, and what a busy machine takes
CORES_APART = 10_000  # cores of one datacenter are counted apart from those of the next


def status_of(job: GateJob) -> tuple[JobStatus, str]:
    """All ended alike: that. One was lost or failed while others did not: partial."""
    statuses = {_status(end) for end in job.ends.values()}
    reason = _together({name: end.reason for name, end in job.ends.items()})
    if len(statuses) == 1:
        return statuses.pop(), reason
    return ("cancelled" if job.ending == "cancel" else "partial"), reason


def _together(reasons: dict[str, str]) -> str:
    """What all say is said once."""
    if len(set(reasons.values())) == 1:
        return next(iter(reasons.values()))
    return "; ".join(f"{name}: {reason}" for name, reason in reasons.items() if reason)


def _status(end: Ended | Lost) -> JobStatus:
    return end.status if isinstance(end, Ended) else "failed"


def results_of(
    job: GateJob, cluster: str, elapsed_s: float, judges: Sequence[Judge]
) -> Generator[None, None, Results]:
    """In steps."""
    body = job.body
    told = {
        name: decode(end.results)
        for name, end in job.ends.items()
        if isinstance(end, Ended) and end.results
    }
    wholes: list[WorkflowAggregate] = []
    for facts in body.workflows:
        whole = yield from _merged(facts, job, told)
        wholes.append(whole)
    lost = [f"{name}: {line}" for name, results in told.items() for line in results.lost]
    lost += [_loss(job, name, end) for name, end in job.ends.items() if isinstance(end, Lost)]
    cut, cut_reason = _cut(job, told)
    course = Course(
        name=body.name,
        started_at=body.started_at,
        # a gate that was started again has known the job for less time than it ran
        elapsed_s=max([elapsed_s, *(whole.facts.started_s + whole.elapsed_s for whole in wholes)]),
        state="finished",
        cut=cut,
        cut_reason=cut_reason,
        failure=_failure(job, told),
        lost=lost,
        tags=body.tags,
        warnings=[
            *body.warnings,
            *(
                f"{name}: {warning}"
                for name, results in told.items()
                for warning in results.warnings
                if warning not in body.warnings
            ),
            *_elsewhere(job),
            *_late(job),
            *unjudged(body.workflows, job.submitted.datacenters),
        ],
        environment=Environment(
            hyperscale=__version__,
            workers=sum(results.environment.workers for results in told.values()),
            host=f"cluster {cluster}, {len(job.submitted.datacenters)} datacenters",
            command=body.command,
        ),
    )
    apart: dict[tuple[str, str], WorkflowResult] = {}
    datacenters = []
    for name in job.submitted.datacenters:
        yield
        own = aggregates_of(job, job.ends[name])
        apart |= {(name, one.name): one.freeze() for one in own}
        datacenters.append(_datacenter(job, name, told.get(name), own))
    results = assemble(course, wholes, judges, final=True, apart=apart)
    results.datacenters = datacenters
    results.together = _all(results)
    return results


def _merged(
    facts: WorkflowFacts, job: GateJob, told: dict[str, Results]
) -> Generator[None, None, WorkflowAggregate]:
    """As if one machine had measured it; what was planned is planned once for each datacenter."""
    whole = aggregate_of(facts)
    known = whole.facts
    datacenters = job.submitted.datacenters
    for number, name in enumerate(datacenters):
        state = job.ends[name].states.get(facts.name)
        if state:
            whole.absorb(state, core_base=number * CORES_APART)
            yield
    parts = [
        workflow
        for results in told.values()
        for workflow in results.workflows
        if workflow.name == facts.name
    ]
    known.vus_max = sum(part.vus_max for part in parts)
    known.cores = sum(part.cores for part in parts)
    known.prepare_s = max((part.prepare_s for part in parts), default=0.0)
    known.started_s = min((part.started_s for part in parts), default=0.0)
    known.state = "finished"
    known.error = next((part.error for part in parts if part.error), "")
    if not is_split(datacenters):
        _planned(known, len(datacenters))
    return whole


def _planned(known: WorkflowResult, datacenters: int) -> None:
    if known.planned_load is not None:
        known.planned_load *= datacenters
    if known.planned_iterations is not None:
        known.planned_iterations *= datacenters


def _elsewhere(job: GateJob) -> list[str]:
    asked = job.submitted.asked
    where = list(job.submitted.datacenters)
    if asked is None or not asked.datacenters or set(asked.datacenters) <= set(where):
        return []
    wanted = ", ".join(asked.datacenters)
    return [f"it was to run in {wanted}, and ran in {', '.join(where)}: others were allowed"]


def _late(job: GateJob) -> list[str]:
    return [
        f"the load in {name} began {end.late_s:.1f} s after that of the first datacenter"
        for name, end in job.ends.items()
        if isinstance(end, Ended) and end.late_s >= LATE_S
    ]


def _cut(job: GateJob, told: dict[str, Results]) -> tuple[Cut | None, str]:
    """What cut it short anywhere; a loss in one datacenter is told as such by itself."""
    for command in job.commands:
        if command.steer.by == BY_THRESHOLD and job.ending == "stop":
            return "threshold", command.steer.reason
    cut = {
        name: results.cut_reason
        for name, results in told.items()
        if results.cut is not None and results.cut != "error"
    }
    if not cut:
        return None, ""
    return told[next(iter(cut))].cut, _together(cut)


def _failure(job: GateJob, told: dict[str, Results]) -> RunFailed | BadInput | None:
    for name, results in told.items():
        if results.cut == "error":
            kind = BadInput if results.exit_code == ExitCode.BAD_INPUT else RunFailed
            return kind(f"{name}: {results.cut_reason}")
    for name, end in job.ends.items():
        if isinstance(end, Ended) and not end.results and end.status != "cancelled":
            return RunFailed(f"{name}: {end.reason or 'it ended without results'}")
    if not told:
        return RunFailed("; ".join(f"{name}: {end.reason}" for name, end in job.ends.items()))
    return None


def _loss(job: GateJob, name: str, end: Lost) -> str:
    offered = carried_out(one.freeze(buckets=False) for one in aggregates_of(job, end))
    when = f"{end.at_s:.1f} s into its load" if end.at_s else "before it told of any load"
    return f"datacenter {name} was lost {when}, with {offered:.0%} of its load: {end.reason}"


def aggregates_of(job: GateJob, end: Ended | Lost | Told) -> list[WorkflowAggregate]:
    """What one datacenter told, at its end or so far, beside what it was to do."""
    body = body_in(job.body, job.submitted.datacenters, end.datacenter)
    found = [aggregate_of(facts) for facts in body.workflows]
    for one in found:
        if state := end.states.get(one.name):
            one.absorb(state)
    return found


def _datacenter(
    job: GateJob, name: str, told: Results | None, whole: list[WorkflowAggregate]
) -> DatacenterResult:
    end = job.ends[name]
    return DatacenterResult(
        name=name,
        status=end.status if isinstance(end, Ended) else "lost",
        requests=sum(one.requests for one in whole),
        failed=sum(one.failed for one in whole),
        elapsed_s=max((one.elapsed_s for one in whole), default=0.0),
        coverage=told.coverage
        if told is not None
        else carried_out(one.freeze(buckets=False) for one in whole),
        lost=list(told.lost) if told is not None else [end.reason] if end.reason else [],
        share=job.submitted.datacenters[name],
        duration=service_times(whole).distribution(),
    )


def _all(results: Results) -> DatacenterResult:
    total = Histogram()
    for one in results.datacenters:
        if one.duration.buckets:
            total.merge(Histogram.from_distribution(one.duration))
    return DatacenterResult(
        name="all",
        status="",
        requests=sum(one.requests for one in results.datacenters),
        failed=sum(one.failed for one in results.datacenters),
        elapsed_s=max(one.elapsed_s for one in results.datacenters),
        coverage=results.coverage,
        duration=total.distribution(),
    )
