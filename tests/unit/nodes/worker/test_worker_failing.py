"""A worker that lost one of its loops ends, with its load: nobody would mind it any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NoReturn

import pytest

from hyperscale.nodes.worker.gauges import readiness
from hyperscale.nodes.worker.manager_session import ManagerSession
from hyperscale.workload.load import ClosedVUs
from tests.fixtures.scripted_manager import ScriptedManager, facts
from tests.unit.nodes.worker.sim_cluster import SimCluster

LONG = ClosedVUs(vus=4, duration_s=120.0)


def play(cluster: SimCluster, story: Callable[[ScriptedManager], Awaitable[None]]) -> None:
    """On the manager's own host, so that its clock is the story's."""

    async def begin() -> None:
        await cluster.m1.worker("w1")
        await story(cluster.m1)

    async def main() -> None:
        await cluster.world.sleep(0.1)
        await cluster.world.host("m1").tasks.spawn("story", begin())

    try:
        cluster.world.run(main())
    finally:
        cluster.world.close()


async def load(manager: ScriptedManager) -> None:
    order = manager.order(facts(load=LONG), cores=2)
    assert (await manager.dispatch("w1", order)).accepted
    await manager.prepared(order)
    await manager.start("w1", order)


def broken(*_: object) -> NoReturn:
    raise RuntimeError("a bug")


@pytest.mark.parametrize("loop", ["keep watch", "register", "report", "tell"])
def test_a_worker_without_one_of_its_loops_ends(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = SimCluster()
    cluster.world.fail = lambda *_: None  # type: ignore[method-assign, assignment]

    async def story(manager: ScriptedManager) -> None:
        await load(manager)
        worker = cluster.worker
        if loop == "keep watch":
            monkeypatch.setattr(worker.parts, "tick", broken)
        elif loop == "register":
            monkeypatch.setattr(worker.registration, "whom", broken)
        elif loop == "report":
            monkeypatch.setattr(ManagerSession, "_next_report", broken)
        else:
            monkeypatch.setattr(worker.outbox, "take", broken)
        await manager.until(worker.over.is_set, f"{loop} to be missed")
        assert isinstance(worker.failure, RuntimeError)
        assert readiness(worker).reason == "it is ending"

    play(cluster, story)


def test_who_leaves_has_ended_its_load_before_it_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it has is given to others as soon as they hear it."""
    cluster = SimCluster()
    busy: list[int] = []
    real = ManagerSession.leave

    async def leave(session: ManagerSession) -> None:
        busy.append(cluster.runner.busy)
        await real(session)

    async def story(manager: ScriptedManager) -> None:
        await load(manager)
        host = cluster.world.host("w1")
        await host.tasks.spawn("stop", cluster.worker.stop())
        assert [word.worker for word in manager.left] == ["w1"]

    monkeypatch.setattr(ManagerSession, "leave", leave)
    play(cluster, story)
    assert busy == [0]


def test_two_parts_whose_names_read_the_same_are_two() -> None:
    cluster = SimCluster()

    async def story(manager: ScriptedManager) -> None:
        for job, workflow in (("a/b", "c"), ("a", "b/c")):
            order = manager.order(facts(workflow, load=LONG), job=job)
            assert (await manager.dispatch("w1", order)).accepted
        assert len(cluster.worker.parts) == 2

    play(cluster, story)
