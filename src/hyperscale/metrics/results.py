"""The result of a run, live or final: one schema for the view, the summary, the files, the report.

Everything a reader sees comes from these structures, which are also the JSON output (documented
in docs/results.md). Latencies are milliseconds, durations seconds, and say so in their names.
Histograms travel with the percentiles so that results can be merged and compared later.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any, Literal

import msgspec

from hyperscale.errors import BadInput
from hyperscale.metrics import results_text

SCHEMA = "hyperscale.results/1"

FLOW = "flow"  # the step under which is told what an iteration does outside of steps

State = Literal["preparing", "running", "paused", "stopping", "finished"]
# Why a run ended before its plan was carried out.
Cut = Literal["signal", "threshold", "timeout", "worker lost", "error", "test"]


class Struct(msgspec.Struct, kw_only=True, omit_defaults=False, repr_omit_defaults=True):
    pass


class Distribution(Struct):
    """Percentiles with at most 1 % relative error, computed once from merged histograms."""

    count: int = 0
    mean_ms: float = 0.0
    stdev_ms: float = 0.0
    min_ms: float = 0.0
    p50_ms: float = 0.0
    p75_ms: float = 0.0
    p90_ms: float = 0.0
    p95_ms: float = 0.0
    p99_ms: float = 0.0
    p999_ms: float = 0.0
    max_ms: float = 0.0
    # sparse histogram: bucket index -> count (metrics.histogram defines the buckets)
    buckets: list[int] = []
    counts: list[int] = []

    def __repr__(self) -> str:
        shown = (name for name in self.__struct_fields__ if name not in ("buckets", "counts"))
        return f"Distribution({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


class Exchange(Struct):
    """A request and its answer, shortened, with secrets masked."""

    method: str
    url: str
    status: int = 0  # 0: there was no answer
    reason: str = ""
    request_headers: dict[str, str] = {}
    request_body: str = ""
    headers: dict[str, str] = {}  # of the answer
    body: str = ""
    size: int = 0  # bytes of the answer's body
    duration_ms: float = 0.0


class FirstFailure(Struct):
    """What is known of the first failure of a kind."""

    at_s: float = 0.0  # load time
    user: int = 0  # vu_id
    worker: str = ""  # where it happened, on a cluster
    where: str = ""  # "shop.py:31 in view": where the author's code raised
    traceback: str = ""  # the author's frames
    exchange: Exchange | None = None  # the one that failed, or the last one before the exception


class ErrorCount(Struct):
    outcome: str  # workload.results.Outcome value, e.g. "refused", "status"
    detail: str  # e.g. "503", "ConnectionRefusedError", "KeyError"
    count: int
    samples: list[str] = []  # the first few messages
    first: FirstFailure | None = None


class RequestResult(Struct):
    """The requests of one name made in a step. `count` are exchanges written to a socket;
    `failed` are calls that failed, of which `unsent` never came to a request (refused, no DNS)."""

    name: str
    step: str
    workflow: str
    kind: str = "http"  # protocol, or "custom"
    method: str = ""
    tags: dict[str, str] = {}  # of workflow, step and call
    count: int = 0
    failed: int = 0
    unsent: int = 0
    rate: float = 0.0  # per second over the measured time
    bytes_in: int = 0
    bytes_out: int = 0
    service: Distribution = msgspec.field(
        default_factory=Distribution
    )  # request sent to response received
    response: Distribution = msgspec.field(
        default_factory=Distribution
    )  # intended start to response received
    phases: dict[str, Distribution] = {}  # dns, connect, tls, write, wait, read
    statuses: dict[str, int] = {}
    errors: list[ErrorCount] = []

    @property
    def failed_share(self) -> float:
        return failed_share(self.failed, self.count, self.unsent)


class StepPoint(Struct):
    """One interval of a step's timeline."""

    at_s: float
    width_s: float
    requests: int = 0
    failed: int = 0
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    p99_ms: float = 0.0


class StepResult(Struct):
    """A step: its own runs and their duration, and the sums of all requests made in it.

    Requests outside of steps are told under `on_start`, `on_stop` and `flow`, or under the check
    or action that made them.
    """

    name: str
    workflow: str
    kind: str = "http"  # protocol, or "custom"
    method: str = ""
    target: str = ""  # URL as the author wrote it, for display
    tags: dict[str, str] = {}
    group: str = ""
    # Of the requests, as in RequestResult:
    count: int = 0
    failed: int = 0
    unsent: int = 0
    rate: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0
    service: Distribution = msgspec.field(default_factory=Distribution)
    response: Distribution = msgspec.field(default_factory=Distribution)
    phases: dict[str, Distribution] = {}
    statuses: dict[str, int] = {}
    errors: list[ErrorCount] = []  # of requests, and of the step's own code
    requests: list[RequestResult] = []  # by name
    # Of the step itself:
    runs: int = 0
    runs_failed: int = 0  # it raised, or the response it returned had failed
    runs_interrupted: int = 0  # by an exception of a step inside it, or by the end of the load
    skipped: int = 0
    skips: dict[str, int] = {}  # reason -> how often
    duration: Distribution = msgspec.field(default_factory=Distribution)  # inside the step
    series: list[StepPoint] = []

    @property
    def failed_share(self) -> float:
        return failed_share(self.failed, self.count, self.unsent)


