"""Sealed datagrams: what opens, what does not, and that it is counted."""

from itertools import pairwise
from typing import Any

import pytest

from hyperscale.wire.replay import QUESTION_S, SILENT_S_MAX, WINDOW, Window
from hyperscale.wire.sealed import DATAGRAM_BYTES_MAX, KEPT, Opened, Sealer

SECRET = "correct horse battery staple"
OTHER = "another long enough secret 42"


def pair(**options: Any) -> tuple[Sealer, Sealer]:
    """Two that know each other."""
    a, b = Sealer("node-a", SECRET), Sealer("node-b", SECRET, **options)
    assert said(a, b, b"hello") == [("node-a", b"hello")]
    assert said(b, a, b"hello") == [("node-b", b"hello")]
    a.dropped.clear()
    b.dropped.clear()
    return a, b


def said(a: Sealer, b: Sealer, data: bytes) -> list[tuple[str, bytes]]:
    return carried(a, b, a.seal(data))


def carried(a: Sealer, b: Sealer, *datagrams: bytes) -> list[tuple[str, bytes]]:
    """What b hears of these when nothing is lost between the two."""
    heard, under_way = [], [(b, a, datagram) for datagram in datagrams]
    while under_way:
        to, source, datagram = under_way.pop(0)
        opened = to.open(datagram)
        if opened is None:
            continue
        under_way += [(source, to, answer) for answer in opened.answers]
        if opened.data is not None:
            assert to is b
            heard.append((opened.sender, opened.data))
    return heard


def test_what_is_sealed_opens_once() -> None:
    a, b = pair()
    datagram = a.seal(b"alive")
    assert b"alive" not in datagram
    assert b.open(datagram) == Opened("node-a", b"alive")
    assert b.open(datagram) is None
    assert b.dropped == {"replay": 1}


def test_a_recorded_datagram_opens_at_no_restarted_node() -> None:
    """Neither by itself, nor when whoever replays it hands the question on to the real sender."""
    a, b = pair()
    recorded = [a.seal(b"old %d" % number) for number in range(KEPT + 3)]
    for datagram in recorded:
        assert b.open(datagram) is not None
    restarted = Sealer("node-b", SECRET)
    for datagram in recorded:
        asked = restarted.open(datagram)
        assert asked is not None
        assert asked.data is None
    assert restarted.dropped == {"unproven": len(recorded)}
    (question,) = asked.answers
    answered = a.open(question)
    assert answered is not None
    assert restarted.open(answered.answers[0]) == Opened("node-a", None)
    restarted.dropped.clear()
    for datagram in recorded:
        assert restarted.open(datagram) is None
    assert restarted.dropped == {"replay": len(recorded)}
    assert said(a, restarted, b"new") == [("node-a", b"new")]


def test_a_recorded_answer_proves_nothing() -> None:
    a, b = Sealer("node-a", SECRET), Sealer("node-b", SECRET)
    asked = b.open(a.seal(b"one"))
    assert asked is not None
    answered = a.open(asked.answers[0])
    assert answered is not None
    answer, again = answered.answers
    for receiver in (Sealer("node-b", SECRET), Sealer("node-c", SECRET)):
        assert receiver.open(answer) is None
        asked = receiver.open(again)
        assert asked is not None
        assert receiver.open(answer) is None
        assert receiver.dropped == {"late_answer": 2, "unproven": 1}


def test_an_old_start_does_not_come_back() -> None:
    a, b = Sealer("node-a", SECRET), Sealer("node-b", SECRET)
    asked = b.open(a.seal(b"one"))
    assert asked is not None
    answered = a.open(asked.answers[0])
    assert answered is not None
    first = [*answered.answers, a.seal(b"two")]
    assert carried(a, b, *first) == [("node-a", b"one"), ("node-a", b"two")]
    restarted = Sealer("node-a", SECRET)
    assert said(restarted, b, b"three") == [("node-a", b"three")]
    assert carried(restarted, b, *first) == []
    assert said(restarted, b, b"four") == [("node-a", b"four")]


def test_a_question_has_its_time() -> None:
    now = 0.0
    a, b = Sealer("node-a", SECRET), Sealer("node-b", SECRET, clock=lambda: now)
    asked = b.open(a.seal(b"one"))
    assert asked is not None
    answered = a.open(asked.answers[0])
    assert answered is not None
    now = QUESTION_S + 1
    assert b.open(answered.answers[0]) is None
    assert b.dropped["late_answer"] == 1
    assert said(a, b, b"two") == [("node-a", b"two")]


def test_replays_of_an_old_start_do_not_keep_a_new_one_out() -> None:
    old, b = Sealer("node-a", SECRET), Sealer("node-b", SECRET)
    recorded = old.seal(b"old")
    a = Sealer("node-a", SECRET)
    asked = b.open(a.seal(b"new"))
    assert asked is not None
    assert b.open(recorded) is not None
    answered = a.open(asked.answers[0])
    assert answered is not None
    assert b.open(recorded) is not None
    assert carried(a, b, *answered.answers) == [("node-a", b"new")]


