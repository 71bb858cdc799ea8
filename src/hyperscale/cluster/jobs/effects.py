"""What the jobs core asks its shell to do. Plain data; the shell decides nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, cast

import msgspec

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.invariants import invariant
from hyperscale.cluster.jobs.events import Asks
from hyperscale.cluster.jobs.records import Action, JobRecord, JobStatus, Part, Placement


class Append(msgspec.Struct, frozen=True):
    """Have a quorum hold this record; `Applied` follows on every manager, this one included."""

    record: JobRecord


class Dispatch(msgspec.Struct, frozen=True):
    """Send a part with its code to its worker, then tell `DispatchAnswered`."""

    placement: Placement
    total_cores: int
    run_setup: bool


class Start(msgspec.Struct, frozen=True):
    """Open the barrier for this part; repeated until the worker has confirmed it."""

    placement: Placement
    context: bytes
    run_age_s: float = 0.0  # how long ago the load of the job began


class Command(msgspec.Struct, frozen=True):
    """Steer a running part, or end it. `cancel` is repeated until the part has ended."""

    placement: Placement
    action: Action
    amount: int = 0
    reason: str = ""


class Teardown(msgspec.Struct, frozen=True):
    placement: Placement


class Acknowledge(msgspec.Struct, frozen=True):
    """The end of this part is held by a quorum, or of no use: its worker may forget it."""

    worker: str
    part: Part
    fence: Fence


class CollectReported(msgspec.Struct, frozen=True):
    """Take what `part` has reported so far, for the `PartLost` that is to be written; the shell
    answers with `ReportedCollected`."""

    placement: Placement
    reason: str


class MakeResults(msgspec.Struct, frozen=True):
    """All is in: merge results, judge, and answer with `ResultsMade`. Status and reason are what
    the life cycles of the workflows give."""

    job_id: str
    status: JobStatus
    reason: str


class ForgetWorker(msgspec.Struct, frozen=True):
    """This worker is not remembered any more; it must register before it is spoken to again."""

    worker: str


class LogEvent(msgspec.Struct, frozen=True):
    """Something worth a log line, with the job's correlation id."""

    job_id: str
    event: str
    facts: dict[str, object]
    level: str = "info"


class Answer(msgspec.Struct, frozen=True):
    """To whoever brought the event; every event that `Asks` has one."""

    value: object


Effect = (
    Append | Dispatch | Start | Command | Teardown | Acknowledge | CollectReported | MakeResults
    | ForgetWorker | LogEvent | Answer
)  # fmt: skip

A = TypeVar("A")


def answer_to(event: Asks[A], effects: Iterable[Effect]) -> A:
    """Among the effects of that event."""
    answers = [one.value for one in effects if isinstance(one, Answer)]
    invariant(len(answers) == 1, "an event that asks is answered once")
    return cast(A, answers[0])