class GroupResult(Struct):
    """How long an iteration spent in the steps of a group, in all."""

    name: str
    workflow: str
    duration: Distribution = msgspec.field(default_factory=Distribution)


class CheckResult(Struct):
    name: str
    workflow: str
    passed: int = 0
    failed: int = 0
    samples: list[str] = []
    first: FirstFailure | None = None  # of its failures


class MetricResult(Struct):
    """A custom metric. `value` is the total (count), the share or rate (rate), the last value
    (sample); `distribution` uses the author's own unit although its fields say ms."""

    name: str
    workflow: str
    kind: Literal["count", "rate", "distribution", "sample"]
    tags: dict[str, str] = {}
    count: int = 0
    value: float = 0.0
    per_second: float = 0.0
    distribution: Distribution | None = None


class Point(Struct):
    """One interval of the timeline, all steps of a workflow together."""

    at_s: float  # start of the interval, since the workflow's load began
    width_s: float
    requests: int = 0
    failed: int = 0
    iterations: int = 0
    dropped: int = 0
    vus: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0
    response_p99_ms: float = 0.0
    # Service times by `metrics.ranges`: the first range that has any, and how many from it on.
    ranges: list[int] = []


class Mark(Struct):
    """Something that happened at a moment: VUs added, paused, a threshold crossed, a core lost."""

    at_s: float
    text: str


class WorkflowResult(Struct):
    name: str
    is_test: bool = True
    load: str = ""  # the load model in words: "10 VUs for 30s", "500/s for 1m, up to 200 VUs"
    open_model: bool = False
    state: State = "preparing"
    planned_s: float | None = None  # None: ends by iterations
    planned_iterations: int | None = None
    # Of the load, in arrivals (open model), iterations, or seconds of users; null: not known.
    planned_load: float | None = None
    offered_load: float | None = None
    cores: int = 0
    vus: int = 0  # now
    vus_max: int = 0
    started_s: float = 0.0  # since the run began
    elapsed_s: float = 0.0  # load time, warm-up left out
    prepare_s: float = 0.0  # argument optimisation: DNS, encoding
    iterations: int = 0
    dropped_iterations: int = 0  # arrivals the open model could not start
    interrupted_iterations: int = 0  # cut off at the end of graceful_stop
    stopped_iterations: int = 0  # ended by stop_iteration()
    stopped_users: int = 0  # ended by stop_user()
    # CPU time of the generators for its load; of a process that loads shared, an equal part.
    cpu_seconds: float = 0.0
    # Requests that are in none of the numbers: "warmup", "setup", "teardown" -> how many.
    unmeasured: dict[str, int] = {}
    iteration: Distribution = msgspec.field(default_factory=Distribution)
    steps: list[StepResult] = []
    groups: list[GroupResult] = []
    checks: list[CheckResult] = []
    metrics: list[MetricResult] = []
    series: list[Point] = []
    marks: list[Mark] = []
    error: str = ""  # why the workflow failed or did not run, else ""

    @property
    def requests(self) -> int:
        return sum(step.count for step in self.steps)

    @property
    def failed(self) -> int:
        return sum(step.failed for step in self.steps)

    @property
    def unsent(self) -> int:
        return sum(step.unsent for step in self.steps)

    @property
    def failed_share(self) -> float:
        return failed_share(self.failed, self.requests, self.unsent)

    @property
    def runs_failed(self) -> int:
        return sum(step.runs_failed for step in self.steps)


class ThresholdResult(Struct):
    expression: str  # as the author wrote it
    scope: str  # metric, step or workflow it judges, e.g. "http_req_duration", "Checkout.login"
    passed: bool
    actual: float | None  # None: nothing to judge
    actual_text: str = ""  # e.g. "p(95)=212ms"
    aborted_at_s: float | None = None


class CoreUse(Struct):
    """One generator process: how busy it was, for the verdict on who was the bottleneck."""

    core: int
    workflow: str
    cpu_mean: float = 0.0  # share of one core, 0..1
    cpu_max: float = 0.0
    busy_share: float = 0.0  # share of the time above 90 % of the core, 0..1
    lag_p99_ms: float = 0.0  # event-loop lag
    rss_mb: float = 0.0


