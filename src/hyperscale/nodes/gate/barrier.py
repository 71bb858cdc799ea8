"""The load of a job begins everywhere at once: prepared, committed, begun.

Every datacenter holds its load until it is told to begin. Once all of them are prepared that is
committed, so that a next owner begins too, and nobody twice. Then each is told in how many
milliseconds it begins, less the time that the word is under way: durations, for no two clocks are
alike. A datacenter that is not prepared in time is given up before that, and the others begin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from hyperscale.nodes.gate.datacenter_run import DatacenterRun
from hyperscale.nodes.gate.events import Begun
from hyperscale.nodes.gate.job_ledger import JobLedger
from hyperscale.nodes.gate.jobs import GateJob
from hyperscale.runtime.host import Host

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

LOOK_S = 0.02
# For the managers to write it down, beside the way to the farthest of them.
AHEAD_S = 0.15


class Barrier:
    def __init__(
        self,
        host: Host,
        job: GateJob,
        runs: Mapping[str, DatacenterRun],
        ledger: JobLedger,
        within_s: float,
        log: FilteringBoundLogger,
        is_cut_off: Callable[[], bool],
    ) -> None:
        """`is_cut_off`: it is likely this gate that hears nothing. That time does not count."""
        self._clock, self._tasks = host.clock, host.tasks
        self._job = job
        self._runs = runs
        self._ledger = ledger
        self._within_s = within_s
        self._log = log
        self._is_cut_off = is_cut_off

    async def run(self) -> None:
        """Until the load has begun wherever it is to. Raises NotPrimary."""
        job = self._job
        if job.begun is None:
            await self._wait_for_all()
            runs = self._waited_for()
            ready = tuple(run.name for run in runs if run.is_prepared and not run.gave_up)
            if not ready:
                return
            await self._ledger.append_surely(job.job_id, Begun(ready))
        await self._begin()

    def _waited_for(self) -> list[DatacenterRun]:
        return [run for name, run in self._runs.items() if name not in self._job.ends]

    async def _wait_for_all(self) -> None:
        waited_s = 0.0
        before = self._clock.now()
        while not all(run.is_prepared or run.gave_up for run in self._waited_for()):
            await self._clock.sleep(LOOK_S)
            now = self._clock.now()
            excused = self._job.is_paused or self._is_cut_off()
            waited_s += 0.0 if excused else now - before
            before = now
            if waited_s < self._within_s:
                continue
            for run in self._waited_for():
                if not run.is_prepared:
                    self._give_up(run)
        while self._job.is_paused and not self._job.ending:
            await self._clock.sleep(LOOK_S)

    def _give_up(self, run: DatacenterRun) -> None:
        run.give_up(f"it was not ready to begin within {self._within_s:g} s")

    async def _begin(self) -> None:
        """All at one moment. Where it runs already that moment was chosen by an earlier owner."""
        assert self._job.begun is not None
        runs = []
        for run in self._waited_for():
            if run.name in self._job.begun.datacenters:
                runs.append(run)
            else:  # an earlier owner did, and could not write it down
                self._give_up(run)
        began = [run.began_at for run in runs if run.began_at is not None]
        ahead_s = AHEAD_S + max((run.round_trip_s for run in runs), default=0.0)
        moment = min(began, default=self._clock.now() + ahead_s)
        telling = [
            self._tasks.spawn(f"begin {self._job.job_id} in {run.name}", run.begin(moment))
            for run in runs
        ]
        try:
            for task in telling:
                await task
        finally:
            for task in telling:
                task.cancel()
        self._log.info(
            "load begins",
            job=self._job.job_id,
            round_trips_ms={run.name: round(run.round_trip_s * 1e3, 1) for run in runs},
        )
