"""Laws of the workload's pure parts, whatever the input."""

from __future__ import annotations

import math
import string
from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

from hypothesis import assume, given
from hypothesis import strategies as st

from hyperscale.errors import BadInput
from hyperscale.workload.data import feed
from hyperscale.workload.durations import format_duration, parse_duration
from hyperscale.workload.graph import find_cycle, layers, stages
from hyperscale.workload.load import (
    ArrivalRate,
    ClosedVUs,
    PerVUIterations,
    RampingRate,
    RampingVUs,
    ShapedVUs,
    SharedIterations,
    Stage,
    split,
)
from hyperscale.workload.mix import share
from hyperscale.workload.threshold_scopes import Names, bind
from hyperscale.workload.thresholds import parse_threshold

cores = st.integers(1, 64)
vus = st.integers(1, 100_000)
names = st.text(string.ascii_lowercase, min_size=1, max_size=3)


T = TypeVar("T")


def result_or_refusal(call: Callable[[], T]) -> T | BadInput:
    try:
        return call()
    except BadInput as error:
        return error


@st.composite
def acyclic_graphs(draw: st.DrawFn) -> dict[str, tuple[str, ...]]:
    nodes = draw(st.lists(names, unique=True, max_size=12))
    waits = {
        node: tuple(draw(st.lists(st.sampled_from(nodes[:index]), unique=True))) if index else ()
        for index, node in enumerate(nodes)
    }
    order = draw(st.permutations(nodes))
    return {node: waits[node] for node in order}


@given(acyclic_graphs())
def test_layers_put_every_node_right_after_its_deepest_dependency(
    graph: dict[str, tuple[str, ...]],
) -> None:
    assert find_cycle(graph) is None
    depth = {node: number for number, layer in enumerate(layers(graph)) for node in layer}
    assert depth.keys() == graph.keys()
    for node, dependencies in graph.items():
        assert depth[node] == max((depth[name] + 1 for name in dependencies), default=0)


@given(acyclic_graphs())
def test_stages_run_everything_once_and_nothing_early(graph: dict[str, tuple[str, ...]]) -> None:
    done: set[str] = set()
    for stage in stages(graph):
        assert all(set(graph[node]) <= done for node in stage)
        assert len(stage) == 1 or all(graph[node] for node in stage)
        assert not done & set(stage)
        done |= set(stage)
    assert done == set(graph)


@given(st.dictionaries(names, st.lists(names, max_size=3), max_size=12))
def test_a_cycle_that_is_found_is_one(graph: dict[str, list[str]]) -> None:
    cycle = find_cycle(graph)
    if cycle is None:
        known = {node: [name for name in waits if name in graph] for node, waits in graph.items()}
        assert sum(map(len, layers(known))) == len(graph)
    else:
        assert cycle[0] == cycle[-1]
        assert all(after in graph[node] for node, after in pairwise(cycle))


@given(vus, cores)
def test_shares_of_users_add_up(users: int, count: int) -> None:
    shares = split(ClosedVUs(users, 1), count)
    assert len(shares) == min(users, count)
    assert sum(share.peak_vus for share in shares) == users
    assert all(share.peak_vus >= 1 for share in shares)
    per_vu = split(PerVUIterations(users, 7), count)
    assert sum(share.planned_iterations or 0 for share in per_vu) == users * 7


@given(vus, st.integers(1, 10**9), cores)
def test_shares_of_iterations_add_up(users: int, iterations: int, count: int) -> None:
    shares = split(SharedIterations(users, iterations), count)
    assert sum(share.planned_iterations or 0 for share in shares) == iterations
    assert sum(share.peak_vus for share in shares) == min(users, iterations)
    assert all((share.planned_iterations or 0) >= share.peak_vus >= 1 for share in shares)


stage_lists = st.lists(
    st.builds(Stage, st.integers(0, 20).map(float), st.integers(0, 50).map(float)),
    min_size=1,
    max_size=4,
)


@given(stage_lists, st.integers(0, 50), cores)
def test_ramps_meet_at_the_end_of_every_stage(plan: list[Stage], start: int, count: int) -> None:
    assume(sum(stage.duration_s for stage in plan) > 0)
    assume(max(start, *(stage.target for stage in plan)) >= 1)
    load = RampingVUs(tuple(plan), start)
    shares = [share for share in split(load, count) if isinstance(share, RampingVUs)]
    elapsed = 0.0
    for stage in plan:
        elapsed += stage.duration_s
        assert sum(share.vus_at(elapsed) for share in shares) == load.vus_at(elapsed)
        assert load.vus_at(elapsed) <= load.peak_vus


@given(stage_lists, st.integers(0, 50), st.integers(1, 8))
def test_shares_of_a_rate_are_one_schedule(plan: list[Stage], start: int, count: int) -> None:
    assume(sum(stage.duration_s for stage in plan) > 0)
    assume(max(start, *(stage.target for stage in plan)) >= 1)
    whole = RampingRate(tuple(plan), 100, start=float(start))
    shares = [share for share in split(whole, count) if isinstance(share, RampingRate)]
    expected = list(whole.arrivals())
    found = sorted(due for share in shares for due in share.arrivals())
    assert len(found) == len(expected)
    assert all(math.isclose(a, b, abs_tol=1e-6) for a, b in zip(expected, found, strict=True))
    assert expected == sorted(expected)
    assert all(0 <= due <= (whole.planned_seconds or 0) for due in expected)


