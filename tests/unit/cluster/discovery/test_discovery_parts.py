from __future__ import annotations

import pytest

from hyperscale.cluster.discovery import HealthCache, Probe, parse_address
from hyperscale.cluster.discovery.messages import mismatch
from hyperscale.cluster.discovery.srv import (
    LookupFailed,
    Service,
    decode_answer,
    encode_query,
    nameservers,
)
from hyperscale.cluster.identity import Endpoint, Node

A, B, C = ("a", 1), ("b", 1), ("c", 1)

NAME = "_hs._tcp.example.org"
QUESTION = b"\x03_hs\x04_tcp\x07example\x03org\x00\x00\x21\x00\x01"


def record(priority: int, port: int, target: bytes, lifetime_s: int = 30) -> bytes:
    data = priority.to_bytes(2, "big") + b"\x00\x05" + port.to_bytes(2, "big") + target
    head = b"\xc0\x0c\x00\x21\x00\x01" + lifetime_s.to_bytes(4, "big")
    return head + len(data).to_bytes(2, "big") + data


def response(*records: bytes, flags: int = 0x8180, number: int = 7) -> bytes:
    counts = b"\x00\x01" + len(records).to_bytes(2, "big") + b"\x00\x00\x00\x00"
    return (
        number.to_bytes(2, "big") + flags.to_bytes(2, "big") + counts + QUESTION + b"".join(records)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1:7000", ("10.0.0.1", 7_000)),
        ("manager-1", ("manager-1", 9_000)),
        (" manager-1:80 ", ("manager-1", 80)),
        ("[::1]:7000", ("::1", 7_000)),
        ("[::1]", ("::1", 9_000)),
        ("fe80::1", ("fe80::1", 9_000)),
    ],
)
def test_addresses(text: str, expected: Endpoint) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize("text", ["", ":9000", "a:b", "a:0", "a:70000", "[::1", "[::1]x", "a b:1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="not an address"):
        parse_address(text)


def test_peers_seen_59_seconds_ago_are_listed_and_61_seconds_ago_are_not() -> None:
    cache = HealthCache()
    cache.record_success(0.0, A)
    cache.record_success(1.0, B)
    assert cache.healthy(59.0) == [B, A]
    assert cache.healthy(61.0) == [B]
    cache.evict_expired(61.0)
    assert len(cache) == 1


def test_one_failure_demotes_however_many_successes() -> None:
    cache = HealthCache()
    for now in range(47):
        cache.record_success(float(now), A)
    cache.record_failure(A)
    assert cache.healthy(47.0) == []
    cache.record_success(48.0, A)
    assert cache.healthy(48.0) == [A]


def test_saved_with_ages_not_times() -> None:
    cache = HealthCache()
    cache.record_success(1_000.0, A)
    cache.record_success(1_050.0, B)
    cache.record_success(1_055.0, C)
    cache.record_failure(C)
    after_restart = HealthCache()
    after_restart.load(5.0, cache.save(1_055.0))
    assert after_restart.healthy(5.0) == [B, A]
    assert after_restart.healthy(15.0) == [B]


@pytest.mark.parametrize("data", [b"", b"\xff\x00", b"\x91\x92\x01\x02", b"not msgpack"])
def test_a_damaged_file_is_no_memory(data: bytes) -> None:
    cache = HealthCache()
    cache.load(0.0, data)
    assert len(cache) == 0


def test_the_cache_is_bounded_and_keeps_the_latest() -> None:
    cache = HealthCache(entries_max=3)
    for number in range(10):
        cache.record_success(float(number), ("h", number))
    assert cache.healthy(9.0) == [("h", 9), ("h", 8), ("h", 7)]


def test_srv_query() -> None:
    query = encode_query(7, NAME + ".")
    assert query.startswith(b"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01" + QUESTION)


def test_srv_answer_with_compressed_names() -> None:
    data = response(record(20, 9_001, b"\x02m2\xc0\x15"), record(10, 9_000, b"\x02m1\xc0\x15", 12))
    found = decode_answer(data, 7, NAME.upper())
    assert found is not None
    assert found.records == (
        Service(10, 5, "m1.example.org", 9_000),
        Service(20, 5, "m2.example.org", 9_001),
    )
    assert found.lifetime_s == 12.0


@pytest.mark.parametrize(
    "data",
    [
        b"",
        response(record(1, 1, b"\x01a\x00"), number=8),
        response(record(1, 1, b"\x01a\x00"), flags=0x0100),
        response(record(1, 1, b"\x01a\x00")).replace(b"example", b"exomple"),
    ],
)
def test_not_an_answer_to_our_question(data: bytes) -> None:
    assert decode_answer(data, 7, NAME) is None


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (response(flags=0x8183), "no such name"),
        (response(flags=0x8182), "answered 2"),
        (response(), "no SRV records"),
        (response(record(1, 1, b"\x00")), "no SRV records"),
        (response(record(1, 1, b"\x01a\xc0\xff")), "malformed"),
        (response(record(1, 1, b"\x50a\x00")), "malformed"),
        (response(record(1, 1, b"\x01\xff\x00")), "malformed"),
    ],
)
def test_answers_that_are_of_no_use(data: bytes, words: str) -> None:
    with pytest.raises(LookupFailed, match=words):
        decode_answer(data, 7, NAME)


def test_a_truncated_answer_is_used_as_far_as_it_goes() -> None:
    whole = response(record(1, 9_000, b"\x01a\x00"), record(2, 9_000, b"\x01b\x00"))
    cut = whole[: whole.rindex(b"\xc0\x0c")]
    found = decode_answer(cut, 7, NAME)
    assert found is not None
    assert [each.target for each in found.records] == ["a"]


@pytest.mark.parametrize("name", ["", "a..b", "x" * 64, ".".join(["abcdefgh"] * 40)])
def test_what_is_no_dns_name(name: str) -> None:
    with pytest.raises(ValueError, match="DNS name"):
        encode_query(1, name)


def test_name_servers() -> None:
    text = "# comment\nsearch x\nnameserver 10.0.0.53\nnameserver  ::1 # local\nnameserver\noptions"
    assert nameservers(text) == (("10.0.0.53", 53), ("::1", 53))


@pytest.mark.parametrize(
    ("mine", "theirs", "may"),
    [
        ("gate", "gate", True),
        ("manager", "manager", True),
        ("manager", "worker", True),
        ("manager", "gate", False),
        ("gate", "manager", False),
        ("gate", "worker", False),
    ],
)
def test_gates_are_members_among_themselves(mine: str, theirs: str, may: bool) -> None:
    def probe(role: str) -> Probe:
        return Probe("shop", "prod", Node("n", 1, role, "eu", ("10.0.0.1", 1), ("10.0.0.1", 1)))

    problem = mismatch(probe(mine), probe(theirs))
    assert problem is None if may else problem is not None and theirs in problem
