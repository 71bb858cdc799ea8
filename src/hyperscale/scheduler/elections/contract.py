"""Who leads: what every election promises to the coordinator.

A term is a lease with a fencing token that only grows. Trust in it ends a margin before the lease
can, counted on the monotonic clock from before the last renewal was asked for. So a leader that was
paused finds out by looking at its own clock, without asking anybody. The store refuses older
tokens, which covers the moment between looking and writing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

from hyperscale.errors import HyperscaleError

TTL_S: Final = 10.0
RENEWALS_PER_TTL: Final = 3
MARGIN: Final = 0.2
"""Of the TTL: for a write that is on its way when trust ends, and for clocks of unequal speed."""

Floor = Callable[[], Awaitable[int]]
"""The highest token the store has seen. A new one must be above, also when the election was moved
to another service that counts from one."""


class ElectionUnavailable(HyperscaleError):
    """The election service did not answer; whether the last request happened is unknown."""


class Leader(NamedTuple):
    node: str
    address: str
    token: int


class Term:
    """One time of leading. `lost` is set when it is over, for whatever reason."""

    def __init__(self, token: int, trusted_until_s: float, clock: Callable[[], float]) -> None:
        self.token = token
        self.lost = asyncio.Event()
        self._trusted_until_s = trusted_until_s
        self._clock = clock

    @property
    def remaining_s(self) -> float:
        """0 when it is over. To be asked before every act of a leader."""
        if self.lost.is_set():
            return 0.0
        return max(0.0, self._trusted_until_s - self._clock())

    def renewed(self, trusted_until_s: float) -> None:
        if self.remaining_s > 0:
            self._trusted_until_s = max(self._trusted_until_s, trusted_until_s)

    def end(self) -> None:
        self.lost.set()


class Election(Protocol):
    @property
    def trouble(self) -> str:
        """Why the service cannot be reached now, as far as is known; empty: it answers."""
        ...

    async def campaign(self, floor: Floor) -> Term:
        """Waits until this node leads. At most one campaign at a time."""
        ...

    async def resign(self) -> None:
        """Ends the term, if there is one, and lets the others know at once."""
        ...

    async def leader(self) -> Leader | None:
        """Whoever leads now, as far as the service knows. Raises ElectionUnavailable."""
        ...

    async def close(self) -> None: ...
