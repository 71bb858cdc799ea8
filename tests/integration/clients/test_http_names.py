"""Names to addresses: shared, kept for a while, and nobody waits for another's lookup."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.names import THREADS_MAX, Lookups, Resolver
from hyperscale.workload.results import Outcome

from .conftest import Run
from .scripted import client, response, serve, until

Found = list[tuple[int, int, int, str, tuple[str, int]]]


class FakeDNS:
    """Stands in for the system's lookup, which cannot be made to hang or to change its mind."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[str, ...]] = {}
        self.asked: list[str] = []
        self.release = threading.Event()

    def __call__(self, host: str, *_: object) -> Found:
        self.asked.append(host)
        if host.startswith("hangs"):
            self.release.wait(30)
        if host not in self.known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kind, (address, 0)) for address in self.known[host]]


@pytest.fixture
def dns(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDNS]:
    made = FakeDNS()
    monkeypatch.setattr(socket, "getaddrinfo", made)
    yield made
    made.release.set()


def test_hanging_lookups_stop_no_other(run: Run, dns: FakeDNS) -> None:
    async def go() -> None:
        dns.known["a.test"] = ("127.0.0.1",)
        resolver = Resolver("any", 300)
        hanging = [
            asyncio.ensure_future(resolver.addresses(f"hangs{number}.test"))
            for number in range(THREADS_MAX - 1)
        ]
        await until(lambda: len(dns.asked) == len(hanging))
        assert await resolver.addresses("a.test") == ("127.0.0.1",)
        dns.release.set()
        ended = await asyncio.gather(*hanging, return_exceptions=True)
        assert all(isinstance(one, Failure) and one.outcome is Outcome.DNS for one in ended)

    run(go())


def test_more_lookups_than_threads_wait_and_threads_end(dns: FakeDNS) -> None:
    dns.known["hangs.test"] = ("10.0.0.1",)
    lookups = Lookups("any", threads_max=3)
    futures = [lookups.submit("hangs.test") for _ in range(10)]
    threads = [one for one in threading.enumerate() if one.name == "lookup"]
    assert len(threads) >= 3
    assert lookups._threads == 3
    dns.release.set()
    assert [future.result(10) for future in futures] == [("10.0.0.1",)] * 10
    for thread in threads:
        thread.join(10)
    assert lookups._threads == 0


def test_the_end_of_the_process_does_not_wait_for_a_lookup() -> None:
    code = (
        "import socket, threading\n"
        "from hyperscale.clients.net.names import Lookups\n"
        "asked = threading.Event()\n"
        "socket.getaddrinfo = lambda *_: (asked.set(), threading.Event().wait())\n"
        "Lookups('any').submit('hangs.test')\n"
        "asked.wait(10)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_those_who_ask_at_once_share_a_lookup(run: Run, dns: FakeDNS) -> None:
    async def go() -> None:
        dns.known["hangs.test"] = ("10.0.0.1", "10.0.0.2", "10.0.0.1")
        resolver = Resolver("any", 0)
        asking = [asyncio.ensure_future(resolver.addresses("hangs.test")) for _ in range(20)]
        await until(lambda: bool(dns.asked))
        asking.pop().cancel()
        dns.release.set()
        assert await asyncio.gather(*asking) == [("10.0.0.1", "10.0.0.2")] * 19
        assert dns.asked == ["hangs.test"]
        await resolver.addresses("hangs.test")
        assert len(dns.asked) == 2  # a lookup for every connection

    run(go())


def clock_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [1000.0]
    monkeypatch.setattr("hyperscale.clients.net.names.perf_counter", lambda: now[0])

    def advance(seconds: float) -> None:
        now[0] += seconds

    return advance


def test_addresses_that_change(run: Run, dns: FakeDNS, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        advance = clock_of(monkeypatch)
        resolver = Resolver("any", 300)
        dns.known["a.test"] = ("10.0.0.1",)
        assert await resolver.addresses("a.test") == ("10.0.0.1",)
        dns.known["a.test"] = ("10.0.0.2",)
        advance(299)
        assert resolver.known("a.test") == ("10.0.0.1",)
        advance(2)
        assert resolver.known("a.test") is None
        assert await resolver.addresses("a.test") == ("10.0.0.2",)
        assert resolver.known("a.test") == ("10.0.0.2",)

    run(go())


def test_a_lookup_that_fails_later_changes_nothing(
    run: Run, dns: FakeDNS, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> None:
        advance = clock_of(monkeypatch)
        resolver = Resolver("any", 300)
        dns.known["a.test"] = ("10.0.0.1",)
        await resolver.addresses("a.test")
        del dns.known["a.test"]
        advance(301)
        assert await resolver.addresses("a.test") == ("10.0.0.1",)
        assert len(dns.asked) == 2
        dns.known["a.test"] = ("10.0.0.2",)
        assert await resolver.addresses("a.test") == ("10.0.0.1",)
        advance(6)  # asked again soon, not after another 300 s
        assert await resolver.addresses("a.test") == ("10.0.0.2",)

    run(go())


def test_a_name_that_was_never_known(run: Run, dns: FakeDNS) -> None:
    async def go() -> None:
        resolver = Resolver("any", 300)
        for _ in range(2):
            with pytest.raises(Failure, match=r"a\.test cannot be resolved: Name or service"):
                await resolver.addresses("a.test")
        assert await resolver.addresses("::1") == ("::1",)
        assert dns.asked == ["a.test", "a.test"]

    run(go())


def test_every_new_connection_goes_to_the_new_address(run: Run, dns: FakeDNS) -> None:
    async def go() -> None:
        options = {"connections": "fresh", "dns_ttl": 0}
        async with serve(response()) as old, client(**options) as vu:
            dns.known["a.test"] = ("127.0.0.1",)
            assert (await vu.http.get(f"http://a.test:{old.port}/")).ok
            async with serve(response(), host="127.0.0.2", port=old.port) as new:
                dns.known["a.test"] = ("127.0.0.2",)
                assert (await vu.http.get(f"http://a.test:{old.port}/")).ok
                assert (old.connections, new.connections) == (1, 1)

    run(go())
