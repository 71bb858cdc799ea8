"""HTML as values: everything that is not already `Html` is escaped where it enters a tag.

Step names, error samples and tags come from test authors and from the servers under test, so
safety must not depend on anyone remembering to escape. Joining `Html` with a plain string gives a
plain string, which is escaped again: the mistake shows as ugly text, never as markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape as _escape

VOID = frozenset({"br", "hr", "link", "meta"})

# Control characters are not allowed in HTML text, lone surrogates not in UTF-8, and direction
# overrides would let a server's message rearrange the words around it.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Child = str | None | Iterable["Child"]
Attribute = str | int | float | bool | None


def text(value: str) -> Html:
    return Html(_escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", value), quote=True))


def join(children: Iterable[Child]) -> Html:
    parts: list[str] = []
    for child in children:
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(text(child))
        elif child is not None:
            parts.append(join(child))
    return Html("".join(parts))


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """`tag("td", value, class_="number", data_value=3)`; None and False leave an attribute out."""
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        written.append(f" {key}" if value is True else f' {key}="{text(str(value))}"')
    opening = f"<{name}{''.join(written)}>"
    if name in VOID:
        return Html(opening)
    return Html(f"{opening}{join(children)}</{name}>")
