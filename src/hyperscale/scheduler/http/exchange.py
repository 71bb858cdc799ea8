"""One request and its answer, on a connection of its own: for `http` jobs, and to ask a silent
worker whether it lives."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import SplitResult, urlsplit

from hyperscale.errors import BadInput
from hyperscale.runtime.http import Answer, Connection, HttpFailed, request_of
from hyperscale.scheduler.addresses import plain_url

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]


async def exchange(
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    lookup: Lookup | None = None,
) -> Answer:
    """Without a timeout of its own: the caller knows how long it may take. `lookup` gives the
    addresses to connect to instead of the name. Raises HttpFailed, BadInput."""
    parts, port = _parts(url)
    context = ssl.create_default_context() if parts.scheme == "https" else None
    host, name = parts.netloc.rpartition("@")[2], parts.hostname or ""
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        lines = {"Host": host, "Connection": "close", **(headers or {})}
        request = request_of(method, path, lines, body)
    except ValueError:
        raise BadInput(f"a line break inside the request to {plain_url(url)!r}") from None
    try:
        addresses = [name] if lookup is None else await lookup(name, port)
        connection = await Connection.open(addresses, port, context, name)
        try:
            connection.send(request)
            return await connection.answer(bodiless=method == "HEAD")
        finally:
            connection.drop()
    except (OSError, HttpFailed) as error:
        raise HttpFailed(f"{host}: {error}") from error


def _parts(url: str) -> tuple[SplitResult, int]:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        good = parts.scheme in ("http", "https") and (parts.hostname or "").encode("idna")
    except ValueError:  # a port that is no number, a host that cannot be a name
        good = False
    if not good:
        raise BadInput(f"{plain_url(url)!r} is not an http address")
    return parts, port
