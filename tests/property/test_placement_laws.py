"""Laws of rendezvous placement: who leaves moves only its own, more weight never loses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.placement.rendezvous import rank, score

NODES = st.sets(st.sampled_from([f"10.0.0.{i}:80" for i in range(12)]), min_size=1, max_size=8)


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
