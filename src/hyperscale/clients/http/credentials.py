"""Answers to a server's demand for Digest authentication, for one virtual user.

A call with `auth=Digest(...)` goes out bare at first. The server's challenge is answered by the
same call once more, and from then on calls to that origin bring an answer along.
"""

from __future__ import annotations

from hyperscale.clients.http.digest import DigestAuth
from hyperscale.clients.http.request import Request, RequestBuilder
from hyperscale.workload.arguments import Digest
from hyperscale.workload.responses import ResponseHeaders

_ANSWERED = b"\r\nAuthorization: Digest "


def is_digest(request: Request) -> bool:
    return isinstance(request.call.auth, Digest)


class Credentials:
    """What servers said, by origin and user."""

    __slots__ = ("_builder", "_known")

    def __init__(self, builder: RequestBuilder) -> None:
        self._builder = builder
        self._known: dict[tuple[str, tuple[str, str]], DigestAuth] = {}

    def with_answer(self, request: Request) -> Request:
        """The request with an answer to the challenge that is known, if one is."""
        known = self._known.get(_key(request))
        header = known.next(request.method, _target(request), _body(request)) if known else None
        return self._authorized(request, header) if header else request

    def to_challenge(self, request: Request, headers: ResponseHeaders) -> Request | None:
        """The request once more, with what the server asked for; None: it cannot be had."""
        key = _key(request)
        known = self._known.get(key) or DigestAuth(*key[1])
        header = known.answer(
            headers.get_list("www-authenticate"),
            request.method,
            _target(request),
            _body(request),
            again=_ANSWERED in request.wire[: request.body_at],
        )
        if header is None or not request.repeatable:
            return None
        self._known[key] = known
        return self._authorized(request, header)

    def _authorized(self, request: Request, header: str) -> Request:
        made = self._builder.build(tuple(request.call._replace(auth=header)))
        made.call = request.call  # of which redirects and the next answer are made
        made.hops = request.hops
        return made


def _key(request: Request) -> tuple[str, tuple[str, str]]:
    return request.route.authority, request.call.auth.value


def _target(request: Request) -> str:
    return request.wire.split(b" ", 2)[1].decode("ascii")


def _body(request: Request) -> bytes:
    return request.wire[request.body_at :]
