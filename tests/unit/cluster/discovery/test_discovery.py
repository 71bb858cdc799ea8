"""The failure matrix of discovery and the traps around it, in virtual time."""

from __future__ import annotations

from itertools import pairwise, permutations, product
from random import Random

import pytest

from hyperscale.cluster.discovery import (
    Discovery,
    DiscoverySettings,
    DiscoveryState,
    DnsName,
    ProbeAnswer,
    Unusable,
)
from hyperscale.cluster.discovery.discovery import TRANSITIONS, DiscoveryTrigger
from hyperscale.cluster.identity import Endpoint
from tests.unit.cluster.discovery.driver import World, introduce, node


def places(*names: str) -> tuple[Endpoint, ...]:
    return tuple((name, 9_000) for name in names)


def dead(count: int) -> tuple[Endpoint, ...]:
    return places(*(f"dead{number}" for number in range(count)))


def groups(world: World) -> list[set[str]]:
    """Who is together when everybody joins through whom it found."""
    together = [{name} for name in world.nodes]
    for name, member in world.nodes.items():
        for _, peer in member.found:
            mine = next(group for group in together if name in group)
            theirs = next(group for group in together if peer in group)
            if mine is not theirs:
                together.remove(theirs)
                mine |= theirs
    return together


def test_one_live_seed_among_nine_dead_ones_joins_within_100_ms() -> None:
    world = World()
    world.add("live")
    world.start("live")
    world.run(1.0)
    joiner = world.add("joiner", seeds=(*dead(9), *places("live")))
    world.start("joiner")
    world.run(1.1)
    assert [peer for _, peer in joiner.found] == ["live"]
    assert joiner.core.state is DiscoveryState.JOINED
    assert joiner.in_flight == set(), "the rest is cancelled"


def test_all_dead_is_known_at_the_probe_timeout_and_the_first_node_forms_a_cluster() -> None:
    world = World()
    first = world.add("first", seeds=dead(3))
    world.start("first")
    world.run(0.49)
    assert first.formed_at is None
    world.run(0.51)
    assert first.formed_at == pytest.approx(0.5)
    assert first.core.state is DiscoveryState.BACKOFF


def test_a_lone_seed_that_lists_itself_forms_at_once_and_never_asks_itself_again() -> None:
    world = World()
    first = world.add("first", seeds=places("first"))
    world.start("first")
    world.run(60.0)
    assert first.formed_at == pytest.approx(0.02)
    assert len(first.asked) == 1
    assert first.found == []


def test_without_anything_to_go_by_a_server_forms_and_waits_to_be_found() -> None:
    world = World()
    first = world.add("first")
    world.start("first")
    assert first.formed_at == 0.0
    second = world.add("second", seeds=places("first"))
    world.start("second")
    world.run(1.0)
    assert first.core.state is second.core.state is DiscoveryState.JOINED
    assert [peer for _, peer in first.found] == ["second"]


def test_backoff_grows_to_its_cap_with_jitter_on_top() -> None:
    world = World()
    node_ = world.add("n", seeds=dead(1), probe_timeout_s=0.001)
    world.start("n")
    world.run(100.0)
    times = [at for at, _ in node_.asked]
    pauses = [later - earlier - 0.001 for earlier, later in pairwise(times)]
    for pause, base in zip(pauses, [0.5, 1, 2, 4, 8, 15, 15, 15], strict=False):
        assert base <= pause <= base * 1.25 + 1e-6
    assert len(set(pauses)) == len(pauses)


def test_total_outage_is_waited_out_for_ever() -> None:
    world = World()
    waiting = world.add("waiting", seeds=places("late"))
    world.start("waiting")
    world.run(3_600.0)
    late = world.add("late")
    world.start("late")
    world.run(3_620.0)
    assert {peer for _, peer in waiting.found} == {"late"}
    assert late.core.state is DiscoveryState.JOINED


def test_seeds_do_not_wait_for_a_black_hole_of_a_name_server() -> None:
    world = World()
    world.dns["slow"] = (1e9, [])
    world.add("live")
    world.start("live")
    joiner = world.add("joiner", seeds=places("live"), names=(DnsName("slow"),))
    world.start("joiner")
    world.run(0.1)
    assert joiner.core.state is DiscoveryState.JOINED


