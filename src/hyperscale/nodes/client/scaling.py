"""How many virtual users a running job has: what "ten more" is added to.

A cluster is told the new number, not the difference, so that a command that arrives twice does
what it says once. The number is that of every workflow under way.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress

from hyperscale.errors import RunFailed
from hyperscale.metrics.results import Results
from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.picture import Picture

# Numbers come every 100 ms; a new leader shows a job after 3 s at the latest.
NUMBERS_WITHIN_S = 8.0


def new_total(results: Results, delta: int) -> int:
    """The users of every workflow under way, `delta` more. Raises RunFailed."""
    vus = {
        workflow.vus
        for workflow in results.workflows
        if workflow.state in ("running", "paused") and workflow.vus
    }
    if not vus:
        raise RunFailed("no workflow of the job has virtual users now")
    if len(vus) > 1:
        numbers = ", ".join(map(str, sorted(vus)))
        raise RunFailed(
            f"its workflows have different numbers of virtual users ({numbers})",
            "give the number that all of them shall have: --vus N",
        )
    return max(1, vus.pop() + delta)


async def ask_new_total(cluster: Cluster, job_id: str, delta: int) -> int:
    """As `new_total`, of a job that is not being watched."""
    picture = Picture()
    with suppress(TimeoutError):  # what has been seen by then is judged
        async with asyncio.timeout(NUMBERS_WITHIN_S), aclosing(cluster.follow(job_id)) as updates:
            async for update in updates:
                picture.apply(update)
                if picture.over or update.windows:
                    break
    if picture.over:
        raise RunFailed(f"job {job_id} has ended")
    return new_total(picture.results(0.0), delta)
