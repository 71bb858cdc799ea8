"""Outbound queues under any order of events, against their bounds and a conservation law."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.cluster.calm import Outbound, OutboundSettings, Outcome, Priority
from hyperscale.cluster.calm.outbound import DELAY_S

DESTINATIONS = ("a", "b", "c", "d")

sizes = st.builds(
    OutboundSettings,
    primary_max=st.integers(1, 6),
    ring_max=st.integers(1, 3),
    destinations_max=st.integers(1, 3),
    bytes_max=st.integers(20, 100),
    bytes_max_per_destination=st.integers(30, 60),
    bytes_granted=st.integers(0, 30),
    telemetry_lifetime_s=st.just(3.0),
    lifetime_s=st.just(8.0),
)
at = st.sampled_from(DESTINATIONS)
events = st.one_of(
    st.tuples(st.just("put"), at, st.sampled_from(Priority), st.integers(1, 40)),
    st.tuples(st.just("put"), at, st.just(Priority.LOW), st.integers(1, 5)),
    st.tuples(st.just("take"), at),
    st.tuples(st.just("sent"), at),
    st.tuples(st.just("give back"), at),
    st.tuples(st.just("forget"), at),
    st.tuples(st.just("wait"), st.floats(0.1, 4.0)),
    st.tuples(st.just("expire"), at),
)


@settings(max_examples=200)
@given(sizes, st.lists(events, max_size=150))
def test_bounds_and_conservation(bounds: OutboundSettings, history: list[tuple]) -> None:
    out: Outbound[int] = Outbound(bounds)
    now, number = 0.0, 0
    sending: dict[str, int] = {}
    fate: Counter[str] = Counter()
    accepted: dict[int, Priority] = {}
    ended: set[int] = set()

    def end(message: int, how: str) -> None:
        assert message in accepted
        assert message not in ended, "nothing ends twice"
        ended.add(message)
        fate[how] += 1

    for event in history:
        kind, where = event[0], event[1]
        if kind == "put":
            number += 1
            result = out.enqueue(now, where, number, event[3], event[2])
            assert result.delay_s == DELAY_S[result.fullness]
            if result.outcome is Outcome.QUEUED:
                accepted[number] = event[2]
        elif kind == "take":
            taken = out.take(now, where)
            for late in taken.expired:
                end(late.message, "expired")
            if taken.waiting is not None:
                assert where not in sending
                assert taken.waiting.expires_at > now
                sending[where] = taken.waiting.message
        elif kind == "sent" and where in sending:
            out.sent(where)
            end(sending.pop(where), "sent")
        elif kind == "give back" and where in sending:
            out.give_back(where)
            del sending[where]
        elif kind == "forget":
            for left in out.forget(where):
                end(left.message, "forgotten")
            sending.pop(where, None)
        elif kind == "wait":
            now += where
        elif kind == "expire":
            for late in out.expire(now):
                end(late.message, "expired")
        check(out, bounds)

    for where in DESTINATIONS:
        for left in out.forget(where):
            end(left.message, "left")
    lost = [accepted[message] for message in accepted if message not in ended]
    assert set(lost) <= {Priority.LOW}, "only telemetry is ever dropped"
    assert len(lost) == out.counts.dropped
    assert out.size_bytes == 0
    assert len(accepted) == out.counts.enqueued
    assert fate["expired"] == out.counts.expired


def check(out: Outbound[int], bounds: OutboundSettings) -> None:
    assert len(out) <= bounds.destinations_max
    total = 0
    for status in out.status().values():
        assert 0 <= status.primary <= bounds.primary_max
        assert 0 <= status.ring <= bounds.ring_max
        assert 0 <= status.size_bytes <= bounds.bytes_max_per_destination
        total += status.size_bytes
    assert total == out.size_bytes
    assert total <= bounds.bytes_max + bounds.destinations_max * bounds.bytes_granted


@given(st.lists(st.tuples(st.sampled_from(Priority), st.integers(0, 99)), max_size=40))
def test_order_within_a_class_is_the_order_of_arrival(puts: list[tuple[Priority, int]]) -> None:
    out: Outbound[tuple[Priority, int]] = Outbound(OutboundSettings(primary_max=100))
    for put in puts:
        out.enqueue(0.0, "a", put, 1, put[0])
    sent = []
    while (taken := out.take(0.0, "a")).waiting is not None:
        sent.append(taken.waiting.message)
        out.sent("a")
    assert sent == sorted(puts, key=lambda put: put[0])
