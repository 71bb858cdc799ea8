"""A call as the bytes that go on the wire.

The same call with the same argument objects is built once: `RequestBuilder` keeps what consists of
encoded arguments and URLs, by identity of the arguments, and of plain headers, by their content.
When headers or body change from call to call, everything around them is kept. Other plain values
are encoded each time. All take the same path, so the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from hyperscale.clients.http.body import Body, body_of
from hyperscale.clients.http.head import Head
from hyperscale.clients.http.route import Route
from hyperscale.clients.http.target import Target
from hyperscale.clients.http.upload import Upload
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL, Auth, Cookies, Headers, OptimizedArgument, Params
from hyperscale.workload.headers import header_lines, header_name, header_value
from hyperscale.workload.scope import Label, Tags, fold_ids
from hyperscale.workload.secrets import mask_url
from hyperscale.workload.texts import UNPRINTABLE, shown

NAME_MAX = 300  # characters of a request's name
MAX_KEPT = 4096  # requests and URLs; made-up URLs (/users/17) would otherwise pile up
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
# A server may answer before it has read a long request, whose rest is then still on its way;
# shorter ones are gone with the first write.
_LONG_BYTES = 64 * 1024


class Call(NamedTuple):
    """The arguments of one call: plain values or encoded ones."""

    method: str
    url: str | URL
    params: Any = None
    headers: Any = None
    cookies: Any = None
    auth: Any = None
    name: str | None = None
    tags: Any = None
    json: Any = None
    data: Any = None
    form: Any = None
    files: Any = None
    compress: Any = None


class Request:
    """`wire[:cookies_at]` ends before the Cookie line, `wire[body_at:]` is the body.

    With a `stream` the wire is the head alone: the pieces that the stream gives are written behind
    it as they are, in chunks or of the length that the head tells. `usual` is the head of the last
    answer, `answer` a short one as a whole: the next one is most often the same.
    """

    __slots__ = (
        "answer",
        "bodiless",
        "body_at",
        "call",
        "cookies",
        "cookies_at",
        "hops",
        "label",
        "method",
        "needs_reader",
        "route",
        "size",
        "stream",
        "target",
        "url",
        "usual",
        "wire",
    )
    version: ClassVar[str] = "HTTP/1.1"
    chunks: ClassVar[bool] = True  # a body whose length is not known is sent in chunks

    def __init__(self, call: Call, target: Target, url: str, route: Route, label: Label) -> None:
        self.call = call
        self.label = label
        self.method = call.method
        self.target = target
        self.url = url
        self.route = route
        self.usual: Head | None = None
        self.answer: bytes | None = None
        self.bodiless = call.method == "HEAD"
        self.hops: tuple[str, ...] = ()
        self.cookies: dict[str, str] | None = {}  # None: the author wrote the Cookie header
        self.stream: Upload | None = None

    @property
    def repeatable(self) -> bool:
        """Whether it can be sent again; a body that a generator gave is gone."""
        return self.stream is None or self.stream.repeatable

    def encode(self, head: bytes, cookies: bytes, body: bytes) -> Request:
        self.cookies_at = len(head)
        line = b"Cookie: %b\r\n" % cookies if cookies else b""
        self.body_at = len(head) + len(line) + 2
        self.wire = b"%b%b\r\n%b" % (head, line, body)
        self.size = len(self.wire)
        self.needs_reader = self.bodiless or self.size > _LONG_BYTES
        return self

    def streaming(self, upload: Upload | None) -> Request:
        if upload is not None:
            self.stream = upload
            self.needs_reader = True
            if not upload.chunked:  # what chunks add is known to whoever writes them
                self.size += upload.length or 0
        return self

    def with_cookies(self, kept: Sequence[tuple[str, str]]) -> Request:
        """This request with cookies of the jar added; the author's own win."""
        if self.cookies is None or not kept:
            return self
        own = self.cookies
        line = cookie_line([*(pair for pair in kept if pair[0] not in own), *own.items()])
        return self._copy(self.hops, line)

    def with_line(self, line: bytes) -> Request:
        """This request with one more header; the author's own of that name wins."""
        head = self.wire[: self.body_at - 2]
        name = line.partition(b":")[0]
        if b"\r\n%b:" % name in head.lower():
            return self
        copy = type(self)(self.call, self.target, self.url, self.route, self.label)
        copy.hops = self.hops
        copy.cookies = self.cookies
        copy.encode(head + line, b"", self.wire[self.body_at :])
        return copy.streaming(self.stream)

    def after(self, redirecting: Request) -> Request:
        """This request as the one that follows a redirect."""
        line = cookie_line((self.cookies or {}).items())
        return self._copy((*redirecting.hops, redirecting.url), line)

    def _copy(self, hops: tuple[str, ...], cookies: bytes) -> Request:
        copy = type(self)(self.call, self.target, self.url, self.route, self.label)
        copy.hops = hops
        copy.cookies = self.cookies
        copy.encode(self.wire[: self.cookies_at], cookies, self.wire[self.body_at :])
        return copy.streaming(self.stream)

    def __getstate__(self) -> object:
        state: Any = super().__getstate__()
        if self.stream is not None:  # an open file or a generator stays in its process
            state[1].update(stream=None, call=self.call._replace(data=None, files=None))
        return state


