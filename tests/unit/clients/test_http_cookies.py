from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from hyperscale.clients.http.cookies import MAX_COOKIES, CookieJar
from hyperscale.clients.http.target import Target


def sent(jar: CookieJar, url: str) -> str:
    """The Cookie line of a request, as text of Latin-1."""
    target = Target(url)
    pairs = jar.matching(target.host, target.path, target.scheme == "https")
    return "; ".join(f"{name}={value}" for name, value in pairs)


def test_scope() -> None:
    jar = CookieJar()
    for line in (
        "host=1",
        "domain=1; Domain=.b.test",
        "path=1; Path=/deep/er",
        "secure=1; Secure; Path=/",
        "foreign=1; Domain=c.test",
        "top=1; Domain=test",
        "=nameless",
        "valueless",
    ):
        jar.store(line, "a.b.test", "/deep/page")
    assert sent(jar, "http://a.b.test/deep/er/x") == "path=1; host=1; domain=1"
    assert sent(jar, "http://a.b.test/deeper") == ""
    assert sent(jar, "https://a.b.test/") == "secure=1"
    assert sent(jar, "http://b.test/deep/") == "domain=1"
    assert sent(jar, "http://c.test/deep/") == ""


def test_replacement_expiry_and_bounds() -> None:
    jar = CookieJar()
    jar.store("a=old; Path=/", "h", "/")
    jar.store("a=new; Path=/; Max-Age=100; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "h", "/")
    jar.store("a=deep; Path=/x", "h", "/")
    jar.store(f"b=1; Expires={formatdate(time.time() + 100, usegmt=True)}", "h", "/")
    assert sent(jar, "http://h/") == "a=new; b=1"
    assert sent(jar, "http://h/x") == "a=deep; a=new; b=1"
    jar.store("a=; Path=/; Max-Age=0", "h", "/")
    jar.store("b=; Expires=Thu, 01-Jan-1970 00:00:00 GMT", "h", "/")
    assert sent(jar, "http://h/") == ""
    for number in range(MAX_COOKIES * 2):
        jar.store(f"c{number}=1", "h", "/")
    assert len(jar) == MAX_COOKIES
    jar.clear()
    jar.set("mine", "1", "h")
    assert sent(jar, "http://sub.h/") == "mine=1"


def test_longer_paths_first_then_older_ones() -> None:
    jar = CookieJar()
    for line in ("a=short", "b=long; Path=/x/y/", "c=mid; Path=/x", "d=short", "a=long; Path=/x/y"):
        jar.store(line, "h", "/")
    jar.set("e", "set", "h")
    assert sent(jar, "http://h/x/y/z") == "b=long; a=long; c=mid; a=short; d=short; e=set"
    jar.store("a=again", "h", "/")  # a new value, and as old as it was
    assert sent(jar, "http://h/") == "a=again; d=short; e=set"
    jar.store("a=; Max-Age=0", "h", "/")
    jar.store("a=anew", "h", "/")
    assert sent(jar, "http://h/") == "d=short; e=set; a=anew"


def test_a_cookie_that_is_set_again_outlives_others() -> None:
    jar = CookieJar()
    for number in range(MAX_COOKIES * 2):
        jar.store("session=1", "h", "/")
        jar.store(f"c{number}=1", "h", "/")
    assert sent(jar, "http://h/").startswith("session=1; ")


@pytest.mark.parametrize(
    ("line", "cookie"),
    [
        ("a=voil\xc3\xa0", "a=voil\xc3\xa0"),
        ("a=\xc3\x85", "a=\xc3\x85"),
        ("a=\xc3\x85; Path=/", "a=\xc3\x85"),
        ("\xc3\xa0=1", "\xc3\xa0=1"),
        (" a \t= b c\t", "a=b c"),
        ("a=\x0b1\x0c", "a=\x0b1\x0c"),
        ('a="x y"', 'a="x y"'),
        ("a=b=c==", "a=b=c=="),
        ("a=1,b=2", "a=1,b=2"),
        ("a=", "a="),
    ],
)
def test_values_keep_every_byte(line: str, cookie: str) -> None:
    jar = CookieJar()
    jar.store(line, "h", "/")
    assert sent(jar, "http://h/") == cookie
