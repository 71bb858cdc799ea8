"""Requests as a client would build them, and what an independent reader makes of their bytes."""

from __future__ import annotations

import asyncio
from typing import Any

import h11

from hyperscale.clients.http.request import Request, RequestBuilder
from hyperscale.clients.http.route import Route
from hyperscale.clients.http.verbs import Sink, Verbs

Sent = tuple[str, Request, Sink | None]


class Recorder(Verbs[Any]):
    """The verbs without a network: `await` gives the request that would be sent."""

    async def _send(self, request: Request, *_: Any) -> Any:
        return ("_send", request, None)

    async def _send_to(self, request: Request, *rest: Any) -> Any:
        return ("_send_to", request, rest[-1])


def builder() -> RequestBuilder:
    return RequestBuilder("", {}, lambda target: Route(target, None, None))


def sent(verb: str, *arguments: Any, made: RequestBuilder | None = None, **named: Any) -> Sent:
    async def go() -> Any:
        return await getattr(Recorder(made or builder()), verb)(*arguments, **named)

    found: Sent = asyncio.run(go())
    return found


def built(verb: str, *arguments: Any, **named: Any) -> Request:
    return sent(verb, *arguments, **named)[1]


def all_bytes(request: Request) -> bytes:
    """What goes on the wire, with the pieces of a streamed body."""

    async def go() -> bytes:
        if request.stream is None:
            return request.wire
        return request.wire + b"".join([piece async for piece in request.stream()])

    return asyncio.run(go())


def read(wire: bytes) -> tuple[h11.Request, bytes]:
    """As h11 reads it, as a server: one request, its body, and nothing behind."""
    server = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 24)
    server.receive_data(wire)
    head = server.next_event()
    assert isinstance(head, h11.Request), head
    body = b""
    while isinstance(event := server.next_event(), h11.Data):
        body += bytes(event.data)
    assert isinstance(event, h11.EndOfMessage), event
    assert server.trailing_data == (b"", False)
    return head, body


def header(head: h11.Request, name: bytes) -> list[bytes]:
    return [value for known, value in head.headers if known == name]
