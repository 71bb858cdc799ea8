"""All groups that one node is in. Like a replica, nothing here sleeps, sends or writes.

What a group costs while nothing happens in it is its memory: heartbeats are of a pair of nodes
(`contact`), and a replica is asked for its ticks only while it has something to repeat, or while
nothing is heard of its primary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from hyperscale.ledger.vsr.contact import BUCKETS, Contact, bucket_of, digest_of
from hyperscale.ledger.vsr.core import Effect, Send
from hyperscale.ledger.vsr.graves import Graves
from hyperscale.ledger.vsr.messages import (
    Bundle,
    Buried,
    Closed,
    ClosedOk,
    Heartbeat,
    HeartbeatOk,
    Item,
)
from hyperscale.ledger.vsr.replica import NotPrimary, Replica
from hyperscale.ledger.vsr.settings import VsrSettings
from hyperscale.ledger.vsr.state import ReplicaState
from hyperscale.ledger.vsr.states import Status

# An epoch or a view further ahead than any outage takes it is a lie: whoever believed in the
# largest number could never go beyond it.
JUMP_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class OfReplica:
    group: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class Created:
    """To be saved before anything else of this group is."""

    group: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Beat:
    to: str
    beat: Heartbeat | None = None
    answer: HeartbeatOk | None = None


@dataclass(frozen=True, slots=True)
class Bury:
    """To be saved before anything else is said, and told to whoever uses the group."""

    record: Buried


NodeEffect: TypeAlias = OfReplica | Created | Beat | Bury


@dataclass(frozen=True, slots=True)
class _Role:
    """What a replica adds to the digests: with whom, and in which token."""

    peers: tuple[str, ...] = ()
    leads: bool = False
    digest: int = 0


class _Hears:
    """What a group hears of other nodes: that of its bucket."""

    __slots__ = ("_bucket", "_nodes")

    def __init__(self, nodes: ReplicaSet, bucket: int) -> None:
        self._nodes = nodes
        self._bucket = bucket

    def promised_at(self, peer: str) -> float:
        return self._nodes.contact(peer).promised_at[self._bucket]

    def heard_at(self, peer: str) -> float:
        return self._nodes.contact(peer).heard_at[self._bucket]

    def is_there(self, peer: str, now: float) -> bool:
        return self._nodes.is_there(peer, now)


class ReplicaSet:
    replica_class = Replica

    def __init__(
        self, me: str, now: float, settings: VsrSettings, random: Random, *, forgetful: bool = False
    ) -> None:
        """`forgetful`: a disk was lost. What was a member of a group before may not know it, so
        every group of which this node hears for the first time is asked what it was told."""
        self.me = me
        self.replicas: dict[str, Replica] = {}
        self._settings = settings
        self._random = random
        self.forgetful = forgetful
        self._bound_until = now + settings.lease_bound_s
        self._beats_at = now
        self._life = random.getrandbits(53)
        self._contacts: dict[str, Contact] = {}
        self._absent: set[str] = set()  # of whom no answer came for a lease
        self._roles: dict[str, _Role] = {}
        self._leads: defaultdict[str, list[int]] = defaultdict(lambda: [0] * BUCKETS)
        self._follows: defaultdict[str, list[int]] = defaultdict(lambda: [0] * BUCKETS)
        self._led_with: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        self._led_by: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        self._active: set[str] = set()
        self.graves = Graves(settings.under_way_s)
        self._effects: list[NodeEffect] = []

    # -- groups ------------------------------------------------------------------------------

    def first_members(self, group: str) -> tuple[str, ...]:
        known = self.replicas.get(group)
        return () if known is None else known.state.first_members

    def restore(self, now: float, group: str, state: ReplicaState) -> None:
        """As it was on disk."""
        self._add(now, group, state, Status.NORMAL)

    def create(self, now: float, group: str, members: tuple[str, ...]) -> list[NodeEffect]:
        """`members`: of its first epoch. Nothing happens if it is known, or over."""
        if not self.graves.has(now, group):
            self._know(now, group, members)
        return self._taken()

    def _know(self, now: float, group: str, members: tuple[str, ...]) -> Replica:
        known = self.replicas.get(group)
        if known is not None:
            return known
        if not self.forgetful:
            self._effects.append(Created(group, members))
        status = Status.RECOVERING if self.forgetful else Status.NORMAL
        return self._add(now, group, ReplicaState(members), status)

    def _add(
        self,
        now: float,
        group: str,
        state: ReplicaState,
        status: Status,
    ) -> Replica:
        replica = self.replicas[group] = self.replica_class(
            *(self.me, state, now, self._settings, self._random),
            _Hears(self, bucket_of(group)),
            bound_until=self._bound_until,
            status=status,
        )
        self._changed(now, group)
        return replica

    # -- the world ---------------------------------------------------------------------------

    def submit(
        self,
        now: float,
        group: str,
        request: str,
        payload: bytes,
        members: tuple[str, ...] = (),
        *,
        closes: bool = False,
    ) -> tuple[int, list[NodeEffect]]:
        """Raises NotPrimary."""
        replica = self.replicas.get(group)
        if replica is None:
            raise NotPrimary(None)
        op, effects = replica.submit(now, request, payload, members, closes=closes)
        self._take(now, group, effects)
        return op, self._taken()

    def resign(self, now: float, groups: Iterable[str] | None = None) -> list[NodeEffect]:
        for group in list(self.replicas) if groups is None else groups:
            if group in self.replicas:
                self._take(now, group, self.replicas[group].resign(now))
        return self._taken()

    def saved(self, now: float, group: str, number: int) -> list[NodeEffect]:
        if group in self.replicas:  # else it is over
            self._take(now, group, self.replicas[group].saved(now, number))
        return self._taken()

    def receive(self, now: float, sender: str, bundle: Bundle) -> list[NodeEffect]:
        """Raises ValueError, and takes nothing, when a number jumps."""
        for item in bundle.items:
            self._check_token(sender, item)
        for item in bundle.items:
            if isinstance(item.message, ClosedOk):
                self._told(now, item.group, sender)
            elif isinstance(item.message, Closed):
                self._closed(now, sender, item.group)
            elif self.graves.has(now, item.group):
                self._say(sender, item.group, Closed(0, 0))
            else:
                replica = self._know(now, item.group, item.members)
                self._take(now, item.group, replica.receive(now, sender, item.message))
        if bundle.beat is not None:
            answer = self.contact(sender).answer(now, bundle.beat, self._follows[sender])
            self._effects.append(Beat(sender, answer=answer))
        if bundle.answer is not None:
            self._answered(now, sender, bundle.answer)
        return self._taken()

    def _check_token(self, sender: str, item: Item) -> None:
        known = self.replicas.get(item.group)
        token = (0, 0) if known is None else known.state.token
        said = (item.message.epoch, item.message.view)
        if any(new > old + JUMP_MAX for new, old in zip(said, token, strict=True)):
            raise ValueError(f"{sender} speaks of {said} in {item.group}, where {token} is known")

    def _answered(self, now: float, sender: str, answer: HeartbeatOk) -> None:
        began_anew = self.contact(sender).answered(answer) or sender in self._absent
        self._absent.discard(sender)
        for bucket in range(BUCKETS) if began_anew else answer.differ:
            for group in sorted(self._led_with[sender, bucket]):
                self._take(now, group, self.replicas[group].remind(sender))

    def tick(self, now: float) -> list[NodeEffect]:
        if now >= self._beats_at:
            self._beats_at = now + self._settings.heartbeat_s
            for peer in sorted(self._contacts):
                self._effects.append(Beat(peer, self.contact(peer).beat(now, self._leads[peer])))
                if not self.is_there(peer, now):
                    self._absent.add(peer)
                else:
                    for group in self.graves.to_tell(peer):
                        self._say(peer, group, Closed(0, 0))
            self._listen(now)
            self.graves.tidy(now)
        for group in sorted(self._active):
            self._take(now, group, self.replicas[group].tick(now))
        return self._taken()

    def _listen(self, now: float) -> None:
        """Groups whose primary is silent get their ticks."""
        for (peer, bucket), groups in self._led_by.items():
            if now >= self.contact(peer).heard_at[bucket] + self._settings.lease_s:
                self._active |= groups

    def contact(self, peer: str) -> Contact:
        if peer not in self._contacts:
            self._contacts[peer] = Contact(self._life)
        return self._contacts[peer]

    def is_there(self, peer: str, now: float) -> bool:
        return now < self.contact(peer).answered_at + self._settings.lease_s

    def remembers(self, group: str) -> bool:
        """Anything that was said in it; what comes late may begin a group anew, without a log."""
        known = self.replicas.get(group)
        return group in self.graves.untold or (known is not None and known.state.op > 0)

    # -- groups that are over ----------------------------------------------------------------

    def _bury(self, now: float, group: str, replica: Replica) -> None:
        """Everybody who may have a log of it must hear that it is over before it is forgotten."""
        untold = replica.state.everybody - {self.me}
        self._enter(group, _Role())
        for known in (self.replicas, self._roles):
            del known[group]
        self._active.discard(group)
        self._effects.append(Bury(Buried(group, tuple(sorted(untold)))))
        self.restore_over(now, group, untold)
        for other in sorted(untold):
            self._say(other, group, Closed(0, 0))

    def restore_over(self, now: float, group: str, untold: Iterable[str]) -> None:
        for other in untold:
            self.contact(other)  # so that it is told when it is there
        self.graves.add(now, group, untold)

    def _closed(self, now: float, sender: str, group: str) -> None:
        if group in self.replicas:
            self._bury(now, group, self.replicas[group])
        elif group not in self.graves.untold:
            self.graves.add(now, group, ())
        self._say(sender, group, ClosedOk(0, 0))
        self._told(now, group, sender)

    def _told(self, now: float, group: str, other: str) -> None:
        if self.graves.told(now, group, other):
            self._effects.append(Bury(Buried(group, ())))

    def _say(self, to: str, group: str, message: Closed | ClosedOk) -> None:
        self._effects.append(OfReplica(group, Send(to, message)))

    # -- who is what -------------------------------------------------------------------------

    def _take(self, now: float, group: str, effects: list[Effect]) -> None:
        self._effects += [OfReplica(group, effect) for effect in effects]
        self._changed(now, group)

    def _changed(self, now: float, group: str) -> None:
        replica = self.replicas[group]
        if replica.is_over:
            self._bury(now, group, replica)
            return
        role = self._role(group, replica)
        if role != self._roles.get(group):
            self._enter(group, role)
        if replica.is_idle(now):
            self._active.discard(group)
        else:
            self._active.add(group)

    def _role(self, group: str, replica: Replica) -> _Role:
        state = replica.state
        if replica.status is not Status.NORMAL:
            return _Role()
        others = tuple(one for one in state.members if one != self.me)
        peers = others if replica.is_primary else (state.primary,)
        return _Role(peers, replica.is_primary, digest_of(group, state.token))

    def _enter(self, group: str, role: _Role) -> None:
        bucket = bucket_of(group)
        for one in (self._roles.get(group, _Role()), role):  # out of the old, into the new
            for peer in one.peers:
                digests = self._leads if one.leads else self._follows
                digests[peer][bucket] ^= one.digest
                groups = (self._led_with if one.leads else self._led_by)[peer, bucket]
                groups.symmetric_difference_update((group,))
        self._roles[group] = role

    def _taken(self) -> list[NodeEffect]:
        taken, self._effects = self._effects, []
        return taken
