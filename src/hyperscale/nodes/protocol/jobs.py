"""Clients and managers: jobs, from their submission to their results.

A client may ask any manager; one that does not lead passes the question on, once. A stream of
updates begins with all there is (a snapshot of each workflow, every finished workflow, the end if
there was one), so that a client that comes back misses nothing.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec
from msgspec import field

from hyperscale.cluster.jobs.records import Action, JobStatus, LostLoad
from hyperscale.metrics.delta import Delta
from hyperscale.metrics.results import ThresholdResult
from hyperscale.nodes.protocol import Fields
from hyperscale.wire.messages import Priority, Registry
from hyperscale.workload.facts import WorkflowFacts

SUBMISSION_BYTES_MAX = 7 << 20  # a job is one record, and those end at 8 MiB
UPDATE_BYTES_MAX = 48 << 20
Policy = Literal["strict", "prefer", "any"]
UNKNOWN_JOB = "unknown_job"  # the code of a refusal: no manager knows this job


class Body(Fields, frozen=True, kw_only=True):
    """What a job is made of. Managers read the facts and keep the rest as it came."""

    workflows: tuple[WorkflowFacts, ...]
    source: bytes
    overrides: bytes
    name: str = ""
    timeout_s: float | None = None
    seed: int | None = None
    env: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    command: str = ""
    started_at: str = ""  # the client's wall time: a label
    warnings: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()  # names in `env` whose values nobody may read
    identity: str = ""  # of the test, where the bytes of `source` differ from time to time
    sealed: bytes = b""  # source, overrides, env and secrets, once a manager keeps them
    lost_load: LostLoad = "squeeze"
    among: tuple[int, ...] = (0, 1)  # the number of this datacenter, then the share of each

    def facts(self, name: str) -> WorkflowFacts:
        """Of the workflow with that name, which it has."""
        return next(facts for facts in self.workflows if facts.name == name)

    def digest(self) -> str:
        """Of what a job is; when and how it was asked for makes no other job of it."""
        source = b"" if self.identity else self.source
        same = msgspec.structs.replace(self, started_at="", command="", source=source)
        return hashlib.blake2b(msgspec.msgpack.encode(same), digest_size=16).hexdigest()

    def outline(self) -> Outline:
        return Outline(
            workflows=self.workflows,
            name=self.name,
            started_at=self.started_at,
            command=self.command,
            tags=self.tags,
            warnings=self.warnings,
        )


class Asked(Fields, frozen=True, kw_only=True):
    """What a person may ask. A manager that passes it on says whom it had before it."""

    passed_on: bool = False
    asked_by: str = ""
    certified: bool = False  # that name is in the certificate of who asked
    groups: tuple[str, ...] = ()  # and these


class SubmitJob(Asked, frozen=True, kw_only=True):
    """The client makes the job's id, so that a repeated submission cannot become a second job."""

    job_id: str
    body: bytes  # an encoded Body
    idempotency_key: str = ""
    requested_by: str = ""  # a remark: what it says of itself
    correlation_id: str = ""
    datacenters: dict[str, int] = field(default_factory=dict)
    """For gates: where it runs, with the share of each in one load; 0: all of it, as written."""
    datacenter_count: int = 0  # how many the gate is to choose; 0: those that are named, or all
    policy: Policy = "strict"  # whether others may take the place of those that are named
    for_gate: bool = False  # from a gate, which puts the numbers of many datacenters together
    held: bool = False  # its load is to wait, prepared, until the gate says that it begins


class JobAck(Fields, frozen=True, kw_only=True):
    job_id: str
    accepted: bool
    error: str = ""
    hint: str = ""
    position: int = 0  # in the queue; 0 when it need not wait
    retry_after_s: float = 0.0
    leader: str = ""
    idempotency_key: str = ""
    was_duplicate: bool = False
    original_job_id: str = ""
    durability: str = ""  # "local", "quorum" (of managers) or "global" (of gates)


class SteerJob(Asked, frozen=True, kw_only=True):
    job_id: str
    action: Action
    amount: int = 0
    by: str = ""
    reason: str = ""
    workflow: str = ""  # the only one concerned, if so
    command_id: str = ""  # of all copies of one command; the first that arrives counts


class SteerAck(Fields, frozen=True, kw_only=True):
    """Accepted at once; the stream of updates tells when it is done."""

    job_id: str
    accepted: bool
    workflows: int = 0  # how many it concerns
    error: str = ""


class AskJob(Asked, frozen=True, kw_only=True):
    job_id: str  # empty: the job of the key
    idempotency_key: str = ""


class WorkflowView(Fields, frozen=True, kw_only=True):
    name: str
    state: str  # pending running completed failed cancelled
    lifecycle: str  # the exact state, see `cluster.jobs.lifecycle`
    cores: int = 0
    workers: tuple[str, ...] = ()
    attempts: int = 0
    elapsed_s: float = 0.0
    planned_s: float | None = None
    requests: int = 0
    failed: int = 0
    error: str = ""
    rate_percent: int = 100  # of the planned rate, as it was changed last
    history: tuple[str, ...] = ()  # "5.0 RUNNING → FAILED (worker w2 died)"
    started_s: float = 0.0  # the job's age when its load began


class DatacenterView(Fields, frozen=True, kw_only=True):
    name: str
    status: str  # of the job there; "sending" before it was taken, "lost" when nothing is heard
    requests: int = 0
    failed: int = 0
    coverage: float = 1.0
    reason: str = ""
    share: int = 0  # in one load; 0: all of it
    vus: int = 0
    elapsed_s: float = 0.0  # of its load
    p50_ms: float = 0.0  # of all requests
    p95_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0


