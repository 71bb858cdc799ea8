"""The scope of a threshold taken apart: `http_req_duration{step:login, name:/items/{id}}`.

A scope is a name and, in braces, what to select by. A value alone is that of a step. Braces in a
value must match; a value with commas or single braces stands in quotes.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from hyperscale.errors import BadInput

_QUOTES = ("'", '"')
_HINT = "write it like 'http_req_duration{step:login,kind:api}', a comma within a value in quotes"


class Selector(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which requests, steps or values a threshold judges; an empty field selects all."""

    step: str = ""
    group: str = ""
    status: str = ""
    method: str = ""
    name: str = ""
    kind: str = ""
    check: str = ""
    dc: str = ""
    tags: dict[str, str] = {}


class Scope(NamedTuple):
    name: str
    pairs: dict[str, str]

    def __str__(self) -> str:
        inside = ",".join(f"{key}:{_quoted(value)}" for key, value in self.pairs.items())
        return f"{self.name}{{{inside}}}" if inside else self.name


def read_scope(text: str) -> Scope:
    name, brace, _ = text.partition("{")
    if not brace:
        return Scope(text.strip(), {})
    parts, end = split_braces(text[len(name) :])
    if text[len(name) + end :].strip() or not end:
        raise BadInput(f"the braces of {text!r} do not close at its end", _HINT)
    pairs: dict[str, str] = {}
    for part in parts:
        key, value = _pair(part)
        if not key or not value:
            raise BadInput(f"{text!r} selects by {part.strip()!r}, not by a key and a value", _HINT)
        if key in pairs:
            raise BadInput(f"{text!r} selects by {key!r} twice", "one threshold selects one value")
        pairs[key] = value
    return Scope(name.strip(), pairs)


def split_braces(text: str) -> tuple[list[str], int]:
    """What stands between the commas in the braces with which the text begins, and where these
    end; 0 if they do not."""
    parts, depth, begin, quote, before = [], 0, 1, "", ""
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in _QUOTES and before in ("{", ":", ","):
            quote = letter
        elif letter == "{":
            depth += 1
        elif letter == "," and depth == 1:
            parts.append(text[begin:at])
            begin = at + 1
        elif letter == "}":
            depth -= 1
            if not depth:
                return [*parts, text[begin:at]], at + 1
        before = before if letter.isspace() else letter
    return [], 0


def _pair(part: str) -> tuple[str, str]:
    part = part.strip()
    key, colon, value = part.partition(":")
    if not colon or part.startswith(_QUOTES):
        key, value = "step", part
    value = value.strip()
    if len(value) > 1 and value[0] in _QUOTES and value[0] == value[-1]:
        value = value[1:-1]
    return key.strip(), value


def _quoted(value: str) -> str:
    braced = f"{{x:{value}}}"
    if split_braces(braced) == ([braced[1:-1]], len(braced)) and _pair(braced[1:-1])[1] == value:
        return value
    quote = "'" if '"' in value else '"'
    return f"{quote}{value}{quote}"
