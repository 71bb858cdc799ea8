"""Numbers and names as people read them in a terminal: durations, counts, rates, sizes, clocks.

Every function takes any float: a value that is not a finite number becomes "-", so that no screen
ever shows "nan". Text is written in Unicode; `to_ascii` swaps it, width for width, for streams
whose encoding cannot carry it.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable

NOTHING = "-"

_ASCII = str.maketrans(
    {
        "µ": "u", "✓": "+", "✗": "x", "…": "~", "█": "#", "━": "=", "╸": ">", "─": "-", "│": "|",
        "┤": "|", "└": "+", "·": "-", "▲": "^", "↳": ">", "●": "*", "‖": "=", "⚠": "!", "×": "x",
        "≥": ">", "≤": "<", "–": "-", "—": "-", "“": '"', "”": '"', "’": "'", "■": "#",
        "→": ">",
    }
)  # fmt: skip


# What a terminal obeys instead of showing: control characters of both sets but tab and line end,
# and those that turn the direction or the line of what follows.
_OBEYED = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb"
_CONTROLS = re.compile(f"[{_OBEYED}]")
# The colours of `ui.output.Paint`, and nothing else that begins like them.
_CONTROLS_OR_COLOUR = re.compile(rf"(\x1b\[(?:[012]|3[123])m)|[{_OBEYED}]")
_SHOWN_AS = "\N{REPLACEMENT CHARACTER}"


def harmless(text: str, colours: bool = False) -> str:
    """For a terminal: what others wrote can be read and does nothing. With `colours` ours stay."""
    text = text.replace("\r\n", "\n")
    if colours:
        return _CONTROLS_OR_COLOUR.sub(lambda found: found[1] or _SHOWN_AS, text)
    return _CONTROLS.sub(_SHOWN_AS, text)


def harmless_json(text: str) -> str:
    """The same document: what a terminal would obey stands in texts only, where it can be spelt."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def to_ascii(text: str) -> str:
    """The same text with the same number of characters, all of them ASCII."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def _trim(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _long(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{whole % 60:02}s"


def duration(ms: float) -> str:
    """With two decimals, as k6 writes them: 350µs, 212.35ms, 1.2s, 1m02s."""
    if not math.isfinite(ms):
        return NOTHING
    if ms == 0:
        return "0s"
    if ms < 0.99995:
        return f"{_trim(ms * 1000, 2)}µs"
    if ms < 999.995:
        return f"{_trim(ms, 2)}ms"
    if ms < 59_995:
        return f"{_trim(ms / 1000, 2)}s"
    return _long(ms / 1000)


def short_duration(ms: float) -> str:
    """Three significant digits, at most six characters, for table columns: 12.3ms, 1.23s."""
    if not math.isfinite(ms):
        return NOTHING
    if ms == 0:
        return "0s"
    if ms < 0.9995:
        return f"{ms * 1000:.0f}µs"
    if ms < 999.5:
        return f"{_significant(ms)}ms"
    if ms < 59_950:
        return f"{_significant(ms / 1000)}s"
    return _long(ms / 1000)


def _significant(value: float) -> str:
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def seconds(s: float) -> str:
    """An elapsed time in words: 0.4s, 30s, 1m02s, 2h05m."""
    if not math.isfinite(s):
        return NOTHING
    return f"{_trim(s, 1)}s" if s < 59.95 else _long(s)


def clock(s: float) -> str:
    """An elapsed time of constant width while it runs: 00:32, 1:02:03."""
    if not math.isfinite(s):
        return NOTHING
    whole = max(0, int(s))
    minutes = f"{whole // 60 % 60:02}:{whole % 60:02}"
    return f"{whole // 3600}:{minutes}" if whole >= 3600 else minutes


def count(n: float) -> str:
    return f"{n:,.0f}" if math.isfinite(n) else NOTHING


def short_count(n: float) -> str:
    """At most six characters: 999,999 becomes 1.00M."""
    if not math.isfinite(n):
        return NOTHING
    if n < 99_999.5:
        return f"{n:,.0f}"
    for unit, size in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        if n / size < 999.5:
            return f"{_significant(n / size)}{unit}"
    return f"{n / 1e12:.3g}T"


def number(value: float) -> str:
    """A value in somebody else's unit: whole when it is whole, else four significant digits."""
    if not math.isfinite(value):
        return NOTHING
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 1000 else f"{value:.4g}"


def rate(per_second: float) -> str:
    if not math.isfinite(per_second):
        return NOTHING
    if per_second < 0.005:
        return "0/s"
    return f"{per_second:,.0f}/s" if per_second >= 99.5 else f"{_trim(per_second, 2)}/s"


def size(n_bytes: float) -> str:
    """Decimal units, as k6 has them: 119 kB, 1.2 GB."""
    if not math.isfinite(n_bytes):
        return NOTHING
    if n_bytes < 1000:
        return f"{n_bytes:.0f} B"
    for unit in ("kB", "MB", "GB", "TB"):
        n_bytes /= 1000
        if n_bytes < 999.5:
            return f"{_trim(n_bytes, 1 if n_bytes < 99.5 else 0)} {unit}"
    return f"{n_bytes / 1000:,.1f} PB"


def percent(part: float, whole: float) -> str:
    """A share that never rounds to 0 % or 100 % unless it is exactly that."""
    if not (math.isfinite(part) and math.isfinite(whole)) or whole <= 0:
        return "0.00%"
    share = part / whole * 100
    if 0 < share < 0.005:
        return "<0.01%"
    if 99.995 <= share < 100:
        return ">99.99%"
    return f"{share:.2f}%"


def out_of(part: int, whole: int) -> str:
    return f"{percent(part, whole)}  {count(part)} out of {count(whole)}"


def fit(text: str, width: int) -> str:
    """Cut to `width` characters, an ellipsis marking the cut."""
    if len(text) <= width:
        return text
    return text[: width - 1] + "…" if width > 0 else ""


def wrapped(
    text: str,
    width: int | None,
    *,
    indent: str = "",
    hanging: str | None = None,
    paint: Callable[[str], str] = str,
) -> list[str]:
    """In lines of `width`, none of it lost; in one line where lines may have any length."""
    if width is None:
        return [indent + paint(text)] if text else []
    hanging = indent if hanging is None else hanging
    lines = textwrap.wrap(
        text, max(20, width), initial_indent=indent, subsequent_indent=hanging,
        break_on_hyphens=False,
    )  # fmt: skip
    starts = [indent, *[hanging] * (len(lines) - 1)]
    return [start + paint(line[len(start) :]) for start, line in zip(starts, lines, strict=True)]


def one_line(text: str) -> str:
    """Messages of other programs: control characters and line ends must not reach the screen."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def printable_lines(text: str) -> list[str]:
    """A traceback: its lines and their indents stay, control characters do not."""
    return ["".join(filter(str.isprintable, line)).rstrip() for line in text.splitlines()]
