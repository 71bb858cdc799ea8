"""What DNS said lately, so that a name is not asked for at every turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hyperscale.cluster.discovery.settings import DiscoverySettings, DnsName
from hyperscale.cluster.identity import Endpoint


@dataclass(frozen=True, slots=True)
class Resolution:
    addresses: tuple[Endpoint, ...]
    until: float
    failure: str = ""


class NameCache:
    __slots__ = ("_known", "_settings")

    def __init__(self, settings: DiscoverySettings) -> None:
        self._settings = settings
        self._known: dict[DnsName, Resolution] = {}

    def get(self, now: float, name: DnsName) -> Resolution | None:
        """None: ask."""
        found = self._known.get(name)
        return found if found is not None and now < found.until else None

    def succeeded(
        self, now: float, name: DnsName, addresses: Sequence[Endpoint], lifetime_s: float | None
    ) -> None:
        settings = self._settings
        good_for_s = settings.dns_lifetime_s if lifetime_s is None else lifetime_s
        until = now + min(good_for_s, settings.dns_lifetime_max_s)
        self._known[name] = Resolution(tuple(addresses), until)

    def failed(self, now: float, name: DnsName, reason: str) -> None:
        until = now + self._settings.dns_failure_lifetime_s
        self._known[name] = Resolution((), until, reason)
