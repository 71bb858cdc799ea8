"""One way into everything that reads what an HTTP server sent, for property tests and the fuzzer.

`feed_all` may raise nothing but the typed refusals that it catches. It asserts that a response
reads the same in pieces as in one, with its body kept or not, and that nothing outgrows its limit.
"""

from __future__ import annotations

from contextlib import suppress

from hyperscale.clients.http.cookies import CookieJar
from hyperscale.clients.http.decoding import decode
from hyperscale.clients.http.head import BadHead
from hyperscale.clients.http.reader import DISCARD, Heads, ResponseReader, Sink
from hyperscale.clients.http.target import Target
from hyperscale.errors import BadInput
from hyperscale.workload.headers import header_value
from hyperscale.workload.results import CallFailed

LIMIT_BYTES = 4096
HEADS = Heads(LIMIT_BYTES, True, 1024)  # shared, as in a run: nothing in it may become wrong
CODINGS = ("gzip", "deflate", "br", "zstd")


def feed_all(data: bytes) -> None:
    for bodiless in (False, True):
        feed_reader(data, bodiless)
    feed_fast_path(data)
    feed_cookies(data)
    for coding in CODINGS:
        with suppress(CallFailed):
            assert len(decode(data, (coding,), LIMIT_BYTES)) <= LIMIT_BYTES


def read(
    data: bytes, step: int, bodiless: bool = False, sink: Sink | None = None
) -> ResponseReader:
    reader = ResponseReader(HEADS, bodiless, sink)
    for at in range(0, len(data), step):
        reader.feed(data[at : at + step])
    reader.end()
    assert reader.done
    assert bool(reader.error) or reader.head is not None
    return reader


def told(reader: ResponseReader) -> tuple[object, ...]:
    if reader.error or reader.head is None:
        return ("refused",)
    head = reader.head
    headers = dict(head.headers), dict(reader.trailers), head.location, head.set_cookies
    return head.status, headers, reader.size, reader.reusable


def feed_reader(data: bytes, bodiless: bool) -> None:
    whole = read(data, len(data) or 1, bodiless)
    assert len(whole.body) <= LIMIT_BYTES
    for step in (1, 7):
        pieces = read(data, step, bodiless)
        assert told(pieces) == told(whole)
        assert whole.error or pieces.body == whole.body
    given: list[bytes] = []
    sunk, discarded = read(data, 5, bodiless, given.append), read(data, 11, bodiless, DISCARD)
    assert told(sunk) == told(discarded)
    if not whole.error:
        assert told(sunk) == told(whole)
        assert b"".join(given) == whole.body
        with suppress(CallFailed):
            assert whole.head is not None
            whole.head.decode(whole.body)


def feed_fast_path(data: bytes) -> None:
    """What a connection does with a packet whose head it knows, or finds to be whole."""
    end = data.find(b"\r\n\r\n")
    if end <= 0:
        return
    try:
        head = HEADS.parse(data[:end])
    except BadHead:
        return
    if len(data) == head.whole:
        reader = read(data, len(data))
        assert told(reader)[0] == head.status
        assert (reader.body, reader.extra) == (data[end + 4 :], False)


def feed_cookies(data: bytes) -> None:
    jar = CookieJar()
    for line in data.split(b"\n")[:20]:
        text = line.decode("latin-1")
        jar.store(text, "a.test", "/x/y")
        with suppress(BadInput):
            Target(Target("http://a.test/x").resolve(text))
    for name, value in jar.matching("a.test", "/x/y", True):
        with suppress(BadInput):  # a CR within a line
            header_value("Cookie", f"{name}={value}")
