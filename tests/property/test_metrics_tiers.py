"""Borders of the course of a run, whatever its length and however it was added up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hyperscale.metrics import tiers
from hyperscale.metrics.histogram import Histogram, Sparse
from hyperscale.metrics.interval import Amounts
from hyperscale.metrics.tiers import LOAD_S_MAX, POINTS_MAX, TIERS, Group, Stretch
from hyperscale.metrics.timeline import Timeline

HOUR_S, DAY_S = 3_600, 86_400

moments = st.one_of(
    st.floats(0, 2 * HOUR_S),
    st.floats(0, 3 * DAY_S),
    st.floats(0, LOAD_S_MAX),
    st.integers(0, 3 * DAY_S).map(float),
)
rooms = st.one_of(st.integers(2, 40), st.integers(2, 2 * POINTS_MAX))


def cells(now_s: float, points_max: int = POINTS_MAX) -> list[Stretch]:
    return list(tiers.cells(0, now_s, tiers.layout(now_s, tiers.tiers_for(points_max))))


@st.composite
def courses(draw: st.DrawFn) -> list[int]:
    """Widths of intervals side by side, as they are after a run and some joining."""
    now_s = draw(st.floats(0, 3 * HOUR_S))
    widths_s = [cell.width_s for cell in cells(now_s, draw(rooms))]
    for _ in range(draw(st.integers(0, 4))):
        widths_s = [group.width_s for group in tiers.coarser(widths_s)]
    return widths_s


def side_by_side(found: list[Group], count: int) -> bool:
    ends = [0, *(group.end for group in found)]
    return [group.begin for group in found] == ends[:-1] and ends[-1] == count


@given(moments, rooms)
def test_intervals_lie_side_by_side_and_none_too_many(now_s: float, points_max: int) -> None:
    found = cells(now_s, points_max)
    assert len(found) <= points_max
    assert found == tiers.stretches([cell.width_s for cell in found])[:-1]
    assert found[-1].start_s <= now_s < sum(found[-1])
    assert all(tiers.is_width(width_s) for _, width_s in found)
    assert all(start_s % width_s == 0 for start_s, width_s in found)


@given(moments)
def test_each_tier_keeps_to_its_ring(now_s: float) -> None:
    laid_out = tiers.layout(now_s, TIERS)
    ends_s = [*(start_s for start_s, _ in laid_out[1:]), int(now_s) + 1]
    for tier, (start_s, width_s), end_s in zip(reversed(TIERS), laid_out, ends_s, strict=True):
        assert 0 <= (end_s - start_s) // width_s <= tier.entries
        assert width_s == tier.width_s or tier.name == "archive"


@given(moments)
def test_no_age_is_coarser_than_its_tier(now_s: float) -> None:
    for start_s, width_s in cells(now_s):
        age_s = now_s - (start_s + width_s)
        if age_s < 60:
            assert width_s == 1
        elif age_s < HOUR_S:
            assert width_s <= 10
        elif age_s < (DAY_S if now_s < 15 * DAY_S else 8 * HOUR_S):
            assert width_s <= 60
        elif now_s < 15 * DAY_S:
            assert width_s <= HOUR_S


@given(st.lists(moments, min_size=1, max_size=6), rooms)
def test_time_may_pass_in_any_steps(times: list[float], points_max: int) -> None:
    timeline = Timeline(points_max)
    for now_s in times:
        timeline.advance(now_s)
    widths_s = [slot.width_s for slot in timeline.export().slots]
    assert widths_s == [cell.width_s for cell in cells(max(times), points_max)]


@given(courses(), courses())
def test_two_courses_meet_in_the_same_borders(one: list[int], other: list[int]) -> None:
    joined = tiers.groups(one, tiers.stretches(other))
    assert side_by_side(joined, len(one))
    ours = tiers.stretches([group.width_s for group in joined])
    matched = tiers.groups(other, ours)
    assert side_by_side(matched, len(other))
    theirs = tiers.stretches([group.width_s for group in matched])
    shared = min(len(ours), len(theirs)) - 1
    assert ours[:shared] == theirs[:shared]


@given(courses())
def test_coarser_and_coarser_ends_with_one(widths_s: list[int]) -> None:
    for _ in range(200):
        found = tiers.coarser(widths_s)
        assert side_by_side(found, len(widths_s))
        if len(widths_s) == 1:
            return
        assert len(found) < len(widths_s) or max(g.width_s for g in found) > min(widths_s)
        widths_s = [group.width_s for group in found]
    raise AssertionError("it does not end")


def sparse(bucket: int, count: int) -> Sparse:
    return Sparse.of([bucket], [count], low=0.5, high=2.0, total=float(count), squares=float(count))


news = st.tuples(st.floats(0, 3 * DAY_S), st.integers(0, 500), st.integers(600, 900), st.booleans())


def told(timeline: Timeline, several: list[tuple[float, int, int, bool]]) -> Timeline:
    for at_s, count, bucket, late in several:
        latency = (sparse(bucket, count), sparse(950, count) if late else None)
        timeline.add(
            at_s - 0.1,
            at_s,
            Amounts(requests=count, failed=count // 2, bytes_in=7 * count),
            [latency] if count else [],
        )
    return timeline


@given(st.lists(news, max_size=12), st.lists(news, max_size=12), rooms, rooms)
def test_nothing_is_lost_on_any_way_through_the_tiers(
    here: list[tuple[float, int, int, bool]],
    there: list[tuple[float, int, int, bool]],
    room: int,
    other_room: int,
) -> None:
    timeline = told(Timeline(room), here)
    timeline.absorb(told(Timeline(other_room), there).export(), vus=0)
    slots = timeline.export().slots
    requests = sum(count for _, count, _, _ in [*here, *there])
    assert len(timeline) <= room
    assert sum(slot.amounts[0] for slot in slots) == requests
    assert sum(point.requests for point in timeline.points()) == requests
    assert sum(point.bytes_in for point in timeline.points()) == 7 * requests
    found, wanted = Histogram(), Histogram()
    for slot in slots:
        if slot.service is not None:
            found.add(slot.service)
    for _, count, bucket, _ in [*here, *there]:
        if count:
            wanted.add(sparse(bucket, count))
    assert found.distribution() == wanted.distribution()
