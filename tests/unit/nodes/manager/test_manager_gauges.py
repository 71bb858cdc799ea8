"""A manager in numbers, and whether it says that it can do its work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from hyperscale.cluster.jobs.records import TimedOut
from hyperscale.nodes.manager import gauges
from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.manager.process import measured
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.member.metrics import Metric
from hyperscale.nodes.member.metrics_text import render
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.runtime.host import Address
from hyperscale.runtime.page_server import Health
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World
from tests.unit.nodes.manager.cases import delta, progress
from tests.unit.nodes.manager.lone_manager import LoneManager
from tests.unit.nodes.manager.lone_manager import play as play_alone

Story = Callable[[Manager], Coroutine[Any, Any, None]]


def play(story: Story, voters: tuple[str, ...] = ("m1",)) -> None:
    """One manager of those that should be there."""
    world, told = World(1), asyncio.Event()

    async def main(host: SimHost) -> None:
        here = Address(host.ip, 7_000)
        node = NodeSettings(
            id="m1", bind=here, data=Path("unused"), role="manager", voters=voters,
            plaintext="anywhere",
        )  # fmt: skip
        manager = measured(Manager(host, ManagerSettings(node=node)))
        assert manager.node.pages.ready() == Health(False, "it is starting")
        await manager.start()
        await host.clock.sleep(10.0)
        await story(manager)
        told.set()

    world.add("m1", main)
    try:
        world.run(asyncio.wait_for(told.wait(), 60.0))
        assert world.failures == []
    finally:
        world.close()


def families(manager: Manager) -> dict[str, Metric]:
    found = list(manager.node.pages.metrics())
    assert len({one.name for one in found}) == len(found)
    assert render(found)
    return {one.name: one for one in found}


def test_a_leader_without_workers_is_ready_and_says_so() -> None:
    async def story(manager: Manager) -> None:
        assert manager.node.pages.ready() == Health(True, "it leads, and no worker is here")
        told = families(manager)
        assert told["leading"].samples == {(): 1}
        assert set(told["jobs"].samples.values()) == {0.0}
        assert ("running",) in told["jobs"].samples
        assert told["records_voters_reachable"].samples == {(): 1}
        assert told["records_commit_lag"].samples == {(): 0}
        assert told["merge_lag_seconds"].samples == {(): 0.0}
        assert told["workers"].samples[("healthy",)] == 0.0

    play(story)


def test_a_manager_without_a_majority_is_not_ready() -> None:
    async def story(manager: Manager) -> None:
        health = manager.node.pages.ready()
        waits = "no leader: waiting for a majority of m1, m2, m3; m2 and m3 do not answer"
        assert health == Health(False, waits)
        assert families(manager)["leading"].samples == {(): 0}

    play(story, voters=("m1", "m2", "m3"))


def test_a_manager_at_its_end_is_not_ready() -> None:
    async def story(manager: Manager) -> None:
        manager.over.set()
        assert manager.node.pages.ready() == Health(False, "it is ending")

    play(story)


def test_pages_for_debugging_can_be_asked_for() -> None:
    async def story(manager: Manager) -> None:
        pages = manager.node.pages.pages
        assert pages["/debug/jobs"]() == []
        assert pages["/debug/workers"]() == []
        status: Any = pages["/debug/records"]()
        assert status.role == "leading"

    play(story)


def test_submissions_are_counted_by_their_answer() -> None:
    async def story(lone: LoneManager) -> None:
        assert (await lone.submit(job_id="j1", name="one")).accepted
        assert (await lone.submit(job_id="j1", name="one")).was_duplicate
        assert not (await lone.submit(job_id="j1", name="another")).accepted
        assert not (await lone.submit(job_id="")).accepted
        told = {one.name: one for one in gauges.metrics(lone.manager)}
        assert told["submissions_total"].samples == {
            ("accepted",): 1.0,
            ("repeated",): 1.0,
            ("refused",): 2.0,
        }

    play_alone(story)


def test_reports_are_counted_with_their_numbers() -> None:
    async def story(lone: LoneManager) -> None:
        order = await lone.running()
        lone.report(progress(order, 0.1, delta(1, 10), delta(2, 10)))
        lone.report(progress(order, 0.2, delta(3, 10)))
        assert not lone.report(incarnation=99).known
        told = {one.name: one for one in gauges.metrics(lone.manager)}
        assert told["progress_deltas_total"].samples == {(): 3}
        assert told["progress_reports_total"].samples == {
            ("taken",): 2.0,
            ("unknown worker",): 1.0,
            ("refused",): 0.0,
        }

    play_alone(story)


def test_every_stage_of_a_record_is_timed() -> None:
    async def story(lone: LoneManager) -> None:
        assert (await lone.submit(job_id="j1")).accepted
        await lone.until(lambda: lone.manager.records.stages.append.count > 0)
        told = {one.name: one for one in gauges.metrics(lone.manager)}
        stages = told["records_stage_seconds"].latencies
        assert {stage for (stage,) in stages} == {"sync", "quorum", "apply", "append"}
        assert all(one.count > 0 for one in stages.values())
        assert stages["append",].sum_s >= stages["quorum",].sum_s
        written = told["records_log_written_total"].samples
        assert written["records",] >= written["batches",] > 0
        assert render(gauges.metrics(lone.manager))

    play_alone(story)


def test_timeouts_are_counted_and_the_count_stays_when_the_job_is_forgotten() -> None:
    async def story(lone: LoneManager) -> None:
        await lone.running()
        job = lone.manager.jobs.jobs()[0]
        for record in (TimedOut(job.job_id, 1.0, "stuck"),):
            await lone.manager.job_log.append(record)
        told = {one.name: one for one in gauges.metrics(lone.manager)}
        counted = told["job_timeouts_detected_total"].samples
        assert counted == {("overall",): 0.0, ("stuck",): 1.0, ("held",): 0.0}
        assert told["job_timeout_checks_total"].samples[()] > 0
        await lone.manager.records.forget(job.job_id)
        again = {one.name: one for one in gauges.metrics(lone.manager)}
        assert again["job_timeouts_detected_total"].samples == counted

    play_alone(story)
