"""Sealed datagrams: what opens, what does not, and that it is counted."""

from itertools import pairwise
from typing import Any

import pytest

from hyperscale.wire.replay import SILENT_S_MAX, WINDOW, ReplayGuard
from hyperscale.wire.sealed import DATAGRAM_BYTES_MAX, Opened, Sealer

SECRET = "correct horse battery staple"
OTHER = "another long enough secret 42"


def pair(**options: Any) -> tuple[Sealer, Sealer]:
    return Sealer("node-a", 1, SECRET), Sealer("node-b", 1, SECRET, **options)


def test_what_is_sealed_opens_once() -> None:
    a, b = pair()
    datagram = a.seal(b"alive")
    assert b"alive" not in datagram
    assert b.open(datagram) == Opened("node-a", 1, b"alive")
    assert b.open(datagram) is None
    assert b.dropped == {"replay": 1}


def test_two_seals_of_the_same_data_differ() -> None:
    a, _ = pair()
    assert a.seal(b"alive") != a.seal(b"alive")


def test_every_changed_bit_is_noticed() -> None:
    a, b = pair()
    datagram = a.seal(b"dead: node-c")
    for at in range(len(datagram)):
        for bit in (1, 128):
            bent = bytearray(datagram)
            bent[at] ^= bit
            assert b.open(bytes(bent)) is None
    assert b.open(datagram) == Opened("node-a", 1, b"dead: node-c")


def test_a_stranger_with_another_secret_is_dropped() -> None:
    _, b = pair()
    assert b.open(Sealer("node-a", 1, OTHER).seal(b"hi")) is None
    assert b.dropped == {"unknown_key": 1}


def test_rotation_with_mixed_nodes() -> None:
    before = Sealer("node-a", 1, SECRET)
    during = Sealer("node-b", 1, OTHER, previous=SECRET)
    after = Sealer("node-c", 1, OTHER)
    assert during.open(before.seal(b"old")) == Opened("node-a", 1, b"old")
    assert during.open(after.seal(b"new")) == Opened("node-c", 1, b"new")
    assert after.open(during.seal(b"current only")) == Opened("node-b", 1, b"current only")
    assert before.open(during.seal(b"x")) is None


@pytest.mark.parametrize("secret", ["short", "a" * 40, "passwordpassword", "abcabcabcabcabcabc"])
def test_weak_secrets_are_refused(secret: str) -> None:
    with pytest.raises(ValueError, match="the cluster secret"):
        Sealer("node-a", 1, secret)


def test_a_restart_supersedes_what_was_sent_before_it() -> None:
    a, b = pair()
    early, late = a.seal(b"1"), a.seal(b"2")
    assert b.open(early)
    restarted = Sealer("node-a", 2, SECRET)
    assert b.open(restarted.seal(b"3")) == Opened("node-a", 2, b"3")
    assert b.open(late) is None
    assert b.dropped == {"replay": 1}


def test_the_budget_is_kept() -> None:
    a, b = pair()
    full = a.seal(bytes(a.payload_bytes_max))
    assert len(full) == DATAGRAM_BYTES_MAX
    assert b.open(full) is not None
    with pytest.raises(ValueError, match="do not fit"):
        a.seal(bytes(a.payload_bytes_max + 1))
    assert b.open(full + b"x") is None
    assert b.open(b"") is None
    assert b.dropped == {"size": 2}


@pytest.mark.parametrize("sender", ["", "x" * 65])
def test_sender_ids_have_a_size(sender: str) -> None:
    with pytest.raises(ValueError, match="a sender id has"):
        Sealer(sender, 1, SECRET)


def test_memory_is_bounded_by_the_number_of_senders() -> None:
    b = Sealer("node-b", 1, SECRET, senders_max=10)
    for number in range(50):
        assert b.open(Sealer(f"node-{number}", 1, SECRET).seal(b"hi"))
    assert len(b._guard) == 10
    assert len(b._keys) == 10