class Frame(NamedTuple):
    """What stays of a request when the lines of the author's headers and the body change."""

    request: Request
    names: frozenset[str]  # of the author's headers, in lower case
    chunked: bool  # because the author wrote Transfer-Encoding
    before: bytes
    after: bytes
    cookies: bytes

    def around(self, call: Call, lines: bytes) -> Request:
        body, content_type = _body(call)
        about = b""
        upload: Upload | None = None
        if body or content_type or self.chunked or call.method in _WITH_BODY:
            if content_type and "content-type" not in self.names:
                about = b"Content-Type: %b\r\n" % content_type.encode()
            if call.compress is not None and content_type:
                about += self._coding(call.compress)
            if isinstance(body, bytes) and not self.chunked:
                about += b"Content-Length: %d\r\n" % len(body)
            else:
                framing, body, upload = self._framed(body)
                about += framing
        else:
            body = b""
        known = self.request
        made = type(known)(call, known.target, known.url, known.route, known.label)
        made.cookies = known.cookies
        made.encode(self.before + lines + self.after + about, self.cookies, body)
        return made if upload is None else made.streaming(upload)

    def _coding(self, compress: str) -> bytes:
        if "content-encoding" in self.names:
            raise BadInput(
                f"a call has compress={compress!r} and a header Content-Encoding",
                "leave the header out: compress sets it",
            )
        return b"Content-Encoding: %b\r\n" % compress.encode()

    def _framed(self, body: bytes | Upload) -> tuple[bytes, bytes, Upload | None]:
        """The line that tells how (an author's own is there already) and the body, whole or not."""
        if isinstance(body, bytes):
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            return b"", chunk + b"0\r\n\r\n", None
        if self.chunked:
            return b"", b"", body.in_chunks()
        if body.length is None:
            return b"Transfer-Encoding: chunked\r\n", b"", body
        return b"Content-Length: %d\r\n" % body.length, b"", body


def cookie_line(pairs: Iterable[tuple[str, str]]) -> bytes:
    return header_value("Cookie", "; ".join([f"{name}={value}" for name, value in pairs]))


