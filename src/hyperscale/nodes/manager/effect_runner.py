"""The way into the jobs core and out of it: events go in, each effect goes to who carries it out.

Whoever carries out an effect says so with `on`, so that nobody has to know all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from hyperscale.cluster.jobs.core import Jobs
from hyperscale.cluster.jobs.effects import Answer, Effect, answer_to
from hyperscale.cluster.jobs.events import Asks, Event
from hyperscale.runtime.host import Clock
from hyperscale.runtime.timed_event import TimedEvent

A = TypeVar("A")
E = TypeVar("E")


class EffectRunner:
    def __init__(self, core: Jobs, clock: Clock) -> None:
        self._core = core
        self._clock = clock
        self._handlers: dict[type, Callable[[Any], object]] = {Answer: lambda _answer: None}
        self.changed = TimedEvent()
        """Set with every event: the next deadline may be another."""

    def on(self, kind: type[E], handler: Callable[[E], object]) -> None:
        self._handlers[kind] = handler

    def receive(self, event: Event) -> None:
        self.carry_out(self.decide(event))

    def ask(self, event: Asks[A]) -> A:
        effects = self.decide(cast(Event, event))
        self.carry_out(effects)
        return answer_to(event, effects)

    def decide(self, event: Event) -> list[Effect]:
        """For who carries out the effects in a way of its own."""
        return self._core.receive(self._clock.now(), event)

    def carry_out(self, effects: Sequence[Effect]) -> None:
        self.changed.set()
        for effect in effects:
            self._handlers[type(effect)](effect)
