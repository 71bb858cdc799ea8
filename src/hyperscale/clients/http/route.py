"""How to reach an origin: where to connect to, what to say there first, its addresses in turn.

One route per (scheme, host, port) and pool; a connection belongs to the route that opened it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hyperscale.clients.http.attempts import Attempts, interleaved
from hyperscale.clients.http.hosts import HostMap
from hyperscale.clients.http.proxy import Proxy
from hyperscale.clients.http.reader import Heads
from hyperscale.clients.http.socks import Socks5
from hyperscale.clients.http.target import Target
from hyperscale.clients.http.tunnel import ConnectTunnel, Handshake


class Route:
    """`peer` is the host and port to connect to: the proxy's when there is one.

    Sentences about an open connection name `where`: the target, or the proxy when it is the one
    that answers.
    """

    __slots__ = (
        "_resting",
        "_turn",
        "authority",
        "host",
        "peer",
        "peer_name",
        "place",
        "port",
        "proxy",
        "secure",
        "server_name",
        "where",
    )

    def __init__(
        self,
        target: Target,
        proxy: Proxy | None,
        server_name: str | None,
        hosts: HostMap | None = None,
    ) -> None:
        mapped = hosts or HostMap({})
        self.host = target.host
        self.port = target.port
        self.secure = target.scheme == "https"
        self.server_name = server_name or target.host
        self.proxy = proxy
        host = f"[{target.host}]" if ":" in target.host else target.host
        self.authority = f"{host}:{target.port}"
        self.place = mapped.place(target.host, target.port)
        self.peer = mapped.place(proxy.host, proxy.port) if proxy else self.place
        self.peer_name = proxy.name if proxy else self.authority
        self.where = self.peer_name if self.is_forwarded else self.authority
        self._turn = 0
        self._resting: dict[str, float] = {}

    @property
    def is_forwarded(self) -> bool:
        """Requests go to the proxy itself, each with its whole URL."""
        return self.proxy is not None and self.proxy.is_http and not self.secure

    @property
    def looks_up_target(self) -> bool:
        """Whether `handshake` needs the target's address: the proxy takes no names."""
        return self.proxy is not None and self.proxy.scheme == "socks5"

    def handshake(self, heads: Heads, address: str | None = None) -> Handshake | None:
        """What to say to the peer before the target hears anything."""
        proxy = self.proxy
        if proxy is None or self.is_forwarded:
            return None
        if proxy.is_http:
            return ConnectTunnel(heads, proxy, self.authority)
        host, port = self.place if self.looks_up_target else (self.host, self.port)
        return Socks5(proxy, self.authority, address or host, port)

    def attempts(self, addresses: Sequence[str]) -> Attempts:
        """How to connect to one of the peer's addresses; each call begins with the next one."""
        self._turn += 1
        return Attempts(interleaved(addresses, self._turn), self._resting)
