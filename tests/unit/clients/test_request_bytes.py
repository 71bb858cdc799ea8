"""What goes on the wire, to the byte: URLs, headers, framing."""

from __future__ import annotations

import enum
import uuid
from typing import Any

import pytest

from hyperscale.clients.http.target import Target
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import Auth, Data, Digest, Headers, Params, headers_without

from .requests import all_bytes, builder, built, read, sent

HOST = b"Host: h\r\n"


class Color(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h/a", b"/a"),
        ("http://h/a b", b"/a%20b"),
        ("http://h/100%", b"/100%"),
        ("http://h/a%2Fb%20c%zz", b"/a%2Fb%20c%zz"),
        ("http://h/é/日本?q=ü", b"/%C3%A9/%E6%97%A5%E6%9C%AC?q=%C3%BC"),
        ("http://h/a\\b", b"/a%5Cb"),
        ('http://h/a[1]{2}|^`<>"', b"/a[1]%7B2%7D|%5E%60%3C%3E%22"),
        ("http://h/a#x", b"/a"),
        ("http://h/a?", b"/a?"),
        ("http://h/a?#x?y", b"/a?"),
        ("http://h/a#?", b"/a"),
        ("http://h?", b"/?"),
        ("http://h?x=1", b"/?x=1"),
        ("http://h", b"/"),
        ("http://h/a/../b/./c", b"/a/../b/./c"),
        ("http://h//a//b", b"//a//b"),
        ("http://h/a+b?q=a+b&r=%2B", b"/a+b?q=a+b&r=%2B"),
        ("http://h/a;p=1?q;r", b"/a;p=1?q;r"),
        ("http://h/?q='\"<>{}|\\^`", b"/?q='%22%3C%3E%7B%7D|%5C%5E%60"),
    ],
)
def test_targets_of_urls(url: str, target: bytes) -> None:
    assert built("get", url).wire == b"GET %b HTTP/1.1\r\n%b\r\n" % (target, HOST)


@pytest.mark.parametrize(
    ("url", "params", "target"),
    [
        (
            "/p",
            {"a": 1, "b": "x y", "c": [1, 2], "d": None, "e": True},
            "/p?a=1&b=x%20y&c=1&c=2&e=true",
        ),
        ("/p", {"f": "&=+#é"}, "/p?f=%26%3D%2B%23%C3%A9"),
        ("/p?z=1", {"a": 1}, "/p?z=1&a=1"),
        ("/p?", {"a": 1}, "/p?a=1"),
        ("/p", "a=1&b=x y", "/p?a=1&b=x%20y"),
        ("/p", "?a=1", "/p?a=1"),
        ("/p", b"a=\xff&b", "/p?a=%FF&b"),
        ("/p", [("a", 1), ("a", 2)], "/p?a=1&a=2"),
        ("/p", {"a": 1}.items(), "/p?a=1"),
        ("/p", {}, "/p"),
        ("/p?", {}, "/p?"),
        ("/p", {"x": 1.5, "b": b"raw\xff&"}, "/p?x=1.5&b=raw%FF%26"),
        ("/p", {b"n\xff": "1"}, "/p?n%FF=1"),
        ("/p", {"u": uuid.UUID(int=1), "c": Color.RED}, f"/p?u={uuid.UUID(int=1)}&c=Color.RED"),
        ("/p", {"nested": ["a", b"b", None, True]}, "/p?nested=a&nested=b&nested=true"),
    ],
)
def test_params(url: str, params: Any, target: str) -> None:
    for given in (params, Params(params)):
        wire = built("get", f"http://h{url}", params=given).wire
        assert wire == f"GET {target} HTTP/1.1\r\nHost: h\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("host", "ascii_host"),
    [
        ("straße.test", "xn--strae-oqa.test"),
        ("faß.test", "xn--fa-hia.test"),
        ("FAẞ.test", "xn--fa-hia.test"),
        ("münchen.test", "xn--mnchen-3ya.test"),
        ("日本語.test", "xn--wgv71a119e.test"),
        ("BÜCHER.test", "xn--bcher-kva.test"),
        ("💩.test", "xn--ls8h.test"),
        ("I♥NY.test", "xn--iny-zx5a.test"),
        ("例え。テスト", "xn--r8jz45g.xn--zckzah"),
        ("例え。", "xn--r8jz45g"),
        ("a_b.ü.test", "a_b.xn--tda.test"),
        ("Ｆｕｌｌ.test", "full.test"),
        ("xn--strae-oqa.test", "xn--strae-oqa.test"),
        ("under_score.test", "under_score.test"),
        ("H.Test.", "h.test"),
        ("127.1", "127.1"),
    ],
)
def test_hosts_become_ascii_as_in_browsers(host: str, ascii_host: str) -> None:
    target = Target(f"http://{host}/")
    assert target.host == target.host_header == ascii_host


