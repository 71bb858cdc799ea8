"""`/api/v1/workers`, and the messages by which a worker outside Python may work.

The scheduler's own workers speak to the store. Any other program registers, beats, claims and
reports here, with the same fencing tokens.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Body, Header, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from hyperscale.scheduler.errors import InvalidJob, NotFound
from hyperscale.scheduler.http.access import Right
from hyperscale.scheduler.http.answers import JobView, WorkerList, WorkerView
from hyperscale.scheduler.http.context import Admin, Asked, Operator, Viewer, WorkingFor
from hyperscale.scheduler.http.requests import WHOLE_MAX, Label
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.reports import LEASE_S_MAX, Accepted, Report
from hyperscale.scheduler.store.types import Claim
from hyperscale.scheduler.worker.registration import (
    CAPACITY_MAX,
    METADATA_MAX,
    WORKER_CAPABILITIES_MAX,
    Worker,
    WorkerBeat,
    WorkerEvent,
    check_worker,
)

router = APIRouter(prefix="/api/v1", tags=["workers"])

ALIVE_FOR_S: Final = 45.0
"""Three heartbeats of 15 s: until then the id belongs to the process that has it."""
WAIT_S_MAX: Final = 25.0
"""Below the 30 s most proxies and clients wait for an answer."""
CLAIM_MAX: Final = 100
BREATH_S: Final = 0.02
"""Between two claims of one that waits, when news comes thick."""

WORKER_PATTERN: Final = r"^[a-z0-9]([a-z0-9-]{1,61})[a-z0-9]$"
WorkerId = Annotated[str, Path(pattern=WORKER_PATTERN)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Heartbeat(_Strict):
    """Registers whoever sends the first one; `session` of the answer goes into the next."""

    worker_id: str = Field(pattern=WORKER_PATTERN)
    instance: str = Field(min_length=1, max_length=64, description="new for every process")
    capacity: int = Field(ge=1, le=CAPACITY_MAX, strict=True)
    sequence_number: int = Field(ge=1, le=2**53, strict=True)
    session: int | None = Field(None, ge=0, le=2**53, strict=True)
    current_jobs: int = Field(0, ge=0, le=WHOLE_MAX, strict=True)
    capabilities: list[Label] = Field([], max_length=WORKER_CAPABILITIES_MAX)
    address: str = Field("", max_length=255)
    metadata: dict[str, str] = Field({}, max_length=METADATA_MAX)
    draining: StrictBool = False
    leaving: StrictBool = False


class ClaimRequest(_Strict):
    worker_id: str = Field(pattern=WORKER_PATTERN)
    kinds: list[Label] = Field([], max_length=32, description="none named: all")
    capabilities: list[Label] = Field([], max_length=WORKER_CAPABILITIES_MAX)
    limit: int = Field(1, ge=1, le=CLAIM_MAX, strict=True)
    lease_s: float = Field(60.0, gt=0, le=LEASE_S_MAX, strict=True)
    wait_s: float = Field(0.0, ge=0, le=WAIT_S_MAX, strict=True)


class Claimed(BaseModel):
    jobs: list[JobView]


class Reported(BaseModel):
    accepted: bool
    repeated: bool = False
    stop: bool = False
    """Somebody cancelled it: stop and report the failure CANCELLED."""
    reason: str | None = None
    job: JobView | None = None


@router.get("/workers")
async def list_workers(
    asked: Viewer,
    cursor: Annotated[str, Query(max_length=63)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> WorkerList:
    found = await asked.context.service.store.workers(cursor, limit)
    following = found[-1].id if len(found) == limit else ""
    return WorkerList(workers=[WorkerView.of(one) for one in found], cursor=following)


@router.post("/workers/heartbeat")
async def heartbeat(body: Heartbeat, asked: WorkingFor) -> WorkerView:
    return WorkerView.of(await _beat(body, asked))


@router.post("/workers/{worker_id}/drain")
async def drain_worker(worker_id: WorkerId, asked: Operator) -> WorkerView:
    """It finishes what it runs and takes nothing new."""
    async with asked.recorded("worker.drain", worker_id):
        store = asked.context.service.store
        return WorkerView.of(await store.move_worker(worker_id, WorkerEvent.DRAIN))


@router.delete("/workers/{worker_id}/drain")
async def undrain_worker(worker_id: WorkerId, asked: Operator) -> WorkerView:
    """It takes jobs again, if it has not ended yet."""
    async with asked.recorded("worker.undrain", worker_id):
        store = asked.context.service.store
        return WorkerView.of(await store.move_worker(worker_id, WorkerEvent.UNDRAIN))


@router.delete("/workers/{worker_id}", status_code=204)
async def remove_worker(worker_id: WorkerId, asked: Admin) -> None:
    """From the list; a living one comes back with its next registration."""
    async with asked.recorded("worker.remove", worker_id):
        await asked.context.service.store.remove_worker(worker_id)


@router.post("/messages")
async def message(
    asked: WorkingFor,
    body: Annotated[dict[str, Any], Body()],
    message_type: Annotated[str, Header(max_length=32)],
    request: Request,
) -> WorkerView | Claimed | Reported:
    """Header `Message-Type`: heartbeat, claim or report."""
    try:
        if message_type == "heartbeat":
            return WorkerView.of(await _beat(Heartbeat.model_validate(body), asked))
        if message_type == "claim":
            return await _claim(ClaimRequest.model_validate(body), asked, request)
        if message_type == "report":
            report = msgspec.convert(body, Report)
            msgspec.json.encode(report)  # refuses half a character, which not every store does
            return await _report(report, asked)
    except (
        ValueError,
        msgspec.ValidationError,
    ) as error:  # pydantic's and msgspec's own, both say where and what
        raise InvalidJob(f"the {message_type} cannot be read: {error}") from error
    raise InvalidJob(f"there is no message {message_type!r}", "heartbeat, claim or report")


async def _beat(body: Heartbeat, asked: Asked) -> Worker:
    service = asked.context.service
    capabilities = tuple(sorted(set(body.capabilities)))
    if body.session is not None:
        beat = WorkerBeat(
            worker_id=body.worker_id,
            session=body.session,
            sequence=body.sequence_number,
            running=body.current_jobs,
            capabilities=capabilities,
            draining=body.draining,
            leaving=body.leaving,
        )
        try:
            return await service.store.beat(beat, service.now())
        except NotFound:
            pass  # forgotten by retention, or the first one of a new store: as a new registration
    now = service.now()
    worker = Worker(
        id=body.worker_id,
        instance=body.instance,
        address=body.address,
        capacity=body.capacity,
        capabilities=capabilities,
        metadata=body.metadata,
        running=body.current_jobs,
        started_at=now,
        seen_at=now,
    )
    return await service.store.register(check_worker(worker), now, ALIVE_FOR_S)


async def _claim(body: ClaimRequest, asked: Asked, request: Request) -> Claimed:
    """Mark, claim, and if nothing came wait for news: nothing that arrives between is missed. Not
    all news is a job for this worker, so it goes on waiting. Who went away meanwhile gets nothing:
    the job would stand still until its lease ends."""
    service = asked.context.service
    claim = Claim(
        worker=body.worker_id,
        kinds=tuple(sorted(set(body.kinds))),
        capabilities=tuple(sorted(set(body.capabilities))),
        limit=body.limit,
        lease_s=body.lease_s,
    )
    store, clock = service.store, asyncio.get_running_loop().time
    until_s = clock() + body.wait_s
    while True:
        mark = store.mark()
        jobs = await store.claim(claim, service.now())
        if jobs or clock() >= until_s:
            break
        await asyncio.sleep(BREATH_S)
        if not await store.changed(mark, until_s - clock()) or await request.is_disconnected():
            break
    return Claimed(jobs=[_to_run(job, asked) for job in jobs])


def _to_run(job: Job, asked: Asked) -> JobView:
    """A worker needs the payload as it was sent. Who may also look at jobs gets it as jobs are
    shown: looking must not become reading the secrets of others."""
    view = JobView.of(job)
    if asked.actor.may(Right.LOOK) and not asked.actor.may(Right.ADMINISTER):
        return view
    return view.model_copy(update={"payload": dict(job.spec.payload)})


async def _report(report: Report, asked: Asked) -> Reported:
    service = asked.context.service
    answer = await service.store.report(report, service.now())
    if isinstance(answer, Accepted):
        return Reported(
            accepted=True,
            repeated=answer.repeated,
            stop=answer.stop,
            job=JobView.of(answer.job),
        )
    return Reported(accepted=False, reason=str(answer.reason))
