"""Those who have connected and not shown yet who they are: how many at once, and of one source.

A place is taken for milliseconds by a node in earnest. Where places are short, whoever has held one
for long gives way to the next. One source never has them all, so that one machine cannot keep the
others out; when it has its share, its own oldest gives way, or else its next one is sent away.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")

# One address of IPv6 is nothing: whoever has one has all of its network.
_IPV6_NETWORK_BITS = 64


def source_of(host: str) -> str:
    """What counts as one source."""
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), _IPV6_NETWORK_BITS), strict=False))


class Newcomers(Generic[K]):
    def __init__(self, now: Callable[[], float], send_away: Callable[[K], None]) -> None:
        self._now = now
        self._send_away = send_away
        self._all: dict[K, tuple[str, float]] = {}
        self._of_source: dict[str, dict[K, None]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, one: object) -> bool:
        return one in self._all

    def add(self, one: K, source: str) -> None:
        self._all[one] = source, self._now()
        self._of_source.setdefault(source, {})[one] = None

    def discard(self, one: K) -> None:
        source, _ = self._all.pop(one, (None, 0.0))
        if source is None:
            return
        of_source = self._of_source[source]
        del of_source[one]
        if not of_source:
            del self._of_source[source]

    def room(self, most: int, give_way_s: float) -> bool:
        """Whether one more may come; the oldest goes when it has had `give_way_s`."""
        return len(self._all) < most or self._oldest_goes(self._all, give_way_s)

    def room_for(self, source: str, most: int, give_way_s: float) -> bool:
        """The same for one more of this source."""
        of_source = self._of_source.get(source, {})
        return len(of_source) < most or self._oldest_goes(of_source, give_way_s)

    def next_place_at(self, give_way_s: float) -> float:
        """When the oldest has had its time; there must be one."""
        return self._all[next(iter(self._all))][1] + give_way_s

    def _oldest_goes(self, among: dict[K, tuple[str, float]] | dict[K, None], s: float) -> bool:
        oldest = next(iter(among))
        if self._now() < self._all[oldest][1] + s:
            return False
        self.discard(oldest)
        self._send_away(oldest)
        return True
