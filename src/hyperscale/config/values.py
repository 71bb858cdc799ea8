"""How the text of a setting becomes its value. Each reader says what it takes, so that a bad value
gets the same sentence wherever it was written."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from hyperscale.errors import BadInput

_SWITCHES = {"1": True, "true": True, "yes": True, "on": True}
_SWITCHES |= {"0": False, "false": False, "no": False, "off": False}

Reader = Callable[[object], object]


class Unfit(ValueError):
    """The value is not what the setting takes; the text says what would be."""


class Kind(NamedTuple):
    """A setting whose default does not say what it takes."""

    read: Reader
    default: object = None
    private: bool = False  # a value may be a secret: no sentence repeats it


def default_of(declared: object) -> object:
    return declared.default if isinstance(declared, Kind) else declared


def converted(label: str, declared: object, value: object) -> object:
    """The value as its `Kind` says, or as the type that its default has."""
    kind = declared if isinstance(declared, Kind) else Kind(_reader_of(declared))
    try:
        return kind.read(value)
    except Unfit as wanted:
        shown = "" if kind.private else f", not {value!r}"
        raise BadInput(f"{label} takes {wanted}{shown}") from None


def _reader_of(default: object) -> Reader:
    if isinstance(default, bool):
        return switch
    if isinstance(default, int | float):
        return whole_number if isinstance(default, int) else number
    return comma_list if isinstance(default, tuple) else text


def text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Unfit("text")
    return str(value).strip()


def switch(value: object) -> bool:
    found = _SWITCHES.get(str(value).lower())
    if found is None:
        raise Unfit("true or false")
    return found


def number(value: object) -> float:
    return float(_finite(value, "a number", float))


def whole_number(value: object) -> int:
    read = _finite(value, "a whole number", float if isinstance(value, float) else int)
    if read != int(read):
        raise Unfit("a whole number")
    return int(read)


def _finite(value: object, wanted: str, kind: type[int] | type[float]) -> int | float:
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        read = kind(value)
        if not math.isfinite(read):
            raise ValueError
    except ValueError:
        raise Unfit(wanted) from None
    if read < 0:
        raise Unfit("nothing below zero")
    return read


def whole(at_least: int, at_most: int | None = None) -> Reader:
    wanted = f"a whole number from {at_least}" + (f" to {at_most}" if at_most is not None else "")

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise Unfit(wanted)
        try:
            number = int(value)
        except ValueError:
            raise Unfit(wanted) from None
        if number < at_least or (at_most is not None and number > at_most):
            raise Unfit(wanted)
        return number

    return read


def share(value: object) -> float:
    try:
        read = number(value)
    except Unfit:
        read = math.inf
    if read > 1:
        raise Unfit("a number from 0 to 1")
    return read


def choice(*choices: str) -> Reader:
    def read(value: object) -> str:
        if value not in choices:
            raise Unfit(f"one of {', '.join(choices)}")
        return str(value)

    return read


def comma_list(value: object) -> tuple[str, ...]:
    """A list, or one text cut at commas; each entry of a list may hold commas too."""
    given = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(entry, str) for entry in given):
        raise Unfit("a list of texts")
    parts = (part.strip() for entry in given for part in str(entry).split(","))
    return tuple(part for part in parts if part)


def texts(separator: str | None) -> Reader:
    """A list; in the environment one line, cut at `separator` (None: at white space)."""

    def read(value: object) -> list[str]:
        if isinstance(value, str):
            return [part.strip() for part in value.split(separator) if part.strip()]
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            raise Unfit("a list of texts")
        return list(value)

    return read


_words = texts(None)


def pairs(value: object) -> dict[str, str]:
    if isinstance(value, dict):
        return {str(key): text(item) for key, item in value.items()}
    found: dict[str, str] = {}
    items = _words(value)
    assert isinstance(items, list)
    for item in items:
        key, equals, said = item.partition("=")
        if not key or not equals:
            raise Unfit("KEY=VALUE")
        found[key] = said
    return found
