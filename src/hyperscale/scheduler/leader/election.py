"""Who leads: what every election promises to the coordinator, and an election on any service that
can hand out a lease. The services differ in few questions only, which are `Lease`.

A term is a lease with a fencing token that only grows. Trust in it ends a margin before the lease
can, counted on the monotonic clock from before the last renewal was asked for. So a leader that was
paused finds out by looking at its own clock, without asking anybody. The store refuses older
tokens, which covers the moment between looking and writing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from hyperscale.errors import HyperscaleError
from hyperscale.runtime.logs import logger
from hyperscale.runtime.tasks import ended
from hyperscale.scheduler.telemetry import events
from hyperscale.scheduler.telemetry.hook import NO_TELEMETRY, Call, Telemetry, TraceClass

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


T = TypeVar("T")

ACQUIRE: Final = Call("acquire", TraceClass.COORDINATION, "election", coordinates=True)
RENEW: Final = Call("renew", TraceClass.COORDINATION, "election", coordinates=True)
RELEASE: Final = Call("release", TraceClass.COORDINATION, "election", coordinates=True)


class Lease(Protocol):
    """Each method raises ElectionUnavailable when the service does not answer."""

    async def acquire(self, floor: int) -> int | None:
        """A token above `floor` and above all before it; None while somebody else leads."""
        ...

    async def renew(self, token: int) -> bool:
        """False: it is lost for good."""
        ...

    async def release(self, token: int) -> None: ...

    async def vacant(self, timeout_s: float) -> None:
        """Returns when the lease may be free, at the latest after the timeout."""
        ...

    async def holder(self) -> Leader | None: ...

    async def close(self) -> None: ...


class LeasedElection:
    def __init__(
        self,
        lease: Lease,
        ttl_s: float = TTL_S,
        clock: Callable[[], float] = time.monotonic,
        telemetry: Telemetry = NO_TELEMETRY,
        service: str = "",
    ) -> None:
        """`service` is what telemetry calls whoever hands out the lease."""
        self._lease = lease
        self._ttl_s = ttl_s
        self._clock = clock
        self._telemetry = telemetry
        self._service = service
        self._term: Term | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._trouble = ""
        self._log: Any = logger("scheduler.election")

    @property
    def trouble(self) -> str:
        return self._trouble

    async def campaign(self, floor: Floor) -> Term:
        await self._stop_renewing()
        while True:
            asked_at = self._clock()
            try:
                token = await self._timed(ACQUIRE, self._lease.acquire(await floor()))
            except ElectionUnavailable as error:
                await self._unavailable(error)
                continue
            self._trouble = ""
            until = self._trusted_until(asked_at)
            if token is not None and self._clock() < until:
                return self._begin(Term(token, until, self._clock))
            await self._wait_vacant()

    async def resign(self) -> None:
        term, self._term = self._term, None
        was_trusted = term is not None and term.remaining_s > 0  # which ends with the renewing
        await self._stop_renewing()
        if term is None:
            return
        term.end()
        if was_trusted:
            try:
                await self._timed(RELEASE, self._lease.release(term.token))
            except ElectionUnavailable as error:
                self._log.warning("could not resign, the lease runs out", error=error.message)

    async def leader(self) -> Leader | None:
        return await self._lease.holder()

    async def close(self) -> None:
        await self.resign()
        await self._lease.close()

    def _trusted_until(self, asked_at: float) -> float:
        return asked_at + self._ttl_s * (1 - MARGIN)

    def _begin(self, term: Term) -> Term:
        self._term = term
        self._renewing = asyncio.create_task(self._renew(term), name="election renewal")
        return term

    async def _wait_vacant(self) -> None:
        try:
            await self._lease.vacant(self._ttl_s)
        except ElectionUnavailable as error:
            await self._unavailable(error)

    async def _unavailable(self, error: ElectionUnavailable) -> None:
        self._trouble = error.message
        self._log.warning(events.ELECTION_AWAY, error=error.message)
        await asyncio.sleep(self._ttl_s / RENEWALS_PER_TTL)

    async def _renew(self, term: Term) -> None:
        try:
            while term.remaining_s > 0:
                await asyncio.sleep(min(self._ttl_s / RENEWALS_PER_TTL, term.remaining_s))
                asked_at = self._clock()
                try:
                    async with asyncio.timeout(max(term.remaining_s, 0.001)):
                        held = await self._timed(RENEW, self._lease.renew(term.token))
                except (ElectionUnavailable, TimeoutError) as error:
                    self._trouble = str(error) or "a renewal of the lease was not answered"
                    await asyncio.sleep(min(self._ttl_s / 20, term.remaining_s))
                    continue
                self._trouble = ""
                if not held:
                    return
                term.renewed(self._trusted_until(asked_at))
        finally:
            term.end()

    async def _timed(self, call: Call, asked: Awaitable[T]) -> T:
        """What takes, keeps or gives up the lead is timed; what waits or looks is not."""
        begun = time.perf_counter()
        trouble: BaseException | None = None
        try:
            return await asked
        except BaseException as error:
            trouble = error
            raise
        finally:
            took_s = time.perf_counter() - begun
            self._telemetry.called(call, took_s, trouble, self._service)

    async def _stop_renewing(self) -> None:
        task, self._renewing = self._renewing, None
        if task is not None:
            await ended([task])
