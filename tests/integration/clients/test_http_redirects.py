"""Redirects and cookies over real connections."""

from __future__ import annotations

import pytest

from hyperscale.workload.arguments import Headers
from hyperscale.workload.results import Outcome

from .conftest import Run
from .scripted import client, pool, response, serve


def redirect(status: int, location: str, *headers: str) -> bytes:
    return response(b"", f"{status} Elsewhere", f"Location: {location}", *headers)


@pytest.mark.parametrize(
    ("method", "status", "then"),
    [
        ("GET", 301, "GET"),
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("PUT", 302, "PUT"),
        ("POST", 303, "GET"),
        ("PUT", 303, "GET"),
        ("HEAD", 303, "HEAD"),
        ("POST", 307, "POST"),
        ("DELETE", 308, "DELETE"),
    ],
)
def test_method_rules(run: Run, method: str, status: int, then: str) -> None:
    def answer(request: bytes) -> bytes:
        if request.split(b" ")[1].startswith(b"/from"):
            return redirect(status, "../to?x=1")
        return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    async def go() -> None:
        async with serve(answer) as server, client() as vu:
            body = {} if method in ("GET", "HEAD") else {"json": {"a": 1}}
            got = await vu.http.request(method, server.url + "/from/here", params={"y": 2}, **body)
            assert (got.status, got.method) == (200, then)
            assert got.url == server.url + "/to?x=1"
            assert got.redirects == (server.url + "/from/here?y=2",)
            _, last = server.requests
            assert last.startswith(f"{then} /to?x=1 ".encode())
            assert (b'{"a":1}' in last) == (bool(body) and then == method)
            assert (b"Content-Type" in last) == (b'{"a":1}' in last)
            assert got.bytes_out == len(last)  # the hop is a request of its own
            assert got.connect is None  # which opened the connection

    run(go())


def test_each_hop_has_timings_of_its_own(run: Run) -> None:
    async def go() -> None:
        seen = []
        async with (
            serve(
                lambda request: redirect(302, "/b") if b"GET /a" in request else response()
            ) as server,
            pool() as made,
        ):
            made.trace = seen.append
            got = await made.client().http.get(server.url + "/a")
            assert [one.status for one in seen] == [302, 200]
            assert seen[1] is got
            assert seen[0].started < seen[0].ended <= got.started < got.ended
            assert (seen[0].connect is None, got.connect is None) == (False, True)

    run(go())


def test_credentials_stay_with_their_origin(run: Run) -> None:
    async def go() -> None:
        async with (
            serve(response()) as other,
            serve(
                lambda request: redirect(302, "/same" if b"/a" in request else other.url)
            ) as server,
            client() as vu,
        ):
            secrets = Headers({"Authorization": "secret", "X-Keep": "1"})
            got = await vu.http.get(server.url + "/a", headers=secrets, cookies={"c": "1"})
            assert got.ok
            assert b"Authorization: secret" in server.requests[1]
            assert b"Cookie: c=1" in server.requests[1]
            sent = other.requests[0]
            assert b"X-Keep: 1" in sent
            assert b"secret" not in sent
            assert b"Cookie" not in sent
            assert f"Host: 127.0.0.1:{other.port}".encode() in sent

            address = server.url.replace("//", "//user:pw@")
            await vu.http.get(address + "/a")
            assert b"Authorization: Basic" in server.requests[3]
            assert b"Authorization" not in other.requests[1]

    run(go())


def test_limits_and_bad_locations(run: Run) -> None:
    async def go() -> None:
        async with serve(redirect(302, "/again")) as server, client(redirects=3) as vu:
            got = await vu.http.get(server.url)
            assert (got.outcome, got.status) == (Outcome.PROTOCOL, 302)
            assert got.error == "more than 3 redirects, the last one to /again"
            assert len(server.requests) == 4
            got = await vu.http.get(server.url, redirects=0)
            assert (got.outcome, got.status) == (Outcome.OK, 302)
        for location in ("ftp://x/", "http://[::1", "mailto:a@b", "http://a b/"):
            async with serve(redirect(302, location)) as server, client() as vu:
                got = await vu.http.get(server.url)
                assert got.outcome is Outcome.PROTOCOL
                assert "redirects to a place that cannot be called" in got.error
        async with serve(response(b"", "302 Found")) as server, client() as vu:
            assert (await vu.http.get(server.url)).status == 302

    run(go())


def test_a_redirect_to_nowhere_is_that_failure(run: Run) -> None:
    async def go() -> None:
        async with serve(redirect(302, "http://127.0.0.1:9/")) as server, client() as vu:
            got = await vu.http.get(server.url)
            assert got.outcome is Outcome.REFUSED
            assert got.status == 0

    run(go())


def test_cookies_are_kept_per_virtual_user(run: Run) -> None:
    def answer(request: bytes) -> bytes:
        if b"/login" in request:
            user = request.partition(b"user=")[2].partition(b" ")[0].decode()
            return redirect(302, "/home", f"Set-Cookie: sid={user}; Path=/; HttpOnly")
        return response()

    def cookie(request: bytes) -> bytes:
        return request.partition(b"Cookie: ")[2].partition(b"\r\n")[0]

    async def go() -> None:
        async with serve(answer) as server, pool() as made:
            one, two, three = (made.client() for _ in range(3))
            await one.http.get(server.url + "/login?user=one")
            await two.http.get(server.url + "/login?user=two")
            await one.http.get(server.url + "/x")
            await two.http.get(server.url + "/x", cookies={"a": "1"})
            await three.http.get(server.url + "/x")
            await one.http.get(server.url + "/x", cookies={"sid": "mine"})
            await one.http.get(server.url + "/x", headers={"Cookie": "written=1"})
            got = await one.http.post(server.url + "/x", data=b"body")
            assert [cookie(request) for request in server.requests] == [
                b"", b"sid=one", b"", b"sid=two",
                b"sid=one", b"sid=two; a=1", b"", b"sid=mine", b"written=1", b"sid=one",
            ]  # fmt: skip
            assert server.requests[-1].endswith(b"\r\nCookie: sid=one\r\n\r\nbody")
            assert got.bytes_out == len(server.requests[-1])
            one.http.cookies.clear()
            await one.http.get(server.url + "/x")
            assert cookie(server.requests[-1]) == b""

    run(go())
