"""Something in front of etcd, or etcd itself, says what nobody expects: trouble to be waited out,
neither news to be acted on at once nor the end of a term."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hyperscale.runtime.etcd import ANONYMOUS
from hyperscale.scheduler.leader.election import ElectionUnavailable
from hyperscale.scheduler.leader.etcd_lease import EtcdLease

HELD = json.dumps(
    {
        "header": {"revision": "7"},
        "kvs": [{"value": b64encode(b'["other", ""]').decode(), "mod_revision": "5"}],
    }
).encode()
WORD = b"<html>no upstream"


def answer(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


@asynccontextmanager
async def asking(looks: bytes, watches: bytes = b"") -> AsyncIterator[EtcdLease]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(watches if b"/v3/watch" in head else looks)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, asyncio.timeout(30):
        endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        lease = EtcdLease([endpoint], "one", "", 10.0, "test", ANONYMOUS)
        yield lease
        await lease.close()


@pytest.mark.parametrize("watches", [answer(200, WORD), answer(503, WORD), answer(200, b"{}\n")])
def test_a_watch_that_ends_by_itself_is_trouble(watches: bytes) -> None:
    async def run() -> None:
        async with asking(answer(200, HELD), watches) as lease:
            with pytest.raises(ElectionUnavailable, match="the stream ended"):
                await lease.vacant(20)

    asyncio.run(run())


def test_a_watch_that_talks_nonsense_is_trouble() -> None:
    async def run() -> None:
        async with asking(answer(200, HELD), answer(200, WORD + b"\n")) as lease:
            with pytest.raises(ElectionUnavailable):
                await lease.vacant(20)

    asyncio.run(run())


def test_an_answer_that_is_not_etcds_is_trouble() -> None:
    async def run() -> None:
        async with asking(answer(200, WORD)) as lease:
            with pytest.raises(ElectionUnavailable, match="not etcd's words: <html>no upstream"):
                await lease.renew(1)

    asyncio.run(run())
