"""Bodies that are files, streams, multipart forms, compressed: over a real socket, and repeated."""

from __future__ import annotations

import asyncio
import contextlib
import email
import email.policy
import gzip
import io
import pickle
import socket
import tempfile
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import brotli
import h11
import pytest
import zstandard

from hyperscale.clients.http import upload as uploading
from hyperscale.clients.http.request import Request
from hyperscale.clients.http.upload import PIECE_BYTES, WHOLE_BYTES_MAX
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL, Data, File

from .requests import all_bytes, builder, built, header, read, sent

LONG = bytes(range(256)) * (WHOLE_BYTES_MAX // 128)  # twice the limit


@pytest.fixture(autouse=True)
def _files_are_long_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploading, "KEPT_FILE_BYTES_MAX", WHOLE_BYTES_MAX)


def pieces() -> Iterator[Any]:
    yield from (b"one", b"", "zwei ü", bytearray(b"3"), memoryview(b"4"))


async def later() -> AsyncIterator[bytes]:
    for piece in (b"one", b"two"):
        await asyncio.sleep(0)
        yield piece


class Again:
    def __aiter__(self) -> AsyncIterator[bytes]:
        return later()


def exchange(request: Request) -> tuple[h11.Request, bytes]:
    """The request as a server reads it from a socket, written as a connection writes it."""
    server = h11.Connection(h11.SERVER)
    body = bytearray()
    heads: list[h11.Request] = []

    def serve(listener: socket.socket) -> None:
        peer, _ = listener.accept()
        with peer:
            while True:
                event = server.next_event()
                if event is h11.NEED_DATA:
                    server.receive_data(peer.recv(65536))
                elif isinstance(event, h11.Request):
                    heads.append(event)
                elif isinstance(event, h11.Data):
                    body.extend(event.data)
                else:
                    assert isinstance(event, h11.EndOfMessage), event
                    peer.sendall(b"done")
                    break

    async def send(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request.wire)
        if request.stream is not None:
            async for piece in request.stream():
                writer.write(piece)
                await writer.drain()
        async with asyncio.timeout(20):
            assert await reader.read() == b"done"
        writer.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        asyncio.run(send(listener.getsockname()[1]))
        thread.join(20)
    return heads[0], bytes(body)