class JobView(Fields, frozen=True, kw_only=True):
    job_id: str
    name: str
    status: JobStatus
    reason: str = ""
    age_s: float = 0.0
    position: int = 0
    paused: bool = False
    workflows: tuple[WorkflowView, ...] = ()
    lost: tuple[str, ...] = ()
    coverage: float = 1.0
    requested_by: str = ""
    correlation_id: str = ""
    exit_code: int | None = None
    idempotency_key: str = ""
    owner: str = ""  # by certificate; empty: nobody's
    datacenters: tuple[DatacenterView, ...] = ()  # through a gate: how it stands in each
    began_ago_s: float | None = None  # its load; None: it has not begun
    thresholds: tuple[ThresholdResult, ...] = ()  # through a gate: as they stand
    together: DatacenterView | None = None  # and their numbers merged, while it runs


class AskJobs(Asked, frozen=True, kw_only=True):
    limit: int = 100


class JobViews(Fields, frozen=True, kw_only=True):
    jobs: tuple[JobView, ...] = ()
    leader: str = ""


class AskResults(Asked, frozen=True, kw_only=True):
    job_id: str


class JobResults(Fields, frozen=True, kw_only=True):
    job_id: str
    known: bool
    status: JobStatus | None = None
    results: bytes = b""  # metrics.results.Results as JSON; empty until there is an end


class AskWorkers(Asked, frozen=True, kw_only=True):
    job_id: str = ""  # only those that work for it, with its live numbers


class WorkerView(Fields, frozen=True, kw_only=True):
    worker: str
    address: str
    state: str  # healthy degraded draining suspect
    total_cores: int
    free_cores: int
    parts: tuple[str, ...] = ()
    requests: int = 0
    rate: float = 0.0
    cpu_percent: float = 0.0
    memory_percent: float = 0.0
    routing: str = ""  # route hold investigate drain evict
    heard_s: float = 0.0  # since its last word
    warnings: tuple[str, ...] = ()  # of its own


class WorkerViews(Fields, frozen=True, kw_only=True):
    workers: tuple[WorkerView, ...] = ()
    leader: str = ""
    total_cores: int = 0
    free_cores: int = 0


class DrainWorker(Asked, frozen=True, kw_only=True):
    """A worker shall take no new parts and finish what runs; or take new ones again."""

    worker: str
    undo: bool = False
    by: str = ""


class DrainAck(Fields, frozen=True, kw_only=True):
    worker: str
    accepted: bool
    parts: int = 0  # that go on
    error: str = ""


class WatchJob(Asked, frozen=True, kw_only=True):
    job_id: str
    live: bool = True  # with windows, every 100 ms; without, only what changes the job's state


class Window(Fields, frozen=True, kw_only=True):
    """100 ms of one workflow over all its workers. `index` only grows."""

    workflow: str
    index: int
    elapsed_s: float
    delta: Delta
    workers: int = 0


class Snapshot(Fields, frozen=True, kw_only=True):
    """All of a workflow so far; windows up to `index` are in it."""

    workflow: str
    index: int
    elapsed_s: float
    state: bytes


class WorkflowDone(Fields, frozen=True, kw_only=True):
    workflow: str
    status: str
    result: bytes = b""  # metrics.results.WorkflowResult as JSON
    error: str = ""
    hint: str = ""


class Outline(Fields, frozen=True, kw_only=True):
    """What a job is, for somebody who did not submit it: its `Body` without the code."""

    workflows: tuple[WorkflowFacts, ...]
    name: str = ""
    started_at: str = ""
    command: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class JobUpdate(Fields, frozen=True, kw_only=True):
    outline: Outline | None = None  # in the first update of every stream
    view: JobView | None = None  # when it changed
    snapshots: tuple[Snapshot, ...] = ()
    windows: tuple[Window, ...] = ()
    done: tuple[WorkflowDone, ...] = ()
    marks: tuple[tuple[str, float, str], ...] = ()  # workflow, load time, what happened
    results: bytes = b""  # the end: metrics.results.Results as JSON
    states: dict[str, bytes] = field(default_factory=dict)  # for a gate: its numbers by workflow
    final: bool = False


JOBS = Registry()
for _kind, _struct, _priority, _limit in (
    ("submit.job", SubmitJob, Priority.HIGH, SUBMISSION_BYTES_MAX),
    ("job.ack", JobAck, Priority.HIGH, 1 << 16),
    ("steer.job", SteerJob, Priority.CRITICAL, 1 << 16),
    ("steer.ack", SteerAck, Priority.CRITICAL, 1 << 16),
    ("ask.job", AskJob, Priority.NORMAL, 4 << 10),
    ("job.view", JobView, Priority.NORMAL, 4 << 20),
    ("ask.jobs", AskJobs, Priority.NORMAL, 4 << 10),
    ("job.views", JobViews, Priority.NORMAL, 32 << 20),
    ("ask.results", AskResults, Priority.NORMAL, 4 << 10),
    ("job.results", JobResults, Priority.NORMAL, UPDATE_BYTES_MAX),
    ("ask.workers", AskWorkers, Priority.NORMAL, 4 << 10),
    ("worker.views", WorkerViews, Priority.NORMAL, 16 << 20),
    ("drain.worker", DrainWorker, Priority.HIGH, 4 << 10),
    ("drain.ack", DrainAck, Priority.HIGH, 1 << 10),
    ("watch.job", WatchJob, Priority.NORMAL, 4 << 10),
    ("job.update", JobUpdate, Priority.NORMAL, UPDATE_BYTES_MAX),
):
    JOBS.add(_struct, kind=_kind, priority=_priority, max_bytes=_limit)
