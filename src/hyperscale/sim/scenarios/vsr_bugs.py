"""Replicas with the bugs that Viewstamped Replication has had; a checker must catch each."""

from __future__ import annotations

from typing import Final

from hyperscale.ledger.vsr.core import Effect, Send
from hyperscale.ledger.vsr.group import Group
from hyperscale.ledger.vsr.messages import (
    DoViewChange,
    Prepare,
    Promised,
    RecoveryResponse,
    Saved,
    encode,
)
from hyperscale.ledger.vsr.replica import Replica
from hyperscale.ledger.vsr.states import Status

PLANTED_BUGS: Final = {
    "primary-suffices": "DurableAnswer",
    "answer-before-sync": "DurableAnswer",
    "longest-log": "OneHistory",
    "promise-in-memory": "OneHistory",
    "recover-from-anybody": "framework",
    "read-without-lease": "Linearizable",
    "leave-within-lease": "Linearizable",
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
    """Waits for its primary for a tenth of what it promised."""

    def _on_prepare(self, now: float, sender: str, message: Prepare) -> None:
        super()._on_prepare(now, sender, message)
        self._bound_until = now
        self._waits_until = now + self.settings.lease_s / 10


class AnswerBeforeSync(Group):
    async def _carry_out_batch(self, batch: list[Effect]) -> None:
        for effect in batch:
            if isinstance(effect, Send):
                self._send(effect.to, encode(effect.message))
        await super()._carry_out_batch([one for one in batch if not isinstance(one, Send)])


REPLICAS: Final[dict[str, type[Replica]]] = {
    "primary-suffices": PrimarySuffices,
    "longest-log": LongestLog,
    "promise-in-memory": PromiseInMemory,
    "recover-from-anybody": RecoverFromAnybody,
    "read-without-lease": ReadWithoutLease,
    "leave-within-lease": LeaveWithinLease,
}


def plant(group: Group, planted_bug: str) -> None:
    """Change the class of a fresh replica."""
    if planted_bug == "answer-before-sync":
        group.__class__ = AnswerBeforeSync
    elif planted_bug:
        group.replica.__class__ = REPLICAS[planted_bug]