def test_a_datagram_is_sealed_again_once() -> None:
    """Else a question that somebody repeats would make a node send for ever."""
    a, b = Sealer("node-a", SECRET), Sealer("node-b", SECRET)
    asked = b.open(a.seal(bytes(1000)))
    assert asked is not None
    counts = [len(opened.answers) for _ in range(3) if (opened := a.open(asked.answers[0]))]
    assert counts == [2, 1, 1]
    early = a.seal(b"early")
    for _ in range(KEPT):
        a.seal(b"later")
    asked = b.open(early)
    assert asked is not None
    opened = a.open(asked.answers[0])
    assert opened is not None
    assert len(opened.answers) == 1


def test_what_comes_back_to_its_sender_is_dropped() -> None:
    a = Sealer("node-a", SECRET)
    assert a.open(a.seal(b"echo")) is None
    assert a.dropped == {"replay": 1}


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
    assert b.open(datagram) == Opened("node-a", b"dead: node-c")


def test_a_stranger_with_another_secret_is_dropped() -> None:
    _, b = pair()
    assert b.open(Sealer("node-a", OTHER).seal(b"hi")) is None
    assert b.dropped == {"unknown_key": 1}


def test_rotation_with_mixed_nodes() -> None:
    before = Sealer("node-a", SECRET)
    during = Sealer("node-b", OTHER, previous=SECRET)
    after = Sealer("node-c", OTHER)
    assert said(after, during, b"new") == [("node-c", b"new")]
    assert said(during, after, b"current only") == [("node-b", b"current only")]
    assert before.open(during.seal(b"x")) is None
    opened = during.open(before.seal(b"old"))
    assert opened is not None
    assert opened.sender == "node-a"


@pytest.mark.parametrize("secret", ["short", "a" * 40, "passwordpassword", "abcabcabcabcabcabc"])
def test_weak_secrets_are_refused(secret: str) -> None:
    with pytest.raises(ValueError, match="the cluster secret"):
        Sealer("node-a", secret)


def test_a_restart_supersedes_what_was_sent_before_it() -> None:
    a, b = pair()
    early, late = a.seal(b"1"), a.seal(b"2")
    assert b.open(early)
    restarted = Sealer("node-a", SECRET)
    assert said(restarted, b, b"3") == [("node-a", b"3")]
    assert carried(restarted, b, late) == []
    assert said(restarted, b, b"4") == [("node-a", b"4")]


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
        Sealer(sender, SECRET)


def test_memory_is_bounded_by_the_number_of_senders() -> None:
    b = Sealer("node-b", SECRET, senders_max=10)
    for number in range(50):
        a = Sealer(f"node-{number}", SECRET)
        b.open(a.seal(b"never answers"))
        assert said(Sealer(f"node-{number}", SECRET), b, b"hi")
        b.open(a.seal(b"never answers"))
    assert len(b._senders) == 10
    assert len(b._senders._asked) == 10


def test_strangers_leave_no_trace() -> None:
    _, b = pair()
    stranger = Sealer("node-x", SECRET)
    for _ in range(100):
        forged = stranger.seal(b"hi")
        assert b.open(forged[:-1] + bytes([forged[-1] ^ 1])) is None
    assert b.dropped == {"forged": 100}
    assert len(b._senders) == 1
    assert len(b._senders._asked) == 0


def test_the_window_slides() -> None:
    window = Window()
    window.mark(WINDOW * 3)
    assert window.is_new(WINDOW * 2 + 1)
    assert not window.is_new(WINDOW * 2)
    window.mark(WINDOW * 3 + 1)
    assert not window.is_new(WINDOW * 2 + 1)


def test_the_silent_are_forgotten() -> None:
    now = 0.0
    b = Sealer("node-b", SECRET, clock=lambda: now)
    quiet, chatty = Sealer("quiet", SECRET), Sealer("chatty", SECRET)
    early = quiet.seal(b"hi")
    assert carried(quiet, b, early)
    for _ in range(4):
        now += SILENT_S_MAX / 3
        assert said(chatty, b, b"hi")
    assert len(b._senders) == 1
    assert carried(quiet, b, early) == []
    assert said(quiet, b, b"again") == [("quiet", b"again")]


def test_who_speaks_is_remembered_however_long() -> None:
    now = 0.0
    a, b = pair(clock=lambda: now)
    first = a.seal(b"first")
    assert b.open(first)
    for _ in range(10):
        now += SILENT_S_MAX
        assert b.open(a.seal(b"still here"))
    assert b.open(first) is None
    assert b.dropped == {"replay": 1}


def test_a_secret_is_changed_in_three_rounds_without_a_gap() -> None:
    rounds = [(SECRET, None), (SECRET, OTHER), (OTHER, SECRET), (OTHER, None)]
    for before, after in pairwise(rounds):
        a, b = Sealer("node-a", *before), Sealer("node-b", *after)
        assert said(a, b, b"from one that is still to come")
        assert said(b, a, b"from one that was restarted")


def test_whoever_speaks_for_another_does_not_silence_it() -> None:
    """A holder of the secret can answer questions in every name; the real one answers as well."""
    a, b = pair()
    for _ in range(3):
        assert said(Sealer("node-a", SECRET), b, b"boo") == [("node-a", b"boo")]
        assert said(a, b, b"still me") == [("node-a", b"still me")]
