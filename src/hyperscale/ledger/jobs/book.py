"""All jobs of a node: current states, histories, questions about the past. Pure.

The number of jobs and the length of each history are bounded. An ended job is forgotten some time
after its end; a failed one is kept longer, because somebody will want to look at it. The time of
keeping counts from when this process learned of the end, so it starts again after a restart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from hyperscale.cluster.clocks import Stamp
from hyperscale.ledger.jobs.codec import decode, encode
from hyperscale.ledger.jobs.events import JobCreated, JobEvent
from hyperscale.ledger.jobs.history import History, Written
from hyperscale.ledger.jobs.state import EventRefused, JobState, Status, judge


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    jobs_max: int = 100_000
    """A new job beyond this is refused, to be tried again later."""
    events_max: int = 10_000
    """Of one job, before its oldest events are folded together. At one progress report per
    500 ms and datacenter this is more than an hour of a job; a report is some 100 B."""
    completed_kept_s: float = 300.0
    failed_kept_s: float = 3_600.0

    def __post_init__(self) -> None:
        if min(self.jobs_max, self.events_max) < 1:
            raise ValueError("jobs_max and events_max must be at least 1")
        if min(self.completed_kept_s, self.failed_kept_s) < 0:
            raise ValueError("completed_kept_s and failed_kept_s cannot be negative")


class TooManyJobs(Exception):
    """No room for another job now; ended ones make room in time."""


class _Piece(msgspec.Struct, frozen=True, array_like=True):
    """One job in a checkpoint."""

    base: JobState | None
    base_lsn: int
    events: list[tuple[int, bytes]]


_encode_piece = msgspec.msgpack.Encoder().encode
_decode_piece = msgspec.msgpack.Decoder(_Piece).decode


class JobBook:
    def __init__(self, settings: JobSettings | None = None) -> None:
        self._settings = settings or JobSettings()
        self._jobs: dict[str, History] = {}
        self._completed: deque[tuple[float, str]] = deque()
        self._failed: deque[tuple[float, str]] = deque()
        self.refused = 0
        """Events that could not follow; their states were left as they were."""

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._jobs

    def state(self, job_id: str) -> JobState | None:
        history = self._jobs.get(job_id)
        return None if history is None else history.latest

    def states(self) -> Iterator[JobState]:
        for history in self._jobs.values():
            if history.latest is not None:
                yield history.latest

    def history(self, job_id: str) -> list[Written]:
        history = self._jobs.get(job_id)
        return [] if history is None else history.events()

    def as_of_lsn(self, job_id: str, lsn: int) -> JobState | None:
        history = self._jobs.get(job_id)
        return None if history is None else history.as_of_lsn(lsn)

    def as_of(self, job_id: str, moment: Stamp) -> JobState | None:
        history = self._jobs.get(job_id)
        return None if history is None else history.as_of(moment)

    def check(self, event: JobEvent) -> None:
        """Raise what `apply` would object to, before the event is written."""
        state = self.state(event.job_id)
        refusal = judge(state, event)
        if refusal is not None:
            self.refused += 1
            raise EventRefused(state, event, refusal)
        if isinstance(event, JobCreated) and len(self._jobs) >= self._settings.jobs_max:
            raise TooManyJobs(f"{len(self._jobs)} jobs are kept, job {event.job_id} must wait")

    def apply(self, now: float, lsn: int, event: JobEvent) -> JobState | None:
        """Take a written event; an event taken before changes nothing, so does one that cannot
        follow (None)."""
        history = self._jobs.get(event.job_id) or History(self._settings.events_max)
        if lsn <= history.lsn_last:
            return history.latest
        try:
            state = history.add(lsn, event)
        except EventRefused:
            self.refused += 1
            return None
        self._jobs[event.job_id] = history
        if state.status is Status.ENDED:
            self._note_end(now, state)
        return state

    def sweep(self, now: float, limit: int = 1_000) -> int:
        """Forget jobs that ended long enough ago, at most `limit` of each kind; how many."""
        return self._forget(self._completed, now, limit) + self._forget(self._failed, now, limit)

    def pieces(self) -> Iterator[bytes]:
        """The book for a checkpoint, one job at a time, so that the caller may pause between."""
        for history in list(self._jobs.values()):
            events = [(lsn, encode(event)) for lsn, event in history.events()]
            yield _encode_piece(_Piece(history.base, history.base_lsn, events))

    def restore(self, now: float, piece: bytes) -> None:
        job = _decode_piece(piece)
        history = History(self._settings.events_max, job.base, job.base_lsn)
        for lsn, payload in job.events:
            event = decode(payload, lsn)
            if event is not None:
                history.add(lsn, event)
        state = history.latest
        assert state is not None, "a job in a checkpoint has a state"
        self._jobs[state.job_id] = history
        if state.status is Status.ENDED:
            self._note_end(now, state)

    def _note_end(self, now: float, state: JobState) -> None:
        if state.error or state.timeout_type:
            self._failed.append((now + self._settings.failed_kept_s, state.job_id))
        else:
            self._completed.append((now + self._settings.completed_kept_s, state.job_id))

    def _forget(self, ended: deque[tuple[float, str]], now: float, limit: int) -> int:
        forgotten = 0
        while ended and ended[0][0] <= now and forgotten < limit:
            self._jobs.pop(ended.popleft()[1], None)
            forgotten += 1
        return forgotten
