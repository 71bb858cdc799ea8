"""The queue against a naive model: a list of dictionaries, sorted anew for every claim.

The model knows the specification and none of the code; it is run with random operations beside a
store, and after each of them both must give the same answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.scheduler.instants import SECOND
from hyperscale.scheduler.queue.history import Outcome
from hyperscale.scheduler.queue.job import Failure, JobState, new_job
from hyperscale.scheduler.queue.reports import (
    Accepted,
    Beat,
    Completed,
    Failed,
    Refused,
    Released,
    Report,
    Started,
)
from hyperscale.scheduler.queue.spec import JobSpec, RetryPolicy
from hyperscale.scheduler.store.memory import MemoryGround
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import Claim, Submission

LEASE = 30 * SECOND
CAPABILITIES = ("cpu", "gpu", "net")
ENDS = ("COMPLETED", "FAILED", "CANCELLED")

small = st.integers(0, 11)
operations = st.one_of(
    st.tuples(
        st.just("submit"), st.integers(0, 3), st.integers(-20, 40), st.sets(st.integers(0, 2))
    ),
    st.tuples(st.just("claim"), small, st.integers(1, 4), st.sets(st.integers(0, 2))),
    st.tuples(st.sampled_from(["start", "beat", "complete", "fail", "end", "release"]), small),
    st.tuples(st.just("cancel"), small),
    st.tuples(st.just("expire")),
    st.tuples(st.just("wait"), st.integers(1, 60)),
)


class Model:
    """Names of states and reports; times in microseconds."""

    def __init__(self) -> None:
        self.jobs: list[dict[str, Any]] = []
        self.claims: list[tuple[str, str, int]] = []

    def submit(self, now: int, priority: int, due: int, needs: set[str]) -> None:
        self.jobs.append(
            {
                "id": f"j{len(self.jobs):03}",
                "order": priority,
                "due": due,
                "created": now,
                "needs": needs,
                "state": "PENDING",
                "retries": 0,
                "lost": 0,
                "avoid": ("", 0),
                "asked": False,
            }
        )

    def claim(self, now: int, worker: str, limit: int, offers: set[str]) -> list[str]:
        can = [
            job
            for job in self.jobs
            if job["state"] == "PENDING"
            and job["due"] <= now
            and job["needs"] <= offers
            and not (job["avoid"][0] == worker and now < job["due"] + 10 * SECOND)
        ]
        can.sort(key=lambda job: (job["order"], job["due"], job["created"], job["id"]))
        for job in can[:limit]:
            job.update(state="CLAIMED", worker=worker, until=now + LEASE)
        return [job["id"] for job in can[:limit]]

    def report(self, now: int, job: dict[str, Any], kind: str) -> None:
        if kind == "start" and job["state"] == "CLAIMED":
            job.update(state="EXECUTING", until=now + LEASE)
        elif kind == "beat":
            job.update(until=now + LEASE)
        elif kind == "complete":
            job.update(state="COMPLETED")
        elif job["asked"] and kind != "start":
            job.update(state="CANCELLED")
        elif kind == "release":
            job.update(state="PENDING", avoid=("", 0))
        elif kind == "end":
            job.update(state="FAILED")
        elif kind == "fail":
            self.again(now, job, avoid="")

    def again(self, now: int, job: dict[str, Any], avoid: str) -> None:
        if job["retries"] == 2:
            job.update(state="FAILED")
            return
        delay = (2, 4)[job["retries"]]
        job.update(
            state="PENDING",
            retries=job["retries"] + 1,
            due=now + delay * SECOND,
            avoid=(avoid, 0),
        )

    def expire(self, now: int) -> list[str]:
        lost = [
            job
            for job in self.jobs
            if job["state"] in ("CLAIMED", "EXECUTING") and job["until"] <= now
        ]
        for job in lost:
            if job["state"] == "CLAIMED":
                job["lost"] += 1
                state = "FAILED" if job["lost"] == 10 else "PENDING"
                job.update(state=state, avoid=(job["worker"], 0))
            elif job["asked"]:
                job.update(state="CANCELLED")
            else:
                self.again(now, job, avoid=job["worker"])
        return sorted(job["id"] for job in lost)


def report_of(kind: str, job_id: str, worker: str, token: int) -> Report:
    who: dict[str, Any] = {"job_id": job_id, "worker": worker, "token": token}
    lease_s = LEASE / SECOND
    if kind == "start":
        return Started(**who, lease_s=lease_s)
    if kind == "beat":
        return Beat(**who, lease_s=lease_s)
    if kind == "complete":
        return Completed(**who)
    if kind == "release":
        return Released(**who)
    return Failed(**who, failure=Failure.PERMANENT if kind == "end" else Failure.ERROR, error="x")


async def compare(store: Store, script: list[tuple[Any, ...]]) -> None:
    model = Model()
    now = 10**15
    tokens: list[int] = []
    for name, *rest in script:
        if name == "wait":
            now += rest[0] * SECOND
        elif name == "submit":
            priority, delay, needs = rest
            wanted = tuple(sorted(CAPABILITIES[i] for i in needs))
            spec = JobSpec(
                name="n",
                kind="k",
                priority=priority,
                capabilities=wanted,
                retry=RetryPolicy(max_retries=2, jitter=0.0),
            )
            due = now + delay * SECOND
            job = new_job(f"j{len(model.jobs):03}", spec, now, due_at=due)
            await store.submit(Submission(job=job), now)
            model.submit(now, priority, due, set(wanted))
        elif name == "claim":
            number, limit, offers = rest
            worker = f"w{number % 3}"
            offered = {CAPABILITIES[i] for i in offers}
            taken = await store.claim(
                Claim(
                    worker=worker,
                    limit=limit,
                    lease_s=LEASE / SECOND,
                    capabilities=tuple(offered),
                ),
                now,
            )
            assert [job.id for job in taken] == model.claim(now, worker, limit, offered)
            model.claims += [(job.id, worker, job.token) for job in taken]
            tokens += [job.token for job in taken]
        elif name == "expire":
            swept = await store.expire(now)
            assert sorted(job.id for job in swept) == model.expire(now)
        elif name == "cancel" and model.jobs:
            target = model.jobs[rest[0] % len(model.jobs)]
            if target["state"] in ("PENDING", "CLAIMED"):
                target["state"] = "CANCELLED"
            elif target["state"] == "EXECUTING":
                target["asked"] = True
            if target["state"] not in ("COMPLETED", "FAILED"):
                await store.cancel(target["id"], now)
        elif name not in ("cancel",) and model.claims:
            await compare_report(store, model, name, rest[0], now)
        await compare_states(store, model)
    assert tokens == sorted(set(tokens))
    await every_token_has_one_end(store, model)


async def compare_report(store: Store, model: Model, name: str, which: int, now: int) -> None:
    job_id, worker, token = model.claims[-1 - which % len(model.claims)]
    target = next(job for job in model.jobs if job["id"] == job_id)
    newest = max(t for j, _, t in model.claims if j == job_id)
    current = (
        token == newest
        and target["state"] in ("CLAIMED", "EXECUTING")
        and target["worker"] == worker
    )
    answer = await store.report(report_of(name, job_id, worker, token), now)
    if current and not (name == "complete" and target["state"] == "CLAIMED"):
        assert isinstance(answer, Accepted)
        model.report(now, target, name)
    else:
        assert isinstance(answer, Refused) or answer.repeated


async def compare_states(store: Store, model: Model) -> None:
    for expected in model.jobs:
        job = await store.job(expected["id"])
        assert job is not None
        assert job.state == expected["state"]
        assert job.retries == expected["retries"]
        if job.state is JobState.PENDING:
            assert job.due_at == expected["due"]
        if job.held:
            assert job.lease_until == expected["until"]
    counts = await store.counts()
    assert sum(counts.states.values()) == len(model.jobs)


async def every_token_has_one_end(store: Store, model: Model) -> None:
    for job_id in {claim[0] for claim in model.claims}:
        job = await store.job(job_id)
        assert job is not None
        given_out = [token for name, _, token in model.claims if name == job_id]
        held = [job.token] if job.held else []
        attempts = await store.attempts(job_id)
        assert sorted([attempt.token for attempt in attempts] + held) == given_out
        completions = [a for a in attempts if a.outcome is Outcome.COMPLETED]
        assert len(completions) == (job.state is JobState.COMPLETED)
    dead = {letter.id for letter in await store.letters()}
    assert dead == {job["id"] for job in model.jobs if job["state"] == "FAILED"}


@settings(max_examples=150, deadline=None)
@given(st.lists(operations, max_size=60))
def test_a_store_does_what_the_model_does(script: list[tuple[Any, ...]]) -> None:
    asyncio.run(compare(Store(MemoryGround()), script))
