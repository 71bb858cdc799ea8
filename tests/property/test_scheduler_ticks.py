"""However leaders come and go and clocks jump, each tick is decided exactly once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hyperscale.scheduler.instants import SECOND
from hyperscale.scheduler.queue.job import Failure
from hyperscale.scheduler.queue.lifecycle import decide_retry
from hyperscale.scheduler.queue.spec import JobSpec, RetryPolicy
from hyperscale.scheduler.schedules.schedule import (
    Misfire,
    MisfirePolicy,
    Schedule,
    ScheduleDefinition,
)
from hyperscale.scheduler.schedules.ticks import plan


class Listed:
    def __init__(self, ticks: list[int]) -> None:
        self._ticks = sorted(ticks)

    def next(self, after: int) -> int | None:
        return next((tick for tick in self._ticks if tick > after), None)


@given(
    ticks=st.lists(st.integers(1, 2000), max_size=60, unique=True),
    looks=st.lists(st.integers(0, 2500), max_size=12),
    kind=st.sampled_from(Misfire),
    cap=st.integers(1, 5),
    grace=st.integers(0, 300),
)
def test_each_tick_is_run_or_missed_once(
    ticks: list[int], looks: list[int], kind: Misfire, cap: int, grace: int
) -> None:
    definition = ScheduleDefinition(
        name="s",
        job=JobSpec(name="n", kind="k"),
        cron="* * * * *",
        misfire=MisfirePolicy(kind=kind, cap=cap, grace_s=grace),
    )
    known = Schedule(id="s", definition=definition, created_at=0, updated_at=0, cursor=0)
    source = Listed([tick * SECOND for tick in ticks])
    run: list[int] = []
    missed = 0
    latest = 0
    for look in looks:
        now = look * SECOND
        latest = max(latest, now)
        made = plan(known, source, now)
        late = [tick for tick in made.run if tick < now - grace * SECOND]
        assert len(late) <= {Misfire.SKIP: 0, Misfire.RUN_ONCE: 1, Misfire.RUN_ALL: cap}[kind]
        assert all(tick <= now for tick in made.run)
        assert made.next_at == source.next(made.cursor)
        run += made.run
        missed += made.missed
        known = replace(known, cursor=made.cursor)
    assert run == sorted(set(run))
    assert len(run) + missed == sum(tick * SECOND <= latest for tick in ticks)


@given(
    policy=st.builds(
        RetryPolicy,
        max_retries=st.integers(0, 100),
        initial_s=st.floats(0, 100),
        factor=st.floats(1, 100),
        max_s=st.floats(100, 86_400),
        jitter=st.floats(0, 1),
    ),
    failure=st.sampled_from(Failure),
    retries=st.integers(0, 200),
    job_id=st.text(max_size=10),
)
def test_delays_stay_in_their_bounds(
    policy: RetryPolicy, failure: Failure, retries: int, job_id: str
) -> None:
    retry = decide_retry(policy, failure, retries, job_id)
    if retry is not None:
        assert retries < policy.max_retries
        assert 0 <= retry.delay_s <= max(1.0, policy.max_s * (1 + policy.jitter))
