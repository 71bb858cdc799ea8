"""How many cores a workflow asks for against the others of its layer."""

from __future__ import annotations

from enum import StrEnum

from hyperscale.errors import BadInput


class Priority(StrEnum):
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    EXCLUSIVE = "exclusive"
    AUTO = "auto"


def parse_priority(value: object, what: str = "priority") -> Priority:
    if isinstance(value, str):
        try:
            return Priority(value.strip().lower())
        except ValueError:
            pass
    raise BadInput(
        f"{what} {value!r} is not a priority",
        f"use one of {', '.join(repr(p.value) for p in Priority)}",
    )
