"""Health, metrics, diagnosis, audit: for whoever keeps the scheduler alive."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from datetime import datetime
from typing import Annotated, Any, Final

import psutil
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from hyperscale._version import __version__
from hyperscale.scheduler.errors import StoreUnavailable
from hyperscale.scheduler.http.access import RIGHTS
from hyperscale.scheduler.http.answers import (
    AuditList,
    AuditVerdict,
    AuditView,
    JobView,
    ScheduleView,
    moment,
)
from hyperscale.scheduler.http.context import Admin, Auditor, Context, Viewer, context_of
from hyperscale.scheduler.http.emergency import EmergencyView
from hyperscale.scheduler.http.requests import LATEST
from hyperscale.scheduler.instants import Instant, instant_of, moment_of
from hyperscale.scheduler.leader.election import ElectionUnavailable
from hyperscale.scheduler.queue.job import HELD, Job, JobState
from hyperscale.scheduler.schedules.schedule import Schedule
from hyperscale.scheduler.store.audit import Audit, broken_at
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import PAGE_MAX, JobFilter
from hyperscale.scheduler.telemetry.doctor import Facts, Severity, diagnose, store_away
from hyperscale.scheduler.telemetry.metrics import CONTENT_TYPE
from hyperscale.scheduler.worker.registration import Worker

router = APIRouter()

READY_WITHIN_S: Final = 2.0
SHOWN: Final = 10
LOOKED_AT_MAX: Final = 10_000
"""Schedules, workers and jobs of a state one answer goes through; the counters are exact beyond."""


class Alive(BaseModel):
    """All that whoever has no token is told."""

    status: str
    worker: str = ""
    """The id that was asked for, if the worker in this process has it."""


class Health(BaseModel):
    status: str
    node: str
    worker: str
    """Id of the one in this process; empty: there is none."""
    leading: bool
    leader: str
    degraded: str
    version: str


class Overview(BaseModel):
    """What the page shows first, in one answer."""

    node: str
    leader: str
    leading: bool
    degraded: str
    emergency: EmergencyView
    now: datetime
    role: str
    rights: list[str]
    actor: str
    states: dict[str, int]
    ready: int
    delayed: int
    waiting: int
    schedules: int
    letters: int
    workers: dict[str, int]
    slots: int
    busy: int
    lateness_s: float
    running: list[JobView]
    failures: list[JobView]
    next_runs: list[ScheduleView]


class FindingView(BaseModel):
    name: str
    severity: Severity
    sentence: str
    advice: str
    subjects: list[str]


class Diagnosis(BaseModel):
    now: datetime
    findings: list[FindingView]


@router.get("/health/live", tags=["health"])
async def live(
    request: Request, worker: Annotated[str, Query(max_length=63)] = ""
) -> Health | Alive:
    """The process answers; to whoever may look it tells more. `worker`: is it this one?"""
    return _shown(request, _health(context_of(request), "alive"), worker)


@router.get("/health/ready", tags=["health"], responses={503: {"model": Health | Alive}})
async def ready(request: Request, response: Response) -> Health | Alive:
    """Its store answers too, so that it may be given work; also while nobody can lead."""
    context = context_of(request)
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            await context.service.store.counts()
        health = _health(context, "ready", await _leader(context))
    except (TimeoutError, StoreUnavailable):
        health = _health(context, "store unavailable")
    if health.status != "ready":
        response.status_code = 503
    return _shown(request, health)


def _shown(request: Request, health: Health, asked_for: str = "") -> Health | Alive:
    if context_of(request).access.may_look(request.headers.get("authorization")):
        return health
    own = asked_for if asked_for == health.worker else ""
    return Alive(status=health.status, worker=own)


def _health(context: Context, status: str, leader: str = "") -> Health:
    known = context.service.status()
    return Health(
        status=status,
        node=known.node,
        worker=known.worker,
        leading=known.leading,
        leader=leader,
        degraded=known.degraded,
        version=__version__,
    )


@router.get("/metrics", tags=["observability"], response_class=Response)
async def metrics(asked: Viewer) -> Response:
    """Prometheus text. Without its store a scheduler still tells of itself."""
    context = asked.context
    store, status = context.service.store, context.service.status()
    context.gauges.of_process(status.leading, status.lateness_s)
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            counts, workers = await store.counts(), await _workers(store)
            stopped = await context.service.emergency() is not None
    except (TimeoutError, StoreUnavailable):
        context.gauges.unknown()
    else:
        context.gauges.of_store(counts, workers, stopped)
    return Response(context.metrics.text(), media_type=CONTENT_TYPE)


@router.get("/api/v1/overview", tags=["observability"])
async def overview(asked: Viewer) -> Overview:
    context = asked.context
    service, store = context.service, context.service.store
    status, counts = service.status(), await store.counts()
    workers = await _workers(store)
    alive = [worker for worker in workers if worker.state != "UNAVAILABLE"]
    running = await store.jobs(JobFilter(state=JobState.EXECUTING), limit=SHOWN)
    failed = await store.jobs(JobFilter(state=JobState.FAILED), limit=SHOWN)
    coming = await store.due_schedules(instant_of(LATEST), SHOWN)
    return Overview(
        node=service.node,
        leader=await _leader(context),
        leading=status.leading,
        degraded=status.degraded,
        emergency=EmergencyView.of(await service.emergency()),
        now=moment_of(service.now()),
        role=str(asked.actor.role),
        rights=sorted(RIGHTS[asked.actor.role]),
        actor=asked.actor.name,
        states={str(state): number for state, number in counts.states.items()},
        ready=counts.ready,
        delayed=counts.delayed,
        waiting=counts.waiting,
        schedules=counts.schedules,
        letters=counts.letters,
        workers={
            state: sum(str(w.state) == state for w in workers)
            for state in sorted({str(w.state) for w in workers})
        },
        slots=sum(worker.capacity for worker in alive),
        busy=sum(counts.states.get(state, 0) for state in HELD),
        lateness_s=status.lateness_s,
        running=[JobView.of(job) for job in running.jobs],
        failures=[JobView.of(job) for job in failed.jobs],
        next_runs=[ScheduleView.of(schedule) for schedule in coming],
    )


@router.get("/api/v1/doctor", tags=["observability"])
async def doctor(asked: Viewer) -> Diagnosis:
    """What is stuck, drifting, starving or skewed; empty when nothing is."""
    now = asked.context.service.now()
    try:
        found = diagnose(await _facts(asked.context, now))
    except StoreUnavailable as error:
        found = [store_away(error.message)]
    views = [
        FindingView(
            name=one.name,
            severity=one.severity,
            sentence=one.sentence,
            advice=one.advice,
            subjects=list(one.subjects),
        )
        for one in found
    ]
    return Diagnosis(now=moment_of(now), findings=views)


async def _facts(context: Context, now: Instant) -> Facts:
    store = context.service.store
    looked = {state: await _jobs(store, state) for state in (JobState.PENDING, *HELD)}
    pending, _ = looked[JobState.PENDING]
    return Facts(
        now=now,
        leader=await _leader(context),
        degraded=context.service.status().degraded,
        emergency=await context.service.emergency(),
        counts=await store.counts(),
        next_due=await store.next_due(),
        pending=tuple(pending),
        held=tuple(job for state in HELD for job in looked[state][0]),
        all_seen=all(whole for _, whole in looked.values()),
        schedules=tuple(await _schedules(store)),
        workers=tuple(await _workers(store)),
    )


@router.get("/api/v1/audit", tags=["audit"])
async def list_audit(
    asked: Auditor,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> AuditList:
    """Oldest first, those behind `after`."""
    rows = await asked.context.service.store.audits(after, limit)
    return AuditList(rows=[AuditView.of(row) for row in rows])


@router.get("/api/v1/audit/verify", tags=["audit"])
async def verify_audit(asked: Auditor) -> AuditVerdict:
    """Follows the hash chain from the oldest row that is kept."""
    store = asked.context.service.store
    before: Audit | None = None
    seen, first = 0, 0
    while rows := await store.audits(before.sequence if before else 0, PAGE_MAX):
        if before is None:
            first = rows[0].sequence
            if first > 1:
                before, seen = rows[0], 1
                rows = rows[1:]
        broken = broken_at(rows, before)
        seen += len(rows)
        if broken is not None:
            return AuditVerdict(good=False, rows=seen, first=first, broken_at=broken)
        before = rows[-1] if rows else before
    return AuditVerdict(good=True, rows=seen, first=first, broken_at=None)


@router.get("/debug/system", tags=["debug"])
async def debug_system(asked: Admin) -> dict[str, Any]:
    process = psutil.Process(os.getpid())
    status = asked.context.service.status()
    now = asked.context.service.now()
    return {
        "component": "scheduler",
        "node_id": asked.context.service.node,
        "timestamp": moment_of(now).isoformat(),
        "uptime_s": (now - status.started_at) / 1e6,
        "memory": {"rss_bytes": process.memory_info().rss},
        "tasks": len(asyncio.all_tasks()),
        "threads": process.num_threads(),
        "runtime": {
            "hyperscale": __version__,
            "python": sys.version.split()[0],
            "os": platform.system(),
            "arch": platform.machine(),
            "cpus": os.cpu_count(),
        },
        "state": await _state(asked.context),
    }


@router.get("/debug/state", tags=["debug"])
async def debug_state(asked: Admin) -> dict[str, Any]:
    return await _state(asked.context)


async def _state(context: Context) -> dict[str, Any]:
    """A store that fails must not hide the rest."""
    status = context.service.status()
    state: dict[str, Any] = {
        "leading": status.leading,
        "epoch": status.epoch,
        "lease_remaining_s": status.lease_remaining_s,
        "degraded": status.degraded,
        "lateness_s": status.lateness_s,
    }
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            counts = await context.service.store.counts()
        state["leader"] = await _leader(context)
        state["counts"] = {
            "states": {str(key): number for key, number in counts.states.items()},
            "ready": counts.ready,
            "delayed": counts.delayed,
            "waiting": counts.waiting,
            "schedules": counts.schedules,
            "letters": counts.letters,
        }
        next_at = await context.service.store.next_schedule_at()
        state["next_tick"] = str(moment(next_at) or "")
    except (TimeoutError, StoreUnavailable) as error:
        state["store"] = f"unavailable: {error}"
    return state


async def _leader(context: Context) -> str:
    try:
        leader = await context.service.leader()
    except ElectionUnavailable:
        return ""
    return "" if leader is None else leader.address or leader.node


async def _jobs(store: Store, state: JobState) -> tuple[list[Job], bool]:
    """The newest, and whether these are all. A page at a time: the store has others to answer."""
    found: list[Job] = []
    cursor = ""
    while len(found) < LOOKED_AT_MAX:
        page = await store.jobs(JobFilter(state=state), cursor, PAGE_MAX)
        found += page.jobs
        cursor = page.cursor
        if not cursor:
            break
    return found, not cursor


async def _workers(store: Store) -> list[Worker]:
    found: list[Worker] = []
    while len(found) < LOOKED_AT_MAX:
        page = await store.workers(found[-1].id if found else "")
        found += page
        if len(page) < PAGE_MAX:
            break
    return found


async def _schedules(store: Store) -> list[Schedule]:
    found: list[Schedule] = []
    while len(found) < LOOKED_AT_MAX:
        page = await store.schedules(found[-1].id if found else "")
        found += page
        if len(page) < PAGE_MAX:
            break
    return found
