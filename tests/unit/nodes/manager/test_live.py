"""Live numbers: windows over all parts, totals that never go back, what a lost part leaves."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.engine.results import aggregate_of
from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.metrics.exported import DamagedState
from hyperscale.metrics.packed import pack
from hyperscale.nodes.manager.live import PENDING_MAX, WAITING_MAX, WINDOWS_MAX, Live
from hyperscale.nodes.protocol.jobs import Snapshot
from tests.unit.nodes.manager.cases import FACTS, JOB, delta, hear, placement, progress, state


def followed(*numbers: int, fresh: bool = True) -> Live:
    live = Live()
    for number in numbers:
        live.follow(FACTS, placement(number), fresh=fresh)
    return live


def requests_in(snapshot: object) -> int:
    assert isinstance(snapshot, Snapshot)
    whole = aggregate_of(FACTS)
    whole.absorb(snapshot.state)
    return whole.requests


def test_a_window_is_one_delta_over_all_parts() -> None:
    live = followed(0, 1)
    hear(live, progress(placement(0), 0.1, delta(1, 10, 1)))
    hear(live, progress(placement(1), 0.1, delta(1, 20, 2)))
    live.turn()
    windows = live.since(JOB, "Shop", 0)
    assert isinstance(windows, list)
    (window,) = windows
    assert (window.delta.requests[0].count, window.delta.requests[0].failed) == (30, 3)
    assert (window.delta.vus, window.workers) == (10, 2)


def test_a_repeated_report_changes_nothing_and_a_late_one_is_in_the_next_window() -> None:
    live = followed(0, 1)
    hear(live, progress(placement(0), 0.1, delta(1, 10)))
    live.turn()
    hear(live, progress(placement(0), 0.1, delta(1, 10)))
    hear(live, progress(placement(1), 0.1, delta(1, 5)))
    live.turn()
    assert live.totals(JOB, "Shop") == (15, 0)
    windows = live.since(JOB, "Shop", 1)
    assert isinstance(windows, list)
    assert [window.delta.requests[0].count for window in windows] == [5]


def test_users_of_a_part_that_said_nothing_are_still_there() -> None:
    live = followed(0, 1)
    hear(live, progress(placement(0), 0.1, delta(1, 1, vus=3)))
    hear(live, progress(placement(1), 0.1, delta(1, 1, vus=4)))
    live.turn()
    hear(live, progress(placement(0), 0.2, delta(2, 1, vus=3)))
    live.turn()
    windows = live.since(JOB, "Shop", 1)
    assert isinstance(windows, list)
    assert windows[-1].delta.vus == 7


def test_a_report_of_an_attempt_that_is_over_is_not_counted() -> None:
    live = followed(0)
    live.follow(FACTS, placement(0, attempt=2), fresh=True)
    hear(live, progress(placement(0), 0.1, delta(1, 10)))
    assert live.totals(JOB, "Shop") == (0, 0)
    assert live.late == 1


def test_what_a_lost_part_reported_is_kept_and_its_successor_adds_to_it() -> None:
    live = followed(0)
    hear(live, progress(placement(0), 4.0, delta(1, 10)))
    at_s, _, left = live.close(placement(0).part, placement(0).fence)
    assert at_s == 4.0
    live.keep(FACTS, placement(0).part, left)
    live.follow(FACTS, placement(0, attempt=2), fresh=True)
    hear(live, progress(placement(0, attempt=2), 9.0, delta(1, 7)))
    assert live.totals(JOB, "Shop") == (17, 0)
    assert requests_in(live.since(JOB, "Shop", None)) == 17


def test_final_numbers_take_the_place_of_reported_ones() -> None:
    live = followed(0)
    hear(live, progress(placement(0), 0.1, delta(1, 10)))
    live.keep(FACTS, placement(0).part, state(12, 1))
    assert live.totals(JOB, "Shop") == (12, 1)
    assert requests_in(live.since(JOB, "Shop", None)) == 12


def test_a_new_leader_asks_for_snapshots_and_shows_nothing_before() -> None:
    live = followed(0, 1, fresh=False)
    assert hear(live, progress(placement(0), 5.0, delta(9, 3))) is False
    assert live.since(JOB, "Shop", None) is None
    for number in (0, 1):
        told = progress(placement(number), 5.0, delta(8, 1), delta(9, 3))
        told = type(told)(
            part=told.part,
            fence=told.fence,
            state="running",
            elapsed_s=5.0,
            deltas=told.deltas,
            snapshot=state(100),
            snapshot_seq=8,
        )
        assert hear(live, told) is True
    assert requests_in(live.since(JOB, "Shop", None)) == 206


def test_what_another_leader_took_is_asked_for() -> None:
    live = followed(0)
    assert hear(live, progress(placement(0), 0.1, delta(1, 10))) is True
    told = msgspec.structs.replace(progress(placement(0), 0.5, delta(5, 10)), settled_seq=4)
    assert hear(live, told) is False
    assert live.totals(JOB, "Shop") == (10, 0)
    assert live.taken(told) == 5  # its snapshot will have it


def test_after_a_lost_report_the_next_ones_wait_until_it_is_told_again() -> None:
    live = followed(0)
    hear(live, progress(placement(0), 0.1, delta(1, 10)))
    late = progress(placement(0), 0.3, delta(3, 30))
    assert hear(live, late) is True
    assert (live.totals(JOB, "Shop"), live.taken(late)) == ((10, 0), 1)
    again = progress(placement(0), 0.4, delta(2, 20), delta(3, 30), delta(4, 40))
    hear(live, again)
    assert (live.totals(JOB, "Shop"), live.taken(again)) == ((100, 0), 4)


def test_an_impatient_watcher_is_shown_what_there_is() -> None:
    live = followed(0, 1, fresh=False)
    assert requests_in(live.since(JOB, "Shop", None, whole=False)) == 0


def test_a_watcher_too_far_behind_gets_a_snapshot() -> None:
    live = followed(0)
    for seq in range(1, WINDOWS_MAX + 10):
        hear(live, progress(placement(0), seq / 10, delta(seq, 1)))
        live.turn()
    assert requests_in(live.since(JOB, "Shop", 1)) == WINDOWS_MAX + 9
    recent = live.since(JOB, "Shop", WINDOWS_MAX)
    assert isinstance(recent, list)
    assert len(recent) == 9


def test_many_parts_are_kept_more_coarsely_and_lose_no_request() -> None:
    live = Live()
    for number in range(3):
        live.follow(FACTS, placement(number), fresh=True, parts=1_000)
    for seq in range(1, 61):
        for number in range(3):
            hear(live, progress(placement(number), float(seq), delta(seq, 2)))
    known = live.workflow(JOB, "Shop")
    assert known is not None
    assert all(len(part.summed().freeze().series) <= 10 for part in known.parts.values())
    assert requests_in(live.since(JOB, "Shop", None)) == 360


def test_an_ended_job_leaves_nothing() -> None:
    live = followed(0, 1)
    hear(live, progress(placement(0), 0.5, delta(1, 10, 2)))
    live.ended(JOB)
    assert len(live) == 0
    assert live.totals(JOB, "Shop") == (0, 0)
    late = progress(placement(0), 0.6, delta(2, 10))
    assert hear(live, late) is True
    assert (live.late, live.taken(late)) == (1, 2)  # nobody needs it


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 50), st.booleans(), st.booleans()),
        max_size=40,
    )
)
def test_a_watcher_that_adds_up_windows_ends_with_the_same_total(
    story: list[tuple[int, int, bool, bool]],
) -> None:
    """Whatever is repeated, and whenever windows turn."""
    live = followed(0, 1, 2)
    seqs = [0, 0, 0]
    seen, total, truth = 0, 0, 0
    for at, (number, requests, again, turn) in enumerate(story):
        if not again:
            seqs[number] += 1
            truth += requests
        if seqs[number]:
            told = delta(seqs[number], requests)
            hear(live, progress(placement(number), at / 10, told))
        if turn:
            live.turn()
        windows = live.since(JOB, "Shop", seen)
        for window in windows if isinstance(windows, list) else ():
            seen = window.index
            total += window.delta.requests[0].count
    live.turn()
    windows = live.since(JOB, "Shop", seen)
    total += sum(w.delta.requests[0].count for w in windows) if isinstance(windows, list) else 0
    assert total == truth == live.totals(JOB, "Shop")[0]


@pytest.mark.parametrize("reports", [1, WAITING_MAX - 1, WAITING_MAX, 3 * WAITING_MAX + 1])
def test_a_lost_part_leaves_all_it_reported_whether_added_up_or_not(reports: int) -> None:
    live = followed(0)
    for seq in range(1, reports + 1):
        hear(live, progress(placement(0), seq / 10, delta(seq, 3, 1)))
    at_s, _, left = live.close(placement(0).part, placement(0).fence)
    whole = aggregate_of(FACTS)
    whole.absorb(left)
    assert (whole.requests, whole.failed, at_s) == (3 * reports, reports, reports / 10)
    assert (whole.vus, whole.core_use()[0].core) == (0, placement(0).first_core)


def test_a_snapshot_and_the_windows_after_it_count_nothing_twice() -> None:
    live = followed(0, 1)
    hear(live, progress(placement(0), 0.1, delta(1, 10)))
    live.turn()
    hear(live, progress(placement(0), 0.2, delta(2, 20)))
    shown = live.since(JOB, "Shop", None)
    assert requests_in(shown) == 30
    assert isinstance(shown, Snapshot)
    hear(live, progress(placement(1), 0.3, delta(1, 5)))
    live.turn()
    windows = live.since(JOB, "Shop", shown.index)
    assert isinstance(windows, list)
    assert [window.delta.requests[0].count for window in windows] == [5]


def test_after_an_end_the_whole_is_put_together_anew_and_goes_on() -> None:
    live = followed(0, 1)
    hear(live, progress(placement(0), 0.1, delta(1, 10, vus=4)))
    hear(live, progress(placement(1), 0.1, delta(1, 20, vus=4)))
    live.turn()
    live.keep(FACTS, placement(0).part, state(12))
    assert requests_in(live.since(JOB, "Shop", None)) == 32
    hear(live, progress(placement(1), 0.2, delta(2, 1, vus=3)))
    assert requests_in(live.since(JOB, "Shop", None)) == 33
    known = live.workflow(JOB, "Shop")
    assert known is not None
    assert known.merged().vus == 3


def test_an_old_snapshot_takes_nothing_back() -> None:
    live = followed(0)
    for seq in (1, 2, 3):
        hear(live, progress(placement(0), seq / 10, delta(seq, 10)))
    late = msgspec.structs.replace(progress(placement(0), 0.2), snapshot=state(15), snapshot_seq=2)
    assert hear(live, late) is True
    assert live.totals(JOB, "Shop") == (30, 0)
    assert requests_in(live.since(JOB, "Shop", None)) == 30


def test_numbers_of_a_step_nobody_has_are_refused_and_spoil_no_window() -> None:
    live = followed(0)
    strange = Delta(seq=1, vus=1, requests=[RequestDelta(RequestKey("steal"), count=7)])
    for _ in range(2):
        with pytest.raises(DamagedState, match="steal"):
            hear(live, progress(placement(0), 0.1, strange))
    hear(live, progress(placement(0), 0.1, delta(1, 10)))
    live.turn()
    assert requests_in(live.since(JOB, "Shop", None)) == 10


def test_final_numbers_that_cannot_be_read_are_counted_and_harm_nobody() -> None:
    live = followed(0)
    live.keep(FACTS, placement(0).part, b"garbage")
    assert live.damaged == 1
    assert live.totals(JOB, "Shop") == (0, 0)


@pytest.mark.parametrize("elapsed_s", [math.inf, math.nan, -1.0, 1e300])
def test_a_load_time_that_cannot_be_is_not_believed(elapsed_s: float) -> None:
    live = followed(0)
    hear(live, progress(placement(0), elapsed_s, delta(1, 10)))
    hear(live, progress(placement(0), 0.2, delta(2, 10)))
    assert live.elapsed_s(JOB, "Shop") == 0.2
    assert requests_in(live.since(JOB, "Shop", None)) == 20


def test_windows_that_do_not_turn_do_not_fill_the_memory() -> None:
    live = followed(0)
    known = live.workflow(JOB, "Shop")
    assert known is not None
    told = pack(delta(1, 1))
    for _ in range(PENDING_MAX + 5):
        known.heard(told)
    assert len(known.pending) <= PENDING_MAX
    live.turn()
    assert known.windows[-1].delta.requests[0].count == PENDING_MAX + 5


def test_the_rate_of_a_part_is_that_of_its_last_second() -> None:
    live = followed(0)
    for seq in range(1, 32):
        hear(live, progress(placement(0), seq / 10, delta(seq, 10 if seq < 12 else 50)))
    requests, rate = live.requests(placement(0).part)
    assert requests == 110 + 20 * 50
    assert 450 <= rate <= 550


def test_parts_that_began_together_are_not_all_added_up_at_once() -> None:
    live = followed(*range(WAITING_MAX))
    known = live.workflow(JOB, "Shop")
    assert known is not None
    for seq in range(1, 2 * WAITING_MAX):
        for number in range(WAITING_MAX):
            hear(live, progress(placement(number), seq / 10, delta(seq, 1)))
        added_up = [part for part in known.parts.values() if not part.waiting]
        assert len(added_up) == 1
