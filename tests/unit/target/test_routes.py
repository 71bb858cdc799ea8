from __future__ import annotations

import gzip

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.target import routes
from hyperscale.target.routes import new_site
from hyperscale.target.site import OTHER_PATHS, PATHS_COUNTED
from tests.unit.target.wire import Wire, get

JSON = "Content-Type: application/json"


def ask(
    path: str, *headers: str, method: str = "GET", body: bytes = b"", wire: Wire | None = None
) -> tuple[int, str, bytes]:
    """Status, head and body of the answer."""
    answer = (wire or Wire()).feed(get(path, *headers, method=method, body=body))
    head, _, content = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode("latin-1"), content


def ask_json(path: str, *headers: str, method: str = "GET", body: bytes = b"") -> dict:  # type: ignore[type-arg]
    return msgspec.json.decode(ask(path, *headers, method=method, body=body)[2], type=dict)


@pytest.mark.parametrize("path", ["/nothing", "/json/more", "/bytes", "//", "/bytes/1/2", "*"])
def test_unknown_paths_are_not_found(path: str) -> None:
    assert ask(path)[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        "/bytes/",
        "/bytes/x",
        "/bytes/-1",
        "/bytes/999999999999",
        "/bytes/\u0663",
        "/delay/60001",
        "/status/99",
        "/status/600",
        "/flaky/101",
        "/flaky/nan",
        "/redirect/2?status=404",
        "/chunked?size=0",
        "/stall?ms=x",
        "/items/x",
        "/cookies/set?a=b%0d%0aX:y",
        "/cookies/set?=b",
    ],
)
def test_impossible_wishes_are_refused_with_a_reason(path: str) -> None:
    status, _, body = ask(path)
    assert status == 400
    assert body.strip()


@pytest.mark.parametrize("count", [0, 1, 1000, routes.BYTES_REMEMBERED + 1])
def test_bytes(count: int) -> None:
    assert len(ask(f"/bytes/{count}")[2]) == count


@pytest.mark.parametrize("code", [200, 201, 404, 418, 500, 503, 599])
def test_status(code: int) -> None:
    assert ask(f"/status/{code}")[0] == code


@pytest.mark.parametrize("code", [204, 304])
def test_statuses_without_a_body_have_none(code: int) -> None:
    status, head, body = ask(f"/status/{code}")
    assert (status, body) == (code, b"")
    assert "Content-Length" not in head


def test_echo_shows_what_arrived() -> None:
    echoed = ask_json("/echo?a=1&b=2&b=3", "X-Twice: 1", "X-Twice: 2", method="PUT", body=b"hi")
    assert (echoed["method"], echoed["path"], echoed["body"]) == ("PUT", "/echo", "hi")
    assert echoed["query"] == {"a": "1", "b": ["2", "3"]}
    assert echoed["headers"]["X-Twice"] == ["1", "2"]


@pytest.mark.parametrize(
    ("method", "path", "headers", "body"),
    [
        ("POST", "/login", [JSON], b'{"user": "ann", "password": "x"}'),
        ("POST", "/login", [], b"username=ann&password=x"),
        ("GET", "/login?user=ann&password=x", [], b""),
    ],
)
def test_a_login_token_opens_me(method: str, path: str, headers: list[str], body: bytes) -> None:
    token = ask_json(path, *headers, method=method, body=body)["token"]
    assert ask_json("/me", f"Authorization: Bearer {token}") == {"user": "ann"}


def test_login_without_anything_is_the_demo_user() -> None:
    assert ask_json("/login")["user"] == "demo"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"user": "ann"}', 400),
        (b'{"user": 1}', 400),
        (b"[]", 400),
        (b"\xff", 400),
        (b'{"user": "ann", "password": "wrong"}', 401),
    ],
)
def test_bad_logins(body: bytes, status: int) -> None:
    assert ask("/login", JSON, method="POST", body=body)[0] == status


@pytest.mark.parametrize(
    "value", ["", "Bearer", "Bearer x", "Bearer 616e6e.0000", "Basic 616e6e", "Bearer \xe9"]
)
def test_me_needs_a_token(value: str) -> None:
    status, head, _ = ask("/me", f"Authorization: {value}")
    assert status == 401
    assert "WWW-Authenticate: Bearer" in head


def test_items_answer_like_a_rest_api() -> None:
    page = ask_json("/items?offset=998&limit=5")
    assert [item["id"] for item in page["items"]] == [999, 1000]
    assert ask_json("/items/3")["name"] == "item 3"
    assert ask("/items/1001")[0] == 404
    status, head, _ = ask("/items", JSON, method="POST", body=b'{"name": "new"}')
    assert status == 201
    assert "Location: /items/1001" in head
    assert ask_json("/items/3", JSON, method="PATCH", body=b'{"name": "x"}')["name"] == "x"
    assert ask("/items/3", method="DELETE")[0] == 204
    assert ask("/items", method="DELETE")[0] == 405
    assert ask("/items", JSON, method="POST", body=b"no")[0] == 400


