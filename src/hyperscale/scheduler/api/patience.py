"""A store that does not answer is asked again before the client is told so (S-29).

Only for calls that may be repeated; each wait is spread so that callers do not come back at once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from hyperscale.scheduler.model.errors import StoreUnavailable

WAITS_S: Final = (0.05, 0.1, 0.2, 0.4)
"""Together under a second and a quarter with the spread: a failover of Redis behind a proxy is
over by then, and the client's own patience (10 s) is not."""
GIVE_UP_S: Final = 5.0
"""No further try once so much time is gone: a store that hangs takes seconds for one."""

T = TypeVar("T")


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """Raises StoreUnavailable when the last try failed too."""
    loop = asyncio.get_running_loop()
    until = loop.time() + GIVE_UP_S
    for wait_s in WAITS_S:
        try:
            return await call()
        except StoreUnavailable:
            if loop.time() >= until:
                raise
        await asyncio.sleep(wait_s * random.uniform(0.5, 1.5))
    return await call()
