"""Whatever stands in an argument: it is sent as it is meant or refused with the argument's name."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from typing import Any

import pytest

from hyperscale.clients.http.verbs import DISCARD
from hyperscale.clients.limits import call_redirects, call_timeout
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import Data, Digest, File

from .requests import all_bytes, built, read, sent

HUGE = 10**5000  # more digits than Python writes
SURROGATE = "\ud800"
LOOP: list[Any] = []
LOOP.append(LOOP)


def ended() -> Iterator[bytes]:
    found = (piece for piece in [b"x"])
    list(found)
    return found


async def never() -> Any:
    yield b""


@pytest.mark.parametrize(
    ("named", "arguments"),
    [
        *[
            ("URL", {"url": url})
            for url in ("", None, 5, b"http://h/", [], HUGE, "http://h/\r\nX: y")
        ],
        *[("URL", {"url": f"http://h/{bad}"}) for bad in ("\t", "\0", "\x7f", SURROGATE)],
        ("host", {"url": "http://a b/"}),
        *[
            ("not a URL", {"url": url})
            for url in ("http://h:99999/", "http://[::1", "ftp://h/", "h/x")
        ],
        *[("header X", {"headers": {"X": bad}}) for bad in ("a\r\nY: b", "a\n", b"\0", SURROGATE)],
        *[
            ("header X", {"headers": {"X": bad}})
            for bad in ({}, {1}, object(), HUGE, print, ["a\n"])
        ],
        *[
            ("header name", {"headers": {bad: "v"}})
            for bad in ("X Y", ":path", "", "X\r\n", 5, b"X")
        ],
        ("header name", {"headers": [("X\n", "v")]}),
        ("header name", {"headers": [([], "v")]}),
        *[("headers", {"headers": bad}) for bad in ("X: 1", 5, [1], [("X",)], {1, 2}, iter([]))],
        ("Host", {"headers": {"Host": "a", "host": "b"}}),
        ("Host", {"headers": {"Host": ["a", "b"]}}),
        *[
            ("Transfer-Encoding", {"headers": {"Transfer-Encoding": bad}})
            for bad in (
                "gzip",
                "gzip, chunked",
                "identity",
                "",
                "chunked, chunked",
                "chunked\r\nX: y",
            )
        ],
        ("Transfer-Encoding", {"headers": [("Transfer-Encoding", "chunked")] * 2}),
        ("Content-Length", {"headers": {"Content-Length": "5\r\nX: y"}}),
        *[
            ("params", {"params": bad})
            for bad in (5, [1], ["ab"], [("a",)], SURROGATE, {"a": SURROGATE})
        ],
        *[("params", {"params": {"a": bad}}) for bad in ({}, object(), HUGE, [[1]])],
        ("params", {"params": {(1, 2): "v"}}),
        *[("form", {"form": bad}) for bad in ("a=1", 5, {"a": SURROGATE}, {"a": {}}, [1])],
        ("Cookies", {"cookies": "a=1"}),
        *[
            ("cookie a", {"cookies": {"a": bad}})
            for bad in ("b\r\nX: y", "b;c=d", SURROGATE, {}, HUGE)
        ],
        ("cookie", {"cookies": {"a b": "1"}}),
        *[("Auth", {"auth": bad}) for bad in ("a\r\nb", "", 5, ("a:b", "c"), ("a",), (b"a", b"b"))],
        ("Auth", {"auth": (SURROGATE, "p")}),
        ("auth", {"auth": ("u", "p", "ntlm")}),
        ("Digest", {"auth": ("u", 5, "digest")}),
        ("more than one body", {"json": 1, "data": "x"}),
        ("JSON", {"json": {"a": object()}}),
        ("JSON", {"json": LOOP}),
        ("JSON", {"json": {"a": SURROGATE}}),
        ("JSON", {"data": object()}),
        ("body", {"data": SURROGATE}),
        ("data", {"data": io.StringIO("text")}),
        ("data", {"data": ended()}),
        ("file /nonexistent", {"data": File("/nonexistent")}),
        ("file", {"data": File("a\0b")}),
        ("file /", {"data": File("/")}),
        *[
            ("files", {"files": bad})
            for bad in ("path", 5, [1], [("f",)], {"f": 5}, {"f": {}}, iter([]))
        ],
        ("files", {"files": {"f": io.StringIO("text")}}),
        ("files", {"files": {SURROGATE: b"x"}}),
        ("files", {"files": {"f": (SURROGATE, b"x")}}),
        ("file", {"files": {"f": ("n", b"x", "a/b\r\nX: y")}}),
        ("file /nonexistent", {"files": {"f": "/nonexistent"}}),
        *[("compress", {"data": "x", "compress": bad}) for bad in ("lzma", "", 5, ["gzip"], True)],
        ("compress", {"compress": "lzma"}),
        (
            "Content-Encoding",
            {"data": "x", "compress": "gzip", "headers": {"content-encoding": "x"}},
        ),
        *[("name", {"name": bad}) for bad in (5, "a\nb", SURROGATE)],
        *[("tags", {"tags": bad}) for bad in ("a", 5, ["a"], (1,), {"a": "b\r"}, {SURROGATE: 1})],
        ("sink", {"sink": 5}),
        ("discard_body", {"discard_body": "yes"}),
        ("sink and discard_body", {"sink": print, "discard_body": True}),
    ],
)
def test_refused_with_a_sentence(named: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refused:
        built("post", **{"url": "http://h/", **arguments})
    assert named in refused.value.message
    assert len(refused.value.message) < 400


@pytest.mark.parametrize(
    "method",
    ["", "GET ", "GET / HTTP/1.1\r\nX: y\r\n", "G(T", "GÉT", 5, None, b"GET", [], "CONNECT"],
)
def test_methods_that_are_none_are_refused(method: Any) -> None:
    with pytest.raises(BadInput, match=r"method|tunnel"):
        built("request", method, "http://h/")


def test_timeouts_that_are_none_are_refused() -> None:
    numbers = (0, 0.0, -1, math.nan, math.inf, -math.inf, HUGE, True)
    for value in (*numbers, "0s", "", "5 seconds", "-1s", b"5s", None, (1, 2), [], {}):
        with pytest.raises(BadInput, match="timeout of a call"):
            call_timeout(value)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(5, 5.0), (0.01, 0.01), ("5s", 5.0), ("500ms", 0.5), ("1m30s", 90.0), ("2", 2.0)],
)
def test_timeouts(value: Any, seconds: float) -> None:
    assert call_timeout(value) == seconds


def test_numbers_of_redirects() -> None:
    assert call_redirects(0) == 0
    assert call_redirects(3) == 3
    for bad in (True, False, "3", 1.5, None):
        with pytest.raises(BadInput, match="redirects of a call"):
            call_redirects(bad)


@pytest.mark.parametrize(
    "verb", ["get", "head", "options", "post", "put", "patch", "delete", "request"]
)
def test_where_the_answer_goes_is_no_part_of_the_request(verb: str) -> None:
    pieces: list[bytes] = []
    url = ("GET", "http://h/") if verb == "request" else ("http://h/",)
    way, plain, _ = sent(verb, *url)
    assert way == "_send"
    for arguments, sink in (
        ({"discard_body": True}, DISCARD),
        ({"discard_body": False}, None),
        ({"sink": pieces.append}, pieces.append),
    ):
        way, request, taken = sent(verb, *url, **arguments)
        assert (way, request.wire, taken) == ("_send_to", plain.wire, sink)


def test_a_digest_is_made_of_a_user_and_a_password() -> None:
    for bad in (("ab",), ("u", 5), ("a:b", "p"), (5,), (("u", "p", "x"),)):
        with pytest.raises(BadInput, match="Digest"):
            Digest(*bad)


def test_very_long_values_are_sent_whole() -> None:
    text = "x" * 2_000_000
    head, body = read(
        all_bytes(
            built(
                "post",
                f"http://h/{text}",
                headers={"X": text},
                cookies={"c": text},
                data=Data(text),
            )
        )
    )
    assert head.target == f"/{text}".encode()
    assert dict(head.headers)[b"x"] == text.encode()
    assert body == text.encode()
