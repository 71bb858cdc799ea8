"""One replica of one group. `states` has the theory; nothing here sleeps, sends or writes.

A call returns effects in the order in which they must happen: what follows a `Save` may be done
only when that is on disk, and `saved` must be told. The shell tells the time and calls `tick` about
ten times in a `retry_s`. This file has the normal case; `view_change`, `committing` and `core` are
below it.
"""

from __future__ import annotations

from hyperscale.cluster.invariants import invariant
from hyperscale.ledger.vsr.core import Effect
from hyperscale.ledger.vsr.messages import (
    AnyMessage,
    Appended,
    DoViewChange,
    Entry,
    EpochStarted,
    GetState,
    NewState,
    Prepare,
    PrepareOk,
    Recovery,
    RecoveryResponse,
    StartEpoch,
    StartView,
    StartViewChange,
)
from hyperscale.ledger.vsr.states import Status
from hyperscale.ledger.vsr.view_change import ViewChange


class NotPrimary(Exception):
    """Somebody else takes requests, or nobody does at the moment."""

    def __init__(self, primary: str | None) -> None:
        super().__init__(f"ask {primary}" if primary else "there is no primary at the moment")
        self.primary = primary


class Replica(ViewChange):
    def submit(
        self,
        now: float,
        request: str,
        payload: bytes,
        members: tuple[str, ...] = (),
        *,
        closes: bool = False,
    ) -> tuple[int, list[Effect]]:
        """The op of the request, old or new; it is done when that op is committed. Raises
        NotPrimary. With `members` the group is another one from then on; `closes`: it is over."""
        if not self.is_primary:
            raise NotPrimary(self.primary)
        known = self.state.op_of.get(request)
        under_way = self.state.log[self.commit :]
        if known is None and any(entry.members or entry.closes for entry in under_way):
            raise NotPrimary(None)  # the epoch ends, or the group
        if known is None:
            known = self.state.op + 1
            self._save(Appended((Entry(known, request, payload, members, closes),)))
            for other in self._others():
                self._prepare(other)
        return known, self._taken()

    def resign(self, now: float) -> list[Effect]:
        """Hand over without waiting for the lease to end."""
        if self.is_primary and len(self.state.members) > 1:
            self._promise(now, self.state.view + 1, resigned=True)
        return self._taken()

    # -- the world ---------------------------------------------------------------------------------

    def saved(self, now: float, number: int) -> list[Effect]:
        while self._unsaved and self._unsaved[0][0] <= number:
            self._stable_op = self._unsaved.pop(0)[1]
        self._count(now)
        return self._taken()

    def tick(self, now: float) -> list[Effect]:
        if now >= self._due_at:
            self._due_at = now + self.settings.retry_s
            self._repeat(now)
        if self._wanted and self._waits_until() > self._wanted_at + self._patience_s:
            self._wanted, self._votes = 0, set()  # the primary was heard again
        if now >= self._waits_until() and now >= self._bound_until:
            self._give_up(now)
        return self._taken()

    def remind(self, peer: str) -> list[Effect]:
        """That node has begun anew, or does not know what it should."""
        self._acked.pop(peer, None)
        if self.is_primary and peer in self.state.members:
            self._prepare(peer)
        return self._taken()

    def is_idle(self, now: float) -> bool:
        """Nothing is to be repeated, as long as its primary is heard."""
        if self.status not in (Status.NORMAL, Status.RETIRED) or self._wanted or self._announces():
            return False
        return not self.is_primary or not any(
            self._lacks(other) and self._hears.is_there(other, now) for other in self._others()
        )

    def _lacks(self, other: str) -> bool:
        return self._acked.get(other) != self.state.op or self._knows.get(other) != self.commit

    def _announces(self) -> bool:
        return bool(self._before) and not self._has_started()

    def receive(self, now: float, sender: str, message: AnyMessage) -> list[Effect]:
        if isinstance(message, StartEpoch | EpochStarted):
            self._on_epoch(now, sender, message)
        elif self.status is Status.RECOVERING:
            if isinstance(message, RecoveryResponse):
                self._on_recovery_response(now, sender, message)
        elif isinstance(message, Recovery):  # it knows no epoch
            self._on_recovery(sender, message)
        elif message.epoch < self.state.epoch:
            if not isinstance(message, PrepareOk | RecoveryResponse | NewState):
                self._tell_epoch(sender)
        elif message.epoch > self.state.epoch and not isinstance(message, NewState | GetState):
            self._send(sender, GetState(message.epoch, 0, self.commit))
        else:
            self._dispatch(now, sender, message)
        return self._taken()

    def _dispatch(self, now: float, sender: str, message: AnyMessage) -> None:
        match message:
            case Prepare():
                self._on_prepare(now, sender, message)
            case PrepareOk():
                self._on_prepare_ok(now, sender, message)
            case StartViewChange():
                self._on_start_view_change(now, sender, message)
            case DoViewChange():
                self._on_do_view_change(now, sender, message)
            case StartView():
                self._on_start_view(now, sender, message)
            case GetState():
                self._on_get_state(sender, message)
            case NewState():
                self._on_new_state(now, message)

    # -- the normal case ---------------------------------------------------------------------------

    def _prepare(self, other: str) -> None:
        state = self.state
        after = min(self._acked.get(other, self._ready_op), state.op)
        entries = tuple(state.log[after : after + self.settings.batch_entries_max])
        self._send(other, Prepare(*state.token, after, entries, self.commit))

    def _on_prepare(self, now: float, sender: str, message: Prepare) -> None:
        state = self.state
        token = (message.epoch, message.view)
        if token > state.token or (token == state.token and self.status is not Status.NORMAL):
            self._send(sender, GetState(*token, self.commit))
            return
        if token < state.token or sender != state.primary or self.is_primary:
            return
        if message.after_op <= state.op:
            new = tuple(entry for entry in message.entries if entry.op > state.op)
            if new:
                self._save(Appended(new))
            self._advance(now, message.commit)
        if self.state.token != token:
            return  # the epoch ended with what was committed
        self._wanted, self._votes = 0, set()
        self._wait(now)
        self._send(sender, PrepareOk(*token, state.op, self.commit))

    def _on_prepare_ok(self, now: float, sender: str, message: PrepareOk) -> None:
        state = self.state
        if not self.is_primary or (message.epoch, message.view) != state.token:
            return
        if sender not in state.members:
            return
        invariant(message.op <= state.op, f"{sender} has op {message.op} of {state.op}")
        self._knows[sender] = message.commit
        before = self._acked.get(sender, -1)
        self._acked[sender] = max(before, message.op)
        if before < message.op < state.op or before == -1:
            self._prepare(sender)
        self._count(now)

    # -- repeating ---------------------------------------------------------------------------------

    def _repeat(self, now: float) -> None:
        if self.is_primary:
            for other in self._others():
                if self._lacks(other):
                    self._prepare(other)
        elif self._wanted:
            for other in self._others():
                self._ask_for(other, self._wanted)
        elif self.status is Status.VIEW_CHANGE:
            for other in self._others():
                self._ask_for(other, self.state.view)
            self._give_log(now)
        elif self.status is Status.RECOVERING:
            for other in sorted(self._contacts):
                self._send(other, Recovery(0, 0, self._nonce))
        elif self.status is Status.TRANSITIONING:
            for other in sorted({*self._others(), *self._before} - {self.me}):
                self._send(other, GetState(*self._joining, self.commit))
        if self._announces() and self.status is not Status.RECOVERING:
            self._announce()
