"""How to reach an origin: its addresses, in rotation, and the proxy on the way.

One route per (scheme, host, port) and pool; a connection belongs to the route that opened it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from time import perf_counter

from hyperscale.clients.http import failures
from hyperscale.clients.http.proxy import Proxy
from hyperscale.clients.http.target import Target

# An address that failed while another one answered is left alone for a while.
REST_S = 10.0

FAMILIES = {"any": socket.AF_UNSPEC, "4": socket.AF_INET, "6": socket.AF_INET6}


class Resolver:
    """One lookup per host however many virtual users ask at the same moment."""

    __slots__ = ("_family", "_known", "_running")

    def __init__(self, ip: str) -> None:
        self._family = FAMILIES[ip]
        self._known: dict[str, tuple[str, ...]] = {}
        self._running: dict[str, asyncio.Task[tuple[str, ...]]] = {}

    async def addresses(self, host: str) -> tuple[str, ...]:
        known = self._known.get(host)
        if known is not None:
            return known
        if _is_literal(host):
            return (host,)
        lookup = self._running.get(host)
        if lookup is None:
            lookup = asyncio.ensure_future(self._look_up(host))
            self._running[host] = lookup
            lookup.add_done_callback(lambda task: self._finished(host, task))
        return await asyncio.shield(lookup)

    async def _look_up(self, host: str) -> tuple[str, ...]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, None, family=self._family, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            reason = error if isinstance(error, OSError) else OSError(str(error))
            raise failures.of_lookup(reason, host) from error
        return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))

    def _finished(self, host: str, task: asyncio.Task[tuple[str, ...]]) -> None:
        del self._running[host]
        if not task.cancelled() and task.exception() is None:
            self._known[host] = task.result()


def _is_literal(host: str) -> bool:
    """An address needs no lookup, which would take a thread."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class Route:
    __slots__ = ("_next", "_resting", "host", "port", "proxy", "secure", "server_name", "where")

    def __init__(self, target: Target, proxy: Proxy | None, server_name: str | None) -> None:
        self.host = target.host
        self.port = target.port
        self.secure = target.scheme == "https"
        self.server_name = server_name or target.host
        self.proxy = proxy
        host = f"[{target.host}]" if ":" in target.host else target.host
        self.where = f"{host}:{target.port}"
        self._next = 0
        self._resting: dict[str, float] = {}

    @property
    def peer(self) -> tuple[str, int]:
        """The host and port to connect to: the proxy's when there is one."""
        return (self.proxy.host, self.proxy.port) if self.proxy else (self.host, self.port)

    def in_turn(self, addresses: tuple[str, ...]) -> list[str]:
        """All addresses, each call starting with the next one; failing ones come last."""
        if len(addresses) == 1:
            return list(addresses)
        first = self._next = (self._next + 1) % len(addresses)
        turn = [*addresses[first:], *addresses[:first]]
        if self._resting:
            now = perf_counter()
            turn.sort(key=lambda address: self._resting.get(address, 0.0) > now)
        return turn

    def rest(self, address: str) -> None:
        self._resting[address] = perf_counter() + REST_S
