"""What must be true of the jobs when everybody has calmed down, whatever happened before."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

from hyperscale.scheduler.instants import SECOND
from hyperscale.scheduler.queue.history import Attempt, Outcome
from hyperscale.scheduler.queue.job import Job, JobState
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import JobFilter

Run = tuple[str, int]


async def all_jobs(store: Store) -> dict[str, Job]:
    found: dict[str, Job] = {}
    cursor = ""
    while True:
        page = await store.jobs(JobFilter(), cursor, 500)
        found |= {job.id: job for job in page.jobs}
        cursor = page.cursor
        if not cursor:
            return found


def runs_in(journal: Path) -> tuple[Counter[Run], Counter[Run]]:
    """By job and token: the runs that began, and those that ended, as the jobs themselves say."""
    seen: dict[str, Counter[Run]] = {"began": Counter(), "ended": Counter()}
    for line in journal.read_text().splitlines():
        what, job_id, token = line.split()
        seen[what][job_id, int(token)] += 1
    return seen["began"], seen["ended"]


async def check_jobs(store: Store, acknowledged: list[str], journal: Path) -> dict[str, Job]:
    jobs = await all_jobs(store)
    assert set(acknowledged) <= set(jobs), "an acknowledged job is lost"
    assert all(job.ended for job in jobs.values())
    completed = sum(job.state is JobState.COMPLETED for job in jobs.values())
    assert completed > 0.99 * len(jobs)
    began, ended = runs_in(journal)
    assert set(began.values()) <= {1}, "a claim runs once"
    given: set[Run] = set()
    for job in jobs.values():
        attempts = await store.attempts(job.id)
        _check_history(job, attempts, began, ended)
        given |= {(job.id, attempt.token) for attempt in attempts}
    assert set(began) <= given, "a run that the history does not know"
    return jobs


def _check_history(
    job: Job, attempts: list[Attempt], began: Counter[Run], ended: Counter[Run]
) -> None:
    tokens = [attempt.token for attempt in attempts]
    assert tokens == sorted(set(tokens))
    completed = [attempt for attempt in attempts if attempt.outcome is Outcome.COMPLETED]
    assert len(completed) == (job.state is JobState.COMPLETED), attempts
    if completed:
        assert attempts[-1] is completed[0], "nothing happens to a job that is done"
        assert ended[job.id, completed[0].token], "reported done, and never ran to its end"
    for attempt in attempts:
        if began[job.id, attempt.token]:
            assert attempt.started_at is not None, "it ran, and the history denies it"
    for earlier, later in pairwise(attempts):
        assert earlier.ended_at <= later.claimed_at, "two held it at once"
    assert job.retries == sum(
        attempt.outcome in (Outcome.FAILED, Outcome.LOST) and attempt.started_at is not None
        for attempt in attempts[: -1 if job.state is JobState.FAILED else None]
    )


async def check_ticks(store: Store, schedule_id: str, jobs: dict[str, Job], at_least: int) -> None:
    """Of a schedule that ticks every second: each once, none missing, and counted so."""
    ticks = sorted(job.tick or 0 for job in jobs.values() if job.schedule_id == schedule_id)
    assert len(ticks) >= at_least
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks) * SECOND, SECOND))
    known = await store.schedule(schedule_id)
    assert known is not None
    assert (known.fired, known.missed, known.skipped) == (len(ticks), 0, 0)
