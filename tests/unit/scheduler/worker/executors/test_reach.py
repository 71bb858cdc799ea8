"""Which addresses `http` jobs may call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from hyperscale.errors import BadInput
from hyperscale.scheduler.errors import InvalidJob
from hyperscale.scheduler.exchange import exchange
from hyperscale.scheduler.worker.executors.reach import Reach


def reached(host: str, port: int = 80, allow: Sequence[str] = ()) -> list[str]:
    return asyncio.run(Reach(allow).addresses(host, port))


@pytest.mark.parametrize(
    "host",
    [
        *(
            "127.0.0.1",
            "127.8.8.8",
            "localhost",
            "0.0.0.0",
            "2130706433",
            "0x7f000001",
            "::1",
            "::",
        ),
        *("10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254", "224.0.0.1"),
        *("fe80::1", "fd00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
        *("64:ff9b::7f00:1", "2002:7f00:1::", "255.255.255.255"),
    ],
)
def test_addresses_that_are_not_public_are_refused(host: str) -> None:
    with pytest.raises(InvalidJob, match="which jobs do not call"):
        reached(host)


@pytest.mark.parametrize("host", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822"])
def test_public_addresses_are_called(host: str) -> None:
    assert reached(host) == [host]


@pytest.mark.parametrize(
    ("allow", "host", "port", "good"),
    [
        ("127.0.0.1", "127.0.0.1", 80, True),
        ("127.0.0.1", "localhost", 80, True),
        ("127.0.0.1:8080", "127.0.0.1", 8080, True),
        ("127.0.0.1:8080", "127.0.0.1", 8081, False),
        ("localhost:8080", "LOCALHOST", 8080, True),
        ("localhost", "127.0.0.1", 80, False),
        ("10.1.0.0/16", "10.1.2.3", 443, True),
        ("10.1.0.0/16", "10.2.2.3", 443, False),
        ("10.1.0.0/16", "::ffff:10.1.2.3", 443, True),
        ("[::1]:90", "::1", 90, True),
        ("::1", "::1", 90, True),
        ("fd00::/8", "fd00::5", 90, True),
    ],
)
def test_what_the_owner_names_is_allowed(allow: str, host: str, port: int, good: bool) -> None:
    try:
        assert reached(host, port, [allow])
    except InvalidJob:
        assert not good
    else:
        assert good


@pytest.mark.parametrize("text", ["", "http://x", "a b", "x:port", "10.0.0.1/8", "u@x", "x/y"])
def test_what_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--http-allow"):
        Reach([text])


def test_a_name_is_looked_up_once_and_the_judged_address_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name server may give a public address first, and loopback to whoever asks again."""
    heard: list[bytes] = []
    looked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def main() -> int:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        real = loop.getaddrinfo

        async def getaddrinfo(host: str, *rest: object, **more: object) -> object:
            looked.append(host)
            known = "127.0.0.1" if host == "rebound.example" else host
            return await real(known, *rest, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
        reach = Reach(["127.0.0.1"])
        async with server:
            url = f"http://rebound.example:{port}/"
            return (await exchange("GET", url, lookup=reach.addresses)).status

    assert asyncio.run(main()) == 200
    assert looked.count("rebound.example") == 1
    assert b"Host: rebound.example" in heard[0]
