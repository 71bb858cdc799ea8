"""A store with something of everything in it, and each way a call may change it: for tests that cut
such a call anywhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from hyperscale.scheduler.queue.job import Failure
from hyperscale.scheduler.schedules.schedule import Overlap
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import Keep
from tests.unit.scheduler.store.cases.harness import (
    at,
    completed,
    failed,
    firing,
    job,
    keyed,
    schedule,
    started,
    submit,
    take,
    take_one,
)


async def fill(store: Store) -> None:
    await submit(store, *(job(f"j{i}", at(i)) for i in range(6)), job("later", due_at=at(50)))
    for name, overlap in (("queue", Overlap.QUEUE), ("cancel", Overlap.CANCEL_PREVIOUS)):
        known = await store.create_schedule(schedule(name, overlap))
        await store.fire([firing(known, at(30), now=at(30))], at(30))
    held = await take(store, limit=4, now=at(10))
    for each in held[:3]:
        await store.report(started(each), at(10))
    dead = await take_one(store, "w-9", at(10))
    await store.report(failed(dead, Failure.PERMANENT), at(10))


async def _known(store: Store, name: str) -> Any:
    known = await store.schedule(name)
    assert known is not None
    return known


async def _held(store: Store, job_id: str) -> Any:
    held = await store.job(job_id)
    assert held is not None
    return held


PATHS: dict[str, Callable[[Store], Awaitable[Any]]] = {
    "submit": lambda s: s.submit(keyed(job("new", at(60)), "key"), at(60)),
    "claim": lambda s: take(s, limit=3, now=at(60)),
    "promote": lambda s: s.promote(at(60)),
    "cancel": lambda s: s.cancel("j5", at(60)),
    "expire": lambda s: s.expire(at(500)),
    "recover": lambda s: s.recover_worker("w-1", at(60)),
    "age": lambda s: s.age(at(4000)),
    "replay": lambda s: s.replay("j4", "again", at(60)),
    "purge": lambda s: s.purge(at(9000), Keep(job_s=0, log_s=0, attempt_s=0, letter_s=0)),
    "raise epoch": lambda s: s.raise_epoch(3),
}


async def _complete(store: Store) -> Any:
    return await store.report(completed(await _held(store, "j0")), at(60))


async def _fail(store: Store) -> Any:
    return await store.report(failed(await _held(store, "j1")), at(60))


async def _fire_queue(store: Store) -> Any:
    return await store.fire([firing(await _known(store, "queue"), at(90), now=at(90))], at(90))


async def _fire_cancel(store: Store) -> Any:
    return await store.fire([firing(await _known(store, "cancel"), at(90), now=at(90))], at(90))


PATHS |= {
    "complete": _complete,
    "fail": _fail,
    "fire into a line": _fire_queue,
    "fire and cancel": _fire_cancel,
}
