"""The numbers of one scheduler process.

Labels are bounded: kinds beyond a handful count as "other", and neither workers nor single
priorities are labels.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Final

import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.spec import PRIORITIES
from hyperscale.scheduler.store.types import Counts
from hyperscale.scheduler.worker.registration import Worker, WorkerState

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
KINDS_MAX: Final = 20

_COMPLETION_S: Final = (0.1, 0.5, 1, 5, 10, 30, 60, 300)
_HEARTBEAT_S: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5)
_ASSIGNMENT_S: Final = (0.01, 0.05, 0.1, 0.5, 1, 5, 10)
_LAG_S: Final = (0, 1, 5, 10, 30, 60, 300)
_QUEUE_S: Final = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1)
_SERVICE_S: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._kinds: set[str] = set()
        self.submissions = self._counter(
            "scheduler_job_submissions", "jobs accepted", "component", "priority", "job_type"
        )
        self.completions = self._histogram(
            "scheduler_job_completion_duration_seconds",
            "from start to end of a job",
            _COMPLETION_S,
            "component",
            "priority",
            "success",
        )
        self.failures = self._counter(
            "scheduler_job_failures",
            "attempts that failed",
            "component",
            "failure_type",
            "retriable",
        )
        self.heartbeats = self._histogram(
            "scheduler_heartbeat_latency_seconds",
            "time to record a heartbeat",
            _HEARTBEAT_S,
            "component",
            "success",
        )
        self.elections = self._counter(
            "scheduler_leader_elections", "times this node became the leader"
        )
        self.assignments = self._histogram(
            "scheduler_job_assignment_duration_seconds", "from due to claimed", _ASSIGNMENT_S
        )
        self.dedups = self._counter(
            "scheduler_deduplication_checks", "submissions with a key", "component", "result"
        )
        self.promotion_lag = self._histogram(
            "scheduler_delayed_promotion_lag_seconds",
            "delayed jobs, from due to claimed: what promotion cost, at most",
            _LAG_S,
        )
        self.operations = self._histogram(
            "scheduler_queue_operation_duration_seconds",
            "calls of the job store",
            _QUEUE_S,
            "component",
            "operation",
        )
        self.coordination = self._histogram(
            "scheduler_coordination_service_duration_seconds",
            "calls that keep or take the lead",
            _SERVICE_S,
            "component",
            "service",
            "operation",
        )
        self.partitions = self._counter(
            "scheduler_network_partitions", "times the store did not answer"
        )
        self.memory = self.gauge("scheduler_memory_usage_bytes", "resident memory")
        self.tokens = self._counter(
            "scheduler_fencing_token_checks", "reports judged by their token", "component", "result"
        )

    def text(self) -> bytes:
        self.memory.set(psutil.Process(os.getpid()).memory_info().rss)
        return generate_latest(self.registry)

    def kind(self, kind: str) -> str:
        if kind not in self._kinds and len(self._kinds) >= KINDS_MAX:
            return "other"
        self._kinds.add(kind)
        return kind

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)


class QueueGauges:
    """What a coordinator sees of the store all share; a worker's page does not have them, so that
    it never tells of an empty queue it did not look at."""

    def __init__(self, metrics: Metrics) -> None:
        gauge = metrics.gauge
        self._depth = gauge("scheduler_queue_depth", "jobs by state", "component", "state")
        self._workers = gauge("scheduler_active_workers", "workers that take jobs or are full")
        self._letters = gauge("scheduler_dead_letter_depth", "jobs that failed for good")
        self._schedules = gauge("scheduler_schedules", "schedules")
        self._leading = gauge("scheduler_leading", "1 on the leader")
        self._lateness = gauge("scheduler_tick_lateness_seconds", "of the last tick, for a minute")
        self._stopped = gauge("scheduler_emergency_stop", "1: nothing starts until it is ended")

    def of_process(self, leading: bool, late_s: float) -> None:
        self._leading.set(leading)
        self._lateness.set(late_s)

    def of_store(self, counts: Counts, workers: Sequence[Worker], stopped: bool) -> None:
        for state, number in counts.states.items():
            self._depth.labels("store", str(state)).set(number)
        for place in ("ready", "delayed", "waiting"):
            self._depth.labels("store", place).set(getattr(counts, place))
        self._letters.set(counts.letters)
        self._schedules.set(counts.schedules)
        taking = (WorkerState.AVAILABLE, WorkerState.BUSY)
        self._workers.set(sum(worker.state in taking for worker in workers))
        self._stopped.set(stopped)

    def unknown(self) -> None:
        """The store does not answer: what was true before is not told as if it were now."""
        self._depth.clear()
        for one in (self._letters, self._schedules, self._workers, self._stopped):
            one.set(math.nan)


class WorkerGauges:
    def __init__(self, metrics: Metrics) -> None:
        self._slots = metrics.gauge("scheduler_worker_slots", "jobs it runs at once")
        self._held = metrics.gauge("scheduler_worker_jobs", "jobs it holds")
        self._draining = metrics.gauge("scheduler_worker_draining", "1: it takes nothing new")

    def observe(self, slots: int, held: int, draining: bool) -> None:
        self._slots.set(slots)
        self._held.set(held)
        self._draining.set(draining)


def band(job: Job) -> str:
    """The named level a priority belongs to: the last one not better than it."""
    names = [name for name, level in PRIORITIES.items() if level <= job.spec.priority]
    return names[-1]
