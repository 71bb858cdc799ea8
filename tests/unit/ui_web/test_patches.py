"""What changed from one look to the next, put together, is all there is."""

from __future__ import annotations

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.metrics.histogram import Sparse, summarise
from hyperscale.metrics.results import Results
from hyperscale.ui.web.patches import Changes, Patch, Whole
from tests.unit.ui.sample import sample_results


def plain(patch: Patch) -> object:
    return msgspec.json.decode(msgspec.json.encode(patch))


def test_nothing_new_is_told_once() -> None:
    changes, results = Changes(), sample_results("running")
    first = changes.since(results)
    assert first.fresh
    assert set(first.points) == {workflow.name for workflow in results.workflows}
    assert not changes.since(results)


def test_only_what_changed_is_told_again() -> None:
    changes, results = Changes(), sample_results("running")
    changes.since(results)
    workflow = results.workflows[0]
    workflow.steps[1].count += 1
    workflow.series[-1] = msgspec.structs.replace(workflow.series[-1], requests=12_345)
    patch = changes.since(results)
    assert patch.steps.keys() == {workflow.name}
    assert patch.steps[workflow.name].keys() == {"1"}
    assert [*patch.points[workflow.name]] == [f"{workflow.series[-1].at_s:g}"]
    assert set(patch.set) == {"totals"}


def test_a_reader_that_comes_later_knows_the_same() -> None:
    changes, results, whole = Changes(), sample_results("running"), Whole()
    whole.add(changes.since(results))
    results.workflows[0].steps[0].count += 7
    del results.workflows[0].series[3]  # joined to a wider one
    whole.add(changes.since(results))
    assert plain(whole.patch()) == plain(Changes().since(results))


@settings(max_examples=15)  # each is thousands of points, told again and again
@given(st.lists(st.floats(0.2, 400.0), min_size=1, max_size=6))
def test_points_that_rest_are_never_told_twice_however_time_goes(waits: list[float]) -> None:
    """Over the borders at which seconds are joined to wider intervals."""
    aggregate, changes, whole, now_s = WorkflowAggregate("Shop", ["buy"]), Changes(), Whole(), 0.0
    for seq, wait in enumerate(waits, 1):
        now_s += wait
        aggregate.apply(0, _delta(seq), now_s)
        results = Results(workflows=[aggregate.freeze(buckets=False)])
        whole.add(changes.since(results))
        told = plain(whole.patch())
        assert told == plain(Changes().since(results))
    assert not changes.since(results).points


def _delta(seq: int) -> Delta:
    return Delta(
        seq=seq,
        vus=3,
        requests=[RequestDelta(RequestKey("buy", ""), count=2, service=_service())],
    )


def _service() -> Sparse | None:
    return summarise(np.array([0.01, 0.2]))


def test_what_a_target_said_stays_text() -> None:
    results = sample_results("running")
    errors = [error for w in results.workflows for step in w.steps for error in step.errors]
    errors[0].samples = ["</script><script>alert(1)</script>\n\n"]
    message = msgspec.json.encode(Changes().since(results))
    assert b"\n" not in message  # a line end would begin another event
