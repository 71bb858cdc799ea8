"""Failures by kind, with the first few messages of each, in a space that errors cannot grow.

A target under load can produce a million different messages; a person needs the kinds, how often
each came, an example, and where and with which exchange it happened first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hyperscale.metrics.delta import ErrorDelta
from hyperscale.metrics.results import FirstFailure

KINDS_MAX = 50  # distinct (outcome, detail); later details of an outcome count as "other"
SAMPLES_MAX = 3
MESSAGE_MAX = 300  # characters
DETAIL_MAX = 100  # characters
OTHER = "other"


class FailureKinds:
    """Counts per (outcome, detail), in order of first appearance."""

    __slots__ = ("_kinds",)

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], _Kind] = {}

    def add(
        self,
        outcome: str,
        detail: str,
        message: str,
        first: Callable[[], FirstFailure] | None = None,
    ) -> None:
        """`first` tells of this failure, should it be the first of its kind."""
        kind = self._kind(outcome, detail)
        kind.count += 1
        if kind.samples_kept < SAMPLES_MAX:
            kind.keep(message)
        if first is not None and not kind.told:
            kind.first, kind.told = first(), True

    def merge(self, errors: Iterable[ErrorDelta]) -> None:
        for error in errors:
            kind = self._kind(error.outcome, error.detail)
            kind.count += error.count
            for message in error.samples[: SAMPLES_MAX - kind.samples_kept]:
                kind.keep(message)
            kind.first = earlier(kind.first, error.first)

    def snapshot(self) -> list[ErrorDelta]:
        """Everything counted, most frequent first."""
        kinds = sorted(self._kinds.items(), key=lambda item: -item[1].count)
        return [
            ErrorDelta(outcome, detail, kind.count, list(kind.samples), kind.first)
            for (outcome, detail), kind in kinds
            if kind.count
        ]

    def drain(self) -> list[ErrorDelta]:
        """What was counted since the last drain; a message is handed out once."""
        news = self.snapshot()
        for kind in self._kinds.values():
            kind.count = 0
            kind.samples.clear()
            kind.first = None
        return news

    def clear(self) -> None:
        self._kinds.clear()

    def _kind(self, outcome: str, detail: str) -> _Kind:
        key = (outcome, detail[:DETAIL_MAX])
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= KINDS_MAX:
                key = (outcome, OTHER)
            kind = self._kinds.setdefault(key, _Kind())
        return kind


def earlier(one: FirstFailure | None, other: FirstFailure | None) -> FirstFailure | None:
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda first: (first.at_s, first.user))


def add_counts(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


class _Kind:
    __slots__ = ("count", "first", "samples", "samples_kept", "told")

    def __init__(self) -> None:
        self.count = 0
        self.samples: list[str] = []
        self.samples_kept = 0
        self.first: FirstFailure | None = None
        self.told = False

    def keep(self, message: str) -> None:
        self.samples.append(message[:MESSAGE_MAX])
        self.samples_kept += 1