@given(st.floats(0.1, 500), st.floats(0.1, 20), st.integers(1, 8), st.integers(1, 5))
def test_shares_of_shares_are_still_one_schedule(
    rate: float, seconds: float, machines: int, count: int
) -> None:
    whole = ArrivalRate(rate, seconds, 1000)
    shares = [core for machine in split(whole, machines) for core in split(machine, count)]
    found = sorted(
        due for share in shares if isinstance(share, ArrivalRate) for due in share.arrivals()
    )
    expected = list(whole.arrivals())
    assert len(found) == len(expected)
    assert all(math.isclose(a, b, abs_tol=1e-6) for a, b in zip(expected, found, strict=True))
    assert sum(share.peak_vus for share in shares) == 1000


@given(st.integers(0, 10**10))
def test_durations_come_back(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert math.isclose(parse_duration(format_duration(seconds)), seconds, abs_tol=1e-6)


@given(st.text(string.ascii_lowercase + string.digits + ". ", max_size=12))
def test_a_duration_is_read_or_refused(text: str) -> None:
    outcome = result_or_refusal(lambda: parse_duration(text))
    if isinstance(outcome, BadInput):
        assert repr(text) in outcome.message
    else:
        assert outcome >= 0


threshold_words = st.sampled_from(
    [
        *("p(95)", "p(", "avg", "rate", "count", "login", "http_reqs", "checks{login}", ":", "<"),
        *(">=", "5", "0.01", "ms", "%", "for", "10s", "abort", "after", " ", "{", "}", "p(999)"),
    ]
)
NAMES = Names("Shop", ("login",), ("ok",), {"sold": "count"})


@given(st.one_of(st.text(max_size=30), st.lists(threshold_words, max_size=12).map("".join)))
def test_a_threshold_is_understood_or_refused(text: str) -> None:
    outcome = result_or_refusal(lambda: bind(parse_threshold(text), NAMES))
    if isinstance(outcome, BadInput):
        assert outcome.hint
    else:
        assert outcome.metric
        assert isinstance(outcome.holds(1.0), bool)


@given(st.lists(st.integers(), min_size=1, max_size=50), st.integers(1, 9), st.integers(0, 5))
def test_every_row_goes_to_one_core(rows: list[int], count: int, seed: int) -> None:
    for order in ("sequential", "shuffle"):
        numbered = list(enumerate(rows))
        source = feed(numbered, when_done="stop", order=order).read()  # type: ignore[arg-type]
        dealt = [row for core in range(count) for row in source.rows_for(core, count, seed)]
        assert sorted(dealt) == numbered


weights = st.lists(st.one_of(st.integers(1, 1000), st.floats(0.01, 1000)), min_size=1, max_size=12)


@given(vus, weights)
def test_shares_of_a_mix_are_exact_and_in_proportion(total: int, parts: list[float]) -> None:
    shares = share(total, parts)
    assert shares == share(total, list(parts))
    assert min(shares) >= 1
    if total < len(parts):
        assert shares == [1] * len(parts)
        return
    assert sum(shares) == total
    # Those too light for one user get one; the others share what is left within one user.
    heavy = [number for number, users in enumerate(shares) if users > 1]
    left = sum(shares[number] for number in heavy)
    together = math.fsum(parts[number] for number in heavy)
    for number in heavy:
        quota = left * parts[number] / together
        assert abs(shares[number] - quota) <= 1 + 1e-9 * quota
    for one, other in zip(range(len(parts)), range(1, len(parts)), strict=False):
        if parts[one] > parts[other]:
            assert shares[one] >= shares[other]


@given(cores, vus, st.lists(st.integers(0, 200_000), max_size=5))
def test_shares_of_a_shape_add_up_and_no_user_moves(
    several: int, most: int, levels: list[int]
) -> None:
    shares = [share for share in split(ShapedVUs(most), several) if isinstance(share, ShapedVUs)]
    for level in levels:
        parts = [share.vus_of(level) for share in shares]
        assert sum(parts) == min(level, most)
        more = [share.vus_of(level + 1) for share in shares]
        assert all(one <= other for one, other in zip(parts, more, strict=True))
    assert [share.peak_vus for share in shares] == [share.vus_of(most) for share in shares]


@given(cores, vus, st.floats(0.1, 1e6))
def test_a_cap_of_requests_is_shared_by_the_cores(several: int, users: int, rps: float) -> None:
    shares = split(ClosedVUs(users, 10, rps=rps), several)
    assert math.isclose(math.fsum(share.rps for share in shares), rps)
    assert all(share.rps == 0 for share in split(ClosedVUs(users, 10), several))


@given(
    st.floats(0.1, 500),
    st.floats(0.5, 20),
    st.floats(0, 1),
    st.floats(0.1, 10),
    st.floats(0, 0.99),
)
def test_a_changed_rate_neither_loses_nor_repeats_an_arrival(
    rate: float, seconds: float, moment: float, factor: float, phase: float
) -> None:
    load, at_s = ArrivalRate(rate, seconds, 1000, phase=phase), moment * seconds
    before = [due for due in load.arrivals() if due < at_s]
    begun = before + list(load.at_rate(factor, at_s).arrivals(at_s))
    # Counted in intervals of the rate there was, one arrival is one interval after the other.
    intervals = [
        rate * due if due < at_s else rate * at_s + factor * rate * (due - at_s) for due in begun
    ]
    assert all(abs(b - a - 1) < 1e-6 for a, b in pairwise(intervals))
    planned = rate * at_s + factor * rate * (seconds - at_s) - phase
    assert abs(len(begun) - planned) <= 1 + 1e-6
