"""A coordinator or a worker in a process of its own, to be killed or paused.

Run as `python -m tests.integration.scheduler.fault_process ROLE STORE ELECTION NODE SLOTS SPOOL`.
It prints "ready" when it takes part, and stops cleanly on SIGTERM.
"""

from __future__ import annotations

import asyncio
import signal
import sys

from hyperscale.scheduler.service import Scheduler, open_worker
from hyperscale.scheduler.settings import SchedulerSettings

TTL_S = 3.0


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
    )
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    running = Scheduler(settings) if role == "coordinator" else open_worker(settings)
    async with running:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:7]))