@pytest.mark.parametrize(
    ("make", "body", "repeatable"),
    [
        (pieces, "onezwei ü34".encode(), False),
        (lambda: iter([b"a", b"b"]), b"ab", False),
        (lambda: iter([]), b"", False),
        (later, b"onetwo", False),
        (Again, b"onetwo", True),
        (lambda: gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(LONG))), LONG, False),
    ],
)
def test_bodies_of_unknown_length_go_in_chunks(
    make: Callable[[], Any], body: bytes, repeatable: bool
) -> None:
    request = built("post", "http://h/", data=make())
    assert request.needs_reader
    assert request.repeatable == repeatable
    assert request.wire.endswith(
        b"Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    assert request.size == len(request.wire)
    head, content = exchange(request)
    assert content == body
    assert header(head, b"content-length") == []
    if repeatable:
        assert read(all_bytes(request))[1] == body


def test_each_piece_is_a_chunk_and_an_empty_one_is_none() -> None:
    request = built("put", "http://h/", iter([b"a", b"", b"bc"]))
    assert all_bytes(request).endswith(b"\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n")


def test_an_ordinary_request_has_no_stream_and_can_be_repeated() -> None:
    request = built("post", "http://h/", data=b"x")
    assert request.stream is None
    assert request.repeatable
    assert not request.needs_reader


@pytest.mark.parametrize("size", [0, 5, len(LONG)])
@pytest.mark.parametrize("kind", ["open", "raw", "bytes", "temporary", "File"])
def test_files_have_a_length_and_can_be_repeated(tmp_path: Path, size: int, kind: str) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(LONG[:size])
    with contextlib.ExitStack() as stack:
        if kind == "temporary":
            value: Any = stack.enter_context(tempfile.NamedTemporaryFile(suffix=".png"))
            value.write(LONG[:size])
            value.seek(0)
        elif kind == "bytes":
            value = io.BytesIO(LONG[:size])
        elif kind == "File":
            value = File(path)
        else:
            value = stack.enter_context(open(path, "rb", buffering=0 if kind == "raw" else -1))
        for _ in range(2):
            request = built("post", "http://h/", data=value)
            assert request.repeatable
            assert (request.stream is not None) == (size > WHOLE_BYTES_MAX)
            assert request.size == len(all_bytes(request)) == len(all_bytes(request))
            head, content = exchange(request)
            assert content == LONG[:size]
            assert header(head, b"content-length") == [b"%d" % size]
            wanted = b"application/octet-stream" if kind == "bytes" else b"image/png"
            assert header(head, b"content-type") == [wanted]


def test_a_file_is_sent_from_where_it_stands_to_several_at_once() -> None:
    opened = io.BytesIO(b"skipped" + LONG)
    opened.seek(7)
    first, second = (built("post", "http://h/", data=opened) for _ in range(2))

    async def both() -> None:
        assert first.stream is not None
        assert second.stream is not None
        one, two = first.stream(), second.stream()
        got: tuple[list[bytes], list[bytes]] = ([], [])
        for _ in range(len(LONG) // PIECE_BYTES):
            got[0].append(await anext(one))
            got[1].append(await anext(two))
            assert opened.tell() == 7
        assert b"".join(got[0]) == b"".join(got[1]) == LONG

    asyncio.run(both())


def test_a_long_file_that_changes_is_never_sent_with_a_wrong_length(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(LONG)
    file = File(path)
    request = built("post", "http://h/", data=file)
    path.write_bytes(LONG + b"more")
    assert read(all_bytes(request))[1] == LONG
    path.write_bytes(LONG[:-1])
    with pytest.raises(BadInput, match="1 bytes shorter"):
        all_bytes(request)


def test_a_request_of_a_long_file_is_kept_and_the_file_is_not(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(LONG)
    made, url, file = builder(), URL("http://h/"), File(path)
    one, other = (sent("post", url, data=file, made=made)[1] for _ in range(2))
    assert one is other
    assert "body" not in file.optimized


def test_a_file_of_medium_length_is_kept_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploading, "KEPT_FILE_BYTES_MAX", len(LONG))
    path = tmp_path / "medium"
    path.write_bytes(LONG)
    file = File(path)
    alone = built("post", "http://h/", data=file)
    path.unlink()
    assert alone.stream is None
    assert read(alone.wire)[1] == LONG
    assert parts(built("post", "http://h/", files={"f": file}))[0][3] == LONG


def test_an_author_may_ask_for_chunks_where_the_length_is_known() -> None:
    request = built(
        "post", "http://h/", data=io.BytesIO(LONG), headers={"Transfer-Encoding": "chunked"}
    )
    head, content = exchange(request)
    assert content == LONG
    assert header(head, b"content-length") == []


def test_cookies_and_redirects_keep_the_stream() -> None:
    request = built("post", "http://h/", data=io.BytesIO(LONG))
    with_cookies = request.with_cookies([("a", "1")])
    following = with_cookies.after(request)
    for made in (with_cookies, following):
        assert made.needs_reader
        assert made.size == len(all_bytes(made))
        assert read(all_bytes(made))[1] == LONG
    assert header(read(all_bytes(with_cookies))[0], b"cookie") == [b"a=1"]


def test_a_streamed_request_travels_without_its_stream() -> None:
    request = built("post", "http://h/", data=iter([b"a"]))
    copy = pickle.loads(pickle.dumps(request))
    assert (copy.wire, copy.stream, copy.call.data) == (request.wire, None, None)


def test_what_is_not_bytes_is_refused_when_its_turn_comes() -> None:
    with pytest.raises(BadInput, match="data gave a dict"):
        all_bytes(built("post", "http://h/", data=iter([b"a", {}])))


def test_an_upload_that_is_given_up_closes_its_source() -> None:
    closed: list[str] = []

    async def source() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            closed.append("source")

    async def go() -> None:
        stream = built_here.stream
        assert stream is not None
        reading = stream()
        await anext(reading)
        await reading.aclose()

    built_here = built("post", "http://h/", data=source())
    asyncio.run(go())
    assert closed == ["source"]


def test_a_long_upload_lets_others_have_their_turn() -> None:
    request = built("post", "http://h/", data=(b"x" for _ in range(5000)))

    async def go() -> int:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.ensure_future(other())
        assert request.stream is not None
        async for _ in request.stream():
            pass
        task.cancel()
        return turns

    assert asyncio.run(go()) > 20


Part = tuple[str, str | None, str, bytes]


def parts(request: Request) -> list[Part]:
    head, body = exchange(request)
    kind = header(head, b"content-type")[0]
    parsed = email.message_from_bytes(
        b"Content-Type: %b\r\n\r\n%b" % (kind, body), policy=email.policy.HTTP
    )
    found = []
    for part in parsed.iter_parts():
        name = part.get_param("name", header="content-disposition")
        typed = part.get_content_type() if part["content-type"] else ""
        found.append((str(name), part.get_filename(), typed, part.get_payload(decode=True)))
    return found


@pytest.fixture
def upload(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_bytes(b"of a")
    return path


def test_files_of_every_kind(upload: Path) -> None:
    with upload.open("rb") as opened:
        given: list[tuple[Any, list[Part]]] = [
            ({"f": str(upload)}, [("f", "a.txt", "text/plain", b"of a")]),
            ({"f": File(upload)}, [("f", "a.txt", "text/plain", b"of a")]),
            ({"f": b"raw"}, [("f", "f", "application/octet-stream", b"raw")]),
            ({"f": opened}, [("f", "a.txt", "text/plain", b"of a")]),
            ({"f": io.BytesIO(b"x")}, [("f", "f", "application/octet-stream", b"x")]),
            ({"f": ("n.json", "text")}, [("f", "n.json", "application/json", b"text")]),
            ({"f": ("n", opened, "a/b")}, [("f", "n", "a/b", b"of a")]),
            ({"f": (None, "value")}, [("f", None, "", b"value")]),
            (
                {"f": [("1", b"a"), ("2", b"b")], "g": b"c"},
                [
                    ("f", "1", "application/octet-stream", b"a"),
                    ("f", "2", "application/octet-stream", b"b"),
                    ("g", "g", "application/octet-stream", b"c"),
                ],
            ),
            (
                [("f", ("1", b"a")), ("f", opened)],
                [
                    ("f", "1", "application/octet-stream", b"a"),
                    ("f", "a.txt", "text/plain", b"of a"),
                ],
            ),
        ]
        for files, expected in given:
            for _ in range(2):
                request = built("post", "http://h/", files=files, form={"a": [1, b"\xff"]})
                fields = [("a", None, "", b"1"), ("a", None, "", b"\xff")]
                assert parts(request) == [*fields, *expected]


def test_names_cannot_end_their_line() -> None:
    wire = built("post", "http://h/", files={'a"\r\nX: y': ('n"\r\n', b"x")}).wire
    assert b'name="a%22%0D%0AX: y"; filename="n%22%0D%0A"' in wire


@pytest.mark.parametrize("kind", ["bytes", "open", "File", "path"])
def test_a_long_form_is_streamed_with_its_length(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(LONG)
    with path.open("rb") as opened:
        value: Any = {"bytes": LONG, "open": opened, "File": File(path), "path": path}[kind]
        for _ in range(2):
            request = built("post", "http://h/", files={"f": value}, form={"a": "1"})
            assert request.stream is not None
            assert request.repeatable
            assert request.size == len(all_bytes(request))
            assert parts(request) == [
                ("a", None, "", b"1"),
                ("f", "f", "application/octet-stream", LONG),
            ]


def test_a_form_with_a_file_of_unknown_length_goes_in_chunks() -> None:
    opened = gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(b"content")))
    request = built("post", "http://h/", files={"f": ("n", opened)})
    assert not request.repeatable
    assert b"Transfer-Encoding: chunked" in request.wire
    assert parts(request) == [("f", "n", "application/octet-stream", b"content")]


DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "zstd": lambda body: zstandard.ZstdDecompressor().decompressobj().decompress(body),
    "br": brotli.decompress,
}


@pytest.mark.parametrize("coding", DECODERS)
@pytest.mark.parametrize(
    ("arguments", "body", "kind"),
    [
        ({"json": {"a": 1}}, b'{"a":1}', b"application/json"),
        ({"json": Data({"a": 1})}, b'{"a":1}', b"application/json"),
        ({"data": "text"}, b"text", b"text/plain; charset=utf-8"),
        ({"data": b""}, b"", b"application/octet-stream"),
        ({"form": {"a": 1}}, b"a=1", b"application/x-www-form-urlencoded"),
        ({"data": io.BytesIO(LONG)}, LONG, b"application/octet-stream"),
        (
            {"data": b"x", "headers": {"Transfer-Encoding": "chunked"}},
            b"x",
            b"application/octet-stream",
        ),
    ],
)
def test_compressed_bodies(coding: str, arguments: Any, body: bytes, kind: bytes) -> None:
    for verb in ("post", "put", "patch"):
        head, content = exchange(built(verb, "http://h/", compress=coding, **arguments))
        assert DECODERS[coding](content) == body
        assert header(head, b"content-encoding") == [coding.encode()]
        assert header(head, b"content-type") == [kind]


def test_a_stream_is_compressed_on_its_way() -> None:
    head, content = exchange(built("post", "http://h/", data=iter([LONG, b"end"]), compress="gzip"))
    assert gzip.decompress(content) == LONG + b"end"
    assert header(head, b"transfer-encoding") == [b"chunked"]


def test_compress_without_a_body_changes_nothing() -> None:
    assert built("post", "http://h/", compress="gzip").wire == built("post", "http://h/").wire


@pytest.mark.parametrize("long", [False, True])
def test_typed_bodies_are_compressed_once(tmp_path: Path, long: bool) -> None:
    path = tmp_path / "f"
    path.write_bytes(LONG if long else b"x")
    for value in (Data("text"), File(path)):
        made = builder()
        first, second = (
            sent("post", "http://h/", data=value, compress="gzip", made=made)[1] for _ in range(2)
        )
        assert first is second
        other = sent("post", "http://h/", data=value, compress="gzip", headers={"X": "1"})[1]
        assert read(other.wire)[1] is not None
        assert (
            value.optimized["gzip"][0] == first.wire[first.body_at :] == other.wire[other.body_at :]
        )
        plain = sent("post", "http://h/", data=value, made=made)[1]
        assert b"Content-Encoding" not in plain.wire
