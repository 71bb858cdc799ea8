"""How a workflow's HTTP client behaves: TLS, names, proxy, connections, limits.

A workflow sets it once (`http = HTTPOptions(verify=False)`); most of it cannot change per call
because it decides how connections are made and shared. Durations are seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

from hyperscale.errors import BadInput
from hyperscale.workload.secrets import MASK, mask, register

MIB = 1024 * 1024
TLS_VERSIONS = ("1.0", "1.1", "1.2", "1.3")
PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
LOCAL_ADDRESSES_MAX = 65_536  # a /16; each has tens of thousands of ports


class _Settings(msgspec.Struct, frozen=True):
    """Shows itself without passwords, its own and those in URLs."""

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        shown = {name: getattr(self, name) for name in self.__struct_fields__}
        if shown["key_password"] is not None:
            shown["key_password"] = MASK
        return [(n, mask(value) if isinstance(value, str) else value) for n, value in shown.items()]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"


class ClientCert(_Settings, frozen=True, forbid_unknown_fields=True):
    """A certificate to show to some domains: `ClientCert("*.shop.example", cert="shop.pem")`."""

    domains: str | tuple[str, ...]  # "*.shop.example" is every name below shop.example
    cert: str  # PEM
    key: str | None = None  # its private key, when not in the same file
    key_password: str | None = None  # of an encrypted key

    def __post_init__(self) -> None:
        domains = (self.domains,) if isinstance(self.domains, str) else self.domains
        if not domains or not all(isinstance(name, str) and name for name in domains):
            raise BadInput(
                f"ClientCert needs the domains it is for, not {self.domains!r}",
                'write ClientCert("*.shop.example", cert="shop.pem")',
            )
        for name in domains:
            _check_pattern("ClientCert", name)
        _keep_secret("ClientCert", self.key_password)


class HTTPOptions(_Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    verify: bool = True  # check the server's certificate
    ca: str | None = None  # PEM file or directory trusted instead of the system's authorities
    cert: str | None = None  # client certificate (PEM)
    key: str | None = None  # its private key, when not in the same file
    key_password: str | None = None  # of an encrypted key
    certs: tuple[ClientCert, ...] = ()  # for some domains; `cert` is for all others
    tls_min: Literal["1.0", "1.1", "1.2", "1.3"] | None = None  # None: 1.2
    tls_max: Literal["1.0", "1.1", "1.2", "1.3"] | None = None  # None: 1.3
    ciphers: str | None = None  # of TLS 1.2 and below, as OpenSSL writes them
    tls_resume: bool = False  # new connections continue an earlier TLS session
    early_data: bool = False  # HTTP/3: GET and the like go with the handshake of a known server
    server_name: str | None = None  # TLS server name (SNI), when not the host of the URL
    proxy: str | None = None  # None: HTTP_PROXY, HTTPS_PROXY and NO_PROXY decide; "": no proxy
    hosts: dict[str, str] = {}  # "name", "name:port" or "*.name" to "address" or "address:port"
    dns_ttl: float = 300.0  # how long a lookup is kept; 0: look up for every connection
    local_addresses: tuple[str, ...] = ()  # addresses or networks that connections go out from
    version: Literal["1.1", "auto"] = "1.1"  # auto: HTTP/2 where the server chooses it (ALPN)
    # per_vu: each VU keeps its own; shared: all VUs of a process draw from one pool;
    # fresh: a new connection for every request
    connections: Literal["per_vu", "shared", "fresh"] = "per_vu"
    max_connections: int = 0  # of a shared pool, per process; 0: as many as VUs
    timeout: float = 30.0  # the whole call, redirects included
    connect_timeout: float = 10.0  # name lookup, TCP and TLS together
    read_timeout: float = 0.0  # longest silence while waiting for the response; 0: no limit
    max_response_bytes: int = 64 * MIB  # of a body, as received and as decompressed
    max_header_bytes: int = 64 * 1024  # of a status line with its headers
    discard_bodies: bool = False  # read them and do not keep them; a call may say otherwise
    redirects: int = 10  # followed at most; 0: the redirect itself is the response
    decompress: bool = True  # ask for compressed bodies and decode them when they are read
    unix_socket: str | None = None  # connect here whatever host the URL names
    ip: Literal["any", "4", "6"] = "any"
    user_agent: str | None = None  # None: hyperscale/<version>; "": send none
    base_url: str = ""  # put before URLs that start with "/"

    def __post_init__(self) -> None:
        for name in ("timeout", "connect_timeout"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not value > 0:
                raise BadInput(f"http.{name} must be a number of seconds above 0, not {value!r}")
        for name in ("read_timeout", "max_connections", "redirects", "dns_ttl"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not value >= 0:
                raise BadInput(f"http.{name} must be a number from 0 up, not {value!r}")
        for name in ("max_response_bytes", "max_header_bytes"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise BadInput(f"http.{name} must be a number from 1 up, not {value!r}")
        if self.connections not in ("per_vu", "shared", "fresh"):
            raise BadInput(
                f"http.connections must be per_vu, shared or fresh, not {self.connections!r}"
            )
        if self.version not in ("1.1", "auto"):
            raise BadInput(
                f'http.version must be "1.1" or "auto", not {self.version!r}',
                "self.client.http2 speaks HTTP/2 only",
            )
        if self.ip not in ("any", "4", "6"):
            raise BadInput(f"http.ip must be any, 4 or 6, not {self.ip!r}")
        self._check_tls()
        self._check_ways()
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise BadInput(
                f"http.base_url must start with http:// or https://, not {self.base_url!r}"
            )

    def files(self) -> Iterator[tuple[str, str]]:
        """The files it names, each with the option that does."""
        for name in ("ca", "cert", "key"):
            if getattr(self, name) is not None:
                yield name, getattr(self, name)
        for cert in self.certs:
            yield "certs", cert.cert
            if cert.key is not None:
                yield "certs", cert.key

    def with_files(self, place: Callable[[str], str]) -> HTTPOptions:
        """The same with every file where `place` says it is."""

        def placed(file: str | None) -> str | None:
            return None if file is None else place(file)

        certs = tuple(
            msgspec.structs.replace(cert, cert=place(cert.cert), key=placed(cert.key))
            for cert in self.certs
        )
        names = {name: placed(getattr(self, name)) for name in ("ca", "cert", "key")}
        return msgspec.structs.replace(self, **names, certs=certs)

    def _check_tls(self) -> None:
        for name in ("key", "key_password"):
            if getattr(self, name) and not self.cert:
                raise BadInput(
                    f"http.{name} is set without http.cert", "name the certificate as well"
                )
        _keep_secret("http", self.key_password)
        if not isinstance(self.certs, tuple | list) or not all(
            isinstance(cert, ClientCert) for cert in self.certs
        ):
            raise BadInput(
                "http.certs must be a tuple of ClientCert",
                'write certs=(ClientCert("*.shop.example", cert="shop.pem"),)',
            )
        for name in ("tls_min", "tls_max"):
            version = getattr(self, name)
            if version is not None and version not in TLS_VERSIONS:
                raise BadInput(f'http.{name} must be "1.0", "1.1", "1.2" or "1.3", not {version!r}')
        if self.tls_min and self.tls_max and self.tls_min > self.tls_max:
            raise BadInput(f"http.tls_min {self.tls_min} is above http.tls_max {self.tls_max}")
        if self.ciphers and self.tls_min == "1.3":
            raise BadInput(
                "http.ciphers means nothing with http.tls_min 1.3",
                "it chooses the ciphers of TLS 1.2 and below; TLS 1.3 has its own",
            )

    def _check_ways(self) -> None:
        """How to get there: proxy, names, local addresses."""
        if self.proxy and "://" in self.proxy:
            scheme = self.proxy.partition("://")[0].lower()
            if scheme not in PROXY_SCHEMES:
                raise BadInput(
                    f"http.proxy cannot be of the kind {scheme}://",
                    f"write {', '.join(f'{known}://' for known in PROXY_SCHEMES)}",
                )
        if not isinstance(self.hosts, dict):
            raise BadInput(
                f"http.hosts must be a dict, not {self.hosts!r}",
                'write hosts={"shop.example": "10.0.0.7"}',
            )
        for name, address in self.hosts.items():
            _check_pattern("http.hosts", name)
            _check_address(name, address)
        _check_local(self.local_addresses)


def _keep_secret(owner: str, password: object) -> None:
    if password is None:
        return
    if not isinstance(password, str):
        raise BadInput(f"{owner}.key_password must be text, not a {type(password).__name__}")
    # A traceback may show the line of the test file that it is written in.
    register(f"{owner}.key_password", password)


def _check_pattern(owner: str, name: object) -> None:
    text = name if isinstance(name, str) else ""
    if not text or "*" in text.removeprefix("*.") or "/" in text:
        raise BadInput(
            f"{owner} names {name!r}, which is no host",
            "write shop.example, or *.shop.example for every name below it",
        )


def _check_address(name: str, address: object) -> None:
    # ipaddress is imported by those who need it: the package opens in milliseconds.
    from ipaddress import ip_address

    text = address if isinstance(address, str) else ""
    host, port = split_port(text)
    try:
        ip_address(host)
        if not 0 <= int(port or 0) < 65536:
            raise ValueError(port)
    except ValueError:
        raise BadInput(
            f"http.hosts maps {name} to {address!r}, which is no address",
            "write 10.0.0.7, 10.0.0.7:8443 or [::1]:8443",
        ) from None


def split_port(text: str) -> tuple[str, str]:
    """Host and port of `host`, `host:port`, `[::1]:port` or `::1`; the port may be missing."""
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        return host, port.removeprefix(":")
    if text.count(":") == 1:
        host, _, port = text.partition(":")
        return host, port
    return text, ""


def _check_local(addresses: object) -> None:
    if addresses == ():
        return
    from ipaddress import ip_network

    if not isinstance(addresses, tuple | list):
        raise BadInput(
            f"http.local_addresses must be a tuple, not {addresses!r}",
            'write local_addresses=("10.0.0.0/28",)',
        )
    total = 0
    for text in addresses:
        try:
            total += ip_network(text, strict=False).num_addresses
        except ValueError:
            raise BadInput(
                f"http.local_addresses names {text!r}, which is no address",
                "write 10.0.0.7, or 10.0.0.0/28 for all of a network",
            ) from None
    if total > LOCAL_ADDRESSES_MAX:
        raise BadInput(
            f"http.local_addresses names {total} addresses, but at most {LOCAL_ADDRESSES_MAX} "
            "can be used"
        )
