"""Durations as people write them: `500ms`, `1m30s`, `1h`, or a bare number of seconds.

Anything else is an error that names the value: a duration that is silently misread turns a short
test into one that runs for hours.
"""

from __future__ import annotations

import math
import re

from hyperscale.errors import BadInput
from hyperscale.workload.texts import shown

_UNITS_S = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = r"(?:(\d+(?:\.\d+)?){})?"
_DURATION = re.compile("".join(_PART.format(unit) for unit in _UNITS_S))
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_HINT = "write a duration such as '500ms', '30s', '1m30s' or '1h'; a bare number is seconds"


def parse_duration(value: object, what: str = "duration") -> float:
    """Seconds in `value`; `what` names the setting in the error a person sees."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            seconds = float(value)
        except OverflowError:
            seconds = math.inf
    elif isinstance(value, str):
        seconds = _parse_text(value, what)
    else:
        raise BadInput(f"{what} {shown(value)} is not a duration", _HINT)
    if not math.isfinite(seconds) or seconds < 0:
        raise BadInput(f"{what} {shown(value)} is not a duration", _HINT)
    return seconds


def _parse_text(text: str, what: str) -> float:
    compact = text.strip()
    if _NUMBER.fullmatch(compact):
        return float(compact)
    match = _DURATION.fullmatch(compact)
    if match is None or not compact:
        raise BadInput(f"{what} {shown(text)} is not a duration", _HINT)
    return math.fsum(
        float(amount) * unit
        for amount, unit in zip(match.groups(), _UNITS_S.values(), strict=True)
        if amount is not None
    )


def format_duration(seconds: float) -> str:
    """The shortest form a person would write, to the millisecond (microsecond below a second)."""
    if seconds < 1.0:
        ms = round(seconds * 1000, 3)
        if ms == 0:
            return "0s"
        if ms < 1000:
            return f"{_plain(ms)}ms"
    total_ms = round(seconds * 1000)
    minutes, rest_ms = divmod(total_ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    parts = []
    if hours:
        parts.append(f"{hours}h")
    if minutes:
        parts.append(f"{minutes}m")
    if rest_ms:
        parts.append(f"{_plain(rest_ms / 1000)}s")
    return "".join(parts)


def _plain(number: float) -> str:
    return f"{number:.3f}".rstrip("0").rstrip(".")
