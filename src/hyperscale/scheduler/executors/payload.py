"""Reading a payload: its values are strings, nested ones JSON inside the string."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from hyperscale.scheduler.model.errors import InvalidJob

T = TypeVar("T")


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
