"""How fine the course of a run is kept: the newest in seconds, the oldest in hours.

An interval is as wide as the tier it lies in. A tier gives up its oldest intervals when its ring is
full, never sooner: a run of a quarter of an hour keeps every second, and no age is kept coarser
than the table asks. What leaves a tier is joined into one interval of the next; nothing is dropped,
so the course of a run of any length adds up to its totals. Only borders are decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, groupby
from typing import NamedTuple


class Tier(NamedTuple):
    name: str
    width_s: int
    entries: int

    @property
    def span_s(self) -> int:
        return self.width_s * self.entries


# Asked for are seconds for a minute, 10 s for an hour and minutes for a day, in rings of 1,000, 360
# and 1,440. What is older is an archive of hours. The last tier gives up nothing: its intervals
# become wider, the first time after two weeks.
TIERS = (
    Tier("hot", 1, 1_000),
    Tier("warm", 10, 360),
    Tier("cold", 60, 1_440),
    Tier("archive", 3_600, 366),
)
POINTS_MAX = sum(tier.entries for tier in TIERS)
# No load runs for half a year. Until then an interval of the archive, 16 h in the end, is shorter
# than the cold tier that is joined into it.
LOAD_S_MAX = 2.0**24
# How wide an interval can be: each width divides the next, so that the borders of a coarser course
# are borders of every finer one. After the last one they double.
_WIDTHS_S = (1, 2, 10, 20, 60, 120, 240, 720, 3_600)


class Stretch(NamedTuple):
    """Intervals of this width from this moment on, up to the next stretch."""

    start_s: int
    width_s: int


class Group(NamedTuple):
    """Neighbours, from `begin` to before `end`, that make one interval of this width."""

    begin: int
    end: int
    width_s: int


def tiers_for(points_max: int) -> tuple[Tier, ...]:
    """All tiers where there is room for them; else intervals of one width, which grows."""
    return TIERS if points_max >= POINTS_MAX else (Tier("all", _WIDTHS_S[0], points_max),)


def is_width(width_s: int) -> bool:
    doubled, rest_s = divmod(width_s, _WIDTHS_S[-1])
    return width_s in _WIDTHS_S or (rest_s == 0 and doubled.bit_count() == 1)


def wider(width_s: int) -> int:
    return next((width for width in _WIDTHS_S if width > width_s), 2 * width_s)


def layout(now_s: float, tiers: tuple[Tier, ...]) -> tuple[Stretch, ...]:
    """Where each tier begins at this moment, the oldest first."""
    assert 0 <= now_s <= LOAD_S_MAX
    return _layout(int(now_s), tiers)


@lru_cache(maxsize=64)  # all parts and steps of a run ask for the same second
def _layout(now_s: int, tiers: tuple[Tier, ...]) -> tuple[Stretch, ...]:
    *rings, last = tiers
    width_s = last.width_s
    while True:
        end_s = now_s + 1
        newest_first = []
        for number, ring in enumerate(rings, 1):
            # A border is one of the older tier too, else an interval would lie in both.
            older_s = width_s if number == len(rings) else rings[number].width_s
            end_s = -(-max(0, end_s - ring.span_s) // older_s) * older_s
            newest_first.append(Stretch(end_s, ring.width_s))
        if end_s <= last.entries * width_s:
            return (Stretch(0, width_s), *reversed(newest_first))
        width_s = wider(width_s)


def cells(begin_s: int, now_s: float, laid_out: Sequence[Stretch]) -> Iterator[Stretch]:
    """The intervals from a border up to the one that holds this moment."""
    ends_s = [*(stretch.start_s for stretch in laid_out[1:]), int(now_s) + 1]
    for (_, width_s), end_s in zip(laid_out, ends_s, strict=True):
        while begin_s < end_s:
            yield Stretch(begin_s, width_s)
            begin_s += width_s


def stretches(widths_s: Sequence[int]) -> list[Stretch]:
    """Intervals side by side, beginning at 0. After them anything is wide enough."""
    starts_s = accumulate(widths_s, initial=0)
    return [Stretch(*each) for each in zip(starts_s, (*widths_s, 0), strict=True)]


def groups(widths_s: Sequence[int], wanted: Sequence[Stretch], begin_s: int = 0) -> list[Group]:
    """Which neighbours to join so that no interval is narrower than wanted.

    The last interval is not over, it may be widened beyond what it has seen. Any other is joined
    only if its neighbours fill the wider one with it."""
    *starts_s, end_s = accumulate(widths_s, initial=begin_s)
    found: list[Group] = []
    for (first_s, width_s), members in groupby(_wanted_cells(starts_s, widths_s, wanted)):
        begin = found[-1].end if found else 0
        end = begin + sum(1 for _ in members)
        over_s = end_s if end == len(widths_s) else starts_s[end]
        open_end = end == len(widths_s) and starts_s[begin] == first_s
        if over_s - starts_s[begin] == width_s or open_end:
            found.append(Group(begin, end, width_s))
        else:
            found += [Group(number, number + 1, widths_s[number]) for number in range(begin, end)]
    return found


def _wanted_cells(
    starts_s: Sequence[int], widths_s: Sequence[int], wanted: Sequence[Stretch]
) -> Iterator[Stretch]:
    """For each interval the wanted one it lies in."""
    place, wanted_s = 0, wanted[0].width_s
    for start_s, width_s in zip(starts_s, widths_s, strict=True):
        while place + 1 < len(wanted) and wanted[place + 1].start_s <= start_s:
            place += 1
            wanted_s = wanted[place].width_s
        wide_s = wanted_s if wanted_s > width_s else width_s
        yield Stretch(start_s - start_s % wide_s, wide_s)


def coarser(widths_s: Sequence[int]) -> list[Group]:
    """Intervals of one width made wider: of the width where that leaves the fewest.

    Those of the narrowest width always find their neighbours, so it ends with a single interval."""
    given = stretches(widths_s)
    options = (
        groups(
            widths_s,
            [Stretch(at_s, wider(one) if width == one else width) for at_s, width in given],
        )
        for one in sorted(set(widths_s))
    )
    return min(options, key=len)
