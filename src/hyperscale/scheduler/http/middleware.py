"""What every request passes: its size, where it comes from, its correlation id, its log line.

Plain ASGI. A correlation id the client sends is kept, so that one id follows a job from whoever
submitted it to the worker that ended it.
"""

from __future__ import annotations

import re
import uuid
from time import perf_counter
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hyperscale.runtime.logs import correlated, logger
from hyperscale.scheduler.http import problems
from hyperscale.scheduler.http.access import Access

BODY_BYTES_MAX: Final = 512 * 1024
"""A payload of 64 KiB, written as JSON with every character escaped, and the rest of a job."""
CORRELATION_HEADER: Final = "X-Correlation-Id"
_CORRELATION_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")

_SECURITY: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'"
    ),
}

_log = logger("scheduler.api")


class Gate:
    def __init__(self, app: ASGIApp, access: Access, node: str) -> None:
        self._app = app
        self._access = access
        self._node = node

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get(CORRELATION_HEADER, "")
        correlation_id = given if _CORRELATION_ID.fullmatch(given) else str(uuid.uuid4())
        scope["correlation_id"] = correlation_id
        begun, status = perf_counter(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                answered = MutableHeaders(scope=message)
                answered[CORRELATION_HEADER] = correlation_id
                for name, value in _SECURITY.items():
                    answered.setdefault(name, value)
            await send(message)

        with correlated(correlation_id=correlation_id):
            refusal = self._refusal(scope, headers)
            if refusal is not None:
                await refusal(scope, receive, sending)
            else:
                await self._app(scope, _bounded(receive), sending)
            log = _log.info if scope["method"] not in ("GET", "HEAD") else _log.debug
            log(
                "request",
                node_id=self._node,
                operation=f"{scope['method']} {scope['path']}",
                operation_result=status,
                took_s=round(perf_counter() - begun, 6),
            )

    def _refusal(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        if self._access.misled(scope["method"], headers.get("host", ""), headers.get("origin")):
            return problems.answer(
                403,
                "foreign-page",
                "an open scheduler answers only to this machine and its own page",
                hint="call it as localhost, or give it tokens",
            )
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            return problems.answer(413, "too-large", f"at most {BODY_BYTES_MAX} bytes")
        return None


def _bounded(receive: Receive) -> Receive:
    """Without a declared length the body is cut at the limit, which makes it unreadable: 400."""
    seen = 0

    async def receiving() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > BODY_BYTES_MAX:
                return {"type": "http.request", "body": b"", "more_body": False}
        return message

    return receiving
