"""One real gate, owning alone in a simulated world, with the managers of a datacenter played by
the test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from hyperscale.nodes.gate.client_api import GateApi
from hyperscale.nodes.gate.gate import Gate
from hyperscale.nodes.gate.jobs import GateJob
from hyperscale.nodes.gate.settings import GateSettings
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.nodes.protocol.jobs import Body, JobAck, JobUpdate, JobView, SteerAck, SubmitJob
from hyperscale.runtime.host import Address
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World
from tests.unit.nodes.manager.cases import FACTS

Story = Callable[["LoneGate"], Coroutine[Any, Any, None]]
COMPLETED = JobView(job_id="j1", name="shop", status="completed")


class PlayedDatacenter:
    """Notes what it is sent; tells what it is given."""

    def __init__(self, *told: JobUpdate) -> None:
        self.told = told or (JobUpdate(view=COMPLETED, final=True),)
        self.submitted: list[SubmitJob] = []
        self.steered: list[str] = []
        self.managers = SimpleNamespace(close=lambda: None)

    async def submit(self, message: SubmitJob) -> JobAck:
        self.submitted.append(message)
        return JobAck(job_id=message.job_id, accepted=True)

    async def follow(self, job_id: str) -> AsyncGenerator[JobUpdate, None]:
        for update in self.told:
            yield update

    async def job(self, job_id: str, within_s: float | None = None) -> JobView:
        return COMPLETED

    async def steer(self, job_id: str, action: str, *given: Any, **more: Any) -> SteerAck:
        if action != "begin":
            self.steered.append(action)
        return SteerAck(job_id=job_id, accepted=True)


class LoneGate:
    def __init__(self, host: SimHost, gate: Gate, api: GateApi) -> None:
        self.host = host
        self.gate = gate
        self.api = api

    def call(self, kind: str = "submit.job", role: str = "client", node_id: str = "c1") -> Any:
        peer = SimpleNamespace(role=role, node_id=node_id, certified=False, groups=())
        return SimpleNamespace(peer=peer, kind=SimpleNamespace(name=kind), one_way=False)

    async def submit(self, job_id: str = "j1", *, remark: str = "", **given: Any) -> JobAck:
        body = Body(workflows=(FACTS,), **{"source": b"", "overrides": b"", **given})
        data = msgspec.msgpack.encode(body)
        return await self.api.submit(
            self.call(), SubmitJob(job_id=job_id, body=data, requested_by=remark)
        )

    async def ended(self, job_id: str = "j1") -> GateJob:
        for _ in range(600):
            job = self.gate.ledger.jobs.job(job_id)
            if job is not None and job.is_over:
                return job
            await self.host.clock.sleep(0.1)
        raise AssertionError("the job never ended")


def play(story: Story, *, secret: str | None = None, **datacenters: PlayedDatacenter) -> World:
    """Run the story on the gate's own host; nothing may have failed in the background."""
    world = World(1)
    over: list[bool] = []

    async def main(host: SimHost) -> None:
        node = NodeSettings(
            id="g1", bind=Address(host.ip, 7_000), data=Path("unused"), role="gate",
            secret=secret, plaintext="anywhere",
        )  # fmt: skip
        where = {name: (Address("10.0.0.9", 7_000),) for name in datacenters}
        apis: list[GateApi] = []

        class SeenApi(GateApi):
            def __init__(self, *given: Any) -> None:
                super().__init__(*given)
                apis.append(self)

        class SeenGate(Gate):
            api_class = SeenApi

        gate = SeenGate(host, GateSettings(node=node, gates=("g1",), datacenters=where))
        await gate.start()
        gate._clusters.update(datacenters)  # type: ignore[arg-type]
        await story(LoneGate(host, gate, apis[0]))
        assert gate.failure is None
        over.append(True)

    world.add("g1", main)

    async def wait() -> None:
        for _ in range(20_000):
            if over or world.failures:
                return
            await world.sleep(0.1)

    try:
        world.run(wait())
        assert not world.failures, world.failures[0]
    finally:
        world.close()
    assert over, "the story never ended"
    return world
