"""What a manager does by the clock: deadlines of jobs, windows, thresholds, parts without a job.

One job that cannot be dealt with is reported; it must not end the timer for all others. A manager
that lost a timer altogether ends.
"""

from __future__ import annotations

from collections.abc import Callable

from hyperscale.cluster.jobs.core import Jobs
from hyperscale.cluster.jobs.events import LeaderSeen, Tick
from hyperscale.nodes.manager.effect_runner import EffectRunner
from hyperscale.nodes.manager.leadership import Leadership
from hyperscale.nodes.member.node import Node
from hyperscale.runtime.host import Host

TICK_S_MAX = 1.0


class Timers:
    def __init__(self, host: Host, node: Node, leadership: Leadership) -> None:
        self._host = host
        self._node = node
        self._leadership = leadership

    def keep_deadlines(self, core: Jobs, effects: EffectRunner) -> None:
        self._node.spawn_vital("jobs timer", self._run_deadlines(core, effects))

    async def _run_deadlines(self, core: Jobs, effects: EffectRunner) -> None:
        """Deadlines are kept even when so much happens that no wait comes to its end."""
        now = self._host.clock.now
        leads = self._leadership.leads
        ticked_at = now()
        while True:
            due = core.next_deadline() if leads() else None
            at = ticked_at + TICK_S_MAX if due is None else min(due, ticked_at + TICK_S_MAX)
            effects.changed.clear()
            await effects.changed.wait(max(at - now(), 0.0))
            if now() >= at:
                ticked_at = now()
                if leads():
                    self.attempt("deadlines", lambda: effects.receive(Tick()))
                else:
                    leader = self._leadership.leader
                    effects.decide(LeaderSeen(leader not in ("", self._node.settings.id)))

    def every(self, seconds: float, name: str, act: Callable[[], None]) -> None:
        """By the clock, not after one another: what a turn takes must not make turns rarer."""
        self._node.spawn_vital(name, self._run(seconds, name, act))

    async def _run(self, width_s: float, name: str, act: Callable[[], None]) -> None:
        now = self._host.clock.now
        due = now()
        while True:
            due = max(due + width_s, now())  # after a pause of ours, none are made up for
            await self._host.clock.sleep(due - now())
            self.attempt(name, act)

    def while_leading(self, pause_s: float, name: str, act: Callable[[], None]) -> None:
        self._node.spawn_vital(name, self._run_leading(pause_s, name, act))

    async def _run_leading(self, pause_s: float, name: str, act: Callable[[], None]) -> None:
        while True:
            await self._host.clock.sleep(pause_s)
            if self._leadership.leads():
                self.attempt(name, act)

    def attempt(self, what: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - whatever it is, there is a next turn
            self._node.endpoint.report(f"timer of {what}", error)
