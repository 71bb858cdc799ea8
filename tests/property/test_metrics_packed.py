"""Packed deltas added up count what the deltas in them count, whatever is in them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.metrics.exported import DamagedState
from hyperscale.metrics.histogram import Sparse
from hyperscale.metrics.merging import merge_deltas
from hyperscale.metrics.packed import OUTLINES_MAX, Outlines, PackedDelta, pack
from tests.property.test_metrics_merging import aggregate, deltas, sparse, totals


def outlines() -> Outlines:
    return Outlines(lambda named: None)


WIRE = msgspec.msgpack.Decoder(PackedDelta)


def travelled(delta: Delta) -> PackedDelta:
    return WIRE.decode(msgspec.msgpack.encode(pack(delta)))


@settings(deadline=None)
@given(st.lists(deltas(1), min_size=1, max_size=6))
def test_the_sum_is_that_of_the_deltas(several: list[Delta]) -> None:
    summed = outlines().add_up([travelled(delta) for delta in several], 7)
    plain = merge_deltas(several, 7)
    assert (summed.seq, summed.vus) == (7, plain.vus)
    assert (summed.cpu, summed.rss_mb) == (plain.cpu, plain.rss_mb)
    assert summed.cpu_s == plain.cpu_s == sum(delta.cpu_s for delta in several)
    left, right = aggregate([(0, 0.2, summed)]), aggregate([(0, 0.2, plain)])
    assert totals(left) == totals(right)


@settings(deadline=None)
@given(deltas(3))
def test_totals_can_be_read_without_adding_anything_up(delta: Delta) -> None:
    packed = pack(delta)
    assert (packed.seq, packed.vus) == (3, delta.vus)
    assert packed.requests == sum(step.count for step in delta.requests)
    assert packed.failed == sum(step.failed for step in delta.requests)


@settings(deadline=None)
@given(deltas(1))
def test_all_that_is_told_of_is_named_before_it_is_remembered(delta: Delta) -> None:
    named: set[str] = set()

    def refuse(told: Delta) -> None:
        named.update(one.key.step for one in told.requests)
        named.update(one.name for one in (*told.steps, *told.checks, *told.metrics))
        raise DamagedState("not ours")

    known = Outlines(refuse)
    for _ in range(2):
        named.clear()
        with pytest.raises(DamagedState, match="not ours"):
            known.accept(travelled(delta))
        assert named >= {one.key.step for one in delta.requests}
    assert len(known) == 0
    everything = Outlines(lambda told: named.update(c.name for c in (*told.checks, *told.metrics)))
    everything.accept(travelled(delta))
    assert named >= {one.name for one in (*delta.checks, *delta.metrics)}


def timed(*counts: int) -> Delta:
    times = Sparse.of(range(len(counts)), counts, low=0.5, high=2.0, total=1.0, squares=1.0)
    steps = [RequestDelta(RequestKey(f"s{n}"), count=sum(counts), service=times) for n in range(40)]
    return Delta(seq=1, requests=steps)


@pytest.mark.parametrize("count", [1, 200, 60_000, 2**31, 2**40])
def test_large_counts_and_many_histograms_are_exact(count: int) -> None:
    summed = outlines().add_up([pack(timed(count, 2)), pack(timed(1, 1))], 1)
    assert [step.service.counts.tolist() for step in summed.requests if step.service] == [
        [count + 1, 3]
    ] * 40
    assert summed.requests[39].count == count + 4


def damaged(**changed: object) -> PackedDelta:
    return msgspec.structs.replace(pack(timed(3, 4)), **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"outline": b""},
        {"outline": b"\x93\xc2\xc2\x91\x01"},
        {"numbers": b"\0" * 8},
        {"moments": b"\0" * 32},
        {"keys": b"\0" * 3},
        {"counts": b"\0" * 7},
        {"counts": b""},
    ],
)
def test_one_that_cannot_be_added_up_is_told_beforehand(changed: dict[str, bytes]) -> None:
    known = outlines()
    with pytest.raises(DamagedState):
        known.accept(damaged(**changed))


def test_a_damaged_rest_is_told_beforehand() -> None:
    with pytest.raises(DamagedState):
        outlines().accept(damaged(rest=b"\x00"))


@settings(deadline=None)
@given(st.binary(max_size=400), st.binary(max_size=40), st.binary(max_size=40))
def test_what_is_not_refused_can_be_added_up(keys: bytes, counts: bytes, numbers: bytes) -> None:
    known = outlines()
    strange = damaged(keys=keys, counts=counts, numbers=numbers or pack(timed(3, 4)).numbers)
    try:
        known.accept(strange)
    except DamagedState:
        return
    known.add_up([strange, pack(timed(1, 2))], 1)


@pytest.mark.parametrize("steps", [1, 40])
def test_a_key_beyond_all_histograms_is_left_out_and_takes_no_room(steps: int) -> None:
    known = outlines()
    true = msgspec.structs.replace(timed(3, 4), requests=timed(3, 4).requests[:steps])
    strange = msgspec.structs.replace(pack(true), keys=b"\xff" * len(pack(true).keys))
    known.accept(strange)
    summed = known.add_up([strange, pack(true)], 1)
    assert [step.service.counts.tolist() for step in summed.requests if step.service] == [
        [3, 4]
    ] * steps


@pytest.mark.parametrize(
    "steps",
    [
        [RequestDelta(RequestKey("s"), count=1), RequestDelta(RequestKey("s"), count=1)],
        [RequestDelta(RequestKey("s"), phases={f"p{n}": sparse(700, 1) for n in range(500)})],
    ],
    ids=["a step twice", "phases nobody knows"],
)
def test_an_outline_has_no_more_in_it_than_a_workflow(steps: list[RequestDelta]) -> None:
    known = outlines()
    with pytest.raises(DamagedState, match="outline"):
        known.accept(pack(Delta(seq=1, requests=steps)))
    assert len(known) == 0


def test_outlines_do_not_fill_the_memory() -> None:
    known = outlines()
    for status in range(OUTLINES_MAX + 10):
        step = RequestDelta(RequestKey("s"), count=1, statuses={status: 1})
        known.add_up([pack(Delta(seq=1, requests=[step]))], 1)
    assert len(known) <= OUTLINES_MAX
