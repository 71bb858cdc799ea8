"""What a scheduler must never do, judged from outside: by what the database did, what ran where,
and what users were told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from hyperscale.scheduler.instants import SECOND, Instant
from hyperscale.scheduler.queue.history import Outcome
from hyperscale.scheduler.queue.job import JobState
from hyperscale.scheduler.store.memory import MemoryRecords
from hyperscale.scheduler.store.tables import ATTEMPTS, SCHEDULES, attempt_key
from hyperscale.sim.checkers import Checker

Truth = Callable[[], MemoryRecords]


class SchedulerChecker(Checker):
    def __init__(self, truth: Truth, every_s: int) -> None:
        self.truth = truth
        self.every_s = every_s


class EachTickOnce(SchedulerChecker):
    """A tick has one instance, however many have led, and none is left out."""

    def __init__(self, truth: Truth, every_s: int) -> None:
        super().__init__(truth, every_s)
        self._seen: dict[tuple[str, Instant], str] = {}

    def on_instance(self, _at: float, schedule: str, tick: Instant | None, job: str) -> None:
        if tick is None or tick % (self.every_s * SECOND):
            return  # somebody ran it by hand
        known = self._seen.setdefault((schedule, tick), job)
        if known != job:
            self.fail(f"the tick of {schedule} at {tick} is both {known} and {job}")

    def at_end(self) -> None:
        step = self.every_s * SECOND
        for known in self.truth().tables[SCHEDULES.name].values():
            ticks = {tick for schedule, tick in self._seen if schedule == known.id}
            first = known.created_at // step * step + step
            missing = set(range(first, known.cursor + 1, step)) - ticks
            if missing:
                self.fail(f"{known.id} was never run for {sorted(missing)[:3]}")
            self.world.coverage["ticks"] += len(ticks)


class NothingIsLost(SchedulerChecker):
    """A job that was acknowledged is there, and comes to its end."""

    def __init__(self, truth: Truth, every_s: int) -> None:
        super().__init__(truth, every_s)
        self._acked: set[str] = set()

    def on_acked(self, _at: float, job: str) -> None:
        self._acked.add(job)
        if self.truth().job(job) is None:
            self.fail(f"{job} was acknowledged and is not in the store")

    def at_end(self) -> None:
        for job_id in sorted(self._acked):
            job = self.truth().job(job_id)
            if job is None:
                self.fail(f"{job_id} was acknowledged and is gone")
            elif job.state is JobState.FAILED or not job.ended:
                self.fail(f"{job_id} was acknowledged and is {job.state}: {job.error}")
            else:
                self.world.coverage[f"ended {job.state}"] += 1


class OnlyTheHolder(SchedulerChecker):
    """A report counts only from whoever holds the job now, and a job is completed once."""

    def __init__(self, truth: Truth, every_s: int) -> None:
        super().__init__(truth, every_s)
        self._completed: set[str] = set()

    def on_accepted(self, _at: float, said: Any, before: Any) -> None:
        if (before.worker, before.token) != (said.worker, said.token):
            self.fail(
                f"{type(said).__name__} of {said.job_id} by {said.worker} with token {said.token}"
                f" was accepted, which {before.worker} holds with {before.token}"
            )
        if type(said).__name__ == "Completed":
            if said.job_id in self._completed:
                self.fail(f"{said.job_id} was completed twice")
            self._completed.add(said.job_id)


class OneAtATime(SchedulerChecker):
    """While a job runs it runs nowhere else, unless its lease was lost."""

    def __init__(self, truth: Truth, every_s: int) -> None:
        super().__init__(truth, every_s)
        self._running: dict[str, dict[int, str]] = defaultdict(dict)

    def on_began(self, _at: float, node: str, job: str, token: int) -> None:
        for other, where in self._running[job].items():
            attempt = self.truth().get(ATTEMPTS, attempt_key(job, other))
            if attempt is None or attempt.outcome is not Outcome.LOST:
                became = "has not ended" if attempt is None else attempt.outcome
                self.fail(
                    f"{node} begins {job} with token {token} while {where} runs it with {other},"
                    f" which {became}"
                )
            self.world.coverage["ran beside one that was lost"] += 1
        self._running[job][token] = node

    def at_end(self) -> None:
        for attempt in self.truth().tables[ATTEMPTS.name].values():
            self.world.coverage[f"attempt {attempt.outcome}"] += 1

    def on_over(self, _at: float, node: str, job: str, token: int) -> None:
        self._running[job].pop(token, None)

    def on_crashed(self, _at: float, node: str, **_: Any) -> None:
        for runs in self._running.values():
            for token in [token for token, where in runs.items() if where == node]:
                del runs[token]


class DrainedTakesNothing(SchedulerChecker):
    """From the moment somebody drained a worker until somebody takes it back."""

    def __init__(self, truth: Truth, every_s: int) -> None:
        super().__init__(truth, every_s)
        self._drained: set[str] = set()

    def on_moved(self, _at: float, worker: str, event: str) -> None:
        if event == "DRAIN":
            self._drained.add(worker)
        elif event == "UNDRAIN":
            self._drained.discard(worker)

    def on_taken(self, _at: float, worker: str, jobs: dict[str, int]) -> None:
        if worker in self._drained:
            self.fail(f"{worker} was drained and took {', '.join(jobs)}")


class OnlyTheLeader(SchedulerChecker):
    """What a coordinator writes counts only while no newer one has begun."""

    def on_led(self, _at: float, act: str, epoch: int, current: int) -> None:
        if epoch < current:
            self.fail(f"{act} of epoch {epoch} counted after epoch {current} had begun")


KINDS = (
    EachTickOnce,
    NothingIsLost,
    OnlyTheHolder,
    OneAtATime,
    DrainedTakesNothing,
    OnlyTheLeader,
)


def all_checkers(truth: Truth, every_s: int) -> list[Checker]:
    return [kind(truth, every_s) for kind in KINDS]
