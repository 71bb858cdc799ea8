"""In which step of which user a call is made: clients ask here before they note a request.

A context variable holds the scope, so helpers, gathered calls and tasks that a step starts all
count for that step. Outside of a run (`hyperscale ping`, a script) nothing is noted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Protocol

from hyperscale.workload.custom_metrics import MetricKind
from hyperscale.workload.results import CallResult, Connect

Note = Callable[[tuple[float, ...]], None]
Tags = tuple[tuple[str, str], ...]

_ID = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    r"|(?=[a-fA-F]*[0-9])[0-9a-fA-F]{12,}|[0-9]+)(?![A-Za-z0-9])"
)


class Label:
    """What the requests of a call are told under. Equal ones of a client are the same object."""

    __slots__ = ("kind", "method", "name", "tags")

    def __init__(self, method: str, name: str, tags: Tags = (), kind: str = "http") -> None:
        self.method = method
        self.name = name
        self.tags = tags
        self.kind = kind


class User(Protocol):
    lateness: float  # of the iteration under way, against its intended start
    last: CallResult | None  # its last exchange


class Scope(Protocol):
    """A step of a user. `notes` takes the row of a request that went well, by its label; `open`
    makes one that is not there yet."""

    @property
    def user(self) -> User: ...

    @property
    def name(self) -> str:
        """Of the step."""
        ...

    @property
    def notes(self) -> dict[Label, Note]: ...

    def open(self, label: Label) -> Note: ...

    def connected(self, label: Label, connect: Connect) -> None:
        """A call opened a connection."""

    def measure(self, name: str, kind: MetricKind, value: float) -> None:
        """A number that a protocol has beside its requests."""

    def failed(self, label: Label, result: CallResult, *, sent: bool) -> None:
        """A call failed, unless the author accepts it; not `sent`: there never was a request."""

    def called_failed(self, label: Label, result: CallResult) -> None:
        """The author calls a result a failure that was noted as a success."""


class _Nobody:
    lateness = 0.0
    last: CallResult | None = None

    def __setattr__(self, name: str, value: object) -> None:
        """Nothing is remembered of calls outside of a run."""


class Unrecorded:
    """Calls of no user."""

    user = _Nobody()
    name = ""

    def __init__(self) -> None:
        self.notes: dict[Label, Note] = {}

    def open(self, label: Label) -> Note:
        return lambda row: None

    def connected(self, label: Label, connect: Connect) -> None:
        pass

    def measure(self, name: str, kind: MetricKind, value: float) -> None:
        pass

    def failed(self, label: Label, result: CallResult, *, sent: bool) -> None:
        pass

    def called_failed(self, label: Label, result: CallResult) -> None:
        pass


UNRECORDED: Scope = Unrecorded()
CURRENT: ContextVar[Scope] = ContextVar("hyperscale_scope", default=UNRECORDED)


def fold_ids(path: str) -> str:
    """A path with numbers, UUIDs and long hexadecimal words as `{id}`."""
    return _ID.sub("{id}", path)
