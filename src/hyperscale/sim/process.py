"""A simulated process: what runs together, stops together and shares one clock.

The loop asks the process of every event whether it may run now. A paused process keeps its
events for later, a dead one forgets them. Its monotonic clock has its own origin, so that no two
hosts can compare readings by accident, and its own rate, because real oscillators drift.
"""

from __future__ import annotations

import math
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyperscale.sim.events import Event
    from hyperscale.sim.loop import SimLoop

CURRENT: ContextVar[Process] = ContextVar("hyperscale_sim_process")


class Process:
    """`context` marks everything started in it as belonging here."""

    __slots__ = (
        "_base_local",
        "_base_true",
        "_held",
        "_loop",
        "context",
        "dead",
        "held_count",
        "name",
        "paused_until",
        "rate",
        "running",
    )

    def __init__(self, loop: SimLoop, name: str, origin: float = 0.0, rate: float = 1.0) -> None:
        assert rate > 0
        self._loop = loop
        self._base_true = loop.now
        self._base_local = origin
        self._held: list[Event] = []
        self.name = name
        self.rate = rate
        self.running = True
        self.dead = False
        self.held_count = 0
        self.paused_until = 0.0
        self.context = Context()
        self.context.run(CURRENT.set, self)

    def local_time(self, true_time: float) -> float:
        return self._base_local + (true_time - self._base_true) * self.rate

    def now(self) -> float:
        """What its clock shows."""
        return self._base_local + (self._loop.now - self._base_true) * self.rate

    def after(self, seconds: float) -> tuple[float, float]:
        """The end of a time that begins now, by its clock and truly."""
        base_local, base_true, rate = self._base_local, self._base_true, self.rate
        local_time = base_local + (self._loop.now - base_true) * rate + seconds
        true_time = base_true + (local_time - base_local) / rate
        if base_local + (true_time - base_true) * rate < local_time:
            true_time = self.true_time(local_time)
        return local_time, true_time

    def true_time(self, local_time: float) -> float:
        """The first true time at which this clock shows at least `local_time`: a timer that fired
        a rounding error early would find nothing due and be set again for ever."""
        base_local, base_true, rate = self._base_local, self._base_true, self.rate
        true_time = base_true + (local_time - base_local) / rate
        while base_local + (true_time - base_true) * rate < local_time:
            true_time += max(math.ulp(local_time), math.ulp(true_time))
        return true_time

    def set_rate(self, rate: float) -> None:
        """From now on; timers already set keep the true time they were given."""
        assert rate > 0
        self._base_local = self.now()
        self._base_true = self._loop.now
        self.rate = rate

    def hold(self, event: Event) -> None:
        """The loop reached an event of a process that is not running."""
        if not self.dead:
            self._held.append(event)
            self.held_count += 1

    def pause(self, until: float) -> None:
        """Stand still, at least until this true time."""
        if not self.dead:
            self.running = False
            self.paused_until = max(self.paused_until, until)

    def resume(self) -> None:
        if not self.dead and not self.running:
            self.running = True
            self._loop.make_ready(self._held)
            self._held = []
            self.held_count = 0
            self.paused_until = 0.0

    def kill(self) -> None:
        self.running = False
        self.dead = True
        self._held = []
