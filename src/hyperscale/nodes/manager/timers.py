"""What a manager does by the clock: deadlines of jobs, windows, thresholds, looking for orphans.

One job that cannot be dealt with is reported; it must not end the round for all others. A manager
that lost a round altogether ends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from hyperscale.cluster.jobs.state import JobState
from hyperscale.engine.results import watch
from hyperscale.nodes.manager.progress_backup import BACKUP_S

if TYPE_CHECKING:
    from hyperscale.nodes.manager.manager import Manager

TICK_S_MAX = 1.0
WATCH_S = 1.0  # thresholds that may abort are looked at this often
REACH_EVERY_S = 1.0  # whether doubtful workers can be commanded


class Timers:
    def __init__(self, manager: Manager) -> None:
        self._manager = manager

    def start(self) -> None:
        manager = self._manager
        for name, work in (
            ("jobs timer", self._run_timer()),
            ("windows", self._run_windows()),
            ("thresholds", self._run_thresholds()),
            ("orphans", self._run_scan()),
            ("progress backup", self._run_backup()),
            ("doubtful workers", self._run_reach()),
        ):
            manager.node.spawn_vital(name, work)

    async def _run_timer(self) -> None:
        """Deadlines are kept even when so much stirs that no wait comes to its end."""
        manager = self._manager
        ticked_at = manager.now()
        while True:
            due = manager.jobs.next_deadline() if manager.leadership.leads() else None
            at = ticked_at + TICK_S_MAX if due is None else min(due, ticked_at + TICK_S_MAX)
            manager.changed.clear()
            await manager.changed.wait(max(at - manager.now(), 0.0))
            if manager.now() >= at:
                ticked_at = manager.now()
                if manager.leadership.leads():
                    self._try("deadlines", self._tick)
                else:
                    leader = manager.leadership.leader
                    manager.jobs.look(ticked_at, led=leader not in ("", manager.id))

    def _tick(self) -> None:
        manager = self._manager
        manager.carry_out(manager.jobs.tick(manager.now()))

    async def _run_windows(self) -> None:
        """By the clock, not after one another: what a turn takes must not make windows rarer."""
        manager = self._manager
        width_s, due = manager.settings.window_s, manager.now()
        while True:
            due = max(due + width_s, manager.now())  # after a pause of ours, none are made up for
            await manager.host.clock.sleep(due - manager.now())
            self._try("windows", manager.live.turn)

    async def _run_thresholds(self) -> None:
        manager = self._manager
        while True:
            await manager.host.clock.sleep(WATCH_S)
            if manager.leadership.leads():
                for job in manager.jobs.jobs():
                    if not job.is_over and not job.ending:
                        self._try("thresholds", functools.partial(self._judge, job))

    def _judge(self, job: JobState) -> None:
        """Thresholds that abort are watched over all nodes together: a new leader that has not
        been told all of a workflow would see too little load, or too much at once."""
        manager = self._manager
        watched = [j for j in manager.judges(job) if j.threshold.abort or j.threshold.for_s]
        lives = {j.workflow: manager.live.workflow(job.job_id, j.workflow) for j in watched}
        aggregates = {
            name: live.merged()
            for name, live in lives.items()
            if live is not None and live.complete
        }
        crossed = watch([j for j in watched if j.workflow in aggregates], aggregates)
        manager.thresholds.record(job, watched)
        if crossed is not None:
            reason = f"threshold {crossed.threshold.expression} was crossed"
            _, effects = manager.jobs.steer(
                manager.now(), job.job_id, "stop", by="threshold", reason=reason
            )
            manager.carry_out(effects)

    async def _run_backup(self) -> None:
        manager = self._manager
        while True:
            await manager.host.clock.sleep(BACKUP_S)
            if manager.leadership.leads():
                self._try("progress backup", manager.progress_backup.tell)

    async def _run_scan(self) -> None:
        manager = self._manager
        while True:
            await manager.host.clock.sleep(manager.settings.jobs.orphan_scan_s)
            if manager.leadership.leads():
                self._try("orphans", manager.commands.ask_parts)

    async def _run_reach(self) -> None:
        manager = self._manager
        while True:
            await manager.host.clock.sleep(REACH_EVERY_S)
            if manager.leadership.leads():
                self._try("doubtful workers", manager.commands.reach_doubtful)

    def _try(self, what: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - whatever it is, there is a next turn
            self._manager.node.endpoint.report(f"timer of {what}", error)
