"""All of an aggregate as bytes that another machine can add to its own.

The layout is that of a delta, of everything since the beginning, plus the timeline and the cores.
It carries its version; bytes that are damaged, of another version or too long raise
`DamagedState` before anything is changed. New fields go at the end, with a default.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec

from hyperscale.errors import RunFailed
from hyperscale.metrics import tiers
from hyperscale.metrics.delta import (
    CheckDelta,
    Count,
    GroupDelta,
    MetricDelta,
    RequestDelta,
    StepDelta,
)
from hyperscale.metrics.histogram import LATENCY, VALUES, Scale, Sparse, add_up
from hyperscale.metrics.results import Mark

VERSION = 4
# What `export` keeps to by making the timeline coarser: an hour of a usual run is some 300 kB.
STATE_BYTES_AIM = 3 << 20
# What is read at all. Thousands of steps with every bucket in use stay below it.
STATE_BYTES_MAX = 32 << 20
SLOTS_MAX = 10_000


class DamagedState(RunFailed):
    """The numbers of a part of the run cannot be read."""


class CoreState(msgspec.Struct, array_like=True):
    seq: int
    until_s: float
    vus: Count
    cpu_sum: float
    cpu_max: float
    busy: Count
    deltas: Count
    rss_mb: float
    lag: Sparse | None


# Requests, failed, iterations, dropped, bytes in, bytes out.
Counts = tuple[Count, Count, Count, Count, Count, Count]


class SlotState(msgspec.Struct, array_like=True):
    """One interval of the timeline. `response` is None where it equals `service`."""

    width_s: Count
    amounts: Counts
    vus: Count
    service: Sparse | None
    response: Sparse | None


class TimelineState(msgspec.Struct, array_like=True):
    """Intervals side by side from the beginning of the load; the last one holds `now_s`."""

    now_s: float
    slots: list[SlotState]


class AggregateState(msgspec.Struct, array_like=True):
    version: int
    workflow: str
    dropped: Count
    interrupted: Count
    vus_max: Count
    iteration: Sparse | None
    steps: list[StepDelta]
    checks: list[CheckDelta]
    metrics: list[MetricDelta]
    cores: dict[int, CoreState]
    marks: list[Mark]
    timeline: TimelineState
    requests: list[RequestDelta] = []
    groups: list[GroupDelta] = []
    step_timelines: dict[str, TimelineState] = {}
    stopped_iterations: Count = 0
    stopped_users: Count = 0
    unmeasured: dict[str, Count] = {}
    cpu_s: float = 0.0
    offered: float | None = None  # None: told by a release that did not count it


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AggregateState)


def encode(state: AggregateState) -> bytes:
    data = _encoder.encode(state)
    while len(data) > STATE_BYTES_AIM and len(state.timeline.slots) > 1:
        state.timeline = _coarser(state.timeline)
        state.step_timelines = {n: _coarser(one) for n, one in state.step_timelines.items()}
        data = _encoder.encode(state)
    return data


def one_slot(now_s: float, amounts: Counts) -> TimelineState:
    """A course of which no more than the sums is known."""
    width_s = 1
    while width_s <= now_s:
        width_s = tiers.wider(width_s)
    return TimelineState(now_s, [SlotState(width_s, amounts, 0, None, None)])


def spread(data: bytes, since_s: float = 0.0) -> bytes:
    """What `one_slot` told, evenly over the time since the load began: it can be added to the
    course of others without making that as coarse. Raises DamagedState."""
    state = decode(data)
    now_s = state.timeline.now_s
    sums = _sums([slot.amounts for slot in state.timeline.slots])
    done: Counts = (0, 0, 0, 0, 0, 0)
    slots = []
    for start_s, width_s in tiers.cells(0, now_s, tiers.layout(now_s, tiers.TIERS)):
        end_s = start_s + width_s
        until = sums
        if end_s <= now_s and since_s < now_s:
            until = _scaled(sums, max(0.0, end_s - since_s) / (now_s - since_s))
        slots.append(SlotState(width_s, _less(until, done), 0, None, None))
        done = until
    state.timeline = TimelineState(now_s, slots)
    return encode(state)


def _scaled(amounts: Counts, share: float) -> Counts:
    a, b, c, d, e, f = (int(amount * share) for amount in amounts)
    return a, b, c, d, e, f


def _less(whole: Counts, part: Counts) -> Counts:
    a, b, c, d, e, f = (x - y for x, y in zip(whole, part, strict=True))
    return a, b, c, d, e, f


def _coarser(timeline: TimelineState) -> TimelineState:
    return regrouped(timeline, tiers.coarser([slot.width_s for slot in timeline.slots]))


def decode(data: bytes) -> AggregateState:
    if len(data) > STATE_BYTES_MAX:
        raise DamagedState(f"the numbers of a part take {len(data):,} bytes, more than allowed")
    version = _version_of(data)
    if version != VERSION:
        raise DamagedState(
            f"the numbers of a part have version {version}, this program reads {VERSION}",
            "run the same version of hyperscale on all machines",
        )
    try:
        state = _decoder.decode(data)
        _check(state)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamagedState(f"the numbers of a part are damaged: {error}") from error
    return state


def regrouped(timeline: TimelineState, groups: Sequence[tiers.Group]) -> TimelineState:
    """The same timeline with neighbours joined."""
    slots = timeline.slots
    return TimelineState(
        timeline.now_s,
        [_joined(slots[begin:end], width_s) for begin, end, width_s in groups],
    )


def _joined(slots: list[SlotState], width_s: int) -> SlotState:
    if slots[0].width_s == width_s:
        return slots[0]
    late = any(slot.response is not None for slot in slots)
    responses = [slot.response or slot.service for slot in slots] if late else []
    return SlotState(
        width_s=width_s,
        amounts=_sums([slot.amounts for slot in slots]),
        vus=max(slot.vus for slot in slots),
        service=add_up(slot.service for slot in slots),
        response=add_up(responses),
    )


def _sums(several: list[Counts]) -> Counts:
    requests, failed, iterations, dropped, bytes_in, bytes_out = map(
        sum, zip(*several, strict=True)
    )
    return requests, failed, iterations, dropped, bytes_in, bytes_out


def _version_of(data: bytes) -> int:
    try:
        first = msgspec.msgpack.decode(data, type=list[msgspec.Raw])[:1]
        return msgspec.msgpack.decode(first[0], type=int) if first else -1
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DamagedState(f"the numbers of a part are damaged: {error}") from error


def _check(state: AggregateState) -> None:
    """What the types do not say: a bucket that does not exist must not be counted somewhere."""
    timelines = [state.timeline, *state.step_timelines.values()]
    for timeline in timelines:
        _check_borders(timeline)
    latencies = chain(
        [state.iteration],
        *([one.service, one.response, *one.phases.values()] for one in state.requests),
        (step.duration for step in state.steps),
        (group.duration for group in state.groups),
        *([slot.service, slot.response] for one in timelines for slot in one.slots),
        (core.lag for core in state.cores.values()),
    )
    for sparse in latencies:
        _check_buckets(sparse, LATENCY)
    for metric in state.metrics:
        _check_buckets(metric.values, VALUES)


def _check_borders(timeline: TimelineState) -> None:
    """Any two timelines that pass can be added up."""
    if not 0 <= timeline.now_s <= tiers.LOAD_S_MAX or not 0 < len(timeline.slots) <= SLOTS_MAX:
        raise ValueError("a timeline of no length")
    cells = tiers.stretches([slot.width_s for slot in timeline.slots])
    if not all(
        tiers.is_width(width_s) and start_s % width_s == 0 for start_s, width_s in cells[:-1]
    ):
        raise ValueError("a timeline with intervals of a strange width")
    if not cells[-2].start_s <= timeline.now_s < cells[-1].start_s:
        raise ValueError("a timeline with intervals missing")


def _check_buckets(sparse: Sparse | None, scale: Scale) -> None:
    if sparse is None:
        return
    # As plain numbers: most have a few buckets, of which numpy would make four visits.
    buckets, counts = sparse.buckets.tolist(), sparse.counts.tolist()
    if min(counts) < 0 or sum(counts) != sparse.count:
        raise ValueError("a histogram whose counts do not add up")
    if max(buckets) >= scale.size or len(set(buckets)) != len(buckets):
        raise ValueError("a histogram with buckets that do not exist")
