"""The verbs of the HTTP client, with the arguments they take.

Plain functions that find the encoded request and return the coroutine that sends it: one frame
less for each request of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Coroutine, Mapping
from typing import Any

from hyperscale.clients.http.request import Request, RequestBuilder
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.scope import Tags

Expect = int | Container[int] | Callable[[HTTPResponse], bool]
Answer = Coroutine[Any, Any, HTTPResponse]


class Verbs:
    """Arguments of every call, all but `url` by keyword:

    params    dict, list of pairs or string      json      any JSON value or pydantic model
    headers   dict; None removes a default one   data      bytes, text, File; dict or list as JSON
    cookies   dict, in addition to the jar's     form      dict, URL-encoded
    auth      (user, password) or a token        files     dict of paths, multipart (with form=)
    timeout   seconds for the whole call         redirects how many to follow, 0 for none
    expect    status, statuses or a function of the response: what counts as success
    name      what its requests are told under        tags   dict, for reports and thresholds
    """

    __slots__ = ("_bare_gets", "_builder", "_kept")

    def __init__(self, builder: RequestBuilder) -> None:
        self._builder = builder
        self._kept = builder.kept
        self._bare_gets = builder.bare_gets

    async def _send(
        self,
        request: Request,
        timeout: float | None,
        redirects: int | None,
        expect: Expect | None,
    ) -> HTTPResponse:
        raise NotImplementedError

    def _request(self, *call: Any) -> Request:
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
        *,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        timeout: float | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
    ) -> Answer:
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
        return self._send(request, timeout, redirects, expect)

    def post(
        self,
        url: str | URL,
        *,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        json: Any = None,
        data: Any = None,
        form: Any = None,
        files: Any = None,
        timeout: float | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
    ) -> Answer:
        request = self._request(
            "POST", url, params, headers, cookies, auth, name, tags, json, data, form, files
        )
        return self._send(request, timeout, redirects, expect)

    def put(
        self,
        url: str | URL,
        *,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        json: Any = None,
        data: Any = None,
        form: Any = None,
        files: Any = None,
        timeout: float | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
    ) -> Answer:
        request = self._request(
            "PUT", url, params, headers, cookies, auth, name, tags, json, data, form, files
        )
        return self._send(request, timeout, redirects, expect)

    def patch(
        self,
        url: str | URL,
        *,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        json: Any = None,
        data: Any = None,
        form: Any = None,
        files: Any = None,
        timeout: float | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
    ) -> Answer:
        request = self._request(
            "PATCH", url, params, headers, cookies, auth, name, tags, json, data, form, files
        )
        return self._send(request, timeout, redirects, expect)

    def delete(
        self,
        url: str | URL,
        *,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        json: Any = None,
        data: Any = None,
        form: Any = None,
        files: Any = None,
        timeout: float | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
    ) -> Answer:
        request = self._request(
            "DELETE", url, params, headers, cookies, auth, name, tags, json, data, form, files
        )
        return self._send(request, timeout, redirects, expect)

    def head(
        self,
        url: str | URL,
        *,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        timeout: float | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
    ) -> Answer:
        request = self._request("HEAD", url, params, headers, cookies, auth, name, tags)
        return self._send(request, timeout, redirects, expect)

    def options(
        self,
        url: str | URL,
        *,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        timeout: float | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
    ) -> Answer:
        request = self._request("OPTIONS", url, params, headers, cookies, auth, name, tags)
        return self._send(request, timeout, redirects, expect)

    def request(
        self,
        method: str,
        url: str | URL,
        *,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        json: Any = None,
        data: Any = None,
        form: Any = None,
        files: Any = None,
        timeout: float | None = None,
        redirects: int | None = None,
        expect: Expect | None = None,
        name: str | None = None,
        tags: Tags | Mapping[str, str] | None = None,
    ) -> Answer:
        if not method.isascii() or not method.isalpha():
            raise BadInput(f"{method!r} is not an HTTP method")
        request = self._request(
            method.upper(), url, params, headers, cookies, auth, name, tags, json, data, form, files
        )
        return self._send(request, timeout, redirects, expect)
