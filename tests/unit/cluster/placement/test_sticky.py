"""The sticky pool of peers."""

from __future__ import annotations

import random

from hyperscale.cluster.placement.sticky import Evicted, Eviction, StickyPool, StickySettings

PEERS = [f"p{i}" for i in range(8)]


def pool(peers: list[str] = PEERS, **changes: float) -> StickyPool:
    made = StickyPool(StickySettings(**changes), random.Random(3))  # type: ignore[arg-type]
    made.offer(0.0, peers)
    return made


def test_three_primaries_take_turns_and_two_backups_wait() -> None:
    sticky = pool()
    assert len(sticky.primaries) == 3
    assert len(sticky.backups) == 2
    assert len({*sticky.primaries, *sticky.backups}) == 5
    picks = [sticky.pick() for _ in range(6)]
    assert set(picks) == set(sticky.primaries)
    assert picks[:3] == picks[3:]


def test_the_fourth_failure_in_a_row_evicts_promotes_and_refills() -> None:
    sticky = pool()
    victim, backup = sticky.primaries[0], sticky.backups[0]
    assert [sticky.failed(1.0, victim) for _ in range(3)] == [None, None, None]
    assert sticky.failed(1.0, victim) == Eviction(victim, Evicted.FAILURES)
    assert backup in sticky.primaries
    assert victim not in sticky.primaries + sticky.backups
    assert sticky.refill_at is not None
    assert 1.1 <= sticky.refill_at <= 1.5
    sticky.tick(sticky.refill_at - 0.01)
    assert len(sticky.backups) == 1
    sticky.tick(sticky.refill_at)
    assert len(sticky.backups) == 2
    assert victim not in sticky.backups
    assert sticky.refill_at is None


def test_a_success_in_between_forgives() -> None:
    sticky = pool()
    peer = sticky.primaries[0]
    for _ in range(5):
        for _ in range(3):
            assert sticky.failed(0.0, peer) is None
        assert sticky.succeeded(0.0, peer, 0.01) is None


def test_errors_degrade_first_and_evict_when_they_last() -> None:
    sticky = pool()
    peer = sticky.primaries[0]
    for i in range(30):
        assert (sticky.failed if i % 3 == 0 else lambda n, p: sticky.succeeded(n, p, 0.01))(
            1.0, peer
        ) is None
    assert sticky.degraded(peer)
    assert sticky.failed(20.0, peer) is None
    assert sticky.failed(31.0, peer) == Eviction(peer, Evicted.ERRORS)


def test_a_peer_that_recovers_is_no_longer_degraded() -> None:
    sticky = pool()
    peer = sticky.primaries[0]
    for i in range(30):
        (sticky.failed(1.0, peer) if i % 3 == 0 else sticky.succeeded(1.0, peer, 0.01))
    for _ in range(40):
        sticky.succeeded(2.0, peer, 0.01)
    assert not sticky.degraded(peer)


def test_a_slow_peer_is_judged_against_its_own_frozen_past() -> None:
    sticky = pool()
    peer = sticky.primaries[0]
    for i in range(100):
        assert sticky.succeeded(float(i), peer, 0.010 + 0.001 * (i % 3)) is None
    evictions = [sticky.succeeded(100.0 + i, peer, 0.050) for i in range(30)]
    assert Eviction(peer, Evicted.SLOW) in evictions


def test_steady_slowness_is_no_reason() -> None:
    sticky = pool()
    peer = sticky.primaries[0]
    assert all(sticky.succeeded(float(i), peer, 0.5) is None for i in range(200))


def test_fewer_peers_than_places() -> None:
    sticky = pool(["a", "b"])
    assert sorted(sticky.primaries) == ["a", "b"]
    assert sticky.backups == []
    assert sticky.refill_at is None
    nobody = pool([])
    assert nobody.pick() is None
    assert nobody.failed(0.0, "a") is None


def test_members_stay_while_candidates_and_leave_when_not() -> None:
    sticky = pool()
    members = sticky.primaries + sticky.backups
    assert sticky.offer(1.0, list(reversed(PEERS))) == []
    assert sticky.primaries + sticky.backups == members
    rest = [p for p in PEERS if p != members[0]]
    assert sticky.offer(2.0, rest) == [Eviction(members[0], Evicted.GONE)]


def test_an_aged_member_gives_way_to_a_better_ranked_peer() -> None:
    sticky = pool()
    members = sticky.primaries + sticky.backups
    fresh = [p for p in PEERS if p not in members]
    sticky.offer(3601.0, fresh + members)
    assert len(sticky.primaries + sticky.backups) == 4
    assert sticky.refill_at is not None
    young = pool()
    before = young.primaries + young.backups
    young.offer(100.0, [p for p in PEERS if p not in before] + before)
    assert young.primaries + young.backups == before
