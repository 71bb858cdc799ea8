"""A test before it is written: steps, the calls in them, and values that travel between calls.

A text of a call may hold marks, which stand for a variable of the written test: `marked("token")`
within "Bearer ..." becomes an f-string, and alone it becomes the variable itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

# Private characters of Unicode, which no recording has a use for.
_OPEN, _CLOSE = "\ue000", "\ue001"
MARK = re.compile(f"{_OPEN}(\\w+){_CLOSE}")


def marked(name: str) -> str:
    return f"{_OPEN}{name}{_CLOSE}"


def unmarked(text: str) -> str:
    """A text of somebody else's, which must not be taken for one with marks."""
    return text.replace(_OPEN, "").replace(_CLOSE, "")


class Code(str):
    """Python that is written as it is, where a text would be quoted."""


@dataclass
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: str
    kind: str  # its media type


@dataclass(eq=False)
class Call:
    method: str
    url: str  # a path, where it goes to the host of the test
    headers: dict[str, Any] = field(default_factory=dict)
    params: Any = None
    body: dict[str, Any] = field(default_factory=dict)  # by argument: json, form, data, files, auth
    name: str = ""
    answer: Answer | None = None
    started_s: float = 0.0
    ended_s: float = 0.0
    page: str = ""

    def texts(self) -> Iterator[Any]:
        """Everything in it that may hold marks."""
        yield self.url
        for part in (self.headers, self.params, self.body):
            yield from leaves(part)

    def marks(self) -> list[str]:
        found = [MARK.findall(text) for text in self.texts() if isinstance(text, str)]
        return list(dict.fromkeys(name for names in found for name in names))

    def replace(self, change: Callable[[str, Any], Any]) -> None:
        """`change` gets the name and the value of each leaf, and returns the new value."""
        self.headers = changed("", self.headers, change)
        self.params = changed("", self.params, change)
        self.body = changed("", self.body, change)


@dataclass(eq=False)
class Value:
    """What a later call takes out of the answer of an earlier one."""

    name: str
    giver: Call
    expression: str  # what follows the response: `.json()["token"]`
    type: str = "str"


@dataclass(eq=False)
class Step:
    name: str
    calls: list[Call]
    group: str = ""
    pause_s: float = 0.0  # before it
    assets: list[str] = field(default_factory=list)
    weight: int = 0
    defaults: dict[str, Any] = field(default_factory=dict)  # arguments with a value


@dataclass
class Draft:
    what: str  # the sentence the file begins with
    host: str
    steps: list[Step]
    load: dict[str, Any] = field(default_factory=lambda: {"vus": 10, "duration": "1m"})
    values: list[Value] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)  # commands for its first lines


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner)
    elif value is not None:
        yield value


def changed(name: str, value: Any, change: Callable[[str, Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: changed(str(key), inner, change) for key, inner in value.items()}
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):  # name and value
        return (value[0], changed(value[0], value[1], change))
    if isinstance(value, list | tuple):
        return type(value)(changed(name, inner, change) for inner in value)
    return value if value is None else change(name, value)
