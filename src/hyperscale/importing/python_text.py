"""Python as the common formatters lay it out.

What does not fit a line is one thing a line, with a comma behind the last, which they keep as it is
whatever length of line a project has chosen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hyperscale.importing.draft import MARK, Code

WIDTH = 88  # what formatters take unless told otherwise
INDENT = "    "
Arguments = list[tuple[str | None, Any]]  # of a call; a name of None: by its place
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quoted(text: str) -> str:
    """A text as Python writes it: in double quotes, unless it has more of these itself. One with
    marks is an f-string, or the variable where it is nothing else."""
    if isinstance(text, Code):
        return str(text)
    if alone := MARK.fullmatch(text):
        return alone[1]
    quote = "'" if text.count('"') > text.count("'") else '"'
    pieces = MARK.split(text)
    written = [_escaped(piece, quote, len(pieces) > 1) for piece in pieces]
    for at in range(1, len(pieces), 2):
        written[at] = f"{{{pieces[at]}}}"
    return f"{'f' if len(pieces) > 1 else ''}{quote}{''.join(written)}{quote}"


def _escaped(text: str, quote: str, braces: bool) -> str:
    found = []
    for letter in text:
        if letter in _ESCAPES:
            found.append(_ESCAPES[letter])
        elif letter == quote:
            found.append(f"\\{quote}")
        elif letter in "{}" and braces:
            found.append(letter * 2)
        elif letter.isprintable():
            found.append(letter)
        else:
            found.append(letter.encode("unicode_escape").decode())
    return "".join(found)


def laid_out(value: Any, depth: int, before: int = 0, after: int = 0) -> str:
    """A value at this depth of indentation, with so many letters before and behind it."""
    flat = _flat(value)
    if depth * len(INDENT) + before + len(flat) + after <= WIDTH:
        return flat
    if isinstance(value, dict) and value:
        return brackets("{", value.items(), "}", depth)
    if isinstance(value, list | tuple) and value:
        opening, closing = ("(", ")") if isinstance(value, tuple) else ("[", "]")
        return brackets(opening, [(None, one) for one in value], closing, depth)
    return flat


def brackets(opening: str, items: Iterable[tuple[Any, Any]], closing: str, depth: int) -> str:
    """One item a line; a key is a text, of an argument a `Code` that ends in `=`."""
    lines = [opening]
    for key, value in items:
        head = _head(key)
        body = laid_out(value, depth + 1, before=len(head), after=1)
        lines.append(f"{INDENT * (depth + 1)}{head}{body},")
    return "\n".join([*lines, f"{INDENT * depth}{closing}"])


def call(head: str, arguments: Arguments, depth: int) -> str:
    """`head(arguments)`, on one line where that is enough."""
    keyed = [(None if name is None else Code(f"{name}="), value) for name, value in arguments]
    flat = f"{head}({', '.join(f'{_head(key)}{_flat(value)}' for key, value in keyed)})"
    if depth * len(INDENT) + len(flat) <= WIDTH or not keyed:
        return flat
    return brackets(f"{head}(", keyed, ")", depth)


def _head(key: Any) -> str:
    if key is None:
        return ""
    return str(key) if isinstance(key, Code) else f"{_flat(key)}: "


def _flat(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flat(key)}: {_flat(one)}" for key, one in value.items()) + "}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_flat, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(_flat, value))}]"
    return repr(value)
