"""Fencing tokens: total order, one execution per command, bounded memory."""

from __future__ import annotations

from hyperscale.cluster.fencing import Fence, FenceGuard, Ruling


def test_tokens_are_ordered_by_term_then_epoch_then_attempt() -> None:
    ordered = [Fence(1, 0, 9), Fence(1, 1, 0), Fence(1, 1, 1), Fence(2, 0, 0)]
    assert sorted(ordered, reverse=True)[::-1] == ordered


def test_a_command_runs_once_and_its_repetition_gets_the_original_answer() -> None:
    guard: FenceGuard[str] = FenceGuard()
    fence = Fence(1, 0, 1)
    assert guard.admit(0.0, "w", fence).ruling is Ruling.FRESH
    early = guard.admit(0.1, "w", fence)
    assert (early.ruling, early.answer) == (Ruling.REPEAT, None)
    assert guard.answer("w", fence, "accepted, 4 cores")
    again = guard.admit(0.2, "w", fence)
    assert (again.ruling, again.answer) == (Ruling.REPEAT, "accepted, 4 cores")


def test_an_old_token_is_refused_with_the_highest_one() -> None:
    guard: FenceGuard[str] = FenceGuard()
    guard.admit(0.0, "w", Fence(2, 0, 0))
    verdict = guard.admit(0.0, "w", Fence(1, 9, 9))
    assert (verdict.ruling, verdict.highest) == (Ruling.STALE, Fence(2, 0, 0))
    assert guard.admit(0.0, "other", Fence(1, 0, 0)).ruling is Ruling.FRESH


def test_an_answer_to_a_superseded_command_is_not_kept() -> None:
    guard: FenceGuard[str] = FenceGuard()
    guard.admit(0.0, "w", Fence(1))
    guard.admit(0.0, "w", Fence(2))
    assert not guard.answer("w", Fence(1), "late")
    assert guard.admit(0.0, "w", Fence(2)).answer is None


def test_a_delayed_duplicate_of_finished_work_meets_a_tombstone() -> None:
    guard: FenceGuard[str] = FenceGuard(tombstone_s=10.0)
    guard.admit(0.0, "w", Fence(1))
    guard.answer("w", Fence(1), "done")
    assert guard.finish(5.0, "w", Fence(1))
    assert guard.purge(14.9) == 0
    assert guard.admit(14.9, "w", Fence(1)).answer == "done"
    assert guard.purge(15.0) == 1
    assert len(guard) == 0


def test_a_retry_after_the_end_lives_on_past_the_old_tombstone() -> None:
    guard: FenceGuard[str] = FenceGuard(tombstone_s=10.0)
    guard.admit(0.0, "w", Fence(1))
    guard.finish(0.0, "w", Fence(1))
    guard.admit(5.0, "w", Fence(1, 0, 1))
    assert guard.purge(100.0) == 0
    assert guard.highest("w") == Fence(1, 0, 1)


def test_memory_is_bounded_and_nothing_living_is_forgotten() -> None:
    guard: FenceGuard[str] = FenceGuard(tombstone_s=10.0, keys_max=2)
    guard.admit(0.0, "a", Fence(1))
    guard.admit(0.0, "b", Fence(1))
    assert guard.admit(0.0, "c", Fence(1)).ruling is Ruling.FULL
    assert guard.admit(0.0, "a", Fence(1)).ruling is Ruling.REPEAT
    guard.finish(0.0, "a", Fence(1))
    assert guard.admit(9.0, "c", Fence(1)).ruling is Ruling.FULL
    assert guard.admit(10.0, "c", Fence(1)).ruling is Ruling.FRESH
    assert len(guard) == 2