@given(st.integers(0, 10_000), st.integers(1, 400), st.integers(0, 300))
def test_flaky_fails_its_share_of_any_stretch(hundredths: int, length: int, skipped: int) -> None:
    site = new_site()
    percent = hundredths / 100
    for _ in range(skipped):
        site.flaky_fails(percent)
    failed = sum(site.flaky_fails(percent) for _ in range(length))
    assert abs(failed - length * percent / 100) <= 5


def test_chunked() -> None:
    _, head, body = ask("/chunked?chunks=3&size=2")
    assert "Transfer-Encoding: chunked" in head
    assert body == b"2\r\ncc\r\n" * 3 + b"0\r\n\r\n"


def test_gzip() -> None:
    _, head, body = ask("/gzip")
    assert "Content-Encoding: gzip" in head
    assert msgspec.json.decode(gzip.decompress(body))["message"] == "hello"


def test_redirects_count_down() -> None:
    status, head, _ = ask("/redirect/2")
    assert (status, "Location: /redirect/1\r\n" in head + "\r\n") == (302, True)
    status, head, _ = ask("/redirect/2?status=307")
    assert (status, "Location: /redirect/1?status=307" in head) == (307, True)
    assert ask("/redirect/0")[0] == 200


def test_cookies() -> None:
    _, head, _ = ask("/cookies/set?a=1&b=2")
    assert [line for line in head.split("\r\n") if line.startswith("Set-Cookie")] == [
        "Set-Cookie: a=1; Path=/",
        "Set-Cookie: b=2; Path=/",
    ]
    assert ask_json("/cookies", "Cookie: a=1; b=2") == {"cookies": {"a": "1", "b": "2"}}


def test_close_and_garbage_end_the_connection() -> None:
    for path in ("/close", "/garbage"):
        wire = Wire()
        wire.feed(get(path))
        assert wire.closed


def test_stats_count_every_path_but_their_own() -> None:
    wire = Wire()
    for path in ("/json", "/json", "/nothing", "/stats", "/bytes/3"):
        wire.feed(get(path))
    stats = msgspec.json.decode(ask("/stats", wire=wire)[2])
    assert stats["requests"] == 4
    assert stats["paths"] == {"/json": 2, "/nothing": 1, "/bytes/3": 1}
    ask("/stats/reset", wire=wire)
    assert msgspec.json.decode(ask("/stats", wire=wire)[2])["requests"] == 0


def test_paths_counted_are_bounded() -> None:
    wire = Wire()
    for number in range(PATHS_COUNTED + 5):
        wire.feed(get(f"/{number}"))
    paths = wire.connection.site.paths
    assert len(paths) == PATHS_COUNTED + 1
    assert paths[OTHER_PATHS] == 5


def test_the_delay_measure() -> None:
    site = new_site()
    for ms in (1, 2, 3, 4, 90):
        site.delayed("/delay/1", ms / 1000)
    summary = site.delays["/delay/1"].summary()
    assert summary["count"] == 5
    assert summary["mean_ms"] == pytest.approx(20)
    assert summary["p50_ms"] == pytest.approx(3, abs=0.11)
    assert (summary["min_ms"], summary["max_ms"]) == (pytest.approx(1), pytest.approx(90))


ROUTES = [
    path
    for path in [*routes.EXACT, *routes.WITH_ARGUMENT]
    if path not in ("/stall", "/delay", "/events")
]


@given(
    st.sampled_from([r for r in ROUTES if r not in ("/reset", "/endless-header")]),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12),
    st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"]),
    st.binary(max_size=40),
    st.sampled_from(["X: y", JSON, "Cookie: \x80=;;=", "Authorization: Bearer .", "Cookie: a"]),
)
def test_whatever_is_asked_an_answer_comes(
    route: str, rest: str, method: str, body: bytes, header: str
) -> None:
    for path in (route, f"{route}/{rest}", f"{route}?{rest}", f"{route}?limit={rest}"):
        answer = Wire().feed(get(path, header, method=method, body=body))
        assert answer.startswith((b"HTTP/1.1 ", routes.GARBAGE[:4]))


def test_every_route_is_documented() -> None:
    from pathlib import Path

    text = (Path(__file__).parents[3] / "docs" / "target.md").read_text()
    assert [path for path in {*routes.EXACT, *routes.WITH_ARGUMENT} if f"`{path}" not in text] == []
