"""Time zones: names checked against the tz database, and offsets as spans of constant offset.

`zoneinfo` answers for one instant at a time. A search needs to know how long an offset lasts and
what it was before, so offsets are sampled every three days and each change is narrowed down to its
second. No zone has ever gone to another offset and back within three days: the shortest was just
under four (Freetown, 1939). A test holds this against every transition of the database.
"""

from __future__ import annotations

from datetime import UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from hyperscale.errors import BadInput

FIRST_S = int(datetime(2, 1, 1, tzinfo=UTC).timestamp())
END_S = int(datetime(9999, 1, 1, tzinfo=UTC).timestamp())

SAMPLE_S = 3 * 86_400
BLOCK_BITS = 21  # 24 days: ten samples the first time, and most searches end within one block
LOOK_BACK_S = 2 * 86_400  # a gap of a whole day (Apia, 2011) still shows behind a block's edge
BLOCKS_MAX = 256  # of a zone kept in memory; a schedule needs two
ZONES_MAX = 1024  # the database has some 600 names
NAME_CHARACTERS_MAX = 64

# What people write although it names no place or several; the IANA names that are meant.
USUAL = {
    "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles", "MDT": "America/Denver",
    "CST": "America/Chicago", "CDT": "America/Chicago", "EDT": "America/New_York",
    "BST": "Europe/London", "CEST": "Europe/Berlin", "EEST": "Europe/Athens",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "AEST": "Australia/Sydney", "Z": "UTC",
}  # fmt: skip


class Span(NamedTuple):
    """start <= instant < end has one offset. `before` is the offset until `start`.

    `low` is the first instant this span answers for; `start` may lie before it.
    """

    start: int
    end: int
    offset: int
    before: int
    low: int


class Offsets:
    def __init__(self, zone: ZoneInfo) -> None:
        self.zone = zone
        self._blocks: dict[int, tuple[Span, ...]] = {}
        self._only = Span(FIRST_S, END_S, 0, 0, FIRST_S) if zone.key == "UTC" else None

    def at(self, instant: int) -> Span:
        """The span around an instant of FIRST_S <= instant < END_S."""
        if self._only is not None:
            return self._only
        number = instant >> BLOCK_BITS
        spans = self._blocks.get(number)
        if spans is None:
            spans = self._keep(number)
        for span in spans:
            if instant < span.end:
                return span
        raise AssertionError(f"{instant} is behind its block")

    def offset(self, instant: int) -> int:
        delta = datetime.fromtimestamp(instant, self.zone).utcoffset()
        assert delta is not None
        return delta.days * 86_400 + delta.seconds

    def _keep(self, number: int) -> tuple[Span, ...]:
        if len(self._blocks) >= BLOCKS_MAX:
            self._blocks.clear()
        spans = self._blocks[number] = self._sampled(number)
        return spans

    def _sampled(self, number: int) -> tuple[Span, ...]:
        low = max(number << BLOCK_BITS, FIRST_S)
        end = min((number + 1) << BLOCK_BITS, END_S)
        start = here = low - LOOK_BACK_S
        offset = before = self.offset(start)
        spans = []
        while here < end:
            there = min(here + SAMPLE_S, end)
            # Two changes within one sample are found one after the other.
            if self.offset(there) == offset:
                here = there
                continue
            here = self._change(here, there, offset)
            if here < end:
                spans.append(Span(start, here, offset, before, max(start, low)))
                start, before, offset = here, offset, self.offset(here)
        spans.append(Span(start, end, offset, before, max(start, low)))
        return tuple(span for span in spans if span.end > low)

    def _change(self, low: int, high: int, offset: int) -> int:
        """The first instant of another offset, between one that has it and one that has not."""
        while high - low > 1:
            middle = (low + high) // 2
            if self.offset(middle) == offset:
                low = middle
            else:
                high = middle
        return high


def is_zone(name: str) -> bool:
    return _loaded(name) is not None


def offsets_of(name: str) -> Offsets:
    """Raises BadInput for a name that the tz database does not have."""
    offsets = _loaded(name)
    if offsets is None:
        raise BadInput(f"there is no time zone {name[:NAME_CHARACTERS_MAX]!r}", zone_hint(name))
    return offsets


def zone_hint(name: str) -> str:
    usual = USUAL.get(name.upper())
    if usual is not None:
        return f"zones have IANA names: {usual}, perhaps"
    if set(name) & set("+-") and any(c.isdigit() for c in name):
        return "a fixed offset is no zone; name a place such as Europe/Berlin, or use UTC"
    known = _known()
    wanted = name[:NAME_CHARACTERS_MAX].lower().replace(" ", "_")
    places = {zone.rpartition("/")[2]: zone for zone in known}
    close = get_close_matches(wanted, known, 1, 0.75) or [
        places[place] for place in get_close_matches(wanted, places, 1, 0.75)
    ]
    if close:
        return f"did you mean {known[close[0]]}?"
    return "zones have IANA names such as Europe/Berlin or UTC"


@lru_cache(maxsize=1)
def _known() -> dict[str, str]:
    """Reading the names of all zones takes a walk through a directory tree."""
    return {zone.lower(): zone for zone in sorted(available_timezones())}


@lru_cache(maxsize=ZONES_MAX)
def _loaded(name: str) -> Offsets | None:
    # `right/` counts leap seconds and `localtime` is whatever this machine has.
    if len(name) > NAME_CHARACTERS_MAX or name.startswith(("right/", "posix/", "local")):
        return None
    try:
        return Offsets(ZoneInfo(name))
    except (OSError, ValueError, LookupError):  # a directory, a path, a name nobody knows
        return None
