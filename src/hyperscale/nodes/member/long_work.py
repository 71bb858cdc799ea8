"""Long work of a manager in steps: one at a time, and the loop's other work between any two.

The numbers of one part of a five-minute test take some 30 ms to read, and hundreds of parts end in
the same moment. A leader that reads them all in one go is deposed meanwhile: it has a lease of
three seconds to renew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import TypeVar

from hyperscale.runtime.host import Clock

T = TypeVar("T")


class LongWork:
    """First come, first served."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turn = asyncio.Lock()

    async def do(self, work: Callable[[], T]) -> T:
        async with self._turn:
            await self._clock.sleep(0)
            return work()

    async def run(self, steps: Generator[None, None, T]) -> T:
        """All of the steps, one after the other; what they return."""
        returned: list[T] = []

        def step() -> None:
            try:
                next(steps)
            except StopIteration as end:
                returned.append(end.value)

        while not returned:
            await self.do(step)
        return returned[0]
