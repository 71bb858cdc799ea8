"""Which addresses an `http` job may call: all of the public Internet, and of this machine and its
networks those that the worker's owner names with `--http-allow`.

A name is judged by what it resolves to, and the addresses that were judged are the ones connected
to: a name that resolves to something else a moment later gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from hyperscale.errors import BadInput
from hyperscale.scheduler.errors import InvalidJob

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_HOST: Final = re.compile(r"[\w.:-]+")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


class _Allowed(NamedTuple):
    host: str
    """As in the URL; empty: whatever is in the network."""
    network: Network | None
    port: int
    """0: any."""

    def fits(self, host: str, address: Address, port: int) -> bool:
        if self.port not in (0, port):
            return False
        return host == self.host or (self.network is not None and address in self.network)


class Reach:
    def __init__(self, allow: Sequence[str] = ()) -> None:
        """Each is HOST, HOST:PORT or a network such as 10.0.0.0/8. Raises BadInput."""
        self._allow = [_read(text) for text in allow]

    async def addresses(self, host: str, port: int) -> list[str]:
        """Those that may be connected to. Raises InvalidJob when there is none, OSError when the
        name is not known."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(where[4][0]) for where in found))
        good = [text for text in addresses if self._may(_plain(host), text, port)]
        if not good:
            raise InvalidJob(
                f"{host} is on this machine or in a network of its own, which jobs do not call",
                f"the worker's owner allows it with --http-allow {_shown(host)}:{port}",
            )
        return good

    def _may(self, host: str, text: str, port: int) -> bool:
        address = _inner(ipaddress.ip_address(text.partition("%")[0]))
        public = address.is_global and not address.is_multicast
        return public or any(one.fits(host, address, port) for one in self._allow)


def _inner(address: Address) -> Address:
    """The IPv4 address that an IPv6 one only wraps."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _read(text: str) -> _Allowed:
    try:
        return _Allowed("", ipaddress.ip_network(text), 0)  # an address alone is a network of one
    except ValueError:
        pass
    try:
        parts = urlsplit(f"//{text}")
        host, port = _plain(parts.hostname or ""), parts.port or 0
    except ValueError:
        host, port = "", 0
    if not _HOST.fullmatch(host) or parts.netloc != text or "@" in text:
        raise BadInput(
            f"--http-allow {text!r} is not HOST, HOST:PORT or a network",
            "such as metrics.internal:9090, 127.0.0.1:8080 or 10.1.0.0/16",
        )
    try:
        return _Allowed(host, ipaddress.ip_network(host), port)
    except ValueError:
        return _Allowed(host, None, port)


def _plain(host: str) -> str:
    return host.lower().rstrip(".")


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
