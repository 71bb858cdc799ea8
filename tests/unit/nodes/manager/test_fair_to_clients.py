"""Managers and the clients they serve: limits are of who asks, and a watch takes no one's place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from hyperscale.cluster.overload import Admission, AdmissionSettings
from hyperscale.nodes.client.managers import endpoint_of
from hyperscale.nodes.manager.manager import LIMITS as MANAGER_LIMITS
from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.nodes.protocol.jobs import (
    JOBS,
    AskJobs,
    Body,
    JobAck,
    JobUpdate,
    JobViews,
    SubmitJob,
    WatchJob,
)
from hyperscale.nodes.protocol.parts import PARTS
from hyperscale.nodes.worker.worker import LIMITS as WORKER_LIMITS
from hyperscale.runtime.host import Address
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World
from hyperscale.wire.errors import Reason, Refused
from hyperscale.wire.identity import Identity
from hyperscale.wire.messages import Priority
from hyperscale.wire.peer import Peer
from hyperscale.wire.updates import Updates
from tests.unit.nodes.manager.cases import FACTS

PORT = 7_000
Story = Callable[["Managers"], Awaitable[None]]


class Managers:
    """Managers in a simulated world, and clients that ask them."""

    def __init__(self, names: tuple[str, ...], admission: AdmissionSettings | None = None) -> None:
        self.world = World(3)
        self.names = names
        self.admission = admission
        self.managers: dict[str, Manager] = {}
        self.hosts: dict[str, SimHost] = {}

    async def manager(self, host: SimHost) -> None:
        node = NodeSettings(
            id=host.name, bind=Address(host.ip, PORT), data=Path("unused"), role="manager",
            seeds=tuple((f"10.0.0.{n + 1}", PORT) for n in range(len(self.names))),
            voters=self.names, plaintext="anywhere",
        )  # fmt: skip
        manager = self.managers[host.name] = Manager(host, ManagerSettings(node=node))
        if self.admission is not None:
            manager.node.admission.slots = Admission(self.admission)
        await manager.start()
        await manager.over.wait()

    async def client(self, host: SimHost) -> None:
        self.hosts[host.name] = host
        await host.clock.sleep(1_000)

    def peer(self, client: str, manager: Manager, role: str = "client") -> Peer:
        identity = Identity(
            node_id=client,
            incarnation=1,
            role=role,
            cluster_id="default",
            environment_id="dev",
            datacenter="local",
        )
        endpoint = endpoint_of(self.hosts[client], identity, plaintext="anywhere")
        return Peer(endpoint, Address(*manager.node.membership.me.tcp))

    @property
    def leader(self) -> Manager:
        return next(one for one in self.managers.values() if one.leadership.leads())

    @property
    def follower(self) -> Manager:
        return next(one for one in self.managers.values() if not one.leadership.leads())

    async def ready(self) -> None:
        for _ in range(600):
            leading = [one for one in self.managers.values() if one.leadership.leads()]
            if leading and all(
                one.leadership.leader_address() is not None for one in self.managers.values()
            ):
                return
            await self.world.sleep(0.1)
        raise AssertionError("nobody leads")


def play(story: Story, managers: Managers) -> None:
    for name in managers.names:
        managers.world.add(name, managers.manager)
    for name in ("c1", "c2"):
        managers.world.add(name, managers.client)
    over: list[bool] = []

    async def told(host: SimHost) -> None:
        await managers.ready()
        await story(managers)
        over.append(True)

    managers.world.add("teller", told)

    async def wait() -> None:
        while not over and not managers.world.failures and managers.world.now < 120:
            await managers.world.sleep(0.5)

    try:
        managers.world.run(wait())
        assert not managers.world.failures, managers.world.failures[0]
    finally:
        managers.world.close()
    assert over, "the story never ended"


async def answered(peer: Peer, times: int) -> tuple[int, Refused | None]:
    last = None
    count = 0
    for _ in range(times):
        try:
            await peer.request(AskJobs(), JobViews, 5)
            count += 1
        except Refused as refusal:
            last = refusal
    return count, last


def test_a_client_behind_a_follower_is_not_refused_for_what_another_asked() -> None:
    async def story(there: Managers) -> None:
        first, refusal = await answered(there.peer("c1", there.follower), 101)
        assert first == 100
        assert refusal is not None
        assert refusal.code == Reason.RATE_LIMITED
        assert "rate limited" in refusal.reason
        assert (await answered(there.peer("c2", there.follower), 5))[0] == 5
        # The same client at the leader itself: it has had its hundred.
        assert (await answered(there.peer("c1", there.leader), 1))[0] == 0

    play(story, Managers(("m1", "m2", "m3")))


def test_a_client_does_not_choose_for_whom_it_is_counted() -> None:
    async def story(there: Managers) -> None:
        peer, refused = there.peer("c1", there.leader), 0
        for number in range(110):
            try:
                await peer.request(AskJobs(passed_on=True, asked_by=f"c{number}"), JobViews, 5)
            except Refused:
                refused += 1
        assert refused == 10
        assert (await answered(there.peer("c2", there.follower), 1))[0] == 1

    play(story, Managers(("m1", "m2", "m3")))


def test_a_gate_asks_for_many_and_has_counted_each_of_them() -> None:
    async def story(there: Managers) -> None:
        gate = there.peer("c1", there.leader, role="gate")
        body = msgspec.msgpack.encode(Body(workflows=(FACTS,), source=b"", overrides=b""))
        for number in range(60):  # a client may ask for 50
            ask = SubmitJob(job_id=f"j{number}", body=body, asked_by="alice", certified=True)
            assert (await gate.request(ask, JobAck, 5)).accepted

    play(story, Managers(("m1",)))


async def watched_job(peer: Peer) -> None:
    body = Body(workflows=(FACTS,), source=b"", overrides=b"")
    ask = SubmitJob(job_id="j1", body=msgspec.msgpack.encode(body))
    assert (await peer.request(ask, JobAck, 5)).accepted


FEW = AdmissionSettings(
    total=100, high=50, normal=30, low=20, subscriptions=60, subscriptions_per_source=40
)


@pytest.mark.parametrize("names", [("m1",), ("m1", "m2", "m3")])
def test_watches_leave_the_slots_to_others_and_are_bounded_themselves(
    names: tuple[str, ...],
) -> None:
    async def story(there: Managers) -> None:
        via = there.leader if len(names) == 1 else there.follower
        greedy, modest = there.peer("c1", via), there.peer("c2", via)
        await watched_job(greedy)
        held: list[Updates[JobUpdate]] = []
        for _ in range(40):
            updates = await greedy.subscribe(WatchJob(job_id="j1"), JobUpdate)
            await anext(updates)
            held.append(updates)
        assert (await answered(modest, 5))[0] == 5
        for one in there.managers.values():
            assert one.node.admission.slots.in_flight == 0
        one_more = await greedy.subscribe(WatchJob(job_id="j1"), JobUpdate)
        with pytest.raises(Refused, match="watches too much") as refused:
            await anext(one_more)
        assert refused.value.retry_after_s is not None
        async with await modest.subscribe(WatchJob(job_id="j1"), JobUpdate) as updates:
            assert await anext(updates)
        held.pop().close()
        await there.world.sleep(1.0)
        held.append(await greedy.subscribe(WatchJob(job_id="j1"), JobUpdate))
        assert await anext(held[-1])
        for updates in held:
            updates.close()
        await there.world.sleep(1.0)

    play(story, Managers(names, FEW))


def test_every_limit_is_of_a_message_and_can_apply() -> None:
    manager = {kind.name: kind for kind in JOBS} | {kind.name: kind for kind in PARTS}
    for limits in (MANAGER_LIMITS.limits, WORKER_LIMITS.limits):
        assert limits
        for name in limits:
            assert name in manager, f"{name} is no message"
            assert manager[name].priority is not Priority.CRITICAL, f"{name} is never limited"
