"""The verbs of the HTTP client, with the arguments they take.

Plain functions that find the encoded request and return the coroutine that sends it: one frame
less for each request of a run. Arguments are meant to be given by keyword and may be given by
position, because Python fills in the defaults of keyword-only ones at three times the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Coroutine, Mapping
from typing import Any, Generic, TypeVar

from hyperscale.clients.http.reader import DISCARD, Sink
from hyperscale.clients.http.request import Request, RequestBuilder
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL
from hyperscale.workload.headers import TOKEN
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.scope import Tags
from hyperscale.workload.texts import shown

_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})

# Plain bodies are not kept. To find that out by looking for one, a long body would be hashed.
_PLAIN = frozenset({dict, list, str, bytes})

Timeout = float | str
Expect = int | Container[int] | Callable[[HTTPResponse], bool]
R = TypeVar("R", bound=HTTPResponse)
Answer = Coroutine[Any, Any, R]


class Verbs(Generic[R]):
    """Arguments of every call; `url` first, the others by keyword:

    params    dict, list of pairs or string      json      any JSON value or pydantic model
    headers   dict or list of pairs; None        data      bytes, text, File, open file, iterator
              removes a default one                        of bytes; dict or list as JSON
    cookies   dict, in addition to the jar's     form      dict, URL-encoded
    auth      (user, password), a token, Digest  files     dict of files, multipart (with form=)
    timeout   seconds or "5s", the whole call    compress  "gzip", "deflate", "zstd" or "br"
    redirects how many to follow, 0 for none
    expect    status, statuses or a function of the response: what counts as success
    name      what its requests are told under   tags      dict, for reports and thresholds
    sink      function that takes the answer's body, piece by piece
    discard_body  True: the answer's body is read and not kept
    """

    __slots__ = ("_bare_gets", "_builder", "_kept")

    def __init__(self, builder: RequestBuilder) -> None:
        self._builder = builder
        self._kept = builder.kept
        self._bare_gets = builder.bare_gets

    async def _send(
        self,
        request: Request,
        timeout: Any,
        redirects: int | None,
        expect: Expect | None,
    ) -> R:
        raise NotImplementedError

    def _send_to(
        self,
        request: Request,
        timeout: Any,
        redirects: int | None,
        expect: Expect | None,
        sink: Sink | None,
    ) -> Answer[R]:
        """As `_send`, with the body of the answer to `sink`; None: kept, whatever the options."""
        raise NotImplementedError

    def _request(self, *call: Any) -> Request:
        if len(call) > 8 and (type(call[8]) in _PLAIN or type(call[9]) in _PLAIN):
            return self._builder.build(call)
        headers, tags = call[3], call[7]
        if type(tags) is dict:
            call = (*call[:7], tuple(tags.items()), *call[8:])
        same = (*call[:3], tuple(headers.items()), *call[4:]) if type(headers) is dict else call
        try:
            return self._kept[same]
        except (KeyError, TypeError):  # not built yet, or of a dict that may change
            return self._builder.build(call)

    def get(
        self,
        url: str | URL,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        timeout: Timeout | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
        discard_body: bool | None = None,
        sink: Sink | None = None,
    ) -> Answer[R]:
        if (
            params is None
            and headers is None
            and cookies is None
            and auth is None
            and name is None
            and tags is None
        ):  # the call that most tests consist of
            try:
                request = self._bare_gets[url]
            except (KeyError, TypeError):
                request = self._builder.bare_get(url)
        else:
            request = self._request("GET", url, params, headers, cookies, auth, name, tags)
        if discard_body is None and sink is None:
            return self._send(request, timeout, redirects, expect)
        taken = _sink_of(discard_body, sink)
        return self._send_to(request, timeout, redirects, expect, taken)

    def post(
        self,
        url: str | URL,
        data: Any = None,
        json: Any = None,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        form: Any = None,
        files: Any = None,
        compress: str | None = None,
        timeout: Timeout | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
        discard_body: bool | None = None,
        sink: Sink | None = None,
    ) -> Answer[R]:
        request = self._request(
            "POST",
            url,
            params,
            headers,
            cookies,
            auth,
            name,
            tags,
            json,
            data,
            form,
            files,
            compress,
        )
        if discard_body is None and sink is None:
            return self._send(request, timeout, redirects, expect)
        taken = _sink_of(discard_body, sink)
        return self._send_to(request, timeout, redirects, expect, taken)

    def put(
        self,
        url: str | URL,
        data: Any = None,
        json: Any = None,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        form: Any = None,
        files: Any = None,
        compress: str | None = None,
        timeout: Timeout | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
        discard_body: bool | None = None,
        sink: Sink | None = None,
    ) -> Answer[R]:
        request = self._request(
            "PUT",
            url,
            params,
            headers,
            cookies,
            auth,
            name,
            tags,
            json,
            data,
            form,
            files,
            compress,
        )
        if discard_body is None and sink is None:
            return self._send(request, timeout, redirects, expect)
        taken = _sink_of(discard_body, sink)
        return self._send_to(request, timeout, redirects, expect, taken)

    def patch(
        self,
        url: str | URL,
        data: Any = None,
        json: Any = None,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        form: Any = None,
        files: Any = None,
        compress: str | None = None,
        timeout: Timeout | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
        discard_body: bool | None = None,
        sink: Sink | None = None,
    ) -> Answer[R]:
        request = self._request(
            "PATCH",
            url,
            params,
            headers,
            cookies,
            auth,
            name,
            tags,
            json,
            data,
            form,
            files,
            compress,
        )
        if discard_body is None and sink is None:
            return self._send(request, timeout, redirects, expect)
        taken = _sink_of(discard_body, sink)
        return self._send_to(request, timeout, redirects, expect, taken)

    def delete(
        self,
        url: str | URL,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        json: Any = None,
        data: Any = None,
        form: Any = None,
        files: Any = None,
        timeout: Timeout | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
        discard_body: bool | None = None,
        sink: Sink | None = None,
    ) -> Answer[R]:
        request = self._request(
            "DELETE", url, params, headers, cookies, auth, name, tags, json, data, form, files
        )
        if discard_body is None and sink is None:
            return self._send(request, timeout, redirects, expect)
        taken = _sink_of(discard_body, sink)
        return self._send_to(request, timeout, redirects, expect, taken)

    def head(
        self,
        url: str | URL,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        timeout: Timeout | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
        discard_body: bool | None = None,
        sink: Sink | None = None,
    ) -> Answer[R]:
        request = self._request("HEAD", url, params, headers, cookies, auth, name, tags)
        if discard_body is None and sink is None:
            return self._send(request, timeout, redirects, expect)
        taken = _sink_of(discard_body, sink)
        return self._send_to(request, timeout, redirects, expect, taken)

    def options(
        self,
        url: str | URL,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        timeout: Timeout | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
        discard_body: bool | None = None,
        sink: Sink | None = None,
    ) -> Answer[R]:
        request = self._request("OPTIONS", url, params, headers, cookies, auth, name, tags)
        if discard_body is None and sink is None:
            return self._send(request, timeout, redirects, expect)
        taken = _sink_of(discard_body, sink)
        return self._send_to(request, timeout, redirects, expect, taken)

    def request(
        self,
        method: str,
        url: str | URL,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        json: Any = None,
        data: Any = None,
        form: Any = None,
        files: Any = None,
        compress: str | None = None,
        timeout: Timeout | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
        discard_body: bool | None = None,
        sink: Sink | None = None,
    ) -> Answer[R]:
        known = method if type(method) is str and method in _METHODS else _method(method)
        request = self._request(
            known,
            url,
            params,
            headers,
            cookies,
            auth,
            name,
            tags,
            json,
            data,
            form,
            files,
            compress,
        )
        if discard_body is None and sink is None:
            return self._send(request, timeout, redirects, expect)
        taken = _sink_of(discard_body, sink)
        return self._send_to(request, timeout, redirects, expect, taken)


def _method(method: Any) -> str:
    if not isinstance(method, str) or not TOKEN.fullmatch(method):
        raise BadInput(
            f"{shown(method)} is not an HTTP method",
            "a word such as 'GET', 'PROPFIND' or 'M-SEARCH'",
        )
    if method.upper() == "CONNECT":
        raise BadInput(
            "CONNECT opens a tunnel, which no call does", "set http.proxy to use a proxy"
        )
    return method.upper()


def _sink_of(discard_body: Any, sink: Any) -> Sink | None:
    """What takes the pieces of the answer's body; None: the response keeps it."""
    if sink is None:
        if discard_body is not None and not isinstance(discard_body, bool):
            raise BadInput(
                f"discard_body of a call is {shown(discard_body)} but must be True or False"
            )
        return DISCARD if discard_body else None
    if discard_body is not None:
        raise BadInput("a call has both sink and discard_body", "the sink takes the body alone")
    if not callable(sink):
        raise BadInput(f"sink of a call is {shown(sink)} but must be a function of bytes")
    taken: Sink = sink
    return taken
