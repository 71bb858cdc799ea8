"""The events of one job, newest kept, and the states they lead to.

A history is bounded: when it grows past its limit the oldest events are folded into a base state.
A question about a moment before that base is refused, not answered with something near it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from hyperscale.cluster.clocks import Stamp
from hyperscale.ledger.jobs.events import JobEvent
from hyperscale.ledger.jobs.state import JobState, fold


class Written(NamedTuple):
    lsn: int
    event: JobEvent


class HistoryTrimmed(Exception):
    def __init__(self, job_id: str, lsn_first: int) -> None:
        super().__init__(f"the history of job {job_id} is kept from record {lsn_first} on")
        self.lsn_first = lsn_first


class History:
    __slots__ = ("_base", "_base_lsn", "_events", "_events_max", "_latest")

    def __init__(self, events_max: int, base: JobState | None = None, base_lsn: int = 0) -> None:
        self._events_max = events_max
        self._base = self._latest = base
        self._base_lsn = base_lsn
        self._events: deque[Written] = deque()

    @property
    def base(self) -> JobState | None:
        return self._base

    @property
    def base_lsn(self) -> int:
        """Last record folded into the base; 0: the history is complete."""
        return self._base_lsn

    @property
    def latest(self) -> JobState | None:
        return self._latest

    @property
    def lsn_last(self) -> int:
        return self._events[-1].lsn if self._events else self._base_lsn

    def events(self) -> list[Written]:
        return list(self._events)

    def add(self, lsn: int, event: JobEvent) -> JobState:
        """Raises `EventRefused` and keeps everything as it was when the event cannot follow."""
        self._latest = fold(self._latest, event)
        self._events.append(Written(lsn, event))
        while len(self._events) > self._events_max:
            oldest = self._events.popleft()
            self._base, self._base_lsn = fold(self._base, oldest.event), oldest.lsn
        return self._latest

    def as_of_lsn(self, lsn: int) -> JobState | None:
        """The state right after record `lsn`; None: the job did not exist yet."""
        if lsn < self._base_lsn:
            raise self._trimmed()
        return _fold_while(self._base, self._events, lambda written: written.lsn <= lsn)

    def as_of(self, moment: Stamp) -> JobState | None:
        """The state at a moment of the hybrid logical clock, an event of that moment included."""
        if self._base is not None:
            if moment < self._base.created_hlc:
                return None
            if moment < self._base.last_hlc:
                raise self._trimmed()
        return _fold_while(self._base, self._events, lambda written: written.event.hlc <= moment)

    def _trimmed(self) -> HistoryTrimmed:
        assert self._base is not None
        return HistoryTrimmed(self._base.job_id, self._base_lsn)


def _fold_while(
    state: JobState | None, written: Iterable[Written], included: Callable[[Written], bool]
) -> JobState | None:
    for item in written:
        if not included(item):
            break
        state = fold(state, item.event)
    return state
