"""What `benchmarks/exchange.py` measures: users as plain asyncio tasks, each with a client.

    python peers/exchange_users.py URL USERS SECONDS

No engine, no recording, no other process: what is left is the client and the event loop. Only the
names that a test's author may use are imported, so that earlier code runs this file too.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time

import uvloop

from hyperscale.clients import ClientPool
from hyperscale.testing import URL, HTTPOptions

WARM_UP_S = 0.3


async def use(pool: ClientPool, url: URL, done: list[int], failures: list[str]) -> None:
    get = pool.client().http.get
    while not failures:
        response = await get(url)
        if response.status != 200:
            failures.append(str(response.error or response.status))
        done[0] += 1


async def main(address: str, users: int, seconds: float) -> None:
    pool = ClientPool(HTTPOptions(verify=False))
    url = URL(address)
    await pool.prepare(url)
    done, failures = [0], list[str]()
    tasks = [asyncio.create_task(use(pool, url, done, failures)) for _ in range(users)]
    while done[0] < users and not failures:  # noqa: ASYNC110 - an event would cost each request
        await asyncio.sleep(0.01)
    await asyncio.sleep(WARM_UP_S)
    first, cpu, wall = done[0], time.process_time(), time.perf_counter()
    await asyncio.sleep(seconds)
    requests = done[0] - first
    cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - wall
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await pool.close()
    if failures:
        sys.exit(f"a request failed: {failures[0]}")
    print(json.dumps({"requests": requests, "cpu_s": cpu_s, "wall_s": wall_s}))


if __name__ == "__main__":
    gc.set_threshold(50_000, 20, 100)  # as a generator has it
    uvloop.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
