"""Text to expression: aliases, the number of fields, a zone at the end, and all problems at once.

Any text gives an answer, within a bounded time: its length is limited and every field is read on
its own, so one mistake does not hide another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from hyperscale.scheduler.schedules.cron import advice
from hyperscale.scheduler.schedules.cron.expression import Cron, Fields
from hyperscale.scheduler.schedules.cron.fields import (
    DAY,
    HOUR,
    WEEKDAY,
    WITH_SECONDS,
    WITHOUT_SECONDS,
    Reading,
    Token,
    read,
    restricts_nothing,
    values_of,
)
from hyperscale.scheduler.schedules.cron.problems import CronError, Kind, Problem
from hyperscale.scheduler.schedules.cron.zones import USUAL, is_zone, zone_hint

CHARACTERS_MAX = 1_000  # six fields that list every value have under 600

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_WORD = re.compile(r"[^ \t]+")
_LETTERS = re.compile(r"[A-Za-z]{2}")


@dataclass(frozen=True, slots=True)
class Parsed:
    """`cron` is None exactly when there are errors."""

    text: str
    cron: Cron | None = None
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()

    @property
    def syntax_errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.errors if problem.kind is Kind.SYNTAX)

    @property
    def semantic_errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.errors if problem.kind is Kind.SEMANTIC)


@dataclass(slots=True)
class _Words:
    """The text cut up: five or six field tokens and a zone, or the reasons why not."""

    tokens: list[Token] = field(default_factory=list)
    zone: str | None = None
    errors: list[Problem] = field(default_factory=list)


def parse(text: str) -> Cron:
    parsed = check(text)
    if parsed.cron is None:
        raise CronError(text, parsed.errors)
    return parsed.cron


def check(text: str) -> Parsed:
    """Everything there is to say about an expression; never raises."""
    words = _words(text)
    if words.errors:
        return Parsed(text, errors=tuple(words.errors))
    kinds = WITH_SECONDS if len(words.tokens) == len(WITH_SECONDS) else WITHOUT_SECONDS
    readings = [read(kind, token) for kind, token in zip(kinds, words.tokens, strict=True)]
    problems = [problem for reading in readings for problem in reading.problems]
    errors = tuple(problem for problem in problems if problem.kind is not Kind.WARNING)
    if errors:
        return Parsed(text, errors=errors)
    errors = tuple(advice.never_due(readings, words.tokens))
    if errors:
        return Parsed(text, errors=errors)
    warnings = (*problems, *advice.surprises(readings, words.tokens))
    return Parsed(text, Cron(_fields(text, readings, words.zone)), warnings=warnings)


def _fields(text: str, readings: Sequence[Reading], zone: str | None) -> Fields:
    minute, hour, day, month, weekday = readings[-5:]
    return Fields(
        original=text,
        seconds=values_of(readings[0].values) if len(readings) == len(WITH_SECONDS) else None,
        minutes=values_of(minute.values),
        hours=values_of(hour.values),
        days_of_month=values_of(day.values),
        months=values_of(month.values),
        days_of_week=values_of(weekday.values),
        any_day_of_month=restricts_nothing(DAY, day, weekday),
        any_day_of_week=restricts_nothing(WEEKDAY, weekday, day),
        hourly=hour.starred or hour.values == HOUR.everything,
        timezone=zone,
    )


def _words(text: str) -> _Words:
    if len(text) > CHARACTERS_MAX:
        problem = _error(
            Token(text[:CHARACTERS_MAX], 0),
            f"an expression has at most {CHARACTERS_MAX} characters",
        )
        return _Words(errors=[problem])
    tokens = [Token(found.group(), found.start()) for found in _WORD.finditer(text.rstrip("\r\n"))]
    if not tokens:
        problem = _error(
            Token(text, 0), "the expression is empty", "*/5 * * * * is every five minutes"
        )
        return _Words(errors=[problem])
    words = _without_zone(tokens)
    if words.errors:
        return words
    if words.tokens[0].text.startswith("@"):
        return _alias(words)
    if len(words.tokens) not in (len(WITHOUT_SECONDS), len(WITH_SECONDS)):
        words.errors.append(_miscounted(text, words.tokens))
    return words


def _without_zone(tokens: list[Token]) -> _Words:
    """A last word that is no day of the week but a zone is the zone."""
    last = tokens[-1]
    if len(tokens) == 1 or not _LETTERS.search(last.text) or not _refused(last):
        return _Words(tokens)
    if is_zone(last.text):
        return _Words(tokens[:-1], last.text)
    if _stands_for_a_zone(tokens):
        message = f"there is no time zone {last.text!r}"
        problem = Problem(
            Kind.SYNTAX, "time zone", last.text, last.position, message, zone_hint(last.text)
        )
        return _Words(tokens, errors=[problem])
    return _Words(tokens)


def _stands_for_a_zone(tokens: list[Token]) -> bool:
    """The words before it are a whole expression, and it does not look like a day's name."""
    before, last = tokens[:-1], tokens[-1].text.upper()
    if before[0].text.startswith("@") or len(before) == len(WITH_SECONDS) or last in USUAL:
        return True
    return (
        len(before) == len(WITHOUT_SECONDS)
        and not _refused(before[-1])
        and not last.startswith(WEEKDAY.names)
        and not get_close_matches(last, WEEKDAY.names, 1, 0.6)
    )


def _refused(token: Token) -> bool:
    return any(problem.kind is Kind.SYNTAX for problem in read(WEEKDAY, token).problems)


def _alias(words: _Words) -> _Words:
    alias = words.tokens[0]
    fields = ALIASES.get(alias.text.lower())
    if fields is not None and len(words.tokens) == 1:
        words.tokens = [Token(text, alias.position) for text in fields.split()]
        return words
    if fields is not None:
        problem = _error(words.tokens[1], f"nothing but a time zone can follow {alias.text}")
    elif alias.text.lower() == "@reboot":
        problem = _error(
            alias,
            "@reboot has no meaning here: a schedule outlives the start of any one machine",
            "submit a job instead, or give the times at which it is due",
        )
    elif alias.text.lower() == "@every":
        problem = _error(
            alias,
            "there is no alias @every",
            "*/5 * * * * is every five minutes, */10 with seconds",
        )
    else:
        close = get_close_matches(alias.text.lower()[:12], ALIASES, 1, 0.6)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(ALIASES)}"
        problem = _error(alias, f"there is no alias {alias.text!r}", hint)
    words.errors.append(problem)
    return words


def _miscounted(text: str, tokens: list[Token]) -> Problem:
    hint = "minute, hour, day of month, month, day of week; with a second in front if there are 6"
    if len(tokens) == len(WITH_SECONDS) + 1:
        hint = f"there is no field for the year; {hint}"
    count = f"{len(tokens)} field{'s' if len(tokens) != 1 else ''}"
    return _error(
        Token(text.strip(), tokens[0].position),
        f"an expression has 5 or 6 fields, not {count}",
        hint,
    )


def _error(token: Token, message: str, suggestion: str = "") -> Problem:
    return Problem(Kind.SYNTAX, "expression", token.text, token.position, message, suggestion)