@pytest.mark.parametrize(
    "host", ["ü..test", "xn--ü", f"{'ü' * 80}.test", "ü b", "a@ü:b", "ü%0d.x\x00"]
)
def test_hosts_that_are_none_are_refused(host: str) -> None:
    with pytest.raises(BadInput):
        Target(f"http://{host}/")


@pytest.mark.parametrize("written", ["fe80::1%25Eth0", "FE80::1%Eth0"])
def test_the_zone_of_an_address_is_for_connecting_only(written: str) -> None:
    request = built("get", f"http://[{written}]:81/x")
    assert request.wire == b"GET /x HTTP/1.1\r\nHost: [fe80::1]:81\r\n\r\n"
    assert (request.route.host, request.url) == ("fe80::1%Eth0", "http://[fe80::1]:81/x")
    assert Target(request.target.resolve("/y")).host == "fe80::1%Eth0"


def test_a_location_keeps_bytes_that_are_not_utf8() -> None:
    target = Target("http://h/x")
    assert Target(target.resolve(b"/caf\xe9".decode("utf-8", "surrogateescape"))).path == "/caf%E9"
    assert Target(target.resolve("/café")).path == "/caf%C3%A9"
    assert Target(target.resolve("http://straße.test/")).host == "xn--strae-oqa.test"


@pytest.mark.parametrize(
    ("url", "auth", "line"),
    [
        ("http://u:p@h/", None, b"Basic dTpw"),
        ("http://u@h/", None, b"Basic dTo="),
        ("http://:p@h/", None, b"Basic OnA="),
        ("http://u%E9:p%40@h/", None, b"Basic dek6cEA="),
        ("http://h/", ("u", "p"), b"Basic dTpw"),
        ("http://h/", ["u", "p"], b"Basic dTpw"),
        ("http://h/", ("u", "p", "basic"), b"Basic dTpw"),
        ("http://h/", Auth(("u", "p")), b"Basic dTpw"),
        ("http://h/", "tok", b"Bearer tok"),
        ("http://h/", 'Digest username="u"', b'Digest username="u"'),
        ("http://x:y@h/", ("u", "p"), b"Basic dTpw"),
    ],
)
def test_authorization(url: str, auth: Any, line: bytes) -> None:
    wire = built("get", url, auth=auth).wire
    assert wire == b"GET / HTTP/1.1\r\n%bAuthorization: %b\r\n\r\n" % (HOST, line)


@pytest.mark.parametrize("auth", [Digest("u", "p"), Digest(("u", "p")), ("u", "p", "digest")])
def test_digest_waits_for_the_challenge(auth: Any) -> None:
    request = built("get", "http://x:y@h/", auth=auth)
    assert request.wire == b"GET / HTTP/1.1\r\n%b\r\n" % HOST
    assert isinstance(request.call.auth, Digest)
    assert request.call.auth.value == ("u", "p")
    assert "p" not in repr(request.call.auth).removeprefix("Digest")


