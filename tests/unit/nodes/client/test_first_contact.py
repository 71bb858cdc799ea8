"""A client that knows nobody yet: how managers share its time, and what it says at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from hyperscale.errors import RunFailed
from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.errors import NoManagersAvailable
from hyperscale.nodes.client.managers import (
    FIRST_CONTACT_S,
    PATIENCE_S,
    REGISTRY,
    Managers,
    endpoint_of,
)
from hyperscale.nodes.protocol.jobs import (
    AskJobs,
    JobAck,
    JobUpdate,
    JobViews,
    SubmitJob,
    WatchJob,
)
from hyperscale.runtime.host import Address
from hyperscale.sim.links import Latency, Link, partition
from hyperscale.sim.world import World
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.errors import Refused
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.identity import Identity
from hyperscale.wire.server import Server
from tests.unit.sim.worlds import at, finish, world_of

PORT = 7000
KEY = "nightly:7:0123456789abcdef"


def who(name: str, role: str) -> Identity:
    return Identity(
        node_id=name,
        incarnation=1,
        role=role,
        cluster_id="default",
        environment_id="dev",
        datacenter="local",
    )


class Case:
    """A client c1 and managers that hold what is submitted and answer `after_s` later."""

    def __init__(self, *managers: str, after_s: float = 0.0) -> None:
        self.names = managers
        self.world: World = world_of("c1", *managers)
        self.after_s = after_s
        self.refusal: Refused | None = None
        self.submitted: list[str] = []

    def client(self) -> Cluster:
        host = self.world.host("c1")
        endpoint = endpoint_of(host, who("c1", "client"), plaintext="anywhere")
        return Cluster(host, Managers(endpoint, [at(self.world, m, PORT) for m in self.names]))

    def play(self, story: Callable[[], Coroutine[Any, Any, None]], *silent: str) -> None:
        """`silent` are hosts that take connections and never say a word."""

        async def played() -> None:
            for name in self.names:
                if name in silent:
                    await self.world.host(name).network.listen(Address("", PORT), _hang)
                else:
                    await Server(self._endpoint(name)).start(Address("", PORT))
            await story()

        finish(self.world, played())

    def _endpoint(self, name: str) -> Endpoint:
        return Endpoint(
            self.world.host(name),
            Introduction(who(name, "manager"), gateless=True),
            REGISTRY,
            {
                SubmitJob: self._submit,
                AskJobs: lambda call, ask: JobViews(jobs=(), leader=name),
                WatchJob: self._watch,
            },
            plaintext="anywhere",
        )

    async def _submit(self, call: Any, ask: SubmitJob) -> JobAck:
        self.submitted.append(ask.job_id)
        if self.refusal is not None:
            raise self.refusal
        await asyncio.sleep(self.after_s)
        return JobAck(job_id=ask.job_id, accepted=True)

    async def _watch(self, call: Any, ask: WatchJob) -> Any:
        yield JobUpdate(final=True)


async def _hang(_stream: Any) -> None:
    await asyncio.sleep(1e6)


def test_managers_that_hang_leave_time_for_the_last_one() -> None:
    case = Case("m1", "m2", "m3")

    async def story() -> None:
        assert (await case.client().jobs()).leader == "m3"
        assert [update.final async for update in case.client().follow("j1")] == [True]
        await case.client().managers.connect()

    case.play(story, "m1", "m2")


def test_hosts_that_do_not_exist_leave_time_for_the_last_one() -> None:
    case = Case("m1", "m2", "m3")

    async def story() -> None:
        case.world.network.cut(partition(["m1", "m2"]))
        assert (await case.client().jobs()).leader == "m3"

    case.play(story)


@pytest.mark.parametrize("how", ["hang", "cut", "nothing listens"])
def test_nobody_there_is_said_within_the_time_of_first_contact(how: str) -> None:
    case = Case("m1", "m2", "m3")

    async def story() -> None:
        if how == "cut":
            case.world.network.cut(partition(["m1", "m2", "m3"]))
        elif how == "nothing listens":
            for name in case.names:
                await case.world.stop(name)
        began = case.world.now
        with pytest.raises(NoManagersAvailable, match="no manager can be reached at") as caught:
            await case.client().submit(SubmitJob(job_id="j1", body=b""))
        assert "is the cluster running there" in caught.value.hint
        assert not caught.value.maybe_done
        assert case.world.now - began <= FIRST_CONTACT_S

    case.play(story, *(case.names if how == "hang" else ()))


def test_who_is_connected_has_time_to_answer() -> None:
    """Longer than the first contact may take: managers wait 5 s for each other."""
    case = Case("m1", "m2", after_s=FIRST_CONTACT_S + 1.0)

    async def story() -> None:
        ack = await case.client().submit(SubmitJob(job_id="j1", body=b""))
        assert ack.accepted

    case.play(story)
    assert case.submitted == ["j1"]


@pytest.mark.parametrize(
    ("key", "hint"), [("", "hyperscale status j1 tells"), (KEY, "the same idempotency key")]
)
def test_a_submission_without_an_answer_may_have_been_accepted(key: str, hint: str) -> None:
    case = Case("m1", after_s=1e6)

    async def story() -> None:
        began = case.world.now
        with pytest.raises(NoManagersAvailable, match="job j1 may have been accepted") as caught:
            await case.client().submit(SubmitJob(job_id="j1", body=b"", idempotency_key=key))
        assert hint in caught.value.hint
        assert "no manager can be reached" not in caught.value.message
        assert case.world.now - began > PATIENCE_S / 2

    case.play(story)
    assert set(case.submitted) == {"j1"}


def test_a_majority_that_did_not_confirm_in_time_may_do_so_later() -> None:
    case = Case("m1")
    case.refusal = Refused("submit.job", "a majority did not confirm within 5 s", 1.0)

    async def story() -> None:
        with pytest.raises(RunFailed, match=r"job j1 may have been .* did not confirm within 5 s"):
            await case.client().submit(SubmitJob(job_id="j1", body=b""))

    case.play(story)


@pytest.mark.parametrize("met", [False, True])
def test_a_large_test_over_a_slow_line_is_sent_once(met: bool) -> None:
    case = Case("m1")

    async def story() -> None:
        client = case.client()
        if met:
            await client.managers.connect()
        # 12 s: more than an attempt has, less than a manager waits for bytes, which the simulated
        # network delivers all at once.
        case.world.network.default = Link(Latency(0.01, 0.0), bytes_per_s=500_000.0)
        noise = Random(1).randbytes(6_000_000)  # does not become smaller on the wire
        ack = await client.submit(SubmitJob(job_id="j1", body=noise))
        assert ack.accepted

    case.play(story)
    assert case.submitted == ["j1"]


def test_what_is_waited_for_is_said_at_once_and_again_when_it_changes() -> None:
    case = Case("m1", "m2")
    case.refusal = Refused("submit.job", "no leader: m1 and m2 elect one", 0.5)
    said: list[tuple[float, str]] = []

    async def story() -> None:
        clock = case.world.host("c1").clock
        began = clock.now()
        cluster = case.client()
        cluster.managers.on_waiting = lambda text: said.append((clock.now() - began, text))
        submitting = asyncio.ensure_future(cluster.submit(SubmitJob(job_id="j1", body=b"")))
        await asyncio.sleep(3.0)
        case.refusal = Refused("submit.job", "no leader: m2 does not answer", 0.5)
        await asyncio.sleep(3.0)
        case.refusal = None
        assert (await submitting).accepted

    case.play(story)
    assert [text for _, text in said] == [
        "no leader: m1 and m2 elect one",
        "no leader: m2 does not answer",
    ]
    assert said[0][0] <= 2.0


def test_a_manager_that_hangs_is_named_at_once() -> None:
    case = Case("m1", after_s=5.0)
    said: list[str] = []

    async def story() -> None:
        cluster = case.client()
        cluster.managers.on_waiting = said.append
        assert (await cluster.submit(SubmitJob(job_id="j1", body=b""))).accepted

    case.play(story)
    assert said == [f"waiting for an answer of {at(case.world, 'm1', PORT)}"]


def test_a_cluster_that_answers_is_not_spoken_of() -> None:
    case = Case("m1", after_s=0.5)
    said: list[str] = []

    async def story() -> None:
        cluster = case.client()
        cluster.managers.on_waiting = said.append
        assert (await cluster.submit(SubmitJob(job_id="j1", body=b""))).accepted

    case.play(story)
    assert said == []
