"""Keys: one text per key, read from the right, bounded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from hyperscale.errors import BadInput
from hyperscale.ledger.idempotency import (
    PROFILES,
    IdempotencyKey,
    IdempotencySettings,
    InvalidKey,
    KeyGenerator,
    Profile,
    content_digest,
    fingerprint,
)

NONCE = "00ff00ff00ff00ff"


@pytest.mark.parametrize("client", ["host1.dc1:12345", "::1", "a", "bücher", "x:0:" + NONCE])
def test_a_client_may_hold_colons(client: str) -> None:
    key = IdempotencyKey.parse(f"{client}:42:{NONCE}")
    assert (key.client_id, key.sequence, key.nonce) == (client, 42, NONCE)
    assert key == IdempotencyKey.of(client, 42, NONCE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "::",
        f":1:{NONCE}",
        f"client:{NONCE}",
        f"client:-1:{NONCE}",
        f"client:+1:{NONCE}",
        f"client:01:{NONCE}",
        f"client:1.0:{NONCE}",
        f"client:٣:{NONCE}",
        f"client:{2**63}:{NONCE}",
        f"client:1:{NONCE.upper()}",
        "client:1:0123456789abcdeg",
        "client:1:0123456789abcde",
        f"cli ent:1:{NONCE}",
        f"client\n:1:{NONCE}",
        f"client:1:{NONCE}\n",
        f"\ud800:1:{NONCE}",
        "c" * 256 + f":1:{NONCE}",
        "ü" * 128 + f":1:{NONCE}",
    ],
)
def test_what_is_no_key_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(InvalidKey, match="Invalid idempotency key format"):
        IdempotencyKey.parse(text)


def test_the_longest_key() -> None:
    client = "c" * (256 - len(f":{2**63 - 1}:{NONCE}"))
    assert IdempotencyKey.of(client, 2**63 - 1, NONCE).sequence == 2**63 - 1


def test_a_generator_never_repeats_itself_in_threads() -> None:
    keys = KeyGenerator("host:1")
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: keys.next(), range(10_000)))
    assert len(set(made)) == 10_000
    assert {key.sequence for key in made} == set(range(10_000))
    assert KeyGenerator("host:1").next() != KeyGenerator("host:1").next()


def test_a_bad_client_is_noticed_before_the_first_key() -> None:
    with pytest.raises(InvalidKey):
        KeyGenerator("my laptop")


def test_fingerprints_tell_keys_and_scopes_apart() -> None:
    marks = {fingerprint("a"), fingerprint("b"), fingerprint("a", "dc1"), fingerprint("a", "dc2")}
    assert len(marks) == 4
    assert fingerprint("a").hex() == "27c35e6e9373877f29e562464e46497e"


def test_a_digest_depends_on_where_parts_end() -> None:
    assert content_digest(b"ab", b"c") != content_digest(b"a", b"bc")
    assert content_digest(b"abc") != content_digest(b"abc", b"")


def test_answers_outlive_the_retries_of_clients() -> None:
    with pytest.raises(BadInput, match="longer than retry_window_s"):
        IdempotencySettings(committed_ttl_s=120, retry_window_s=120)


@pytest.mark.parametrize("name", ["pending_ttl_s", "rejected_ttl_s", "entries_max", "sweep_slice"])
def test_settings_are_positive(name: str) -> None:
    with pytest.raises(BadInput):
        IdempotencySettings(**{name: 0})


def test_a_manager_does_not_forget_before_a_gate() -> None:
    with pytest.raises(BadInput, match="of managers"):
        Profile(IdempotencySettings(committed_ttl_s=600), IdempotencySettings())
    assert set(PROFILES) == {"development", "single-datacenter", "multi-datacenter"}
    assert PROFILES["multi-datacenter"].manager.entries_max == 1_000_000


def test_the_defaults_are_those_of_the_timing_table() -> None:
    settings = IdempotencySettings()
    times = (settings.pending_ttl_s, settings.committed_ttl_s, settings.rejected_ttl_s)
    assert times == (60, 300, 60)
