"""A database and workers with bugs that a checker must catch."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from hyperscale.scheduler.errors import SchedulerError
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue import operations as queue
from hyperscale.scheduler.schedules import operations as schedules
from hyperscale.scheduler.schedules.schedule import Advance
from hyperscale.scheduler.store import values
from hyperscale.scheduler.store.tables import SCHEDULES, WORKERS, Operation
from hyperscale.scheduler.store.types import Claim, Taken
from hyperscale.scheduler.worker.running import Running
from hyperscale.scheduler.worker.service import WorkerService
from hyperscale.sim.scenarios.scheduler_store import Database

PLANTED_BUGS: Final = {
    "epoch-unchecked": "OnlyTheLeader",
    "token-unchecked": "OnlyTheHolder",
    "tick-by-name": "EachTickOnce",
    "tick-skipped": "EachTickOnce",
    "ack-before-write": "NothingIsLost",
    "released-while-it-runs": "OneAtATime",
    "drained-by-cache": "DrainedTakesNothing",
}


def _with(step: Any, **changed: Any) -> Operation[Any]:
    return partial(step, **changed)


class EpochUnchecked(Database):
    def do(self, step: Operation[Any]) -> Any:
        keywords = getattr(step, "keywords", {})
        done = getattr(step, "func", None)
        if not keywords.get("epoch") or done is values.raise_epoch:
            return super().do(step)
        epoch, current = keywords["epoch"], self.epoch
        outcome = super().do(_with(step, epoch=0))
        if not isinstance(outcome, SchedulerError):
            self._led(getattr(done, "__name__", "step"), epoch, current)
        return outcome

    def take(self, claim: Claim, now: Instant, promote_max: int) -> Taken:
        epoch, current = claim.epoch, self.epoch
        taken = super().take(replace(claim, epoch=0), now, promote_max)
        self._led("promote", epoch, current)
        return taken


class TokenUnchecked(Database):
    def do(self, step: Operation[Any]) -> Any:
        if getattr(step, "func", None) is not queue.report:
            return super().do(step)
        said = step.keywords["said"]  # type: ignore[attr-defined]
        before = self.records.job(said.job_id)
        if before is None or not before.held:
            return super().do(step)
        forged = replace(said, worker=before.worker, token=before.token)
        outcome = super().do(_with(step, said=forged))
        if not isinstance(outcome, SchedulerError):
            self.world.observe("accepted", said=said, before=before)
        return outcome


class _Fires(Database):
    def do(self, step: Operation[Any]) -> Any:
        if getattr(step, "func", None) is schedules.fire:
            firing = step.keywords["firing"]  # type: ignore[attr-defined]
            step = _with(step, firing=self.fired(firing), epoch=0)
        return super().do(step)

    def fired(self, firing: Any) -> Any:
        raise NotImplementedError


class TickByName(_Fires):
    """Each firing makes instances of its own, wherever the cursor stands and whoever leads."""

    def fired(self, firing: Any) -> Any:
        known = self.records.get(SCHEDULES, firing.schedule_id)
        if known is None or firing.advance is None:
            return firing
        suffix = self.records.token()
        jobs = tuple(replace(job, id=f"{job.id}-{suffix}") for job in firing.jobs)
        cursor = max(known.cursor, firing.advance.cursor)
        return replace(
            firing,
            jobs=jobs,
            version=known.version,
            advance=Advance(known.cursor, cursor, firing.advance.next_at),
        )


class TickSkipped(_Fires):
    """Of ticks that are late together only the newest is run."""

    def fired(self, firing: Any) -> Any:
        return replace(firing, jobs=firing.jobs[-1:])


class DrainedByCache(Database):
    """A claim does not look at the worker."""

    def take(self, claim: Claim, now: Instant, promote_max: int) -> Taken:
        hidden = self.records.tables[WORKERS.name]
        self.records.tables[WORKERS.name] = {}
        try:
            return super().take(claim, now, promote_max)
        finally:
            self.records.tables[WORKERS.name] = hidden


DATABASES: Final[dict[str, type[Database]]] = {
    "epoch-unchecked": EpochUnchecked,
    "token-unchecked": TokenUnchecked,
    "tick-by-name": TickByName,
    "tick-skipped": TickSkipped,
    "drained-by-cache": DrainedByCache,
}


def hasty(worker: type[WorkerService]) -> type[WorkerService]:
    """It gives jobs back that still run."""

    class Hasty(worker):  # type: ignore[misc,valid-type]
        def _give_back(self, running: Running) -> None:
            self._release(running.job)

    return Hasty
