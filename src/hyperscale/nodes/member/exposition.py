"""Metrics as the text that Prometheus reads, and the page that serves them, health and more.

Labels are bounded by their owners: states, priorities, reasons and counter names, never ids or
addresses.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from hyperscale.nodes.member.settings import is_loopback
from hyperscale.runtime.host import Address, Host, Listener, Stream
from hyperscale.runtime.latency import Latency
from hyperscale.runtime.newcomers import Newcomers, source_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
JSON = "application/json"
REQUEST_BYTES_MAX = 8 * 1024
# To say what is wanted, which comes with the connection, and to take the answer.
HEAD_TIMEOUT_S = 1.0
ANSWER_TIMEOUT_S = 5.0
# Those who have not said yet what they want: when there are more, the oldest has to go.
READERS_MAX = 256
READERS_OF_SOURCE_MAX = 64
# Those who are slow to take an answer; health fits into what the kernel takes at once.
ANSWERS_MAX = 16
PREFIX = "hyperscale_"

_NOT_A_NAME = re.compile(r"[^a-zA-Z0-9_]")


@dataclass(frozen=True, slots=True)
class Metric:
    """One family. Samples by the values of `labels`, in their order."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    samples: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    latencies: Mapping[tuple[str, ...], Latency] = field(default_factory=dict)
    """Instead of samples, of a histogram."""


def single(name: str, kind: Literal["counter", "gauge"], help: str, value: float) -> Metric:
    return Metric(name, kind, help, (), {(): value})


def labelled(
    name: str,
    kind: Literal["counter", "gauge"],
    help: str,
    label: str,
    values: Mapping[str, float],
) -> Metric:
    return Metric(name, kind, help, (label,), {(key,): value for key, value in values.items()})


def histogram(name: str, help: str, label: str, values: Mapping[str, Latency]) -> Metric:
    return Metric(
        name, "histogram", help, (label,), latencies={(key,): one for key, one in values.items()}
    )


def render(metrics: Iterable[Metric]) -> str:
    lines: list[str] = []
    for metric in metrics:
        name = PREFIX + _NOT_A_NAME.sub("_", metric.name)
        lines.append(f"# HELP {name} {_escaped(metric.help, quotes=False)}")
        lines.append(f"# TYPE {name} {metric.kind}")
        for values, number in sorted(metric.samples.items()):
            lines.append(_line(name, metric.labels, values, number))
        for values, latency in sorted(metric.latencies.items()):
            lines += _bucket_lines(name, metric.labels, values, latency)
    return "\n".join(lines) + "\n"


def _line(name: str, labels: Iterable[str], values: Iterable[str], number: float) -> str:
    pairs = zip(labels, values, strict=True)
    inside = ",".join(f'{label}="{_escaped(value)}"' for label, value in pairs)
    return f"{name}{{{inside}}} {_number(number)}" if inside else f"{name} {_number(number)}"


def _bucket_lines(
    name: str, labels: tuple[str, ...], values: tuple[str, ...], latency: Latency
) -> Iterator[str]:
    for bound, count in (*latency.up_to(), (math.inf, latency.count)):
        yield _line(f"{name}_bucket", (*labels, "le"), (*values, _number(bound)), count)
    yield _line(f"{name}_sum", labels, values, latency.sum_s)
    yield _line(f"{name}_count", labels, values, latency.count)


def _escaped(text: str, quotes: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))


class Health(msgspec.Struct, frozen=True):
    """200 when it is well, 503 when it is not; the reason may also be a remark."""

    ok: bool
    reason: str = ""


class MetricsPage:
    """`GET /metrics`, and what `pages` and `checks` give by their path as JSON, over plain
    HTTP/1.1, one answer per connection."""

    def __init__(
        self,
        host: Host,
        collect: Callable[[], Iterable[Metric]],
        pages: Mapping[str, Callable[[], object]] | None = None,
        checks: Mapping[str, Callable[[], Health]] | None = None,
    ) -> None:
        self._host = host
        self._collect = collect
        self._pages = dict(pages or {})
        self._checks = dict(checks or {})
        self._listener: Listener | None = None
        self._asking: Newcomers[Stream] = Newcomers(host.clock.now, lambda stream: stream.close())
        self._answering = 0

    async def start(self, address: Address) -> Address:
        self._listener = await self._host.network.listen(address, self._serve)
        return self._listener.address

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()

    async def _serve(self, stream: Stream) -> None:
        try:
            stream.write(self._answer(await self._head(stream)))
            self._answering += 1
            try:
                async with asyncio.timeout(ANSWER_TIMEOUT_S):
                    await stream.drain()
            finally:
                self._answering -= 1
        except (OSError, TimeoutError):
            return  # a reader that does not read gets nothing

    async def _head(self, stream: Stream) -> str:
        """Empty when it was too long, cut short, or had to go for somebody newer: whoever asks in
        earnest is answered in the moment it comes."""
        source = source_of(stream.peer.host)
        self._asking.room_for(source, READERS_OF_SOURCE_MAX, 0.0)
        self._asking.room(READERS_MAX, 0.0)
        self._asking.add(stream, source)
        try:
            async with asyncio.timeout(HEAD_TIMEOUT_S):
                return await _read_head(stream)
        finally:
            self._asking.discard(stream)

    def _answer(self, head: str) -> bytes:
        words = head.partition("\r\n")[0].split()
        if len(words) != 3 or words[0] not in ("GET", "HEAD"):
            return _response("405 Method Not Allowed", "text/plain", b"only GET\n")
        path, head_only = words[1].partition("?")[0], words[0] == "HEAD"
        if path in self._checks:
            health = self._checks[path]()
            status = "200 OK" if health.ok else "503 Service Unavailable"
            return _response(status, JSON, msgspec.json.encode(health), head_only)
        if self._answering >= ANSWERS_MAX:
            return _response("503 Service Unavailable", "text/plain", b"too many readers\n")
        if path == "/metrics":
            body = render(self._collect()).encode()
            return _response("200 OK", CONTENT_TYPE, body, head_only)
        page = self._pages.get(path)
        if page is None:
            known = "\n".join(["see /metrics", *sorted({**self._checks, **self._pages})]) + "\n"
            return _response("404 Not Found", "text/plain", known.encode())
        if not is_loopback(_host_named(head)):
            return _response("403 Forbidden", "text/plain", b"ask for it by a loopback address\n")
        return _response("200 OK", JSON, msgspec.json.encode(page()), head_only)


async def _read_head(stream: Stream) -> str:
    head = b""
    while b"\r\n\r\n" not in head:
        data = await stream.read(REQUEST_BYTES_MAX)
        head += data
        if not data or len(head) > REQUEST_BYTES_MAX:
            return ""
    return head.decode("latin-1")


def _host_named(head: str) -> str:
    """Whom the reader believes to be speaking to. A browser that was led here by another's page
    names that one's host: its name server says that it is here."""
    for line in head.split("\r\n")[1:]:
        name, _, value = line.partition(":")
        if name.lower() == "host":
            try:
                return urlsplit(f"//{value.strip()}").hostname or ""
            except ValueError:
                return ""
    return ""


def _response(status: str, content_type: str, body: bytes, head_only: bool = False) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() if head_only else head.encode() + body
