"""A node under a flood of telemetry still answers what is critical."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hyperscale.cluster.overload import (
    Admission,
    AdmissionSettings,
    LoadLevel,
    OverloadDetector,
    RateLimiter,
    RateLimitSettings,
    Resources,
)
from hyperscale.cluster.overload import Priority as Class
from hyperscale.nodes.member.admission import NodeAdmission
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.errors import Reason, Refused
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.identity import Identity
from hyperscale.wire.messages import Priority, Registry
from hyperscale.wire.peer import Peer
from hyperscale.wire.server import Server
from hyperscale.wire.serving import Call


class Ping(msgspec.Struct, frozen=True, tag="ping"):
    number: int


class Report(msgspec.Struct, frozen=True, tag="report"):
    number: int


class Submit(msgspec.Struct, frozen=True, tag="job_submit"):
    number: int


KINDS = Registry()
KINDS.add(Ping, priority=Priority.CRITICAL)
KINDS.add(Report, priority=Priority.LOW)
KINDS.add(Submit, priority=Priority.HIGH)


def test_the_wire_and_the_policies_mean_the_same_classes() -> None:
    assert [(each.name, each.value) for each in Priority] == [(c.name, c.value) for c in Class]


async def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(3_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen within 30 s")


def identity(name: str) -> Identity:
    return Identity(
        node_id=name,
        incarnation=1,
        role="probe",
        cluster_id="c",
        environment_id="e",
        datacenter="dc",
    )


class Scene:
    """A node with a admission, whose reports and submissions take until `work` is set."""

    def __init__(self, tmp_path: Path, admission: NodeAdmission | None = None) -> None:
        self.host = RealHost("node", tmp_path)
        settings = AdmissionSettings(total=10, high=5, normal=3, low=2)
        self.admission = admission or NodeAdmission(self.host, Admission(settings))
        self.work = asyncio.Event()

    async def __aenter__(self) -> Scene:
        handlers = {Ping: lambda _call, ping: ping, Report: self.slow, Submit: self.slow}
        node = Endpoint(
            self.host,
            Introduction(identity("node")),
            KINDS,
            handlers,
            plaintext="loopback",
            admission=self.admission,
        )
        caller = Endpoint(self.host, Introduction(identity("caller")), KINDS, plaintext="loopback")
        self.peer = Peer(caller, await Server(node).start(Address("127.0.0.1", 0)))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.host.stop()

    async def slow(self, _call: Call, message: object) -> object:
        await self.work.wait()
        return message


def test_telemetry_is_shed_and_counted_and_pings_are_answered(tmp_path: Path) -> None:
    async def story() -> None:
        async with Scene(tmp_path) as scene:
            for number in range(100):
                await scene.peer.send(Report(number))
            for number in range(20):
                assert await scene.peer.request(Ping(number), Ping) == Ping(number)
            with pytest.raises(Refused) as refused:
                await scene.peer.request(Report(0), Report)
            assert refused.value.code == Reason.OVERLOADED
            assert refused.value.retry_after_s is not None
            counts = scene.admission.slots.counts()
            low, critical = counts[Class.LOW], counts[Class.CRITICAL]
            assert (low.in_flight, low.acquired, low.shed) == (2, 2, 99)
            assert (critical.acquired, critical.shed) == (20, 0)
            scene.work.set()
            assert await scene.peer.request(Submit(1), Submit) == Submit(1)
            await eventually(lambda: scene.admission.slots.in_flight == 0)

    asyncio.run(story())


def test_the_rate_limit_is_per_operation_and_gives_the_slot_back(tmp_path: Path) -> None:
    async def story() -> None:
        host = RealHost("other", tmp_path / "other")
        limiter = RateLimiter(RateLimitSettings(limits={"job_submit": 3}))
        admission = NodeAdmission(host, limiter=limiter)
        async with Scene(tmp_path, admission) as scene:
            scene.work.set()
            for number in range(3):
                await scene.peer.request(Submit(number), Submit)
            with pytest.raises(Refused) as refused:
                await scene.peer.request(Submit(4), Submit)
            assert refused.value.retry_after_s is not None
            assert 0 < refused.value.retry_after_s <= 20.0
            assert await scene.peer.request(Ping(1), Ping) == Ping(1)
            assert admission.slots.in_flight == 0
        await host.stop()

    asyncio.run(story())


def test_an_overloaded_machine_sheds_all_but_critical(tmp_path: Path) -> None:
    async def story() -> None:
        host = RealHost("other", tmp_path / "other")
        detector = OverloadDetector()
        admission = NodeAdmission(
            host, Admission(AdmissionSettings(high_when_overloaded=1)), None, detector
        )
        async with Scene(tmp_path, admission) as scene:
            admission.watch(lambda: Resources(memory=0.99))
            await eventually(lambda: admission.load is LoadLevel.OVERLOADED)
            assert await scene.peer.request(Ping(1), Ping) == Ping(1)
            with pytest.raises(Refused):
                await scene.peer.request(Report(1), Report)
            scene.work.set()
            assert await scene.peer.request(Submit(1), Submit) == Submit(1), "the HIGH quota"
        await host.stop()

    asyncio.run(story())
