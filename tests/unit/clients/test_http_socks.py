"""SOCKS5 and CONNECT byte by byte, as RFC 1928, RFC 1929 and RFC 9110 have them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.clients.http.proxy import Proxy
from hyperscale.clients.http.reader import Heads
from hyperscale.clients.http.socks import Socks5
from hyperscale.clients.http.tunnel import ConnectTunnel, Handshake
from hyperscale.errors import BadInput
from hyperscale.workload.results import Outcome

PLAIN = Proxy("socks5h://p.test")
NAMED = Proxy("socks5h://me:p%40ss@p.test:9")
GRANTED = b"\x05\x00\x00\x01\x7f\x00\x00\x01\x1f\x90"


def socks(proxy: Proxy = PLAIN, host: str = "far.test", port: int = 443) -> Socks5:
    return Socks5(proxy, f"{host}:{port}", host, port)


def connect(proxy: str = "http://p.test:3128") -> ConnectTunnel:
    return ConnectTunnel(Heads(100), Proxy(proxy), "far.test:443")


def test_a_name_without_a_password() -> None:
    made = socks()
    assert made.start() == b"\x05\x01\x00"
    assert made.feed(b"\x05\x00") == b"\x05\x01\x00\x03\x08far.test\x01\xbb"
    assert made.feed(GRANTED) == b""
    assert made.done
    assert made.failure() is None


@pytest.mark.parametrize(
    ("host", "asked"),
    [
        ("10.0.0.7", b"\x01\x0a\x00\x00\x07"),
        ("::1", b"\x04" + bytes(15) + b"\x01"),
        ("fe80::1%eth0", b"\x04\xfe\x80" + bytes(13) + b"\x01"),
        ("a" * 253, b"\x03\xfd" + b"a" * 253),
    ],
)
def test_addresses_and_names(host: str, asked: bytes) -> None:
    made = socks(host=host, port=80)
    made.start()
    assert made.feed(b"\x05\x00") == b"\x05\x01\x00" + asked + b"\x00\x50"


def test_with_a_password() -> None:
    made = socks(NAMED)
    assert made.start() == b"\x05\x02\x00\x02"
    assert made.feed(b"\x05\x02") == b"\x01\x02me\x04p@ss"
    assert made.feed(b"\x01\x00").startswith(b"\x05\x01\x00\x03")
    made.feed(b"\x05\x00\x00\x03\x06a.test\x00\x00")
    assert made.done
    assert not made.error
    made = socks(NAMED)
    made.start()
    assert made.feed(b"\x05\x00").startswith(b"\x05\x01")  # it wants none


@pytest.mark.parametrize(
    ("proxy", "answers", "outcome", "sentence"),
    [
        (PLAIN, [b"\x05\xff"], Outcome.REFUSED, "it asks for a user and password"),
        (NAMED, [b"\x05\xff"], Outcome.REFUSED, "it takes no user and password"),
        (NAMED, [b"\x05\x02", b"\x01\x01"], Outcome.REFUSED, "does not accept the user or passw"),
        (PLAIN, [b"\x05\x02"], Outcome.PROTOCOL, "chose method 2, which was not offered"),
        (PLAIN, [b"HTTP/1.1 400 Bad"], Outcome.PROTOCOL, "not speak SOCKS5; did you mean http://?"),
        (PLAIN, [b"\x04\x5a"], Outcome.PROTOCOL, "does not speak SOCKS5 when asked for far.test"),
        (PLAIN, [b"\x05\x00\x05"], Outcome.PROTOCOL, "spoke before it was asked"),
        (PLAIN, [b"\x05\x00", b"\x05\x05"], Outcome.REFUSED, "the target refused the connection"),
        (PLAIN, [b"\x05\x00", b"\x05\x04"], Outcome.REFUSED, "the host cannot be reached"),
        (PLAIN, [b"\x05\x00", b"\x05\x63"], Outcome.REFUSED, "SOCKS error 99"),
        (PLAIN, [b"\x05\x00", b"\x07\x00"], Outcome.PROTOCOL, "something that is not SOCKS5"),
        (
            PLAIN,
            [b"\x05\x00", b"\x05\x00\x00\x09\x00"],
            Outcome.PROTOCOL,
            "unknown kind of address",
        ),
        (PLAIN, [b"\x05\x00", GRANTED + b"x"], Outcome.PROTOCOL, "sent more than its answer"),
        (PLAIN, [], Outcome.PROTOCOL, "closed the connection"),
        (PLAIN, [b"\x05\x00", GRANTED[:9]], Outcome.PROTOCOL, "closed the connection"),
    ],
)
def test_what_socks_proxies_say_instead(
    proxy: Proxy, answers: list[bytes], outcome: Outcome, sentence: str
) -> None:
    made = socks(proxy)
    made.start()
    for answer in answers:
        made.feed(answer)
    made.end()
    failure = made.failure()
    assert failure is not None
    assert failure.outcome is outcome
    assert sentence in failure.error
    assert failure.error.startswith(proxy.name)
    assert "p@ss" not in failure.error


@given(st.lists(st.integers(min_value=1, max_value=9), max_size=20))
def test_answers_may_come_in_any_pieces(sizes: list[int]) -> None:
    made = socks(NAMED)
    sent = [made.start()]
    for answer in (b"\x05\x02", b"\x01\x00", GRANTED):
        at = 0
        for size in [*sizes, len(answer)]:
            if answer[at : at + size]:
                sent.append(made.feed(answer[at : at + size]))
            at += size
    assert made.done
    assert not made.error
    assert b"".join(sent) == (
        b"\x05\x02\x00\x02" + b"\x01\x02me\x04p@ss" + b"\x05\x01\x00\x03\x08far.test\x01\xbb"
    )


@given(st.lists(st.binary(min_size=1, max_size=30), max_size=8), st.booleans())
def test_no_bytes_of_a_proxy_raise(answers: list[bytes], is_socks: bool) -> None:
    made: Handshake = socks(NAMED) if is_socks else connect()
    made.start()
    for answer in answers:
        if not made.done:
            made.feed(answer)
    made.end()
    assert made.done


@pytest.mark.parametrize(
    ("answer", "outcome", "sentence"),
    [
        (b"HTTP/1.1 200 Connection established\r\n\r\n", None, ""),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", None, ""),
        (b"HTTP/1.1 100 Wait\r\n\r\nHTTP/1.1 204 Go\r\n\r\n", None, ""),
        (b"HTTP/1.1 407 Who\r\n\r\n", Outcome.REFUSED, "asks for another user or password (407"),
        (b"HTTP/1.1 502 No\r\n\r\n", Outcome.REFUSED, "the tunnel to far.test:443: 502 No"),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", Outcome.PROTOCOL, "sent more than its answer"),
        (b"SSH-2.0-x\r\n", Outcome.PROTOCOL, "not HTTP"),
        (b"HTTP/1.1 200 O", Outcome.PROTOCOL, "when asked for far.test:443"),
    ],
)
def test_connect(answer: bytes, outcome: Outcome | None, sentence: str) -> None:
    made = connect("http://u:p@p.test")
    assert made.start() == (
        b"CONNECT far.test:443 HTTP/1.1\r\nHost: far.test:443\r\n"
        b"Proxy-Authorization: Basic dTpw\r\n\r\n"
    )
    assert made.feed(answer) == b""
    made.end()
    failure = made.failure()
    assert (failure.outcome if failure else None) is outcome
    assert sentence in made.error


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port", "user"),
    [
        ("p.test:1", "http", "p.test", 1, None),
        ("https://p.test", "https", "p.test", 443, None),
        ("SOCKS5://u:p%3A@[::1]", "socks5", "::1", 1080, "u"),
        ("socks5h://p.test:7", "socks5h", "p.test", 7, None),
    ],
)
def test_kinds_of_proxies(url: str, scheme: str, host: str, port: int, user: str | None) -> None:
    proxy = Proxy(url)
    assert (proxy.scheme, proxy.host, proxy.port, proxy.user) == (scheme, host, port, user)
    assert not proxy.auth


@pytest.mark.parametrize(
    "url", ["socks4://p.test", "socks5://", "socks5://:pw@p.test", "http://p:x"]
)
def test_proxies_that_cannot_be_used(url: str) -> None:
    with pytest.raises(BadInput, match="ALL_PROXY"):
        Proxy(url, "ALL_PROXY")
