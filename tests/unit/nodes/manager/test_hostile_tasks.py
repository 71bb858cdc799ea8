"""What runs in the background of a manager goes on, or the manager ends: never silently."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.records import Part
from hyperscale.cluster.overload import LoadLevel
from hyperscale.errors import RunFailed
from hyperscale.ledger.records.entries import Entry
from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.metrics.histogram import Sparse
from hyperscale.nodes.manager.gauges import readiness
from hyperscale.nodes.manager.live import LiveWorkflow
from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.protocol.parts import DispatchPart, PartEnd
from tests.unit.nodes.manager.cases import delta, progress, state
from tests.unit.nodes.manager.lone_manager import LoneManager, play

TIMERS = {"jobs timer", "windows", "thresholds", "orphans"}


def strange_delta(seq: int) -> Delta:
    """Times in a bucket that no histogram has."""
    times = Sparse.of(buckets=[10**6], counts=[3], low=0.1, high=0.2, total=0.3, squares=0.1)
    return Delta(seq=seq, vus=1, requests=[RequestDelta(RequestKey("buy"), count=3, service=times)])


def test_times_that_cannot_be_do_not_end_what_others_see() -> None:
    async def story(lone: LoneManager) -> None:
        order = await lone.running()
        for seq in range(1, 40):
            with suppress(Exception):  # a refusal of any kind will do
                lone.report(progress(order, seq / 10, strange_delta(seq)))
            await lone.manager.host.clock.sleep(0.1)
        assert set(lone.manager.host.tasks.names()) >= TIMERS

    play(story)


def test_a_leader_that_cannot_take_over_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that stays, elected and silent, would keep the others from leading."""

    def broken(_manager: Manager) -> None:
        raise RuntimeError("a record that cannot be understood")

    async def story(lone: LoneManager) -> None:
        raise AssertionError("it leads")

    monkeypatch.setattr(Manager, "_recall_finished", broken)
    with pytest.raises(AssertionError, match="the manager is at its end"):
        play(story)


def end_of(order: DispatchPart) -> PartEnd:
    return PartEnd(
        part=order.part, fence=order.fence, worker="w1", outcome="completed", state=state(10)
    )


def test_a_record_that_cannot_be_taken_in_ends_neither_the_manager_nor_other_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(lone: LoneManager) -> None:
        manager = lone.manager

        def broken(_record: object) -> None:
            raise KeyError("a workflow")

        monkeypatch.setattr(manager, "_measured", broken)
        order = await lone.running()
        assert await lone.tell(end_of(order))
        await lone.until(lambda: manager.faults.count > 0)
        assert "PartEnded of j1" in manager.faults.last
        health = readiness(manager)
        assert health.ok
        assert "KeyError('a workflow')" in health.reason
        monkeypatch.undo()
        assert (await lone.submit(job_id="j2")).accepted

    play(story)


def test_one_effect_that_fails_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(lone: LoneManager) -> None:
        manager = lone.manager
        order = await lone.running()

        def broken(_effect: object) -> None:
            raise KeyError("a logger")

        monkeypatch.setattr(manager, "_tell", broken)
        assert await lone.tell(end_of(order))
        await lone.until(lambda: manager.jobs.job("j1").is_over)
        assert manager.faults.count > 0

    play(story)


def test_a_disk_that_fails_is_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(lone: LoneManager) -> None:
        def broken(_now: float, _record: object) -> None:
            raise OSError(5, "I/O error")

        monkeypatch.setattr(lone.manager.jobs, "applied", broken)
        with suppress(Exception):
            await lone.submit()
        await lone.manager.host.clock.sleep(60.0)

    with pytest.raises(AssertionError, match="the manager is at its end"):
        play(story)


def test_a_record_that_cannot_even_be_handed_over_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(lone: LoneManager) -> None:
        manager = lone.manager
        order = await lone.running()
        real = manager.records.append

        async def broken(*_given: object) -> None:
            raise RuntimeError("no memory")

        monkeypatch.setattr(manager.records, "append", broken)
        telling = manager.host.tasks.spawn("tell", lone.tell(end_of(order)))
        await lone.until(lambda: manager.faults.count > 0)
        monkeypatch.setattr(manager.records, "append", real)
        await lone.until(lambda: manager.jobs.job("j1").is_over)
        assert await telling

    play(story)


def test_a_round_that_fails_once_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(lone: LoneManager) -> None:
        order = await lone.running()
        real = lone.manager.live.turn

        def once() -> None:
            monkeypatch.setattr(lone.manager.live, "turn", real)
            raise KeyError("a workflow")

        monkeypatch.setattr(lone.manager.live, "turn", once)
        await lone.manager.host.clock.sleep(1.0)
        lone.report(progress(order, 1.0, delta(1, 10)))
        live: Any = lone.manager.live.workflow("j1", "Shop")
        await lone.until(lambda: live.index > 0, within_s=5.0)

    play(story)


def test_a_window_that_cannot_be_closed_is_its_own_workflows_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(lone: LoneManager) -> None:
        reported: list[tuple[str, BaseException | None]] = []
        lone.manager.node.endpoint.report = lambda name, error: reported.append((name, error))
        order = await lone.running()
        live: Any = lone.manager.live.workflow("j1", "Shop")
        real = LiveWorkflow.turn

        def poisoned(workflow: LiveWorkflow) -> None:
            if workflow is not live:
                raise KeyError("a step")
            real(workflow)

        first = {("j0", "Other"): LiveWorkflow(live.facts, live.outlines)}
        monkeypatch.setattr(lone.manager.live, "_workflows", first | lone.manager.live._workflows)
        monkeypatch.setattr(LiveWorkflow, "turn", poisoned)
        lone.report(progress(order, 1.0, delta(1, 10)))
        await lone.until(lambda: live.index > 0, within_s=5.0)
        assert {name for name, _ in reported} == {"timer of windows"}

    play(story)


def test_a_round_that_is_lost_ends_the_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(lone: LoneManager) -> None:
        def broken() -> float | None:
            raise RuntimeError("no deadlines")

        monkeypatch.setattr(lone.manager.jobs, "next_deadline", broken)
        await lone.manager.over.wait()
        assert isinstance(lone.manager.failure, RuntimeError)

    with pytest.raises(AssertionError, match="'jobs timer' of m1 died"):
        play(story)


def test_who_waits_for_a_leader_is_told_when_it_leads_no_more() -> None:
    async def story(lone: LoneManager) -> None:
        manager = lone.manager
        given_up, waiting = manager.accepting("j1"), manager.accepting("j1")
        settling = manager.settling(Part("j1", "Shop", 0), Fence(1))
        given_up.cancel()  # type: ignore[attr-defined]
        manager._deposed(1, "a test")
        with pytest.raises(RunFailed, match="leadership ended"):
            await waiting
        assert await settling is False

    play(story)


def test_records_that_nobody_confirms_are_load() -> None:
    async def story(lone: LoneManager) -> None:
        node, settings = lone.manager.node, lone.manager.settings.records
        assert node.queue() == 0.0
        pending = lone.manager.records._durable.pending  # type: ignore[attr-defined]
        for index in range(int(settings.pending_max * 0.9)):
            pending.written(Entry(index, 1))
        await lone.until(lambda: node.admission.load is LoadLevel.STRESSED)

    play(story)
