"""Spans of constant offset against every transition that the tz database lists."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones
from zoneinfo import _zoneinfo as pure

import pytest

from hyperscale.scheduler.schedules.cron.zones import (
    BLOCKS_MAX,
    LOOK_BACK_S,
    SAMPLE_S,
    Offsets,
    offsets_of,
    zone_hint,
)

SINCE = int(datetime(1900, 1, 1, tzinfo=UTC).timestamp())
DAY_S = 86_400


def listed_changes(name: str) -> list[tuple[int, int, int]]:
    """Instant, offset before and offset behind, from the tables that `zoneinfo` keeps to itself."""
    zone = pure.ZoneInfo(name)
    found, before = [], None
    for instant, entry in zip(zone._trans_utc, zone._ttinfos, strict=True):
        offset = int(entry.utcoff.total_seconds())
        if before is not None and offset != before and instant > SINCE:
            found.append((instant, before, offset))
        before = offset
    return found


@pytest.mark.parametrize("letter", sorted({name[0] for name in available_timezones()}))
def test_no_change_is_missed(letter: str) -> None:
    for name in sorted(available_timezones()):
        if not name.startswith(letter):
            continue
        changes = listed_changes(name)
        offsets = Offsets(ZoneInfo(name))
        for number, (instant, before, offset) in enumerate(changes):
            span = offsets.at(instant)
            assert (span.start, span.before, span.offset) == (instant, before, offset), name
            assert offsets.at(instant - 1).end == instant, name
            width = abs(offset - before)
            assert width < LOOK_BACK_S, name
            if number + 1 < len(changes):
                following, _, then = changes[number + 1]
                # What the search relies on: a gap or a repetition ends before the next change,
                # and no offset comes and goes between two samples.
                assert following - instant > width, name
                assert then != before or following - instant > SAMPLE_S, name


def test_spans_join_without_a_hole() -> None:
    offsets = offsets_of("Europe/Berlin")
    here = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp())
    until = here + 20 * 366 * DAY_S
    while here < until:
        span = offsets.at(here)
        assert span.low <= here < span.end
        assert offsets.at(span.end - 1) == span
        assert offsets.offset(span.low) == offsets.offset(span.end - 1) == span.offset
        here = span.end


def test_what_is_remembered_is_bounded() -> None:
    offsets = Offsets(ZoneInfo("Europe/Berlin"))
    for year in range(1950, 2100):
        for month in range(1, 13):
            offsets.at(int(datetime(year, month, 1, tzinfo=UTC).timestamp()))
    assert len(offsets._blocks) <= BLOCKS_MAX


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ("Europe/Berln", "did you mean Europe/Berlin?"),
        ("new york", "did you mean America/New_York?"),
        ("CEST", "Europe/Berlin, perhaps"),
        ("+02:00", "a fixed offset is no zone"),
        ("qqqqqq", "IANA names such as"),
    ],
)
def test_a_wrong_name_gets_a_hint(name: str, hint: str) -> None:
    assert hint in zone_hint(name)
