"""Persist before speaking: effects leave at once, messages wait for the writes before them."""

from __future__ import annotations

from collections import deque

from hyperscale.cluster.election.effects import Durable, Effect, Persist, Send
from hyperscale.cluster.election.messages import Message
from hyperscale.cluster.invariants import invariant


class Outbox:
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
