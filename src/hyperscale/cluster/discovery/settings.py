"""All numbers of finding a cluster, each with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass

from hyperscale.cluster.identity import Endpoint
from hyperscale.cluster.overload.backoff import grown_s

PORT_DEFAULT = 9_000


@dataclass(frozen=True, slots=True)
class DnsName:
    """A name whose answers are peers. With `service` the name is asked for SRV records, which
    carry their own ports; otherwise for addresses, all on `port`."""

    name: str
    port: int = PORT_DEFAULT
    service: bool = False

    def __str__(self) -> str:
        return f"{self.name} (SRV)" if self.service else f"{self.name}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverySettings:
    seeds: tuple[Endpoint, ...] = ()
    names: tuple[DnsName, ...] = ()

    peer_roles: tuple[str, ...]
    """Roles that can take us in: managers for managers and workers, gates for gates."""

    forms_cluster: bool
    """Managers and gates: when nobody answers, be the first and go on looking in the background.
    A worker is nothing by itself and keeps waiting."""

    deadline_s: float | None = None
    """Give up after this long without a peer. None, the rule for servers: never."""

    probe_timeout_s: float = 0.5
    probes_max: int = 10
    """At once; more candidates are asked in further waves."""

    candidates_max: int = 256
    """In one round. One live peer is enough, and whoever needs more seeds than that is better
    served by the next, differently shuffled, round."""

    backoff_first_s: float = 0.5
    backoff_max_s: float = 15.0
    backoff_growth: float = 2.0
    backoff_jitter: float = 0.25
    """Added on top, also on top of the maximum: at most 18.75 s."""

    refresh_first_s: float = 1.0
    refresh_max_s: float = 60.0
    refresh_jitter: float = 1 / 12
    """After joining, candidates who are not members are asked again, at growing intervals: nodes
    that started together may have joined in pairs, and sides of a split know nothing of each
    other. 5 s of 60."""

    dns_timeout_s: float = 2.0
    dns_lifetime_s: float = 5.0
    """Of an answer that does not say how long it is good."""

    dns_lifetime_max_s: float = 60.0
    """However long an answer says it is good: pods come and go faster than zones are tended."""

    dns_failure_lifetime_s: float = 30.0
    """A name that failed is not asked for again before this."""

    cache_lifetime_s: float = 60.0
    cache_max: int = 64

    def __post_init__(self) -> None:
        positive = {
            "probe_timeout_s": self.probe_timeout_s,
            "probes_max": self.probes_max,
            "candidates_max": self.candidates_max,
            "backoff_first_s": self.backoff_first_s,
            "refresh_first_s": self.refresh_first_s,
            "dns_timeout_s": self.dns_timeout_s,
        }
        wrong = [name for name, value in positive.items() if value <= 0]
        if wrong:
            raise ValueError(f"{', '.join(wrong)} must be positive")
        if self.backoff_growth < 1 or self.backoff_max_s < self.backoff_first_s:
            raise ValueError("backoff_growth must be at least 1 and backoff_max_s the longest")
        if not self.peer_roles:
            raise ValueError("peer_roles must name at least one role")
        if not self.forms_cluster and not self.seeds and not self.names:
            raise ValueError("a node that cannot form a cluster needs seeds or a DNS name")
        if self.deadline_s is not None and self.deadline_s <= 0:
            raise ValueError("deadline_s must be positive, or None for no deadline")

    def backoff_s(self, failures: int) -> float:
        """Before jitter; 0.5, 1, 2, 4, 8, 15, 15, ... for the first failure and on."""
        first_s, longest_s = self.backoff_first_s, self.backoff_max_s
        return grown_s(first_s, failures - 1, longest_s, self.backoff_growth)

    def refresh_s(self, refreshes: int) -> float:
        """Before jitter; 1, 2, 4, ... 60."""
        return grown_s(self.refresh_first_s, refreshes, self.refresh_max_s)


def parse_address(text: str, port_default: int = PORT_DEFAULT) -> Endpoint:
    """`host`, `host:port`, `[v6]:port` or a bare IPv6 address. Raises ValueError."""
    host, port = text.strip(), str(port_default)
    if host.startswith("["):
        host, bracket, rest = host[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f"{text!r} is not an address: write [host]:port")
        port = rest[1:] or port
    elif host.count(":") == 1:
        host, _, port = host.partition(":")
    if not host or any(character.isspace() for character in host):
        raise ValueError(f"{text!r} is not an address: write host:port")
    if not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65_536:
        raise ValueError(f"{text!r} is not an address: {port!r} is no port")
    return host, int(port)
