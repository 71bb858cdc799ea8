"""What happens to jobs, as the shell tells the core of it, and what it is answered. Plain data.

`Jobs.receive` takes any `Event`. An event that `Asks` something has an `Answer` among the effects
that come back; the others only have effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import (
    Action,
    JobRecord,
    JobStatus,
    Outcome,
    Part,
    Placement,
    Steered,
    Submitted,
)

A_co = TypeVar("A_co", covariant=True)


class Asks(msgspec.Struct, Generic[A_co], frozen=True):
    """An event whose sender is answered."""


# -- answers -------------------------------------------------------------------------------------


class Accepted(msgspec.Struct, frozen=True):
    """To be told to the client once `record` is held; that of a duplicate may be held already."""

    record: Submitted
    duplicate: bool = False

    @property
    def job_id(self) -> str:
        return self.record.job_id


class Rejected(msgspec.Struct, frozen=True):
    reason: str
    retry_after_s: float = 0.0  # 0: it will not do later either
    conflict: bool = False  # the key, or the id, belongs to another submission


class Steering(msgspec.Struct, frozen=True):
    """To be told to the client once `record`, if there is one, is held."""

    accepted: bool
    workflows: int = 0
    error: str = ""
    again: bool = False  # not now, but worth asking again
    record: Steered | None = None


class Grant(msgspec.Struct, frozen=True):
    """The answer to a worker that asks for more time."""

    granted: bool
    seconds: float = 0.0
    remaining: int = 0
    denial: str = ""
    warning: bool = False
    grace_s: float = 0.0


Unwanted = tuple[tuple[Part, Fence], ...]
"""Parts a worker holds that nobody waits for: to be ended."""


# -- leadership, the log, time -------------------------------------------------------------------


class Lead(msgspec.Struct, frozen=True):
    """After the log is recovered and everything in it was applied."""

    term: int


class Follow(msgspec.Struct, frozen=True):
    """This manager does not lead any more."""


class LeaderSeen(msgspec.Struct, frozen=True):
    """Now and then, to those who do not lead: is there somebody who does?"""

    led: bool


class Applied(Asks[bool], frozen=True):
    """A committed record, in the order of the log, on every manager. Answered with whether it
    changed anything: one may come twice."""

    record: JobRecord


class AppendFailed(msgspec.Struct, frozen=True):
    record: JobRecord
    maybe_written: bool


class Forgotten(msgspec.Struct, frozen=True):
    """The log holds nothing of this job any more."""

    job_id: str


class Tick(msgspec.Struct, frozen=True):
    """A deadline may have come."""


# -- clients and the shell itself ----------------------------------------------------------------


class Submit(Asks["Accepted | Rejected"], frozen=True):
    record: Submitted


class Steer(Asks[Steering], frozen=True):
    job_id: str
    action: Action
    amount: int = 0
    by: str = ""
    reason: str = ""
    workflow: str = ""  # the only one concerned, if so
    command_id: str = ""  # a copy that arrives late changes nothing


class ResultsMade(msgspec.Struct, frozen=True):
    """The answer to `MakeResults`."""

    job_id: str
    status: JobStatus
    reason: str
    results: bytes
    states: tuple[bytes, ...] = ()


class ThresholdMoved(msgspec.Struct, frozen=True):
    """How a threshold stands, for leaders to come: the `number`th of its workflow."""

    job_id: str
    workflow: str
    number: int
    bad_since_s: float | None
    crossing: float | None


class Heard(msgspec.Struct, frozen=True):
    """What managers had heard of a part that is lost; no result: nobody remembers."""

    at_s: float  # of the workflow's load time
    iterations: int
    result: bytes
    pace: float = 0.0  # iterations a second of the fastest part of its workflow


class ReportedCollected(msgspec.Struct, frozen=True):
    """The answer to `CollectReported`."""

    placement: Placement
    heard: Heard


# -- workers -------------------------------------------------------------------------------------


class CpuUse(NamedTuple):
    """A machine may be idle while one of its generator processes uses up its core."""

    machine_percent: float
    generator_percent: float  # the busiest, of one core


class PartReport(msgspec.Struct, frozen=True):
    """A part as its worker sees it."""

    part: Part
    fence: Fence
    state: str
    elapsed_s: float = 0.0  # load time of the workflow: skipped time counts, pauses do not
    counter: int | None = None  # what grows with the work done, and only then; None: not told
    context: bytes | None = None  # once prepared: what setup() wrote, or b""
    cores_done: int = 0  # cores of it that have no more load to make, in all
    idle_s: float = 0.0  # for so long nothing of it has moved, and nothing explains it


class WorkerRegistered(Asks[Unwanted], frozen=True):
    """`reports` names everything the worker holds; `life` is its incarnation when its process
    began, if it told so. One that is `cut_off` has had no answer for long: this may be the first
    that reaches it, or another that does not."""

    worker: str
    incarnation: int
    total: int
    free: int
    reports: Sequence[PartReport]
    draining: bool = False
    life: int = 0
    cut_off: bool = False


class WorkerReported(Asks["Unwanted | None"], frozen=True):
    """`reports` may be any of its parts. Answered with None when the worker must register first."""

    worker: str
    incarnation: int
    free: int
    reports: Sequence[PartReport]
    draining: bool = False
    degraded: bool = False
    cpu: CpuUse | None = None


class WorkerAnswered(msgspec.Struct, frozen=True):
    """It was answered a report with nothing new in it: for the worker that is contact."""

    worker: str


class WorkerListed(Asks[Unwanted], frozen=True):
    """All it holds, because we asked. That we reach it is no contact for it."""

    worker: str
    incarnation: int
    reports: Sequence[PartReport]


class WorkerDied(msgspec.Struct, frozen=True):
    """The membership protocol has given it up."""

    worker: str
    incarnation: int


class WorkerAlive(msgspec.Struct, frozen=True):
    """The membership protocol hears it, whatever was said before. Whether it can be commanded is
    another question."""

    worker: str
    incarnation: int


class WorkerReached(msgspec.Struct, frozen=True):
    """It has answered a command."""

    worker: str


class WorkerUnreached(msgspec.Struct, frozen=True):
    """No connection to it could be made. `refused`: nobody listens there any more."""

    worker: str
    refused: bool


class WorkerLeft(msgspec.Struct, frozen=True):
    worker: str
    incarnation: int


class ExtensionAsked(Asks[Grant], frozen=True):
    worker: str
    reason: str
    progress: float


class DispatchAnswered(msgspec.Struct, frozen=True):
    """`for_good`: no worker could be sent it."""

    placement: Placement
    accepted: bool
    no_room: bool = False
    reason: str = ""
    free: int | None = None
    for_good: bool = False


# The next three are answered with True when the worker may forget what it told; else `Acknowledge`
# follows, now or later.


class Prepared(Asks[bool], frozen=True):
    """Settled for any leader: a new one hears of it when the worker registers."""

    part: Part
    fence: Fence
    context: bytes


class Ended(Asks[bool], frozen=True):
    part: Part
    fence: Fence
    worker: str
    outcome: Outcome
    measured_s: float
    iterations: int
    result: bytes
    error: str = ""
    lost: str = ""  # as in `PartEnded`


class TeardownEnded(Asks[bool], frozen=True):
    part: Part
    fence: Fence
    warning: str = ""
    requests: int = 0


Event = (
    Lead | Follow | LeaderSeen | Applied | AppendFailed | Forgotten | Tick
    | Submit | Steer | ResultsMade | ThresholdMoved | ReportedCollected
    | WorkerRegistered | WorkerReported | WorkerAnswered | WorkerListed | WorkerDied | WorkerAlive
    | WorkerReached | WorkerUnreached | WorkerLeft | ExtensionAsked | DispatchAnswered
    | Prepared | Ended | TeardownEnded
)  # fmt: skip
