"""What is asked next when a server answers "elsewhere" (RFC 9110, 15.4, and what browsers do)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperscale.clients.http.request import Call, Request
from hyperscale.clients.http.target import DEFAULT_PORTS
from hyperscale.workload.arguments import Headers

_OF_THE_BODY = frozenset({"content-type", "content-length", "content-encoding", "content-language"})
_FOR_ONE_ORIGIN = frozenset({"authorization", "cookie", "host", "proxy-authorization"})


def next_call(request: Request, status: int, location: str) -> Call:
    """The call that follows a redirect; credentials stay with the origin they were meant for."""
    call = request.call
    url = request.target.resolve(location)
    dropped: frozenset[str] = frozenset()
    if _becomes_get(status, call.method):
        call = call._replace(method="GET", json=None, data=None, form=None, files=None)
        dropped |= _OF_THE_BODY
    if not _same_origin(request, url):
        call = call._replace(auth=None, cookies=None)
        dropped |= _FOR_ONE_ORIGIN
    elif call.auth is None and request.target.auth and "@" not in url.partition("://")[2]:
        call = call._replace(auth=request.target.auth)
    return call._replace(url=url, params=None, headers=_without(call.headers, dropped))


def _becomes_get(status: int, method: str) -> bool:
    if status == 303:
        return method not in ("GET", "HEAD")
    return status in (301, 302) and method == "POST"


def _same_origin(request: Request, url: str) -> bool:
    target = request.target
    ports = {target.host_header.lower()}
    if target.port == DEFAULT_PORTS[target.scheme]:
        ports.add(f"{target.host_header}:{target.port}")
    scheme, _, rest = url.partition("://")
    authority = rest.partition("/")[0].partition("?")[0].partition("#")[0]
    return scheme.lower() == target.scheme and authority.rpartition("@")[2].lower() in ports


def _without(headers: Any, names: frozenset[str]) -> Any:
    if headers is None or not names:
        return headers
    plain: Mapping[str, Any] = headers.value if isinstance(headers, Headers) else headers
    return {name: value for name, value in plain.items() if name.lower() not in names}
