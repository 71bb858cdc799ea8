"""The end of a job: the numbers of all its parts as one result, and what they come to."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from hyperscale.cluster.jobs.records import JobStatus
from hyperscale.cluster.jobs.state import JobState, WorkflowState
from hyperscale.engine.results import Course, aggregate_of, assemble, unjudged
from hyperscale.engine.thresholds import Judge
from hyperscale.errors import BadInput, HyperscaleError, RunFailed
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.results import Cut, Environment, Results, encode
from hyperscale.nodes.manager.part_end import decode_end
from hyperscale.nodes.protocol.jobs import Body
from hyperscale.nodes.protocol.parts import PartEnd
from hyperscale.workload.facts import WorkflowFacts

# Who ended a job early, where that was no person.
TEST_STOPPED, TEST_FAILED = "test", "test failed"
_CUT: dict[str, Cut] = {"cancel": "signal", "stop": "signal", "timeout": "timeout"}


def ends_of(workflow: WorkflowState) -> Iterator[PartEnd]:
    """Everything that was measured, each once. A workflow that is no test begins anew after a
    loss, so only its last end counts."""
    for part in sorted(workflow.parts.values(), key=lambda part: part.number):
        if workflow.needs.is_test:
            yield from (decode_end(loss.result) for loss in part.losses if loss.result)
        if part.ended is not None:
            yield decode_end(part.ended.result)


def merged(facts: WorkflowFacts, workflow: WorkflowState, job: JobState) -> WorkflowAggregate:
    """A workflow that is over, as one machine would have measured it."""
    steps = merging(facts, workflow, job)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            whole: WorkflowAggregate = end.value
            return whole


def merging(
    facts: WorkflowFacts, workflow: WorkflowState, job: JobState
) -> Generator[None, None, WorkflowAggregate]:
    """The same, one end of a part at a time."""
    whole = aggregate_of(facts)
    known = whole.facts
    users: dict[int, int] = {}  # by part: those of a lost one went on elsewhere
    for end in ends_of(workflow):
        if end.state:
            whole.absorb(end.state)
        known.prepare_s = max(known.prepare_s, end.prepare_s)
        users[end.part.number] = max(users.get(end.part.number, 0), end.peak_vus)
        yield
    known.vus_max = sum(users.values())
    whole.unmeasured_requests("teardown", workflow.teardown_requests)
    known.cores = workflow.total_cores
    known.state = "finished"
    known.error = workflow.error
    known.started_s = job.load_age_s(workflow) if workflow.started else 0.0
    for mark in job.marks:
        if mark.workflow == facts.name:
            whole.mark(mark.text, mark.at_s)
    return whole


def job_results(
    body: Body,
    job: JobState,
    status: JobStatus,
    *,
    elapsed_s: float,
    lost: Sequence[str],
    judges: Sequence[Judge],
    environment: Environment,
    aggregates: Sequence[WorkflowAggregate] = (),
) -> Results:
    """`aggregates` are the workflows as `merged`, in the order of the body."""
    if not aggregates:
        aggregates = [merged(facts, job.workflows[facts.name], job) for facts in body.workflows]
    cut, reason = _cut(job, judges), job.reason
    died = [sentence for workflow in job.workflows.values() for sentence in _died(workflow)]
    failed = [sentence for one in job.workflows.values() if one.error for sentence in _died(one)]
    if cut is None and failed:  # as on one machine: what follows from a death is no other failure
        cut, reason = "worker lost", "; ".join(failed)
    course = Course(
        name=body.name,
        started_at=body.started_at,
        elapsed_s=elapsed_s,
        state="finished",
        cut=cut,
        cut_reason=reason if cut is not None else "",
        test_failed=job.by == TEST_FAILED,
        failure=_failure(job, of_dependents=not failed),
        lost=[*lost, *died],
        tags=body.tags,
        warnings=[
            *body.warnings,
            *(() if job.submitted.for_gate else unjudged(body.workflows)),
            *_warnings(job),
            *_unconfirmed(job, status),
        ],
        environment=environment,
    )
    return assemble(course, aggregates, judges, final=True)


def encoded_within(results: Results, room_bytes: int) -> bytes:
    """As much of it as a record holds: the course over time goes first. Raises RunFailed."""
    whole = encode(results, indent=0)
    if len(whole) <= room_bytes:
        return whole
    for workflow in results.workflows:
        workflow.series = []
    results.warnings.append("how the load went over time was too much to be kept")
    less = encode(results, indent=0)
    if len(less) > room_bytes:
        raise RunFailed(f"they take {len(less):,} bytes")
    return less


def _cut(job: JobState, judges: Sequence[Judge]) -> Cut | None:
    if job.by == "threshold" or any(judge.aborted_at_s is not None for judge in judges):
        return "threshold"  # the judge may have been the leader before
    if job.by in (TEST_STOPPED, TEST_FAILED):
        return "test"
    return _CUT.get(job.ending)


def _failure(job: JobState, *, of_dependents: bool) -> HyperscaleError | None:
    """The first thing that the author of the test should know."""
    for workflow in job.workflows.values():
        for end in ends_of(workflow):
            if end.outcome == "failed" and end.error and not end.lost:
                return (BadInput if end.bad_input else RunFailed)(end.error, end.hint)
    for name, workflow in job.workflows.items():
        if of_dependents and workflow.error and not workflow.parts and not job.ending:
            return RunFailed(f"{name}: {workflow.error}")
    return None


def _died(workflow: WorkflowState) -> list[str]:
    """Generator processes whose load did not go on elsewhere, beside those told as losses."""
    found = []
    for part in workflow.parts.values():
        if part.ended is not None:
            end = decode_end(part.ended.result)
            found += [f"worker {end.worker}: {sentence}" for sentence in end.lost]
        elif part.losses and not part.losses[-1].under_load and part.losses[-1].generators:
            found.append(f"worker {part.losses[-1].worker}: {part.losses[-1].generators}")
    return found


def _warnings(job: JobState) -> list[str]:
    found = [
        warning
        for workflow in job.workflows.values()
        for end in ends_of(workflow)
        for warning in end.warnings
    ]
    return found + [f"{n}: {w.warning}" for n, w in job.workflows.items() if w.warning]


def _unconfirmed(job: JobState, status: JobStatus) -> list[str]:
    if status not in ("cancelled", "timeout"):
        return []
    return [f"worker {worker} did not confirm that it ended its part" for worker in job.unconfirmed]
