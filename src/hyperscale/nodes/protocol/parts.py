"""Managers and workers: parts of workflows, from their dispatch to their acknowledged end.

Every command carries the token of the part it is for and the term of the leader that speaks: a
worker refuses a term below the highest it has heard. Every event carries its part's token, so that
a manager can refuse one from an attempt that is over.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.identity import Incarnation, Node
from hyperscale.cluster.jobs.records import Action, Outcome, Part
from hyperscale.engine.messages import Values
from hyperscale.metrics.packed import PackedDelta
from hyperscale.nodes.protocol import Fields
from hyperscale.wire.messages import Priority, Registry
from hyperscale.workload.facts import WorkflowFacts

CODE_BYTES_MAX = 32 << 20
EVENT_BYTES_MAX = 32 << 20

PartState = Literal["preparing", "prepared", "running", "paused", "ending", "ended"]
WorkerState = Literal["registering", "healthy", "degraded", "draining"]

# Numbers that workers tell are bounded while decoding: none of them can grow out of what sums and
# answers hold. More cores than any machine has; more deltas and requests than a year of load.
CORES_MAX = 4_096
Cores = Annotated[int, Meta(ge=0, le=CORES_MAX)]
Percent = Annotated[float, Meta(ge=0.0, le=1_000.0)]  # no NaN either
# What one worker holds, and tells of one part at once: a longer list would hold up the leader's
# loop for a second, and with it its heartbeats.
LISTED_MAX = 4_096
_LISTED = Meta(max_length=LISTED_MAX)
Count = Annotated[int, Meta(ge=0, le=2**53)]


# -- leader to worker ----------------------------------------------------------------------------


class DispatchPart(Fields, frozen=True, kw_only=True):
    part: Part
    fence: Fence
    term: int
    facts: WorkflowFacts
    source: bytes  # opaque: only a generator process looks into it
    overrides: bytes
    first_core: int
    cores: int
    total_cores: int
    resume_at_s: float = 0.0
    iterations_done: int = 0
    run_setup: bool = False
    context: Values = field(default_factory=dict)
    used: dict[str, Values] = field(default_factory=dict)
    context_version: int = 0
    seed: int | None = None
    env: dict[str, str] = field(default_factory=dict)
    limit_s: float = 0.0  # hard end of this part, whatever it says
    correlation_id: str = ""
    secrets: tuple[str, ...] = ()  # names in `env` whose values nobody may read
    sealed: bytes = b""  # source, overrides, env and secrets: only the worker opens it
    slots: tuple[int, ...] = ()  # as in `Placement`: parts of the job with one in common share it
    left_out: int = 0  # as in `Placement`
    among: tuple[int, ...] = (0, 1)  # as in `Body`


class DispatchAnswer(Fields, frozen=True, kw_only=True):
    accepted: bool
    reason: str = ""
    no_room: bool = False  # refused only for lack of cores: try elsewhere, no retry used up
    free_cores: Cores = 0


class StartPart(Fields, frozen=True, kw_only=True):
    part: Part
    fence: Fence
    term: int
    context: Values = field(default_factory=dict)
    run_age_s: float = 0.0  # how long ago the load of the job began, for `start_time`


class SteerPart(Fields, frozen=True, kw_only=True):
    """`cancel` ends at once, `stop` lets iterations finish."""

    part: Part
    fence: Fence
    term: int
    action: Action
    amount: int = 0
    reason: str = ""


class TearDownPart(Fields, frozen=True, kw_only=True):
    part: Part
    fence: Fence
    term: int


class PartAnswer(Fields, frozen=True, kw_only=True):
    """`known` is false when the worker has no such part under that token, or is done with it."""

    known: bool
    state: PartState = "ended"
    reason: str = ""


class AskParts(Fields, frozen=True, kw_only=True):
    term: int


class PartStatus(Fields, frozen=True, kw_only=True):
    part: Part
    fence: Fence
    state: PartState
    elapsed_s: float = 0.0
    prepared: PartPrepared | None = None
    cores_done: Cores = 0  # of the part's cores, how many have no more load to make


class HeldParts(Fields, frozen=True, kw_only=True):
    worker: str
    incarnation: int
    total_cores: Cores
    free_cores: Cores
    parts: Annotated[tuple[PartStatus, ...], _LISTED] = ()


# -- worker to leader ----------------------------------------------------------------------------


class RegisterWorker(Fields, frozen=True, kw_only=True):
    """Said to every leader anew: who I am, what I have, what I am doing."""

    node: Node
    total_cores: Annotated[int, Meta(ge=1, le=CORES_MAX)]
    free_cores: Cores
    parts: Annotated[tuple[PartStatus, ...], _LISTED] = ()
    draining: bool = False
    life: Incarnation = 0  # the incarnation its process began with: what earlier ones had is gone
    cut_off: bool = False  # no answer has reached it for so long that it has ended its load
    warnings: tuple[str, ...] = ()  # what its operator should know


class Registered(Fields, frozen=True, kw_only=True):
    accepted: bool
    reason: str = ""
    term: int = 0
    leader: str = ""
    leader_address: tuple[str, int] | None = None
    managers: tuple[Node, ...] = ()
    unwanted: tuple[tuple[Part, Fence], ...] = ()  # end these: nobody waits for them
    voters: tuple[str, ...] = ()  # managers by id: load needs a leader, or a majority of these
    elected: bool = False  # it holds the lease, but is not ready to lead
    leaderless_s: float = 0.0  # for so long no leader has acted by its support; 0: one may


class PartPrepared(Fields, frozen=True, kw_only=True, tag="prepared"):
    part: Part
    fence: Fence
    worker: str
    seconds: float
    context: Values = field(default_factory=dict)  # what setup() wrote, on the part that ran it


class TestStop(Fields, frozen=True):
    """The test's own code asked for the end of the run."""

    __test__ = False  # not a test class of pytest

    reason: str
    failed: bool = False


