"""One submission from key to answer, however often it is sent and wherever the node dies.

Steps: reserve the key, decide (which creates the job), write the answer, give the answer. The
procedure belongs to the node, not to the connection that asked: when the client goes away the job
is still decided, and its retry finds the answer. Dead between two steps, the next start finds a
reservation and settles it by whether the job exists.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from hyperscale.ledger.idempotency.key import IdempotencyKey
from hyperscale.ledger.idempotency.ledger import AnswerOf, IdempotencyLedger
from hyperscale.ledger.idempotency.table import Entry, Ruling, State, Verdict
from hyperscale.ledger.waiting import promise_of
from hyperscale.runtime.host import Tasks


class Kind(Enum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    """For good: the same request will never be accepted."""
    RETRYABLE = "retryable"
    """Not now: no capacity, rate limited, still being decided."""
    REDIRECT = "redirect"
    """Not here: the answer names who decides."""
    CONFLICT = "conflict"
    """The key was used before for something else."""


FINAL: Final = frozenset({Kind.ACCEPTED, Kind.REJECTED})
"""What may be remembered. Everything else would poison the key (GT-30)."""


class Decision(NamedTuple):
    """What was decided about a new submission, and the message that says so."""

    kind: Kind
    answer: bytes


Decide: TypeAlias = Callable[[str], Awaitable[Decision]]
"""Takes the job id; for ACCEPTED the job is durable when it returns. Raising means that nobody
knows: the job's existence will tell."""


@dataclass(frozen=True, slots=True)
class Answer:
    kind: Kind
    job_id: str
    answer: bytes = b""
    reason: str = ""
    """For people, where there is no answer to repeat."""
    duplicate: bool = False

    @classmethod
    def of(cls, entry: Entry) -> Answer:
        kind = Kind.ACCEPTED if entry.state is State.COMMITTED else Kind.REJECTED
        return cls(kind, entry.job_id, entry.answer, duplicate=True)


STILL_PENDING: Final = "Request pending, please retry"
NO_ROOM: Final = "Too many submissions are remembered, please retry"
OTHER_CONTENT: Final = "This idempotency key was used before for a different submission"


def known_answer(ruling: Ruling, job_id: str) -> Answer | None:
    """The answer that a ruling alone gives; None for NEW and PENDING."""
    match ruling:
        case Ruling(Verdict.ANSWERED, Entry() as entry):
            return Answer.of(entry)
        case Ruling(Verdict.CONFLICT, Entry() as entry):
            return Answer(Kind.CONFLICT, entry.job_id, reason=OTHER_CONTENT, duplicate=True)
        case Ruling(Verdict.FULL):
            return Answer(Kind.RETRYABLE, job_id, reason=NO_ROOM)
    return None


class Submissions:
    """At most one job per key. `answer_of` looks a job up in the store that `decide` writes to."""

    def __init__(self, ledger: IdempotencyLedger, tasks: Tasks, answer_of: AnswerOf) -> None:
        self._ledger = ledger
        self._tasks = tasks
        self._answer_of = answer_of

    async def recover(self) -> tuple[int, int]:
        """After the journal was read and before serving; jobs found, keys released."""
        return await self._ledger.settle_pending(self._answer_of)

    async def submit(
        self,
        key: IdempotencyKey | None,
        content: bytes,
        job_id: str,
        decide: Decide,
        source: str = "",
    ) -> Answer:
        """Without a key (an old client) everything is new. `source` is the gate that forwarded it,
        for the record. Raises what `decide` or the log raised; the same key may then be tried
        again."""
        if key is None:
            decision = await decide(job_id)
            return Answer(decision.kind, job_id, decision.answer)
        return await promise_of(
            self._tasks,
            f"submission {key}",
            lambda: self._submit(key, content, job_id, decide, source),
        )

    async def _submit(
        self, key: IdempotencyKey, content: bytes, job_id: str, decide: Decide, source: str
    ) -> Answer:
        ruling = await self._ledger.reserve(key, job_id, content, source)
        if ruling.verdict is Verdict.NEW:
            return await self._decide(key, job_id, decide)
        known = known_answer(ruling, job_id)
        if known is not None:
            return known
        entry = await self._ledger.answer_within(key, self._ledger.settings.pending_wait_s)
        if entry is not None:
            return Answer.of(entry)
        return Answer(Kind.RETRYABLE, job_id, reason=STILL_PENDING, duplicate=True)

    async def _decide(self, key: IdempotencyKey, job_id: str, decide: Decide) -> Answer:
        try:
            decision = await decide(job_id)
        except Exception:
            await self._close(key, self._settle_unknown(key, job_id))
            raise
        if decision.kind is Kind.ACCEPTED:
            await self._close(key, self._ledger.commit(key, decision.answer))
        elif decision.kind is Kind.REJECTED:
            await self._close(key, self._ledger.reject(key, decision.answer))
        else:
            await self._close(key, self._ledger.release(key))
        return Answer(decision.kind, job_id, decision.answer)

    async def _close(self, key: IdempotencyKey, closing: Awaitable[object]) -> None:
        """A key that could not be closed is still reserved, so nobody else can have it meanwhile;
        left held, it would stay so until the next start."""
        try:
            await closing
        except BaseException:
            self._ledger.let_go(key)
            raise

    async def _settle_unknown(self, key: IdempotencyKey, job_id: str) -> None:
        answer = await self._answer_of(job_id)
        if answer is None:
            await self._ledger.release(key)
        else:
            await self._ledger.commit(key, answer)
