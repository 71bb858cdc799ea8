"""A delta as a worker tells it to its manager: a few blocks of numbers instead of a tree of them.

A manager takes in thousands a second and adds each up twice, for its workflow and for its part.
The blocks of many deltas are added up at once, without touching a number in Python, and nothing in
them is an object the garbage collector has to look at. Which number stands where is told by the
outline, which is the same from one delta of a workflow to the next. What is rare, or of another
scale, travels beside it as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import msgspec
import numpy as np

from hyperscale.metrics import delta as trees
from hyperscale.metrics.arrays import Floats, Ints
from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey, StepDelta
from hyperscale.metrics.exported import DamagedState
from hyperscale.metrics.histogram import LATENCY, Sparse, pack_sparse
from hyperscale.metrics.merging import merge_deltas
from hyperscale.metrics.tallies import PHASES

_NUMBER = np.dtype("<i8")
_MOMENT = np.dtype("<f8")
_MOMENTS = 4  # low, high, total, squares
_WIDTHS = {width: np.dtype(f"<u{width}") for width in (1, 2, 4, 8)}
_NARROW_KEYS_MAX = 1 << 16
_PHASES = set(PHASES)
# Outlines of one workflow that are remembered: a few in life, one for each set of status codes.
OUTLINES_MAX = 1_024


class PackedDelta(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """`keys` are numbers of buckets, each histogram's behind those of the one before it; `counts`
    are theirs, all of as many bytes as the largest needs."""

    seq: int
    vus: int
    requests: int
    failed: int
    cpu: float
    rss_mb: float
    outline: bytes
    numbers: bytes
    moments: bytes
    keys: bytes
    counts: bytes
    rest: bytes = b""  # a Delta of checks, custom metrics, groups, errors and other rare things
    cpu_s: float = 0.0
    offered: float = 0.0


class _Requests(msgspec.Struct, array_like=True, frozen=True):
    key: RequestKey
    timed: bool  # it has service times,
    late: bool  # and response times that differ from them
    phases: tuple[str, ...]
    statuses: tuple[int, ...]


class _Runs(msgspec.Struct, array_like=True, frozen=True):
    step: str
    timed: bool


class _Outline(msgspec.Struct, array_like=True, frozen=True):
    iteration: bool
    lag: bool
    requests: tuple[_Requests, ...]
    runs: tuple[_Runs, ...]

    @property
    def sound(self) -> bool:
        """Nothing is there twice, so there is no more of it than the workflow has."""
        return (
            len({one.key for one in self.requests}) == len(self.requests)
            and len({one.step for one in self.runs}) == len(self.runs)
            and all(len(set(one.phases) & _PHASES) == len(one.phases) for one in self.requests)
        )


_encode = msgspec.msgpack.Encoder().encode
_outlines = msgspec.msgpack.Decoder(_Outline)


# -- the worker's side ---------------------------------------------------------------------------


def pack(delta: Delta) -> PackedDelta:
    numbers = [delta.dropped, delta.interrupted]
    histograms = [one for one in (delta.iteration, delta.lag) if one is not None]
    requests: list[_Requests] = []
    for told in delta.requests:
        numbers += (told.count, told.failed, told.unsent, told.bytes_in, told.bytes_out)
        numbers += told.statuses.values()
        histograms += (one for one in (told.service, told.response) if one is not None)
        histograms += told.phases.values()
        requests.append(
            _Requests(
                told.key,
                told.service is not None,
                told.response is not None,
                tuple(told.phases),
                tuple(told.statuses),
            )
        )
    runs: list[_Runs] = []
    for step in delta.steps:
        numbers += (step.runs, step.failed, step.interrupted)
        if step.duration is not None:
            histograms.append(step.duration)
        runs.append(_Runs(step.name, step.duration is not None))
    keys, counts = _placed(histograms)
    outline = _Outline(
        delta.iteration is not None, delta.lag is not None, tuple(requests), tuple(runs)
    )
    return PackedDelta(
        seq=delta.seq,
        vus=delta.vus,
        requests=sum(told.count for told in delta.requests),
        failed=sum(told.failed for told in delta.requests),
        cpu=delta.cpu,
        rss_mb=delta.rss_mb,
        outline=_encode(outline),
        numbers=np.array(numbers, _NUMBER).tobytes(),
        moments=np.array(
            [(one.low, one.high, one.total, one.squares) for one in histograms], _MOMENT
        ).tobytes(),
        keys=keys,
        counts=counts,
        rest=_rest(delta),
        cpu_s=delta.cpu_s,
        offered=delta.offered,
    )


def _placed(histograms: Sequence[Sparse]) -> tuple[bytes, bytes]:
    if not histograms:
        return b"", b""
    keys = np.concatenate(
        [
            np.minimum(one.buckets, LATENCY.size - 1) + place * LATENCY.size
            for place, one in enumerate(histograms)
        ]
    )
    counts = np.concatenate([one.counts for one in histograms])
    most = int(counts.max())
    width = next(width for width in _WIDTHS if most < 1 << 8 * width)
    key_type = _WIDTHS[_key_width(len(histograms))]
    return keys.astype(key_type).tobytes(), counts.astype(_WIDTHS[width]).tobytes()


def _key_width(histograms: int) -> int:
    return 2 if histograms * LATENCY.size <= _NARROW_KEYS_MAX else 4


def _rest(delta: Delta) -> bytes:
    failing = [RequestDelta(one.key, errors=one.errors) for one in delta.requests if one.errors]
    told = [
        StepDelta(step.name, skips=step.skips, errors=step.errors)
        for step in delta.steps
        if step.errors or step.skips
    ]
    stopped = delta.stopped_iterations or delta.stopped_users or delta.unmeasured
    lists = (failing, told, delta.groups, delta.checks, delta.metrics)
    if not (stopped or any(lists)):
        return b""
    return trees.encode(
        Delta(
            seq=delta.seq,
            requests=failing,
            steps=told,
            groups=delta.groups,
            checks=delta.checks,
            metrics=delta.metrics,
            stopped_iterations=delta.stopped_iterations,
            stopped_users=delta.stopped_users,
            unmeasured=delta.unmeasured,
        )
    )


# -- the manager's side --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Layout:
    """An outline with what follows from it."""

    outline: _Outline
    histograms: int
    numbers_bytes: int
    moments_bytes: int
    key_bytes: int

    def count_bytes(self, packed: PackedDelta) -> int:
        """What each count takes."""
        return len(packed.counts) * self.key_bytes // len(packed.keys) if packed.keys else 1

    def fits(self, packed: PackedDelta) -> bool:
        width = self.count_bytes(packed)
        return (
            len(packed.numbers) == self.numbers_bytes
            and len(packed.moments) == self.moments_bytes
            and len(packed.counts) * self.key_bytes == width * len(packed.keys)
            and width in _WIDTHS
            and len(packed.keys) % self.key_bytes == 0
        )


def _layout(outline: _Outline) -> Layout:
    histograms = outline.iteration + outline.lag
    numbers = 2
    for told in outline.requests:
        histograms += told.timed + told.late + len(told.phases)
        numbers += 5 + len(told.statuses)
    histograms += sum(step.timed for step in outline.runs)
    numbers += 3 * len(outline.runs)
    return Layout(
        outline,
        histograms,
        numbers * _NUMBER.itemsize,
        histograms * _MOMENTS * _MOMENT.itemsize,
        _key_width(histograms),
    )


class Outlines:
    """Those that were met, read once. `check` raises DamagedState for a delta that names what
    nobody knows; it is given deltas without numbers."""

    def __init__(self, check: Callable[[Delta], None]) -> None:
        self._check = check
        self._met: dict[bytes, Layout] = {}

    def __len__(self) -> int:
        return len(self._met)

    def accept(self, packed: PackedDelta) -> None:
        """Raises DamagedState for one that cannot be added up, before it is kept for later."""
        if not self._of(packed).fits(packed):
            raise DamagedState("a delta that does not keep to its outline")
        if packed.rest:
            self._check(_rest_of(packed))

    def _of(self, packed: PackedDelta) -> Layout:
        layout = self._met.get(packed.outline)
        if layout is None:
            try:
                layout = _layout(_outlines.decode(packed.outline))
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise DamagedState(f"a delta without an outline: {error}") from None
            if not layout.outline.sound:
                raise DamagedState("a delta whose outline names a step twice or a new phase")
            outline = layout.outline
            self._check(
                Delta(
                    seq=0,
                    requests=[RequestDelta(one.key) for one in outline.requests],
                    steps=[StepDelta(one.step) for one in outline.runs],
                )
            )
            if len(self._met) >= OUTLINES_MAX:
                self._met.clear()
            self._met[packed.outline] = layout
        return layout

    def add_up(self, several: Iterable[PackedDelta], seq: int, vus: int | None = None) -> Delta:
        """As `merge_deltas` of what was packed. All of them were accepted."""
        alike: dict[bytes, list[PackedDelta]] = {}
        rests: list[Delta] = []
        alive = 0
        for packed in several:
            alike.setdefault(packed.outline, []).append(packed)
            alive += packed.vus
            if packed.rest:
                rests.append(_rest_of(packed))
        sums = [_sum(self._of(same[0]), same) for same in alike.values()]
        alive = alive if vus is None else vus
        if len(sums) == 1 and not rests:
            (whole,) = sums
            whole.seq, whole.vus = seq, alive
            return whole
        return merge_deltas([*sums, *rests], seq, alive)


def _rest_of(packed: PackedDelta) -> Delta:
    try:
        return trees.decode(packed.rest)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        raise DamagedState(f"a delta with a damaged rest: {error}") from None


def _sum(layout: Layout, same: Sequence[PackedDelta]) -> Delta:
    outline = layout.outline
    blocks = np.frombuffer(b"".join([one.numbers for one in same]), _NUMBER)
    numbers = iter(blocks.reshape(len(same), -1).sum(axis=0).tolist())
    histograms = iter(_histograms(layout, same))
    dropped, interrupted = next(numbers), next(numbers)
    iteration = next(histograms) if outline.iteration else None
    lag = next(histograms) if outline.lag else None
    return Delta(
        seq=0,
        dropped=dropped,
        interrupted=interrupted,
        iteration=iteration,
        requests=[
            RequestDelta(
                told.key,
                count=next(numbers),
                failed=next(numbers),
                unsent=next(numbers),
                bytes_in=next(numbers),
                bytes_out=next(numbers),
                statuses={status: next(numbers) for status in told.statuses},
                service=next(histograms) if told.timed else None,
                response=next(histograms) if told.late else None,
                phases={
                    phase: durations
                    for phase, durations in zip(told.phases, histograms, strict=False)
                    if durations is not None
                },
            )
            for told in outline.requests
        ],
        steps=[
            StepDelta(
                step.step,
                runs=next(numbers),
                failed=next(numbers),
                interrupted=next(numbers),
                duration=next(histograms) if step.timed else None,
            )
            for step in outline.runs
        ],
        lag=lag,
        cpu=max([one.cpu for one in same]),
        rss_mb=max([one.rss_mb for one in same]),
        cpu_s=math.fsum([one.cpu_s for one in same]),
        offered=math.fsum([one.offered for one in same]),
    )


def _histograms(layout: Layout, same: Sequence[PackedDelta]) -> list[Sparse | None]:
    """Those of all together, in the order of the outline; None for one without a value."""
    places = layout.histograms
    if not places:
        return []
    used, summed = _summed(layout, same)
    counts = summed.astype(np.int64)
    buckets = used % LATENCY.size
    borders = np.searchsorted(used, np.arange(places + 1) * LATENCY.size).tolist()
    blocks = np.frombuffer(b"".join([one.moments for one in same]), _MOMENT)
    moments = blocks.reshape(len(same), places, _MOMENTS)
    lows = moments[:, :, 0].min(axis=0).tolist()
    highs = moments[:, :, 1].max(axis=0).tolist()
    totals, squares = moments[:, :, 2:].sum(axis=0).T.tolist()
    return [
        pack_sparse(
            buckets[begin:end],
            counts[begin:end],
            int(counts[begin:end].sum()),
            lows[place],
            highs[place],
            totals[place],
            squares[place],
        )
        if begin < end
        else None
        for place, (begin, end) in enumerate(pairwise(borders))
    ]


def _summed(layout: Layout, same: Sequence[PackedDelta]) -> tuple[Ints, Floats]:
    """The keys with a count, rising, and their counts: doubles, which are exact up to 2**53.
    A key that no histogram has is left out; no key, however large, is given room."""
    size = layout.histograms * LATENCY.size
    by_width: dict[int, list[PackedDelta]] = {}
    for one in same:
        by_width.setdefault(layout.count_bytes(one), []).append(one)
    blocks = [one.keys for alike in by_width.values() for one in alike]
    keys = np.frombuffer(b"".join(blocks), _WIDTHS[layout.key_bytes])
    counts = np.concatenate(
        [
            np.frombuffer(b"".join([one.counts for one in alike]), _WIDTHS[width])
            for width, alike in by_width.items()
        ],
        dtype=_MOMENT,
    )
    if size <= _NARROW_KEYS_MAX:
        dense = cast(Floats, np.bincount(keys, counts, size))[:size]
        used = np.flatnonzero(dense)
        return used, dense[used]
    ours = keys < size
    used, places = np.unique(keys[ours], return_inverse=True)
    return used.astype(np.int64), cast(Floats, np.bincount(places, counts[ours], len(used)))
