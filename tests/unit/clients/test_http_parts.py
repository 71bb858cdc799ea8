from __future__ import annotations

import pickle

import pytest

from hyperscale.clients.http.head import Head
from hyperscale.clients.http.proxy import proxy_for
from hyperscale.clients.http.reader import MAX_KEPT_HEADS, Heads
from hyperscale.clients.http.request import MAX_KEPT, RequestBuilder
from hyperscale.clients.http.route import Route
from hyperscale.clients.http.target import Target
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL, Headers
from hyperscale.workload.responses import HTTPResponse


@pytest.mark.parametrize(
    ("text", "url", "host", "port"),
    [
        ("http://h", "http://h/", "h", 80),
        ("HTTPS://H.Test:443/a?b#c", "https://h.test/a?b", "h.test", 443),
        ("http://h:8080?x=1", "http://h:8080/?x=1", "h", 8080),
        ("http://[::1]:81/", "http://[::1]:81/", "::1", 81),
        ("http://bücher.test/ü", "http://xn--bcher-kva.test/%C3%BC", "xn--bcher-kva.test", 80),
        ("http://h/a%20b/%2F?q=%26", "http://h/a%20b/%2F?q=%26", "h", 80),
        ("http://h./", "http://h/", "h", 80),
    ],
)
def test_targets(text: str, url: str, host: str, port: int) -> None:
    target = Target(text)
    assert (target.url, target.host, target.port) == (url, host, port)


@pytest.mark.parametrize(
    "text",
    ["", "h/path", "//h/", "ftp://h/", "http://", "http://h:x/", "http://h:99999/", "http://a b/"],
)
def test_bad_urls(text: str) -> None:
    with pytest.raises(BadInput):
        Target(text)


@pytest.mark.parametrize(
    ("no_proxy", "url", "direct"),
    [
        ("", "http://a.test/", False),
        ("*", "http://a.test/", True),
        ("a.test", "http://a.test/", True),
        ("a.test", "http://x.a.test/", True),
        (".a.test", "http://x.a.test/", True),
        ("a.test", "http://ba.test/", False),
        ("b.test, a.test:81", "http://a.test/", False),
        ("b.test, a.test:81", "http://a.test:81/", True),
        ("10.0.0.0/8", "http://10.1.2.3/", True),
        ("10.0.0.0/8", "http://11.1.2.3/", False),
        ("10.1.2.3", "http://10.1.2.3/", True),
        ("fd00::/8", "http://[fd00::1]/", True),
        ("", "http://127.0.0.1/", True),
        ("", "http://localhost/", True),
    ],
)
def test_no_proxy(no_proxy: str, url: str, direct: bool) -> None:
    environment = {"http_proxy": "http://p.test:3128", "NO_PROXY": no_proxy}
    proxy = proxy_for(Target(url), None, environment)
    assert (proxy is None) == direct


def test_proxy_choice() -> None:
    environment = {"HTTPS_PROXY": "p.test:1", "ALL_PROXY": "http://u:p%40@all.test"}
    https = proxy_for(Target("https://a.test"), None, environment)
    assert https is not None
    assert (https.host, https.port, https.auth) == ("p.test", 1, "")
    http = proxy_for(Target("http://a.test"), None, environment)
    assert http is not None
    assert (http.host, http.port) == ("all.test", 80)
    assert http.auth == "Basic dTpwQA=="
    own = proxy_for(Target("http://127.0.0.1"), "http://own.test:2", environment)
    assert own is not None
    assert own.host == "own.test"
    assert proxy_for(Target("http://a.test"), "", environment) is None


def builder() -> RequestBuilder:
    return RequestBuilder("", {"Accept": "*/*"}, lambda target: Route(target, None, None))


def test_constant_requests_are_kept_and_changing_ones_are_not() -> None:
    made = builder()
    url, headers = URL("http://h/"), Headers({"A": "1"})
    first = made.build(("GET", url, None, headers))
    assert made.kept["GET", url, None, headers] is first
    same = made.build(("GET", url, None, {"A": "1"}))
    assert made.kept["GET", url, None, (("A", "1"),)] is same
    made.build(("GET", url, None, {"A": 1}))
    made.build(("POST", url, None, None, None, None, None, None, None, "text"))
    assert len(made.kept) == 2
    for number in range(MAX_KEPT + 10):
        made.build(("GET", f"http://h/{number}"))
        made.bare_get(f"http://h/{number}")
    assert len(made.kept) <= MAX_KEPT
    assert len(made.bare_gets) <= MAX_KEPT
    assert made.bare_gets[f"http://h/{number}"].wire.startswith(b"GET /%d HTTP/1.1" % number)


def test_authors_headers_replace_the_defaults() -> None:
    call = ("POST", "http://h/", None, {"HOST": "x", "accept": None, "Content-type": "a/b"})
    wire = builder().build((*call, None, "token", None, None, {"a": 1})).wire
    assert wire == (
        b"POST / HTTP/1.1\r\nHOST: x\r\nContent-type: a/b\r\nAuthorization: Bearer token\r\n"
        b'Content-Length: 7\r\n\r\n{"a":1}'
    )


def test_heads_are_shared_bounded_and_not_kept_with_cookies() -> None:
    heads = Heads(100)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 5"
    assert heads.parse(head) is heads.parse(head)
    heads.parse(head + b"\r\nSet-Cookie: a=1")
    assert len(heads) == 1
    for number in range(MAX_KEPT_HEADS * 2):
        heads.parse(head + b"\r\nX-Id: %d" % number)
    assert len(heads) <= MAX_KEPT_HEADS


def test_folded_and_odd_headers() -> None:
    head = Head(b"HTTP/1.1 200\r\nA: 1\r\n  2\r\nB :3\r\nC:\r\nD: \xfc", 100)
    assert dict(head.headers) == {"a": "1   2".replace("   ", " "), "b": "3", "c": "", "d": "ü"}


def test_responses_travel_between_processes() -> None:
    request = builder().build(("GET", URL("http://h/"), None, Headers({"A": "1"})))
    head = Head(b"HTTP/1.1 200 OK\r\nX: 1\r\nContent-Length: 2", 100)
    made = HTTPResponse.answered(request, head, b"{}", 1.0, 1.0, 2.0, 3.0, 10)
    copy = pickle.loads(pickle.dumps(made))
    assert copy.json() == {}
    assert copy.headers["x"] == "1"
    assert copy.url == "http://h/"
