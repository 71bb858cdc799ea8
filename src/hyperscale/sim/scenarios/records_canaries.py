"""Replicas with the bugs that replicated logs have had; a checker must catch each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from hyperscale.ledger.records import QuorumRecords
from hyperscale.ledger.records.durable_replica import DurableReplica
from hyperscale.ledger.records.messages import Append, Appended
from hyperscale.ledger.records.replica import DiskWrite, Replica
from hyperscale.ledger.records.snapshots import Captured

CANARIES: Final = {
    # "framework": the replicas' own checks see it before anybody outside can.
    "leader-suffices": "DurableAck",
    "answer-before-sync": "DurableAck",
    "counts-itself-early": "DurableAck",
    "trust-own-log": "NothingLost",
    "ask-a-minority": "NothingLost",
    "no-conflict-check": "OneHistory",
    "checkpoint-without-tail": "framework",
    "apply-uncommitted": "DurableAck",
    "obey-the-old": "framework",
    "state-twice": "InOrder",
    "forget-locally": "ForgottenStays",
}


class LeaderSuffices(Replica):
    def _count(self) -> None:
        if self._leadership is not None and self._leadership.barrier:
            self.commit_index = self.log.stable_index


class CountsItselfEarly(Replica):
    """A leader's own copy counts before it is on its disk."""

    def take_writes(self) -> list[DiskWrite]:
        taken = super().take_writes()
        if self._leadership is not None:
            self.log.written(self.write)
            self._count()
        return taken


class TrustsOwnLog(Replica):
    def donor(self) -> str | None:
        return self.name if super().donor() is not None else None


class AsksAMinority(Replica):
    """Once it belongs; before that there would be no cluster to harm."""

    def donor(self) -> str | None:
        if self.newcomer or self._leadership is None:
            return super().donor()
        return self.name


class NoConflictCheck(Replica):
    """Believes that what it has at an index is what the leader has."""

    def append(self, peer: str, request: Append) -> Appended:
        term = self.log.term_at(request.previous_index)
        if term is not None:
            request = Append(
                request.term,
                request.previous_index,
                term,
                request.commit_index,
                tuple(one for one in request.entries if one.index > self.log.last_index),
            )
        return super().append(peer, request)


class AppliesUncommitted(Replica):
    """A follower applies whatever it is sent."""

    @property
    def applicable_index(self) -> int:
        return super().applicable_index if self._leadership is not None else self.log.stable_index


class ObeysTheOld(Replica):
    """A promise does not keep older leaders out."""

    def append(self, peer: str, request: Append) -> Appended:
        if self._leadership is not None or request.term >= self.term:
            return super().append(peer, request)
        term, self.term = self.term, request.term
        follows, self._follows = self._follows, peer
        reply = super().append(peer, request)
        self.term, self._follows = term, follows
        return reply


class WithoutTail(DurableReplica):
    def _capture(self) -> Captured:
        return replace(super()._capture(), tail=())


class StateTwice(DurableReplica):
    """After a new state it tells of everything in it again."""

    def _announce(self, before: Any, news_after: int) -> None:
        super()._announce(before, 0)


REPLICAS: Final[dict[str, type[Replica]]] = {
    "leader-suffices": LeaderSuffices,
    "counts-itself-early": CountsItselfEarly,
    "trust-own-log": TrustsOwnLog,
    "ask-a-minority": AsksAMinority,
    "no-conflict-check": NoConflictCheck,
    "apply-uncommitted": AppliesUncommitted,
    "obey-the-old": ObeysTheOld,
}
DURABLE_REPLICAS: Final[dict[str, type[DurableReplica]]] = {
    "checkpoint-without-tail": WithoutTail,
    "state-twice": StateTwice,
}


def plant(records: QuorumRecords, bug: str) -> None:
    """Make open records wrong in one way; nothing for ""."""
    durable = records._durable
    if bug in REPLICAS:
        durable.replica.__class__ = REPLICAS[bug]
    if bug in DURABLE_REPLICAS:
        durable.__class__ = DURABLE_REPLICAS[bug]
    if bug == "answer-before-sync":
        durable.waiters.written = _at_once  # type: ignore[method-assign]
    if bug == "forget-locally":
        _forget_locally(records)


async def _at_once(write: int) -> None:
    """Waits for nothing."""


def _forget_locally(records: QuorumRecords) -> None:
    """Ended jobs are dropped by a leader's own clock, without an entry that tells the others."""
    durable = records._durable

    def forget() -> None:
        for job_id in durable.job_table.due(durable._host.clock.now(), 100):
            if durable.job_table.forget(job_id):
                durable._tell(durable.on_forgotten, job_id)

    records._forget_due = forget  # type: ignore[method-assign]
