"""The lines of the summary: sections, fields with dotted leaders, trends, wrapped sentences.

A terminal has a width, and what does not fit is wrapped. A file or a log has none: there lines
are as long as they need to be, so that nothing is lost and everything can be searched for.
"""

from __future__ import annotations

from collections.abc import Iterable

from hyperscale.ui import text
from hyperscale.ui.output import Paint
from hyperscale.ui.trend import Trend

INDENT = "  "
_LEADER = 26  # "http_req_tls_handshaking" and two dots
_TREND_WIDTH = 100  # of a trend where lines may have any length


class Lines:
    def __init__(self, trend_stats: tuple[str, ...], width: int | None, paint: Paint) -> None:
        self.lines: list[str] = []
        self.width = width
        self.paint = paint
        self._stats = trend_stats

    def section(self, title: str) -> None:
        self.lines += ["", self.paint.strong(title)]

    def add(self, line: str) -> None:
        self.lines.append(line)

    def extend(self, lines: Iterable[str]) -> None:
        self.lines.extend(lines)

    def field(self, name: str, value: str) -> None:
        name = text.one_line(name)
        self.add(f"{INDENT}{name}{self.paint.faint('.' * max(1, _LEADER - len(name)))}: {value}")

    def trend(self, name: str, trend: Trend, *, is_time: bool = True) -> None:
        """On one line where it fits, else on as few of about equal length as do."""
        if not trend.count:
            self.field(name, "nothing measured")
            return
        show = text.duration if is_time else text.number
        items = [
            f"{stat}={text.count(trend.count) if stat == 'count' else show(trend.stat(stat))}"
            for stat in self._stats
        ]
        used = len(INDENT) + max(_LEADER, len(name) + 1) + 2
        for count in range(1, len(items) + 1):
            per_row = -(-len(items) // count)
            texts = _aligned([items[i : i + per_row] for i in range(0, len(items), per_row)])
            if used + max(map(len, texts)) <= (self.width or _TREND_WIDTH):
                break
        self.field(name, texts[0])
        self.extend(" " * used + rest for rest in texts[1:])

    def note(self, note: str) -> None:
        """A remark on the field above."""
        self.extend(
            text.wrapped(f"({note})", self.width, indent=INDENT * 2, paint=self.paint.faint)
        )

    def told(self, told: str, indent: str) -> None:
        self.extend(text.wrapped(text.one_line(told), self.width, indent=indent))

    def sentence(self, label: str, sentence: str) -> None:
        sentence = f"{label}: {text.one_line(sentence)}"
        first, *rest = text.wrapped(sentence, self.width, hanging=INDENT)
        self.extend([self.paint.warn(first[: len(label) + 1]) + first[len(label) + 1 :], *rest])


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(len(rows[0]))]
    return [
        " ".join(item.ljust(width) for item, width in zip(row, widths, strict=False)).rstrip()
        for row in rows
    ]
