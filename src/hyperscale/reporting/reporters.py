"""Results sent to what a team already runs: `-o postgres://host/database`.

A reporter that fails is told and changes nothing else: the run keeps its outcome, other reporters
get their results, and `hyperscale report results.json -o URL` sends them later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.util import find_spec
from typing import Protocol
from urllib.parse import urlsplit

from hyperscale.errors import BadInput, HyperscaleError, RunFailed
from hyperscale.metrics.results import Results
from hyperscale.reporting.postgres_reporter import PostgresReporter
from hyperscale.reporting.sqlite_reporter import SQLiteReporter

# A database that restarts is back within the pauses; one that is away must not hold up a CI job.
PAUSES_S = (0.5, 1.0)
ATTEMPT_S = 15.0


class Reporter(Protocol):
    needs: str  # the library it imports, "" for none

    async def connect(self) -> None: ...

    async def submit(self, results: Results) -> None: ...

    async def close(self) -> None:
        """May come twice, and without a connection."""


REPORTERS: dict[str, Callable[[str], Reporter]] = {
    "sqlite": SQLiteReporter,
    "postgres": PostgresReporter,
    "postgresql": PostgresReporter,
}


def reporter_of(url: str) -> Reporter:
    """Raises BadInput for a URL of no reporter, or one whose library is missing."""
    scheme, _, rest = url.partition("://")
    make = REPORTERS.get(scheme.lower())
    if make is None:
        raise BadInput(
            f"There is no reporter for {scheme}:// URLs.",
            f"Results can be sent to: {', '.join(f'{known}://' for known in REPORTERS)}.",
        )
    if not rest:
        raise BadInput(f"{url} does not say where to send results.")
    reporter = make(url)
    if reporter.needs and find_spec(reporter.needs) is None:
        raise BadInput(
            f"{scheme}:// needs {reporter.needs}, which is not installed.",
            f"pip install {reporter.needs}",
        )
    return reporter


def shown(url: str) -> str:
    """The URL without its user, password and options."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


async def reach(url: str) -> HyperscaleError | None:
    """Before the run: what would go wrong now."""
    return await _attempt(url, None)


async def send(url: str, results: Results) -> HyperscaleError | None:
    for pause_s in PAUSES_S:
        if await _attempt(url, results) is None:
            return None
        await asyncio.sleep(pause_s)
    return await _attempt(url, results)


async def _attempt(url: str, results: Results | None) -> HyperscaleError | None:
    reporter = reporter_of(url)
    try:
        async with asyncio.timeout(ATTEMPT_S):
            try:
                await reporter.connect()
                if results is not None:
                    await reporter.submit(results)
            finally:
                await reporter.close()
    except Exception as error:  # noqa: BLE001 - of any library: whatever it is, the run stands
        said = str(error) or type(error).__name__
        return RunFailed(f"results cannot be sent to {shown(url)}: {said}")
    return None
