"""A real worker process with the real engine, driven by a scripted manager over loopback."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from hyperscale import Workflow, action, step
from hyperscale.engine.results import aggregate_of
from hyperscale.engine.source import ClassSource, encode_overrides, encode_source
from hyperscale.errors import ExitCode
from hyperscale.nodes.protocol.parts import DispatchPart, PartEnd
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost
from hyperscale.testing import HTTPResponse
from hyperscale.workload.facts import test_facts as facts_of_test
from hyperscale.workload.plan import Overrides, plan_test
from tests.fixtures.scripted_manager import ScriptedManager, manager_settings
from tests.integration.worker.worker_process import WorkerProcess

CORES = 2
Stats = Callable[[], dict[str, Any]]


class Get(Workflow):
    vus = 4
    duration = "1s"

    @step()
    async def home(self) -> HTTPResponse:
        return await self.client.http.get("/")


class Long(Get):
    vus = 2
    duration = "120s"


class WithHooks(Get):
    async def setup(self) -> None:
        self.context["token"] = "from setup"

    async def teardown(self) -> None:
        await self.client.http.get("/items")


class Raises(Workflow):
    @action()
    async def work(self) -> None:
        raise ValueError("this is the author's fault")


class EatsMemory(Workflow):
    @action()
    async def work(self) -> None:
        eaten = []
        while True:
            eaten.append(bytes(1 << 20) * 16)


class NeverEnds(Workflow):
    @action()
    async def work(self) -> None:
        while True:  # nothing can interrupt this but the end of its process
            pass


@asynccontextmanager
async def cluster(
    folder: Path, **settings: Any
) -> AsyncIterator[tuple[ScriptedManager, WorkerProcess]]:
    """A manager and a worker that has registered; nothing of them is left."""
    async with RealHost("m1", folder / "m1") as host:
        manager = ScriptedManager(
            host, manager_settings("m1", Address("127.0.0.1", 0), folder / "m1")
        )
        await manager.begin()
        worker = WorkerProcess(folder, manager.place, cores=CORES, **settings)
        try:
            await manager.worker("w1")
            yield manager, worker
        except BaseException:
            print(worker.text)  # noqa: T201 - pytest shows it with the failure
            raise
        finally:
            worker.end()


def make(
    manager: ScriptedManager, workflow: type[Workflow], target: str, **more: Any
) -> DispatchPart:
    overrides = Overrides(base_url=target)
    (facts,) = facts_of_test(plan_test([workflow], overrides))
    source = more.pop("source", None) or encode_source(ClassSource(workflow).pickled())
    return manager.order(facts, source=source, overrides=encode_overrides(overrides), **more)


async def start(manager: ScriptedManager, order: DispatchPart) -> None:
    answer = await manager.dispatch("w1", order)
    assert answer.accepted, answer
    await manager.prepared(order)
    assert (await manager.start("w1", order)).known


async def load_flows(manager: ScriptedManager, stats: Stats) -> None:
    await manager.until(lambda: stats()["requests"] > 20, "load at the target")


async def load_stops(manager: ScriptedManager, stats: Stats) -> None:
    """The target's own count stands still, for long enough to be no pause between requests."""
    seen: list[int] = []

    def still() -> bool:
        seen.append(stats()["requests"])
        return len(seen) > 25 and len(set(seen[-25:])) == 1

    await manager.until(still, "the load to stop")


def test_a_part_measures_what_the_target_counts(tmp_path: Path, target: str, stats: Stats) -> None:
    async def story() -> None:
        async with cluster(tmp_path) as (manager, worker):
            order = make(manager, Get, target, cores=2)
            await start(manager, order)
            end = await manager.ended(order)

            assert (end.outcome, end.error, end.lost) == ("completed", "", ())
            total = aggregate_of(order.facts)
            total.absorb(end.state)
            assert total.requests == stats()["requests"] > 50
            told = sum(s.count for d in manager.deltas(order).values() for s in d.requests)
            assert 0 < told <= total.requests
            await manager.all_free("w1", CORES)

            again = await manager.dispatch("w1", order)  # a copy that was delayed
            assert again.accepted
            stale = make(manager, Get, target, epoch=0)
            assert not (await manager.dispatch("w1", stale)).accepted
            assert stats()["requests"] == total.requests

            worker.signal(signal.SIGTERM)
            await manager.until(lambda: not worker.alive, "the worker to leave")
            assert worker.exit_code() == 0
            assert [word.worker for word in manager.left] == ["w1"]

    asyncio.run(story())


