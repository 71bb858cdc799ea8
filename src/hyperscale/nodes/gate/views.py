"""What people and scripts are told about a job in many datacenters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from hyperscale.cluster.jobs.records import JobStatus
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.nodes.gate.events import Lost, Told
from hyperscale.nodes.gate.jobs import GateJob
from hyperscale.nodes.gate.merging import aggregates_of
from hyperscale.nodes.gate.owner import OwnedJob, Owner
from hyperscale.nodes.member.endings import Ending, Endings
from hyperscale.nodes.protocol.jobs import DatacenterView, JobView, WorkflowView
from hyperscale.runtime.host import Clock

_EARLY: tuple[JobStatus, ...] = ("dispatching", "prepared", "queued", "submitted")


class JobViewer:
    def __init__(self, clock: Clock, owner: Owner) -> None:
        self._clock = clock
        self._owner = owner
        self._endings = Endings()

    def forget(self, job_id: str) -> None:
        self._endings.forget(job_id)

    def of(self, job: GateJob) -> JobView:
        owned, done = self._owner.owned(job.job_id), job.completed
        ending = self._endings.of(job.job_id, done.results if done is not None else None)
        known = _known(job, owned) if done is None else {}
        datacenters = tuple(
            _in_datacenter(job, owned, name, known.get(name, ()))
            for name in job.submitted.datacenters
        )
        if ending is not None:
            datacenters = tuple(
                replace(view, requests=one.requests, failed=one.failed)
                for view, one in zip(datacenters, ending.datacenters, strict=True)
            )
        reasons = [f"{one.name}: {one.reason}" for one in datacenters if one.reason]
        return JobView(
            job_id=job.job_id,
            name=job.submitted.name,
            status=done.status if done is not None else _status(datacenters),
            reason=done.reason if done is not None else "; ".join(reasons),
            age_s=round(self._clock.now() - job.known_since, 1),
            paused=job.is_paused,
            workflows=_running(owned, known) if ending is None else _ended(job, ending),
            lost=tuple(ending.lost) if ending is not None else _lost(datacenters),
            coverage=sum(one.coverage for one in datacenters) / len(datacenters)
            if ending is None
            else ending.coverage,
            requested_by=job.submitted.requested_by,
            correlation_id=job.submitted.correlation_id,
            exit_code=ending.exit_code if ending is not None else None,
            idempotency_key=job.submitted.idempotency_key,
            owner=job.submitted.owner,
            datacenters=datacenters,
            thresholds=owned.thresholds.standing() if owned is not None else (),
            together=owned.together() if owned is not None and ending is None else None,
        )


def _status(datacenters: Sequence[DatacenterView]) -> JobStatus:
    """The furthest that one of them is at, while it is under way."""
    statuses = {one.status for one in datacenters}
    if "cancelling" in statuses:
        return "cancelling"
    if statuses & {"running", "completing"}:
        return "running"
    for early in _EARLY:
        if early in statuses:
            return early
    return "submitted" if "sending" in statuses else "completing"


def _lost(datacenters: Sequence[DatacenterView]) -> tuple[str, ...]:
    return tuple(f"datacenter {one.name} was lost" for one in datacenters if one.status == "lost")


def _known(job: GateJob, owned: OwnedJob | None) -> dict[str, list[WorkflowAggregate]]:
    """Of each datacenter; for whoever does not own the job, what was written down last."""
    if owned is not None:
        return owned.told()
    return {
        name: aggregates_of(job, job.ends.get(name) or job.told.get(name) or Told(name, 0, 0.0))
        for name in job.submitted.datacenters
    }


def _in_datacenter(
    job: GateJob, owned: OwnedJob | None, name: str, known: Sequence[WorkflowAggregate]
) -> DatacenterView:
    end, run = job.ends.get(name), owned.runs.get(name) if owned is not None else None
    view = DatacenterView(
        name=name,
        status="sending" if end is None else "lost" if isinstance(end, Lost) else end.status,
        reason="" if end is None else end.reason,
        coverage=0.0 if isinstance(end, Lost) else 1.0,
        share=job.submitted.datacenters[name],
        requests=sum(one.requests for one in known),
        failed=sum(one.failed for one in known),
        elapsed_s=round(max((one.elapsed_s for one in known), default=0.0), 3),
    )
    if run is not None and isinstance(end, Lost):
        live = run.view()
        view = replace(live, status=view.status, reason=view.reason, coverage=view.coverage)
    elif run is not None:
        view = run.view()
    has_begun = name in job.told or (job.begun is not None and name in job.begun.datacenters)
    if view.status in ("sending", "submitted") and has_begun:
        return replace(view, status="running")  # its next owner has not heard of it yet
    return view


def _running(
    owned: OwnedJob | None, known_of: Mapping[str, Sequence[WorkflowAggregate]]
) -> tuple[WorkflowView, ...]:
    """Of each, the view of the datacenter where it runs, with the numbers of all."""
    pictures = [run.picture for run in owned.runs.values()] if owned is not None else []
    views: dict[str, list[WorkflowView]] = {}
    for picture in pictures:
        for one in picture.view.workflows if picture.view is not None else ():
            views.setdefault(one.name, []).append(one)
    found = []
    for name, known in views.items():
        first = next((one for one in known if one.state == "running"), known[0])
        wholes = [one for several in known_of.values() for one in several if one.name == name]
        found.append(
            replace(
                first,
                cores=sum(one.cores for one in known),
                workers=tuple(worker for one in known for worker in one.workers),
                elapsed_s=max(one.elapsed_s for one in known),
                requests=sum(whole.requests for whole in wholes),
                failed=sum(whole.failed for whole in wholes),
            )
        )
    return tuple(found)


def _ended(job: GateJob, ending: Ending) -> tuple[WorkflowView, ...]:
    found = []
    for facts in job.body.workflows:
        requests, failed, elapsed_s = ending.numbers(facts.name)
        state = "completed" if ending.exit_code in (0, 98, 99) else "failed"
        found.append(
            WorkflowView(
                name=facts.name,
                state=state,
                lifecycle=state.upper(),
                requests=requests,
                failed=failed,
                elapsed_s=round(elapsed_s, 3),
            )
        )
    return tuple(found)
