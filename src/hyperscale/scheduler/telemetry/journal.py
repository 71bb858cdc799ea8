"""The JSON logs of all processes as one book: read, put in order of time, found by correlation id;
and how one job went, by what they say of it.

Lines that are not what the scheduler writes are kept apart with their place, never guessed at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Final

import msgspec

from hyperscale.scheduler.instants import SECOND, Instant, instant_of
from hyperscale.scheduler.telemetry import events

LINE_BYTES_MAX: Final = 1 << 20
BAD_SHOWN_MAX: Final = 5
EXCERPT_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class Entry:
    at: Instant
    level: str
    component: str
    event: str
    place: str
    """FILE:LINE."""
    said: Mapping[str, object]
    """All other fields of the line."""

    def text(self, name: str) -> str:
        value = self.said.get(name)
        return "" if value is None else str(value)

    @property
    def node(self) -> str:
        return self.text("node_id")

    @property
    def job(self) -> str:
        return self.text("job_id")

    @property
    def why(self) -> str:
        return next(
            (
                self.text(name)
                for name in ("error", "error_details", "warning_reason", "reason")
                if self.text(name)
            ),
            "",
        )


@dataclass
class Journal:
    entries: list[Entry] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    """The first few lines that could not be read: place, reason, beginning."""
    bad_total: int = 0

    @property
    def end(self) -> Instant:
        return self.entries[-1].at if self.entries else 0

    def about(self, wanted: str) -> list[Entry]:
        """Of one correlation id or one job, oldest first. A job's lines without the id belong."""
        jobs = {one.job for one in self.entries if one.text("correlation_id") == wanted}
        jobs = (jobs | {wanted}) - {""}
        return [
            one for one in self.entries if one.text("correlation_id") == wanted or one.job in jobs
        ]


def read(lines: Iterable[tuple[str, bytes]]) -> Journal:
    """`lines` are (FILE:LINE, text)."""
    journal = Journal()
    for place, line in lines:
        if not line.strip():
            continue
        try:
            journal.entries.append(_entry(place, line))
        except (ValueError, msgspec.DecodeError) as error:
            journal.bad_total += 1
            if len(journal.bad) < BAD_SHOWN_MAX:
                start = line[:EXCERPT_CHARS].decode("utf-8", "replace").strip()
                journal.bad.append(f"{place}: {error}: {start}")
    journal.entries.sort(key=lambda one: one.at)
    return journal


def _entry(place: str, line: bytes) -> Entry:
    if len(line) > LINE_BYTES_MAX:
        raise ValueError("longer than any line the scheduler writes")
    fields = msgspec.json.decode(line, type=dict[str, object])
    head = []
    for name in ("timestamp", "level", "component", "event"):
        value = fields.pop(name, None)
        if not isinstance(value, str):
            raise ValueError(f"has no {name}")
        head.append(value)
    when = datetime.fromisoformat(head[0])
    if when.tzinfo is None:
        raise ValueError("its timestamp has no zone")
    return Entry(instant_of(when), head[1], head[2], head[3], place, fields)


LATE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class JobSummary:
    """How one job went."""

    kind: str
    cause: str
    path: tuple[str, ...]
    """Who spoke of it, in order: node/component."""
    duration_s: float
    symptoms: tuple[str, ...]
    advice: str

    @property
    def bad(self) -> bool:
        return self.kind not in ("completed", "under way", "waiting")


def judge(story: Sequence[Entry], end: Instant) -> JobSummary:
    """Of one job's entries, oldest first; at least one. The logs reach to `end`."""
    kind, cause, advice = _kind(story, end)
    path = [f"{one.node}/{one.component}" if one.node else one.component for one in story]
    symptoms = [
        f"{event}{f' ({number} times)' if number > 1 else ''}"
        for event, number in Counter(
            f"{one.event}{f': {one.why}' if one.why else ''}"
            for one in story
            if one.event in (events.BACK, events.LOST, events.REFUSED)
            or one.level in ("warning", "error")
        ).items()
    ]
    return JobSummary(
        kind,
        cause,
        tuple(here for before, here in pairwise(["", *path]) if here != before),
        (story[-1].at - story[0].at) / SECOND,
        tuple(symptoms),
        advice,
    )


def _kind(story: Sequence[Entry], end: Instant) -> tuple[str, str, str]:
    told = [one.event for one in story]
    ends = [one for one in story if one.event == events.ENDED]
    last = ends[-1] if ends else None
    if last is not None and last.text("operation_result") == "COMPLETED":
        return "completed", "", ""
    if last is not None and last.text("operation_result") == "CANCELLED":
        return "cancelled", "somebody asked for it", "the audit log says who"
    if events.LOST in told and (last is None or "lost" in last.why):
        return (
            "worker lost",
            next(one.why for one in reversed(story) if one.event == events.LOST)
            or "its lease ended",
            "look at the last lines of the worker that held it: killed, out of memory, cut off?",
        )
    if last is not None:
        return (
            "failed",
            last.why or "no reason was given",
            "hyperscale job logs JOB shows its output; hyperscale job retry JOB runs it again",
        )
    if events.REFUSED in told:
        return (
            "report refused",
            next(one.why for one in story if one.event == events.REFUSED),
            "its worker was silent longer than its lease; somebody else has the job",
        )
    if events.BACK in told:
        return (
            "retrying",
            next(one.why for one in reversed(story) if one.event == events.BACK),
            "it is tried again by itself",
        )
    if events.CLAIMED in told:
        return "under way", "claimed, and the logs end before it does", ""
    if end - story[0].at < LATE_S * SECOND:
        return "waiting", "submitted shortly before the logs end", ""
    return (
        "never claimed",
        "no worker took it",
        "hyperscale scheduler doctor says whether one is there that can",
    )


def failures(journal: Journal) -> list[tuple[str, JobSummary]]:
    """Every job that did not go well, by its first line."""
    stories = defaultdict(list)
    for one in journal.entries:
        if one.job:
            stories[one.job].append(one)
    judged = ((job, judge(story, journal.end)) for job, story in stories.items())
    return [(job, verdict) for job, verdict in judged if verdict.bad]