def test_setup_once_and_teardown_when_it_is_told(tmp_path: Path, target: str, stats: Stats) -> None:
    async def story() -> None:
        async with cluster(tmp_path) as (manager, _):
            torn: list[bool] = []
            manager.settles = lambda event: not isinstance(event, PartEnd) or bool(torn)
            order = make(manager, WithHooks, target, run_setup=True)
            assert (await manager.dispatch("w1", order)).accepted
            prepared = await manager.prepared(order)
            assert list(prepared.context) == ["token"]
            await manager.start("w1", order)
            await manager.ended(order)
            assert "/items" not in stats()["paths"]
            await manager.tear_down("w1", order)
            assert (await manager.torn_down(order)).warning == ""
            assert stats()["paths"]["/items"] == 1
            torn.append(True)
            await manager.all_free("w1", CORES)

    asyncio.run(story())


def test_code_that_cannot_be_read_is_refused_and_leaks_no_core(tmp_path: Path, target: str) -> None:
    async def story() -> None:
        async with cluster(tmp_path) as (manager, _):
            source = ClassSource(Get).pickled()
            broken = type(source)(b"\x80\x04nonsense", source.import_path)
            order = make(manager, Get, target, cores=2, source=encode_source(broken))
            assert (await manager.dispatch("w1", order)).accepted
            end = await manager.ended(order)
            assert end.outcome == "failed"
            assert end.error
            await manager.all_free("w1", CORES)
            next_one = make(manager, Get, target, cores=2, job="next")
            await start(manager, next_one)
            assert (await manager.ended(next_one)).outcome == "completed"

    asyncio.run(story())


def test_a_workflow_that_raises_fails_with_the_authors_words(tmp_path: Path, target: str) -> None:
    async def story() -> None:
        async with cluster(tmp_path) as (manager, _):
            order = make(manager, Raises, target)
            await start(manager, order)
            end = await manager.ended(order)
            assert end.outcome == "failed"
            assert "this is the author's fault" in end.error
            await manager.all_free("w1", CORES)

    asyncio.run(story())


def test_a_workflow_that_eats_memory_ends_without_its_machine(tmp_path: Path, target: str) -> None:
    async def story() -> None:
        async with cluster(tmp_path, memory_mb=300) as (manager, _):
            order = make(manager, EatsMemory, target)
            await start(manager, order)
            end = await manager.ended(order)
            assert end.outcome == "failed"
            assert "memory" in (end.error + " ".join(end.lost)).lower()
            await manager.all_free("w1", CORES)

    asyncio.run(story())


def test_a_workflow_that_never_ends_is_killed_at_its_limit(tmp_path: Path, target: str) -> None:
    async def story() -> None:
        async with cluster(tmp_path, kill_grace_s=0.5) as (manager, worker):
            order = make(manager, NeverEnds, target, limit_s=1.0)
            before = {process.pid for process in worker.generators()}
            await start(manager, order)
            end = await manager.ended(order)
            assert end.outcome == "failed"
            assert "did not end within its limit of 1 s" in end.error
            await manager.all_free("w1", CORES)
            await manager.until(
                lambda: len({p.pid for p in worker.generators()} - before) == 1, "a new process"
            )

    asyncio.run(story())


def test_a_killed_generator_is_told_of_and_replaced(
    tmp_path: Path, target: str, stats: Stats
) -> None:
    async def story() -> None:
        async with cluster(tmp_path) as (manager, worker):
            order = make(manager, Long, target, cores=1)
            port = int(target.rsplit(":", 1)[1])

            def at_work() -> list[psutil.Process]:
                return [
                    process
                    for process in worker.generators()
                    if any(c.raddr and c.raddr.port == port for c in process.net_connections())
                ]

            await start(manager, order)
            await load_flows(manager, stats)
            (busy,) = await manager.until(at_work, "one generator at work")
            busy.kill()
            end = await manager.ended(order)
            assert f"generator process {busy.pid}" in end.lost[0]
            assert "SIGKILL" in end.lost[0]
            await manager.all_free("w1", CORES)
            await manager.until(
                lambda: len([p for p in worker.generators() if p.pid != busy.pid]) == CORES,
                "a process in its place",
            )

    asyncio.run(story())


