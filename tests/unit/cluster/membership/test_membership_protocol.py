"""The protocol as its specification tells it, on cores in memory."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from hyperscale.cluster.identity import Node
from hyperscale.cluster.membership import (
    Change,
    Changed,
    Departed,
    Heartbeat,
    MembershipConfig,
    MemberState,
    Persist,
    Refused,
    SeedSilent,
    Via,
)
from hyperscale.cluster.membership.confirmation import Confirmation, Step
from hyperscale.cluster.membership.messages import (
    Alive,
    Dead,
    Gossip,
    Ping,
    Sender,
    Suspect,
    Update,
    encode,
    header,
)
from tests.unit.cluster.membership.driver import Cluster


def settled(count: int, config: MembershipConfig | None = None) -> Cluster:
    cluster = Cluster(count, config)
    cluster.run_until(
        lambda: all(len(core.active()) == count - 1 for core in cluster.cores.values()), 300
    )
    cluster.events.clear()
    cluster.effects.clear()
    return cluster


def gossip(cluster: Cluster, to: str, *updates: Update, sender: str = "n1") -> None:
    me = cluster.cores[sender].me
    data = encode(header(cluster.config.cluster), Gossip(Sender(me), list(updates)))
    cluster.carry(to, cluster.cores[to].receive(cluster.now, data))


class TestJoining:
    def test_everybody_knows_everybody_by_first_hand(self) -> None:
        cluster = settled(7)
        digests = {core.digests for core in cluster.cores.values()}
        assert len(digests) == 1

    def test_discovered_comes_before_joined(self) -> None:
        cluster = Cluster(3)
        cluster.run(10)
        assert cluster.changes("n1", "n2") == ["discovered", "joined"]

    def test_incarnation_is_durable_before_the_first_word(self) -> None:
        cluster = Cluster(2)
        kinds = [type(effect).__name__ for name, effect in cluster.effects if name == "n0"]
        assert kinds[0] == "Persist"
        assert cluster.disks["n0"] >= cluster.cores["n0"].me.incarnation >= 1

    def test_a_silent_seed_warns_once_and_is_asked_for_ever(self) -> None:
        cluster = Cluster(1)
        cluster.carry("n0", cluster.cores["n0"].join(0.0, [("nowhere", 1)]))
        cluster.run(300)
        warnings = [e for _, e in cluster.effects if isinstance(e, SeedSilent)]
        assert [w.address for w in warnings] == [("nowhere", 1)]
        assert warnings[0].silent_s >= 60
        assert cluster.cores["n0"].counts["exchanges_failed"] > 10

    def test_a_peer_that_was_only_found_is_let_go_when_it_has_left_or_never_answers(self) -> None:
        cluster = Cluster(2)
        found, core = [("n1", 1), ("nowhere", 1)], cluster.cores["n0"]
        cluster.carry("n0", core.join(0.0, found, configured=False))
        cluster.run(10)
        cluster.carry("n1", cluster.cores["n1"].leave(cluster.now))
        cluster.run(10)
        cluster.down.add("n1")
        cluster.run(7_200)
        asked = core.counts["exchanges_failed"]
        cluster.run(600)
        assert core.counts["exchanges_failed"] == asked


class TestCrash:
    def test_suspect_then_dead_everywhere(self) -> None:
        cluster = settled(5)
        cluster.down.add("n4")
        took = cluster.run_until(
            lambda: all(
                cluster.cores[n].member("n4").state is MemberState.DEAD  # type: ignore[union-attr]
                for n in ("n0", "n1", "n2", "n3")
            ),
            40,
        )
        assert took >= 4.0
        for observer in ("n0", "n1", "n2", "n3"):
            assert cluster.changes(observer, "n4") == ["suspected", "died"]

    def test_one_callback_each_and_gossip_informed_deaths_are_counted(self) -> None:
        cluster = settled(6)
        cluster.down.add("n5")
        cluster.run(60)
        died = [n for n, e in cluster.events if e.change is Change.DIED]
        assert sorted(died) == ["n0", "n1", "n2", "n3", "n4"]
        informed = sum(c.counts["gossip_informed_deaths"] for c in cluster.cores.values())
        assert 1 <= informed <= 4

    def test_restart_with_the_same_name_exceeds_the_old_life(self) -> None:
        cluster = settled(4)
        old = cluster.cores["n3"].me.incarnation
        cluster.down.add("n3")
        cluster.run(60)
        cluster.start("n3", join=True)
        cluster.run(5)
        assert cluster.cores["n3"].me.incarnation > old
        assert cluster.changes("n0", "n3") == ["suspected", "died", "revived"]

    def test_restart_without_its_disk_learns_its_incarnation_from_the_cluster(self) -> None:
        cluster = settled(4)
        cluster.cut = lambda a, b: b == "n3"
        cluster.run_until(
            lambda: cluster.cores["n0"].member("n3").state is not MemberState.ALIVE, 30
        )  # type: ignore[union-attr]
        cluster.cut = lambda a, b: False
        cluster.run(20)
        old = cluster.cores["n3"].me.incarnation
        assert old > 1, "it had to refute"
        del cluster.disks["n3"]
        cluster.start("n3", join=True)
        cluster.run(30)
        assert cluster.cores["n3"].me.incarnation > old
        assert {core.digests for core in cluster.cores.values()} == {cluster.cores["n0"].digests}

    def test_dead_are_reaped_and_stay_away(self) -> None:
        config = MembershipConfig(dead_reaped_s=60.0)
        cluster = settled(3, config)
        node = cluster.cores["n2"].me
        cluster.down.add("n2")
        cluster.run(120)
        assert cluster.cores["n0"].member("n2") is None
        gossip(cluster, "n0", Alive(node))
        assert cluster.cores["n0"].member("n2") is None
        assert cluster.cores["n0"].counts["refused_by_tombstone"] == 1


class TestRefutation:
    def test_an_accused_node_raises_its_incarnation_and_is_alive_again(self) -> None:
        cluster = settled(4)
        before = cluster.cores["n2"].me.incarnation
        gossip(cluster, "n0", Suspect("n2", before, ("n1",)))
        assert cluster.cores["n0"].member("n2").state is MemberState.SUSPECT  # type: ignore[union-attr]
        cluster.run(3)
        assert cluster.cores["n2"].me.incarnation == before + 1
        for observer in ("n0", "n1", "n3"):
            assert cluster.cores[observer].member("n2").state is MemberState.ALIVE  # type: ignore[union-attr]

    def test_even_the_dead_can_refute(self) -> None:
        cluster = settled(4)
        before = cluster.cores["n2"].me.incarnation
        gossip(cluster, "n0", Dead("n2", before, "n1"))
        assert cluster.cores["n0"].member("n2").state is MemberState.DEAD  # type: ignore[union-attr]
        cluster.run(30)
        assert cluster.cores["n2"].me.incarnation == before + 1
        assert cluster.cores["n0"].member("n2").state is MemberState.ALIVE  # type: ignore[union-attr]

    def test_old_accusations_mean_nothing(self) -> None:
        cluster = settled(4)
        gossip(cluster, "n0", Suspect("n2", 0, ("n1",)), Dead("n2", 0, "n1"))
        assert cluster.cores["n0"].member("n2").state is MemberState.ALIVE  # type: ignore[union-attr]

    def test_nothing_beyond_the_durable_limit_is_spoken(self) -> None:
        cluster = settled(2)
        core = cluster.cores["n0"]
        far = cluster.disks["n0"] + 1_000
        data = encode(
            header(cluster.config.cluster),
            Gossip(Sender(cluster.cores["n1"].me), [Dead("n0", far, "n1")]),
        )
        effects = core.receive(cluster.now, data)
        wanted = [e.incarnation for e in effects if isinstance(e, Persist)]
        assert wanted
        assert wanted[0] > far
        assert core.me.incarnation <= cluster.disks["n0"]
        core.persisted(cluster.now, wanted[0])
        assert core.me.incarnation == far + 1

    def test_a_blocked_pair_is_saved_by_proxies(self) -> None:
        cluster = settled(5)
        cluster.cut = lambda a, b: {a, b} == {"n0", "n1"}
        cluster.run(120)
        changes = cluster.changes("n0", "n1") + cluster.changes("n1", "n0")
        assert "died" not in changes


class TestSleep:
    def test_waking_from_a_long_pause_buries_nobody(self) -> None:
        cluster = settled(5)
        current = cluster.cores["n3"].me.incarnation
        gossip(cluster, "n0", Suspect("n3", current, ("n1",)))
        cluster.asleep.add("n0")
        cluster.run(60)
        cluster.asleep.discard("n0")
        cluster.run(30)
        assert "died" not in cluster.changes("n0", "n3")
        assert cluster.cores["n0"].counts["lags"] >= 1
        assert all(m.state is MemberState.ALIVE for m in cluster.cores["n0"].members())

    def test_a_short_pause_is_refuted(self) -> None:
        cluster = settled(5)
        cluster.asleep.add("n4")
        cluster.run(3.5)
        cluster.asleep.discard("n4")
        cluster.run(20)
        assert all("died" not in cluster.changes(f"n{i}", "n4") for i in range(4))


class TestLeaving:
    def test_leaving_is_told_and_final(self) -> None:
        cluster = settled(5)
        node = cluster.cores["n4"].me
        cluster.carry("n4", cluster.cores["n4"].leave(cluster.now))
        cluster.run(5)
        assert any(isinstance(e, Departed) for n, e in cluster.effects if n == "n4")
        cluster.down.add("n4")
        for observer in ("n0", "n1", "n2", "n3"):
            assert cluster.changes(observer, "n4") == ["left"]
        gossip(cluster, "n0", Alive(node))
        cluster.run(60)
        assert cluster.cores["n0"].member("n4").state is MemberState.LEFT  # type: ignore[union-attr]

    def test_coming_back_after_leaving(self) -> None:
        cluster = settled(3)
        cluster.carry("n2", cluster.cores["n2"].leave(cluster.now))
        cluster.run(6)
        cluster.start("n2", join=True)
        cluster.run(5)
        assert cluster.cores["n0"].member("n2").state is MemberState.ALIVE  # type: ignore[union-attr]


class TestPartition:
    @pytest.mark.parametrize("side", [{"n0"}, {"n0", "n1", "n2"}])
    def test_a_healed_split_becomes_one_view(self, side: set[str]) -> None:
        cluster = settled(6)
        cluster.cut = lambda a, b: (a in side) != (b in side)
        cluster.run(90)
        assert cluster.cores["n5"].population == 6 - len(side)
        cluster.cut = lambda a, b: False
        cluster.run_until(
            lambda: (
                len({core.digests for core in cluster.cores.values()}) == 1
                and cluster.cores["n5"].population == 6
            ),
            60,
        )


class TestUnconfirmed:
    def bogus(self, role: str) -> Alive:
        return Alive(Node("ghost", 1, role, "dc1", ("ghost", 1), ("ghost", 1)))

    @pytest.mark.parametrize(
        ("role", "gone_after_s", "attempts"),
        [("manager", 105, 3), ("gate", 145, 5), ("worker", 180, 0), ("odd", 105, 3)],
    )
    def test_a_gossiped_ghost_vanishes_without_dying(
        self, role: str, gone_after_s: float, attempts: int
    ) -> None:
        cluster = Cluster(2)
        cluster.run(10)
        cluster.events.clear()
        gossip(cluster, "n0", self.bogus(role))
        heard_at = cluster.now
        cluster.run(gone_after_s - 1)
        assert cluster.cores["n0"].member("ghost") is not None
        took = cluster.run_until(lambda: cluster.cores["n0"].member("ghost") is None, 10)
        assert heard_at + gone_after_s - 1 + took <= heard_at + gone_after_s + 5
        changes = cluster.changes("n0", "ghost")
        assert changes == ["discovered", "unconfirmed", "given up"]
        assert cluster.cores["n0"].counts["confirmation_attempts_total"] == attempts
        assert cluster.cores["n0"].counts[f"unconfirmed_peers_removed_{role}"] == 1
        gossip(cluster, "n0", self.bogus(role))
        assert cluster.cores["n0"].member("ghost") is None

    def test_a_worker_is_given_the_time_to_come_round_in_a_large_cluster(self) -> None:
        waiting = Confirmation(60.0, 5.0, 60.0)
        waiting.discovered(0.0, "w", "worker")
        assert waiting.step(60.0, "w", 1.0, lap_s=20.0) == (Step.WARN, 180.0)
        waiting.discovered(0.0, "w", "worker")
        assert waiting.step(60.0, "w", 1.0, lap_s=1_000.0) == (Step.WARN, 2_000.0)
        waiting.discovered(0.0, "m", "manager")
        assert waiting.step(60.0, "m", 1.0, lap_s=1_000.0) == (Step.WARN, 90.0), "we ask it"

    def test_unconfirmed_workers_are_never_pinged(self) -> None:
        cluster = Cluster(1)
        before = cluster.cores["n0"].counts["pings"]
        me = Node("n1", 1, "manager", "dc1", ("n1", 1), ("n1", 1))
        data = encode(header("default"), Gossip(Sender(me), [self.bogus("worker")]))
        cluster.carry("n0", cluster.cores["n0"].receive(0.0, data))
        cluster.cores["n0"].confirm(0.0, "n1")
        cluster.run(3)
        pinged = cluster.cores["n0"].counts["pings"] - before
        assert pinged <= 4, "only n1"
        assert not cluster.cores["n0"].member("ghost").confirmed  # type: ignore[union-attr]

    def test_gossip_may_bury_it_but_says_that_it_was_never_confirmed(self) -> None:
        cluster = Cluster(2)
        cluster.run(5)
        gossip(cluster, "n0", self.bogus("manager"), Dead("ghost", 1, "n1"))
        died = [e for n, e in cluster.events if n == "n0" and e.change is Change.DIED]
        assert [e.confirmed for e in died] == [False]

    def test_the_end_of_a_suspicion_is_asked_for_when_its_gossip_was_missed(self) -> None:
        cluster = settled(4)
        ghost = self.bogus("manager")
        gossip(cluster, "n0", ghost, Suspect("ghost", 1, ("n1",)))
        for name in ("n1", "n2", "n3"):
            gossip(cluster, name, ghost, Dead("ghost", 1, "n9"), sender="n0")
            cluster.cores[name]._shared.news.forget("ghost")
        cluster.cores["n0"]._shared.news.forget("ghost")
        cluster.run(20)
        assert cluster.cores["n0"].member("ghost").state is MemberState.DEAD  # type: ignore[union-attr]

    def test_a_registration_confirms(self) -> None:
        cluster = Cluster(2)
        cluster.run(5)
        gossip(cluster, "n0", self.bogus("worker"))
        effects = cluster.cores["n0"].confirm(cluster.now, "ghost")
        assert [e.change for e in effects if isinstance(e, Changed)] == [Change.JOINED]


class TestExchange:
    def test_a_remote_death_only_makes_a_suspect(self) -> None:
        cluster = settled(4)
        incarnation = cluster.cores["n2"].me.incarnation
        gossip(cluster, "n1", Dead("n2", incarnation, "n3"), sender="n3")
        cluster.events.clear()
        cluster.cut = lambda a, b: "n2" in (a, b)
        cluster.exchange("n0", ("n1", 1))
        seen = [e for n, e in cluster.events if n == "n0" and e.node.node_id == "n2"]
        assert [(e.change, e.via) for e in seen] == [(Change.SUSPECTED, Via.EXCHANGE)]

    def test_equal_views_cost_little(self) -> None:
        cluster = settled(8)
        core = cluster.cores["n0"]
        cluster.run(10)
        answer, _ = cluster.cores["n1"].exchanged(cluster.now, core.summary(cluster.now))
        assert answer is not None
        assert len(answer) < 300


class TestHeartbeats:
    def test_newest_reaches_everybody_within_two_laps(self) -> None:
        cluster = settled(4)
        cluster.cores["n2"].set_heartbeat(1, b"three cores free")
        cluster.run(8)
        heard = {n: e for n, e in cluster.effects if isinstance(e, Heartbeat)}
        assert sorted(heard) == ["n0", "n1", "n3"]
        assert heard["n0"].payload == b"three cores free"

    def test_too_large_is_refused(self) -> None:
        cluster = settled(2)
        with pytest.raises(ValueError, match="exceeds 512"):
            cluster.cores["n0"].set_heartbeat(1, b"x" * 513)


class TestRefused:
    def test_strangers_and_noise(self) -> None:
        cluster = settled(2)
        core = cluster.cores["n0"]
        good = encode(header("default"), Gossip(Sender(cluster.cores["n1"].me), []))
        other = encode(header("other"), Gossip(Sender(cluster.cores["n1"].me), []))
        for data, reason in [
            (b"", "malformed"),
            (b"\x00\x00", "malformed"),
            (bytes([99]) + good[1:], "version"),
            (other, "cluster"),
            (good[:-1], "malformed"),
            (good + b"\x00", "malformed"),
        ]:
            with pytest.raises(Refused) as refused:
                core.receive(cluster.now, data)
            assert refused.value.reason == reason

    def test_a_sealed_message_in_the_name_of_another(self) -> None:
        cluster = settled(3)
        data = encode(header("default"), Gossip(Sender(cluster.cores["n1"].me), []))
        cluster.cores["n0"].receive(cluster.now, data, speaker="n1")
        with pytest.raises(Refused, match="impostor"):
            cluster.cores["n0"].receive(cluster.now, data, speaker="n2")

    def test_a_ping_for_the_former_owner_of_our_address_is_not_answered(self) -> None:
        cluster = settled(3)
        core = cluster.cores["n0"]
        data = encode(
            header("default"), Ping(Sender(cluster.cores["n1"].me), 5, "somebody-else", [])
        )
        assert core.receive(cluster.now, data) == []

    def test_somebody_with_our_name_is_reported(self) -> None:
        cluster = settled(3)
        impostor = msgspec.structs.replace(
            cluster.cores["n0"].me, incarnation=500, udp=("x", 9), tcp=("x", 9)
        )
        gossip(cluster, "n0", Alive(impostor))
        conflicts = [e for _, e in cluster.events if e.change is Change.CONFLICT]
        assert len(conflicts) == 1
        assert cluster.cores["n0"].me.incarnation == 501


def test_five_hundred_updates_never_exceed_the_budget() -> None:
    cluster = settled(3, replace(MembershipConfig(), news_max=100))
    ghosts = [
        Node(f"ghost-{i:03}", 1, "manager", "dc1", (f"ghost-{i:03}", 1), (f"ghost-{i:03}", 1))
        for i in range(500)
    ]
    for ghost in ghosts:
        gossip(cluster, "n0", Alive(ghost))
    cluster.run(10)  # the driver asserts the size of every datagram
    assert cluster.cores["n0"].rows == 502
    assert cluster.cores["n0"].queued_news <= 100