class GeneratorCost(Struct):
    """What making the load of all tests took: CPU time of the generator processes from the begin to
    the end of each load; starting up, preparing and warming up left out."""

    cpu_seconds: float = 0.0
    cores: float = 0.0  # CPU seconds in each second of load
    requests_per_cpu_second: float = 0.0


class Environment(Struct):
    hyperscale: str = ""
    python: str = ""
    platform: str = ""
    cpu: str = ""
    cores: int = 0
    workers: int = 0
    host: str = ""
    command: str = ""


class DatacenterResult(Struct):
    """One datacenter's share of a run in many."""

    name: str
    status: str  # as the managers there say, or "lost"
    requests: int = 0
    failed: int = 0
    elapsed_s: float = 0.0  # of its load
    duration: Distribution = msgspec.field(default_factory=Distribution)  # of all its requests
    coverage: float = 1.0
    lost: list[str] = []
    share: int = 0  # in one load that is split; 0: it ran all of the load
    vus: int = 0  # now


class Results(Struct):
    schema: str = SCHEMA
    name: str = ""
    started_at: str = ""  # ISO 8601, UTC
    elapsed_s: float = 0.0  # wall time of the whole run
    state: State = "preparing"
    cut: Cut | None = None
    cut_reason: str = ""
    passed: bool = False
    exit_code: int = 1
    failure: str = ""  # why it did not pass, where nothing else here says so
    coverage: float = 1.0  # share of the planned load that was carried out, 0..1
    lost: list[str] = []  # one sentence for each part of the load that was not
    tags: dict[str, str] = {}
    workflows: list[WorkflowResult] = []
    thresholds: list[ThresholdResult] = []
    saturation: str = ""  # one sentence when the generator was the bottleneck
    warnings: list[str] = []
    core_use: list[CoreUse] = []
    generator: GeneratorCost = msgspec.field(default_factory=GeneratorCost)
    environment: Environment = msgspec.field(default_factory=Environment)
    datacenters: list[DatacenterResult] = []  # through gates: each beside the whole
    together: DatacenterResult | None = None  # and these merged: percentiles are never averaged

    @property
    def requests(self) -> int:
        return sum(workflow.requests for workflow in self.workflows)

    @property
    def failed(self) -> int:
        return sum(workflow.failed for workflow in self.workflows)

    @property
    def unsent(self) -> int:
        return sum(workflow.unsent for workflow in self.workflows)

    @property
    def failed_share(self) -> float:
        return failed_share(self.failed, self.requests, self.unsent)

    @property
    def runs_failed(self) -> int:
        return sum(workflow.runs_failed for workflow in self.workflows)

    def summary(self) -> str:
        """The verdict, thresholds, steps and errors as text."""
        return results_text.summary(self)

    def to_dataframe(self) -> Any:
        """A pandas DataFrame with a row for each name of requests in a step."""
        try:
            pandas = import_module("pandas")
        except ModuleNotFoundError:
            raise BadInput("to_dataframe() needs pandas", "pip install pandas") from None
        return pandas.DataFrame(results_text.rows(self))

    def __repr__(self) -> str:
        return f"<Results: {results_text.one_line(self)}>"

    def _repr_html_(self) -> str:
        return results_text.as_html(self)


def fail(results: Results, exit_code: int, why: str) -> None:
    """The run counts as failed for a reason outside of it: what the command line asked for."""
    results.passed, results.exit_code, results.failure = False, exit_code, why


def no_run_succeeded(workflows: Iterable[WorkflowResult]) -> bool:
    """Some failed, and all others were interrupted by an exception of a step inside them. The runs
    of a flow are not counted, those that failed are."""
    steps = [step for workflow in workflows for step in workflow.steps]
    ended = sum(max(step.runs - step.runs_interrupted, step.runs_failed) for step in steps)
    return 0 < ended == sum(step.runs_failed for step in steps)


def no_iteration_succeeded(workflows: Iterable[WorkflowResult]) -> bool:
    """In each of them the flow itself raised."""
    raised = [
        (workflow.iterations, sum(s.runs_failed for s in workflow.steps if s.name == FLOW))
        for workflow in workflows
        if workflow.is_test
    ]
    return bool(raised) and all(0 < iterations <= failed for iterations, failed in raised)


def failed_share(failed: int, requests: int, unsent: int) -> float:
    """Of all calls, sent or not."""
    calls = requests + unsent
    return failed / calls if calls else 0.0


def encode(results: Results, *, indent: int = 2) -> bytes:
    return msgspec.json.format(msgspec.json.encode(results), indent=indent)


def decode(data: bytes) -> Results:
    return msgspec.json.decode(data, type=Results)
