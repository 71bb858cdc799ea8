"""What is left of a job that is over, on a manager that saw it end and on one that did not."""

from __future__ import annotations

from hyperscale.cluster.jobs import records as job_records
from hyperscale.cluster.jobs.apply import apply
from hyperscale.cluster.jobs.state import JobState, ReplicatedState
from hyperscale.engine.messages import Stamped
from hyperscale.metrics.results import decode
from hyperscale.nodes.manager.condensing import CONDENSE, condensed
from hyperscale.nodes.protocol.jobs import AskResults, JobUpdate, WatchJob
from hyperscale.nodes.protocol.parts import DispatchPart, PartEnd
from tests.unit.nodes.manager.cases import state
from tests.unit.nodes.manager.lone_manager import LoneManager, play

LARGE = 300_000


def end_of(order: DispatchPart, **facts: object) -> PartEnd:
    known = {"outcome": "completed", "measured_s": 60.0, "state": state(7), "hint": "look here"}
    return PartEnd(part=order.part, fence=order.fence, worker="w1", **(known | facts))  # type: ignore[arg-type]


async def over(lone: LoneManager, **facts: object) -> JobState:
    """A job that ended, with a large context that nobody needs any more."""
    order = await lone.running()
    context = {"rows": Stamped(1, 0, b"x" * LARGE)}
    assert await lone.tell(end_of(order, context=context, **facts))
    job = lone.manager.jobs.job("j1")
    assert job is not None
    await lone.until(lambda: job.is_over)
    return job


def test_the_parts_of_a_job_that_is_over_take_no_room() -> None:
    async def story(lone: LoneManager) -> None:
        job = await over(lone)
        [part] = job.workflows["Shop"].parts.values()
        assert part.ended is not None
        assert len(part.ended.result) < 1_000
        assert lone.manager.records.status().bytes < LARGE // 10

    play(story)


def test_its_results_and_updates_are_there_all_the_same() -> None:
    async def story(lone: LoneManager) -> None:
        await over(lone)
        call = lone.call("ask.results", "client", "c1")
        told = await lone.client_api.results(call, AskResults(job_id="j1"))
        assert decode(told.results).requests == 7
        updates: list[JobUpdate] = [
            update async for update in lone.client_api.watch(call, WatchJob(job_id="j1"))
        ]
        assert updates[-1].final
        [done] = [one for update in updates for one in update.done]
        assert b'"requests":7' in done.result.replace(b" ", b"")
        assert done.hint == "look here"
        assert updates[0].outline is not None
        assert [facts.name for facts in updates[0].outline.workflows] == ["Shop"]

    play(story)


def test_a_manager_that_starts_anew_knows_the_same() -> None:
    async def story(lone: LoneManager) -> None:
        job = await over(lone)
        kept = lone.manager.records.records("j1")
        assert list(condensed(kept)) == list(kept)
        replicated = ReplicatedState(CONDENSE)
        for record in kept:
            apply(replicated, job_records.decode(record.payload))
        assert replicated.jobs["j1"] == job

    play(story)


def test_without_a_result_of_the_job_its_parts_keep_theirs() -> None:
    async def story(lone: LoneManager) -> None:
        lone.manager.merging._environment = None  # type: ignore[method-assign,assignment]
        job = await over(lone)
        assert job.finished is not None
        assert not job.finished.results
        assert lone.manager.records.status().bytes > LARGE

    play(story)
