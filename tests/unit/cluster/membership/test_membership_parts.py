"""The parts of the protocol, one by one."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from hyperscale.cluster.membership import suspicion
from hyperscale.cluster.membership.awareness import Awareness, HealthEvent
from hyperscale.cluster.membership.config import MembershipConfig, plain_swim
from hyperscale.cluster.membership.deadlines import Deadlines
from hyperscale.cluster.membership.dissemination import Dissemination, SeenUpdates
from hyperscale.cluster.membership.member import MemberState, supersedes
from hyperscale.cluster.membership.messages import Dead, Left, Suspect, Update, size_of
from hyperscale.cluster.membership.probe import Phase, Probe
from hyperscale.cluster.membership.ring import Ring
from hyperscale.cluster.membership.roles import adaptive_timeout_s, strategy
from hyperscale.cluster.membership.suspicion import Suspicion
from hyperscale.cluster.membership.tombstones import Tombstones


class TestPrecedence:
    def test_within_one_incarnation_bad_news_wins(self) -> None:
        order = [MemberState.ALIVE, MemberState.SUSPECT, MemberState.DEAD, MemberState.LEFT]
        for known, news in itertools.product(order, order):
            assert supersedes(news, 5, known, 5) is (news > known)

    def test_a_higher_incarnation_always_wins_and_a_lower_never(self) -> None:
        for known, news in itertools.product(MemberState, MemberState):
            assert supersedes(news, 6, known, 5)
            assert not supersedes(news, 4, known, 5)


class TestSuspicion:
    @pytest.mark.parametrize(
        ("live", "shortest", "longest"),
        [(1, 4.0, 24.0), (5, 4.0, 24.0), (100, 8.017, 30.0), (1000, 12.0, 30.0)],
    )
    def test_bounds_grow_with_the_cluster_and_are_capped(
        self, live: int, shortest: float, longest: float
    ) -> None:
        low, high = suspicion.bounds(live, 1.0, 4.0, 6.0, 30.0)
        assert low == pytest.approx(shortest, rel=1e-3)
        assert high == pytest.approx(longest)

    def test_bad_local_health_waits_longer(self) -> None:
        assert suspicion.bounds(5, 1.0, 4.0, 6.0, 30.0, factor=3.0) == (12.0, 30.0)

    @pytest.mark.parametrize(
        ("confirmations", "wait"), [(0, 24.0), (1, 14.0), (2, 8.150), (3, 4.0), (9, 4.0)]
    )
    def test_confirmations_shorten_along_a_logarithm(self, confirmations: int, wait: float) -> None:
        assert suspicion.wait(confirmations, 3, 4.0, 24.0) == pytest.approx(wait, rel=1e-3)

    def test_nobody_to_confirm_means_the_shortest_wait(self) -> None:
        assert suspicion.wait(0, 0, 4.0, 24.0) == 4.0

    def test_repeats_count_once_and_a_flood_cannot_postpone(self) -> None:
        doubt = Suspicion(10.0, 1, ("a",), 3, 4.0, 24.0)
        deadlines = [doubt.deadline]
        for accuser in ["a", "b", "b", "c", "a", "d", "e", "f"]:
            doubt.confirm(accuser)
            deadlines.append(doubt.deadline)
        assert deadlines == sorted(deadlines, reverse=True)
        assert deadlines[-1] == 14.0
        assert len(doubt.accusers) == 4


class TestAwareness:
    def test_scores_stay_within_bounds_and_scale_timeouts(self) -> None:
        health = Awareness(8, 0.25, 10.0)
        assert health.factor == 1.0
        for _ in range(20):
            health.note(0.0, HealthEvent.LONG_LAG)
        assert (health.score, health.factor) == (8, 3.0)
        for _ in range(20):
            health.note(0.0, HealthEvent.PROBE_ANSWERED)
        assert health.score == 0

    def test_the_published_timeouts(self) -> None:
        health = Awareness(8, 0.25, 10.0)
        expected = {0: 500, 2: 750, 4: 1000, 8: 1500}
        for score, timeout_ms in expected.items():
            health.score = score
            assert 500 * health.factor == timeout_ms

    def test_a_dead_peer_seen_by_all_costs_nothing(self) -> None:
        health = Awareness(8, 0.25, 10.0)
        health.note(0.0, HealthEvent.PROBE_FAILED_FOR_ALL)
        assert health.score == 0

    def test_points_decay_with_time_alone(self) -> None:
        health = Awareness(8, 0.25, 10.0)
        health.note(0.0, HealthEvent.LAG)
        health.decay(9.9)
        assert health.score == 1
        health.decay(10.0)
        assert health.score == 0


class TestProbe:
    def test_answered_directly(self) -> None:
        probe = Probe(0.0, 7, "x", 1)
        assert not probe.ack(6, "x"), "an answer of another round"
        assert not probe.ack(7, "y"), "an answer of somebody else"
        assert probe.ack(7, "x")
        assert probe.verdict is HealthEvent.PROBE_ANSWERED
        assert not probe.ack(7, "x"), "once is enough"
        assert not probe.end()

    def test_late_but_alive(self) -> None:
        probe = Probe(0.0, 7, "x", 1)
        assert probe.timeout(frozenset("abc"))
        assert not probe.timeout(frozenset("abc"))
        assert probe.ack(7, "x")
        assert probe.verdict is HealthEvent.PROBE_NEEDED_HELP

    def test_nacks_tell_whose_fault_it_is(self) -> None:
        probe = Probe(0.0, 7, "x", 1)
        assert not probe.nack(7, "a"), "nobody was asked yet"
        probe.timeout(frozenset("abc"))
        assert probe.nack(7, "a")
        assert not probe.nack(7, "a")
        assert not probe.nack(7, "stranger")
        probe.nack(7, "b")
        assert probe.end()
        assert probe.verdict is HealthEvent.PROBE_FAILED_ALONE
        assert probe.phase is Phase.FAILED

    def test_all_proxies_agree(self) -> None:
        probe = Probe(0.0, 7, "x", 1)
        probe.timeout(frozenset("ab"))
        probe.nack(7, "a")
        probe.nack(7, "b")
        assert probe.end()
        assert probe.verdict is HealthEvent.PROBE_FAILED_FOR_ALL


class TestDissemination:
    """News of ten bytes each, but where sizes do not matter."""

    def news(self, name: str) -> Left:
        left = Left(name[:6].ljust(6), 1)
        assert size_of(left) == 10
        return left

    def test_each_is_told_a_limited_number_of_times(self) -> None:
        queue = Dissemination(10)
        queue.add(self.news("a"))
        told = sum(len(queue.take(100, 5)) for _ in range(20))
        assert told == 5
        assert len(queue) == 0

    def test_newer_news_replaces_older_and_starts_afresh(self) -> None:
        queue = Dissemination(10)
        queue.add(Left("a", 1))
        queue.take(100, 5)
        queue.add(Dead("a", 2, "b"))
        told = [update for _ in range(9) for update in queue.take(100, 5)]
        assert told == [Dead("a", 2, "b")] * 5

    def test_least_told_first(self) -> None:
        queue = Dissemination(10)
        queue.add(self.news("a"))
        queue.take(10, 9)
        queue.add(self.news("b"))
        assert queue.take(10, 9) == [self.news("b")]

    def test_newcomers_leave_half_of_the_room_to_other_news(self) -> None:
        queue = Dissemination(100)
        for number in range(20):
            queue.add(self.news(f"join{number}"), join=True)
        for number in range(20):
            queue.add(self.news(f"dead{number}"))
        taken = [update.node_id[:4] for update in queue.take(100, 9)]
        assert taken.count("dead") == 5
        assert taken.count("join") == 5

    def test_newcomers_may_use_room_nobody_else_wants(self) -> None:
        queue = Dissemination(100)
        for number in range(20):
            queue.add(self.news(f"join{number}"), join=True)
        assert len(queue.take(100, 9)) == 10

    def test_overflow_drops_what_was_told_most(self) -> None:
        queue = Dissemination(2)
        queue.add(Left("a", 1))
        queue.take(10, 9)
        queue.add(Left("b", 1))
        queue.add(Left("c", 1))
        assert ("a" in queue, "b" in queue, "c" in queue) == (False, True, True)
        assert queue.overflowed == 1


class TestDeadlines:
    def test_only_the_newest_deadline_of_a_key_fires(self) -> None:
        deadlines: Deadlines[str] = Deadlines()
        deadlines.set("a", 5.0)
        deadlines.set("a", 3.0)
        deadlines.set("b", 4.0)
        deadlines.cancel("b")
        assert deadlines.next == 3.0
        assert deadlines.pop(2.9) is None
        assert deadlines.pop(10.0) == "a"
        assert deadlines.pop(10.0) is None
        assert deadlines.next == math.inf

    def test_earlier_only(self) -> None:
        deadlines: Deadlines[str] = Deadlines()
        deadlines.set_earlier("a", 5.0)
        deadlines.set_earlier("a", 9.0)
        assert deadlines.due("a") == 5.0

    def test_memory_follows_the_keys(self) -> None:
        deadlines: Deadlines[str] = Deadlines()
        for number in range(10_000):
            deadlines.set("a", float(number))
        assert len(deadlines._heap) < 100


class TestSeen:
    def test_words_are_judged_once_until_it_is_cleared(self) -> None:
        seen, judged = SeenUpdates(8), Judge()
        seen.judge([Left("a", 1), Left("a", 1), Left("a", 2)], judged)
        seen.judge([Left("a", 2), Suspect("a", 2, ("b",)), Dead("a", 2, "b")], judged)
        seen.clear()
        seen.judge([Left("a", 1)], judged)
        assert judged.updates == [
            Left("a", 1),
            Left("a", 2),
            Suspect("a", 2, ("b",)),
            Dead("a", 2, "b"),
            Left("a", 1),
        ]

    def test_what_the_judge_will_not_settle_comes_again(self) -> None:
        seen, judged = SeenUpdates(8), Judge(settles=False)
        seen.judge([Left("a", 1), Left("a", 1)], judged)
        assert len(judged.updates) == 2

    def test_a_full_memory_starts_anew(self) -> None:
        seen, judged = SeenUpdates(2), Judge()
        for name in "abca":
            seen.judge([Left(name, 1)], judged)
        assert [update.node_id for update in judged.updates] == ["a", "b", "c", "a"]


class Judge:
    def __init__(self, *, settles: bool = True) -> None:
        self.updates: list[Update] = []
        self._settles = settles

    def __call__(self, update: Update) -> bool:
        self.updates.append(update)
        return self._settles


class TestRing:
    def test_every_member_once_per_lap(self) -> None:
        ring = Ring(random.Random(1))
        for number in range(10):
            ring.add(str(number))
        for _ in range(3):
            lap = [ring.next(lambda _: True) for _ in range(10)]
            assert sorted(filter(None, lap)) == [str(n) for n in range(10)]

    def test_removed_members_are_not_visited(self) -> None:
        ring = Ring(random.Random(1))
        for name in "abc":
            ring.add(name)
        ring.next(lambda _: True)
        ring.remove("b")
        assert "b" not in {ring.next(lambda _: True) for _ in range(10)}

    def test_nobody_ready(self) -> None:
        ring = Ring(random.Random(1))
        ring.add("a")
        assert ring.next(lambda _: False) is None


class TestTombstones:
    def test_refuses_up_to_the_incarnation_that_ended_while_it_stands(self) -> None:
        stones = Tombstones(2)
        stones.put("a", 4, until=10.0)
        assert stones.incarnation("a", 9.9) == 4
        assert stones.incarnation("a", 10.0) is None

    def test_bounded(self) -> None:
        stones = Tombstones(2)
        for number in range(5):
            stones.put(str(number), 1, 100.0)
        assert len(stones) == 2
        assert stones.incarnation("4", 0.0) == 1


class TestRoles:
    def test_table(self) -> None:
        assert (strategy("gate").passive_s, strategy("gate").attempts) == (120.0, 5)
        assert (strategy("manager").passive_s, strategy("manager").attempts) == (90.0, 3)
        assert (strategy("worker").passive_s, strategy("worker").attempts) == (180.0, 0)
        assert strategy("unheard of") is strategy("manager")

    @pytest.mark.parametrize(
        ("role", "rtt_s", "load", "expected"),
        [
            ("manager", 0.005, 1.0, 5.02),
            ("manager", 0.2, 1.0, 5.8),
            ("gate", 0.3, 9.0, 18.6),
            ("worker", 2.0, 1.0, 5.0),
            ("worker", 2.0, 99.0, 30.0),
        ],
    )
    def test_adaptive_timeout(self, role: str, rtt_s: float, load: float, expected: float) -> None:
        assert adaptive_timeout_s(role, 5.0, rtt_s, load) == pytest.approx(expected)


def test_plain_swim_has_no_lifeguard() -> None:
    config = plain_swim(MembershipConfig())
    assert config.health_score_max == 0
    assert config.suspicion_confirmations == 0
    assert not config.buddy


def test_retransmits_follow_the_logarithm() -> None:
    config = MembershipConfig()
    assert [config.retransmits(n) for n in (1, 5, 10, 99, 100, 1000)] == [3, 6, 9, 15, 15, 21]
