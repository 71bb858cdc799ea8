"""The result of a run, live or final: one schema for the view, the summary, the files, the report.

Everything a reader sees comes from these structures, which are also the JSON output (documented
in docs/results.md). Latencies are milliseconds, durations seconds, and say so in their names.
Histograms travel with the percentiles so that results can be merged and compared later.
"""

from __future__ import annotations

from typing import Literal

import msgspec

SCHEMA = "hyperscale.results/1"

State = Literal["preparing", "running", "paused", "stopping", "finished"]
# Why a run ended before its plan was carried out.
Cut = Literal["signal", "threshold", "timeout", "worker lost", "error"]


class Struct(msgspec.Struct, kw_only=True, omit_defaults=False):
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


class ErrorCount(Struct):
    outcome: str  # workload.results.Outcome value, e.g. "refused", "status"
    detail: str  # e.g. "503", "ConnectionRefusedError", "KeyError"
    count: int
    samples: list[str] = []  # the first few messages


class StepResult(Struct):
    name: str
    workflow: str
    kind: str = "http"  # protocol, or "custom"
    method: str = ""
    target: str = ""  # URL as the author wrote it, for display
    tags: dict[str, str] = {}
    group: str = ""
    count: int = 0
    failed: int = 0
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


class CheckResult(Struct):
    name: str
    workflow: str
    passed: int = 0
    failed: int = 0
    samples: list[str] = []


class MetricResult(Struct):
    """A custom metric. `value` is the total (count), the share or rate (rate), the last value
    (sample); `distribution` uses the author's own unit although its fields say ms."""

    name: str
    workflow: str
    kind: Literal["count", "rate", "distribution", "sample"]
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
    cores: int = 0
    vus: int = 0  # now
    vus_max: int = 0
    started_s: float = 0.0  # since the run began
    elapsed_s: float = 0.0  # load time, warm-up left out
    prepare_s: float = 0.0  # argument optimisation: DNS, encoding
    iterations: int = 0
    dropped_iterations: int = 0  # arrivals the open model could not start
    interrupted_iterations: int = 0  # cut off at the end of graceful_stop
    iteration: Distribution = msgspec.field(default_factory=Distribution)
    steps: list[StepResult] = []
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


class Environment(Struct):
    hyperscale: str = ""
    python: str = ""
    platform: str = ""
    cpu: str = ""
    cores: int = 0
    workers: int = 0
    host: str = ""
    command: str = ""


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
    coverage: float = 1.0  # share of the planned load that was carried out, 0..1
    lost: list[str] = []  # one sentence for each part of the load that was not
    tags: dict[str, str] = {}
    workflows: list[WorkflowResult] = []
    thresholds: list[ThresholdResult] = []
    saturation: str = ""  # one sentence when the generator was the bottleneck
    warnings: list[str] = []
    core_use: list[CoreUse] = []
    environment: Environment = msgspec.field(default_factory=Environment)

    @property
    def requests(self) -> int:
        return sum(workflow.requests for workflow in self.workflows)

    @property
    def failed(self) -> int:
        return sum(workflow.failed for workflow in self.workflows)


def encode(results: Results, *, indent: int = 2) -> bytes:
    return msgspec.json.format(msgspec.json.encode(results), indent=indent)


def decode(data: bytes) -> Results:
    return msgspec.json.decode(data, type=Results)
