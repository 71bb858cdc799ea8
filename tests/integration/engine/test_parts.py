"""Parts of a workflow on real generator processes, as a worker runs them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from hyperscale import CustomResult, Workflow, feed, step
from hyperscale.engine.generators import GeneratorProcess
from hyperscale.engine.messages import Line
from hyperscale.engine.part_run import PartRun
from hyperscale.engine.results import aggregate_of
from hyperscale.errors import RunFailed
from hyperscale.metrics.delta import Delta
from hyperscale.testing import HTTPResponse
from tests.integration.engine.machine import Machine, until


class Numbered(Workflow):
    vus = 4
    iterations = 60

    async def setup(self) -> None:
        self.context["greeting"] = "hello"

    async def teardown(self) -> None:
        assert self.context["greeting"] == "hello"
        raise RuntimeError(f"torn down by {os.getpid()}")

    @step()
    async def hit(self, greeting: str = "") -> HTTPResponse:
        return await self.client.http.get(f"/anything?vu={self.vu_id}&say={greeting}")


def test_two_parts_are_one_workflow(target: str, stats: Callable[[], dict[str, Any]]) -> None:
    machine = Machine(Numbered, target, 3)
    told: list[tuple[int, Delta]] = []

    async def scenario() -> tuple[PartRun, PartRun, str]:
        first = machine.part(0, 2, 3, on_progress=lambda _, core, delta: told.append((core, delta)))
        second = machine.part(2, 1, 3, run_setup=False)
        wrote, nothing = await asyncio.gather(first.prepare(), second.prepare())
        assert set(wrote) == {"greeting"}
        assert nothing == {}
        await asyncio.gather(first.run_load(wrote), second.run_load(wrote))
        warning = await second.teardown()
        await asyncio.gather(first.release(), second.release())
        return first, second, warning

    first, second, warning = machine.run(scenario)
    assert (first.outcome, second.outcome) == ("completed", "completed")
    merged = aggregate_of(machine.facts)
    merged.absorb(first.aggregate.export())
    merged.absorb(second.aggregate.export())
    result = merged.freeze()
    assert result.iterations == result.requests == 60 == stats()["requests"]
    assert result.vus_max == 4
    assert [use.core for use in merged.core_use()] == [0, 1, 2]
    assert (
        sum(one.count for core, delta in told for one in delta.requests) == first.aggregate.requests
    )
    assert {core for core, _ in told} == {0, 1}
    assert f"torn down by {machine.cores[2].pid}" in warning


def test_teardown_sees_what_setup_wrote_when_nothing_was_started(target: str) -> None:
    machine = Machine(Numbered, target, 1)

    async def scenario() -> tuple[str, PartRun]:
        part = machine.part(0, 1, 1)
        await part.prepare()
        part.stop(now=True)
        await part.run_load({})
        warning = await part.teardown()
        await part.release()
        return warning, part

    warning, part = machine.run(scenario)
    assert "torn down by" in warning
    assert part.outcome == "cancelled"
    assert part.aggregate.requests == 0


class Long(Workflow):
    vus = 2
    duration = "60s"

    @step()
    async def home(self) -> HTTPResponse:
        return await self.client.http.get("/")


def test_a_part_may_be_paused_the_moment_it_starts(target: str) -> None:
    machine = Machine(Long, target, 1)

    async def scenario() -> PartRun:
        part = machine.part(0, 1, 1)
        running = asyncio.create_task(part.run_load(await part.prepare()))
        await asyncio.sleep(0)
        assert part.pause()
        await until(lambda: part.aggregate.vus == 2)
        seen = [-1]

        def stands_still() -> bool:
            seen.append(part.aggregate.requests)
            return len(seen) > 25 and len(set(seen[-25:])) == 1

        await until(stands_still)
        assert part.resume()
        await until(lambda: part.aggregate.requests > seen[-1])
        assert part.scale(3)
        await until(lambda: part.aggregate.vus == 5)
        part.stop()
        await running
        await part.release()
        return part

    assert machine.run(scenario).outcome == "completed"


def test_each_part_takes_its_share_of_a_change(target: str) -> None:
    machine = Machine(Long, target, 2)

    async def scenario() -> None:
        parts = [machine.part(0, 1, 2), machine.part(1, 1, 2, run_setup=False)]
        await asyncio.gather(*(part.prepare() for part in parts))
        running = [asyncio.create_task(part.run_load({})) for part in parts]
        await until(lambda: all(part.aggregate.vus == 1 for part in parts))
        assert all(part.scale(3) for part in parts)
        await until(lambda: sum(part.aggregate.vus for part in parts) == 5)
        for part in parts:
            part.stop(now=True)
        await asyncio.gather(*running)
        await asyncio.gather(*(part.release() for part in parts))

    machine.run(scenario)


def test_a_part_that_is_stopped_before_it_is_prepared_does_nothing(target: str) -> None:
    machine = Machine(Long, target, 1)

    async def scenario() -> PartRun:
        part = machine.part(0, 1, 1)
        part.stop(now=True)
        await part.run_load(await part.prepare())
        await part.release()
        return part

    part = machine.run(scenario)
    assert (part.outcome, part.aggregate.requests) == ("cancelled", 0)


class Waits(Workflow):
    vus = 3
    duration = "60s"

    @step()
    async def slow(self) -> HTTPResponse:
        return await self.client.http.get("/delay/20000")


@pytest.mark.parametrize("how", ["stopped", "cut off"])
def test_what_we_give_up_is_no_failure_of_the_target(
    target: str, stats: Callable[[], dict[str, Any]], how: str
) -> None:
    machine = Machine(Waits, target, 1)

    async def scenario() -> PartRun:
        part = machine.part(0, 1, 1)
        running = asyncio.create_task(part.run_load(await part.prepare()))
        await until(lambda: stats()["requests"] == 3)
        part.stop(now=True) if how == "stopped" else part.lease(0.0)
        await running
        await part.release()
        return part

    part = machine.run(scenario)
    assert (part.aggregate.requests, part.aggregate.failed) == (3, 0)


def test_a_load_nobody_holds_ends_by_itself(target: str) -> None:
    machine = Machine(Long, target, 1)

    async def scenario() -> PartRun:
        part = machine.part(0, 1, 1)
        part.lease(30)
        running = asyncio.create_task(part.run_load(await part.prepare()))
        await until(lambda: part.aggregate.requests > 0)
        part.lease(0.2)
        await running
        await part.release()
        return part

    part = machine.run(scenario)
    assert part.outcome == "cut off"
    assert part.aggregate.facts.error == ""
    assert part.measured_s < 60


def test_a_load_that_was_let_go_before_its_start_does_not_start(target: str) -> None:
    machine = Machine(Long, target, 1)

    async def scenario() -> PartRun:
        part = machine.part(0, 1, 1)
        wrote = await part.prepare()
        part.lease(0.0)
        await asyncio.sleep(0.1)
        await part.run_load(wrote)
        await part.release()
        return part

    part = machine.run(scenario)
    assert part.outcome == "cut off"
    assert part.aggregate.requests == 0


def test_the_end_of_a_suspended_parent_is_the_end_of_the_load(target: str) -> None:
    """SIGSTOP of the process that should end the load: the lease runs out all the same."""
    program = Path(__file__).with_name("leased_parent.py")
    parent = subprocess.Popen(
        [sys.executable, str(program), target], stdout=subprocess.PIPE, text=True
    )
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "loaded\n"
        parent.send_signal(signal.SIGSTOP)
        wait_until(lambda: count(target) == (time.sleep(1.0), count(target))[1])
        parent.send_signal(signal.SIGCONT)
        assert parent.stdout.readline() == "cut off\n"
        assert parent.wait(20) == 0
    finally:
        parent.kill()
        parent.wait()


def count(target: str) -> int:
    import json
    import urllib.request

    body = json.load(urllib.request.urlopen(f"{target}/stats", timeout=10))
    return int(body["requests"])


def wait_until(condition: Callable[[], bool], limit_s: float = 20.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def test_a_closed_load_goes_on_with_the_rest_of_its_time(target: str) -> None:
    machine = Machine(Long, target, 1, duration="13s")

    async def scenario() -> PartRun:
        part = machine.part(0, 1, 1, attempt=2, resume_at_s=10.0, iterations_done=5)
        await part.run_load(await part.prepare())
        await part.release()
        return part

    part = machine.run(scenario)
    assert part.outcome == "completed"
    assert part.measured_s >= 13.0
    series = part.aggregate.freeze().series
    assert [point.requests for point in series[:9]] == [0] * 9
    assert sum(point.requests for point in series[9:]) == part.aggregate.requests > 0


def test_arrivals_go_on_without_the_overdue_ones(target: str) -> None:
    machine = Machine(Long, target, 1, rate="100/s", duration="13s")

    async def scenario() -> PartRun:
        part = machine.part(0, 1, 1, attempt=2, resume_at_s=10.0)
        await part.run_load(await part.prepare())
        await part.release()
        return part

    part = machine.run(scenario)
    assert 0 < part.aggregate.iterations + part.aggregate.dropped <= 300


def test_a_load_whose_time_is_over_makes_no_request(target: str) -> None:
    machine = Machine(Long, target, 1, duration="5s")

    async def scenario() -> PartRun:
        part = machine.part(0, 1, 1, attempt=2, resume_at_s=5.0)
        await part.run_load(await part.prepare())
        await part.release()
        return part

    part = machine.run(scenario)
    assert part.outcome == "completed"
    assert part.aggregate.requests == 0


class Rows(Workflow):
    vus = 1
    iterations = 10
    data = feed([{"n": n} for n in range(1000)], when_done="stop")

    @step()
    async def take(self, row: Any = None) -> CustomResult:
        if row["n"] < 8:
            raise ValueError("this row was used before")
        return CustomResult()


def test_rows_that_were_used_are_not_used_again() -> None:
    machine = Machine(Rows, "http://localhost", 1)

    async def scenario() -> PartRun:
        part = machine.part(0, 1, 1, attempt=2, iterations_done=7)
        await part.run_load(await part.prepare())
        await part.release()
        return part

    part = machine.run(scenario)
    assert (part.aggregate.iterations, part.aggregate.failed) == (3, 0)


class Hoards(Workflow):
    vus = 2
    duration = "60s"
    graceful_stop = "1s"
    kept: list[bytes] = []

    @step()
    async def keep(self) -> CustomResult:
        self.kept.append(os.urandom(1_000_000))
        await asyncio.sleep(0.001)
        return CustomResult()


class Gulps(Hoards):
    @step()
    async def keep(self) -> CustomResult:
        self.kept.append(bytes(4 << 30))
        return CustomResult()


class HoardsEarly(Hoards):
    async def setup(self) -> None:
        while True:
            self.kept.append(os.urandom(1_000_000))


@pytest.mark.parametrize("workflow", [Hoards, Gulps])
def test_a_workflow_that_eats_memory_ends_with_a_reason(workflow: type[Workflow]) -> None:
    machine = Machine(workflow, "http://localhost", 1)

    async def scenario() -> PartRun:
        part = machine.part(0, 1, 1, memory_mb=300)
        await part.run_load(await part.prepare())
        await part.release()
        return part

    part = machine.run(scenario)
    assert part.outcome == "failed"
    assert "took more than 300 MB of memory" in part.aggregate.facts.error
    assert part.lost == []


def test_so_does_a_setup_that_eats_memory() -> None:
    machine = Machine(HoardsEarly, "http://localhost", 1)

    async def scenario() -> None:
        part = machine.part(0, 1, 1, memory_mb=300)
        with pytest.raises(RunFailed, match=r"setup\(\) of HoardsEarly raised MemoryError"):
            await part.prepare()
        await part.release()

    machine.run(scenario)


def test_a_killed_part_keeps_what_it_told(target: str) -> None:
    machine = Machine(Long, target, 2)

    async def scenario() -> PartRun:
        part = machine.part(0, 2, 2)
        running = asyncio.create_task(part.run_load(await part.prepare()))
        await until(lambda: part.aggregate.requests > 0)
        part.kill()
        await running
        await part.release()
        return part

    part = machine.run(scenario)
    assert part.outcome == "cancelled"
    assert len(part.lost) == 2
    assert part.aggregate.freeze().requests > 0
    assert part.aggregate.vus == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a child with its parent")
def test_a_generator_whose_loop_is_held_dies_with_its_parent() -> None:
    program = Path(__file__).with_name("hogging_parent.py")
    parent = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert parent.stdout.readline() == "hogged\n"
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: not Path(f"/proc/{child}/cmdline").exists() or gone(child))


def gone(pid: int) -> bool:
    """Ended; an orphan may wait for somebody to ask how."""
    return " Z " in Path(f"/proc/{pid}/stat").read_text()


def test_a_core_gets_the_environment_it_is_given() -> None:
    core = GeneratorProcess(env={"PATH": os.environ["PATH"], "ONLY": "this"})
    try:
        environ = Path(f"/proc/{core.pid}/environ")
        while not environ.read_bytes():  # the kernel still sets up the new program
            os.sched_yield()
        seen = environ.read_bytes().split(b"\0")
        assert b"ONLY=this" in seen
        assert not any(entry.startswith(b"HOME=") for entry in seen)
    finally:
        core.hang_up()
        core.kill_and_wait()


def test_a_generator_that_starts_does_not_hear_ctrl_c() -> None:
    async def scenario() -> None:
        core = GeneratorProcess()
        try:
            for _ in range(40):  # from before there is an interpreter until it has been told so
                os.kill(core.pid, signal.SIGINT)
                await asyncio.sleep(0.01)
            await core.open()
            await asyncio.sleep(0)
            assert not core.lost
            assert psutil.Process(core.pid).status() != psutil.STATUS_ZOMBIE
        finally:
            await core.close()

    asyncio.run(scenario())


class NeedsKey(Long):
    async def setup(self) -> None:
        os.environ["NO_SUCH_KEY"]


def test_a_failure_names_its_worker_and_the_variable_that_is_missing(target: str) -> None:
    machine = Machine(NeedsKey, target, 1)

    async def scenario() -> None:
        part = machine.part(0, 1, 1, worker="w1")
        with pytest.raises(RunFailed, match=r"^on w1: setup\(\) of NeedsKey raised") as failed:
            await part.prepare()
        await part.release()
        assert failed.value.hint == "pass the variable to the test: -e NO_SUCH_KEY"

    machine.run(scenario)


def test_nobody_waits_for_a_generator_whose_reports_make_no_sense() -> None:
    async def scenario() -> None:
        core = GeneratorProcess()
        ours, theirs = socket.socketpair()
        lost: list[GeneratorProcess] = []
        core.join(lambda *_: None, lost.append)
        try:
            theirs.sendall(struct.pack("<II", 1, 1) + b"\xc1")  # a frame that is no message
            with pytest.raises(msgspec.DecodeError):
                await core._read(await Line.open(ours))
            assert core.lost
            assert lost == [core]
        finally:
            theirs.close()
            await core.close()

    asyncio.run(scenario())
