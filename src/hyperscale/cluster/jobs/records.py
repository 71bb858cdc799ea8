"""What the managers of a datacenter remember of a job: one record per decision, in order.

The leader decides, the record is held by a quorum, then it is applied, everywhere, in the same
way. Nothing is acknowledged, dispatched or started before its record is held. Code, context and
results are opaque here. Wall clocks do not appear: `age_s` is how old the job was when its leader
wrote the record. Records are kept on disk: fields are never removed, reordered or given another
meaning; new ones go to the end and have a default.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from hyperscale.cluster.fencing import Fence

Outcome = Literal["completed", "failed", "cancelled", "cut off"]
"""How a part ended: `cut off` before its plan did, because its worker lost its managers or one of
its generator processes died."""

LostLoad = Literal["squeeze", "move", "drop"]
"""What becomes of a lost part when no core is free: it shares one that its job has, it waits for a
free one, or it is given up at once."""

Action = Literal["cancel", "stop", "pause", "resume", "scale", "rate", "begin"]
"""`begin` is a gate's: the load that was held begins, in so many milliseconds."""

JobStatus = Literal[
    "submitted", "queued", "dispatching", "prepared", "running", "completing", "cancelling",
    "completed", "partial", "failed", "cancelled", "timeout",
]  # fmt: skip


class Needs(msgspec.Struct, frozen=True, array_like=True):
    """What placing a workflow takes to know."""

    name: str
    is_test: bool
    priority: str
    depends: tuple[str, ...]
    peak_vus: int
    planned_s: float | None  # None: until its iterations are done
    limit_s: float  # seconds after its start when it must be over, graceful stop included
    sets_up: bool = False
    tears_down: bool = False
    start_time_s: float = 0.0  # from the start of the job's first workflow
    warmup_s: float = 0.0
    iterations: int | None = None  # None: it goes by time

    @property
    def is_exclusive(self) -> bool:
        return self.is_test and self.priority == "exclusive"


