"""Where a call of a protocol without paths goes: `tcp://host:port`, or `host:port`."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.host_names import ascii_host
from hyperscale.clients.net.network import Network
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL

Schemes = Mapping[str, bool]
"""Whether each is spoken over TLS; the first is meant where none is written."""


class Addresses:
    """The endpoints of a protocol, each made once."""

    def __init__(self, network: Network, schemes: Schemes) -> None:
        self._network = network
        self._schemes = schemes
        self._known: dict[str, Endpoint] = {}

    def endpoint(self, address: str | URL) -> Endpoint:
        """Raises BadInput."""
        text = address if type(address) is str else str(address)
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._parsed(text)
        return known

    def _parsed(self, text: str) -> Endpoint:
        first = next(iter(self._schemes))
        try:
            parts = urlsplit(text if "://" in text else f"{first}://{text}")
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise BadInput(f"{text!r} is not an address: {error}") from None
        if parts.scheme not in self._schemes or not host or port is None:
            example = f"{first}://shop.example:7000"
            raise BadInput(f"{text!r} is not an address of a host and port", f"write {example}")
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise BadInput(f"{text!r} has more than a host and a port")
        network = self._network
        return Endpoint(
            ascii_host(host, text),
            port,
            self._schemes[parts.scheme],
            network.server_name,
            network.hosts,
        )
