"""The paths of the target, one function each; docs list them for people.

Nothing a client sends is stored, so a run can be repeated and the target never grows: `/items`
answers as if it kept them, and a login token carries its user.
"""

from __future__ import annotations

import gzip
import os
import time
from functools import lru_cache
from hashlib import blake2b
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl

import msgspec

from hyperscale.target.effects import EndlessHeader, LastWords, Later, Reset
from hyperscale.target.message import (
    JSON,
    TEXT,
    Handler,
    Refusal,
    Reply,
    Request,
    head_of,
    reply,
    status_line,
    whole,
)
from hyperscale.target.site import Site
from hyperscale.target.streams import Events, WebSocket

# Above the client's default response cap of 64 MiB, so that the cap can be tried.
BYTES_MOST = 128 * 1024 * 1024
BYTES_REMEMBERED = 1024 * 1024
DELAY_MS_MOST = 60_000
REDIRECTS_MOST = 1_000
CHUNKS_MOST = 10_000
CHUNK_BYTES_MOST = 64 * 1024
EVENTS_MOST = 1_000_000
ITEMS = 1_000
TOKEN_KEY = b"hyperscale target"  # of no secrecy: it only makes a token checkable
COOKIE_UNSAFE = frozenset('";,\\\x7f') | {chr(code) for code in range(33)}

HOME = reply("Hello from the Hyperscale target.\n")
SAMPLE = {"message": "hello", "numbers": [1, 2, 3], "nested": {"ok": True, "pi": 3.14159}}
SAMPLE_JSON = reply(msgspec.json.encode(SAMPLE), kind=JSON)
GZIPPED = reply(
    gzip.compress(msgspec.json.encode({**SAMPLE, "text": "hyperscale " * 200}), mtime=0),
    kind=JSON,
    headers=(("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")),
)
FORM = reply(
    """<!doctype html>
<title>Login</title>
<h1>Login</h1>
<form name="login" action="/login" method="post">
  <input type="hidden" name="csrf" value="f3a9">
  <label>User <input name="user"></label>
  <label>Password <input name="password" type="password"></label>
  <button>Log in</button>
</form>
""",
    kind="text/html; charset=utf-8",
)
NOT_FOUND = reply("No such path on the target.\n", status=404)
BAD_LUCK = reply("Bad luck.\n", status=503)
GOOD_LUCK = reply("Good luck.\n")
GOODBYE = reply("Goodbye.\n", headers=(("Connection", "close"),))
GARBAGE = b"\x00\x01\x02 this is not HTTP \xff\xfe\r\n\r\n"


def as_json(value: object, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> bytes:
    return reply(msgspec.json.encode(value), status=status, kind=JSON, headers=headers)


def home(site: Site, request: Request) -> Reply:
    return HOME


def sample_json(site: Site, request: Request) -> Reply:
    return SAMPLE_JSON


def gzipped(site: Site, request: Request) -> Reply:
    return GZIPPED


def form(site: Site, request: Request) -> Reply:
    return FORM


def not_found(site: Site, request: Request) -> Reply:
    return NOT_FOUND


def some_bytes(site: Site, request: Request) -> Reply:
    count = whole(request.argument, "N in /bytes/N", BYTES_MOST)
    return remembered_bytes(count) if count <= BYTES_REMEMBERED else bytes_reply(count)


def bytes_reply(count: int) -> bytes:
    return reply(b"x" * count, kind="application/octet-stream")


remembered_bytes = lru_cache(maxsize=64)(bytes_reply)


def delay(site: Site, request: Request) -> Reply:
    ms = whole(request.argument, "MS in /delay/MS", DELAY_MS_MOST)
    return Later(ms / 1000, HOME, f"/delay/{ms}")


def status(site: Site, request: Request) -> Reply:
    code = whole(request.argument, "CODE in /status/CODE", 599)
    if code < 200:
        raise Refusal(400, "CODE in /status/CODE must be 200 to 599")
    return reply(f"{code}\n", status=code)


def echo(site: Site, request: Request) -> Reply:
    return as_json(
        {
            "method": request.method,
            "path": request.path,
            "query": grouped(parse_qsl(request.query, keep_blank_values=True)),
            "headers": grouped(request.headers),
            "body": request.body.decode(errors="replace"),
            "body_bytes": request.body_bytes,
        }
    )


def grouped(pairs: list[tuple[str, str]]) -> dict[str, str | list[str]]:
    """A name given once has its value, a name given again a list of them."""
    groups: dict[str, list[str]] = {}
    for name, value in pairs:
        groups.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in groups.items()}


