"""Digest authentication against a server that checks, with curl as a second client of it."""

from __future__ import annotations

import http.client
import shutil
import subprocess

import pytest

from hyperscale.clients.http.digest import DigestAuth
from hyperscale.workload.arguments import Digest
from hyperscale.workload.results import Outcome

from .conftest import Run
from .digest_server import PASSWORD, USER, DigestServer, digest_server
from .scripted import pool
from .test_http_counted import counted

ALGORITHMS = ["", "MD5", "MD5-sess", "SHA-256", "SHA-256-sess", "SHA-512-256", "SHA-512-256-sess"]


def call(
    server: DigestServer, auth: DigestAuth, method: str, target: str, body: bytes = b""
) -> int:
    """As a client does it: an answer that is known already goes along, a challenge is answered,
    and a stale one once more."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    header, answered = auth.next(method, target, body), False
    while True:
        headers = {"Authorization": header.encode("latin-1")} if header else {}
        connection.request(method, target, body or None, headers)
        response = connection.getresponse()
        response.read()
        if response.status != 401:
            break
        challenges = response.headers.get_all("WWW-Authenticate") or []
        header = auth.answer(challenges, method, target, body, again=answered)
        if header is None:
            break
        answered = True
    connection.close()
    return response.status


@pytest.mark.parametrize(
    ("qop", "algorithm"),
    [
        (qop, algorithm)
        for qop in ("", "auth", "auth-int", "auth-int, auth")
        for algorithm in ALGORITHMS
        if qop or not algorithm.endswith("-sess")  # a session needs a cnonce, which comes with qop
    ],
)
def test_a_server_that_checks(algorithm: str, qop: str) -> None:
    with digest_server(algorithm, qop) as server:
        auth = DigestAuth(USER, PASSWORD)
        assert call(server, auth, "GET", "/a?b=c&d=%22") == 200, server.refused
        assert call(server, auth, "POST", "/b", b"body") == 200, server.refused
        assert call(server, auth, "GET", "/c") == 200, server.refused
        assert (server.unasked, server.seen) == (1, 4)
        assert not server.refused


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256", "SHA-512-256"])
def test_a_hashed_user_name(algorithm: str) -> None:
    with digest_server(algorithm, "auth", userhash=True) as server:
        assert call(server, DigestAuth(USER, PASSWORD), "GET", "/") == 200, server.refused


def test_nonces_that_grow_old() -> None:
    with digest_server("SHA-256", "auth", uses=3) as server:
        auth = DigestAuth(USER, PASSWORD)
        for number in range(9):
            assert call(server, auth, "GET", f"/{number}") == 200, server.refused
        assert len(server.nonces) == 3
        assert server.seen == 9 + 3  # the first without an answer, two with an old nonce
    with digest_server("MD5", "auth", uses=0) as server:
        auth = DigestAuth(USER, PASSWORD, lambda: "c")
        first = auth.answer([server.challenge(False).decode("latin-1")], "GET", "/")
        again = auth.answer([server.challenge(True).decode("latin-1")], "GET", "/", again=True)
        assert first is not None
        assert again is not None
        assert "nc=00000001" in again


def test_a_wrong_password_is_tried_once() -> None:
    with digest_server("MD5", "auth") as server:
        assert call(server, DigestAuth(USER, "wrong"), "GET", "/") == 401
        assert server.refused == ["the response is wrong"]
        assert server.seen == 2


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256", "MD5-sess", "SHA-256-sess"])
@pytest.mark.parametrize("qop", ["auth", "auth-int, auth"])
def test_curl_is_let_in_by_the_same_checks(algorithm: str, qop: str) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    with digest_server(algorithm, qop) as server:
        url = f"http://127.0.0.1:{server.server_port}/a?b=c"
        login = ("--digest", "--user", f"{USER}:{PASSWORD}")
        done = subprocess.run(
            ["curl", "--silent", "--write-out", "%{http_code}", *login, url],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.stdout == "200", server.refused
        assert call(server, DigestAuth(USER, PASSWORD), "GET", "/a?b=c") == 200


@pytest.mark.parametrize("auth", [Digest(USER, PASSWORD), (USER, PASSWORD, "digest")])
def test_the_client_answers_once_and_brings_answers_along_after_that(
    run: Run, auth: object
) -> None:
    async def go(server: DigestServer) -> None:
        url = f"http://127.0.0.1:{server.server_port}"
        async with pool() as made:
            scope = counted()
            vu = made.client().http
            for path in ("/a?b=c&d=%22", "/b", "/c"):
                assert (await vu.get(url + path, auth=auth)).ok, server.refused
            assert (await vu.post(f"{url}/d", auth=auth, data=b"body")).ok, server.refused
            assert (server.unasked, server.seen, scope.requests) == (1, 5, 5)
            other = made.client().http  # another user knows nothing of it
            assert (await other.get(url, auth=auth)).ok
            assert (server.unasked, scope.requests) == (2, 7)

    with digest_server("SHA-256", "auth-int, auth") as server:
        run(go(server))


def test_the_client_gives_up_after_one_wrong_answer(run: Run) -> None:
    async def go(server: DigestServer) -> None:
        async with pool() as made:
            scope = counted()
            url = f"http://127.0.0.1:{server.server_port}"
            got = await made.client().http.get(url, auth=Digest(USER, "wrong"))
            assert (got.status, got.outcome) == (401, Outcome.STATUS)
            assert server.seen == scope.requests == 2

    with digest_server("MD5", "auth") as server:
        run(go(server))


def test_the_client_follows_nonces_that_grow_old(run: Run) -> None:
    async def go(server: DigestServer) -> None:
        async with pool() as made:
            vu = made.client().http
            for number in range(9):
                url = f"http://127.0.0.1:{server.server_port}/{number}"
                assert (await vu.get(url, auth=Digest(USER, PASSWORD))).ok, server.refused
            assert server.seen == 9 + 3

    with digest_server("SHA-256", "auth", uses=3) as server:
        run(go(server))
