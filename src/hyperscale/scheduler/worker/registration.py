"""A worker as the store knows it, and whether it may be given another job.

States and what moves them stand in `WORKER_TRANSITIONS`. AVAILABLE and BUSY follow from the load
the worker itself reports, so a wrong count heals with the next heartbeat. A worker id belongs to
one process: the session, a number that only grows, tells two apart. A worker whose heartbeats do
not get through may be dead to everybody else in a moment, and what it took would have to be
recovered: it gets nothing new until it is heard again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from hyperscale.scheduler.errors import InvalidJob, StaleSession
from hyperscale.scheduler.instants import Instant, after
from hyperscale.scheduler.queue.spec import JobSpec, check_label

CAPACITY_MAX: Final = 10_000
WORKER_CAPABILITIES_MAX: Final = 64
METADATA_MAX: Final = 32
_DNS_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{1,61})[a-z0-9]")


class WorkerState(StrEnum):
    AVAILABLE = "AVAILABLE"
    BUSY = "BUSY"
    DRAINING = "DRAINING"
    UNAVAILABLE = "UNAVAILABLE"


class WorkerEvent(StrEnum):
    HAS_ROOM = "reports room"
    IS_FULL = "reports no room"
    DRAIN = "drain"
    UNDRAIN = "drain no more"
    LOST = "silent too long"
    LEFT = "said goodbye"


_A, _B, _D, _U = WorkerState
WORKER_TRANSITIONS: Final[dict[WorkerState, dict[WorkerEvent, WorkerState]]] = {
    _A: {
        WorkerEvent.HAS_ROOM: _A,
        WorkerEvent.IS_FULL: _B,
        WorkerEvent.DRAIN: _D,
        WorkerEvent.UNDRAIN: _A,
        WorkerEvent.LOST: _U,
        WorkerEvent.LEFT: _U,
    },
    _B: {
        WorkerEvent.HAS_ROOM: _A,
        WorkerEvent.IS_FULL: _B,
        WorkerEvent.DRAIN: _D,
        WorkerEvent.UNDRAIN: _B,
        WorkerEvent.LOST: _U,
        WorkerEvent.LEFT: _U,
    },
    # Draining holds until a person ends it or the process goes; a new registration starts afresh.
    _D: {
        WorkerEvent.HAS_ROOM: _D,
        WorkerEvent.IS_FULL: _D,
        WorkerEvent.DRAIN: _D,
        WorkerEvent.UNDRAIN: _A,
        WorkerEvent.LOST: _U,
        WorkerEvent.LEFT: _U,
    },
    _U: {
        WorkerEvent.HAS_ROOM: _A,
        WorkerEvent.IS_FULL: _B,
        WorkerEvent.DRAIN: _D,
        WorkerEvent.UNDRAIN: _U,
        WorkerEvent.LOST: _U,
        WorkerEvent.LEFT: _U,
    },
}


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    instance: str
    """Made anew by every process; two processes never share one."""
    address: str = ""
    capacity: int
    capabilities: tuple[str, ...] = ()
    metadata: dict[str, str] = {}
    state: WorkerState = WorkerState.AVAILABLE
    session: int = 0
    """Given by the store at registration."""
    sequence: int = 0
    """Of the newest heartbeat; older ones are ignored."""
    running: int = 0
    started_at: Instant
    seen_at: Instant
    drained: bool = False
    """By a person, who has not taken it back: also while it was taken for dead."""


class WorkerBeat(msgspec.Struct, frozen=True, kw_only=True):
    worker_id: str
    session: int
    sequence: int
    running: int
    capabilities: tuple[str, ...] | None = None
    """None: as before."""
    draining: bool = False
    leaving: bool = False


def check_worker(worker: Worker) -> Worker:
    if not _DNS_NAME.fullmatch(worker.id):
        raise InvalidJob(
            f"worker id {worker.id!r} is not a DNS label",
            "3 to 63 lower-case letters, digits and dashes",
        )
    if not 1 <= worker.capacity <= CAPACITY_MAX:
        raise InvalidJob(f"worker capacity {worker.capacity} is not in 1..{CAPACITY_MAX}")
    if len(worker.capabilities) > WORKER_CAPABILITIES_MAX:
        raise InvalidJob(f"at most {WORKER_CAPABILITIES_MAX} capabilities")
    for capability in worker.capabilities:
        check_label("capability", capability)
    if len(worker.metadata) > METADATA_MAX:
        raise InvalidJob(f"at most {METADATA_MAX} metadata entries")
    return worker


def registered(
    known: Worker | None, new: Worker, session: int, now: Instant, alive_for_s: float
) -> Worker:
    """`new` under its session. The same process may repeat itself; another one gets the id only
    when the first is gone or has been silent for `alive_for_s`."""
    if known is not None and known.instance != new.instance:
        silent = after(known.seen_at, alive_for_s) <= now
        if not silent and known.state is not WorkerState.UNAVAILABLE:
            raise StaleSession(new.id)
    again = known is not None and known.instance == new.instance
    drained = again and known is not None and known.drained
    state = WorkerState.BUSY if new.running >= new.capacity else WorkerState.AVAILABLE
    return replace(
        new,
        session=session,
        seen_at=now,
        state=WorkerState.DRAINING if drained else state,
        drained=drained,
    )


def beaten(worker: Worker, beat: WorkerBeat, now: Instant) -> Worker:
    """The worker after a heartbeat; the same object when the heartbeat is older than the newest."""
    if beat.session != worker.session:
        raise StaleSession(worker.id)
    if beat.sequence <= worker.sequence:
        return worker
    if beat.running < 0:
        raise InvalidJob(f"worker {worker.id!r} reports {beat.running} running jobs")
    events = [WorkerEvent.IS_FULL if beat.running >= worker.capacity else WorkerEvent.HAS_ROOM]
    if beat.draining or worker.drained:
        events.append(WorkerEvent.DRAIN)
    if beat.leaving:
        events.append(WorkerEvent.LEFT)
    state = worker.state
    for event in events:
        state = WORKER_TRANSITIONS[state][event]
    capabilities = worker.capabilities if beat.capabilities is None else beat.capabilities
    return replace(
        worker,
        state=state,
        sequence=beat.sequence,
        running=beat.running,
        capabilities=capabilities,
        seen_at=now,
    )


def moved(worker: Worker, event: WorkerEvent) -> Worker:
    drained = event is WorkerEvent.DRAIN or (worker.drained and event is not WorkerEvent.UNDRAIN)
    return replace(worker, state=WORKER_TRANSITIONS[worker.state][event], drained=drained)


def nobody_can_run(spec: JobSpec, workers: Sequence[Worker]) -> bool:
    """Somebody works here, and nobody who could run this."""
    there = [worker for worker in workers if worker.state is not WorkerState.UNAVAILABLE]
    return bool(there) and not any(_could_run(worker, spec) for worker in there)


def _could_run(worker: Worker, spec: JobSpec) -> bool:
    kinds = worker.metadata.get("kinds", "")
    able = not kinds or spec.kind in kinds.split(",")
    return able and set(worker.capabilities).issuperset(spec.capabilities)


SUSPECT_SHARE: Final = 2 / 3
"""Of the silence that is death: 30 of 45 s."""

CLOSED: Final = frozenset({WorkerState.DRAINING, WorkerState.UNAVAILABLE})


def may_claim(worker: Worker, now: Instant, suspect_after_s: float) -> bool:
    return worker.state not in CLOSED and now < after(worker.seen_at, suspect_after_s)
