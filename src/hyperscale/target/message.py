"""Requests as the routes see them, and replies as bytes.

A request is immutable once parsed, so that equal bytes can share one. A reply is the whole
response, head and body; what a connection must change in it (no body for HEAD, a Connection
header) is done on those bytes, which keeps the common case at a single write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from hyperscale.target.site import Site

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


class Outlet(Protocol):
    """Where a reply goes: a connection, or a stream of one."""

    on_writable: Callable[[], None] | None

    @property
    def site(self) -> Site: ...

    @property
    def transport(self) -> asyncio.Transport: ...

    @property
    def writable(self) -> bool: ...

    def send(self, payload: bytes, request: Request) -> None: ...

    def write_raw(self, payload: bytes, request: Request) -> None:
        """As it is, HTTP or not."""

    def hang_up(self) -> None: ...

    def done(self) -> None: ...


class Effect(Protocol):
    """A reply that is more than bytes to write: it takes its time or breaks the rules."""

    def perform(self, connection: Outlet, request: Request) -> None: ...


Reply = bytes | Effect
Handler = Callable[["Site", "Request"], Reply]


class Refusal(Exception):
    """The request asks for something a route cannot give."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.reply = reply(text + "\n", status=status)


class Request:
    __slots__ = (
        "argument",  # what follows the route's name in the path, "" where nothing does
        "body",  # at most connection.BODY_BYTES_KEPT of it
        "body_bytes",
        "connection",  # value for the Connection header of the response, b"" where none is needed
        "counted_as",  # key of the per-path count
        "handler",
        "headers",
        "keep_alive",
        "method",
        "path",
        "plain",  # a reply can be written as it is
        "query",
    )

    def __init__(
        self,
        *,
        method: str,
        path: str,
        query: str = "",
        headers: list[tuple[str, str]] | None = None,
        body: bytes = b"",
        body_bytes: int = 0,
        keep_alive: bool = True,
        connection: bytes = b"",
        handler: Handler,
        argument: str = "",
        counted_as: str = "",
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers or []
        self.body = body
        self.body_bytes = body_bytes
        self.keep_alive = keep_alive
        self.connection = connection
        self.handler = handler
        self.argument = argument
        self.counted_as = counted_as
        self.plain = keep_alive and not connection and method != "HEAD"

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")

    def params(self) -> dict[str, str]:
        return dict(parse_qsl(self.query, keep_blank_values=True))

    def number(self, name: str, default: int, most: int) -> int:
        """A whole number from the query, 0 to `most`."""
        return whole(self.params().get(name, str(default)), name, most)


def whole(text: str, name: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise Refusal(400, f"{name} must be a whole number, not {text[:40]!r}")
    if (number := int(text)) > most:
        raise Refusal(400, f"{name} must be at most {most}, not {number}")
    return number


def reply(
    body: str | bytes = b"",
    *,
    status: int = 200,
    kind: str = TEXT,
    headers: tuple[tuple[str, str], ...] = (),
) -> bytes:
    content = body.encode() if isinstance(body, str) else body
    lines = [status_line(status)]
    if status in (204, 304):
        content = b""
    else:
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(content)}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1") + content


def status_line(status: int) -> str:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unnamed"
    return f"HTTP/1.1 {status} {phrase}"


def fitted(payload: bytes, request: Request) -> bytes:
    """The reply as this request's method and connection want it."""
    if request.connection:
        header = b"\r\nConnection: " + request.connection + b"\r\n"
        payload = payload.replace(b"\r\n", header, 1)
    return head_of(payload) if request.method == "HEAD" else payload


def head_of(payload: bytes) -> bytes:
    return payload[: payload.index(b"\r\n\r\n") + 4]
