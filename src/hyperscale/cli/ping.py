"""`hyperscale ping`: one request, where its time went, and what came back.

For the question before every load test: do I reach the target at all, and with what I think I
send? It uses the client of the load test itself, so what works here works there.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyperscale.cli import flags, streams
from hyperscale.errors import BadInput, ExitCode

if TYPE_CHECKING:
    from hyperscale.ui.output import Paint
    from hyperscale.workload.replies import Reply
    from hyperscale.workload.responses import HTTPResponse

BODY_CHARACTERS = 2_000
BAR_WIDTH = 40
_ORDER = ("dns", "connect", "tls", "wait", "read")


def ping(
    url: Annotated[
        str,
        typer.Argument(metavar="URL", help="what to ask; :8080/x is local, mqtt://host connects"),
    ],
    method: Annotated[
        str, typer.Option("-X", "--method", metavar="VERB", help="(GET, with --data POST)")
    ] = "",
    header: Annotated[
        list[str] | None,
        typer.Option("-H", "--header", metavar="'K: V'", help="a request header; repeatable"),
    ] = None,
    data: Annotated[
        str | None, typer.Option("-d", "--data", metavar="TEXT", help="a body; @FILE reads a file")
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option("-k", "--insecure-skip-tls-verify", help="accept any certificate"),
    ] = False,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="give up after (10s)")
    ] = "10s",
    full: Annotated[bool, typer.Option("--full", help="print the whole body")] = False,
    debug: flags.Debug = False,
) -> int:
    """Send one request and show its phases and the response."""
    import asyncio

    from hyperscale.ui.output import Output
    from hyperscale.workload.durations import parse_duration
    from hyperscale.workload.http_options import HTTPOptions

    seconds = parse_duration(timeout, "--timeout")
    if seconds <= 0:
        raise BadInput(f"--timeout takes a duration above 0s, not {timeout!r}")
    options = HTTPOptions(verify=not insecure, timeout=seconds, connect_timeout=seconds)
    scheme = url.partition("://")[0]
    protocol = _protocol_of(scheme)
    if protocol:
        if method or header or data is not None:
            raise BadInput(f"--method, --header and --data are for HTTP, not for {scheme}://")
        reply = asyncio.run(_connect(protocol, scheme, url, options))
        streams.say(_connected(reply, Output(sys.stdout).paint()))
        return int(ExitCode.PASSED if reply.ok else ExitCode.FAILED)
    body = body_of(data)
    call = {
        "method": (method or ("GET" if body is None else "POST")).upper(),
        "headers": headers_of(header or []),
        "data": body,
    }
    response = asyncio.run(_request(_absolute(url), options, call))
    streams.say(_shown(response, Output(sys.stdout).paint(), full))
    return int(ExitCode.PASSED if response.ok else ExitCode.FAILED)


def _protocol_of(scheme: str) -> str:
    """What speaks it, beside HTTP."""
    from hyperscale.clients import PROTOCOLS

    return next((name for name, (_, _, own) in PROTOCOLS.items() if scheme in own), "")


async def _connect(protocol: str, scheme: str, url: str, options: Any) -> Reply:
    from hyperscale.clients import ClientPool

    pool = ClientPool(options)
    client = pool.client()
    try:
        if protocol == "udp":
            raise BadInput("UDP has no connection to try", "a test with one step and --once can")
        made = getattr(client, protocol)
        # A stream of events begins with its head, which is all there is to wait for.
        connect = made.subscribe if protocol == "sse" else made.connect
        reply: Reply = await connect(url, timeout=options.timeout)
        return reply
    finally:
        client.close()
        await pool.close()


def _connected(reply: Reply, paint: Paint) -> str:
    lines = [f"{paint.strong(reply.method)} {reply.target}"]
    if not reply.ok:
        return "\n".join([*lines, paint.bad(f"not connected: {reply.error}")])
    lines += [paint.good("connected"), "", *_phases(reply.timings, paint)]
    said = reply.shown_answer().decode("utf-8", "replace").rstrip("\n")
    return "\n".join([*lines, "", said] if said else lines)


async def _request(url: str, options: Any, call: dict[str, Any]) -> HTTPResponse:
    from hyperscale.clients import ClientPool

    pool = ClientPool(options)
    try:
        response: HTTPResponse = await pool.client().http.request(url=url, **call)
        return response
    finally:
        await pool.close()


def _absolute(url: str) -> str:
    if url.startswith((":", "/")):
        return f"http://127.0.0.1{url}"
    return url if "://" in url else f"http://{url}"


def headers_of(lines: list[str]) -> dict[str, str]:
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise BadInput(f"--header takes 'Name: value', not {line!r}")
        headers[name.strip()] = value.strip()
    return headers


def body_of(data: str | None) -> bytes | None:
    if data is None:
        return None
    if not data.startswith("@"):
        return data.encode()
    try:
        with open(data[1:], "rb") as file:
            return file.read()
    except OSError as error:
        raise BadInput(f"--data {data}: {error.strerror}") from error


def _shown(response: HTTPResponse, paint: Paint, full: bool) -> str:
    from hyperscale.ui.text import duration

    lines = [f"{paint.strong(response.method)} {response.url}"]
    lines += [f"  redirected by {hop}" for hop in response.redirects]
    if not response.status:
        after = duration(response.timings["total"])
        lines.append(paint.bad(f"no answer after {after}: {response.error}"))
        return "\n".join(lines)
    verdict = f"{response.status} {response.reason}".strip()
    lines.append(paint.good(verdict) if response.ok else paint.bad(verdict))
    lines += ["", *_phases(response.timings, paint), ""]
    for name, value in response.headers.items():
        lines.append(f"{paint.faint(name + ':')} {value}")
    return "\n".join(lines + _content(response, full))


def _phases(timings: dict[str, float], paint: Paint) -> list[str]:
    """A bar for each phase, set off by those before it, so that the sum can be seen."""
    from hyperscale.ui.text import duration

    total = timings["total"]
    lines, before = [], 0.0
    for name in _ORDER:
        ms = timings.get(name, 0.0)
        if ms <= 0:
            continue
        start = round(before / total * BAR_WIDTH)
        width = max(1, round((before + ms) / total * BAR_WIDTH) - start)
        lines.append(f"  {name:<8}{duration(ms):>10}  {' ' * start}{'█' * width}")
        before += ms
    lines.append(paint.strong(f"  {'total':<8}{duration(total):>10}"))
    return lines


def _content(response: HTTPResponse, full: bool) -> list[str]:
    from hyperscale.ui.text import size

    body = response.content
    if not body:
        return []
    text = response.text()
    if b"\0" in body[:BODY_CHARACTERS]:
        return ["", f"({size(len(body))} of binary data)"]
    if full or len(text) <= BODY_CHARACTERS:
        return ["", text.rstrip("\n")]
    left = len(text) - BODY_CHARACTERS
    return ["", text[:BODY_CHARACTERS], f"... {left:,} more characters; --full prints them"]
