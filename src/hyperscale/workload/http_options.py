"""How a workflow's HTTP client behaves: TLS, proxy, connections, limits.

A workflow sets it once (`http = HTTPOptions(verify=False)`); most of it cannot change per call
because it decides how connections are made and shared. Durations are seconds.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from hyperscale.errors import BadInput

MIB = 1024 * 1024


class HTTPOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    verify: bool = True  # check the server's certificate
    ca: str | None = None  # PEM file or directory trusted instead of the system's authorities
    cert: str | None = None  # client certificate (PEM)
    key: str | None = None  # its private key, when not in the same file
    server_name: str | None = None  # TLS server name (SNI), when not the host of the URL
    proxy: str | None = None  # None: HTTP_PROXY, HTTPS_PROXY and NO_PROXY decide; "": no proxy
    # per_vu: each VU keeps its own; shared: all VUs of a process draw from one pool;
    # fresh: a new connection for every request
    connections: Literal["per_vu", "shared", "fresh"] = "per_vu"
    max_connections: int = 0  # of a shared pool, per process; 0: as many as VUs
    timeout: float = 30.0  # the whole call, redirects included
    connect_timeout: float = 10.0  # name lookup, TCP and TLS together
    read_timeout: float = 0.0  # longest silence while waiting for the response; 0: no limit
    max_response_bytes: int = 64 * MIB  # of a body, as received and as decompressed
    max_header_bytes: int = 64 * 1024  # of a status line with its headers
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
        for name in ("read_timeout", "max_connections", "redirects"):
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
        if self.ip not in ("any", "4", "6"):
            raise BadInput(f"http.ip must be any, 4 or 6, not {self.ip!r}")
        if self.key and not self.cert:
            raise BadInput("http.key is set without http.cert", "name the certificate as well")
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise BadInput(
                f"http.base_url must start with http:// or https://, not {self.base_url!r}"
            )