def test_strangers_leave_no_trace() -> None:
    _, b = pair()
    stranger = Sealer("node-x", 1, SECRET)
    for _ in range(100):
        forged = stranger.seal(b"hi")
        assert b.open(forged[:-1] + bytes([forged[-1] ^ 1])) is None
    assert b.dropped == {"forged": 100}
    assert len(b._guard) == 0
    assert len(b._keys) == 0


def test_the_window_slides() -> None:
    guard = ReplayGuard()
    salt = b"12345678"
    guard.mark(0.0, b"a", 1, salt, WINDOW * 3)
    assert guard.is_new(b"a", 1, salt, WINDOW * 2 + 1)
    assert not guard.is_new(b"a", 1, salt, WINDOW * 2)
    assert not guard.is_new(b"a", 1, b"other!!!", WINDOW * 4)
    assert not guard.is_new(b"a", 0, salt, WINDOW * 4)
    assert guard.is_new(b"a", 2, b"other!!!", 0)


def test_the_silent_are_forgotten_with_their_keys() -> None:
    now = 0.0
    b = Sealer("node-b", 1, SECRET, clock=lambda: now)
    quiet, chatty = Sealer("quiet", 7, SECRET), Sealer("chatty", 1, SECRET)
    assert b.open(quiet.seal(b"hi"))
    for _ in range(4):
        now += SILENT_S_MAX / 3
        assert b.open(chatty.seal(b"hi"))
    assert len(b._guard) == 1
    assert list(b._keys) == [b"chatty"]
    # It lost its disk, and nobody here remembers that it had come further.
    assert b.open(Sealer("quiet", 1, SECRET).seal(b"again")) == Opened("quiet", 1, b"again")


def test_who_speaks_is_remembered_however_long() -> None:
    now = 0.0
    b = Sealer("node-b", 1, SECRET, clock=lambda: now)
    a = Sealer("node-a", 1, SECRET)
    first = a.seal(b"first")
    assert b.open(first)
    for _ in range(10):
        now += SILENT_S_MAX
        assert b.open(a.seal(b"still here"))
    assert b.open(first) is None
    assert b.dropped == {"replay": 1}


def test_one_key_for_each_sender() -> None:
    _, b = pair()
    for epoch in range(1, 20):
        assert b.open(Sealer("node-a", epoch, SECRET).seal(b"hi"))
    assert len(b._keys) == 1


def test_a_secret_is_changed_in_three_rounds_without_a_gap() -> None:
    rounds = [(SECRET, None), (SECRET, OTHER), (OTHER, SECRET), (OTHER, None)]
    for before, after in pairwise(rounds):
        a, b = Sealer("node-a", 1, *before), Sealer("node-b", 1, *after)
        assert b.open(a.seal(b"from one that is still to come")) is not None
        assert a.open(b.seal(b"from one that was restarted")) is not None


def test_an_epoch_nobody_reaches_does_not_silence_its_sender() -> None:
    a, b = pair()
    assert b.open(a.seal(b"one")) is not None
    forged = Sealer("node-a", 1 + 2**20 + 1, SECRET)
    assert b.open(forged.seal(b"boo")) is None
    assert b.dropped == {"jump": 1}
    assert b.open(a.seal(b"two")) is not None
    assert b.open(Sealer("node-a", 1 + 2**20, SECRET).seal(b"a long time later")) is not None


def test_the_first_epoch_of_a_sender_leaves_room_above_it() -> None:
    _, b = pair()
    assert b.open(Sealer("node-a", 2**64 - 1, SECRET).seal(b"boo")) is None
    assert b.dropped == {"jump": 1}


def test_a_certificate_ends_what_a_forged_epoch_did() -> None:
    a, b = pair()
    assert b.open(Sealer("node-a", 2**40, SECRET).seal(b"boo")) is not None
    assert b.open(a.seal(b"one")) is None
    b.vouched("node-a", 1)
    assert b.open(a.seal(b"two")) is not None
    b.vouched("node-a", 1)
    assert b.open(a.seal(b"three")) is not None
