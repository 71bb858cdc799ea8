"""What workflows come to together, though they begin and end at different times.

A rate is a total over the time in which a test ran; users are counted where they were there at the
same time. Workflows that are no tests measure nothing and count for nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hyperscale.metrics.results import GeneratorCost, Results, WorkflowResult

# Loads that end together end within this time of one another.
LAST_S = 0.25


def load_seconds(results: Results) -> float:
    """Seconds in which at least one test ran."""
    return covered((w.started_s, w.elapsed_s) for w in _tests(results))


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one of them lasted, given when each began and how long it was."""
    total_s = until_s = 0.0
    for began_s, lasted_s in sorted(spans):
        total_s += max(0.0, began_s + lasted_s - max(began_s, until_s))
        until_s = max(until_s, began_s + lasted_s)
    return total_s


def per_second(total: float, results: Results) -> float:
    seconds = load_seconds(results)
    return total / seconds if seconds else 0.0


def vus(results: Results) -> int:
    """Users now; after the end, those who were there last."""
    tests = _tests(results)
    end_s = max((_ended_s(w) for w in tests), default=0.0)
    last = [w for w in tests if _ended_s(w) > end_s - LAST_S]
    return sum(w.vus for w in tests) or sum(
        next((point.vus for point in reversed(w.series) if point.vus), 0) for w in last
    )


def vus_max(results: Results) -> int:
    """The most users there were at the same time."""
    tests = _tests(results)
    changes = sorted(change for workflow in tests for change in _changes(workflow))
    most = users = 0
    for _, change in changes:
        users += change
        most = max(most, users)
    # Users who came and went between two reports are on no timeline.
    return max([most, *(w.vus_max for w in tests)])


def cores(results: Results) -> int:
    """Generator processes that made load; one that workflows shared counts once."""
    distinct = len({use.core for use in results.core_use})
    return distinct or sum(w.cores for w in results.workflows)


def generator_cost(results: Results) -> GeneratorCost:
    tests = _tests(results)
    cpu_s = sum(w.cpu_seconds for w in tests)
    if not cpu_s:
        return GeneratorCost()
    return GeneratorCost(
        cpu_seconds=cpu_s,
        cores=per_second(cpu_s, results),
        requests_per_cpu_second=sum(w.requests for w in tests) / cpu_s,
    )


def _tests(results: Results) -> list[WorkflowResult]:
    return [w for w in results.workflows if w.is_test]


def _ended_s(workflow: WorkflowResult) -> float:
    return workflow.started_s + workflow.elapsed_s


def _changes(workflow: WorkflowResult) -> Iterator[tuple[float, int]]:
    """By how many users it changed, and when; those that leave come before those that join."""
    if not workflow.series:
        yield workflow.started_s, workflow.vus_max
        yield _ended_s(workflow), -workflow.vus_max
        return
    before = 0
    for point in workflow.series:
        yield workflow.started_s + point.at_s, point.vus - before
        before = point.vus
    last = workflow.series[-1]
    yield workflow.started_s + last.at_s + last.width_s, -before
