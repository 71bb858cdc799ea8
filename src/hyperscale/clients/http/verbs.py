"""The verbs of the HTTP client, with the arguments they take.

Plain functions that return the coroutine of the call: one frame less for each request of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Coroutine
from typing import Any

from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL
from hyperscale.workload.responses import HTTPResponse

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
    """

    __slots__ = ()

    async def _send(
        self,
        method: str,
        url: str | URL,
        params: Any,
        headers: Any,
        cookies: Any,
        auth: Any,
        json: Any,
        data: Any,
        form: Any,
        files: Any,
        timeout: float | None,
        redirects: int | None,
        expect: Expect | None,
    ) -> HTTPResponse:
        raise NotImplementedError

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
    ) -> Answer:
        return self._send(
            "GET",
            url,
            params,
            headers,
            cookies,
            auth,
            None,
            None,
            None,
            None,
            timeout,
            redirects,
            expect,
        )

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
    ) -> Answer:
        return self._send(
            "POST",
            url,
            params,
            headers,
            cookies,
            auth,
            json,
            data,
            form,
            files,
            timeout,
            redirects,
            expect,
        )

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
    ) -> Answer:
        return self._send(
            "PUT",
            url,
            params,
            headers,
            cookies,
            auth,
            json,
            data,
            form,
            files,
            timeout,
            redirects,
            expect,
        )

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
    ) -> Answer:
        return self._send(
            "PATCH",
            url,
            params,
            headers,
            cookies,
            auth,
            json,
            data,
            form,
            files,
            timeout,
            redirects,
            expect,
        )

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
    ) -> Answer:
        return self._send(
            "DELETE",
            url,
            params,
            headers,
            cookies,
            auth,
            json,
            data,
            form,
            files,
            timeout,
            redirects,
            expect,
        )

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
    ) -> Answer:
        return self._send(
            "HEAD",
            url,
            params,
            headers,
            cookies,
            auth,
            None,
            None,
            None,
            None,
            timeout,
            redirects,
            expect,
        )

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
    ) -> Answer:
        return self._send(
            "OPTIONS",
            url,
            params,
            headers,
            cookies,
            auth,
            None,
            None,
            None,
            None,
            timeout,
            redirects,
            expect,
        )

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
    ) -> Answer:
        if not method.isascii() or not method.isalpha():
            raise BadInput(f"{method!r} is not an HTTP method")
        return self._send(
            method.upper(),
            url,
            params,
            headers,
            cookies,
            auth,
            json,
            data,
            form,
            files,
            timeout,
            redirects,
            expect,
        )