def login(site: Site, request: Request) -> Reply:
    fields = credentials(request)
    user = fields.get("user") or fields.get("username") or ""
    if request.method in ("GET", "HEAD") and not fields:
        user = "demo"
    elif not user or not fields.get("password"):
        raise Refusal(400, "give user and password, as JSON or as a form")
    elif fields["password"] == "wrong":
        raise Refusal(401, "wrong password")
    return as_json({"token": token_for(user), "user": user})


def credentials(request: Request) -> dict[str, str]:
    if not request.body:
        return request.params()
    if "json" in request.header("content-type"):
        try:
            return msgspec.json.decode(request.body, type=dict[str, str])
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Refusal(400, "the body is not a JSON object of strings") from None
    return dict(parse_qsl(request.body.decode(errors="replace"), keep_blank_values=True))


def token_for(user: str) -> str:
    name = user.encode(errors="replace")
    return f"{name.hex()}.{blake2b(name, key=TOKEN_KEY, digest_size=8).hexdigest()}"


def me(site: Site, request: Request) -> Reply:
    scheme, _, token = request.header("authorization").partition(" ")
    name, _, _ = token.partition(".")
    try:
        user = bytes.fromhex(name).decode()
    except ValueError:
        user = ""
    if scheme.lower() != "bearer" or not user or token != token_for(user):
        unauthorised = (("WWW-Authenticate", "Bearer"),)
        return as_json({"error": "log in first: /login gives a token"}, 401, unauthorised)
    return as_json({"user": user})


def items(site: Site, request: Request) -> Reply:
    if request.method == "POST":
        body = object_in(request)
        created = {**body, "id": ITEMS + 1}
        return as_json(created, 201, (("Location", f"/items/{ITEMS + 1}"),))
    if request.method not in ("GET", "HEAD"):
        raise Refusal(405, "/items takes GET and POST")
    first = request.number("offset", 0, ITEMS)
    last = min(first + request.number("limit", 20, 100), ITEMS)
    page = [numbered(n) for n in range(first + 1, last + 1)]
    return as_json({"items": page, "total": ITEMS})


def item(site: Site, request: Request) -> Reply:
    number = whole(request.argument, "ID in /items/ID", 10**9)
    if not 1 <= number <= ITEMS:
        return as_json({"error": f"no item {number}"}, 404)
    match request.method:
        case "GET" | "HEAD":
            return as_json(numbered(number))
        case "PUT" | "PATCH":
            return as_json({**numbered(number), **object_in(request), "id": number})
        case "DELETE":
            return reply(status=204)
    raise Refusal(405, "/items/ID takes GET, PUT, PATCH and DELETE")


def numbered(number: int) -> dict[str, object]:
    return {"id": number, "name": f"item {number}", "price_cents": number * 37 % 5000 + 100}


