from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import msgspec
import pydantic
import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.arguments import (
    URL,
    Auth,
    Cookies,
    Data,
    File,
    Headers,
    OptimizedArgument,
    Params,
)
from hyperscale.workload.http_options import HTTPOptions


class Model(pydantic.BaseModel):
    a: int


class Record(msgspec.Struct):
    a: int


@dataclasses.dataclass
class Row:
    a: int


@pytest.mark.parametrize(
    ("value", "body", "content_type"),
    [
        ({"a": 1}, b'{"a":1}', "application/json"),
        ([1, "ü"], '[1,"ü"]'.encode(), "application/json"),
        (Model(a=1), b'{"a":1}', "application/json"),
        ({"list": [Model(a=1)]}, b'{"list":[{"a":1}]}', "application/json"),
        (Record(1), b'{"a":1}', "application/json"),
        (Row(1), b'{"a":1}', "application/json"),
        ("text", b"text", "text/plain; charset=utf-8"),
        (bytearray(b"raw"), b"raw", "application/octet-stream"),
    ],
)
def test_data(value: object, body: bytes, content_type: str) -> None:
    data = Data(value)
    assert data.body() == (body, content_type)
    assert data.body() is data.body()


@pytest.mark.parametrize(
    ("value", "query"),
    [
        ({"page": 1, "limit": 100}, "?page=1&limit=100"),
        ([("a", 1), ("a", 2)], "?a=1&a=2"),
        ({"a": [1, 2], "b": None, "c": False}, "?a=1&a=2&c=false"),
        ({"q": "a b&c=ü"}, "?q=a%20b%26c%3D%C3%BC"),
        ("?a=1&b=x y", "?a=1&b=x%20y"),
        ({}, ""),
        ("", ""),
    ],
)
def test_params(value: object, query: str) -> None:
    assert Params(value).query() == query


def test_headers_cookies_and_auth() -> None:
    assert Headers({"X-A": 1, "X-B": b"b", "Accept": None}).lines() == (
        b"X-A: 1\r\nX-B: b\r\n",
        {"x-a", "x-b", "accept"},
    )
    assert Headers({"X": "grüß €"}).lines()[0] == "X: grüß €\r\n".encode()
    assert Cookies({"session": "abc", "n": 1}).pairs() == "session=abc; n=1"
    assert Auth(("user", "pass")).header() == "Basic dXNlcjpwYXNz"
    assert Auth("token").header() == "Bearer token"
    assert Auth("Digest x=1").header() == "Digest x=1"
    assert "secret" not in repr(Auth("secret"))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (URL, ""),
        (URL, 5),
        (URL, "http://h/\r\nX: 1"),
        (Headers, "X: 1"),
        (Params, 5),
        (Params, [1, 2]),
        (Cookies, "a=1"),
        (Cookies, {"a": "1; b=2"}),
        (Cookies, {"a b": "1"}),
        (Auth, ("a:b", "c")),
        (Auth, ""),
        (Auth, "a\r\nb"),
        (Data, None),
        (File, 5),
        (File, ""),
    ],
)
def test_bad_values_are_refused_when_made(kind: type[OptimizedArgument], value: object) -> None:
    with pytest.raises(BadInput):
        kind(value)


def test_values_json_cannot_hold_are_named() -> None:
    with pytest.raises(BadInput, match="object"):
        Data({"a": object()}).body()


def test_only_the_authors_value_travels(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_text("x")
    for argument in (URL("http://h/"), Data({"a": 1}), File(path), Auth(("a", "b"))):
        argument.optimized["http"] = lambda: None
        copy = pickle.loads(pickle.dumps(argument))
        assert type(copy) is type(argument)
        assert copy.value == argument.value
        assert copy.optimized == {}


def test_wrapping_is_idempotent_and_copies() -> None:
    headers = {"A": "1"}
    made = Headers.of(headers)
    headers["B"] = "2"
    assert made.value == {"A": "1"}
    assert Headers.of(made) is made


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"timeout": 0}, "timeout"),
        ({"connect_timeout": -1}, "connect_timeout"),
        ({"redirects": -1}, "redirects"),
        ({"max_response_bytes": 0}, "max_response_bytes"),
        ({"max_header_bytes": 0}, "max_header_bytes"),
        ({"max_header_bytes": "64k"}, "max_header_bytes"),
        ({"connections": "many"}, "connections"),
        ({"ip": "5"}, "ip"),
        ({"key": "k.pem"}, "cert"),
        ({"base_url": "/api"}, "base_url"),
        ({"timeout": "30s"}, "timeout"),
    ],
)
def test_options_are_checked(options: dict[str, object], named: str) -> None:
    with pytest.raises(BadInput, match=named):
        HTTPOptions(**options)  # type: ignore[arg-type]
