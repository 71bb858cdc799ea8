"""Keys: one text per key, read from the right, bounded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from hyperscale.client import IdempotencyKeyGenerator
from hyperscale.nodes.protocol.keys import InvalidKey, check_key

NONCE = "00ff00ff00ff00ff"


@pytest.mark.parametrize("client", ["host1.dc1:12345", "::1", "a", "bücher", "x:0:" + NONCE])
def test_a_client_may_hold_colons(client: str) -> None:
    check_key(f"{client}:42:{NONCE}")


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
        check_key(text)


def test_the_longest_key() -> None:
    rest = f":{2**63 - 1}:{NONCE}"
    check_key("c" * (256 - len(rest)) + rest)
    with pytest.raises(InvalidKey):
        check_key("c" * (257 - len(rest)) + rest)


def test_a_generator_never_repeats_itself_in_threads() -> None:
    keys = IdempotencyKeyGenerator("host:1")
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: keys.generate(), range(10_000)))
    assert len(set(made)) == 10_000
    assert {key.rsplit(":", 2)[1] for key in made} == {str(n) for n in range(10_000)}
    check_key(made[-1])
    assert IdempotencyKeyGenerator("host:1").generate() != made[0]


def test_a_bad_client_is_noticed_before_the_first_key() -> None:
    with pytest.raises(InvalidKey):
        IdempotencyKeyGenerator("my laptop")
