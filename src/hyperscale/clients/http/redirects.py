"""What is asked next when a server answers "elsewhere" (RFC 9110, 15.4, and what browsers do)."""

from __future__ import annotations

from hyperscale.clients.http.request import Call, Request
from hyperscale.clients.http.target import Target
from hyperscale.workload.arguments import headers_without

_OF_THE_BODY = frozenset(
    {
        "content-type",
        "content-length",
        "content-encoding",
        "content-language",
        "transfer-encoding",
    }
)
_FOR_ONE_ORIGIN = frozenset({"authorization", "cookie", "host", "proxy-authorization"})


def next_call(request: Request, status: int, location: str) -> Call:
    """The call that follows a redirect; credentials stay with the origin they were meant for."""
    call = request.call
    url = request.target.resolve(location)
    dropped: frozenset[str] = frozenset()
    if _becomes_get(status, call.method):
        call = call._replace(
            method="GET", json=None, data=None, form=None, files=None, compress=None
        )
        dropped |= _OF_THE_BODY
    if not _same_origin(request, url):
        call = call._replace(auth=None, cookies=None)
        dropped |= _FOR_ONE_ORIGIN
    elif call.auth is None and request.target.auth and "@" not in url.partition("://")[2]:
        call = call._replace(auth=request.target.auth)
    return call._replace(url=url, params=None, headers=headers_without(call.headers, dropped))


def _becomes_get(status: int, method: str) -> bool:
    if status == 303:
        return method not in ("GET", "HEAD")
    return status in (301, 302) and method == "POST"


def _same_origin(request: Request, url: str) -> bool:
    """Raises BadInput for a URL that cannot be called."""
    ours, theirs = request.target, Target(url)
    return (ours.scheme, ours.host, ours.port) == (theirs.scheme, theirs.host, theirs.port)
