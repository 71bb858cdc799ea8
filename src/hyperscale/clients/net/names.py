"""Names to addresses: looked up in threads of their own, kept for a while, shared.

The system's lookup blocks, for as long as a minute when a name server is silent, and cannot be
called off. So a lookup has a thread that nobody waits for: not other names, not the end of the
process.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections import deque
from concurrent.futures import Future
from time import perf_counter
from typing import NamedTuple

from hyperscale.clients.net import failures
from hyperscale.clients.net.failures import Failure

FAMILIES = {"any": socket.AF_UNSPEC, "4": socket.AF_INET, "6": socket.AF_INET6}
THREADS_MAX = 64  # lookups at the same time; more wait
# After a lookup that failed the addresses known before are used, and the name asked for again.
RETRY_S = 5.0

Addresses = tuple[str, ...]


class Lookups:
    """`submit` starts a lookup; threads live while there is something to look up."""

    def __init__(self, ip: str, threads_max: int = THREADS_MAX) -> None:
        self._family = FAMILIES[ip]
        self._threads_max = threads_max
        self._threads = 0
        self._waiting: deque[tuple[str, Future[Addresses]]] = deque()
        self._lock = threading.Lock()

    def submit(self, host: str) -> Future[Addresses]:
        """Its result may be an OSError or UnicodeError."""
        future: Future[Addresses] = Future()
        with self._lock:
            self._waiting.append((host, future))
            if self._threads >= self._threads_max:
                return future
            self._threads += 1
        try:
            threading.Thread(target=self._work, name="lookup", daemon=True).start()
        except RuntimeError:  # the machine has no more threads: do it here
            self._work()
        return future

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                host, future = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue  # the event loop of those who asked has ended
            try:
                found = socket.getaddrinfo(host, None, self._family, socket.SOCK_STREAM)
                future.set_result(tuple(dict.fromkeys(str(entry[4][0]) for entry in found)))
            except Exception as error:  # noqa: BLE001 - whoever waits must hear of it
                future.set_exception(error)


class Known(NamedTuple):
    addresses: Addresses
    until: float


class Resolver:
    """One lookup per host however many virtual users ask at the same moment.

    What was found is used for `ttl` seconds, then looked up again by the next who asks. If that
    fails, the addresses known so far stay.
    """

    __slots__ = ("_known", "_lookups", "_running", "_ttl")

    def __init__(self, ip: str, ttl: float) -> None:
        self._ttl = ttl
        self._lookups = Lookups(ip)
        self._known: dict[str, Known] = {}
        self._running: dict[str, asyncio.Task[Addresses]] = {}

    def known(self, host: str) -> Addresses | None:
        """The addresses that can be had without a lookup."""
        known = self._known.get(host)
        if known is not None and perf_counter() < known.until:
            return known.addresses
        return (host,) if known is None and _is_literal(host) else None

    async def addresses(self, host: str) -> Addresses:
        """Raises Failure."""
        known = self.known(host)
        if known is not None:
            return known
        lookup = self._running.get(host)
        if lookup is None:
            lookup = asyncio.ensure_future(self._refresh(host))
            self._running[host] = lookup
            lookup.add_done_callback(lambda task: self._finished(host, task))
        return await asyncio.shield(lookup)

    async def _refresh(self, host: str) -> Addresses:
        ttl = self._ttl
        try:
            found = await self._look_up(host)
        except Failure:
            if host not in self._known:
                raise
            found = self._known[host].addresses
            ttl = min(ttl, RETRY_S)
        self._known[host] = Known(found, perf_counter() + ttl)
        return found

    async def _look_up(self, host: str) -> Addresses:
        try:
            return await asyncio.wrap_future(self._lookups.submit(host))
        except (OSError, UnicodeError) as error:
            reason = error if isinstance(error, OSError) else OSError(str(error))
            raise failures.of_lookup(reason, host) from error

    def _finished(self, host: str, task: asyncio.Task[Addresses]) -> None:
        del self._running[host]
        if not task.cancelled():
            task.exception()  # those who asked may have given up: nobody else looks at it


def _is_literal(host: str) -> bool:
    """An address needs no lookup, which would take a thread."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
