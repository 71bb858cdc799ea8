"""The responses a step can return, as the author of a test sees them.

A response is built for every request of a run, so it holds references only: headers are split,
bodies decompressed and decoded when somebody reads them, never on the measured path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, Self, TypeVar

import msgspec

from hyperscale.workload import html
from hyperscale.workload.results import CallFailed, CallResult, Connect, Outcome, timings_of
from hyperscale.workload.scope import CURRENT, Label

Model = TypeVar("Model")


class SentRequest(Protocol):
    """What a response tells of its request."""

    method: str
    url: str
    wire: bytes
    size: int
    hops: tuple[str, ...]
    label: Label


class ReceivedHead(Protocol):
    """What a response needs of its status line and headers; shared by equal responses."""

    status: int
    reason: str
    outcome: Outcome
    error: str
    encoded: bool
    plain: bool  # nothing to do after it: no redirect, no cookie, no failure
    set_cookies: tuple[str, ...]
    location: str | None

    @property
    def is_redirect(self) -> bool: ...

    @property
    def headers(self) -> ResponseHeaders: ...

    def decode(self, body: bytes) -> bytes: ...


class ResponseHeaders(Mapping[str, str]):
    """Headers by name in any case; a repeated header reads as its values joined by `, `."""

    __slots__ = ("_values",)

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in fields:
            self._values.setdefault(name.lower(), []).append(value)

    def __getitem__(self, name: str) -> str:
        return ", ".join(self._values[name.lower()])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def get_list(self, name: str) -> list[str]:
        return list(self._values.get(name.lower(), ()))

    def __repr__(self) -> str:
        return f"ResponseHeaders({dict(self)!r})"


NO_HEADERS = ResponseHeaders([])


class HTTPResponse(CallResult, msgspec.Struct, eq=False, gc=False):
    """The answer to an HTTP call, or the reason why there is none (`outcome`, `error`).

    Without an answer `status` is 0, and reading the body raises CallFailed. `started` is when the
    request was written: connecting is told apart, in `connect`. A struct, because one is made for
    every request and a constructor in Python would take four times as long; nothing that it holds
    leads back to it, so the collector need not know it.
    """

    request: SentRequest  # the last one, after redirects
    head: ReceivedHead | None  # None: there was no answer
    _packet: bytes | bytearray  # what came last, with the body from `_body_at` on
    _body_at: int
    started: float
    sent: float
    first_byte: float
    ended: float
    bytes_in: int
    bytes_out: int
    status: int
    outcome: Outcome
    error: str
    connect: Connect | None = None
    trailers: ResponseHeaders = NO_HEADERS  # the fields behind a chunked body
    _content: bytes | None = None
    _page: Any = None  # the body as a page, once a selector or form was asked for

    @classmethod
    def answered(
        cls,
        request: SentRequest,
        head: ReceivedHead,
        raw: bytes | bytearray,
        started: float,
        sent: float,
        first_byte: float,
        ended: float,
        bytes_in: int,
        bytes_out: int | None = None,
    ) -> HTTPResponse:
        return cls(
            request,
            head,
            raw,
            0,
            started,
            sent,
            first_byte,
            ended,
            bytes_in,
            request.size if bytes_out is None else bytes_out,
            head.status,
            head.outcome,
            head.error,
        )

    @classmethod
    def failed(
        cls,
        request: SentRequest,
        outcome: Outcome,
        error: str,
        started: float,
        ended: float,
        bytes_in: int = 0,
        bytes_out: int = 0,
    ) -> Self:
        return cls(
            request,
            None,
            b"",
            0,
            started,
            started,
            ended,
            ended,
            bytes_in,
            bytes_out,
            0,
            outcome,
            error,
        )

    def fail(self, reason: str) -> None:
        went_well = self.outcome is Outcome.OK
        super().fail(reason)
        if went_well:
            CURRENT.get().called_failed(self.request.label, self)

    @property
    def status_code(self) -> int:
        return self.status

    @property
    def reason(self) -> str:
        return self.head.reason if self.head else ""

    @property
    def method(self) -> str:
        return self.request.method

    @property
    def url(self) -> str:
        """Where the answer came from: after redirects, the last URL."""
        return self.request.url

    @property
    def redirects(self) -> tuple[str, ...]:
        """The URLs that redirected, in order; the final one is `url`."""
        return self.request.hops

    @property
    def request_bytes(self) -> bytes:
        return self.request.wire

    @property
    def headers(self) -> ResponseHeaders:
        return self.head.headers if self.head else NO_HEADERS

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies this response sets."""
        cookies = {}
        for line in self.headers.get_list("set-cookie"):
            name, equals, value = line.partition(";")[0].partition("=")
            if equals:
                cookies[name.strip(" \t")] = value.strip(" \t").strip('"')
        return cookies

    @property
    def raw(self) -> bytes:
        """The body as it came, possibly compressed; cut out when somebody wants it."""
        packet = self._packet
        if self._body_at or isinstance(packet, bytearray):
            self._packet = packet = bytes(memoryview(packet)[self._body_at :])
            self._body_at = 0
        return packet

    @property
    def content(self) -> bytes:
        head = self.head
        if head is None:
            raise CallFailed(self.outcome, self.error, self)
        if not head.encoded:
            return self.raw
        if self._content is None:
            self._content = head.decode(self.raw)
        return self._content

    def text(self) -> str:
        content = self.content
        parameters = self.headers.get("content-type", "").lower().partition("charset=")[2]
        charset = parameters.partition(";")[0].strip(" \"'") or "utf-8"
        try:
            return content.decode(charset, "replace")
        except LookupError:
            return content.decode("utf-8", "replace")

    def json(self) -> Any:
        try:
            return msgspec.json.decode(self.content)
        except msgspec.DecodeError as error:
            raise ValueError(f"{self} has a body that is not JSON: {error}") from error

    def to_model(self, model: type[Model]) -> Model:
        """The JSON body as a pydantic model, msgspec struct, dataclass or typed container."""
        validate = getattr(model, "model_validate_json", None)
        if validate is not None:
            validated: Model = validate(self.content)
            return validated
        try:
            return msgspec.json.decode(self.content, type=model)
        except msgspec.DecodeError as error:
            raise ValueError(f"{self} is not a {model.__name__}: {error}") from error

    def css(self, selector: str) -> Any:
        """What a CSS selector meets: parsel's SelectorList, of the extra `html`.

        `css("h1::text").get()`, `css("a.next").attrib["href"]`, `css("li a::attr(href)").getall()`
        """
        return self._parsed().css(selector)

    def xpath(self, expression: str, **arguments: Any) -> Any:
        """What an XPath expression meets; keywords are its variables, or `namespaces`."""
        return self._parsed().xpath(expression, **arguments)

    def form(self, which: str | None = None) -> html.Form:
        """The page's only form, or the one with that name, id or CSS selector."""
        return html.find_form(self._parsed(), which, self.url)

    def _parsed(self) -> Any:
        if self._page is None:
            self._page = html.parse(self.text(), self.headers.get("content-type", "").lower())
        return self._page

    @property
    def timings(self) -> dict[str, float]:
        """Milliseconds per phase; the phases of connecting only for a call that connected."""
        return timings_of(self)

    def __reduce__(self) -> tuple[Any, ...]:
        values = [getattr(self, name) for name in self.__struct_fields__]
        values[-1] = None  # a page cannot be pickled, and is quickly made again
        return type(self), tuple(values)

    def __str__(self) -> str:
        return f"{self.method} {self.url} ({self.status or self.outcome})"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"


class HTTP2Response(HTTPResponse, eq=False, gc=False):
    """The answer to a call of HTTP/2; `trailers` are the fields behind its body."""


class HTTP3Response(HTTP2Response, eq=False, gc=False):
    """The answer to a call of HTTP/3."""
