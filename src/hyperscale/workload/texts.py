"""Values as text: to be sent, and to be named in an error."""

from __future__ import annotations

import re
from typing import Any

SHOWN_CHARACTERS = 200
# Surrogates stand for bytes that are no text; they could be neither sent nor reported.
SURROGATE = re.compile(r"[\ud800-\udfff]")
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def as_text(value: Any) -> str | None:
    """What a value reads as, or None for one that has no text of its own, such as a dict."""
    if value is True or value is False:
        return "true" if value else "false"
    own_text: Any = type(value).__str__
    if own_text is object.__str__ and not isinstance(value, (int, float)):
        return None
    try:
        return str(value)
    except ValueError:  # an integer of more digits than Python writes
        return None


def shown(value: Any) -> str:
    """As `repr`, which may be long, and fails for very large integers."""
    try:
        text = repr(value)
    except ValueError:
        return f"a very large {type(value).__name__}"
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
