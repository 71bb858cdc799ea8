"""One field of an expression: its range, its names, and its text read into a set of values.

A set is an int with bit `v` set for value `v`: membership is a shift, and the next value after
another one is the lowest bit that is left (see `calendar`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from hyperscale.scheduler.schedules.cron.problems import Kind, Problem

DAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
SUNDAY_AS_SEVEN = 7
QUARTZ_SIGNS = frozenset("LW#?")


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    plural: str
    low: int
    high: int  # of `*`
    names: tuple[str, ...] = ()  # of low, low + 1, ...
    written_high: int = 0  # the highest number that may be written, where it is not `high`

    @property
    def top(self) -> int:
        return self.written_high or self.high

    @property
    def everything(self) -> int:
        return (1 << (self.high + 1)) - (1 << self.low)


SECOND = Field("second", "seconds", 0, 59)
MINUTE = Field("minute", "minutes", 0, 59)
HOUR = Field("hour", "hours", 0, 23)
DAY = Field("day of month", "days of the month", 1, 31)
MONTH = Field("month", "months", 1, 12, MONTH_NAMES)
WEEKDAY = Field("day of week", "days of the week", 0, 6, DAY_NAMES, SUNDAY_AS_SEVEN)

WITH_SECONDS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)
WITHOUT_SECONDS = WITH_SECONDS[1:]


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A field as read. `starred`: it begins with a star. `wild`: and it names every value, so that
    it restricts nothing and leaves the choice of days to the other day field."""

    values: int
    wild: bool
    starred: bool
    problems: tuple[Problem, ...] = ()


class _Rejected(Exception):
    def __init__(self, problem: Problem) -> None:
        self.problem = problem


def read(field: Field, token: Token) -> Reading:
    """Never raises: what is wrong is in `problems`, and the values are those that could be read."""
    values, problems = 0, []
    for item in _split(token, ","):
        try:
            first, last, step = _item(field, item)
        except _Rejected as rejected:
            problems.append(rejected.problem)
            continue
        for value in range(first, last + 1, step):
            values |= 1 << value
        problems += _oddities(field, item, first, last, step)
    if field is WEEKDAY and values >> SUNDAY_AS_SEVEN & 1:
        values = values & field.everything | 1
    starred = token.text.startswith("*")
    return Reading(values, starred and values == field.everything, starred, tuple(problems))


def restricts_nothing(field: Field, reading: Reading, other: Reading) -> bool:
    """Whether a day field leaves the choice of days to the other one.

    `1-31` and `0-6` name every day, yet beside a list of days they mean every day, in every cron.
    Beside a stepped star they leave the choice to it.
    """
    return reading.wild or (other.starred and reading.values == field.everything)


def values_of(mask: int) -> tuple[int, ...]:
    return tuple(value for value in range(mask.bit_length()) if mask >> value & 1)


def mask_of(values: tuple[int, ...]) -> int:
    return sum(1 << value for value in set(values))


def _split(token: Token, separator: str) -> Iterator[Token]:
    position = token.position
    for part in token.text.split(separator):
        yield Token(part, position)
        position += len(part) + 1


def _item(field: Field, item: Token) -> tuple[int, int, int]:
    """First value, last value and step of one member of the list."""
    if not item.text:
        raise _syntax(field, Token(",", item.position), f"the {field.name} has an empty list item")
    span, *steps = _split(item, "/")
    if len(steps) > 1:
        raise _syntax(field, item, f"the {field.name} {item.text!r} has more than one '/'")
    step = _step(field, steps[0]) if steps else 1
    if span.text == "*":
        return field.low, field.high, step
    ends = list(_split(span, "-"))
    if len(ends) > 2:
        raise _syntax(
            field, item, f"the {field.name} {span.text!r} is not a range", _range_hint(field)
        )
    first = _value(field, ends[0], item)
    if len(ends) == 1:
        return first, max(first, field.high) if steps else first, step
    last = _value(field, ends[1], item)
    if field is WEEKDAY and last == 0 and first > 0 and not ends[1].text.isdigit():
        last = SUNDAY_AS_SEVEN
    if first > last:
        raise _Rejected(_backwards(field, item, span.text, ends))
    return first, last, step