def test_an_idle_generator_that_died_is_not_given_work(tmp_path: Path, target: str) -> None:
    async def story() -> None:
        async with cluster(tmp_path) as (manager, worker):
            for process in worker.generators():
                process.kill()
            order = make(manager, Get, target, cores=2)
            await manager.until(
                lambda: not any(alive(process) for process in worker.generators()), "their end"
            )
            await start(manager, order)
            end = await manager.ended(order)
            assert (end.outcome, end.lost) == ("completed", ())

    asyncio.run(story())


def test_nothing_survives_the_sudden_death_of_the_worker(
    tmp_path: Path, target: str, stats: Stats
) -> None:
    async def story() -> None:
        async with cluster(tmp_path) as (manager, worker):
            await start(manager, make(manager, Long, target, cores=2))
            await load_flows(manager, stats)
            generators = worker.generators()
            assert len(generators) == CORES
            worker.signal(signal.SIGKILL)
            await manager.until(
                lambda: not any(alive(process) for process in generators), "generators to end"
            )
            await load_stops(manager, stats)

    asyncio.run(story())


def test_silence_of_all_managers_stops_the_load(tmp_path: Path, target: str, stats: Stats) -> None:
    async def story() -> None:
        async with cluster(tmp_path, fence_s=2.0, contact_s=0.5) as (manager, _):
            order = make(manager, Long, target, cores=2)
            await start(manager, order)
            await load_flows(manager, stats)
            manager.deaf = True
            manager.node.membership.stop()
            await load_stops(manager, stats)

            manager.deaf = False
            end = await manager.ended(order)
            assert end.outcome == "cut off"
            total = aggregate_of(order.facts)
            total.absorb(end.state)
            counted = stats()["requests"]
            assert counted - order.facts.load.peak_vus <= total.requests <= counted
            await manager.all_free("w1", CORES)

    asyncio.run(story())


def test_a_frozen_worker_leaves_no_load_running(tmp_path: Path, target: str, stats: Stats) -> None:
    async def story() -> None:
        async with cluster(tmp_path, fence_s=2.0, contact_s=0.5) as (manager, worker):
            order = make(manager, Long, target, cores=2)
            await start(manager, order)
            await load_flows(manager, stats)
            worker.signal(signal.SIGSTOP)
            await load_stops(manager, stats)

            worker.signal(signal.SIGCONT)
            assert (await manager.ended(order)).outcome == "cut off"
            await manager.all_free("w1", CORES)

    asyncio.run(story())


def test_a_worker_that_cannot_keep_watch_ends_with_its_load(
    tmp_path: Path, target: str, stats: Stats
) -> None:
    async def story() -> None:
        async with cluster(tmp_path) as (manager, worker):
            await start(manager, make(manager, Long, target, cores=2))
            await load_flows(manager, stats)
            generators = worker.generators()
            worker.signal(signal.SIGUSR1)
            await manager.until(lambda: not worker.alive, "the worker to end")
            assert worker.exit_code() == ExitCode.FAILED
            assert not any(alive(process) for process in generators)
            assert [word.worker for word in manager.left] == ["w1"]
        assert "w1 stopped, because of an error in its own code: KeyError('a bug')" in worker.text

    asyncio.run(story())


def alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_what_comes_with_the_start_is_obeyed(tmp_path: Path, target: str, stats: Stats) -> None:
    """A part that goes on elsewhere is started and scaled in one breath."""

    async def story() -> None:
        async with cluster(tmp_path) as (manager, _worker):
            scaled = make(manager, Get, target, cores=1)
            assert (await manager.dispatch("w1", scaled)).accepted
            await manager.prepared(scaled)
            await asyncio.gather(
                manager.start("w1", scaled), manager.steer("w1", scaled, "scale", 20)
            )
            end = await manager.ended(scaled)
            assert (end.outcome, end.peak_vus) == ("completed", 20)

            paused = make(manager, Long, target, cores=1)
            assert (await manager.dispatch("w1", paused)).accepted
            await manager.prepared(paused)
            before = stats()["requests"]
            await asyncio.gather(manager.start("w1", paused), manager.steer("w1", paused, "pause"))
            await load_stops(manager, stats)
            await manager.steer("w1", paused, "resume")
            await load_flows(manager, lambda: {"requests": stats()["requests"] - before})

    asyncio.run(story())
