"""A manager in miniature: jobs and keys on one journal, put together as a node would."""

from __future__ import annotations

from hyperscale.cluster.clocks import Stamp
from hyperscale.cluster.fencing import Fence
from hyperscale.ledger.idempotency import (
    Answer,
    Decision,
    IdempotencyKey,
    IdempotencyLedger,
    IdempotencySettings,
    Kind,
    Submissions,
    content_digest,
)
from hyperscale.ledger.jobs import JobCreated, JobLedger
from hyperscale.ledger.journal import Journal, rebuild
from hyperscale.runtime.host import Clock, Tasks

NONCE = "0123456789abcdef"


def key(sequence: int = 0, client: str = "host:17") -> IdempotencyKey:
    return IdempotencyKey.of(client, sequence, NONCE)


class Node:
    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        tasks: Tasks,
        settings: IdempotencySettings | None = None,
    ) -> None:
        self.journal = journal
        self.jobs = JobLedger(journal, clock, tasks)
        self.ledger = IdempotencyLedger(journal, clock, tasks, settings)
        self.submissions = Submissions(self.ledger, tasks, self.answer_of)
        self.decided = 0

    async def start(self) -> tuple[int, int]:
        await rebuild(self.journal, [self.jobs, self.ledger])
        return await self.submissions.recover()

    async def answer_of(self, job_id: str) -> bytes | None:
        return b"accepted " + job_id.encode() if job_id in self.jobs else None

    async def submit(
        self, idempotency_key: IdempotencyKey, job_id: str, spec: bytes = b"spec"
    ) -> Answer:
        async def create(wanted: str) -> Decision:
            self.decided += 1
            stamp = Stamp(self.decided, 0, "node")
            event = JobCreated(wanted, stamp, Fence(1), spec, ("dc",), idempotency_key)
            await self.jobs.record(event)
            return Decision(Kind.ACCEPTED, b"accepted " + wanted.encode())

        digest = content_digest(spec)
        return await self.submissions.submit(idempotency_key, digest, job_id, create)

    def jobs_of(self, idempotency_key: IdempotencyKey) -> list[str]:
        states = self.jobs.states()
        return [state.job_id for state in states if state.idempotency_key == idempotency_key]
