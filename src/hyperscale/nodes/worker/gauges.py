"""A worker in numbers: its cores, its parts, its processes, and how long it may go on alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, get_args

import msgspec

from hyperscale.cluster.overload.circuit import CircuitState
from hyperscale.nodes.member.metrics import Metric, labelled, single
from hyperscale.nodes.protocol.parts import PartState, WorkerPulse, WorkerState
from hyperscale.nodes.worker.worker import Worker
from hyperscale.runtime.page_server import Health

PART_STATES: Final = get_args(PartState)
WORKER_STATES: Final = get_args(WorkerState)
TALK: Final = (
    "registrations", "registrations_failed", "reports", "reports_refused", "reports_failed",
    "events_failed",
)  # fmt: skip
_pulses = msgspec.msgpack.Decoder(WorkerPulse)

Pids = Callable[[], list[int]]


def metrics(worker: Worker, pids: Pids) -> Iterator[Metric]:
    now = worker.node.now()
    state = _pulses.decode(worker.node.pulse).state if worker.node.pulse else "registering"
    states = {known: float(known == state) for known in WORKER_STATES}
    yield labelled("worker_state", "gauge", "1 for the state it is in.", "state", states)
    yield single(
        "worker_registered", "gauge", "1 while a leader counts on it.", _registered(worker)
    )
    yield single(
        "worker_managers", "gauge", "Managers it knows.", len(worker.registration.managers)
    )
    yield single(
        "worker_lease_seconds",
        "gauge",
        "How long load goes on without another answer of a manager.",
        worker.contact.remaining_s(now),
    )
    cores = worker.parts.cores
    busy = {"busy": float(cores.total - cores.free), "free": float(cores.free)}
    yield labelled("worker_cores", "gauge", "Cores of this worker.", "state", busy)
    held = Counter(part.state for part in worker.parts.held())
    parts = {known: float(held[known]) for known in PART_STATES}
    yield labelled("worker_parts", "gauge", "Parts of workflows here, by state.", "state", parts)
    yield single(
        "worker_events_unacknowledged",
        "gauge",
        "Ends and other news of parts that no leader has settled yet.",
        len(worker.outbox),
    )
    counts = {kind: float(worker.session.counts[kind]) for kind in TALK}
    yield labelled("worker_talk_total", "counter", "Messages to managers.", "kind", counts)
    open_to = Counter(status.state.value for status in worker.links.circuits().values())
    circuits = {state.value: float(open_to[state.value]) for state in CircuitState}
    yield labelled("worker_circuits", "gauge", "Circuits to managers, by state.", "state", circuits)
    numbers = pids()
    yield single("worker_generators", "gauge", "Generator processes.", len(numbers))
    yield single(
        "worker_generators_bytes",
        "gauge",
        "Resident memory of all generators together.",
        _resident_bytes(numbers),
    )


def _registered(worker: Worker) -> float:
    return float(worker.registration.registered)


def _resident_bytes(pids: Iterable[int]) -> int:
    import psutil

    total = 0
    for pid in pids:
        try:
            total += psutil.Process(pid).memory_info().rss
        except psutil.Error:
            continue  # it ended between being listed and being looked at
    return total


def readiness(worker: Worker) -> Health:
    """A manager may give it work. All cores busy is what a worker is for."""
    if worker.over.is_set():
        return Health(ok=False, reason="it is ending")
    if worker.parts.draining:
        return Health(ok=False, reason=f"it takes no new parts: {worker.parts.drain_state.off}")
    now = worker.node.now()
    if worker.contact.is_cut_off(now):
        silent_s = worker.contact.silent_s(now)
        return Health(ok=False, reason=f"no manager that counts has answered for {silent_s:.1f} s")
    if not worker.registration.registered:
        return Health(ok=False, reason="no leader has registered it yet")
    return Health(ok=True)


def pages(worker: Worker) -> dict[str, Callable[[], object]]:
    def parts() -> object:
        return [
            {
                "part": str(one.part),
                "attempt": one.fence.attempt,
                "state": one.state,
                "elapsed_s": round(one.elapsed_s, 1),
                "cores": worker.parts.cores.held_by((one.part, one.fence)),
            }
            for one in worker.parts.held()
        ]

    def managers() -> object:
        standing = worker.registration
        return {
            "standing": standing.standing.name.lower(),
            "leader": str(standing.leader or ""),
            "term": standing.term,
            "managers": [str(address) for address in standing.managers],
            "silent_s": round(worker.contact.silent_s(worker.node.now()), 1),
        }

    def circuits() -> object:
        return {
            address: {
                "state": status.state.value,
                "failures": {category.value: n for category, n in status.failures.items()},
                "retry_after_s": round(status.retry_after_s, 1),
                "opened": status.opened_count,
            }
            for address, status in worker.links.circuits().items()
        }

    return {"/debug/parts": parts, "/debug/managers": managers, "/debug/circuits": circuits}
