"""Numbers as a reader wants them: three significant digits, the right unit, no false zero.

A share that is not zero never reads as 0 % and one that is not whole never as 100 %, because
"0 % failed" beside a list of failures makes a report untrustworthy.
"""

from __future__ import annotations

import math
import re

NONE = "–"
SPACE = "\N{NO-BREAK SPACE}"
_THOUSANDS = ("", "k", "M", "G", "T", "P")
_TRAILING_ZEROS = re.compile(r"\.0+(?!\d)|(?<=\.\d)0+(?!\d)")


def significant(value: float, digits: int = 3) -> str:
    """At most `digits` significant digits, never cutting whole ones: 0.0123, 4.21, 42.1, 4210."""
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    rounded = round(value, digits - 1 - magnitude)
    magnitude = math.floor(math.log10(abs(rounded))) if rounded else magnitude
    return f"{rounded:,.{max(0, digits - 1 - magnitude)}f}"


def milliseconds(value: float) -> str:
    if not math.isfinite(value):
        return NONE
    if value <= 0:
        return f"0{SPACE}ms"
    if value < 0.9995:
        return f"{significant(value * 1000)}{SPACE}µs"
    if value < 999.5:
        return f"{significant(value)}{SPACE}ms"
    return seconds(value / 1000)


def seconds(value: float) -> str:
    if not math.isfinite(value):
        return NONE
    if value <= 0:
        return f"0{SPACE}s"
    if value < 0.9995:
        return milliseconds(value * 1000)
    if value < 59.95:
        return f"{significant(value)}{SPACE}s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60}m{SPACE}{whole % 60:02d}s"
    return f"{whole // 3600}h{SPACE}{whole % 3600 // 60:02d}m"


def duration(value: float) -> str:
    """Like `seconds`, without digits nobody asked for: 30 s, 1m 30s."""
    return f"{value:.0f}{SPACE}s" if value < 59.5 and value == int(value) else seconds(value)


def count(value: int) -> str:
    return f"{value:,}"


def short(value: float) -> str:
    """With a letter for the thousands: 850, 70.7k, 1.20M."""
    if not math.isfinite(value):
        return NONE
    step = 0
    while abs(value) >= 999.5 and step < len(_THOUSANDS) - 1:
        value /= 1000
        step += 1
    if step == 0 and value == int(value):
        return f"{value:.0f}"
    return f"{significant(value)}{_THOUSANDS[step]}"


def rate(value: float) -> str:
    return f"{short(value)}/s"


def size(value: float) -> str:
    """Bytes in decimal units, as networks count."""
    number = short(value)
    letter = number[-1] if number[-1].isalpha() else ""
    return f"{number[: len(number) - len(letter)]}{SPACE}{letter}B"


def share(part: float, whole: float) -> str:
    if whole <= 0 or part < 0:
        return NONE
    percent = 100 * part / whole
    if part == 0:
        return f"0{SPACE}%"
    if part == whole:
        return f"100{SPACE}%"
    if percent < 0.01:
        return f"<0.01{SPACE}%"
    if percent > 99.99:
        return f">99.99{SPACE}%"
    if percent >= 99:
        return f"{math.floor(percent * 100) / 100:.2f}{SPACE}%"
    return f"{significant(percent, 2 if percent >= 0.1 else 1)}{SPACE}%"


def percent(ratio: float) -> str:
    """A share of one that is only an indication, such as CPU use."""
    return f"{100 * ratio:.0f}{SPACE}%" if math.isfinite(ratio) else NONE


def clock(value: float, step: float = 1) -> str:
    """A moment of the run for an axis or a mark: 0:05, 12:30, 1:02:00; 0.5 s below a second."""
    if step < 1:
        return f"{value:.1f}{SPACE}s"
    whole = round(value)
    hours, minutes = whole // 3600, whole % 3600 // 60
    if hours:
        return f"{hours}:{minutes:02d}:{whole % 60:02d}"
    return f"{minutes}:{whole % 60:02d}"


def tidy(label: str) -> str:
    """An axis label without the zeros that carry nothing: 20.0k becomes 20k, 1.00 s 1 s."""
    return _TRAILING_ZEROS.sub("", label)
