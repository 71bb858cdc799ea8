"""The JSON logs of all processes as one book: read, put in order of time, found by correlation id.

Lines that are not what the scheduler writes are kept apart with their place, never guessed at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import msgspec

from hyperscale.scheduler.model.instants import Instant, instant_of

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
