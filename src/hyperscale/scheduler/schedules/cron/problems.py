"""What can be wrong with an expression, as data: where it stands, why, and what to write instead.

A syntax error is text that cannot be read, a semantic error is text that can be read but means
nothing (a time that never comes). A warning leaves the expression usable: it says what a reader of
crontabs may not expect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from hyperscale.errors import BadInput


class Kind(StrEnum):
    SYNTAX = "syntax"
    SEMANTIC = "semantic"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    kind: Kind
    field: (
        str  # "minute", "day of week", ...; "expression" or "time zone" for the whole or the zone
    )
    value: str  # the offending piece as written
    position: int  # of its first character in the text that was given
    message: str
    suggestion: str = ""


class CronError(BadInput):
    """An expression that cannot be used; `problems` holds every reason, in order of position."""

    def __init__(self, text: str, problems: Sequence[Problem]) -> None:
        hints = dict.fromkeys(problem.suggestion for problem in problems if problem.suggestion)
        super().__init__(
            "\n".join(f"{problem.message}\n{underlined(text, problem)}" for problem in problems),
            "\n".join(hints),
        )
        self.text = text
        self.problems = tuple(problems)


SHOWN_CHARACTERS = 80


def underlined(text: str, problem: Problem) -> str:
    """The text and carets below the offending piece; control characters become visible."""
    start = max(0, problem.position - SHOWN_CHARACTERS // 2)
    shown = "".join(c if c.isprintable() else "�" for c in text[start : start + SHOWN_CHARACTERS])
    width = max(1, min(len(problem.value), SHOWN_CHARACTERS - (problem.position - start)))
    return f"  {shown}\n  {' ' * (problem.position - start)}{'^' * width}"