class Part(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A workflow is cut into parts, one for each worker that runs some of its cores."""

    job_id: str
    workflow: str
    number: int

    def __str__(self) -> str:
        return f"{self.job_id}/{self.workflow}/{self.number}"


class Placement(msgspec.Struct, frozen=True, array_like=True):
    """A part on its worker: cores `first_core` .. `first_core + cores - 1` of the workflow's. Parts
    of a job that have a slot in common share that generator process."""

    part: Part
    fence: Fence
    worker: str
    incarnation: int
    first_core: int
    cores: int
    resume_at_s: float = 0.0  # a test that goes on elsewhere skips the time that has passed
    iterations_done: int = 0
    slots: tuple[int, ...] = ()  # of its cores, unique within the job; () shares with nobody
    left_out: int = 0  # of `iterations_done`: nobody made them after all, so they are to be made


class Record(msgspec.Struct, frozen=True, array_like=True, tag_field="kind"):
    job_id: str
    age_s: float


class Submitted(Record, frozen=True, array_like=True, tag="submitted"):
    name: str
    workflows: tuple[Needs, ...]
    timeout_s: float
    body: bytes  # the submission as the client sent it: facts, code, options
    idempotency_key: str = ""
    digest: str = ""  # of the body: the same key with another body is another job
    requested_by: str = ""
    correlation_id: str = ""
    lost_load: LostLoad = "squeeze"
    owner: str = ""  # the client whose certificate submitted it; empty: nobody's
    groups: tuple[str, ...] = ()  # that this certificate names
    for_gate: bool = False  # other datacenters may run it too: its numbers are merged with theirs
    held: bool = False  # its load waits, prepared, until a gate says that it begins everywhere


class Dispatched(Record, frozen=True, array_like=True, tag="dispatched"):
    """Workers are chosen. With `replaces` set, only these parts are placed anew."""

    workflow: str
    total_cores: int
    placements: tuple[Placement, ...]
    replaces: bool = False


class Returned(Record, frozen=True, array_like=True, tag="returned"):
    """A worker had no room after all: the workflow is pending again, no retry is used up. With
    `parts`, only these are to be placed again; the others go on."""

    workflow: str
    reason: str
    parts: tuple[int, ...] = ()


class Started(Record, frozen=True, array_like=True, tag="started"):
    """All parts are prepared: the barrier is open. `context` is what setup() wrote."""

    workflow: str
    context: bytes


class PartEnded(Record, frozen=True, array_like=True, tag="ended"):
    part: Part
    fence: Fence
    worker: str
    outcome: Outcome
    measured_s: float
    result: bytes  # what the worker measured and the values it hands on
    error: str = ""
    iterations: int = 0
    lost: str = ""  # generator processes that died and took load with them, in words


class PartLost(Record, frozen=True, array_like=True, tag="lost"):
    """A worker is gone. `result` is what it had reported, which is kept and counted."""

    part: Part
    fence: Fence
    worker: str
    at_s: float  # of the workflow's load time
    iterations: int
    result: bytes
    reason: str
    unheard: int = 0  # iterations that it may have done since: nobody does them again


class ToldLate(Record, frozen=True, array_like=True, tag="told late"):
    """A worker is back that was lost with a part, and tells how far it had really come: in place of
    what had been heard of it by then."""

    part: Part
    fence: Fence
    worker: str
    iterations: int
    result: bytes


class GivenUp(Record, frozen=True, array_like=True, tag="given up"):
    """A lost part is declared lost: no retry is left, its time was over before a worker could take
    it, or the job does not want it to go on. The workflow ends with what there is."""

    part: Part
    reason: str


class Failed(Record, frozen=True, array_like=True, tag="failed"):
    """A workflow will not be carried out: its dependency failed, or nobody could take it."""

    workflow: str
    reason: str


class TornDown(Record, frozen=True, array_like=True, tag="torn down"):
    workflow: str
    warning: str = ""
    requests: int = 0  # that it made


class Steered(Record, frozen=True, array_like=True, tag="steered"):
    """`amount` is what shall be, not a change: the VUs of a workflow ("scale"), or the percentage
    of its planned rate ("rate")."""

    action: Action
    amount: int = 0
    by: str = ""
    reason: str = ""
    at_s: dict[str, float] = {}  # workflow -> its load time, for the timeline
    workflow: str = ""  # the only one concerned, if so
    command_id: str = ""


class Extended(Record, frozen=True, array_like=True, tag="extended"):
    """A worker was granted more time; the job's deadline moves with it."""

    worker: str
    seconds: float


class Judged(Record, frozen=True, array_like=True, tag="judged"):
    """How a threshold stands that must not hold for a while: the `number`th of its workflow."""

    workflow: str
    number: int
    bad_since_s: float | None  # of the workflow's load time
    crossing: float | None  # the value with which it was crossed


class Aged(Record, frozen=True, array_like=True, tag="aged"):
    """Nothing but how old the job is by now, for managers that are started again."""


class TimedOut(Record, frozen=True, array_like=True, tag="timed out"):
    reason: str


class Finished(Record, frozen=True, array_like=True, tag="finished"):
    """The end of every job. `results` is what the client gets, verdict included; `states` is what a
    gate gets beside it, in the order of the workflows: numbers that can be merged."""

    status: JobStatus
    reason: str
    results: bytes
    states: tuple[bytes, ...] = ()


JobRecord = (
    Submitted | Dispatched | Returned | Started | PartEnded | PartLost | ToldLate | GivenUp
    | Failed | TornDown | Steered | Extended | Judged | Aged | TimedOut | Finished
)  # fmt: skip

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[JobRecord] = msgspec.msgpack.Decoder(JobRecord)


def encode(record: JobRecord) -> bytes:
    return _encoder.encode(record)


def decode(data: bytes) -> JobRecord:
    return _decoder.decode(data)
