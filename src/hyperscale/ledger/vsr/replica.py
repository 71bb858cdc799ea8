"""One replica of one group. `states` has the theory; nothing here sleeps, sends or writes.

A call returns effects in the order in which they must happen: what follows a `Save` may be done
only when that is on disk, and `saved` must be told. The shell tells the time and calls `tick` about
ten times in a `retry_s`.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from hyperscale.cluster.invariants import invariant
from hyperscale.ledger.vsr.lease import Lease
from hyperscale.ledger.vsr.messages import (
    Adopted,
    AnyMessage,
    Appended,
    DoViewChange,
    Entry,
    EpochStarted,
    GetState,
    NewState,
    Prepare,
    PrepareOk,
    Promised,
    Recovery,
    RecoveryResponse,
    Saved,
    StartEpoch,
    StartView,
    StartViewChange,
)
from hyperscale.ledger.vsr.settings import VsrSettings
from hyperscale.ledger.vsr.state import ReplicaState
from hyperscale.ledger.vsr.states import Status, move


@dataclass(frozen=True, slots=True)
class Save:
    number: int
    record: Saved


@dataclass(frozen=True, slots=True)
class Send:
    to: str
    message: AnyMessage


@dataclass(frozen=True, slots=True)
class Committed:
    entry: Entry


Effect: TypeAlias = Save | Send | Committed


class NotPrimary(Exception):
    """Somebody else takes requests, or nobody does at the moment."""

    def __init__(self, primary: str | None) -> None:
        super().__init__(f"ask {primary}" if primary else "there is no primary at the moment")
        self.primary = primary


class Replica:
    def __init__(
        self,
        me: str,
        state: ReplicaState,
        now: float,
        settings: VsrSettings,
        random: Random,
        *,
        status: Status = Status.NORMAL,
    ) -> None:
        """`status`: RECOVERING if the disk was lost. The state is what `Saved` records give."""
        self.me = me
        self.state = state
        self.settings = settings
        self.status = status
        self.commit = 0
        self._random = random
        self._lease = Lease(random.getrandbits(53), settings)
        self._effects: list[Effect] = []
        self._saves = 0
        self._unsaved: list[tuple[int, int]] = []  # number of the save, op after it
        self._stable_op = state.op
        self._acked: dict[str, int] = {}  # by member, in this view
        self._ready_op = state.op  # a primary answers reads when this is committed
        self._due_at = now  # of whatever is repeated
        self._waits_until = 0.0  # then the next view is tried
        # What was promised in a life before is not known.
        self._bound_until = now + settings.lease_bound_s
        self._wanted = 0  # the view that this replica would move to
        self._votes: set[str] = set()  # who would, too
        self._logs: dict[str, DoViewChange] = {}
        self._nonce = random.getrandbits(53)
        self._told: dict[str, RecoveryResponse] = {}
        self._contacts = {*state.members} - {me}  # whom a recovering replica asks
        self._joining = (0, 0)  # the epoch whose log a new member wants
        self._before: tuple[str, ...] = ()  # the group of the epoch before
        self._started: set[str] = set()  # who has the log of the epoch before
        if status is Status.NORMAL and state.normal_view != state.view:
            self.status = Status.VIEW_CHANGE
        if status is Status.NORMAL and me not in state.members:
            self.status = Status.RETIRED
        self._wait(now)

    # -- questions ---------------------------------------------------------------------------------

    @property
    def is_primary(self) -> bool:
        return self.status is Status.NORMAL and self.state.primary == self.me

    @property
    def primary(self) -> str | None:
        return self.state.primary if self.status is Status.NORMAL else None

    @property
    def finished(self) -> bool:
        """No longer in the group, and a quorum of those who are has the log."""
        return self.status is Status.RETIRED and self._has_started()

    def may_read(self, now: float) -> bool:
        """Whether what is committed here is all that anybody was ever told."""
        return (
            self.is_primary
            and self.commit >= self._ready_op
            and self._lease.held(now, self._others(), self.state.quorum - 1)
        )

    # -- requests ----------------------------------------------------------------------------------

    def submit(
        self, now: float, request: str, payload: bytes, members: tuple[str, ...] = ()
    ) -> tuple[int, list[Effect]]:
        """The op of the request, old or new; it is done when that op is committed. Raises
        NotPrimary. With `members` the group is another one from then on."""
        if not self.is_primary:
            raise NotPrimary(self.primary)
        known = self.state.op_of.get(request)
        if known is None and any(entry.members for entry in self.state.log[self.commit :]):
            raise NotPrimary(None)  # the epoch ends
        if known is None:
            known = self.state.op + 1
            self._save(Appended((Entry(known, request, payload, members),)))
            for other in self._others():
                self._prepare(now, other)
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
        if now >= self._waits_until and now >= self._bound_until:
            self._give_up(now)
        return self._taken()

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

    def _prepare(self, now: float, other: str) -> None:
        state = self.state
        after = min(self._acked.get(other, self._ready_op), state.op)
        entries = tuple(state.log[after : after + self.settings.batch_entries_max])
        beat = self._lease.beat(now)
        self._send(other, Prepare(*state.token, after, entries, self.commit, beat))

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
        self._bound_until = now + self.settings.lease_s
        self._wanted, self._votes = 0, set()
        self._wait(now)
        self._send(sender, PrepareOk(*token, state.op, message.beat))

    def _on_prepare_ok(self, now: float, sender: str, message: PrepareOk) -> None:
        state = self.state
        if not self.is_primary or (message.epoch, message.view) != state.token:
            return
        if sender not in state.members:
            return
        invariant(message.op <= state.op, f"{sender} has op {message.op} of {state.op}")
        self._lease.answered(sender, message.beat)
        before = self._acked.get(sender, -1)
        self._acked[sender] = max(before, message.op)
        if before < message.op < state.op or before == -1:
            self._prepare(now, sender)
        self._count(now)

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

    # -- view change -------------------------------------------------------------------------------

    def _give_up(self, now: float) -> None:
        """Nothing was heard of the primary, or of the view that was to come."""
        self._wait(now)
        if self.status in (Status.NORMAL, Status.VIEW_CHANGE) and not self.is_primary:
            self._want(now, max(self._wanted, self.state.view + 1))

    def _want(self, now: float, view: int) -> None:
        self._wanted, self._votes = view, {self.me}
        for other in self._others():
            self._send(other, StartViewChange(self.state.epoch, view))
        self._vote(now)

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
        held = self.is_primary and self._lease.held(now, self._others(), self.state.quorum - 1)
        return held or now < self._bound_until

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

    def _begin_view(self, now: float) -> None:
        self._enter(Status.NORMAL)
        self._wanted, self._votes, self._logs, self._acked = 0, set(), {}, {}
        self._ready_op = self.state.op
        self._lease.forget()
        self._due_at = now
        self._wait(now)

    def _keeps_committed(self, log: tuple[Entry, ...]) -> None:
        invariant(
            list(log[: self.commit]) == self.state.log[: self.commit],
            f"a view begins without what {self.me} has committed",
        )

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

    # -- repeating ---------------------------------------------------------------------------------

    def _repeat(self, now: float) -> None:
        if self.is_primary:
            self._due_at = now + min(self.settings.heartbeat_s, self.settings.retry_s)
            for other in self._others():
                self._prepare(now, other)
        elif self._wanted:
            for other in self._others():
                self._send(other, StartViewChange(self.state.epoch, self._wanted))
        elif self.status is Status.VIEW_CHANGE:
            for other in self._others():
                self._send(other, StartViewChange(*self.state.token, promised=True))
            self._give_log(now)
        elif self.status is Status.RECOVERING:
            for other in sorted(self._contacts):
                self._send(other, Recovery(0, 0, self._nonce))
        elif self.status is Status.TRANSITIONING:
            for other in sorted({*self._others(), *self._before} - {self.me}):
                self._send(other, GetState(*self._joining, self.commit))
        if self._before and not self._has_started() and self.status is not Status.RECOVERING:
            self._announce()

    def _wait(self, now: float) -> None:
        """Patience differs, so that two replicas seldom try for a view at the same moment."""
        allowed_s = (
            self.settings.view_change_s
            if self.status is Status.VIEW_CHANGE
            else self.settings.lease_s
        )
        self._waits_until = now + allowed_s * self._random.uniform(1, 1.5)

    # -- saying and writing ------------------------------------------------------------------------

    def _others(self) -> list[str]:
        return [one for one in self.state.members if one != self.me]

    def _enter(self, status: Status) -> None:
        self.status = move(self.status, status)

    def _save(self, record: Saved) -> None:
        self.state.apply(record)
        self._saves += 1
        if isinstance(record, Adopted):  # what was on disk behind this is another log's
            kept = record.after_op
            self._stable_op = min(self._stable_op, kept)
            self._unsaved = [(number, min(op, kept)) for number, op in self._unsaved]
        self._unsaved.append((self._saves, self.state.op))
        self._effects.append(Save(self._saves, record))

    def _send(self, to: str, message: AnyMessage) -> None:
        self._effects.append(Send(to, message))

    def _taken(self) -> list[Effect]:
        taken, self._effects = self._effects, []
        return taken
