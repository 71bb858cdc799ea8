"""What a database brings so that a `Store` can stand on it: all that differs between SQLite, Redis,
memory and whatever comes next.

Every answer is the truth of one moment, and everything that `step`, `write` and `take` did is
durable when they return, as far as the database promises durability at all. Each raises
StoreUnavailable when the database does not answer; then nothing is known of what was asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from hyperscale.scheduler.errors import SchedulerError
from hyperscale.scheduler.instants import Instant
from hyperscale.scheduler.queue.job import Job
from hyperscale.scheduler.queue.placement import Place
from hyperscale.scheduler.store.tables import Kind, Operation
from hyperscale.scheduler.store.types import Claim, Counts, JobFilter, Taken
from hyperscale.scheduler.store.wakeups import Wakeups

T = TypeVar("T")


class Ground(Protocol):
    @property
    def wakeups(self) -> Wakeups:
        """Woken by every write after which something may be claimable or due."""
        ...

    async def close(self) -> None: ...

    async def time(self) -> Instant | None:
        """What the database's clock shows, where callers may be on other machines. None: all share
        one machine, and its clock."""
        ...

    def step(self, step: Operation[T], job_ids: Sequence[str] = ()) -> Awaitable[T]:
        """Run it atomically; its refusal is raised. `job_ids` may tell beforehand of jobs that it
        will ask for."""
        ...

    def write(
        self, steps: Sequence[Operation[T]], job_ids: Sequence[str] = ()
    ) -> Awaitable[list[T | SchedulerError]]:
        """Each step atomic, in order, each outcome or refusal in its place."""
        ...

    def take(self, claim: Claim, now: Instant, promote_max: int) -> Awaitable[Taken]:
        """`queue.operations.take`, atomically. Apart from `step`, because everybody wants the same
        jobs: a database whose steps do not exclude each other needs another way to do it."""
        ...

    def get(self, kind: Kind[T], keys: Sequence[str]) -> Awaitable[list[T | None]]: ...

    def page(self, kind: Kind[T], prefix: str, behind: str, limit: int) -> Awaitable[list[T]]:
        """By key: those that start with `prefix` and come after `behind`."""
        ...

    def due(
        self, index: Kind[Any] | Place, until: Instant | None, limit: int
    ) -> Awaitable[list[tuple[Instant, str]]]:
        """Earliest first, up to and including `until` (None: all): the instant and the key, or the
        id of a job in that place."""
        ...

    def jobs(self, job_ids: Sequence[str]) -> Awaitable[list[Job | None]]: ...

    def held_by(self, worker_id: str, limit: int) -> Awaitable[list[str]]: ...

    def find(
        self, job_filter: JobFilter, behind: tuple[Instant, str] | None, limit: int
    ) -> Awaitable[list[Job]]:
        """Newest first: those that match and come after (created_at, id) `behind`."""
        ...

    def counts(self) -> Awaitable[Counts]: ...

    def sizes(self, indexes: Sequence[Kind[Any] | Place]) -> Awaitable[list[int]]:
        """Of kinds with an instant, and of places of jobs; for upkeep, so it may take a while."""
        ...


def accepted(outcomes: Iterable[T | SchedulerError]) -> list[T]:
    """Raises the first refusal."""
    done: list[T] = []
    for outcome in outcomes:
        if isinstance(outcome, SchedulerError):
            raise outcome
        done.append(outcome)
    return done
