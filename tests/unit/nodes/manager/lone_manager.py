"""One real manager, leading alone in a simulated world, with workers played by the test."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from hyperscale.cluster.identity import Node
from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.nodes.protocol.jobs import Body, JobAck, SubmitJob
from hyperscale.nodes.protocol.parts import (
    DispatchAnswer,
    DispatchPart,
    PartAnswer,
    PartEvent,
    PartPrepared,
    Progress,
    ProgressAnswer,
    Registered,
    RegisterWorker,
    ReportProgress,
    TellEvent,
)
from hyperscale.runtime.host import Address
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World
from hyperscale.workload.facts import WorkflowFacts
from tests.unit.nodes.manager.cases import FACTS

Story = Callable[["LoneManager"], Coroutine[Any, Any, None]]


class LoneManager:
    """Commands to workers are noted in `told`; a dispatch is accepted at once."""

    def __init__(self, world: World, manager: Manager) -> None:
        self.world = world
        self.manager = manager
        self.client_api = manager.client_api
        self.told: list[tuple[str, msgspec.Struct]] = []
        manager.commands.sender.send = self._send  # type: ignore[method-assign]

    def _send(
        self,
        key: tuple[str, ...],
        node_id: str,
        message: msgspec.Struct,
        expect: type[Any],
        on_answer: Callable[[Any], None],
        on_failure: Callable[[str], None] | None = None,
        attempts: int | None = None,
    ) -> None:
        self.told.append((node_id, message))
        if expect is DispatchAnswer:
            on_answer(DispatchAnswer(accepted=True))
        elif expect is PartAnswer:
            on_answer(PartAnswer(known=True, state="running"))

    def call(
        self,
        kind: str,
        role: str = "worker",
        node_id: str = "w1",
        certified: bool = False,
        groups: tuple[str, ...] = (),
    ) -> Any:
        peer = SimpleNamespace(role=role, node_id=node_id, certified=certified, groups=groups)
        return SimpleNamespace(peer=peer, kind=SimpleNamespace(name=kind), one_way=False)

    def register(self, incarnation: int = 1, port: int = 7_000, cores: int = 2) -> Registered:
        where = ("10.0.0.9", port)
        node = Node("w1", incarnation, "worker", "local", where, where)
        ask = RegisterWorker(node=node, total_cores=cores, free_cores=cores)
        return self.manager.worker_api.register(self.call("register.worker"), ask)

    async def submit(self, *workflows: WorkflowFacts, job_id: str = "j1", **given: Any) -> JobAck:
        body = Body(workflows=workflows or (FACTS,), source=b"", overrides=b"", **given)
        ask = SubmitJob(job_id=job_id, body=msgspec.msgpack.encode(body))
        return await self.client_api.submit(self.call("submit.job", "client", "c1"), ask)

    def dispatched(self) -> list[DispatchPart]:
        return [message for _, message in self.told if isinstance(message, DispatchPart)]

    async def prepare(self, order: DispatchPart) -> None:
        ready = PartPrepared(part=order.part, fence=order.fence, worker="w1", seconds=0.1)
        await self.tell(ready)

    async def tell(self, event: PartEvent) -> bool:
        answer = await self.manager.worker_api.event(
            self.call("tell.event"), TellEvent(event=event)
        )
        return answer.settled

    def report(
        self, *parts: Progress, incarnation: int = 1, free: int = 0, cpu_percent: float = 0.0
    ) -> ProgressAnswer:
        report = ReportProgress(
            worker="w1",
            incarnation=incarnation,
            free_cores=free,
            parts=parts,
            cpu_percent=cpu_percent,
        )
        answer = self.manager.worker_api.progress(self.call("report.progress"), report)
        assert answer is not None
        return answer

    async def running(self, *workflows: WorkflowFacts) -> DispatchPart:
        """A job whose only part runs on `w1`."""
        self.register()
        assert (await self.submit(*workflows)).accepted
        await self.until(lambda: bool(self.dispatched()))
        order = self.dispatched()[-1]
        await self.prepare(order)
        job = self.manager.jobs.job("j1")
        assert job is not None
        await self.until(lambda: job.workflows[order.part.workflow].started)
        return order

    async def until(self, holds: Callable[[], bool], within_s: float = 30.0) -> None:
        for _ in range(int(within_s / 0.05)):
            if holds():
                return
            await self.manager.host.clock.sleep(0.05)
        raise AssertionError("it never came true")


def play(story: Story, **given: Any) -> None:
    """Run the story on the manager's own host; nothing may have failed in the background."""
    world = World(1)
    over: list[bool] = []
    managers: list[Manager] = []

    async def main(host: SimHost) -> None:
        node = NodeSettings(
            id="m1", bind=Address(host.ip, 7_000), data=Path("unused"), role="manager",
            voters=("m1",), plaintext="anywhere",
        )  # fmt: skip
        manager = Manager(host, ManagerSettings(node=node, **given))
        managers.append(manager)
        await manager.start()
        lone = LoneManager(world, manager)
        await lone.until(manager.leadership.leads)
        await story(lone)
        assert manager.failure is None
        over.append(True)

    world.add("m1", main)

    async def wait() -> None:
        for _ in range(20_000):
            if over or world.failures or any(manager.over.is_set() for manager in managers):
                return
            await world.sleep(0.1)

    try:
        world.run(wait())
        assert not world.failures, world.failures[0]
    finally:
        world.close()
    failure = managers[0].failure
    assert over, f"the manager is at its end: {failure}" if failure else "the story never ended"