class RequestBuilder:
    """`defaults` are headers that authors may replace; `kind` is what the requests are."""

    def __init__(
        self,
        base_url: str,
        defaults: Mapping[str, str],
        route_for: Callable[[Target], Route],
        kind: type[Request] = Request,
    ) -> None:
        self._kind = kind
        self._base_url = base_url
        self._defaults = [
            (header_name(name)[1], header_lines({name: value})[0])
            for name, value in defaults.items()
        ]
        self._all_defaults = b"".join(line for _, line in self._defaults)
        self._route_for = route_for
        self._targets: dict[str, Target] = {}
        self.kept: dict[tuple[Any, ...], Request] = {}
        self.bare_gets: dict[str | URL, Request] = {}  # without any other argument
        self._frames: dict[tuple[Any, ...], Frame] = {}
        self._labels: dict[tuple[str, str, Tags], Label] = {}
        self._own_host = Target("/", base_url).host_header if base_url else ""

    def target(self, url: str | URL) -> Target:
        text = url.value if isinstance(url, URL) else url
        target = self._targets.get(text) if isinstance(text, str) else None
        if target is None:
            target = Target(URL.checked(text), self._base_url)
            if len(self._targets) >= MAX_KEPT:
                self._targets.clear()
            self._targets[text] = target
        return target

    def build(self, arguments: tuple[Any, ...]) -> Request:
        """The request of a Call's arguments, kept when all that is sent of them is constant."""
        call = Call(*arguments)
        lines, names = _author_headers(call.headers)
        tags = _plain_tags(call.tags)
        constant = (call.params, call.cookies, call.auth)
        key = (names, call.method, call.url, *constant, call.name, tags)
        if call.auth is not None and not isinstance(call.auth, Auth):
            call = call._replace(auth=Auth.of(call.auth))
        try:
            frame = self._frames.get(key)
        except TypeError:  # one of them is a plain dict
            return self._frame(call, names, tags).around(call, lines)
        if frame is None:
            frame = self._frame(call, names, tags)
            if _constant(constant):
                keep(self._frames, key, frame)
        request = frame.around(call, lines)
        if _constant(constant) and _constant(arguments[8:12]):
            self._keep_request(arguments, call.headers, request)
        return request

    def bare_get(self, url: str | URL) -> Request:
        request = self.build(("GET", url, *[None] * 6))
        keep(self.bare_gets, url, request)
        return request

    def _keep_request(self, arguments: tuple[Any, ...], headers: Any, request: Request) -> None:
        if type(headers) is dict:
            if all(type(value) is str for value in headers.values()):
                same = (*arguments[:3], tuple(headers.items()), *arguments[4:])
                keep(self.kept, same, request)
        elif _constant(arguments[3:4]):
            keep(self.kept, arguments, request)

    def label(self, call: Call, target: Target, tags: Tags) -> Label:
        """By the call's own name, else by its typed URL as written, else by its path."""
        name = call.name
        if name is not None and not isinstance(name, str):
            raise BadInput(f"name of a call is {shown(name)} but must be a string")
        if name is None:
            name = call.url.value if isinstance(call.url, URL) else self._path_of(target)
        key = (call.method, name, tags)
        label = self._labels.get(key)
        if label is None:
            if UNPRINTABLE.search("".join((name, *(text for tag in tags for text in tag)))):
                raise BadInput(
                    f"name or tags of a call contain a control character: {shown(key[1:])}"
                )
            if len(self._labels) >= MAX_KEPT:
                self._labels.clear()
            label = self._labels[key] = Label(call.method, mask_url(name)[:NAME_MAX], tags)
        return label

    def _path_of(self, target: Target) -> str:
        path = fold_ids(target.path)
        return path if target.host_header == self._own_host else f"{target.host_header}{path}"

    def own(self, target: Target) -> None:
        """The first host that a test names is its own: requests there go by their path."""
        self._own_host = self._own_host or target.host_header

    def _frame(self, call: Call, names: frozenset[str], tags: Tags) -> Frame:
        target = self.target(call.url)
        route = self._route_for(target)
        query = Params.of(call.params).query() if call.params is not None else ""
        asked = target.with_query(query)
        url = f"{target.scheme}://{target.host_header}{asked}"
        request = self._kind(call, target, url, route, self.label(call, target, tags))

        place = url if _absolute(route) else asked
        lines = [f"{call.method} {place} {request.version}\r\n".encode("ascii")]
        if "host" not in names:
            lines.append(f"Host: {target.host_header}\r\n".encode())
        if names:
            lines.extend(line for name, line in self._defaults if name not in names)
        else:
            lines.append(self._all_defaults)
        before = b"".join(lines)
        lines.clear()
        if "authorization" not in names:
            authorization = call.auth.header() if call.auth is not None else target.auth
            if authorization:
                lines.append(
                    b"Authorization: %b\r\n" % header_value("Authorization", authorization)
                )
        if route.proxy and route.proxy.auth and _absolute(route):
            lines.append(f"Proxy-Authorization: {route.proxy.auth}\r\n".encode())
        if call.cookies is not None:
            request.cookies = Cookies.of(call.cookies).value
        pairs = cookie_line((request.cookies or {}).items())
        if "cookie" in names:
            request.cookies = None
        chunked = request.chunks and "transfer-encoding" in names
        return Frame(request, names, chunked, before, b"".join(lines), pairs)


def _constant(arguments: tuple[Any, ...]) -> bool:
    for given in arguments:  # all() with a generator costs three times as much
        if given is not None and not isinstance(given, OptimizedArgument):
            return False
    return True


def _plain_tags(tags: Any) -> Tags:
    if not tags:
        return ()
    try:
        pairs = tags if isinstance(tags, tuple) else tags.items()
        return tuple([(str(name), str(value)) for name, value in pairs])
    except (AttributeError, TypeError, ValueError):
        raise BadInput(
            f"tags of a call are {shown(tags)} but must be a dict of names and values"
        ) from None


def keep(kept: dict[Any, Any], key: Any, value: object) -> None:
    if len(kept) >= MAX_KEPT:
        kept.clear()
    kept[key] = value


def _absolute(route: Route) -> bool:
    return route.is_forwarded


def _author_headers(headers: Any) -> tuple[bytes, frozenset[str]]:
    if headers is None:
        return b"", frozenset()
    if isinstance(headers, Headers):
        return headers.lines()
    return header_lines(headers)


def _body(call: Call) -> Body:
    """The body and its content type; both empty when there is none."""
    json, data, form, files, compress = call[8:]
    if json is None and data is None and form is None and files is None and compress is None:
        return b"", ""
    if (json is not None) + (data is not None) + (form is not None or files is not None) > 1:
        raise BadInput(
            f"{call.method} {call.url} has more than one body",
            "pass one of json=, data=, or form= with or without files=",
        )
    return body_of(json, data, form, files, compress)
