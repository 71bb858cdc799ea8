"""A coordinator or a worker in a process of its own, to be killed or paused.

Run as `python -m tests.integration.scheduler.fault_process ROLE STORE ELECTION NODE SLOTS SPOOL`.
It prints "ready" when it takes part, stops cleanly on SIGTERM, and on SIGUSR1 writes to stderr what
each of its threads and tasks waits for.
"""

from __future__ import annotations

import asyncio
import faulthandler
import signal
import sys

from hyperscale.scheduler.service import Scheduler, open_worker
from hyperscale.scheduler.settings import SchedulerSettings

TTL_S = 3.0


def tell_tasks() -> None:
    faulthandler.dump_traceback()
    for task in asyncio.all_tasks():
        task.print_stack()


async def main(role: str, store: str, election: str, node: str, slots: str, spool: str) -> None:
    settings = SchedulerSettings(
        store=store,
        election=election,
        node=node,
        slots=int(slots),
        spool=spool,
        worker=False,
        election_ttl_s=TTL_S,
        beat_s=0.5,
        dead_after_s=2.0,
        lease_s=3.0,
        grace_s=2.0,
        shutdown_timeout_s=10.0,
        python_allow=("tests.integration.scheduler.nap:nap",),
        command=True,
    )
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    loop.add_signal_handler(signal.SIGUSR1, tell_tasks)
    running = Scheduler(settings) if role == "coordinator" else open_worker(settings)
    async with running:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:7]))
