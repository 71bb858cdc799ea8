"""Instants of the scheduler: whole microseconds since 1970 UTC.

Integers compare exactly, sort as text when padded, and stay exact in a Lua double until the year
2255. Zones exist only where cron computes; everything stored is UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

Instant = int

SECOND: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def instant_of(moment: datetime) -> Instant:
    """`moment` must carry a zone."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(instant: Instant) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)


def after(instant: Instant, seconds: float) -> Instant:
    return instant + round(seconds * SECOND)
