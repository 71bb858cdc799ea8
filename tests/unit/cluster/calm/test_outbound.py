from __future__ import annotations

import pytest

from hyperscale.cluster.calm import Fullness, Outbound, OutboundSettings, Outcome, Priority
from hyperscale.cluster.calm.outbound import DELAY_S

CRITICAL, HIGH, NORMAL, LOW = Priority


def small(**changes: int) -> Outbound[str]:
    settings = {"primary_max": 20, "ring_max": 4, "destinations_max": 3} | changes
    return Outbound(OutboundSettings(**settings))


def put(out: Outbound[str], *messages: str, to: str = "a", priority: Priority = NORMAL) -> Outcome:
    outcome = Outcome.QUEUED
    for message in messages:
        outcome = out.enqueue(0.0, to, message, 10, priority).outcome
    return outcome


def drain(out: Outbound[str], to: str = "a", now: float = 0.0) -> list[str]:
    sent = []
    while (taken := out.take(now, to)).waiting is not None:
        sent.append(taken.waiting.message)
        out.sent(to)
    return sent


def numbered(count: int, prefix: str = "m") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def test_delays_only_grow_with_fullness() -> None:
    assert [DELAY_S[each] for each in Fullness] == [0.0, 0.05, 0.2, 0.35, 0.5]


def test_fullness_by_share_of_the_primary() -> None:
    out = small()
    seen = [out.enqueue(0.0, "a", "m", 1).fullness for _ in range(20)]
    assert seen[12] == Fullness.HEALTHY
    assert seen[13] == Fullness.THROTTLED  # 14 of 20
    assert seen[16] == Fullness.BATCHING  # 17 of 20
    assert seen[18] == Fullness.OVERFLOW  # 19 of 20
    assert seen == sorted(seen)


def test_more_important_messages_are_sent_first_and_each_class_in_order() -> None:
    out = small()
    for priority, name in ((LOW, "l"), (NORMAL, "n"), (HIGH, "h"), (CRITICAL, "c")):
        put(out, f"{name}1", f"{name}2", priority=priority)
    assert drain(out) == ["c1", "c2", "h1", "h2", "n1", "n2", "l1", "l2"]


@pytest.mark.parametrize("priority", [CRITICAL, HIGH, NORMAL])
def test_a_full_queue_says_no_and_loses_nothing(priority: Priority) -> None:
    out = small()
    put(out, *numbered(20), priority=priority)
    assert put(out, "one more", priority=priority) is Outcome.QUEUE_FULL
    assert drain(out) == numbered(20)
    assert (out.counts.refused, out.counts.dropped, out.counts.sent) == (1, 0, 20)


def test_telemetry_drops_its_oldest_and_keeps_the_newest() -> None:
    out = small()
    put(out, *numbered(100), priority=LOW)
    kept = drain(out)
    assert kept[-4:] == ["m96", "m97", "m98", "m99"]
    assert len(kept) == 19 + 4
    assert out.counts.dropped == 100 - len(kept)


def test_telemetry_gives_way_to_everything_else() -> None:
    out = small()
    put(out, *numbered(19, "l"), priority=LOW)
    assert put(out, *numbered(20, "h"), priority=HIGH) is Outcome.QUEUED
    assert drain(out) == numbered(20, "h")


def test_saturated_when_primary_and_ring_are_full() -> None:
    out = small()
    put(out, *numbered(20), priority=HIGH)
    last = [out.enqueue(0.0, "a", "t", 1, LOW) for _ in range(5)][-1]
    assert (last.outcome, last.fullness, last.delay_s) == (Outcome.QUEUED, Fullness.SATURATED, 0.5)


def test_the_ring_moves_up_when_the_primary_has_room() -> None:
    out = small()
    put(out, *numbered(23), priority=LOW)
    assert out.status()["a"].ring == 4
    for _ in range(10):
        assert out.take(0.0, "a").waiting
        out.sent("a")
    assert (out.status()["a"].primary, out.status()["a"].ring) == (13, 0)
    put(out, "newer", priority=LOW)
    assert drain(out) == [*numbered(23)[10:], "newer"]


