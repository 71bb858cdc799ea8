"""How often programs are told of progress, by law: never too often, nothing left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.nodes.client.pacing import BURST, PER_SECOND, Pacing
from hyperscale.nodes.client.pushes import StepStats, WindowedStatsPush


def push(workflow: str, at_s: float, completed: int, failed: int = 0) -> WindowedStatsPush:
    return WindowedStatsPush(
        job_id="j",
        workflow_id=workflow,
        workflow_name=workflow,
        window_start=at_s - 0.1,
        window_end=at_s,
        completed_count=completed,
        failed_count=failed,
        step_stats=(
            StepStats(
                step_name="get",
                completed_count=completed,
                failed_count=failed,
                total_count=completed + failed,
            ),
        ),
        total_completed=completed,
    )


@given(
    st.lists(
        st.tuples(st.sampled_from("ABC"), st.floats(0, 0.2), st.integers(0, 100)), max_size=200
    )
)
def test_nothing_is_left_out_and_nothing_comes_too_often(
    offers: list[tuple[str, float, int]],
) -> None:
    pacing = Pacing()
    now, told = 0.0, []
    for workflow, pause_s, completed in offers:
        now += pause_s
        pacing.offer(push(workflow, now, completed))
        while (one := pacing.take(now)) is not None:
            told.append((now, one))
    for start, _ in told:
        within = [at for at, _ in told if start <= at < start + 1.0]
        assert len(within) <= BURST + PER_SECOND + 1
    rest = [*(one for _, one in told), *pacing.rest()]
    for workflow in "ABC":
        offered = sum(count for name, _, count in offers if name == workflow)
        assert sum(one.completed_count for one in rest if one.workflow_id == workflow) == offered
        steps = [one.step_stats[0].total_count for one in rest if one.workflow_id == workflow]
        assert sum(steps) == offered
    assert len(pacing) == 0


def test_windows_that_wait_are_put_together_and_the_latest_totals_count() -> None:
    pacing = Pacing(per_second=1, burst=1)
    pacing.offer(push("A", 0.1, 5))
    assert pacing.take(0.0) is not None
    pacing.offer(push("A", 0.2, 10, failed=2))
    pacing.offer(push("A", 0.3, 20))
    assert pacing.take(0.5) is None
    assert pacing.wait_s(0.5) == 0.5
    joined = pacing.take(1.0)
    assert joined is not None
    assert (joined.completed_count, joined.failed_count, joined.total_completed) == (30, 2, 20)
    assert (joined.window_start, joined.window_end) == (0.1, 0.3)
    assert joined.step_stats[0].total_count == 32
    assert pacing.wait_s(1.0) is None


def test_the_last_of_a_workflow_is_given_at_once() -> None:
    pacing = Pacing(per_second=1, burst=1)
    pacing.offer(push("A", 0.1, 1))
    pacing.offer(push("B", 0.1, 2))
    assert pacing.take(0.0) is not None
    assert pacing.take(0.0) is None
    last = pacing.last("B")
    assert last is not None
    assert last.completed_count == 2
    assert pacing.last("B") is None


def test_those_who_wait_longest_are_told_first() -> None:
    pacing = Pacing(per_second=10, burst=1)
    for workflow in "BAC":
        pacing.offer(push(workflow, 0.1, 1))
    told = [pacing.take(now / 10) for now in range(3)]
    assert [one.workflow_id for one in told if one is not None] == ["B", "A", "C"]
