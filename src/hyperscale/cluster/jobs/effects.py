"""What the jobs core asks its shell to do. Plain data; the shell decides nothing."""

from __future__ import annotations

from dataclasses import dataclass

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Action, JobRecord, JobStatus, Part, Placement


@dataclass(frozen=True, slots=True)
class Append:
    """Have a quorum hold this record; `applied` follows on every manager, this one included."""

    record: JobRecord


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Send a part with its code to its worker, then tell `dispatch_answered`."""

    placement: Placement
    total_cores: int
    run_setup: bool


@dataclass(frozen=True, slots=True)
class Start:
    """Open the barrier for this part; repeated until the worker has confirmed it."""

    placement: Placement
    context: bytes
    run_age_s: float = 0.0  # how long ago the load of the job began


@dataclass(frozen=True, slots=True)
class Command:
    """Steer a running part, or end it. `cancel` is repeated until the part has ended."""

    placement: Placement
    action: Action
    amount: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Teardown:
    placement: Placement


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """The end of this part is held by a quorum, or of no use: its worker may forget it."""

    worker: str
    part: Part
    fence: Fence


@dataclass(frozen=True, slots=True)
class CollectReported:
    """Take what `part` has reported so far, for the `PartLost` that is to be written; the shell
    answers with `part_lost`."""

    placement: Placement
    reason: str


@dataclass(frozen=True, slots=True)
class MakeResults:
    """All is in: merge results, judge, and answer with `results_made`. Status and reason are what
    the life cycles of the workflows give."""

    job_id: str
    status: JobStatus
    reason: str


@dataclass(frozen=True, slots=True)
class ForgetWorker:
    """This worker is not remembered any more; it must register before it is spoken to again."""

    worker: str


@dataclass(frozen=True, slots=True)
class LogEvent:
    """Something worth a log line, with the job's correlation id."""

    job_id: str
    event: str
    facts: dict[str, object]
    level: str = "info"


Effect = (
    Append
    | Dispatch
    | Start
    | Command
    | Teardown
    | Acknowledge
    | CollectReported
    | MakeResults
    | ForgetWorker
    | LogEvent
)
