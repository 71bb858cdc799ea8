"""Where a connection goes to, from where, and which address is tried when."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.clients.http.proxy import Proxy
from hyperscale.clients.http.reader import Heads
from hyperscale.clients.http.route import Route
from hyperscale.clients.http.socks import Socks5
from hyperscale.clients.http.target import Target
from hyperscale.clients.http.tunnel import ConnectTunnel
from hyperscale.clients.net.attempts import REST_S, STAGGER_S, Attempts, interleaved
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.hosts import HostMap, meets
from hyperscale.clients.net.local_addresses import LocalAddresses

NOW = 1000.0


def route(url: str, proxy: str | None = None, hosts: dict[str, str] | None = None) -> Route:
    return Route(Target(url), Proxy(proxy) if proxy else None, None, HostMap(hosts or {}))


def test_a_silent_address_gets_company_after_a_while() -> None:
    attempts = Attempts(["a", "b", "c"], {})
    assert attempts.next_at(NOW) == NOW
    assert attempts.start(NOW) == "a"
    assert attempts.start(NOW) is None
    assert attempts.next_at(NOW) == NOW + STAGGER_S
    assert attempts.start(NOW + STAGGER_S) == "b"
    assert attempts.start(NOW + 3 * STAGGER_S) == "c"
    assert attempts.next_at(NOW) is None
    assert not attempts.exhausted


def test_after_a_failure_the_next_starts_at_once() -> None:
    resting: dict[str, float] = {}
    attempts = Attempts(["a", "b"], resting)
    assert attempts.start(NOW) == "a"
    attempts.failed("a", NOW + 0.01)
    assert attempts.next_at(NOW + 0.01) == NOW + 0.01
    assert attempts.start(NOW + 0.01) == "b"
    attempts.failed("b", NOW + 0.02)
    assert attempts.exhausted
    assert resting == {"a": NOW + 0.01 + REST_S, "b": NOW + 0.02 + REST_S}


def test_failed_and_overtaken_addresses_come_last_for_a_while() -> None:
    made = route("http://h/")
    addresses = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
    attempts = made.attempts(addresses)
    silent, quick = attempts.start(NOW), attempts.start(NOW + STAGGER_S)
    assert silent is not None
    assert quick is not None
    attempts.connected(quick)
    assert attempts.start(NOW + 1) is None
    for later in (NOW + 2, NOW + 5, NOW + 8):
        again = made.attempts(addresses)
        tried = [again.start(later + STAGGER_S * number) for number in range(3)]
        assert tried[-1] == silent
        assert sorted(filter(None, tried)) == sorted(addresses)
    rested = {made.attempts(addresses).start(NOW + REST_S + 1) for _ in range(3)}
    assert rested == set(addresses)


def test_load_spreads_over_the_preferred_family() -> None:
    made = route("http://h/")
    addresses = ("fd00::1", "10.0.0.1", "fd00::2", "10.0.0.2", "fd00::3")
    first = [made.attempts(addresses).start(NOW) for _ in range(6)]
    assert sorted(filter(None, first)) == sorted(["fd00::1", "fd00::2", "fd00::3"] * 2)
    order = interleaved(addresses, 0)
    assert order == ["fd00::1", "10.0.0.1", "fd00::2", "10.0.0.2", "fd00::3"]


ADDRESSES = st.lists(
    st.sampled_from(["::1", "::2", "::3", "10.0.0.1", "10.0.0.2", "10.0.0.3"]),
    min_size=1,
    unique=True,
)


@given(ADDRESSES, st.integers(min_value=0, max_value=20))
def test_every_address_has_its_turn_once(addresses: list[str], turn: int) -> None:
    order = interleaved(addresses, turn)
    assert sorted(order) == sorted(addresses)
    assert (":" in order[0]) == (":" in addresses[0])


@given(ADDRESSES, st.lists(st.sampled_from(["tick", "fail", "connect"]), max_size=30))
def test_attempts_go_on_until_one_connects_or_all_failed(
    addresses: list[str], events: list[str]
) -> None:
    attempts, now = Attempts(addresses, {}), NOW
    running: list[str] = []
    started: list[str] = []
    for event in events:
        if event == "fail" and running:
            attempts.failed(running.pop(0), now)
        elif event == "connect" and running:
            attempts.connected(running[-1])
            assert attempts.start(now + 100) is None
            return
        now = attempts.next_at(now) or now
        if address := attempts.start(now):
            running.append(address)
            started.append(address)
    assert len(started) == len(set(started))
    assert attempts.exhausted == (len(started) == len(addresses) and not running)


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        (("shop.test", 80), ("10.0.0.1", 80)),
        (("shop.test", 443), ("10.0.0.2", 8443)),
        (("a.shop.test", 80), ("10.0.0.3", 80)),
        (("b.a.shop.test", 80), ("10.0.0.4", 80)),
        (("b.a.shop.test", 81), ("::1", 8081)),
        (("xn--bcher-kva.test", 80), ("10.0.0.5", 80)),
        (("myshop.test", 80), ("myshop.test", 80)),
        (("1.2.3.4", 80), ("10.0.0.6", 80)),
    ],
)
def test_hosts(asked: tuple[str, int], place: tuple[str, int]) -> None:
    hosts = {
        "*.shop.test": "10.0.0.3",
        "*.a.shop.test": "10.0.0.4",
        "*.a.shop.test:81": "[::1]:8081",
        "Shop.test": "10.0.0.1",
        "shop.test:443": "10.0.0.2:8443",
        "bücher.test": "10.0.0.5",
        "1.2.3.4": "10.0.0.6",
    }
    assert HostMap(hosts).place(*asked) == place


def test_patterns_of_domains() -> None:
    assert meets("a.b.test", ["*.b.test"])
    assert meets("b.test", ["x", "b.test"])
    assert not meets("b.test", ["*.b.test"])
    assert not meets("ab.test", ["*.b.test", "b.test"])


def test_what_is_said_to_whom() -> None:
    hosts = {"far.test": "10.0.0.7:8443", "p.test": "10.0.0.8"}
    direct = route("https://far.test/", None, hosts)
    assert (direct.peer, direct.where) == (("10.0.0.7", 8443), "far.test:443")
    assert direct.server_name == "far.test"
    assert direct.handshake(Heads(9)) is None

    forwarded = route("http://far.test/", "https://p.test", hosts)
    assert forwarded.is_forwarded
    assert (forwarded.peer, forwarded.where) == (("10.0.0.8", 443), "proxy p.test:443")
    assert forwarded.handshake(Heads(9)) is None

    tunnelled = route("https://far.test/", "http://p.test", hosts)
    assert tunnelled.where == "far.test:443"
    assert isinstance(tunnelled.handshake(Heads(9)), ConnectTunnel)

    named = route("http://far.test/", "socks5h://p.test", hosts)
    assert not named.looks_up_target
    assert not named.is_forwarded
    made = named.handshake(Heads(9))
    assert isinstance(made, Socks5)
    made.start()
    assert made.feed(b"\x05\x00") == b"\x05\x01\x00\x03\x08far.test\x00\x50"

    looked_up = route("http://far.test/", "socks5://p.test", hosts)
    assert looked_up.looks_up_target
    made = looked_up.handshake(Heads(9), looked_up.place[0])
    assert made is not None
    made.start()
    assert made.feed(b"\x05\x00") == b"\x05\x01\x00\x01\x0a\x00\x00\x07" + (8443).to_bytes(2, "big")


def test_local_addresses_in_rotation() -> None:
    local = LocalAddresses(("127.0.0.0/29", "127.0.0.3", "::1"))
    turn = [local.next(socket.AF_INET) for _ in range(12)]
    assert turn == [f"127.0.0.{number}" for number in range(1, 7)] * 2
    assert local.next(socket.AF_INET6) == "::1"
    assert LocalAddresses(()).next(socket.AF_INET) is None


def test_targets_are_reached_from_local_addresses_only() -> None:
    local = LocalAddresses(("127.0.0.1",))
    assert list(local.usable(("::1", "127.0.0.1"), "h:1")) == ["127.0.0.1"]
    assert LocalAddresses(()).usable(("::1",), "h:1") == ("::1",)
    with pytest.raises(Failure, match="h:1 has no IPv4 address"):
        local.usable(("::1",), "h:1")


def test_binding() -> None:
    with socket.socket() as made:
        LocalAddresses(("127.0.0.5",)).bind(made)
        assert made.getsockname()[0] == "127.0.0.5"
    with socket.socket() as made, pytest.raises(Failure, match="is not an address of this machine"):
        LocalAddresses(("192.0.2.1",)).bind(made)