@pytest.mark.parametrize(
    ("headers", "lines"),
    [
        ({"Host": "other"}, "Host: other\r\n"),
        ({"HOST": "other"}, "HOST: other\r\n"),
        ({"Connection": "close"}, "Host: h\r\nConnection: close\r\n"),
        ({"X-Case": "v"}, "Host: h\r\nX-Case: v\r\n"),
        ({"X": "grüß"}, "Host: h\r\nX: gr\xfc\xdf\r\n"),
        ({"X": b"\xff\xa0"}, "Host: h\r\nX: \xff\xa0\r\n"),
        ({"X": "voilà\xa0"}, "Host: h\r\nX: voil\xe0\xa0\r\n"),
        ({"X": " v\t"}, "Host: h\r\nX: v\r\n"),
        ({"X": 5}, "Host: h\r\nX: 5\r\n"),
        ({"X": True}, "Host: h\r\nX: true\r\n"),
        ({"X": uuid.UUID(int=0)}, f"Host: h\r\nX: {uuid.UUID(int=0)}\r\n"),
        ({"X": ""}, "Host: h\r\nX: \r\n"),
        ({"X": None}, "Host: h\r\n"),
        ({"X": ["a", "b"]}, "Host: h\r\nX: a\r\nX: b\r\n"),
        ({"X": ("a", 1, None, b"c")}, "Host: h\r\nX: a\r\nX: 1\r\nX: c\r\n"),
        ({"X": []}, "Host: h\r\n"),
        ([("X", "a"), ("Y", "b"), ("x", "c")], "Host: h\r\nX: a\r\nY: b\r\nx: c\r\n"),
        ((("X", "a"), ["X", "b"]), "Host: h\r\nX: a\r\nX: b\r\n"),
        ([], "Host: h\r\n"),
        ({"Content-Length": "5"}, "Host: h\r\n"),
        ({"content-length": None, "Transfer-Encoding": None}, "Host: h\r\n"),
    ],
)
def test_headers(headers: Any, lines: str) -> None:
    for given in (headers, Headers(headers)):
        wire = built("get", "http://h/", headers=given).wire
        assert wire == b"GET / HTTP/1.1\r\n" + lines.encode("latin-1") + b"\r\n"


def test_a_repeated_header_replaces_a_default_as_one_does() -> None:
    made = builder()
    made = type(made)("", {"Accept": "*/*"}, made._route_for)
    wire = sent("get", "http://h/", headers=[("accept", "a"), ("accept", "b")], made=made)[1].wire
    assert wire == b"GET / HTTP/1.1\r\nHost: h\r\naccept: a\r\naccept: b\r\n\r\n"


