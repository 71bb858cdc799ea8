"""What is decided about a log after a crash: one table, one case for every state of the disk.

Theory of operation. The writer begins a batch only after the batch before it was synced, and a
segment gets its name only after its first bytes were synced. Hence

- everything before the last batch of the last segment was durable once: if it cannot be read, it
  is damage, and a log with damage is refused, because what follows it cannot be trusted to be all;
- the last batch may be whole, torn or rotten, and nobody can tell whether it was acknowledged. Its
  readable beginning is kept. The rest was cut off by the crash, or rotted since; a single copy
  cannot tell the two apart, so the cut is reported. After a clean close there is no such doubt;
- even a batch that reads well may exist in the page cache only: after a failed sync the kernel
  calls its pages clean. So nothing is ever appended behind it. It is carried over into a new
  segment, synced there, and only then taken away here.

`ScanFacts` are what `inspection` found out about one segment. `CASES` matches every combination of
them exactly once, which a test enumerates.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum


class Decision(Enum):
    ACCEPT = "good"
    TRIM = "good; leftovers behind its end go at the next start"
    CONTINUE = "good; the next record is appended here"
    SUCCEED = "good; closed cleanly"
    CARRY = "good; not closed, its last batch moves to a new segment at the next start"
    CUT = "torn at the end; cut there at the next start"
    REFUSE = "damaged; the log is not opened"


@dataclass(frozen=True, slots=True)
class ScanFacts:
    sealed: bool
    """It has a successor, which knows where it ends."""
    header_good: bool
    chained: bool
    """Its number, and the end its header gives its predecessor, fit the predecessor."""
    durable_part_good: bool
    """Every record reads well up to the end its successor gives it; in the last segment, up to
    the end of what was in it when it got its name."""
    surplus: bool
    """There are bytes behind the last good record (sealed: behind the end)."""
    later_batch: bool
    """Behind unreadable bytes stands a readable batch that was begun after them."""
    fresh: bool
    """Nothing was added since it got its name."""
    closed: bool
    """The last good record is the mark of a clean close."""


@dataclass(frozen=True, slots=True)
class Case:
    """A row: `None` matches both."""

    label: str
    decision: Decision
    sealed: bool | None = None
    header_good: bool | None = None
    chained: bool | None = None
    durable_part_good: bool | None = None
    surplus: bool | None = None
    later_batch: bool | None = None
    fresh: bool | None = None
    closed: bool | None = None

    def matches(self, facts: ScanFacts) -> bool:
        return all(
            getattr(self, name) is None or getattr(self, name) == getattr(facts, name)
            for name in _FACTS
        )


_FACTS = tuple(entry.name for entry in fields(ScanFacts))
_GOOD = {"header_good": True, "chained": True, "durable_part_good": True}
_SEALED = {"sealed": True, **_GOOD}
_LAST = {"sealed": False, **_GOOD}

CASES = (
    Case("header-damaged", Decision.REFUSE, header_good=False),
    Case("not-its-successor", Decision.REFUSE, header_good=True, chained=False),
    Case(
        "damage-before-end",
        Decision.REFUSE,
        header_good=True,
        chained=True,
        durable_part_good=False,
    ),
    Case("sealed", Decision.ACCEPT, **_SEALED, surplus=False),
    Case("sealed-with-leftovers", Decision.TRIM, **_SEALED, surplus=True),
    Case("damage-before-tail", Decision.REFUSE, **_LAST, surplus=True, later_batch=True),
    Case("torn-tail", Decision.CUT, **_LAST, surplus=True, later_batch=False),
    Case("nothing-added", Decision.CONTINUE, **_LAST, surplus=False, fresh=True),
    Case("closed", Decision.SUCCEED, **_LAST, surplus=False, fresh=False, closed=True),
    Case("in-doubt", Decision.CARRY, **_LAST, surplus=False, fresh=False, closed=False),
)


def decide(facts: ScanFacts) -> Case:
    return next(case for case in CASES if case.matches(facts))
