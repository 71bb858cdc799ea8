"""What the key of a worker opens at a manager: its own work, and nothing that people ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hyperscale.nodes.member.queries import AskMembers, AskStatus, Members, Status
from hyperscale.nodes.protocol.jobs import (
    AskJob,
    AskJobs,
    AskResults,
    AskWorkers,
    DrainAck,
    DrainWorker,
    JobAck,
    JobResults,
    JobUpdate,
    JobView,
    JobViews,
    SteerAck,
    SteerJob,
    WatchJob,
    WorkerViews,
)
from hyperscale.nodes.protocol.records import RecordsReply, RecordsRequest
from hyperscale.wire.errors import Reason, Refused
from hyperscale.wire.peer import Peer
from tests.integration.cluster.fleet import Fleet
from tests.integration.cluster.loads import steady
from tests.integration.cluster.witness import Witness
from tests.integration.security.intruder import speaking, submission


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with Fleet(tmp_path_factory.mktemp("fleet"), managers=1, workers=1, tls=True) as made:
        yield made.start()


QUESTIONS: list[tuple[Any, Any]] = [
    (AskJobs(), JobViews),
    (AskJob(job_id="x"), JobView),
    (AskResults(job_id="x"), JobResults),
    (AskWorkers(), WorkerViews),
    (DrainWorker(worker="w1"), DrainAck),
    (AskMembers(), Members),
    (AskStatus(), Status),
    (RecordsRequest(data=b"\x80"), RecordsReply),
]


@pytest.mark.parametrize(("question", "answer"), QUESTIONS, ids=lambda one: type(one).__name__)
def test_it_asks_nothing_that_people_ask(
    fleet: Fleet, question: msgspec.Struct, answer: type[Any]
) -> None:
    async def asks(peer: Peer) -> Refused:
        with pytest.raises(Refused) as refusal:
            await peer.request(question, answer, 10.0)
        return refusal.value

    refused = speaking(fleet, "w1", "worker", asks)
    assert refused.code == Reason.ROLE_NOT_ALLOWED
    assert "a worker (w1) may not send it: it may come from" in refused.reason


def test_it_neither_submits_nor_watches_nor_cancels(fleet: Fleet, tmp_path: Path) -> None:
    with Witness() as witness:
        job_id = fleet.detached(steady(tmp_path, witness.url, duration="60s"))
        fleet.wait_until_running(job_id)
        mine = submission(steady(tmp_path, witness.url, name="mine.py"), requested_by="boss")

        async def tries(peer: Peer) -> list[str]:
            codes = []
            for message, answer in (
                (SteerJob(job_id=job_id, action="cancel", by="root@boss"), SteerAck),
                (mine, JobAck),
            ):
                with pytest.raises(Refused) as refusal:
                    await peer.request(message, answer, 10.0)
                codes.append(refusal.value.code)
            with pytest.raises(Refused) as refusal:
                async with await peer.subscribe(WatchJob(job_id=job_id), JobUpdate) as updates:
                    await anext(aiter(updates))
            return [*codes, refusal.value.code]

        assert speaking(fleet, "w1", "worker", tries) == [Reason.ROLE_NOT_ALLOWED] * 3
        view = fleet.only_job()
        assert (view.job_id, view.status) == (job_id, "running")
        assert fleet.hyperscale("cancel", job_id).code == 0
        fleet.wait_for_end(job_id)


def test_a_client_speaks_for_no_worker(fleet: Fleet) -> None:
    from hyperscale.nodes.protocol.parts import LeaveWorker, Left

    async def leaves(peer: Peer) -> Refused:
        with pytest.raises(Refused) as refusal:
            await peer.request(LeaveWorker(worker="w1", incarnation=1), Left, 10.0)
        return refusal.value

    refused = speaking(fleet, "client", "client", leaves)
    assert refused.code == Reason.ROLE_NOT_ALLOWED
    assert "it may come from worker" in refused.reason
