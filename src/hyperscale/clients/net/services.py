"""Where a service is and as whom to log in: `redis://user:password@host:6379/0`."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from hyperscale.clients.net.addresses import Addresses
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.host_names import ascii_host
from hyperscale.clients.net.network import Network
from hyperscale.errors import BadInput
from hyperscale.workload.secrets import mask_url

Ports = Mapping[str, tuple[bool, int]]
"""Of each scheme, whether it is spoken over TLS, and the port that is meant where none is written;
the first is meant where no scheme is written."""


class Service(Endpoint):
    """`path` is without its first slash."""

    __slots__ = ("password", "path", "query", "scheme", "url", "user")

    def __init__(self, network: Network, url: str, parts: SplitResult, ports: Ports) -> None:
        secure, port = ports[parts.scheme]
        host = ascii_host(parts.hostname or "", mask_url(url))
        chosen = port if parts.port is None else parts.port
        super().__init__(host, chosen, secure, network.server_name, network.hosts)
        self.scheme = parts.scheme
        self.url = url
        self.user = unquote(parts.username or "")
        self.password = unquote(parts.password or "")
        self.path = unquote(parts.path[1:])
        self.query = dict(parse_qsl(parts.query, keep_blank_values=True))


class Services(Addresses):
    def __init__(self, network: Network, ports: Ports) -> None:
        super().__init__(network, {scheme: secure for scheme, (secure, _) in ports.items()})
        self._ports = ports

    def _parsed(self, text: str) -> Service:
        first = next(iter(self._ports))
        shown = mask_url(text)
        try:
            parts = urlsplit(text if "://" in text else f"{first}://{text}")
            valid = parts.scheme in self._ports and bool(parts.hostname) and parts.port != 0
        except ValueError as error:
            raise BadInput(f"{shown!r} is not an address: {error}") from None
        if not valid:
            schemes = ", ".join(f"{scheme}://" for scheme in self._ports)
            raise BadInput(
                f"{shown!r} is not an address that can be called here ({schemes})",
                f"write {first}://user:password@shop.example",
            )
        return Service(self._network, text, parts, self._ports)
