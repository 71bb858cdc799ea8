"""Live numbers: windows over all parts, totals that never go back, what a lost part leaves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.engine.assembly import aggregate_of
from hyperscale.nodes.manager.live import WINDOWS_MAX, Live
from hyperscale.nodes.protocol.jobs import Snapshot
from tests.unit.nodes.manager.cases import FACTS, JOB, delta, placement, progress, state


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
    live.heard(progress(placement(0), 0.1, delta(1, 10, 1)))
    live.heard(progress(placement(1), 0.1, delta(1, 20, 2)))
    live.turn()
    windows = live.since(JOB, "Shop", 0)
    assert isinstance(windows, list)
    (window,) = windows
    assert (window.delta.steps[0].count, window.delta.steps[0].failed) == (30, 3)
    assert (window.delta.vus, window.workers) == (10, 2)


def test_a_repeated_report_changes_nothing_and_a_late_one_is_in_the_next_window() -> None:
    live = followed(0, 1)
    live.heard(progress(placement(0), 0.1, delta(1, 10)))
    live.turn()
    live.heard(progress(placement(0), 0.1, delta(1, 10)))
    live.heard(progress(placement(1), 0.1, delta(1, 5)))
    live.turn()
    assert live.totals(JOB, "Shop") == (15, 0)
    windows = live.since(JOB, "Shop", 1)
    assert isinstance(windows, list)
    assert [window.delta.steps[0].count for window in windows] == [5]


def test_users_of_a_part_that_said_nothing_are_still_there() -> None:
    live = followed(0, 1)
    live.heard(progress(placement(0), 0.1, delta(1, 1, vus=3)))
    live.heard(progress(placement(1), 0.1, delta(1, 1, vus=4)))
    live.turn()
    live.heard(progress(placement(0), 0.2, delta(2, 1, vus=3)))
    live.turn()
    windows = live.since(JOB, "Shop", 1)
    assert isinstance(windows, list)
    assert windows[-1].delta.vus == 7


def test_a_report_of_an_attempt_that_is_over_is_not_counted() -> None:
    live = followed(0)
    live.follow(FACTS, placement(0, attempt=2), fresh=True)
    live.heard(progress(placement(0), 0.1, delta(1, 10)))
    assert live.totals(JOB, "Shop") == (0, 0)
    assert live.late == 1


def test_what_a_lost_part_reported_is_kept_and_its_successor_adds_to_it() -> None:
    live = followed(0)
    live.heard(progress(placement(0), 4.0, delta(1, 10)))
    at_s, _, left = live.close(placement(0).part, placement(0).fence)
    assert at_s == 4.0
    live.keep(FACTS, placement(0).part, left)
    live.follow(FACTS, placement(0, attempt=2), fresh=True)
    live.heard(progress(placement(0, attempt=2), 9.0, delta(1, 7)))
    assert live.totals(JOB, "Shop") == (17, 0)
    assert requests_in(live.since(JOB, "Shop", None)) == 17


def test_final_numbers_take_the_place_of_reported_ones() -> None:
    live = followed(0)
    live.heard(progress(placement(0), 0.1, delta(1, 10)))
    live.keep(FACTS, placement(0).part, state(12, 1))
    assert live.totals(JOB, "Shop") == (12, 1)
    assert requests_in(live.since(JOB, "Shop", None)) == 12


def test_a_new_leader_asks_for_snapshots_and_shows_nothing_before() -> None:
    live = followed(0, 1, fresh=False)
    assert live.heard(progress(placement(0), 5.0, delta(9, 3))) is False
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
        assert live.heard(told) is True
    assert requests_in(live.since(JOB, "Shop", None)) == 206


def test_a_gap_in_the_reports_is_noticed() -> None:
    live = followed(0)
    assert live.heard(progress(placement(0), 0.1, delta(1, 10))) is True
    assert live.heard(progress(placement(0), 0.5, delta(5, 10))) is False
    assert live.totals(JOB, "Shop") == (10, 0)


def test_an_impatient_watcher_is_shown_what_there_is() -> None:
    live = followed(0, 1, fresh=False)
    assert requests_in(live.since(JOB, "Shop", None, whole=False)) == 0


def test_a_watcher_too_far_behind_gets_a_snapshot() -> None:
    live = followed(0)
    for seq in range(1, WINDOWS_MAX + 10):
        live.heard(progress(placement(0), seq / 10, delta(seq, 1)))
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
            live.heard(progress(placement(number), float(seq), delta(seq, 2)))
    known = live.workflow(JOB, "Shop")
    assert known is not None
    assert all(len(part.aggregate.freeze().series) <= 10 for part in known.parts.values())
    assert requests_in(live.since(JOB, "Shop", None)) == 360


def test_a_forgotten_job_leaves_nothing() -> None:
    live = followed(0, 1)
    live.forget(JOB)
    assert len(live) == 0


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
            live.heard(progress(placement(number), at / 10, told))
        if turn:
            live.turn()
        windows = live.since(JOB, "Shop", seen)
        for window in windows if isinstance(windows, list) else ():
            seen = window.index
            total += window.delta.steps[0].count
    live.turn()
    windows = live.since(JOB, "Shop", seen)
    total += sum(w.delta.steps[0].count for w in windows) if isinstance(windows, list) else 0
    assert total == truth == live.totals(JOB, "Shop")[0]
