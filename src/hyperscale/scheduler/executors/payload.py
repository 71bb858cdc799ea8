"""Reading a payload: its values are strings, nested ones JSON inside the string."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from hyperscale.scheduler.model.errors import InvalidJob

T = TypeVar("T")

_NESTED: Final[dict[str, Any]] = {
    "args": list[Any],
    "argv": list[str],
    "env": dict[str, str],
    "headers": dict[str, str],
    "kwargs": dict[str, Any],
    "workflows": list[str],
}
"""Of our own executors; `args` of a function may be anything."""


def check_nested(payload: Mapping[str, str]) -> None:
    """Before a job is taken: what cannot be read would fail only when it runs, far from whoever
    wrote it, and everything that shows jobs would have to expect it. Raises InvalidJob."""
    for name, type_ in _NESTED.items():
        if name in payload:
            decoded(payload, name, type_, None)


def required(payload: Mapping[str, str], name: str) -> str:
    value = payload.get(name, "")
    if not value:
        raise InvalidJob(f"the payload has no {name!r}")
    return value


def decoded(payload: Mapping[str, str], name: str, type_: type[T], default: T) -> T:
    text = payload.get(name, "")
    if not text:
        return default
    try:
        return msgspec.json.decode(text, type=type_)
    except msgspec.DecodeError as error:
        raise InvalidJob(f"{name!r} in the payload: {error}") from error
