"""The frame every chart shares: grid, axes, legend, marks, and a plot that stretches.

The curves live in an inner SVG that is stretched to whatever room there is, the text in the outer
one at percentages, so labels keep their size from a phone to a printed page without any script.
Axis labels stand outside the plot in the padding of the surrounding box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hyperscale.metrics.results import Mark
from hyperscale.ui.html import numbers
from hyperscale.ui.html.markup import Attribute, Html, join, tag
from hyperscale.ui.html.scale import Scale

# Units of the stretched plot: fine enough that whole numbers are exact to half a pixel.
WIDTH = 2000
HEIGHT = 1000
# Room a mark's text may take: characters over the whole width of a wide page.
_MARK_CHARACTERS = 150
_MARK_LONGEST = 48
_MARK_GAP = 0.02

Position = tuple[float, float]
Format = Callable[[float], str]


@dataclass(kw_only=True)
class Chart:
    key: str  # unique in the page, and the kind of chart for the script
    title: str
    unit: str
    description: str  # what the chart shows, in words, for those who cannot see it
    x: Scale
    y: Scale
    x_label: Format
    y_label: Format
    curves: Sequence[Html]
    legend: Sequence[tuple[str, str]] = ()  # class of the curve, its name
    marks: Sequence[Mark] = ()
    mark_texts: bool = False
    data: dict[str, Attribute] = field(default_factory=dict)

    def render(self) -> Html:
        return tag(
            "figure",
            tag(
                "figcaption",
                tag("h4", self.title),
                tag("span", self.unit, class_="unit"),
                _legend(self.legend),
            ),
            tag("div", self._drawing(), class_="canvas"),
            class_=f"chart {self.data.get('data_kind', '')}".strip(),
            **self.data,
        )

    def _drawing(self) -> Html:
        return tag(
            "svg",
            tag("title", f"{self.title}, {self.unit}", id=f"{self.key}-title"),
            tag("desc", self.description, id=f"{self.key}-desc"),
            self._grid(),
            tag(
                "svg",
                self.curves,
                class_="plot",
                width="100%",
                height="100%",
                viewBox=f"0 0 {WIDTH} {HEIGHT}",
                preserveAspectRatio="none",
            ),
            self._marks(),
            role="img",
            aria_labelledby=f"{self.key}-title {self.key}-desc",
        )

    def _grid(self) -> Html:
        parts = []
        for tick in self.y.ticks:
            y = percent(1 - self.y.position(tick))
            parts.append(tag("line", x1="0", x2="100%", y1=y, y2=y, class_="grid"))
            label = numbers.tidy(self.y_label(tick))
            parts.append(tag("text", label, x="-8", y=y, dy="0.35em", class_="y"))
        for index, tick in enumerate(self.x.ticks):
            x = percent(self.x.position(tick))
            label = numbers.tidy(self.x_label(tick))
            # A narrow page shows every second label.
            kind = "x odd" if index % 2 else "x"
            parts.append(tag("text", label, x=x, y="100%", dy="1.6em", class_=kind))
        return join(parts)

    def _marks(self) -> Html:
        places = [percent(self.x.position(mark.at_s)) for mark in self.marks]
        lines = [tag("line", x1=x, x2=x, y1="0", y2="100%") for x in places]
        return tag("g", lines, self._mark_labels() if self.mark_texts else None, class_="mark")

    def _mark_labels(self) -> Iterator[Html]:
        """Marks too close to be told apart share a label: "2–4". A wide page has the words of a
        mark where they fit, a narrow one its number; both list all marks below the charts."""
        groups: list[list[int]] = []
        positions = [self.x.position(mark.at_s) for mark in self.marks]
        for index, position in enumerate(positions):
            if groups and position - positions[groups[-1][0]] < _MARK_GAP:
                groups[-1].append(index)
            else:
                groups.append([index])
        starts = [positions[group[0]] for group in groups]
        for place, group in enumerate(groups):
            first, last = group[0] + 1, group[-1] + 1
            number = str(first) if first == last else f"{first}–{last}"
            words = self.marks[group[0]].text if first == last else ""
            shown, anchor, shift = _mark_words(number, words, place, starts)
            x = percent(starts[place])
            yield tag("text", shown, x=x, y="-6", dx=shift, text_anchor=anchor, class_="words")
            yield tag("text", number, x=x, y="-6", text_anchor="middle", class_="number")


def _mark_words(
    number: str, words: str, place: int, starts: Sequence[float]
) -> tuple[str, str, int]:
    """To the right of its line where that leaves the next one free, the last one else to the
    left, or the number alone."""
    if len(words) > _MARK_LONGEST:
        words = words[: _MARK_LONGEST - 1].rstrip() + "…"
    here, last = starts[place], place + 1 == len(starts)
    following = 1.0 if last else starts[place + 1]
    if words and (following - here) * _MARK_CHARACTERS > len(words) + 4:
        return f"{number} · {words}", "start", -3
    previous = starts[place - 1] if place else 0.0
    if words and last and (here - previous) * _MARK_CHARACTERS > 2 * len(words) + 8:
        return f"{words} · {number}", "end", 3
    return number, "middle", 0


def _legend(entries: Sequence[tuple[str, str]]) -> Html | None:
    if not entries:
        return None
    return tag(
        "ul",
        (
            tag(
                "li",
                tag(
                    "button",
                    tag("i", class_=f"swatch {kind}"),
                    name,
                    type="button",
                    data_curve=kind,
                    aria_pressed="true",
                ),
            )
            for kind, name in entries
        ),
        class_="legend",
    )


def line(points: Iterable[Position], kind: str) -> Html:
    return tag("path", d=_path(points), class_=f"line {kind}")


def area(points: Sequence[Position], kind: str) -> Html:
    """The room between a curve and the bottom of the plot."""
    if not points:
        return Html("")
    closed = f"{_path(points)}V{HEIGHT}H{round(points[0][0] * WIDTH)}z"
    return tag("path", d=closed, class_=f"area {kind}")


def bar(left: float, right: float, top: float, kind: str, tip: str) -> Html:
    x = round(left * WIDTH, 1)
    y = round((1 - top) * HEIGHT, 1)
    return tag(
        "rect",
        x=x,
        y=y,
        width=round(right * WIDTH - x, 1),
        height=round(HEIGHT - y, 1),
        class_=f"bar {kind}",
        data_tip=tip,
    )


def _path(points: Iterable[Position]) -> str:
    """Whole numbers, and steps instead of places after the first: a third of the bytes."""
    parts: list[str] = []
    before: tuple[int, int] | None = None
    for x, y in points:
        here = (round(x * WIDTH), round((1 - y) * HEIGHT))
        if before is None:
            parts.append(f"M{here[0]} {here[1]}l")
        else:
            parts.append(f"{here[0] - before[0]} {here[1] - before[1]} ")
        before = here
    return "".join(parts).rstrip(" l")


def percent(position: float) -> str:
    return f"{round(100 * position, 2):g}%"
