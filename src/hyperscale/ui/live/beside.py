"""A view beside a run. When the view fails, the load goes on and the results are whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from hyperscale.ui.live.source import Source, View

# After the run's end the view gets this long to show it and to give the terminal back.
VIEW_CLOSES_S = 2.0


@asynccontextmanager
async def beside(view: View, run: Source, on_failure: Callable[[str], None]) -> AsyncIterator[None]:
    """Show the run while the block carries it out; `on_failure` hears what became of the view."""
    watching = asyncio.create_task(view.run(run))
    try:
        yield
    finally:
        view.over()
        await asyncio.wait({watching}, timeout=VIEW_CLOSES_S)
        watching.cancel()
        (failure,) = await asyncio.gather(watching, return_exceptions=True)
        if isinstance(failure, Exception):
            on_failure(f"the view failed ({type(failure).__name__}: {failure}), the run did not")
