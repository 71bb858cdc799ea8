"""How to reach an origin: where to connect to, what to say there first, its addresses in turn.

One route per (scheme, host, port) and pool; a connection belongs to the route that opened it.
"""

from __future__ import annotations

from hyperscale.clients.http.proxy import Proxy
from hyperscale.clients.http.reader import Heads
from hyperscale.clients.http.socks import Socks5
from hyperscale.clients.http.target import Target
from hyperscale.clients.http.tunnel import ConnectTunnel, Handshake
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.hosts import HostMap


class Route(Endpoint):
    """`peer` is the proxy's host and port when there is one.

    Sentences about an open connection name `where`: the target, or the proxy when it is the one
    that answers.
    """

    __slots__ = ("peer_name", "proxy", "where")

    def __init__(
        self,
        target: Target,
        proxy: Proxy | None,
        server_name: str | None,
        hosts: HostMap | None = None,
    ) -> None:
        mapped = hosts or HostMap({})
        secure = target.scheme == "https"
        super().__init__(target.host, target.port, secure, server_name, mapped)
        self.proxy = proxy
        if proxy is not None:
            self.peer = mapped.place(proxy.host, proxy.port)
        self.peer_name = proxy.name if proxy else self.authority
        self.where = self.peer_name if self.is_forwarded else self.authority

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
