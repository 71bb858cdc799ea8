"""What a generator process tells its parent every 100 ms: only what is new since the last time.

A delta carries the sequence number of its process, so a repeated one can be recognised. Structs
travel as arrays (no field names) and histograms as their used buckets; new fields go at the end.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from hyperscale.metrics.histogram import Sparse
from hyperscale.metrics.results import FirstFailure

# Bounded while decoding: sums of what workers tell must fit into what results can hold.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class ErrorDelta(msgspec.Struct, array_like=True, gc=False):
    outcome: str
    detail: str
    count: Count
    samples: list[str]
    first: FirstFailure | None = None


class RequestKey(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Which requests are told together: those of a step with the same name, method and tags."""

    step: str
    method: str = ""
    name: str = ""
    kind: str = "http"
    tags: tuple[tuple[str, str], ...] = ()


class RequestDelta(msgspec.Struct, array_like=True, gc=False):
    """`failed` counts all failed calls, also the `unsent` ones, which are not in `count`."""

    key: RequestKey
    count: Count = 0
    failed: Count = 0
    unsent: Count = 0
    bytes_in: Count = 0
    bytes_out: Count = 0
    service: Sparse | None = None
    response: Sparse | None = (
        None  # None: nothing was late, the response times are the service times
    )
    phases: dict[str, Sparse] = {}
    statuses: dict[int, Count] = {}
    errors: list[ErrorDelta] = []


class StepDelta(msgspec.Struct, array_like=True, gc=False):
    """The runs of a step: how many, how they ended, and how long they took."""

    name: str
    runs: Count = 0
    failed: Count = 0
    interrupted: Count = 0
    duration: Sparse | None = None
    skips: dict[str, Count] = {}
    errors: list[ErrorDelta] = []


class GroupDelta(msgspec.Struct, array_like=True, gc=False):
    name: str
    duration: Sparse


class CheckDelta(msgspec.Struct, array_like=True, gc=False):
    name: str
    passed: Count
    failed: Count
    samples: list[str]
    first: FirstFailure | None = None


class MetricDelta(msgspec.Struct, array_like=True, gc=False):
    name: str
    values: Sparse
    last: float
    kind: str = ""
    tags: tuple[tuple[str, str], ...] = ()


class Delta(msgspec.Struct, array_like=True, tag="delta", gc=False):
    seq: Count
    vus: Count = 0
    dropped: Count = 0
    interrupted: Count = 0
    iteration: Sparse | None = None
    requests: list[RequestDelta] = []
    steps: list[StepDelta] = []
    groups: list[GroupDelta] = []
    checks: list[CheckDelta] = []
    metrics: list[MetricDelta] = []
    lag: Sparse | None = None
    cpu: float = 0.0  # share of one core since the last measurement, 0..1
    rss_mb: float = 0.0
    stopped_iterations: Count = 0
    stopped_users: Count = 0
    unmeasured: dict[str, Count] = {}  # requests of warm-up, setup and teardown
    cpu_s: float = 0.0  # CPU time of the process for this load
    offered: float = 0.0  # of the planned load: arrivals, iterations or seconds of users


def movement(delta: Delta) -> int:
    """How much the workflow itself did: iterations, calls, runs of steps, checks, and numbers of
    its own. What a process notes of itself (lag, CPU) is none, nor are arrivals nobody took."""
    iterations = 0 if delta.iteration is None else delta.iteration.count
    return (
        iterations
        + delta.interrupted
        + delta.stopped_users
        + sum(told.count + told.unsent for told in delta.requests)
        + sum(step.runs + sum(step.skips.values()) for step in delta.steps)
        + sum(check.passed + check.failed for check in delta.checks)
        + sum(metric.values.count for metric in delta.metrics)
    )


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Delta)


def encode(delta: Delta) -> bytes:
    return _encoder.encode(delta)


def decode(data: bytes) -> Delta:
    return _decoder.decode(data)