@pytest.mark.parametrize(
    "headers", [{"A": "1", "b": "2", "C": "3"}, [("A", "1"), ("b", "2"), ("B", "0"), ("C", "3")]]
)
def test_headers_without_some(headers: Any) -> None:
    expected: Any = {"A": "1", "C": "3"}
    if isinstance(headers, list):
        expected = list(expected.items())
    assert headers_without(headers, frozenset({"b"})) == expected
    assert headers_without(Headers(headers), frozenset({"b"})) == expected
    assert headers_without(None, frozenset({"b"})) is None


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
@pytest.mark.parametrize(
    ("headers", "body", "tail"),
    [
        ({}, None, b"Content-Length: 0\r\n\r\n"),
        ({}, b"", b"Content-Type: application/octet-stream\r\nContent-Length: 0\r\n\r\n"),
        ({"Content-Length": "7"}, None, b"Content-Length: 0\r\n\r\n"),
        ({"Content-Length": 3}, b"0123456789", b"Content-Length: 10\r\n\r\n0123456789"),
        ({"content-length": "300"}, b"0123456789", b"Content-Length: 10\r\n\r\n0123456789"),
        ({"Content-Length": ["1", "2"]}, b"0123456789", b"Content-Length: 10\r\n\r\n0123456789"),
        ([("Content-Length", "1")], b"0123456789", b"Content-Length: 10\r\n\r\n0123456789"),
        (
            {"Transfer-Encoding": "chunked"},
            b"0123456789",
            b"Transfer-Encoding: chunked\r\nContent-Type: application/octet-stream\r\n\r\n"
            b"a\r\n0123456789\r\n0\r\n\r\n",
        ),
        (
            {"transfer-encoding": "Chunked", "Content-Length": "10"},
            b"0123456789",
            b"transfer-encoding: Chunked\r\nContent-Type: application/octet-stream\r\n\r\n"
            b"a\r\n0123456789\r\n0\r\n\r\n",
        ),
        ({"Transfer-Encoding": b"chunked"}, None, b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ],
)
def test_framing_is_the_clients(method: str, headers: Any, body: Any, tail: bytes) -> None:
    for given, data in ((headers, body), (Headers(headers), body and Data(body))):
        wire = built("request", method, "http://h/", headers=given, data=data).wire
        assert wire.startswith(f"{method} / HTTP/1.1\r\nHost: h\r\n".encode())
        assert wire.endswith(tail)
        head, content = read(wire)
        assert content == (body or b"")
        assert len([name for name, _ in head.headers if name == b"content-length"]) <= 1


def test_get_says_nothing_of_a_body_it_does_not_have() -> None:
    for verb in ("get", "head", "options", "delete"):
        wire = built(verb, "http://h/", headers={"Content-Length": "5"}).wire
        assert wire == b"%b / HTTP/1.1\r\n%b\r\n" % (verb.upper().encode(), HOST)


@pytest.mark.parametrize(
    "method", ["M-SEARCH", "VERSION-CONTROL", "PURGE", "TRACE", "x.y~z", "get"]
)
def test_methods_are_tokens(method: str) -> None:
    wire = built("request", method, "http://h/").wire
    assert wire.startswith(f"{method.upper()} / HTTP/1.1\r\n".encode())


def test_the_first_argument_after_the_url_is_that_of_requests() -> None:
    assert built("get", "http://h/", {"a": 1}).url == "http://h/?a=1"
    assert read(built("post", "http://h/", b"raw").wire)[1] == b"raw"
    assert read(built("put", "http://h/", None, {"a": 1}).wire)[1] == b'{"a":1}'


@pytest.mark.parametrize(
    ("arguments", "content_type", "body"),
    [
        ({"json": {"a": 1}}, b"application/json", b'{"a":1}'),
        ({"json": False}, b"application/json", b"false"),
        ({"json": float("nan")}, b"application/json", b"null"),
        ({"data": "grüß"}, b"text/plain; charset=utf-8", "grüß".encode()),
        ({"data": {"a": 1}}, b"application/json", b'{"a":1}'),
        ({"data": bytearray(b"raw")}, b"application/octet-stream", b"raw"),
        ({"data": memoryview(b"raw")}, b"application/octet-stream", b"raw"),
        (
            {"form": {"a": "1 2", "b": [True, b"\xff"], "c": None}},
            b"application/x-www-form-urlencoded",
            b"a=1+2&b=true&b=%FF",
        ),
        ({"form": {}}, b"application/x-www-form-urlencoded", b""),
        ({"data": "x", "headers": {"Content-Type": "a/b"}}, b"a/b", b"x"),
    ],
)
def test_bodies(arguments: dict[str, Any], content_type: bytes, body: bytes) -> None:
    head, content = read(built("post", "http://h/", **arguments).wire)
    assert dict(head.headers)[b"content-type"] == content_type
    assert content == body


def test_a_cookie_of_none_is_not_sent() -> None:
    wire = built("get", "http://h/", cookies={"a": 1, "b": None}).wire
    assert wire == b"GET / HTTP/1.1\r\n%bCookie: a=1\r\n\r\n" % HOST


def test_kept_requests_are_what_building_them_gives() -> None:
    made = builder()
    for headers in ({"Transfer-Encoding": "chunked"}, {"Content-Length": "1", "X": "1"}):
        data = Data(b"0123")
        first, second = (
            sent("post", "http://h/", headers=headers, data=data, made=made)[1] for _ in range(2)
        )
        assert first is second
        assert read(all_bytes(first))[1] == b"0123"


def test_cookies_of_a_jar_may_have_one_name_and_the_authors_win() -> None:
    request = built("get", "http://h/", cookies={"mine": "1"})
    kept = [("a", "deep"), ("mine", "0"), ("a", "voil\xe0\xa0")]
    line = b"Cookie: a=deep; a=voil\xe0\xa0; mine=1\r\n"
    assert request.with_cookies(kept).wire == b"GET / HTTP/1.1\r\n%b%b\r\n" % (HOST, line)
    assert request.with_cookies([("b", "2")]).wire.endswith(b"Cookie: b=2; mine=1\r\n\r\n")
    assert request.with_cookies([]) is request