def test_answers_of_dns_join_the_running_round() -> None:
    world = World()
    world.dns["managers"] = (0.1, list(places("live")))
    world.add("live")
    world.start("live")
    joiner = world.add("joiner", seeds=dead(3), names=(DnsName("managers"),))
    world.start("joiner")
    world.run(0.2)
    assert joiner.core.state is DiscoveryState.JOINED


def test_dns_alone_is_enough() -> None:
    world = World()
    world.dns["managers"] = (0.01, list(places("live", "gone")))
    world.add("live")
    world.start("live")
    joiner = world.add("joiner", names=(DnsName("managers"),))
    world.start("joiner")
    assert joiner.core.state is DiscoveryState.RESOLVING
    world.run(0.1)
    assert joiner.core.state is DiscoveryState.JOINED


def test_a_name_that_failed_is_not_asked_for_within_thirty_seconds() -> None:
    world = World()
    world.dns["managers"] = (0.01, "no such name")
    node_ = world.add("n", names=(DnsName("managers"),))
    world.start("n")
    world.run(29.0)
    assert node_.core.rounds > 4
    assert world.lookups["managers"] == 1
    assert node_.core.counts["lookups_cached_failure"] == node_.core.rounds - 1
    world.run(60.0)
    assert world.lookups["managers"] == 2


def test_a_name_is_asked_for_again_after_five_seconds_not_before() -> None:
    world = World()
    world.dns["managers"] = (0.01, list(dead(1)))
    world.add("n", names=(DnsName("managers"),))
    world.start("n")
    world.run(4.9)
    assert world.lookups["managers"] == 1
    world.run(12.0)
    assert world.lookups["managers"] >= 2


def test_dns_that_never_answers_does_not_stop_the_rounds() -> None:
    world = World()
    world.dns["slow"] = (1e9, [])
    node_ = world.add("n", names=(DnsName("slow"),))
    world.start("n")
    world.run(2.5)
    assert node_.formed_at == pytest.approx(2.0)
    assert node_.core.state is DiscoveryState.BACKOFF


def test_a_seed_that_dns_names_as_well_is_asked_once() -> None:
    world = World()
    world.dns["managers"] = (0.005, list(places("dead0")))
    node_ = world.add("n", seeds=dead(1), names=(DnsName("managers"),))
    world.start("n")
    world.run(0.6)
    assert [address for _, address in node_.asked] == list(dead(1))


def test_more_candidates_than_probes_go_in_waves() -> None:
    world = World()
    world.add("live")
    world.start("live")
    joiner = world.add("joiner", seeds=(*dead(25), *places("live")))
    world.start("joiner")
    world.run(2.0)
    assert joiner.in_flight_max == 10
    joined_at, _ = joiner.found[0]
    assert joined_at == pytest.approx(1.02)


def test_the_cache_is_asked_before_the_seeds() -> None:
    world = World()
    node_ = world.add("n", seeds=dead(12))
    node_.cache.record_success(0.0, ("cached", 9_000))
    world.start("n")
    assert node_.asked[0] == (0.0, ("cached", 9_000))


def test_what_is_saved_helps_the_next_start() -> None:
    world = World()
    world.add("live")
    world.start("live")
    joiner = world.add("joiner", seeds=places("live"))
    world.start("joiner")
    world.run(1.0)
    again = world.add("again")
    again.cache.load(world.now, joiner.saved)
    world.start("again")
    world.run(2.0)
    assert again.core.state is DiscoveryState.JOINED


@pytest.mark.parametrize(
    ("stranger", "words"),
    [
        (introduce("x", cluster="other"), "expected cluster 'c', received 'other'"),
        (introduce("x", env="staging"), "expected environment 'prod', received 'staging'"),
        (introduce("x", role="worker"), "it is a worker, not a manager"),
    ],
)
def test_strangers_are_no_peers_and_the_reason_is_told(stranger: object, words: str) -> None:
    assert isinstance(stranger, type(introduce("x")))
    core = Discovery(
        introduce("n"),
        DiscoverySettings(
            seeds=places("x"), peer_roles=("manager",), forms_cluster=False, deadline_s=1.0
        ),
        Random(1),
    )
    core.start(0.0)
    answer = ProbeAnswer(stranger.cluster_id, stranger.environment_id, stranger.node)
    told = core.answered(0.1, ("x", 9_000), answer)
    assert Unusable(("x", 9_000), words) in told
    assert core.state is DiscoveryState.BACKOFF
    assert words in str(core.tick(1.0))


