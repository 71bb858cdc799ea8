"""Calls that go well: verbs, arguments on the wire, framing of answers."""

from __future__ import annotations

import asyncio
import zlib
from functools import partial
from gzip import compress
from pathlib import Path

import brotli
import msgspec
import pydantic
import pytest
import zstandard

from hyperscale.clients import ClientPool
from hyperscale.errors import BadInput, RunFailed
from hyperscale.workload.arguments import URL, Auth, Cookies, Data, File, Headers, Params
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.results import CallFailed, Outcome

from .conftest import Run
from .scripted import client, pool, response, serve


@pytest.mark.parametrize("verb", ["get", "post", "put", "patch", "delete", "options", "head"])
def test_every_verb_is_sent_and_answered(run: Run, verb: str) -> None:
    async def go() -> None:
        body = b"" if verb == "head" else b"hello"
        answer = response(b"hello")[: None if body else -5]
        async with serve(answer) as server, client() as vu:
            for _ in range(3):
                got = await getattr(vu.http, verb)(server.url + "/x")
                assert (got.status, got.content, got.outcome) == (200, body, Outcome.OK)
                assert got.method == verb.upper()
                assert got.started <= got.first_byte <= got.ended
            assert server.connections == 1
            assert all(sent.startswith(verb.upper().encode() + b" /x ") for sent in server.requests)

    run(go())


class Item(pydantic.BaseModel):
    id: int


class Pair(msgspec.Struct):
    a: int


def test_plain_and_encoded_arguments_give_identical_bytes(run: Run, tmp_path: Path) -> None:
    upload = tmp_path / "a.json"
    upload.write_text("{}")
    plain_and_encoded = [
        ({"params": {"page": 1, "q": "a b"}}, {"params": Params({"page": 1, "q": "a b"})}),
        ({"headers": {"X-A": "1", "accept": "text/html"}},) * 1
        + ({"headers": Headers({"X-A": "1", "accept": "text/html"})},),
        ({"cookies": {"a": "1", "b": "2"}}, {"cookies": Cookies({"a": "1", "b": "2"})}),
        ({"auth": ("u", "p")}, {"auth": Auth(("u", "p"))}),
        ({"json": {"a": [1, None]}}, {"json": Data({"a": [1, None]})}),
        ({"data": "text"}, {"data": Data("text")}),
        ({"data": b"\0\1"}, {"data": Data(b"\0\1")}),
        ({"json": Item(id=3)}, {"data": Data(Item(id=3))}),
        ({"files": {"f": str(upload)}}, {"files": {"f": File(upload)}}),
    ]

    async def go() -> None:
        async with serve(response()) as server, pool() as made:
            vu = made.client()
            for plain, encoded in plain_and_encoded:
                url = URL(server.url + "/p")
                for argument in (url, *encoded.values()):
                    if not isinstance(argument, dict):
                        await made.prepare(argument)
                await vu.http.post(server.url + "/p", **plain)
                await vu.http.post(url, **encoded)
                await vu.http.post(url, **encoded)
                first, second, third = server.requests[-3:]
                assert first == second == third

    run(go())


def test_what_a_request_looks_like(run: Run) -> None:
    async def go() -> None:
        async with serve(response()) as server, client(user_agent="ua") as vu:
            await vu.http.get(
                server.url + "/a b?x=1#part",
                params={"y": [1, 2], "z": None},
                headers={"X-Token": "t"},
                cookies={"s": "1"},
                auth="secret",
            )
            assert server.requests[0] == (
                b"GET /a%20b?x=1&y=1&y=2 HTTP/1.1\r\n"
                b"Host: 127.0.0.1:" + str(server.port).encode() + b"\r\n"
                b"User-Agent: ua\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n"
                b"X-Token: t\r\nAuthorization: Bearer secret\r\nCookie: s=1\r\n\r\n"
            )

    run(go())


@pytest.mark.parametrize(
    ("arguments", "content_type", "body"),
    [
        ({"json": {"a": 1}}, b"application/json", b'{"a":1}'),
        ({"json": "text"}, b"application/json", b'"text"'),
        ({"data": [1, 2]}, b"application/json", b"[1,2]"),
        ({"data": "grüß"}, b"text/plain; charset=utf-8", "grüß".encode()),
        ({"data": b"raw"}, b"application/octet-stream", b"raw"),
        ({"form": {"a": "1 2", "b": True}}, b"application/x-www-form-urlencoded", b"a=1+2&b=true"),
    ],
)
def test_bodies(run: Run, arguments: dict[str, object], content_type: bytes, body: bytes) -> None:
    async def go() -> None:
        async with serve(response()) as server, client() as vu:
            assert (await vu.http.post(server.url, **arguments)).ok
            head, _, sent = server.requests[0].partition(b"\r\n\r\n")
            assert sent == body
            assert b"\r\nContent-Type: " + content_type + b"\r\n" in head
            assert b"\r\nContent-Length: %d" % len(body) in head

    run(go())


