"""A process of its own at a SQLite store: `submit` or `work`, telling what was acknowledged.

Run as `python -m tests.integration.scheduler.store_process ROLE FILE NAME`. Each line on stdout is
written after the store's answer: what it names must survive whatever happens to this process.
"""

from __future__ import annotations

import asyncio
import sys

from hyperscale.scheduler.queue.reports import Accepted
from hyperscale.scheduler.store.sqlite.ground import SqliteGround
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import Submission
from tests.unit.scheduler.store.cases.harness import NOON, completed, job, started, take


def tell(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


async def submit(store: Store, name: str) -> None:
    number = 0
    while True:
        ids = [f"{name}-{number + i:06}" for i in range(5)]
        number += 5
        await asyncio.gather(*(store.submit(Submission(job=job(i)), NOON) for i in ids))
        tell("submitted", *ids)


async def work(store: Store, name: str) -> None:
    while held := await take(store, name, 3):
        await store.report_batch([started(each) for each in held], NOON)
        answers = await store.report_batch([completed(each) for each in held], NOON)
        done = [answer.job.id for answer in answers if isinstance(answer, Accepted)]
        tell("completed", *done)


async def main(role: str, path: str, name: str) -> None:
    store = Store(await SqliteGround.open(path))
    await {"submit": submit, "work": work}[role](store, name)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
