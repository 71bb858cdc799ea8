"""Iterations of a part that goes on elsewhere: each is made once, however it is cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.jobs.iterations import Rest, planned_iterations
from hyperscale.cluster.jobs.records import Needs
from hyperscale.cluster.jobs.state import PartState, WorkflowState
from hyperscale.workload.load import Load, PerVUIterations, SharedIterations, split

LOADS = st.one_of(
    st.builds(SharedIterations, st.integers(1, 40), st.integers(1, 300)),
    st.builds(PerVUIterations, st.integers(1, 40), st.integers(1, 9)),
)


def needs_of(load: Load) -> Needs:
    planned = load.planned_iterations
    assert planned is not None
    users = min(load.peak_vus, planned)
    return Needs("Load", True, "auto", (), users, None, 60.0, iterations=planned)


@given(LOADS, st.integers(1, 16), st.data())
def test_cores_have_the_iterations_that_generators_are_told(
    load: Load, cores: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, cores - 1))
    last = data.draw(st.integers(first + 1, cores))
    told = sum(share.planned_iterations or 0 for share in split(load, cores)[first:last])
    assert planned_iterations(needs_of(load), cores, first, last - first) == told


@given(LOADS, st.integers(2, 16), st.data())
def test_pieces_make_what_is_left_and_none_more_than_its_own(
    load: Load, cores: int, data: st.DataObject
) -> None:
    needs = needs_of(load)
    workflow = WorkflowState(needs, 0, total_cores=cores)
    first = data.draw(st.integers(0, cores - 2))
    part = PartState(0, first, data.draw(st.integers(2, cores - first)))
    planned = planned_iterations(needs, cores, first, part.cores) or 0
    part.iterations_done = data.draw(st.integers(0, planned + 5))
    part.left_out = data.draw(st.integers(0, min(planned, part.iterations_done)))
    cuts = data.draw(st.sets(st.integers(first + 1, first + part.cores - 1), max_size=4))
    rest = Rest(workflow, part)
    left = 0
    for begin, end in pairwise([first, *sorted(cuts), first + part.cores]):
        done, left_out = rest.cut(begin, end - begin)
        own = planned_iterations(needs, cores, begin, end - begin) or 0
        assert 0 <= own - done + left_out <= own
        left += own - done + left_out
    assert rest.is_cut
    assert left == max(0, planned - part.iterations_done + part.left_out)
