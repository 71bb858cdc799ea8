"""What a running job has, to which "ten more" is added: virtual users, and shares of its rate.

A cluster is told the new number, not the difference, so that a command that arrives twice does
what it says once. Each workflow under way has its own.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress

from hyperscale.errors import RunFailed
from hyperscale.metrics.results import Results, WorkflowResult
from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.picture import Picture

# Numbers come every 100 ms; a new leader shows a job after 3 s at the latest.
NUMBERS_WITHIN_S = 8.0


def new_totals(results: Results, delta: int, workflow: str = "") -> dict[str, int]:
    """By closed workflow under way, or of this one: its users, `delta` more. Raises RunFailed.

    Where several datacenters run all of the load each, it is the number of each.

    How many users an open one has now says nothing about how many it may have."""
    found = _under_way(results, workflow)
    copies = _copies(results)
    totals = {
        one.name: max(1, round(one.vus / copies) + delta)
        for one in found
        if one.vus and not one.open_model
    }
    if not totals and any(one.open_model for one in found):
        raise RunFailed(
            f"{found[0].name} makes its load by arrivals",
            "--rate changes them; --vus N is how many users it may have at most",
        )
    if not totals:
        raise RunFailed(_none_has("virtual users", workflow))
    return totals


def new_rates(picture: Picture, factor: float, workflow: str = "") -> dict[str, int]:
    """By open workflow under way, or of this one: the percentage of its planned rate, so many
    times what it is. Raises RunFailed."""
    view = picture.view
    now = {one.name: one.rate_percent for one in view.workflows} if view is not None else {}
    under_way = _under_way(picture.results(0.0), workflow)
    rates = {
        one.name: max(1, round(now.get(one.name, 100) * factor))
        for one in under_way
        if one.open_model
    }
    if not rates:
        raise RunFailed(
            _none_has("arrivals", workflow),
            "a rate can be changed where arrivals make the load; --vus changes users",
        )
    return rates


def _under_way(results: Results, workflow: str) -> list[WorkflowResult]:
    return [
        one
        for one in results.workflows
        if one.state in ("running", "paused") and workflow in ("", one.name)
    ]


def _copies(results: Results) -> int:
    """How many datacenters run all of the load: each is told how many users it has."""
    running = [one for one in results.datacenters if one.status == "running" and not one.share]
    return max(1, len(running))


def _none_has(what: str, workflow: str) -> str:
    who = f"{workflow} has no" if workflow else "no workflow of the job has"
    return f"{who} {what} now"


async def look_at(cluster: Cluster, job_id: str) -> Picture:
    """A job that is not being watched, with its numbers. Raises RunFailed when it has ended."""
    picture = Picture()
    with suppress(TimeoutError):  # what has been seen by then is judged
        async with asyncio.timeout(NUMBERS_WITHIN_S), aclosing(cluster.follow(job_id)) as updates:
            async for update in updates:
                picture.apply(update)
                if picture.over or update.windows:
                    break
    if picture.over:
        raise RunFailed(f"job {job_id} has ended")
    return picture
