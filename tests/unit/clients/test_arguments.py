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
from hyperscale.workload.http_options import ClientCert, HTTPOptions


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
        ({"key_password": "x"}, "key_password is set without http.cert"),
        ({"cert": "c", "key_password": b"x"}, "key_password must be text, not a bytes"),
        ({"tls_min": "1.4"}, "tls_min must be"),
        ({"tls_max": 1.2}, "tls_max must be"),
        ({"tls_min": "1.3", "tls_max": "1.2"}, "tls_min 1.3 is above http.tls_max 1.2"),
        ({"tls_min": "1.3", "ciphers": "HIGH"}, "ciphers means nothing"),
        ({"certs": ("shop.pem",)}, "certs must be a tuple of ClientCert"),
        ({"proxy": "socks4://p.test"}, "cannot be of the kind socks4://"),
        ({"hosts": ["a"]}, "hosts must be a dict"),
        ({"hosts": {"a.test": "b.test"}}, "maps a.test to 'b.test', which is no address"),
        ({"hosts": {"a.test": "10.0.0.1:x"}}, "which is no address"),
        ({"hosts": {"a.test": 7}}, "which is no address"),
        ({"hosts": {"a.*.test": "10.0.0.1"}}, "which is no host"),
        ({"hosts": {"http://a.test": "10.0.0.1"}}, "which is no host"),
        ({"dns_ttl": -1}, "dns_ttl"),
        ({"local_addresses": "10.0.0.1"}, "local_addresses must be a tuple"),
        ({"local_addresses": ("eth0",)}, "'eth0', which is no address"),
        ({"local_addresses": ("10.0.0.0/8",)}, "at most 65536"),
    ],
)
def test_options_are_checked(options: dict[str, object], named: str) -> None:
    with pytest.raises(BadInput, match=named):
        HTTPOptions(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("domains", ["", (), ("",), "a.*", ("ok.test", "http://x"), None])
def test_domains_of_client_certificates_are_checked(domains: object) -> None:
    with pytest.raises(BadInput, match="ClientCert"):
        ClientCert(domains, cert="c.pem")  # type: ignore[arg-type]


def test_files_of_options_can_be_elsewhere() -> None:
    certs = (ClientCert("a", "a.pem", "a.key"), ClientCert("b", "b.pem"))
    options = HTTPOptions(ca="ca.pem", cert="me.pem", certs=certs, timeout=7)
    assert [file for _, file in options.files()] == ["ca.pem", "me.pem", "a.pem", "a.key", "b.pem"]
    moved = options.with_files(lambda file: f"/there/{file}")
    assert [file for _, file in moved.files()] == [f"/there/{file}" for _, file in options.files()]
    assert moved.certs[1].key is None
    assert moved.timeout == 7
