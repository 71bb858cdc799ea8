"""Committing, and what it may end: an epoch. Logs for replicas that have none."""

from __future__ import annotations

from hyperscale.cluster.invariants import invariant
from hyperscale.ledger.vsr.core import Committed, ReplicaCore
from hyperscale.ledger.vsr.messages import (
    Adopted,
    Entry,
    EpochStarted,
    GetState,
    NewState,
    Recovery,
    RecoveryResponse,
    StartEpoch,
)
from hyperscale.ledger.vsr.states import Status


class Committing(ReplicaCore):
    @property
    def finished(self) -> bool:
        """No longer in the group, and a quorum of those who are has the log."""
        return self.status is Status.RETIRED and self._has_started()

    def _count(self, now: float) -> None:
        """Commit what a quorum has on disk; the own copy counts from when it is there."""
        if not self.is_primary:
            return
        have = sorted((self._acked.get(one, 0) for one in self._others()), reverse=True)
        have = sorted([*have, self._stable_op], reverse=True)
        self._advance(now, have[self.state.quorum - 1])

    def _advance(self, now: float, commit: int) -> None:
        while self.commit < min(commit, self.state.op):
            entry = self.state.log[self.commit]
            self.commit += 1
            self._effects.append(Committed(entry))
            if entry.members:
                self._end_epoch(now, entry)
            self.is_over = self.is_over or entry.closes

    # -- state transfer, recovery ------------------------------------------------------------------

    def _on_get_state(self, sender: str, message: GetState) -> None:
        state = self.state
        view, op = state.view, state.op
        if self.status is Status.VIEW_CHANGE and message.epoch == state.epoch:
            # What the epochs before left is certain, whatever becomes of this view.
            view, op = 0, state.epoch_op
        elif self.status not in (Status.NORMAL, Status.RETIRED):
            return
        if (message.epoch, message.view) > (state.epoch, view) or message.commit > op:
            return
        entries = tuple(state.log[message.commit : op])
        commit = min(self.commit, op)
        self._send(
            sender,
            NewState(state.epoch, view, state.members, message.commit, entries, commit),
        )

    def _on_new_state(self, now: float, message: NewState) -> None:
        state = self.state
        token = (message.epoch, message.view)
        newer = token > state.token or (token == state.token and self.status is not Status.NORMAL)
        if not newer or message.after_op > self.commit:
            return
        outside = self.status in (Status.RETIRED, Status.TRANSITIONING)
        if outside and self.me not in message.members:
            return
        self._keeps_committed((*state.log[: message.after_op], *message.entries))
        self._save(Adopted(*token, message.members, message.after_op, message.entries))
        if self.me in message.members:
            self._begin_view(now)
        else:
            self._enter(Status.RETIRED)
        self._advance(now, message.commit)

    def _on_recovery(self, sender: str, message: Recovery) -> None:
        if self.status is Status.RETIRED:
            self._tell_epoch(sender)
        if self.status is not Status.NORMAL:
            return
        state = self.state
        log = tuple(state.log) if self.is_primary else None
        self._send(
            sender,
            RecoveryResponse(*state.token, message.nonce, state.members, log, self.commit),
        )

    def _on_recovery_response(self, now: float, sender: str, message: RecoveryResponse) -> None:
        if message.nonce != self._nonce:
            return
        self._told[sender] = message
        newest = max(self._told.values(), key=lambda one: (one.epoch, one.view))
        told = [one for name, one in self._told.items() if name in newest.members]
        primary = self._told.get(newest.members[newest.view % len(newest.members)])
        if len(told) < len(newest.members) // 2 + 1 or primary is None or primary.log is None:
            return
        if (primary.epoch, primary.view) != (newest.epoch, newest.view):
            return
        self._save(Adopted(newest.epoch, newest.view, newest.members, 0, primary.log))
        if self.me in newest.members:
            self._begin_view(now)
        else:
            self._enter(Status.RETIRED)
        self._bound_until = now + self.settings.lease_bound_s
        self._advance(now, primary.commit)

    # -- reconfiguration ---------------------------------------------------------------------------

    def _end_epoch(self, now: float, entry: Entry) -> None:
        state = self.state
        if state.epochs_ended(entry.op) <= state.epoch:
            return  # this log came here when that epoch was over
        invariant(entry.op == state.op, "something follows the end of an epoch")
        self._before, self._started = state.members, set()
        self._save(Adopted(state.epoch + 1, 0, entry.members, state.op, ()))
        if self.me in entry.members:
            self._started.add(self.me)
            self._begin_view(now)
        else:
            self._enter(Status.RETIRED)
        self._announce()

    def _announce(self) -> None:
        for other in sorted({*self.state.members, *self._before} - {self.me} - self._started):
            self._tell_epoch(other)

    def _tell_epoch(self, other: str) -> None:
        state = self.state
        self._send(other, StartEpoch(*state.token, state.members, self._before or state.members))

    def _on_epoch(self, now: float, sender: str, message: StartEpoch | EpochStarted) -> None:
        state = self.state
        if isinstance(message, EpochStarted):
            if message.epoch >= state.epoch:
                self._started.add(sender)
            return
        if self.status is Status.RECOVERING:
            self._contacts |= {*message.members} - {self.me}
        elif message.epoch > state.epoch:
            self._before = message.before
            self._joining = max(self._joining, (message.epoch, 0))
            if self.me in message.members and self.status is Status.RETIRED:
                self._enter(Status.TRANSITIONING)
            self._send(sender, GetState(message.epoch, 0, self.commit))
        elif message.epoch == state.epoch and self.status is Status.NORMAL:
            self._send(sender, EpochStarted(*state.token))

    def _has_started(self) -> bool:
        return len(self._started & {*self.state.members}) >= self.state.quorum
