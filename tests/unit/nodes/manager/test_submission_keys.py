"""Keys of submissions, as a manager takes them: checked, echoed, asked for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hyperscale.nodes.protocol.jobs import UNKNOWN_JOB, AskJob, Body, JobAck, JobView, SubmitJob
from hyperscale.wire.errors import Refused
from tests.unit.nodes.manager.cases import FACTS
from tests.unit.nodes.manager.lone_manager import LoneManager, play

KEY = "ci:1:0123456789abcdef"
OTHER = msgspec.structs.replace(FACTS, priority="urgent")


async def submit(
    lone: LoneManager,
    *,
    body: bytes | None = None,
    job_id: str = "j1",
    key: str = KEY,
    **given: Any,
) -> JobAck:
    if body is None:
        facts = {"workflows": (FACTS,), "source": b"", "overrides": b""} | given
        body = msgspec.msgpack.encode(Body(**facts))
    ask = SubmitJob(job_id=job_id, body=body, idempotency_key=key)
    return await lone.client_api.submit(lone.call("submit.job", "client", "c1"), ask)


async def ask(lone: LoneManager, key: str) -> JobView:
    question = AskJob(job_id="", idempotency_key=key)
    return await lone.client_api.job(lone.call("ask.job", "client", "c1"), question)


@pytest.mark.parametrize("key", ["not a key", "\n\x00", "x" * 1_000_000, "ci:1:0123456789ABCDEF"])
def test_what_is_no_key_is_refused_with_the_client_s_sentence(key: str) -> None:
    async def story(lone: LoneManager) -> None:
        ack = await submit(lone, key=key)
        assert not ack.accepted
        assert ack.error.startswith("Invalid idempotency key format: ")
        assert "client:sequence:nonce" in ack.hint
        assert len(msgspec.msgpack.encode(ack)) < 1 << 16
        assert lone.manager.jobs.jobs() == []

    play(story)


@pytest.mark.parametrize("refused", [{"body": b"\xc1"}, {"workflows": (OTHER,)}])
def test_a_refusal_is_the_same_each_time_and_leaves_its_key_free(refused: dict[str, Any]) -> None:
    async def story(lone: LoneManager) -> None:
        first = await submit(lone, **refused)
        assert not first.accepted
        assert (first.idempotency_key, first.retry_after_s) == (KEY, 0.0)
        assert await submit(lone, **refused) == first
        mended = await submit(lone)
        assert mended.accepted
        assert not mended.was_duplicate
        assert await submit(lone, **refused, job_id="j1") != mended

    play(story)


def test_the_job_of_a_key_can_be_asked_for() -> None:
    async def story(lone: LoneManager) -> None:
        assert (await submit(lone)).accepted
        view = await ask(lone, KEY)
        assert (view.job_id, view.idempotency_key) == ("j1", KEY)
        with pytest.raises(Refused, match="no job with the key 'ci:2:") as refusal:
            await ask(lone, KEY.replace("1", "2", 1))
        assert refusal.value.code == UNKNOWN_JOB

    play(story)


def test_another_test_under_the_same_key_is_told_whose_it_is() -> None:
    async def story(lone: LoneManager) -> None:
        assert (await submit(lone, source=b"1", identity="a")).accepted
        again = await submit(lone, source=b"2", identity="a", job_id="j2")
        assert (again.accepted, again.was_duplicate, again.job_id) == (True, True, "j1")
        other = await submit(lone, source=b"1", identity="b", job_id="j2")
        assert not other.accepted
        assert other.error == "its key belongs to job j1, which is another test"
        assert "a new test needs a new key" in other.hint

    play(story)
