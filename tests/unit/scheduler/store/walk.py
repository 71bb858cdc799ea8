"""A random walk through every operation of the contract, the same for each store.

Which operation comes next depends on the seed alone; tokens, sessions and versions differ between
stores, so they are replaced by the order in which they were seen.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from hyperscale.scheduler.errors import AlreadyExists, SchedulerError
from hyperscale.scheduler.instants import SECOND
from hyperscale.scheduler.queue.job import Failure, Job, JobState
from hyperscale.scheduler.queue.reports import Accepted
from hyperscale.scheduler.schedules.firing import aside
from hyperscale.scheduler.schedules.schedule import Overlap
from hyperscale.scheduler.store.audit import Audit
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import JobFilter, Keep, Submission
from hyperscale.scheduler.worker.registration import Worker, WorkerBeat
from tests.unit.scheduler.store.cases.harness import (
    NOON,
    beat,
    completed,
    failed,
    firing,
    job,
    keyed,
    released,
    schedule,
    started,
    submit_all,
    take,
)

SCHEDULES = {f"s-{overlap}": overlap for overlap in Overlap}
WORKERS = ("w-1", "w-2", "w-3")


class Walk:
    def __init__(self, store: Store, seed: int, prefix: str = "") -> None:
        self._store = store
        self._prefix = prefix
        self._dice = random.Random(seed)
        self._now = NOON
        self._made = 0
        self._held: list[Job] = []
        self._numbers: dict[int, int] = {}
        self._steps: list[Callable[[], Awaitable[Any]]] = [
            *[self._submit] * 4,
            *[self._claim] * 5,
            *[self._report] * 8,
            *[self._fire] * 4,
            self._cancel,
            self._expire,
            self._recover,
            self._purge,
            self._age,
            self._letters,
            self._edit,
            self._worker,
            self._value,
            self._look,
        ]

    async def run(self, steps: int) -> list[Any]:
        for name, overlap in SCHEDULES.items():
            with suppress(AlreadyExists):  # by another walk
                await self._store.create_schedule(schedule(name, overlap))
        seen: list[Any] = []
        for _ in range(steps):
            self._now += self._dice.choice((0, 1, SECOND, 20 * SECOND, 400 * SECOND))
            step = self._dice.choice(self._steps)
            try:
                outcome = await step()
            except SchedulerError as refusal:
                outcome = refusal
            seen.append((step.__name__, self._plain(outcome)))
        seen.append(self._plain(await self._everything()))
        return seen

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Job):
            return msgspec.to_builtins(replace(value, token=self._number(value.token)))
        if isinstance(value, SchedulerError):
            return type(value).__name__, value.message
        if isinstance(value, (list, tuple)):
            return [self._plain(each) for each in value]
        if isinstance(value, msgspec.Struct):
            names = value.__struct_fields__
            plain = {name: self._plain(getattr(value, name)) for name in names}
            for name in ("token", "session"):
                if name in plain:
                    plain[name] = self._number(plain[name])
            return plain
        return value

    def _number(self, token: int) -> int:
        return self._numbers.setdefault(token, len(self._numbers))

    def _any_id(self) -> str:
        return self._id(self._dice.randrange(self._made + 1))

    def _id(self, number: int) -> str:
        return f"{self._prefix}j{number:04}"

    async def _submit(self) -> Any:
        dice = self._dice
        submissions = []
        for _ in range(dice.choice((1, 1, 3))):
            self._made += 1
            made = job(
                self._id(self._made),
                self._now,
                due_at=self._now + dice.choice((-5, 0, 0, 30, 900)) * SECOND,
                priority=dice.choice((0, 100, 500, 2000)),
                kind=dice.choice(("python", "http")),
                capabilities=dice.choice(((), (), ("gpu",), ("gpu", "net"))),
                timeout_s=dice.choice((None, 60.0)),
                stall_timeout_s=dice.choice((None, None, 20.0)),
            )
            key = dice.choice((None, None, "k1", "k2"))
            digest = dice.choice(("same", "other"))
            window_s = dice.choice((60.0, 3600.0))
            submissions.append(
                Submission(job=made) if key is None else keyed(made, key, digest, window_s)
            )
        return await submit_all(self._store, submissions, self._now)

    async def _claim(self) -> Any:
        offers = self._dice.choice(((), ("gpu",), ("gpu", "net")))
        worker = self._dice.choice(WORKERS)
        limit = self._dice.choice((1, 2, 5))
        start = self._dice.random() < 0.5
        kinds = self._dice.choice(((), ("python",), ("command", "http")))
        taken = await take(
            self._store, worker, limit, self._now, kinds=kinds, capabilities=offers, start=start
        )
        self._held += taken
        return taken

    async def _report(self) -> Any:
        if not self._held:
            return None
        reports = []
        for _ in range(self._dice.choice((1, 1, 4))):
            held = self._dice.choice(self._held[-8:])
            failure = self._dice.choice(list(Failure))
            progress = self._dice.random()
            make: Callable[[Job], Any] = self._dice.choice(
                [
                    started,
                    started,
                    lambda j, p=progress: beat(j, p),
                    lambda j: completed(j, "log"),
                    completed,
                    lambda j, f=failure: failed(j, f),
                    released,
                ]
            )
            reports.append(make(held))
        answers = await self._store.report_batch(reports, self._now)
        return [(type(a).__name__, a, isinstance(a, Accepted) and a.stop) for a in answers]

    async def _fire(self) -> Any:
        firings = []
        for name in self._dice.sample(sorted(SCHEDULES), 2):
            known = await self._store.schedule(name)
            if known is None:
                continue
            if self._dice.random() < 0.2:
                firings.append(aside(known, [self._now], self._now, Overlap.QUEUE))
                continue
            ticks = [known.cursor + (i + 1) * 60 * SECOND for i in range(self._dice.randrange(4))]
            if self._dice.random() < 0.1:
                known = replace(known, cursor=known.cursor - 1)
            firings.append(firing(known, *ticks, now=self._now, missed=self._dice.randrange(2)))
        return await self._store.fire(firings, self._now, self._dice.randrange(3))

    async def _cancel(self) -> Any:
        if self._held and self._dice.random() < 0.5:
            return await self._store.cancel(self._dice.choice(self._held).id, self._now)
        return await self._store.cancel(self._any_id(), self._now)

    async def _expire(self) -> Any:
        swept = await self._store.expire(self._now, epoch=self._dice.randrange(3))
        return sorted(swept, key=lambda each: each.id)

    async def _recover(self) -> Any:
        swept = await self._store.recover_worker(self._dice.choice(WORKERS), self._now)
        return sorted(swept, key=lambda each: each.id)

    async def _purge(self) -> Any:
        return await self._store.purge(self._now, Keep(job_s=600, log_s=1200, attempt_s=2400))

    async def _age(self) -> Any:
        return await self._store.age(self._now)

    async def _letters(self) -> Any:
        letters = await self._store.letters()
        if not letters:
            return None
        letter = self._dice.choice(letters)
        if self._dice.random() < 0.3:
            return await self._store.drop(letter.id)
        self._made += 1
        again = self._store.replay if self._dice.random() < 0.5 else self._store.retry
        return await again(letter.id, self._id(self._made), self._now)

    async def _edit(self) -> Any:
        name = self._dice.choice(sorted(SCHEDULES))
        known = await self._store.schedule(name)
        if known is None:
            return await self._store.create_schedule(schedule(name, SCHEDULES[name]))
        if self._dice.random() < 0.2:
            return await self._store.delete_schedule(name, self._dice.choice((None, known.version)))
        version = known.version - self._dice.choice((0, 0, 1))
        next_at = self._dice.choice((None, self._now))
        return await self._store.update_schedule(
            name, version, known.definition, self._now, next_at
        )

    async def _worker(self) -> Any:
        name = self._dice.choice(WORKERS)
        if self._dice.random() < 0.5:
            instance = self._dice.choice(("one", "two"))
            made = Worker(
                id=name, instance=instance, capacity=2, started_at=self._now, seen_at=self._now
            )
            return await self._store.register(made, self._now, 45)
        known = [each for each in await self._store.workers() if each.id == name]
        if not known:
            return None
        said = WorkerBeat(
            worker_id=name,
            session=known[0].session,
            sequence=self._dice.randrange(9),
            running=self._dice.randrange(4),
        )
        return await self._store.beat(said, self._now)

    async def _value(self) -> Any:
        key = self._dice.choice(("a", "b"))
        known = await self._store.get(key)
        version = 0 if known is None or self._dice.random() < 0.3 else known.version
        if known is not None and self._dice.random() < 0.3:
            return await self._store.delete(key, version)
        return (await self._store.put(key, b"x", version)).data

    async def _look(self) -> Any:
        page = await self._store.jobs(
            JobFilter(state=self._dice.choice([None, *JobState])), limit=5
        )
        await self._store.audit(
            Audit(at=self._now, actor="a", action="look", target="jobs", outcome="ok")
        )
        if self._dice.random() < 0.2:
            await self._store.raise_epoch(1)
        return page.jobs, bool(page.cursor), await self._store.counts()

    async def _everything(self) -> Any:
        store = self._store
        page = await store.jobs(JobFilter(), limit=1000)
        attempts = [await store.attempts(each.id) for each in page.jobs]
        return [
            list(page.jobs),
            attempts,
            await store.letters(),
            await store.schedules(),
            await store.workers(),
            await store.audits(),
            await store.counts(),
            await store.next_due(),
            await store.next_schedule_at(),
            await store.due_schedules(self._now),
        ]