def test_a_worker_gives_up_at_its_deadline_and_says_why() -> None:
    world = World()
    world.refusing.add(("down", 9_000))
    worker = world.add(
        "w",
        role="worker",
        seeds=places("down"),
        names=(DnsName("managers"),),
        deadline_s=5.0,
    )
    world.start("w")
    world.run(100.0)
    assert worker.formed_at is None
    assert worker.gave_up is not None
    at, reason = worker.gave_up
    assert at == pytest.approx(5.0)
    assert reason == (
        "no manager answered within 5 s "
        "(down:9000: refused the connection; managers:9000: no such name)"
    )
    assert worker.core.state is DiscoveryState.FAILED
    assert worker.core.tick(200.0) == []
    world.start("w")
    assert worker.core.state is DiscoveryState.PROBING, "it may be started again"


def test_a_worker_without_a_deadline_waits() -> None:
    world = World()
    worker = world.add("w", role="worker", seeds=places("m"))
    world.start("w")
    world.run(500.0)
    world.add("m")
    world.start("m")
    world.run(520.0)
    assert {peer for _, peer in worker.found} == {"m"}
    assert world.nodes["m"].found == [], "a worker is no peer for a manager"


@pytest.mark.parametrize("order", list(permutations(["a", "b", "c"])))
@pytest.mark.parametrize("gap_s", [0.0, 0.3, 20.0])
def test_any_order_of_starting_ends_in_one_group(order: tuple[str, ...], gap_s: float) -> None:
    world = World()
    for name in order:
        world.add(name, seeds=places("a", "b", "c"))
    for position, name in enumerate(order):
        world.at(position * gap_s, world.start, name)
    world.run(3 * gap_s + 20.0)
    assert groups(world) == [{"a", "b", "c"}]
    assert all(member.core.state is DiscoveryState.JOINED for member in world.nodes.values())


@pytest.mark.parametrize("seed", range(20))
def test_pairs_that_joined_apart_meet_at_a_refresh(seed: int) -> None:
    world = World(seed)
    names = [f"n{number}" for number in range(8)]
    for name in names:
        world.add(name, seeds=(*dead(2), *places(*world.dice.sample(names[:4], 3))))
        world.at(world.dice.uniform(0.0, 2.0), world.start, name)
    world.run(30.0)
    assert [len(group) for group in groups(world)] == [8]


def test_members_are_not_asked_again() -> None:
    world = World()
    world.add("live")
    world.start("live")
    joiner = world.add("joiner", seeds=places("live"))
    world.start("joiner")
    world.run(0.5)
    joiner.core.members_are({"live", "joiner"})
    world.run(600.0)
    assert len(joiner.asked) == 1
    joiner.core.members_are({"joiner"})
    world.run(700.0)
    assert len(joiner.asked) >= 2


def test_late_and_repeated_answers_change_nothing() -> None:
    core = Discovery(
        introduce("n"),
        DiscoverySettings(seeds=places("a", "b"), peer_roles=("manager",), forms_cluster=True),
        Random(1),
    )
    core.start(0.0)
    answer = ProbeAnswer("c", "prod", node("a"))
    assert core.answered(0.1, ("a", 9_000), answer)
    assert core.answered(0.1, ("a", 9_000), answer) == []
    assert core.unanswered(0.2, ("b", 9_000), "late") == []
    assert core.unresolved(0.2, DnsName("never asked"), "late") == []
    assert core.state is DiscoveryState.JOINED


def test_every_move_is_in_the_table() -> None:
    reached = {target for row in TRANSITIONS.values() for target in row.values()}
    assert reached == set(DiscoveryState) - {DiscoveryState.INITIAL}
    moves = [(s, t) for s, t in product(DiscoveryState, DiscoveryTrigger) if t in TRANSITIONS[s]]
    assert len(moves) == 12


@pytest.mark.parametrize(
    "wrong",
    [
        {"probe_timeout_s": 0.0},
        {"peer_roles": ()},
        {"forms_cluster": False},
        {"deadline_s": 0.0},
        {"backoff_max_s": 0.1},
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, object]) -> None:
    config: dict[str, object] = {"peer_roles": ("manager",), "forms_cluster": True} | wrong
    with pytest.raises(ValueError, match=r"must|needs"):
        DiscoverySettings(**config)  # type: ignore[arg-type]