def test_multipart_upload(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("from disk")

    async def go() -> None:
        async with serve(response()) as server, client() as vu:
            sent = await vu.http.post(
                server.url,
                files={"f": File(tmp_path / "a.txt"), "g": ("n\r\n.csv", b"1,2", "text/csv")},
                form={"note": "hi"},
            )
            assert sent.ok
            body = server.requests[0]
            assert b'name="note"\r\n\r\nhi\r\n' in body
            assert b'filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nfrom disk\r\n' in body
            assert b'filename="n%0D%0A.csv"\r\nContent-Type: text/csv\r\n\r\n1,2\r\n' in body
            with pytest.raises(BadInput, match="no-such-file"):
                await vu.http.post(server.url, files={"f": "no-such-file"})

    run(go())


def test_two_bodies_are_refused(run: Run) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match="more than one body"):
                await vu.http.post("http://127.0.0.1:9/", json={}, data=b"")

    run(go())


@pytest.mark.parametrize("headers", [{"X": "a\r\nY: b"}, {"X\r\nY": "a"}, {"X Y": "a"}, {"": "a"}])
def test_header_injection_is_refused(run: Run, headers: dict[str, str]) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput):
                await vu.http.get("http://127.0.0.1:9/", headers=headers)

    run(go())


def test_userinfo_becomes_basic_authorisation_and_stays_out_of_the_url(run: Run) -> None:
    async def go() -> None:
        async with serve(response()) as server, client() as vu:
            got = await vu.http.get(server.url.replace("//", "//us%40er:pw@"))
            assert b"\r\nAuthorization: Basic dXNAZXI6cHc=\r\n" in server.requests[0]
            assert got.url == server.url + "/"

    run(go())


def test_relative_urls_use_the_base(run: Run) -> None:
    async def go() -> None:
        async with serve(response()) as server, client(base_url=server.url + "/api/") as vu:
            assert (await vu.http.get("/users")).url == server.url + "/api/users"
        async with client() as vu:
            with pytest.raises(BadInput, match="not a URL that HTTP can call"):
                await vu.http.get("/users")

    run(go())


CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5;ext=1\r\nhello\r\nA\r\n, chunked!\r\n0\r\nX-Trailer: 1\r\n\r\n"
)


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        (response(b"hello"), b"hello"),
        (response(b""), b""),
        (CHUNKED, b"hello, chunked!"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: a\r\n\r\n" + CHUNKED, None),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n", b""),
        (b"HTTP/1.0 200\r\nConnection: keep-alive\r\ncontent-length: 2\r\n\r\nhi", b"hi"),
    ],
)
def test_answers_however_they_are_split(run: Run, answer: bytes, content: bytes | None) -> None:
    async def go() -> None:
        pieces = iter([len(answer), len(answer), 1, 3, 7])

        async def handler(peer):
            while await peer.request():
                size = next(pieces)
                for start in range(0, len(answer), size):
                    await peer.send(answer[start : start + size])
                    await asyncio.sleep(0)

        async with serve(handler=handler) as server, client() as vu:
            for _ in range(5):
                got = await vu.http.get(server.url)
                assert got.ok, got.error
                assert got.content == (b"hello, chunked!" if content is None else content)
                assert got.bytes_in == len(answer)
            assert server.connections == 1

    run(go())


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 13\r\n\r\nuntil the end",
        b"HTTP/1.0 200 OK\r\nContent-Length: 13\r\n\r\nuntil the end",
    ],
)
def test_connections_that_end_with_the_answer(run: Run, answer: bytes) -> None:
    async def go() -> None:
        async def handler(peer):
            await peer.request()
            await peer.send(answer)

        async with serve(handler=handler) as server, client() as vu:
            for _ in range(3):
                got = await vu.http.get(server.url)
                assert (got.outcome, got.content) == (Outcome.OK, b"until the end")
                assert got.connect is not None
            assert server.connections == 3

    run(go())


def test_headers_text_json_and_models(run: Run) -> None:
    answer = response(b'{"a": 1}', "200 OK", "X-A: 1", "x-a:  2 ", "Set-Cookie: s=1; Path=/")

    async def go() -> None:
        async with serve(answer) as server, client() as vu:
            got = await vu.http.get(server.url)
            assert got.headers["X-a"] == "1, 2"
            assert got.headers.get_list("x-A") == ["1", "2"]
            assert "nope" not in got.headers
            assert got.cookies == {"s": "1"}
            assert got.status_code == 200
            assert got.json() == {"a": 1}
            assert got.text() == '{"a": 1}'
            assert got.to_model(Pair) == Pair(1)
            assert got.to_model(dict[str, int]) == {"a": 1}
            with pytest.raises(pydantic.ValidationError):
                got.to_model(Item)
            with pytest.raises(ValueError, match="Expected `array`"):
                (await vu.http.get(server.url)).to_model(list)
            assert set(got.timings) == {"dns", "connect", "tls", "write", "wait", "read", "total"}
            assert got.request_bytes == server.requests[0]

    run(go())


