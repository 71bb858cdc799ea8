"""Laws of placement: minimal movement, agreement whatever the order, no repetition."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.cluster.placement.rendezvous import rank, score
from hyperscale.cluster.placement.ring import HashRing

NODES = st.sets(st.sampled_from([f"10.0.0.{i}:80" for i in range(12)]), min_size=1, max_size=8)
KEYS = [f"job-{i}" for i in range(60)]


@settings(max_examples=50)
@given(NODES, st.sampled_from([f"10.0.1.{i}:80" for i in range(5)]))
def test_a_new_node_only_takes_and_a_leaving_one_only_gives(nodes: set[str], new: str) -> None:
    ring = HashRing(nodes)
    before = {key: ring.owner(key) for key in KEYS}
    ring.add(new)
    with_new = {key: ring.owner(key) for key in KEYS}
    assert all(with_new[key] in (before[key], new) for key in KEYS)
    ring.remove(new)
    assert {key: ring.owner(key) for key in KEYS} == before


@settings(max_examples=50)
@given(st.permutations(sorted(f"g{i}" for i in range(6))))
def test_the_order_of_joining_does_not_matter(nodes: list[str]) -> None:
    grown = HashRing()
    for node in nodes:
        grown.add(node)
    given_all = HashRing(nodes)
    assert [grown.owners(k, 3) for k in KEYS] == [given_all.owners(k, 3) for k in KEYS]


@given(NODES, st.integers(1, 12), st.text(max_size=20))
def test_owners_are_distinct_and_as_many_as_possible(nodes: set[str], count: int, key: str) -> None:
    owners = HashRing(nodes, points_per_node=10).owners(key, count)
    assert len(owners) == len(set(owners)) == min(count, len(nodes))
    assert set(owners) <= nodes


@given(NODES, st.text(max_size=20))
def test_removing_a_peer_moves_only_its_users(nodes: set[str], key: str) -> None:
    weights = dict.fromkeys(nodes, 1.0)
    ranked = rank(weights, key)
    assert sorted(ranked) == sorted(nodes)
    for gone in nodes:
        rest = rank({n: w for n, w in weights.items() if n != gone}, key)
        assert rest == [n for n in ranked if n != gone]


@given(st.text(max_size=10), st.text(max_size=10), st.floats(0.1, 1.0), st.floats(0.1, 1.0))
def test_more_weight_never_lowers_a_score(node: str, key: str, a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert 0 <= score(node, key, low) <= score(node, key, high)