class PartEnd(Fields, frozen=True, kw_only=True, tag="ended"):
    """Kept by the worker until a leader says it is held by a quorum."""

    part: Part
    fence: Fence
    worker: str
    outcome: Outcome
    measured_s: float = 0.0
    iterations: Count = 0
    peak_vus: Count = 0
    prepare_s: float = 0.0
    state: bytes = b""  # metrics.aggregate: what was measured, mergeable
    context: Values = field(default_factory=dict)
    provided: Values = field(default_factory=dict)
    error: str = ""
    hint: str = ""
    bad_input: bool = False
    warnings: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()  # one sentence per generator process that died
    test_stop: TestStop | None = None


class PartTornDown(Fields, frozen=True, kw_only=True, tag="torn down"):
    part: Part
    fence: Fence
    worker: str
    warning: str = ""
    requests: Count = 0  # that teardown() made


PartEvent = PartPrepared | PartEnd | PartTornDown


class TellEvent(Fields, frozen=True, kw_only=True):
    event: PartEvent


class EventAnswer(Fields, frozen=True, kw_only=True):
    """`settled`: a quorum holds it or nobody needs it; the worker may forget it."""

    settled: bool
    reason: str = ""
    leader_address: tuple[str, int] | None = None


class Progress(Fields, frozen=True, kw_only=True):
    """What a part did since its last report; `snapshot` instead when the leader asked for it."""

    part: Part
    fence: Fence
    state: PartState
    elapsed_s: float
    deltas: Annotated[tuple[PackedDelta, ...], _LISTED] = ()
    settled_seq: Count = 0  # a leader has told that it has the deltas up to this one
    snapshot: bytes = b""
    snapshot_seq: Count = 0  # deltas up to this one are in the snapshot
    cores_done: Cores = 0  # as in `PartStatus`: it only grows
    test_stop: TestStop | None = None  # repeated until the part is told to end
    moved: Count | None = None  # events of its own in this attempt; None: a worker that tells none
    idle_s: float = 0.0  # for so long nothing has moved, and nothing explains it


