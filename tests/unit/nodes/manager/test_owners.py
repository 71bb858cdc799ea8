"""Whose a job is, by certificate, and what others may do with it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hyperscale.config.sections import Reading, Sources
from hyperscale.errors import BadInput
from hyperscale.nodes.manager.leadership import passed_on
from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.manager.settings import SECTIONS, manager_settings
from hyperscale.nodes.member.access import NOT_OWNER, OPERATORS, Access, Asker
from hyperscale.nodes.protocol.jobs import (
    AskJob,
    AskJobs,
    AskResults,
    AskWorkers,
    Body,
    SteerAck,
    SteerJob,
    SubmitJob,
    WatchJob,
)
from hyperscale.wire.errors import Refused
from tests.unit.nodes.manager.cases import FACTS
from tests.unit.nodes.manager.lone_manager import LoneManager, play


def client(lone: LoneManager, name: str, *groups: str, certified: bool = True) -> Any:
    return lone.call("test", "client", name, certified, groups)


def submission(job_id: str = "j1", **given: Any) -> SubmitJob:
    body = Body(workflows=(FACTS,), source=b"", overrides=b"")
    return SubmitJob(job_id=job_id, body=msgspec.msgpack.encode(body), **given)


async def cancel(lone: LoneManager, call: Any, **given: Any) -> SteerAck:
    return await lone.client_api.steer(call, SteerJob(job_id="j1", action="cancel", **given))


def owner(manager: Manager, job_id: str = "j1") -> str:
    job = manager.jobs.job(job_id)
    assert job is not None
    return job.submitted.owner


def test_a_job_belongs_to_the_certificate_and_not_to_the_name_that_is_told() -> None:
    async def story(lone: LoneManager) -> None:
        await lone.client_api.submit(client(lone, "alice"), submission(requested_by="boss@hq"))
        view = await lone.manager.client_queries.job(client(lone, "alice"), AskJob(job_id="j1"))
        assert (view.owner, view.requested_by) == ("alice", "boss@hq")

    play(story)


STOP = SteerJob(job_id="j1", action="stop")


def test_others_read_it_and_do_not_steer_it() -> None:
    async def story(lone: LoneManager) -> None:
        await lone.client_api.submit(client(lone, "alice"), submission())
        bob = client(lone, "bob")
        assert (await lone.manager.client_queries.job(bob, AskJob(job_id="j1"))).job_id == "j1"
        ack = await cancel(lone, bob, by="alice")
        assert not ack.accepted
        assert ack.error == (
            "job j1 belongs to alice; bob may only read it (manager.jobs_of_others)"
        )
        assert not (await cancel(lone, client(lone, "alice", certified=False))).accepted
        assert (await cancel(lone, client(lone, "alice"), by="ada@laptop")).accepted
        job = lone.manager.jobs.job("j1")
        assert job is not None
        assert job.by == "alice (ada@laptop)"

    play(story)


@pytest.mark.parametrize(
    ("groups", "may"), [(("shop",), True), (("bank",), False), (("bank", "operators"), True)]
)
def test_a_job_is_its_submitters_groups_too(groups: tuple[str, ...], may: bool) -> None:
    async def story(lone: LoneManager) -> None:
        await lone.client_api.submit(client(lone, "alice", "shop", "ci"), submission())
        for groups_told in ((), groups):
            bob = client(lone, "bob", *groups)
            follower = lone.call("test", "manager", "m2", certified=True)
            asks = passed_on(bob, SteerJob(job_id="j1", action="cancel", groups=groups_told))
            ack = await lone.client_api.steer(follower, asks)
            assert ack.accepted == may, ack.error
        forged = SteerJob(job_id="j1", action="cancel", groups=("shop", "operators"))
        assert not (await lone.client_api.steer(client(lone, "mallory"), forged)).accepted

    play(story)


@pytest.mark.parametrize(("groups", "may"), [((), False), (("shop",), False), ((OPERATORS,), True)])
def test_where_there_are_certificates_operators_drain(groups: tuple[str, ...], may: bool) -> None:
    who = Asker("bob", True, groups)
    assert Access("steer", with_certificates=True).may_drain(who) == may
    assert Access("none", with_certificates=False).may_drain(who)


def test_nobody_who_is_not_named_by_a_certificate_is_kept_from_anything() -> None:
    async def story(lone: LoneManager) -> None:
        await lone.client_api.submit(client(lone, "alice", certified=False), submission())
        assert owner(lone.manager) == ""
        assert (await cancel(lone, client(lone, "bob", certified=False), by="bob@laptop")).accepted
        job = lone.manager.jobs.job("j1")
        assert job is not None
        assert job.by == "bob@laptop"

    play(story)


def test_a_manager_that_passes_it_on_vouches_and_a_client_cannot() -> None:
    async def story(lone: LoneManager) -> None:
        forged = submission(asked_by="alice", certified=True)
        await lone.client_api.submit(client(lone, "mallory"), forged)
        assert owner(lone.manager) == "mallory"
        follower = lone.call("test", "manager", "m2", certified=True)
        told = passed_on(client(lone, "alice"), submission("j2", asked_by="mallory"))
        await lone.client_api.submit(follower, told)
        assert owner(lone.manager, "j2") == "alice"
        unnamed = passed_on(client(lone, "alice", certified=False), submission("j3"))
        await lone.client_api.submit(follower, unnamed)
        assert owner(lone.manager, "j3") == ""

    play(story)


def test_what_a_gate_asks_is_the_same_through_a_manager_that_does_not_lead() -> None:
    async def story(lone: LoneManager) -> None:
        gate = lone.call("test", "gate", "g1", certified=True)
        follower = lone.call("test", "manager", "m2", certified=True)
        vouched = submission(asked_by="alice", certified=True, groups=("shop",))
        await lone.client_api.submit(follower, passed_on(gate, vouched))
        assert owner(lone.manager) == "alice"
        own = passed_on(lone.call("test", "gate", "g2", certified=True), STOP)
        assert (await lone.client_api.steer(follower, own)).accepted, "it looks after all jobs"

    play(story)


def test_every_question_that_is_passed_on_tells_who_asked() -> None:
    from hyperscale.nodes.protocol.jobs import JOBS

    async def story(lone: LoneManager) -> None:
        asking = [kind for kind in JOBS if "passed_on" in kind.struct.__struct_fields__]
        assert len(asking) == 8
        for kind in asking:
            assert {"asked_by", "certified", "groups"} <= set(kind.struct.__struct_fields__), (
                kind.name
            )

    play(story)


def test_where_others_may_steer_they_do() -> None:
    async def story(lone: LoneManager) -> None:
        await lone.client_api.submit(client(lone, "alice"), submission())
        assert (await cancel(lone, client(lone, "bob"))).accepted

    play(story, jobs_of_others="steer")


def test_where_others_may_not_read_they_see_nothing_of_it() -> None:
    async def story(lone: LoneManager) -> None:
        client_api, queries = lone.client_api, lone.manager.client_queries
        lone.register()
        await client_api.submit(
            client(lone, "alice"), submission(idempotency_key="alice:1:0123456789abcdef")
        )
        await lone.until(lambda: bool(lone.dispatched()))
        bob, alice = client(lone, "bob"), client(lone, "alice")
        for asks, message in (
            (queries.job, AskJob(job_id="j1")),
            (queries.job, AskJob(job_id="", idempotency_key="alice:1:0123456789abcdef")),
            (queries.results, AskResults(job_id="j1")),
            (queries.workers, AskWorkers(job_id="j1")),
            (client_api.steer, SteerJob(job_id="j1", action="cancel")),
        ):
            with pytest.raises(Refused, match="belongs to alice; bob may neither") as refusal:
                await asks(bob, message)  # type: ignore[operator]
            assert refusal.value.code == NOT_OWNER
        with pytest.raises(Refused, match="belongs to alice"):
            await anext(lone.manager.watching.watch(bob, WatchJob(job_id="j1")))
        assert (await queries.jobs(bob, AskJobs())).jobs == ()
        assert len((await queries.jobs(alice, AskJobs())).jobs) == 1
        assert [row.parts for row in (await queries.workers(bob, AskWorkers())).workers] == [()]
        assert (await queries.workers(alice, AskWorkers())).workers[0].parts

    play(story, jobs_of_others="none")


def test_a_policy_nobody_knows_is_refused_where_it_is_written() -> None:
    flags = {
        "id": "m1", "voters": ["m1"], "cluster": "c", "env": "e", "plaintext": True,
        "bind": "127.0.0.1:0", "set": ["manager.jobs_of_others=all"],
    }  # fmt: skip
    with pytest.raises(BadInput, match="jobs_of_others takes one of steer, read, none"):
        manager_settings(Reading(Sources(flags=flags), SECTIONS))
