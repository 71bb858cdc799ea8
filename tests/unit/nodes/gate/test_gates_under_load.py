"""Gates with too much to do: what is refused, who is heard, and that nothing accepted is lost."""

from __future__ import annotations

from typing import Any

import pytest

from hyperscale.cluster.overload import LoadLevel
from hyperscale.nodes.protocol.jobs import (
    AskJob,
    JobAck,
    JobUpdate,
    JobView,
    SteerAck,
    SteerJob,
    SubmitJob,
    WatchJob,
)
from hyperscale.wire.errors import Reason, Refused
from hyperscale.wire.updates import Updates
from tests.unit.nodes.gate.quiet_world import Forced, QuietWorld, accepted, play, submission

WINDOW = 64  # updates that may be under way to one watcher


async def answered(there: QuietWorld, client: str, gate: str, count: int) -> int:
    """How many questions about a job get an answer."""
    peer, refusals = there.peer(client, gate), list[Refused]()
    for _ in range(count):
        try:
            await peer.request(AskJob(job_id="j1"), JobView, 5)
        except Refused as refusal:
            refusals.append(refusal)
    assert {one.code for one in refusals} <= {Reason.RATE_LIMITED}
    assert all(one.retry_after_s for one in refusals)
    return count - len(refusals)


def test_a_client_has_its_hundred_wherever_it_asks() -> None:
    async def story(there: QuietWorld) -> None:
        await accepted(there.peer("c1", "g1"), submission("j1"))
        owner = there.owner("j1")
        others = [name for name in there.scenario.gates if name != owner]
        assert await answered(there, "c1", others[0], 60) == 60
        assert await answered(there, "c1", others[1], 60) == 40, "the owner has counted the rest"
        assert await answered(there, "c2", others[1], 20) == 20, "another client has its own"

    play(story)


def test_an_overloaded_gate_refuses_in_order_and_says_when_to_come_again() -> None:
    async def story(there: QuietWorld) -> None:
        await accepted(there.peer("c1", "g1"), submission("j1", 60.0))
        gate, peer = there.owner("j1"), there.peer("c1", there.owner("j1"))
        forced = Forced()
        there.gate(gate).node.admission.detector = forced
        forced.level = LoadLevel.STRESSED
        with pytest.raises(Refused, match="overloaded") as refused:
            await peer.request(AskJob(job_id="j1"), JobView, 5)
        assert refused.value.retry_after_s == 1.0
        assert refused.value.code == Reason.OVERLOADED
        again = submission("j1", 60.0)
        assert (await peer.request(again, JobAck, 5)).was_duplicate, "a submission comes before"
        forced.level = LoadLevel.OVERLOADED
        cancel = SteerJob(job_id="j1", action="cancel", command_id="c1")
        assert (await peer.request(cancel, SteerAck, 5)).accepted, "CRITICAL is never refused"
        assert there.gate(gate).datacenters.watch.reached() == ["dc1", "dc2", "dc3"]
        forced.level = LoadLevel.HEALTHY

        def cancelled() -> bool:
            job = there.gate(gate).ledger.jobs.job("j1")
            return job is not None and job.is_over

        await there.until(cancelled)

    play(story)


@pytest.mark.parametrize("through_the_owner", [True, False])
def test_a_slow_watcher_costs_a_window_and_slows_nobody(through_the_owner: bool) -> None:
    async def story(there: QuietWorld) -> None:
        await accepted(there.peer("c1", "g1"), submission("j1", 90.0))
        owner = there.owner("j1")
        other = next(name for name in there.scenario.gates if name != owner)
        gate = owner if through_the_owner else other
        slow = await there.peer("c1", gate).subscribe(WatchJob(job_id="j1"), JobUpdate, WINDOW)
        await anext(slow)
        fast = await there.peer("c2", gate).subscribe(WatchJob(job_id="j1"), JobUpdate, WINDOW)
        seen = [update async for update in fast]
        assert seen[-1].final
        assert len(seen) > 2 * WINDOW, "it was told as often as ever"
        assert waiting(slow) <= WINDOW
        if not through_the_owner:
            passing = [one for one in sessions(there, gate) if waiting(one) > 0]
            assert all(waiting(one) <= WINDOW for one in passing)
        rest = [update async for update in slow]
        assert rest[-1].final
        assert rest[-1].results == seen[-1].results

    play(story)


def waiting(updates: Updates[Any]) -> int:
    return len(updates._queue)


def sessions(there: QuietWorld, gate: str) -> list[Updates[Any]]:
    """Streams that one gate passes on from another."""
    found: list[Updates[Any]] = []
    for connection in there.gate(gate).node.endpoint.live:
        found += connection._calls._subscribed.values()
    return found


def test_a_datacenter_that_asks_for_patience_has_it() -> None:
    """For far longer than a silent one would."""

    async def story(there: QuietWorld) -> None:
        manager = there.manager("dc2-m1")
        handlers: Any = manager.node.endpoint.handlers
        whole = handlers[SubmitJob]
        refusals = 0

        async def busy(call: Any, ask: SubmitJob) -> JobAck:
            nonlocal refusals
            refusals += 1
            raise Refused("submit.job", "this node is overloaded", 5.0, Reason.OVERLOADED)

        handlers[SubmitJob] = (busy, whole[1])
        begin_within_s = 20.0
        await accepted(there.peer("c1", "g1"), submission("j1", 5.0))
        await there.world.sleep(begin_within_s - 6.0)
        assert refusals >= 2
        job = there.gate(there.owner("j1")).ledger.jobs.job("j1")
        assert job is not None
        assert job.ends == {}
        handlers[SubmitJob] = whole
        await there.until(lambda: job.is_over)
        assert job.completed is not None
        assert job.completed.status == "completed"

    play(story)


def test_circuits_choose_and_keep_nothing_back() -> None:
    async def story(there: QuietWorld) -> None:
        gate = there.gate("g1")
        place = gate._settings.datacenters["dc2"][0]
        for _ in range(3):
            gate.datacenters.outcome("dc2", place, answered=False)
        (one,) = [one for one in gate.datacenters.states().datacenters if one.name == "dc2"]
        assert one.circuits_open == 1
        decision = await gate.router.choose("x", count=2)
        assert sorted(decision.chosen) == ["dc1", "dc3"]
        assert decision.fallback == ()
        strict = await gate.router.choose("x", named=("dc2",), policy="strict")
        assert "open circuits" in strict.error
        await there.world.sleep(10.5)
        gate.datacenters.outcome("dc2", place, answered=True)
        assert (await gate.router.choose("x", named=("dc2",), policy="strict")).chosen == ("dc2",)

    play(story)
