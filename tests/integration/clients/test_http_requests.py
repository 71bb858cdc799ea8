"""Requests of one kept connection, as a server that knows nothing of ours reads them."""

from __future__ import annotations

import gzip
import io
from typing import Any

import h11

from hyperscale.workload.arguments import Data, Headers

from .conftest import Run
from .scripted import Peer, client, response, serve

Seen = tuple[bytes, list[tuple[bytes, bytes]], bytes]


def test_no_request_damages_the_next_one(run: Run) -> None:
    seen: list[Seen] = []

    async def reading(peer: Peer) -> None:
        server = h11.Connection(h11.SERVER)
        head: Any = None
        body = b""
        while True:
            event = server.next_event()
            if event is h11.NEED_DATA:
                data = await peer.reader.read(65536)
                if not data:
                    return
                server.receive_data(data)
            elif isinstance(event, h11.Request):
                head, body = event, b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            else:
                assert isinstance(event, h11.EndOfMessage), event
                seen.append((head.method, list(head.headers), body))
                answer = h11.Response(status_code=200, headers=[("Content-Length", "0")])
                server.send(answer)
                server.send(h11.EndOfMessage())
                server.start_next_cycle()
                await peer.send(response(b""))

    async def go() -> None:
        async with serve(handler=reading) as server, client() as vu:
            short = {"Content-Length": "3"}
            data = Data(b"0123456789")
            calls: list[tuple[str, dict[str, Any], bytes]] = [
                ("post", {"data": b"0123456789", "headers": short}, b"0123456789"),
                ("get", {"headers": {"Content-Length": "5"}}, b""),
                ("put", {"data": data, "headers": {"Content-Length": "500"}}, b"0123456789"),
                (
                    "post",
                    {"data": data, "headers": {"Transfer-Encoding": "chunked"}},
                    b"0123456789",
                ),
                ("post", {"headers": Headers({"Transfer-Encoding": "chunked"})}, b""),
                ("get", {"headers": [("X-Tag", "a"), ("X-Tag", "b")]}, b""),
                ("post", {"data": io.BytesIO(b"file")}, b"file"),
                ("get", {}, b""),
            ]
            for verb, arguments, _ in calls * 2:
                assert (await getattr(vu.http, verb)(server.url, **arguments)).ok
            assert (await vu.http.request("M-SEARCH", server.url)).ok
            assert (await vu.http.post(server.url, json=[1], compress="gzip")).ok
            assert server.connections == 1
            *plain, search, zipped = seen
            assert [body for _, _, body in plain] == [body for _, _, body in calls * 2]
            tags = [value for name, value in plain[5][1] if name == b"x-tag"]
            assert tags == [b"a", b"b"]
            assert search[0] == b"M-SEARCH"
            assert gzip.decompress(zipped[2]) == b"[1]"

    run(go())
