"""The replicated log in memory: numbered entries, and which of them are on stable storage.

Entries up to `base_index` are in the state only. Every write to disk has a number; an entry is
stable when the write that put it where it is has been done, so an entry that was replaced and came
back is not mistaken for the one written first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from hyperscale.cluster.invariants import invariant
from hyperscale.ledger.records.api import Record

ENTRY_BYTES = 120
"""About what an entry weighs beside its payload, in memory and on the wire."""


class LogEntry(msgspec.Struct, frozen=True, array_like=True):
    """A record, the forgetting of a job, or neither: the barrier a new leader begins with."""

    index: int
    term: int
    record: Record | None = None
    forgets: str = ""

    @property
    def size(self) -> int:
        return ENTRY_BYTES + (len(self.record.payload) if self.record is not None else 0)


class EntryLog:
    def __init__(
        self, base_index: int = 0, base_term: int = 0, entries: Sequence[LogEntry] = ()
    ) -> None:
        """`entries` were read from disk and are stable."""
        self.base_index = base_index
        self.base_term = base_term
        self._entries = list(entries)
        self.bytes = sum(entry.size for entry in entries)
        self._stable_index = self.last_index
        self._unstable: deque[tuple[int, int]] = deque()
        invariant(
            [entry.index for entry in entries]
            == list(range(base_index + 1, base_index + 1 + len(entries))),
            "the entries of a log follow each other",
        )

    @property
    def last_index(self) -> int:
        return self.base_index + len(self._entries)

    @property
    def last_term(self) -> int:
        return self._entries[-1].term if self._entries else self.base_term

    @property
    def stable_index(self) -> int:
        """This entry and all before it would be found after a crash."""
        return self._stable_index

    def term_at(self, index: int) -> int | None:
        """None when the entry is not here, because it is covered by the state or still to come."""
        if index == self.base_index:
            return self.base_term
        if not self.base_index < index <= self.last_index:
            return None
        return self._entries[index - self.base_index - 1].term

    def at(self, index: int) -> LogEntry:
        invariant(self.base_index < index <= self.last_index, "the entry is in the log")
        return self._entries[index - self.base_index - 1]

    def first_of_term(self, index: int) -> int:
        """Where the run of entries with the same term begins that this one is in."""
        term = self.term_at(index)
        while index > self.base_index + 1 and self.term_at(index - 1) == term:
            index -= 1
        return index

    def slice(self, first: int, count_max: int, bytes_max: int) -> tuple[LogEntry, ...]:
        """From an entry on, at least one if there is one, no more than the limits allow."""
        invariant(first > self.base_index, "what the state covers is not in the log")
        at, taken, size = first - self.base_index - 1, 0, 0
        for entry in self._entries[at : at + count_max]:
            size += entry.size
            if taken and size > bytes_max:
                break
            taken += 1
        return tuple(self._entries[at : at + taken])

    def after(self, index: int) -> tuple[LogEntry, ...]:
        return tuple(self._entries[index - self.base_index :])

    def add(self, entry: LogEntry, write: int) -> None:
        invariant(entry.index == self.last_index + 1, "an entry follows the last one")
        invariant(entry.term >= self.last_term, "terms never fall")
        self._entries.append(entry)
        self.bytes += entry.size
        self._unstable.append((write, entry.index))

    def cut(self, index: int) -> None:
        """Take back this entry and all after it."""
        invariant(index > self.base_index, "what the state covers is never taken back")
        for entry in self._entries[index - self.base_index - 1 :]:
            self.bytes -= entry.size
        del self._entries[index - self.base_index - 1 :]
        while self._unstable and self._unstable[-1][1] >= index:
            self._unstable.pop()
        self._stable_index = min(self._stable_index, index - 1)
        invariant(self.last_index == index - 1, "nothing is left of what was taken back")

    def written(self, write: int) -> None:
        """All writes up to this one are on stable storage."""
        while self._unstable and self._unstable[0][0] <= write:
            self._stable_index = self._unstable.popleft()[1]
        invariant(self._stable_index <= self.last_index, "only what is in the log is stable")

    def drop(self, index: int) -> None:
        """The state covers everything up to this entry, which is stable."""
        invariant(index <= self._stable_index, "only stable entries are dropped")
        if index > self.base_index:
            self._rebase(index, self.at(index).term)

    def restart(self, index: int, term: int) -> None:
        """The state was replaced by one up to `index`. What follows stays if it follows that: it
        may have been confirmed. Stability of what the state covers is now the state's business."""
        if self.term_at(index) != term:
            self.cut(self.base_index + 1)
            self.base_index = self._stable_index = index
            self.base_term = term
            return
        self._rebase(index, term)
        while self._unstable and self._unstable[0][1] <= index:
            self._unstable.popleft()
        self._stable_index = max(self._stable_index, index)

    def _rebase(self, index: int, term: int) -> None:
        gone = index - self.base_index
        self.bytes -= sum(entry.size for entry in self._entries[:gone])
        del self._entries[:gone]
        self.base_index, self.base_term = index, term
