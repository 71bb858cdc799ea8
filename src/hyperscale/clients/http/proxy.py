"""Which proxy a request goes through: the workflow's own, or the one the environment names.

As most tools have it: HTTP_PROXY and HTTPS_PROXY (or ALL_PROXY) in either case, NO_PROXY a list of
hosts, domains, addresses and networks that go direct, and nothing on this machine through a proxy
that only the environment asked for.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from hyperscale.clients.http.target import Target, ascii_host
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import basic_auth


class Proxy:
    __slots__ = ("auth", "host", "port")

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            port = parts.port
        except ValueError as error:
            raise BadInput(f"proxy {url!r} is not a URL: {error}") from None
        if parts.scheme != "http" or not parts.hostname:
            raise BadInput(
                f"proxy {url!r} cannot be used", "write http://[user:password@]host:port"
            )
        self.host = ascii_host(parts.hostname, url)
        self.port = port or 80
        self.auth = ""
        if parts.username is not None:
            self.auth = basic_auth(unquote(parts.username), unquote(parts.password or ""))


def proxy_for(target: Target, option: str | None, environment: Mapping[str, str]) -> Proxy | None:
    if option is not None:
        return Proxy(option) if option else None

    def setting(name: str) -> str:
        return environment.get(name.lower()) or environment.get(name) or ""

    url = setting(f"{target.scheme.upper()}_PROXY") or setting("ALL_PROXY")
    if not url or _is_local(target.host) or _goes_direct(target, setting("NO_PROXY")):
        return None
    return Proxy(url)


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
