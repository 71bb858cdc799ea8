"""Plain values as the text and bytes that HTTP sends: query strings, forms, JSON.

Each either says in the right bytes what the author gave, or refuses it with the argument's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from hyperscale.errors import BadInput
from hyperscale.workload.texts import as_text, shown

_SAFE_IN_QUERY = "%!$&'()*+,;=:@/?-._~[]"


def query_string(params: str | bytes | Iterable[tuple[str | bytes, Any]]) -> str:
    try:
        if isinstance(params, str):
            encoded = quote(params.lstrip("?"), safe=_SAFE_IN_QUERY)
        elif isinstance(params, bytes):
            encoded = quote(params.lstrip(b"?"), safe=_SAFE_IN_QUERY)
        else:
            encoded = "&".join(
                [
                    f"{quote(name, '')}={quote(text, '')}"
                    for name, text in _scalars("params", params)
                ]
            )
    except UnicodeEncodeError as error:
        raise BadInput(f"params contain what is not text: {shown(error.object)}") from None
    return "?" + encoded if encoded else ""


def form_fields(form: Any) -> list[tuple[str | bytes, str | bytes]]:
    return list(_scalars("form", pairs_of("form", form, "a dict or a list of pairs")))


def encode_form(form: Any) -> bytes:
    try:
        return urlencode(form_fields(form)).encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"form contains what is not text: {shown(error.object)}") from None


def encode_json(value: Any) -> bytes:
    dump = getattr(value, "model_dump_json", None)
    if dump is not None:
        return str(dump()).encode()
    try:
        return msgspec.json.encode(value, enc_hook=_plain)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise BadInput(f"the body cannot be written as JSON: {error}") from error


def encode_body(value: Any) -> tuple[bytes, str]:
    if isinstance(value, bytes):
        return value, "application/octet-stream"
    if isinstance(value, str):
        try:
            return value.encode(), "text/plain; charset=utf-8"
        except UnicodeEncodeError as error:
            raise BadInput(f"the body is not text: {error.reason} at {error.start}") from None
    if isinstance(value, bytearray | memoryview):
        return bytes(value), "application/octet-stream"
    return encode_json(value), "application/json"


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"a {type(value).__name__} is not a JSON value")
    return dump(mode="json")


def pairs_of(argument: str, value: Any, accepts: str) -> list[tuple[str | bytes, Any]]:
    if type(value) is dict or isinstance(value, Mapping):
        items = list(value.items())
    elif isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise _refused(argument, value, accepts)
    else:
        items = list(value)
        if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in items):
            raise _refused(argument, items, accepts)
    return [
        (name if type(name) is str else _name(argument, name), content) for name, content in items
    ]


def _name(argument: str, name: Any) -> str | bytes:
    known = name if isinstance(name, bytes) else as_text(name)
    if known is None:
        raise BadInput(f"{argument} has a {type(name).__name__} as a name, not text")
    return known


def _refused(argument: str, value: Any, accepts: str) -> BadInput:
    return BadInput(f"{argument} takes {accepts}, not {shown(value)}")


def _scalars(
    argument: str, pairs: Iterable[tuple[str | bytes, Any]]
) -> Iterable[tuple[str | bytes, str | bytes]]:
    """A list gives its name several times, None drops it, booleans are written as JSON does."""
    for name, content in pairs:
        if type(content) is str:
            yield name, content
            continue
        for one in content if isinstance(content, list | tuple | set | frozenset) else (content,):
            if one is not None:
                yield name, one if isinstance(one, bytes) else _scalar(argument, name, one)


def _scalar(argument: str, name: str | bytes, value: Any) -> str:
    text = as_text(value)
    if text is None:
        raise BadInput(
            f"{argument}: {shown(name)} is a {type(value).__name__}, not text or a number"
        )
    return text
