"""What people and scripts are told about a job in many datacenters."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hyperscale.cluster.jobs.records import JobStatus
from hyperscale.nodes.gate.events import Lost
from hyperscale.nodes.gate.jobs import GateJob
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
        datacenters = tuple(_in_datacenter(job, owned, name) for name in job.submitted.datacenters)
        if ending is not None:
            datacenters = tuple(
                msgspec.structs.replace(view, requests=one.requests, failed=one.failed)
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
            workflows=_running(owned) if ending is None else _ended(job, ending),
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


def _in_datacenter(job: GateJob, owned: OwnedJob | None, name: str) -> DatacenterView:
    end = job.ends.get(name)
    run = owned.runs.get(name) if owned is not None else None
    share = job.submitted.datacenters[name]
    if isinstance(end, Lost):
        live = (
            run.view() if run is not None else DatacenterView(name=name, status="lost", share=share)
        )
        return msgspec.structs.replace(live, status="lost", reason=end.reason, coverage=0.0)
    if run is not None:
        return run.view()
    status = end.status if end is not None else "sending"
    reason = end.reason if end is not None else ""
    return DatacenterView(name=name, status=status, reason=reason, share=share)


def _running(owned: OwnedJob | None) -> tuple[WorkflowView, ...]:
    """Of each, the view of the datacenter where it runs, with the numbers of all."""
    pictures = [run.picture for run in owned.runs.values()] if owned is not None else []
    views: dict[str, list[WorkflowView]] = {}
    for picture in pictures:
        for one in picture.view.workflows if picture.view is not None else ():
            views.setdefault(one.name, []).append(one)
    found = []
    for name, known in views.items():
        first = next((one for one in known if one.state == "running"), known[0])
        wholes = [picture.aggregates()[name] for picture in pictures]
        found.append(
            msgspec.structs.replace(
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