def object_in(request: Request) -> dict[str, object]:
    try:
        return msgspec.json.decode(request.body, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Refusal(400, "the body is not a JSON object") from None


def flaky(site: Site, request: Request) -> Reply:
    try:
        percent = float(request.argument)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise Refusal(400, "PCT in /flaky/PCT must be a number from 0 to 100")
    return BAD_LUCK if site.flaky_fails(percent) else GOOD_LUCK


def stall(site: Site, request: Request) -> Reply:
    """Freezes the whole process, as a long garbage collection would; everyone waits."""
    ms = request.number("ms", 1000, DELAY_MS_MOST)
    time.sleep(ms / 1000)
    return reply(f"Stalled for {ms} ms.\n")


def chunked(site: Site, request: Request) -> Reply:
    count = request.number("chunks", 5, CHUNKS_MOST)
    size = request.number("size", 16, CHUNK_BYTES_MOST)
    if not size:
        raise Refusal(400, "size must be at least 1: an empty chunk ends the body")
    if count * size > BYTES_MOST:
        raise Refusal(400, f"chunks times size must be at most {BYTES_MOST}")
    head = f"{status_line(200)}\r\nContent-Type: {TEXT}\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n%s\r\n" % (size, b"c" * size)
    return head.encode() + chunk * count + b"0\r\n\r\n"


def redirect(site: Site, request: Request) -> Reply:
    hops = whole(request.argument, "N in /redirect/N", REDIRECTS_MOST)
    if not hops:
        return HOME
    code = request.number("status", 302, 399)
    if code not in (301, 302, 303, 307, 308):
        raise Refusal(400, "status must be 301, 302, 303, 307 or 308")
    query = f"?status={code}" if code != 302 else ""
    location = (("Location", f"/redirect/{hops - 1}{query}"),)
    return reply("Elsewhere.\n", status=code, headers=location)


def close(site: Site, request: Request) -> Reply:
    return LastWords(head_of(GOODBYE) if request.method == "HEAD" else GOODBYE)


def garbage(site: Site, request: Request) -> Reply:
    return LastWords(GARBAGE)


def endless_header(site: Site, request: Request) -> Reply:
    return EndlessHeader()


def reset(site: Site, request: Request) -> Reply:
    return Reset()


def websocket(site: Site, request: Request) -> Reply:
    if request.header("upgrade").lower() != "websocket" or not request.header("sec-websocket-key"):
        raise Refusal(426, "/ws speaks WebSocket")
    return WebSocket()


def events(site: Site, request: Request) -> Reply:
    """Events beyond the one that the client has seen last, which it says when it comes again."""
    seen = request.header("last-event-id")
    first = whole(seen, "Last-Event-ID", EVENTS_MOST) + 1 if seen else 1
    count = request.number("count", 10, EVENTS_MOST)
    return Events(first, count, request.number("ms", 100, DELAY_MS_MOST) / 1000)


def set_cookies(site: Site, request: Request) -> Reply:
    wanted = request.params()
    if not all(wanted):
        raise Refusal(400, "a cookie needs a name: /cookies/set?name=value")
    for text in (*wanted, *wanted.values()):
        if not COOKIE_UNSAFE.isdisjoint(text) or not text.isascii():
            raise Refusal(400, f"not fit for a cookie: {text[:40]!r}")
    headers = tuple(("Set-Cookie", f"{name}={value}; Path=/") for name, value in wanted.items())
    return as_json({"set": wanted}, headers=headers)


def cookies(site: Site, request: Request) -> Reply:
    try:
        jar = SimpleCookie(request.header("cookie"))
    except CookieError:
        raise Refusal(400, "the Cookie header is malformed") from None
    return as_json({"cookies": {name: morsel.value for name, morsel in jar.items()}})


def stats(site: Site, request: Request) -> Reply:
    """Counts since the start or the last reset, of this process, asking for them left out."""
    paths = {path: n for path, n in site.paths.items() if not path.startswith("/stats")}
    return as_json(
        {
            "requests": sum(paths.values()),
            "paths": paths,
            "delays": {path: measure.summary() for path, measure in site.delays.items()},
            "connections_open": len(site.connections),
            "connections_accepted": site.accepted,
            "pid": os.getpid(),
        }
    )


def reset_stats(site: Site, request: Request) -> Reply:
    site.reset()
    return as_json({"reset": True})


EXACT: dict[str, Handler] = {
    "/": home,
    "/json": sample_json,
    "/echo": echo,
    "/form": form,
    "/login": login,
    "/me": me,
    "/items": items,
    "/stall": stall,
    "/chunked": chunked,
    "/gzip": gzipped,
    "/close": close,
    "/garbage": garbage,
    "/endless-header": endless_header,
    "/reset": reset,
    "/ws": websocket,
    "/events": events,
    "/cookies": cookies,
    "/cookies/set": set_cookies,
    "/stats": stats,
    "/stats/reset": reset_stats,
}
WITH_ARGUMENT: dict[str, Handler] = {
    "/bytes": some_bytes,
    "/delay": delay,
    "/status": status,
    "/items": item,
    "/flaky": flaky,
    "/redirect": redirect,
}


def new_site() -> Site:
    return Site(EXACT, WITH_ARGUMENT, not_found)
