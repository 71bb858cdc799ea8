"""Whatever is asked for: nothing is lost, nothing doubled, no batch exceeds the pool."""

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.placement.provision import RANK, Wanted, core_range, partition


@given(
    st.lists(st.tuples(st.sampled_from(sorted(RANK)), st.booleans()), max_size=12),
    st.integers(1, 64),
)
def test_partition(kinds: list[tuple[str, bool]], pool: int) -> None:
    wanted = [Wanted(f"w{i}", priority, test) for i, (priority, test) in enumerate(kinds)]
    by_name = {w.name: w for w in wanted}
    batches = partition(wanted, pool)
    assert sorted(share.name for batch in batches for share in batch) == sorted(by_name)
    for batch in batches:
        assert 0 < sum(share.cores for share in batch) <= pool
        alone = len(batch) == 1
        for share in batch:
            wish = by_name[share.name]
            if not wish.is_test:
                assert share.cores == 1
                continue
            least, most = core_range(wish.priority, pool)
            reserved = sum(1 for s in batch if not by_name[s.name].is_test)
            assert min(least, pool - reserved) <= share.cores <= most
            assert wish.priority != "exclusive" or alone
