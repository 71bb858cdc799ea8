"""Hundreds of parts end in one moment: a leader reads them without holding its loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from types import SimpleNamespace
from typing import Any

import pytest

from hyperscale.cluster.identity import Node
from hyperscale.metrics.aggregate import WorkflowAggregate
from hyperscale.nodes.manager import part_end
from hyperscale.nodes.manager.live import Live
from hyperscale.nodes.member.long_work import LongWork
from hyperscale.nodes.protocol.parts import (
    DispatchPart,
    PartEnd,
    PartPrepared,
    RegisterWorker,
    TellEvent,
)
from tests.unit.nodes.manager.cases import FACTS, placement, state
from tests.unit.nodes.manager.lone_manager import LoneManager, play

PARTS = 5


class Turns:
    """How often the loop has gone round."""

    def __init__(self) -> None:
        self.count = 0
        self.seen: dict[str, list[int]] = {}

    async def go_on(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)

    def note(self, what: str) -> None:
        self.seen.setdefault(what, []).append(self.count)


def test_the_loop_turns_between_two_steps() -> None:
    turns = Turns()

    def steps() -> Generator[None, None, str]:
        for _ in range(PARTS):
            turns.note("step")
            yield
        return "whole"

    async def story() -> None:
        work = LongWork(SimpleNamespace(sleep=asyncio.sleep))  # type: ignore[arg-type]
        other = asyncio.ensure_future(turns.go_on())
        both = await asyncio.gather(work.run(steps()), work.run(steps()))
        other.cancel()
        assert both == ["whole", "whole"]

    asyncio.run(story())
    seen = turns.seen["step"]
    assert len(seen) == len(set(seen)) == 2 * PARTS


async def all_running(lone: LoneManager) -> list[DispatchPart]:
    """A job with a part on each of several workers."""
    for number in range(PARTS):
        where = ("10.0.0.9", 7_000 + number)
        node = Node(f"w{number}", 1, "worker", "local", where, where)
        ask = RegisterWorker(node=node, total_cores=2, free_cores=2)
        lone.manager.worker_api.register(lone.call("register.worker", node_id=f"w{number}"), ask)
    assert (await lone.submit(FACTS)).accepted
    await lone.until(lambda: len(lone.dispatched()) == PARTS)
    orders_sent = lone.dispatched()
    for order in orders_sent:
        worker = worker_of(lone, order)
        ready = PartPrepared(part=order.part, fence=order.fence, worker=worker, seconds=0.1)
        await lone.manager.part_events.tell(
            lone.call("tell.event", node_id=worker), TellEvent(event=ready)
        )
    job = lone.manager.jobs.job("j1")
    assert job is not None
    await lone.until(lambda: job.workflows["Shop"].started)
    return orders_sent


def worker_of(lone: LoneManager, order: DispatchPart) -> str:
    return next(worker for worker, message in lone.told if message is order)


def test_ends_that_come_together_are_read_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in one of its own: when it is checked, taken in, and merged with the others."""
    inside = 0
    seen: dict[str, list[int]] = {}

    def noted(what: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def work(*given: Any) -> Any:
            seen.setdefault(what, []).append(inside)
            return real(*given)

        return work

    monkeypatch.setattr(part_end, "check_end", noted("checked", part_end.check_end))
    monkeypatch.setattr(Live, "replace", noted("taken in", Live.replace))
    absorb = noted("merged", WorkflowAggregate.absorb)
    monkeypatch.setattr(WorkflowAggregate, "absorb", absorb)

    async def story(lone: LoneManager) -> None:
        manager = lone.manager
        do = manager.long_work.do

        async def counted(work: Callable[[], Any]) -> Any:
            def step() -> Any:
                nonlocal inside
                counted.number += 1  # type: ignore[attr-defined]
                inside = counted.number  # type: ignore[attr-defined]
                try:
                    return work()
                finally:
                    inside = 0

            return await do(step)

        counted.number = 0  # type: ignore[attr-defined]
        monkeypatch.setattr(manager.long_work, "do", counted)
        ends = [
            PartEnd(
                part=order.part, fence=order.fence, worker=worker_of(lone, order),
                outcome="completed", measured_s=60.0, state=state(3),
            )
            for order in await all_running(lone)
        ]  # fmt: skip
        answers = await asyncio.gather(
            *(
                manager.part_events.tell(
                    lone.call("tell.event", node_id=end.worker), TellEvent(event=end)
                )
                for end in ends
            )
        )
        assert all(answer.settled for answer in answers)
        job = manager.jobs.job("j1")
        assert job is not None
        await lone.until(lambda: job.is_over)
        assert job.status == "completed"

    play(story)
    assert all(0 not in numbers for numbers in seen.values()), seen
    for what, times in (("checked", 1), ("taken in", 1), ("merged", 3)):
        assert len(seen[what]) == len(set(seen[what])) == times * PARTS, what


def test_numbers_of_a_part_that_left_do_not_replace_those_of_the_next_attempt() -> None:
    live = Live()
    live.follow(FACTS, placement(0), fresh=True)
    reported = live.leave(placement(0).part)
    live.follow(FACTS, placement(0, attempt=2, worker="w9"), fresh=True)
    live.replace(FACTS, placement(0).part, state(7), reported)
    workflow = live.workflow("j1", "Shop")
    assert workflow is not None
    assert list(workflow.parts) == [0]
    assert workflow.merged().requests == live.totals("j1", "Shop")[0] == 7