class ReportProgress(Fields, frozen=True, kw_only=True):
    """One message per worker and flush, whatever the number of parts; at least once a second.

    Most are sent one way. Twice a second an answer is asked for, which says what was taken of all
    since the last one; what was not is told again."""

    worker: str
    incarnation: int
    free_cores: Cores
    parts: Annotated[tuple[Progress, ...], _LISTED] = ()
    cpu_percent: Percent = 0.0
    memory_percent: Percent = 0.0
    draining: bool = False


class ProgressAnswer(Fields, frozen=True, kw_only=True):
    known: bool = True  # false: register first
    term: int = 0
    leader_address: tuple[str, int] | None = None
    level: int = 0  # backpressure 0..3
    delay_ms: int = 0
    taken: tuple[int, ...] = ()  # of each part in the report, the last delta that is not needed
    wanted: tuple[Part, ...] = ()  # send a snapshot of these
    unwanted: tuple[tuple[Part, Fence], ...] = ()


class AskExtension(Fields, frozen=True, kw_only=True):
    worker: str
    reason: str
    progress: float  # 0..1
    active_parts: int = 0


class ExtensionAnswer(Fields, frozen=True, kw_only=True):
    granted: bool
    extension_s: float = 0.0
    remaining: int = 0
    denial: str = ""
    warning: bool = False
    grace_s: float = 0.0


class WorkerPulse(Fields, frozen=True, kw_only=True, array_like=True):
    """What a worker adds to its probes, beside `Vitals`; numbers of its present life."""

    state: WorkerState
    total_cores: int
    free_cores: int
    version: int  # only grows within one incarnation


class DrainOrder(Fields, frozen=True, kw_only=True):
    """To a worker, from the leader: take no new parts, or take them again."""

    term: int
    undo: bool = False
    by: str = ""


class DrainAnswer(Fields, frozen=True, kw_only=True):
    obeyed: bool
    parts: int = 0  # that go on
    reason: str = ""


class LeaveWorker(Fields, frozen=True, kw_only=True):
    worker: str
    incarnation: int


class Left(Fields, frozen=True, kw_only=True):
    pass


PARTS = Registry()
for _kind, _struct, _priority, _limit in (
    ("dispatch.part", DispatchPart, Priority.HIGH, CODE_BYTES_MAX),
    ("dispatch.answer", DispatchAnswer, Priority.HIGH, 1 << 16),
    ("start.part", StartPart, Priority.HIGH, CODE_BYTES_MAX),
    ("steer.part", SteerPart, Priority.CRITICAL, 1 << 16),
    ("tear.down.part", TearDownPart, Priority.HIGH, 1 << 16),
    ("part.answer", PartAnswer, Priority.HIGH, 1 << 16),
    ("ask.parts", AskParts, Priority.HIGH, 1 << 10),
    ("held.parts", HeldParts, Priority.HIGH, CODE_BYTES_MAX),
    ("register.worker", RegisterWorker, Priority.HIGH, CODE_BYTES_MAX),
    ("registered", Registered, Priority.HIGH, 1 << 20),
    ("tell.event", TellEvent, Priority.CRITICAL, EVENT_BYTES_MAX),
    ("event.answer", EventAnswer, Priority.CRITICAL, 1 << 16),
    ("progress.answer", ProgressAnswer, Priority.NORMAL, 1 << 20),
    ("ask.extension", AskExtension, Priority.HIGH, 1 << 16),
    ("extension.answer", ExtensionAnswer, Priority.HIGH, 1 << 16),
    ("drain.order", DrainOrder, Priority.HIGH, 1 << 10),
    ("drain.answer", DrainAnswer, Priority.HIGH, 1 << 10),
    ("leave.worker", LeaveWorker, Priority.HIGH, 1 << 10),
    ("left", Left, Priority.HIGH, 1 << 10),
):
    PARTS.add(_struct, kind=_kind, priority=_priority, max_bytes=_limit)
# Version 3 tells requests by name; since version 2 deltas are packed, most of them one way. Ten
# thousand come in a second: the manager admits them by what it knows of their worker anyway.
PARTS.add(
    ReportProgress,
    kind="report.progress",
    priority=Priority.NORMAL,
    max_bytes=EVENT_BYTES_MAX,
    version=3,
    oldest=3,
    self_judged=True,
)
