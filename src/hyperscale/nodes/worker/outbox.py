"""Events of parts, kept until a leader has settled them.

An event goes out at once, again after a growing pause when nobody settled it, and at once again
when there is a new leader. It says when to send, never to whom. What a later event of the same
part makes pointless is dropped: nobody needs to hear that an ended part was prepared.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.invariants import invariant
from hyperscale.cluster.jobs.records import Part
from hyperscale.cluster.overload.backoff import Backoff
from hyperscale.nodes.protocol.parts import PartEnd, PartEvent, PartPrepared

# Without an end: what happened to a part is told for as long as it takes. Thirty seconds
# between tries would outlast a leader's timeout.
BACKOFF = Backoff(base_delay_s=0.25, delay_max_s=5.0)


class Key(NamedTuple):
    part: Part
    fence: Fence
    kind: type[PartEvent]


def key_of(event: PartEvent) -> Key:
    return Key(event.part, event.fence, type(event))


@dataclass(slots=True)
class _Entry:
    event: PartEvent
    due_at: float
    tries: int = 0
    under_way: bool = False


class Outbox:
    def __init__(self, events_max: int, dice: Random) -> None:
        if events_max < 1:
            raise ValueError("events_max must be at least 1")
        self._events_max = events_max
        self._dice = dice
        self._entries: dict[Key, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def full(self) -> bool:
        """Too much is untold: take on nothing new. What already runs may always be told."""
        return len(self._entries) >= self._events_max

    def parts(self) -> list[tuple[Part, Fence]]:
        """Of which parts the end is not settled."""
        return [(key.part, key.fence) for key in self._entries if key.kind is PartEnd]

    def put(self, now: float, event: PartEvent) -> None:
        if isinstance(event, PartEnd):
            self._entries.pop(Key(event.part, event.fence, PartPrepared), None)
        if isinstance(event, PartPrepared):
            ended = Key(event.part, event.fence, PartEnd) in self._entries
            invariant(not ended, "a part is prepared before it ends")
        self._entries.setdefault(key_of(event), _Entry(event, now))

    def take(self, now: float, count_max: int) -> list[PartEvent]:
        """What is to be sent now, oldest first; each is under way until its fate is told."""
        due = [e for e in self._entries.values() if not e.under_way and e.due_at <= now]
        del due[count_max:]
        for entry in due:
            entry.under_way = True
        return [entry.event for entry in due]

    def settled(self, key: Key) -> None:
        self._entries.pop(key, None)

    def unsettled(self, now: float, key: Key) -> None:
        """Nobody could be told, or nobody could settle it yet."""
        entry = self._entries.get(key)
        if entry is None:
            return
        entry.under_way = False
        entry.due_at = now + BACKOFF.delay_s(entry.tries, self._dice)
        entry.tries += 1

    def hasten(self, now: float) -> None:
        """There is somebody new to tell; whoever was being told may never answer."""
        for entry in self._entries.values():
            entry.under_way = False
            entry.tries = 0
            entry.due_at = min(entry.due_at, now)

    @property
    def next_due(self) -> float | None:
        return min((e.due_at for e in self._entries.values() if not e.under_way), default=None)
