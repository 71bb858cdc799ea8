"""Headers as the lines that go on the wire.

How a request is framed is the client's own business: an author's `Content-Length` is left out, the
true one is sent. `Transfer-Encoding: chunked` stays, and the client then sends the body in chunks.
Everything else is sent as it was written, or refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from hyperscale.errors import BadInput
from hyperscale.workload.texts import as_text, shown

TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FRAMING = frozenset({"content-length", "transfer-encoding"})
_LINE_BREAK = re.compile(r"[\r\n\0]").search

HeaderPairs = Mapping[str, Any] | Sequence[tuple[str, Any]]


@lru_cache(maxsize=1024)
def header_name(name: str) -> tuple[bytes, str]:
    """A header's name as it starts its line, and in lower case."""
    if not isinstance(name, str) or not TOKEN.fullmatch(name):
        raise BadInput(f"{shown(name)} is not a header name")
    return f"{name}: ".encode(), name.lower()


def header_value(name: str, value: Any) -> bytes:
    """A header's value; a line break in it would let the value write other headers."""
    text: str = value if type(value) is str else _text(name, value)
    if _LINE_BREAK(text):
        raise BadInput(f"the value of header {name} contains a line break: {shown(text)}")
    text = text.strip(" \t")
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        pass
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadInput(f"the value of header {name} is not text: {shown(text)}") from None


def header_lines(headers: HeaderPairs) -> tuple[bytes, frozenset[str]]:
    """The lines, and the names they set. None as a value means: do not send this header."""
    pairs: Iterable[tuple[str, Any]]
    if type(headers) is dict or isinstance(headers, Mapping):
        names, framing = _names(*headers)
        pairs = headers.items()
    else:
        pairs = header_pairs(headers)
        names, framing = _names(*(name for name, _ in pairs))
    if framing:
        pairs = _without_length(pairs)
        names, _ = _names(*(name for name, _ in pairs))
    lines = b""
    for name, value in pairs:
        if type(value) is str:
            lines += b"%b%b\r\n" % (header_name(name)[0], header_value(name, value))
        elif value is not None:
            start = header_name(name)[0]
            lines += b"".join([b"%b%b\r\n" % (start, one) for one in _values(name, value)])
    return lines, names


def header_pairs(headers: Any) -> list[tuple[str, Any]]:
    """A list of pairs, which may have a name several times."""
    if isinstance(headers, list | tuple):
        pairs = [tuple(pair) for pair in headers if isinstance(pair, list | tuple)]
        if len(pairs) == len(headers) and all(len(pair) == 2 for pair in pairs):
            for name, _ in pairs:
                if not isinstance(name, str):
                    raise BadInput(f"{shown(name)} is not a header name")
            return pairs
    raise BadInput(
        f"headers are {shown(headers)} but must be a dict or a list of pairs",
        "a list as a value sends a header several times: {'X-Tag': ['a', 'b']}",
    )


@lru_cache(maxsize=1024)
def _names(*names: str) -> tuple[frozenset[str], bool]:
    """In lower case, and whether one of them is about framing."""
    lower = [header_name(name)[1] for name in names]
    if lower.count("host") > 1:
        raise BadInput("header Host is given twice, and a request has one")
    found = frozenset(lower)
    return found, not found.isdisjoint(_FRAMING)


def _values(name: str, value: Any) -> list[bytes]:
    if not isinstance(value, list | tuple):
        return [header_value(name, value)]
    values = [header_value(name, one) for one in value if one is not None]
    if len(values) > 1 and header_name(name)[1] == "host":
        raise BadInput("header Host is given twice, and a request has one")
    return values


def _without_length(pairs: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    kept = []
    codings: list[bytes] = []
    for name, value in pairs:
        lower = header_name(name)[1]
        if lower not in _FRAMING:
            kept.append((name, value))
        elif value is not None:
            values = _values(name, value)
            if lower == "transfer-encoding" and values:
                codings += values
                kept.append((name, value))
    if codings and [coding.lower() for coding in codings] != [b"chunked"]:
        asked = b", ".join(codings).decode("latin-1")
        raise BadInput(
            f"header Transfer-Encoding is {shown(asked)}, but bodies can be sent only as 'chunked'",
            "compress='gzip' compresses a body, with Content-Encoding",
        )
    return kept


def _text(name: str, value: Any) -> str:
    text = value.decode("latin-1") if isinstance(value, bytes) else as_text(value)
    if text is None:
        raise BadInput(
            f"the value of header {name} is a {type(value).__name__}, not text or a number",
            "a list of values sends the header several times",
        )
    return text
