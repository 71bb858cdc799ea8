"""What every part of a replica uses: its state, its effects, its timers."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from random import Random
from typing import Protocol, TypeAlias

from hyperscale.cluster.invariants import invariant
from hyperscale.ledger.vsr.messages import (
    Adopted,
    AnyMessage,
    DoViewChange,
    Entry,
    RecoveryResponse,
    Saved,
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


class Hears(Protocol):
    """What is heard of other nodes that concerns this group."""

    def promised_at(self, peer: str) -> float:
        """When the last heartbeat was sent in answer to which it promised to follow."""

    def heard_at(self, peer: str) -> float:
        """When it last said that it is primary of what this node follows it in."""

    def is_there(self, peer: str, now: float) -> bool:
        """Whether it is worth repeating something."""


class ReplicaCore:
    def __init__(
        self,
        me: str,
        state: ReplicaState,
        now: float,
        settings: VsrSettings,
        random: Random,
        hears: Hears,
        *,
        bound_until: float = 0.0,
        status: Status = Status.NORMAL,
    ) -> None:
        """`status`: RECOVERING if the disk was lost. `bound_until`: what was promised in a life
        before is not known, but that it is over by then. The state is what `Saved` records give."""
        self.me = me
        self.state = state
        self.settings = settings
        self.status = status
        self.commit = 0
        self.is_over = False  # its last operation is committed
        self._random = random
        self._hears = hears
        self._effects: list[Effect] = []
        self._saves = 0
        self._unsaved: list[tuple[int, int]] = []  # number of the save, op after it
        self._stable_op = state.op
        self._acked: dict[str, int] = {}  # by member, in this view
        self._knows: dict[str, int] = {}  # how far each knows what is committed
        self._began_at = now  # this view, here
        self._ready_op = state.op  # a primary answers reads when this is committed
        self._due_at = now  # of whatever is repeated
        self._waits_from = now
        self._patience_s = 0.0  # how much later the next view is tried
        self._bound_until = bound_until
        self._wanted = 0  # the view that this replica would move to
        self._wanted_at = 0.0
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
            self._before = state.members_before  # they may not have heard of their successors
        self._wait(now)

    # -- questions ---------------------------------------------------------------------------------

    @property
    def is_primary(self) -> bool:
        return self.status is Status.NORMAL and self.state.primary == self.me

    @property
    def primary(self) -> str | None:
        return self.state.primary if self.status is Status.NORMAL else None

    def may_read(self, now: float) -> bool:
        """Whether what is committed here is all that anybody was ever told."""
        return self.is_primary and self.commit >= self._ready_op and self._holds_lease(now)

    def leads(self, now: float) -> bool:
        """It is primary and not cut off: it hears a quorum, or has just become it."""
        heard = sum(self._hears.is_there(other, now) for other in self._others())
        is_young = now < self._began_at + self.settings.lease_s
        return self.is_primary and (heard + 1 >= self.state.quorum or is_young)

    def _holds_lease(self, now: float) -> bool:
        """A quorum has promised to follow, counted from when it was asked, and in this view."""
        needed = self.state.quorum - 1
        asked = sorted(map(self._hears.promised_at, self._others()), reverse=True)[:needed]
        return all(self._began_at < at and now < at + self.settings.lease_held_s for at in asked)

    # -- a view begins ---------------------------------------------------------------------------

    def _begin_view(self, now: float) -> None:
        self._enter(Status.NORMAL)
        self._wanted, self._votes, self._logs = 0, set(), {}
        self._acked, self._knows = {}, {}
        self._ready_op = self.state.op
        self._began_at = self._due_at = now
        self._wait(now)

    def _keeps_committed(self, log: tuple[Entry, ...]) -> None:
        ours = self.state.log[: self.commit]
        invariant(
            [one.request for one in log[: self.commit]] == [one.request for one in ours],
            f"a view begins without what {self.me} has committed",
        )

    def _wait(self, now: float) -> None:
        """Patience differs, so that two replicas seldom try for a view at the same moment."""
        allowed_s = (
            self.settings.view_change_s
            if self.status is Status.VIEW_CHANGE
            else self.settings.lease_s
        )
        self._waits_from = now
        self._patience_s = allowed_s * self._random.uniform(1, 1.5)

    def _follows(self) -> bool:
        return self.status is Status.NORMAL and not self.is_primary

    def _waits_until(self) -> float:
        heard_at = self._hears.heard_at(self.state.primary) if self._follows() else -inf
        return max(self._waits_from, heard_at) + self._patience_s

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
