"""Where h11 or llhttp read a response to its end, this client reads the same.

What they read and this client refuses is listed with the reason: nothing is refused by accident.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fixtures.http_oracles import Read, by_h11, by_httptools, by_reader
from tests.fixtures.http_replies import REPLIES

ORACLES: dict[str, Callable[[bytes], Read | None]] = {"h11": by_h11, "httptools": by_httptools}

SEEDS = [reply.data for reply in REPLIES.values() if len(reply.data) < 1000]

line_ends = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n"])
blanks = st.sampled_from([b"", b" ", b"\t", b"  \t"])
names = st.sampled_from([b"X", b"y-z", b"A_b", b"!#$%&'*+.^`|~", b"Content-Type", b"Vary"])
values = st.binary(max_size=12).map(lambda value: re.sub(rb"[\x00-\x08\x0a-\x1f\x7f]", b"", value))
statuses = st.sampled_from(
    [b"200 OK", b"200", b"404 Not \xe9", b"999 x", b"301 ", b"204 No", b"304"]
)
spoils = st.sampled_from(
    [b"", b"\r", b"\n", b"\r\n", b" ", b"\t", b":", b"\0", b"0", b";", b"\xa0"]
)


@st.composite
def fields(draw: st.DrawFn, name: bytes, value: bytes, end: bytes) -> bytes:
    fold = draw(st.sampled_from([b"", b"", b"", end + b" ", end + b"\t "]))
    return name + b":" + draw(blanks) + fold + value + draw(blanks) + end


@st.composite
def replies(draw: st.DrawFn) -> bytes:
    end = draw(line_ends)
    interim = b"HTTP/1.1 100 Continue" + end + end
    head = draw(st.sampled_from([b"", b"", interim, interim * 2]))
    head += b"HTTP/1." + draw(st.sampled_from([b"1", b"1", b"0"])) + b" " + draw(statuses) + end
    for name, value in draw(st.lists(st.tuples(names, values), max_size=3)):
        head += draw(fields(name, value, end))
    body = draw(st.binary(max_size=40))
    framing = draw(st.sampled_from([b"Content-Length", b"Transfer-Encoding", b""]))
    if framing == b"Content-Length":
        length = draw(st.sampled_from([b"%d", b"0%d", b"%d,%d"]))
        said = length % ((len(body),) * length.count(b"%d"))
        return head + draw(fields(framing, said, end)) + end + body
    if not framing:
        return head + end + body
    head += draw(fields(framing, draw(st.sampled_from([b"chunked", b"Chunked"])), end)) + end
    while body:
        size = draw(st.integers(1, len(body)))
        extension = draw(st.sampled_from([b"", b";a", b";a=b", b';a="b;c"']))
        head += b"%x%b\r\n%b\r\n" % (size, extension, body[:size])
        body = body[size:]
    trailer = draw(st.sampled_from([b"", b"T: 1\r\n", b"T: 1\r\nU: 2\r\n", b"T: 1\n"]))
    return head + b"0\r\n" + trailer + draw(st.sampled_from([b"\r\n", b"\n"]))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    data = draw(st.sampled_from(SEEDS) | replies())
    for at, length, spoil in draw(
        st.lists(st.tuples(st.integers(0, 300), st.integers(0, 3), spoils), min_size=1, max_size=3)
    ):
        at %= len(data) + 1
        data = data[:at] + spoil + data[at + length :]
    return data


def refused_on_purpose(oracle: str, data: bytes, error: str) -> str:
    """Why this client refuses what the other one reads, or nothing."""
    if "max_header_bytes" in error or "max_response_bytes" in error:
        return "there are limits"
    if "not HTTP" in error or "HTTP/2" in error:
        start = data.lstrip(b"\r\n")
        if not re.match(rb"HTTP/1\.[01] [1-9][0-9][0-9][ \r\n]", start):
            return "versions other than 1.0 and 1.1, and statuses below 100, are no HTTP/1.1"
        if start != data or re.search(rb"\n[\r\n]+HTTP/", data):
            return "blank lines before a status line are for servers to skip, not for clients"
    if "malformed header" in error and re.search(rb"\r[^\n]|\r$", data):
        return "CR that ends no line could end one for somebody else"
    if "malformed header" in error and re.search(rb"HTTP/1[^\r\n]*\0", data):
        return "NUL stands nowhere in a head, not even in the reason"
    if "senseless chunk size" in error:
        if re.search(rb"[0-9A-Fa-f]{16}", data):
            return "sixteen digits of a chunk size: more than any memory"
        if re.search(rb";[^\n]*\r[^\n]", data):
            return "CR in a chunk extension could end a line for somebody else"
    if "unsupported Transfer-Encoding" in error:
        return "only chunked is asked for; other codings would have to be taken off"
    return ""


def agree(oracle: str, data: bytes) -> None:
    theirs = ORACLES[oracle](data)
    if theirs is None:
        return
    ours, error = by_reader(data)
    if ours is None:
        assert refused_on_purpose(oracle, data, error), (error, theirs)
        return
    if oracle == "h11":  # it writes these anew: "chunked" for "Chunked", "5" for "5, 5"
        for name in ("content-length", "transfer-encoding"):
            assert (name in ours.headers) == (name in theirs.headers)
            theirs.headers[name] = ours.headers.get(name, "")
            ours.headers.setdefault(name, "")
    assert ours == theirs


@pytest.mark.parametrize("oracle", ORACLES)
@given(data=replies())
def test_well_formed_replies(oracle: str, data: bytes) -> None:
    agree(oracle, data)


@pytest.mark.parametrize("oracle", ORACLES)
@given(data=damaged())
@example(b"HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n")
def test_damaged_replies(oracle: str, data: bytes) -> None:
    agree(oracle, data)


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("name", [name for name, reply in REPLIES.items() if not reply.bodiless])
def test_known_replies(oracle: str, name: str) -> None:
    agree(oracle, REPLIES[name].data)


def test_the_oracles_read() -> None:
    """They would agree with anything that they never read."""
    counts = {
        name: sum(read(reply.data) is not None for reply in REPLIES.values())
        for name, read in ORACLES.items()
    }
    assert min(counts.values()) > 40, counts
