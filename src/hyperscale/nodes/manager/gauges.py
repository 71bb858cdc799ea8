"""A manager in numbers: its jobs, its workers, its records, and whether it can do its work.

Only the leader knows workers and live numbers, so the others say zero there, and a sum over all
managers is the truth. Jobs and records are the same on all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, get_args

from hyperscale.cluster.jobs.records import JobStatus
from hyperscale.nodes.manager.counters import EXTENSION_ANSWERS, TIMEOUT_REASONS
from hyperscale.nodes.manager.worker_api import ABSENT
from hyperscale.nodes.member.metrics import Metric, histogram, labelled, single
from hyperscale.nodes.protocol.parts import PartState
from hyperscale.runtime.page_server import Health

if TYPE_CHECKING:
    from hyperscale.nodes.manager.live import LiveWorkflow
    from hyperscale.nodes.manager.manager import Manager

JOB_STATES: Final = get_args(JobStatus)
PART_STATES: Final = get_args(PartState)
WORKER_STATES: Final = ("healthy", "degraded", "draining", "expected", *ABSENT)
# A page for people; the newest jobs are those they ask about.
JOBS_SHOWN_MAX: Final = 100


def metrics(manager: Manager) -> Iterator[Metric]:
    yield single("leading", "gauge", "1 while it leads and takes jobs.", manager.leadership.leads())
    yield from _jobs(manager)
    yield from _times(manager)
    yield from _workers(manager)
    yield from _progress(manager)
    yield from _records(manager)
    yield from _faults(manager)


def _jobs(manager: Manager) -> Iterator[Metric]:
    states = Counter(job.status for job in manager.jobs.jobs())
    yield _by_state("jobs", "Jobs remembered, by state.", states, JOB_STATES)
    limit = manager.settings.jobs.queue_jobs_max
    yield single("queue_jobs_max", "gauge", "Queued jobs beyond this are refused.", limit)
    client_api = manager.client_api
    answers = {
        "accepted": client_api.accepted,
        "repeated": client_api.repeated,
        "refused": client_api.refused,
    }
    text = "Submissions answered by this manager as a leader."
    yield labelled("submissions_total", "counter", text, "answer", _floats(answers))
    workflows = manager.jobs.counts()
    text = "Workflows of jobs that are not over, by state."
    yield _by_state("workflows", text, workflows, workflows)
    yield Metric(
        "workflow_transitions_total",
        "counter",
        "Changes of a workflow's state, since this manager started.",
        ("before", "after"),
        {states: float(count) for states, count in manager.jobs.transitions().items()},
    )
    text = "Decisions on a state that a workflow was not in any more, since this manager started."
    refused = manager.jobs.transitions_refused
    yield single("workflow_transitions_refused_total", "counter", text, refused)


def _times(manager: Manager) -> Iterator[Metric]:
    counters = manager.counters
    yield labelled(
        "job_timeouts_detected_total",
        "counter",
        "Jobs ended because their time was over, or nothing of them moved.",
        "reason",
        {reason: float(counters.timeouts[reason]) for reason in TIMEOUT_REASONS},
    )
    yield single(
        "job_timeout_checks_total",
        "counter",
        "Times the leader looked whether a job is past its time or stuck.",
        manager.jobs.time_checks(),
    )
    yield labelled(
        "worker_extensions_total",
        "counter",
        "Requests of workers for more time.",
        "answer",
        {answer: float(counters.extensions[answer]) for answer in EXTENSION_ANSWERS},
    )


def _workers(manager: Manager) -> Iterator[Metric]:
    rows = manager.worker_api.views() if manager.leadership.leads() else []
    states = Counter(row.state for row in rows)
    yield _by_state("workers", "Workers the leader knows, by state.", states, WORKER_STATES)
    there = [row for row in rows if row.state not in ABSENT]
    total, free = sum(row.total_cores for row in there), sum(row.free_cores for row in there)
    cores = {"busy": max(0, total - free), "free": free}
    yield _by_state("cores", "Cores of those workers.", cores, cores)
    parts = Counter(part.state for live in _live(manager) for part in live.parts.values())
    yield _by_state("parts", "Parts of workflows on workers, by state.", parts, PART_STATES)


def _faults(manager: Manager) -> Iterator[Metric]:
    yield single(
        "faults_total",
        "counter",
        "Errors in the manager's own code that it lives on with; its log shows where.",
        manager.faults.count,
    )


def _progress(manager: Manager) -> Iterator[Metric]:
    worker_api = manager.worker_api
    reports = {
        "taken": worker_api.reports,
        "unknown worker": worker_api.reports_unknown,
        "refused": worker_api.reports_refused,
    }
    yield labelled(
        "progress_reports_total", "counter", "Reports of workers.", "fate", _floats(reports)
    )
    yield single(
        "progress_deltas_total", "counter", "Numbers of generators in them.", worker_api.deltas
    )
    yield single(
        "progress_late_total",
        "counter",
        "Reports about attempts that were over.",
        manager.live.late,
    )
    yield single(
        "progress_pressure",
        "gauge",
        "0: all is taken in; 3: workers hold numbers back.",
        worker_api.pressure(manager.now()),
    )
    pending = sum(len(live.pending) for live in _live(manager))
    yield single("merge_pending", "gauge", "Numbers that wait for the next window.", pending)
    yield single(
        "merge_lag_seconds",
        "gauge",
        "How far the shown numbers of the slowest workflow are behind its load.",
        _merge_lag_s(manager),
    )


def _records(manager: Manager) -> Iterator[Metric]:
    status = manager.records.status()
    yield labelled(
        "records_index",
        "gauge",
        "Position in the log of job records.",
        "held",
        _floats(
            {
                "in memory": status.last_index,
                "on disk": status.durable_index,
                "by a majority": status.commit_index,
                "applied": status.applied_index,
            }
        ),
    )
    behind = max((lacks for _, lacks in status.behind), default=0)
    for name, text, value in (
        ("records_term", "Nothing older is accepted.", status.term),
        (
            "records_commit_lag",
            "Records a majority lacks.",
            status.last_index - status.commit_index,
        ),
        ("records_pending", "Records of this leader not confirmed yet.", status.pending),
        ("records_behind_max", "Records the slowest voter lacks, while leading.", behind),
        ("records_voters_reachable", "While leading, itself included.", len(status.reachable)),
        ("records_voters", "Managers that hold records.", len(manager.settings.node.voters)),
    ):
        yield single(name, "gauge", text, value)
    stages, log = manager.records.stages, manager.records.log_stats
    yield histogram(
        "records_stage_seconds",
        "How long records take: sync on this disk, quorum until a majority holds them, apply here,"
        " append in all for whoever waits.",
        "stage",
        {"sync": stages.sync, "quorum": stages.quorum, "apply": stages.apply,
         "append": stages.append},
    )  # fmt: skip
    written = {"records": log.records, "batches": log.batches, "bytes": log.bytes}
    text = "Written to this node's log since it started."
    yield labelled("records_log_written_total", "counter", text, "what", _floats(written))
    text = "The slowest batch: above a second the disk is ill or overloaded."
    yield single("records_log_commit_seconds_max", "gauge", text, log.commit_s_max)
    sizes = {"memory": status.bytes, "disk": status.disk_bytes}
    yield labelled("records_bytes", "gauge", "Of job records.", "where", _floats(sizes))
    yield single(
        "records_checkpoints_failed_total",
        "counter",
        "Without checkpoints the log grows; the disk is probably full.",
        status.checkpoints_failed,
    )


def _live(manager: Manager) -> Iterator[LiveWorkflow]:
    for job in manager.jobs.jobs():
        for name in () if job.is_over else job.workflows:
            live = manager.live.workflow(job.job_id, name)
            if live is not None:
                yield live


def _merge_lag_s(manager: Manager) -> float:
    now, lags = manager.now(), [0.0]
    for job in manager.jobs.jobs():
        for name, workflow in () if job.is_over else job.workflows.items():
            if workflow.started and not workflow.is_over and manager.leadership.leads():
                shown_s = manager.live.elapsed_s(job.job_id, name)
                lags.append(manager.jobs.load_s(now, job.job_id, name) - shown_s)
    return max(lags)


def _by_state(
    name: str, text: str, counts: Mapping[Any, int], states: Mapping[str, int] | tuple[str, ...]
) -> Metric:
    return labelled(
        name, "gauge", text, "state", {state: float(counts.get(state, 0)) for state in states}
    )


def _floats(values: Mapping[str, int]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def readiness(manager: Manager) -> Health:
    """It can take a job, or pass it on to who can. Without workers jobs wait, which is no fault.
    One that lived through a fault of its own goes on, and says so."""
    health = _standing(manager)
    remarks = [health.reason]
    if health.reason != (difference := manager.node.difference):
        remarks.append(difference)
    if manager.faults.count:
        remarks.append(f"{manager.faults.count} faults, see its log; last: {manager.faults.last}")
    return Health(ok=health.ok, reason="; ".join(filter(None, remarks)))


def _standing(manager: Manager) -> Health:
    leadership, voters = manager.leadership, len(manager.settings.node.voters)
    if not manager.started:
        return Health(ok=False, reason="it is starting")
    if manager.over.is_set():
        return Health(ok=False, reason="it is ending")
    if manager.node.barred:
        return Health(ok=False, reason=manager.node.barred)
    if not leadership.leader:
        return Health(ok=False, reason=manager.leadership.waits_for())
    if leadership.leader != manager.id:
        return Health(ok=True, reason=f"{leadership.leader} leads")
    if not leadership.leads():
        return Health(ok=False, reason="it was elected, and collects the records of jobs")
    reachable = len(manager.records.status().reachable)
    if reachable <= voters // 2:
        return Health(ok=False, reason=f"no quorum: {reachable} of {voters} managers answer")
    workers = any(worker.registered for worker in manager.jobs.pool.workers.values())
    return Health(ok=True, reason="it leads" if workers else "it leads, and no worker is here")


def pages(manager: Manager) -> dict[str, Callable[[], object]]:
    def jobs() -> object:
        return [
            {
                "job": job.job_id,
                "status": job.status,
                "age_s": round(manager.jobs.age_s(manager.now(), job.job_id), 1),
                "position": manager.jobs.position(job.job_id),
                "waits_for": manager.jobs.waiting_for(job.job_id),
                "workflows": {
                    name: workflow.lifecycle.state.value for name, workflow in job.workflows.items()
                },
            }
            for job in manager.jobs.jobs()[-JOBS_SHOWN_MAX:]
        ]

    return {
        "/debug/jobs": jobs,
        "/debug/workers": lambda: manager.worker_api.views(),
        "/debug/records": lambda: manager.records.status(),
    }