BODY = b"compress me " * 100
gzip = partial(compress, mtime=0)


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        ("gzip", gzip(BODY)),
        ("gzip", gzip(BODY[:50]) + gzip(BODY[50:])),
        ("deflate", zlib.compress(BODY)),
        ("deflate", zlib.compress(BODY)[2:-4]),
        ("br", brotli.compress(BODY)),
        ("zstd", zstandard.compress(BODY)),
        ("gzip, br", brotli.compress(gzip(BODY))),
        ("identity", BODY),
    ],
)
def test_compressed_bodies(run: Run, coding: str, data: bytes) -> None:
    async def go() -> None:
        answer = response(data, "200 OK", f"Content-Encoding: {coding}")
        async with serve(answer) as server, client() as vu, client(decompress=False) as plain:
            got = await vu.http.get(server.url)
            assert got.content == BODY
            assert got.raw == data
            assert got.content is got.content
            got = await plain.http.get(server.url)
            assert got.content == data
            assert b"Accept-Encoding" not in server.requests[-1]

    run(go())


@pytest.mark.parametrize(
    ("coding", "data", "sentence"),
    [
        ("gzip", b"nonsense", "not valid gzip"),
        ("gzip", gzip(BODY)[:-6], "not valid gzip"),
        ("br", b"\xff\xff\xff", "not valid br"),
        ("zstd", b"nonsense", "not valid zstd"),
        ("zstd", zstandard.compress(BODY)[:-1], "not valid zstd"),
        ("gzip", gzip(bytes(200_000)), "more than 100000 bytes when decompressed"),
        ("br", brotli.compress(bytes(200_000)), "more than 100000 bytes when decompressed"),
        ("zstd", zstandard.compress(bytes(200_000)), "more than 100000 bytes when decompressed"),
    ],
)
def test_damaged_and_exploding_bodies(run: Run, coding: str, data: bytes, sentence: str) -> None:
    async def go() -> None:
        answer = response(data, "200 OK", f"Content-Encoding: {coding}")
        async with serve(answer) as server, client(max_response_bytes=100_000) as vu:
            got = await vu.http.get(server.url)
            assert got.status == 200
            with pytest.raises(CallFailed, match=sentence):
                got.text()

    run(go())


def test_statuses_and_expectations(run: Run) -> None:
    async def go() -> None:
        async with serve(response(b"gone", "404 Not Found")) as server, client() as vu:
            got = await vu.http.get(server.url)
            assert (got.outcome, got.error, got.status) == (Outcome.STATUS, "404 Not Found", 404)
            assert got.text() == "gone"
            got.accept()
            assert got.ok
            assert (await vu.http.get(server.url, expect=404)).ok
            assert (await vu.http.get(server.url, expect={200, 404})).ok
            assert (await vu.http.get(server.url, expect=lambda r: r.text() == "gone")).ok
            got = await vu.http.get(server.url, expect=range(200, 300))
            assert got.outcome is Outcome.STATUS
            assert "404 Not Found instead of" in got.error
            got = await vu.http.get(server.url, expect=lambda r: False)
            assert got.outcome is Outcome.FAILED

    run(go())


def test_trace_sees_every_exchange(run: Run) -> None:
    async def go() -> None:
        seen = []
        async with serve(response()) as server, pool() as made:
            vu = made.client()
            made.trace = seen.append
            got = [await vu.http.get(server.url), await vu.http.get("http://127.0.0.1:9/")]
            assert seen == got

    run(go())


def test_preparing_resolves_reads_and_says_what_is_wrong(run: Run, tmp_path: Path) -> None:
    async def go() -> None:
        made = ClientPool(HTTPOptions())
        url = URL("http://localhost:1/")
        await made.prepare(url)
        assert set(url.optimized["http"]) <= {"127.0.0.1", "::1"}
        (tmp_path / "f").write_bytes(b"x")
        file = File(tmp_path / "f")
        await made.prepare(file)
        (tmp_path / "f").unlink()
        assert file.body()[0] == b"x"
        with pytest.raises(RunFailed, match=r"no-such-host\.invalid cannot be resolved"):
            await made.prepare(URL("http://no-such-host.invalid/"))
        with pytest.raises(BadInput, match="missing"):
            await made.prepare(File(tmp_path / "missing"))
        with pytest.raises(BadInput, match="not a URL that HTTP can call"):
            await made.prepare(URL("gopher://host/"))

    run(go())