def test_a_blackholed_destination_delays_nobody() -> None:
    out = small()
    put(out, *numbered(50), to="black hole")
    assert out.take(0.0, "black hole").waiting, "being sent for ever"
    result = out.enqueue(0.0, "b", "hello", 10)
    assert (result.outcome, result.delay_s) == (Outcome.QUEUED, 0.0)
    assert drain(out, "b") == ["hello"]


def test_only_idle_destinations_are_forgotten_least_recently_used_first() -> None:
    out = small()
    for name in ("a", "b", "c"):
        put(out, "m", to=name)
    assert put(out, "m", to="d") is Outcome.TOO_MANY_DESTINATIONS
    drain(out, "b")
    drain(out, "a")
    assert put(out, "m", to="d") is Outcome.QUEUED
    assert sorted(out.status()) == ["a", "c", "d"]


def test_a_destination_being_sent_to_is_not_idle() -> None:
    out = small(destinations_max=1)
    put(out, "m")
    assert out.take(0.0, "a").waiting
    assert put(out, "m", to="b") is Outcome.TOO_MANY_DESTINATIONS
    out.sent("a")
    assert put(out, "m", to="b") is Outcome.QUEUED


def test_what_could_not_be_sent_is_next_again() -> None:
    out = small()
    put(out, "first", "second")
    assert out.take(0.0, "a").waiting
    assert out.take(0.0, "a").waiting is None, "one at a time"
    out.give_back("a")
    assert drain(out) == ["first", "second"]


def test_late_messages_are_handed_back_not_sent() -> None:
    out = small()
    out.enqueue(0.0, "a", "late", 10, HIGH, deadline=1.0)
    out.enqueue(0.0, "a", "fresh", 10, HIGH)
    taken = out.take(1.0, "a")
    assert [late.message for late in taken.expired] == ["late"]
    assert taken.waiting is not None
    assert taken.waiting.message == "fresh"
    assert out.counts.expired == 1


def test_expiry_reaches_queues_that_do_not_move() -> None:
    out = small()
    put(out, *numbered(23), priority=LOW)
    put(out, "command", priority=HIGH, to="b")
    assert len(out.expire(5.0)) == 23
    assert [late.message for late in out.expire(30.0)] == ["command"]
    assert out.size_bytes == 0
    assert put(out, "m", to="c") is put(out, "m", to="d") is Outcome.QUEUED


def test_forgetting_hands_everything_back() -> None:
    out = small()
    put(out, "first", "second")
    assert out.take(0.0, "a").waiting
    assert [left.message for left in out.forget("a")] == ["first", "second"]
    assert out.size_bytes == 0
    assert out.forget("a") == []


def test_bytes_are_bounded_and_every_destination_has_its_grant() -> None:
    out: Outbound[str] = Outbound(
        OutboundSettings(bytes_max=1_000, bytes_max_per_destination=900, bytes_granted=100)
    )
    assert out.enqueue(0.0, "a", "m", 901).outcome is Outcome.NO_MEMORY
    assert out.enqueue(0.0, "a", "m", 900).outcome is Outcome.QUEUED
    assert out.enqueue(0.0, "b", "m", 100).outcome is Outcome.QUEUED
    assert out.enqueue(0.0, "c", "m", 100).outcome is Outcome.QUEUED, "its grant"
    assert out.enqueue(0.0, "c", "m", 1).outcome is Outcome.NO_MEMORY


def test_telemetry_gives_its_bytes_to_a_command() -> None:
    out: Outbound[str] = Outbound(OutboundSettings(bytes_max_per_destination=100, bytes_granted=0))
    for number in range(10):
        out.enqueue(0.0, "a", f"l{number}", 10, LOW)
    assert out.enqueue(0.0, "a", "command", 35, HIGH).outcome is Outcome.QUEUED
    assert drain(out) == ["command", *[f"l{number}" for number in range(4, 10)]]


def test_nothing_being_sent_cannot_be_finished() -> None:
    out = small()
    with pytest.raises(RuntimeError):
        out.sent("a")
    put(out, "m")
    with pytest.raises(RuntimeError):
        out.give_back("a")


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="rise"):
        OutboundSettings(throttled_share=0.9)
    with pytest.raises(ValueError, match="at least 1"):
        OutboundSettings(ring_max=0)
