"""Replicas with the bugs that Viewstamped Replication has had; a checker must catch each."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from hyperscale.ledger.vsr.contact import Contact
from hyperscale.ledger.vsr.core import Send
from hyperscale.ledger.vsr.graves import Graves
from hyperscale.ledger.vsr.groups import Groups
from hyperscale.ledger.vsr.messages import (
    DoViewChange,
    Heartbeat,
    HeartbeatOk,
    Promised,
    RecoveryResponse,
    Saved,
)
from hyperscale.ledger.vsr.replica import Replica
from hyperscale.ledger.vsr.replica_set import NodeEffect, OfReplica, ReplicaSet
from hyperscale.ledger.vsr.states import Status

PLANTED_BUGS: Final = {
    "primary-suffices": "DurableAnswer",
    "answer-before-sync": "DurableAnswer",
    "longest-log": "OneHistory",
    "promise-in-memory": "OneHistory",
    "recover-from-anybody": "framework",
    "read-without-lease": "Linearizable",
    "leave-within-lease": "Linearizable",
    "promise-whatever": "Linearizable",
    "forget-at-once": "framework",
}


class PrimarySuffices(Replica):
    def _count(self, now: float) -> None:
        if self.is_primary:
            self._advance(now, self.state.op)


class LongestLog(Replica):
    """Of the logs it is sent it takes the longest, from whatever view."""

    def _on_do_view_change(self, now: float, sender: str, message: DoViewChange) -> None:
        same = DoViewChange(message.epoch, message.view, 0, message.log, message.commit)
        super()._on_do_view_change(now, sender, same)


class PromiseInMemory(Replica):
    def _save(self, record: Saved) -> None:
        super()._save(record)
        if isinstance(record, Promised):
            self._effects.pop()
            self._unsaved.pop()


class RecoverFromAnybody(Replica):
    """Begins anew in the newest view it hears of, with what the next `Prepare` brings."""

    def _on_recovery_response(self, now: float, sender: str, message: RecoveryResponse) -> None:
        self._enter(Status.NORMAL)


class ReadWithoutLease(Replica):
    def may_read(self, now: float) -> bool:
        return self.is_primary and self.commit >= self._ready_op


class LeaveWithinLease(Replica):
    """Leaves its primary after a quarter of the time that it promised."""

    def _is_bound(self, now: float) -> bool:
        return self.is_primary and super()._is_bound(now)

    def _wait(self, now: float) -> None:
        super()._wait(now)
        self._bound_until = -inf
        self._patience_s *= 0.25


class AnswerBeforeSync(Groups):
    async def _carry_out_batch(self, batch: list[NodeEffect]) -> None:
        self._say(batch)
        sends = [
            one for one in batch if isinstance(one, OfReplica) and isinstance(one.effect, Send)
        ]
        await super()._carry_out_batch([one for one in batch if one not in sends])


REPLICAS: Final[dict[str, type[Replica]]] = {
    "primary-suffices": PrimarySuffices,
    "longest-log": LongestLog,
    "promise-in-memory": PromiseInMemory,
    "recover-from-anybody": RecoverFromAnybody,
    "read-without-lease": ReadWithoutLease,
}


class Impatient(ReplicaSet):
    """Its replicas may leave whenever they like."""

    replica_class = LeaveWithinLease

    def tick(self, now: float) -> list[NodeEffect]:
        self._active |= self.replicas.keys()
        return super().tick(now)


class PromiseWhatever(ReplicaSet):
    """Answers a heartbeat without comparing digests."""

    def contact(self, peer: str) -> Contact:
        found = super().contact(peer)
        found.__class__ = _Undiscerning
        return found


class ForgetAtOnce(ReplicaSet):
    """Forgets a group that is over, and that it was there."""

    def _bury(self, now: float, group: str, replica: Replica) -> None:
        super()._bury(now, group, replica)
        self.graves = Graves(0.0)


class _Undiscerning(Contact):
    def answer(self, now: float, beat: Heartbeat, digests: Sequence[int]) -> HeartbeatOk:
        return super().answer(now, beat, beat.digests)


SETS: Final[dict[str, type[ReplicaSet]]] = {
    "leave-within-lease": Impatient,
    "promise-whatever": PromiseWhatever,
    "forget-at-once": ForgetAtOnce,
}


def planted(planted_bug: str) -> type[ReplicaSet]:
    if planted_bug in SETS:
        return SETS[planted_bug]
    replica = REPLICAS.get(planted_bug, Replica)
    return type("Planted", (ReplicaSet,), {"replica_class": replica})
