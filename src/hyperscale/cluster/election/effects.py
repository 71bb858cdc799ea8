"""What an election asks of the world, as plain data, and in which order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from hyperscale.cluster.election.messages import Message
from hyperscale.cluster.invariants import invariant


@dataclass(frozen=True, slots=True)
class Durable:
    """What a voter must never forget."""

    term: int = 0
    voted_for: str | None = None


@dataclass(frozen=True, slots=True)
class Send:
    to: str
    message: Message


@dataclass(frozen=True, slots=True)
class Persist:
    """Write `durable` to stable storage, then call `persisted(token)`. A later token covers all
    earlier ones, so only the newest of several waiting writes need be done."""

    token: int
    durable: Durable


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Call `tick` at this time; replaces the timer set before. Early and late calls are harmless
    to safety. None: nothing to wait for."""

    at: float | None


@dataclass(frozen=True, slots=True)
class BecameLeader:
    term: int


@dataclass(frozen=True, slots=True)
class LostLeadership:
    term: int
    reason: str


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """The leader this voter follows (itself included); None while it knows of none."""

    term: int
    leader: str | None


@dataclass(frozen=True, slots=True)
class HandoverRefused:
    reason: str


Effect = Send | Persist | SetTimer | BecameLeader | LostLeadership | LeaderChanged | HandoverRefused


class Outbox:
    """Persist before speaking: effects leave at once, messages wait for the writes before them."""

    def __init__(self, held_max: int) -> None:
        self._effects: list[Effect] = []
        self._written = 0
        self._durable = 0
        self._held: deque[tuple[int, Send]] = deque(maxlen=held_max)

    @property
    def all_durable(self) -> bool:
        return self._durable == self._written

    def add(self, effect: Effect) -> None:
        self._effects.append(effect)

    def write(self, durable: Durable) -> None:
        self._written += 1
        self._effects.append(Persist(self._written, durable))

    def send(self, to: str, message: Message) -> None:
        """What is said may rest on what is being written."""
        send = Send(to, message)
        if self.all_durable:
            self._effects.append(send)
        else:
            self._held.append((self._written, send))

    def persisted(self, token: int) -> None:
        invariant(token <= self._written, "told of a write that was never asked for")
        self._durable = max(self._durable, token)
        while self._held and self._held[0][0] <= self._durable:
            self._effects.append(self._held.popleft()[1])

    def take(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects
