"""Which proxy a request goes through: the workflow's own, or the one the environment names.

Proxies speak HTTP, in the clear or within TLS (https://), or SOCKS5: socks5:// is given the address
of the target, socks5h:// its name. As most tools have it: HTTP_PROXY and HTTPS_PROXY (or ALL_PROXY)
in either case, NO_PROXY a list of hosts, domains, addresses and networks that go direct, and
nothing on this machine through a proxy that only the environment asked for.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from hyperscale.clients.http.target import Target
from hyperscale.clients.net.host_names import ascii_host
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import basic_auth

DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
SOCKS_TEXT_MAX = 255  # bytes of a user or password: its length is one byte


class Proxy:
    """`auth` is the header's value for an HTTP proxy; a SOCKS proxy takes `user` and `password`."""

    __slots__ = ("auth", "host", "name", "password", "port", "scheme", "user")

    def __init__(self, url: str, source: str = "http.proxy") -> None:
        """`source` says where the URL was found."""
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            port = parts.port
        except ValueError as error:
            raise BadInput(f"{source}: {url!r} is not a URL: {error}") from None
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
            raise BadInput(
                f"{source}: proxy {url!r} cannot be used",
                "write http://[user:password@]host:port, or https://, socks5:// or socks5h://",
            )
        self.scheme = parts.scheme
        self.host = ascii_host(parts.hostname, url)
        self.port = port or DEFAULT_PORTS[self.scheme]
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.name = f"proxy {host}:{self.port}"
        self.user = None if parts.username is None else unquote(parts.username)
        self.password = unquote(parts.password or "")
        self.auth = ""
        if self.user is None:
            return
        if self.is_http:
            self.auth = basic_auth(self.user, self.password)
        elif not self.user or max(len(self.user.encode()), len(self.password.encode())) > (
            SOCKS_TEXT_MAX
        ):
            raise BadInput(
                f"{source}: user and password of {self.name} must have 1 to {SOCKS_TEXT_MAX} bytes"
            )

    @property
    def is_http(self) -> bool:
        """An HTTP proxy, with or without TLS on the way to it; else a SOCKS proxy."""
        return self.scheme in ("http", "https")


def proxy_for(target: Target, option: str | None, environment: Mapping[str, str]) -> Proxy | None:
    if option is not None:
        return Proxy(option) if option else None

    def setting(*names: str) -> tuple[str, str]:
        for name in names:
            for written in (name.lower(), name):
                if environment.get(written):
                    return written, environment[written]
        return "", ""

    source, url = setting(f"{target.scheme.upper()}_PROXY", "ALL_PROXY")
    if not url or _is_local(target.host) or _goes_direct(target, setting("NO_PROXY")[1]):
        return None
    return Proxy(url, source)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_local(host: str) -> bool:
    address = _address(host)
    return address.is_loopback if address else host == "localhost"


def _goes_direct(target: Target, no_proxy: str) -> bool:
    address = _address(target.host)
    for entry in no_proxy.lower().replace(" ", ",").split(","):
        name, _, port = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
        if port and port != str(target.port):
            continue
        name = name.strip("[]")
        if name == "*" or (name and _matches(target.host, address, name)):
            return True
    return False


def _matches(
    host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, name: str
) -> bool:
    if address is None:
        name = name.lstrip("*").lstrip(".")
        return host == name or host.endswith(f".{name}")
    try:
        return address in ipaddress.ip_network(name, strict=False)
    except ValueError:
        return False