def _step(field: Field, token: Token) -> int:
    step = _number(token.text)
    if not step:
        raise _syntax(
            field,
            Token(token.text or "/", token.position - (not token.text)),
            f"the step of the {field.name} has to be a whole number above 0, not {token.text!r}",
            f"*/2 is every other one of the {field.plural}",
        )
    return step


def _value(field: Field, token: Token, item: Token) -> int:
    text = token.text
    upper = text.upper()
    if upper in field.names:
        return field.names.index(upper) + field.low
    value = _number(text)
    if value is None:
        raise _syntax(field, token if text else item, *_unreadable(field, text, item.text))
    if not field.low <= value <= field.top:
        raise _syntax(field, token, f"there is no {field.name} {text}", _outside(field, value))
    return value


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _unreadable(field: Field, text: str, item: str) -> tuple[str, str]:
    if not text:
        return f"the {field.name} {item!r} is not a range", _range_hint(field)
    message = f"the {field.name} {text!r} is neither a number nor a name"
    signs = QUARTZ_SIGNS & set(text.upper())
    if signs and not set(text.upper()) - QUARTZ_SIGNS - set("0123456789"):
        hint = "write * instead" if text == "?" else "list the days instead"
        return f"the {field.name} {text!r} uses a sign of Quartz, {sorted(signs)[0]}", hint
    if text == "*":
        return (
            f"the {field.name} {item!r} has a star inside a range",
            "a star stands alone, or as */n",
        )
    close = get_close_matches(text.upper()[:9], field.names, 1, 0.6) if field.names else []
    close = [name for name in field.names if text.upper().startswith(name)] or close
    if close:
        return message, f"did you mean {close[0]}?"
    return message, _outside(field, -1)


def _outside(field: Field, value: int) -> str:
    if field is HOUR and value == 24:
        return "midnight is hour 0"
    if field in (MINUTE, SECOND) and value == 60:
        return f"the full {'hour' if field is MINUTE else 'minute'} is {field.name} 0"
    if field is WEEKDAY:
        return "days of the week are 0 to 7 (0 and 7 are Sunday) or SUN to SAT"
    names = f" or {field.names[0]} to {field.names[-1]}" if field.names else ""
    return f"{field.plural} are {field.low} to {field.high}{names}"


def _range_hint(field: Field) -> str:
    return f"a range is written {field.low}-{field.high}"


def _backwards(field: Field, item: Token, span: str, ends: list[Token]) -> Problem:
    first, last = (end.text for end in ends)
    named = first.upper() in field.names
    low, high = (field.names[0], field.names[-1]) if named else (str(field.low), str(field.high))
    if field is WEEKDAY and first == str(SUNDAY_AS_SEVEN):
        suggestion = f"write {_range(low, last)}"
    else:
        suggestion = f"write it in two parts: {_range(first, high)},{_range(low, last)}"
    message = f"the {field.name} range {span} runs backwards"
    return Problem(Kind.SYNTAX, field.name, item.text, item.position, message, suggestion)


def _range(first: str, last: str) -> str:
    return first if first == last else f"{first}-{last}"


def _oddities(field: Field, item: Token, first: int, last: int, step: int) -> Iterator[Problem]:
    if step == 1:
        return
    if step > last - first:
        yield _warning(
            field, item, f"the step of {item.text} is wider than its range: only {first} is left"
        )
    elif "*" not in item.text and "-" not in item.text:
        yield _warning(
            field,
            item,
            f"{item.text} is read as {first}-{last}/{step}; other crons refuse it",
            f"write {first}-{last}/{step}",
        )
    elif item.text[0] == "*" and field in (SECOND, MINUTE, HOUR):
        size = field.high + 1
        if size % step:
            yield _warning(
                field,
                item,
                f"{item.text} starts again with each {_OUTER[field.name]}: from {field.name} "
                f"{(size - 1) // step * step} to the next 0 it is {size % step}, not {step}",
            )


_OUTER = {"second": "minute", "minute": "hour", "hour": "day"}


def _syntax(field: Field, token: Token, message: str, suggestion: str = "") -> _Rejected:
    return _Rejected(
        Problem(Kind.SYNTAX, field.name, token.text, token.position, message, suggestion)
    )


def _warning(field: Field, token: Token, message: str, suggestion: str = "") -> Problem:
    return Problem(Kind.WARNING, field.name, token.text, token.position, message, suggestion)
