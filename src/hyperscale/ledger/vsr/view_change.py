"""How a group gets another primary."""

from __future__ import annotations

from hyperscale.ledger.vsr.committing import Committing
from hyperscale.ledger.vsr.messages import (
    Adopted,
    DoViewChange,
    Entry,
    Promised,
    StartView,
    StartViewChange,
)
from hyperscale.ledger.vsr.states import Status


class ViewChange(Committing):
    def _give_up(self, now: float) -> None:
        """Nothing was heard of the primary, or of the view that was to come."""
        self._wait(now)
        if self.status in (Status.NORMAL, Status.VIEW_CHANGE) and not self.is_primary:
            self._want(now, max(self._wanted, self.state.view + 1))

    def _want(self, now: float, view: int) -> None:
        self._wanted, self._wanted_at, self._votes = view, now, {self.me}
        for other in self._others():
            self._ask_for(other, view)
        self._vote(now)

    def _ask_for(self, other: str, view: int) -> None:
        promised = self.status is Status.VIEW_CHANGE
        self._send(other, StartViewChange(self.state.epoch, view, promised))

    def _on_start_view_change(self, now: float, sender: str, message: StartViewChange) -> None:
        state = self.state
        if self.status not in (Status.NORMAL, Status.VIEW_CHANGE):
            return
        if message.view <= state.view or sender not in state.members:
            return
        freed = message.resigned and sender == state.primary
        if self._is_bound(now) and not freed:
            if self.is_primary and message.promised:
                self._promise(now, message.view, resigned=True)
            return
        if message.view > self._wanted:
            self._want(now, message.view)
        if message.view == self._wanted:
            self._votes.add(sender)
            self._vote(now)

    def _vote(self, now: float) -> None:
        if len(self._votes) >= self.state.quorum:
            self._promise(now, self._wanted)

    def _promise(self, now: float, view: int, resigned: bool = False) -> None:
        self._save(Promised(view))
        self._enter(Status.VIEW_CHANGE)
        self._wanted, self._votes, self._logs = 0, set(), {}
        self._bound_until = min(self._bound_until, now)
        self._wait(now)
        if resigned:  # before the log, so that whoever gets that is free to take it
            for other in self._others():
                self._send(other, StartViewChange(*self.state.token, True, resigned))
        self._give_log(now)

    def _give_log(self, now: float) -> None:
        state = self.state
        log = DoViewChange(*state.token, state.normal_view, tuple(state.log), self.commit)
        if state.primary == self.me:
            self._on_do_view_change(now, self.me, log)
        else:
            self._send(state.primary, log)

    def _is_bound(self, now: float) -> bool:
        if now < self._bound_until:
            return True
        if self.is_primary:
            return self._holds_lease(now)
        heard_at = self._hears.heard_at(self.state.primary)
        return self._follows() and now < heard_at + self.settings.lease_s

    def _on_do_view_change(self, now: float, sender: str, message: DoViewChange) -> None:
        state = self.state
        token = (message.epoch, message.view)
        follows = self.status in (Status.NORMAL, Status.VIEW_CHANGE)
        if follows and token[0] == state.epoch and token > state.token and not self._is_bound(now):
            self._promise(now, message.view)  # a quorum was willing, which was not heard here
        if self.status is not Status.VIEW_CHANGE or token != state.token:
            if self.is_primary and token == state.token:
                self._send(sender, StartView(*state.token, tuple(state.log), self.commit))
            return
        if state.primary != self.me:
            return
        self._logs[sender] = message
        if self.me not in self._logs or len(self._logs) < state.quorum:
            return
        best = max(self._logs.values(), key=lambda one: (one.normal_view, len(one.log)))
        commit = max(one.commit for one in self._logs.values())
        self._start(now, state.view, best.log)
        for other in self._others():
            self._send(other, StartView(*state.token, tuple(state.log), commit))
        self._advance(now, commit)
        self._count(now)

    def _on_start_view(self, now: float, sender: str, message: StartView) -> None:
        state = self.state
        known = message.view < state.view + (self.status is Status.NORMAL)
        if known or self.status not in (Status.NORMAL, Status.VIEW_CHANGE):
            return
        self._start(now, message.view, message.log)
        self._advance(now, message.commit)

    def _start(self, now: float, view: int, log: tuple[Entry, ...]) -> None:
        """This view's log replaces the own one; what was committed stays."""
        state = self.state
        self._keeps_committed(log)
        self._save(Adopted(state.epoch, view, state.members, self.commit, log[self.commit :]))
        self._begin_view(now)
