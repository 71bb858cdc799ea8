"""Which keys are known and what was answered: the whole of idempotency as a pure table.

# Theory of operation

A key is ABSENT, or PENDING while its submission is being decided, or carries a final answer. The
first submission reserves the key; everybody after it finds it. A final answer never changes and is
forgotten when its time is up. A reservation is never forgotten by time alone: whether its job
exists decides, and that is for the owner of the table to find out (`sweep` names overdue ones).
Transient refusals (no capacity, not the leader) are no answers: they release the key.

The table below is the whole of it. A trigger missing in a state's row changes nothing: a late
commit, a second rejection, a release after the answer are not errors but echoes.

# Size

At most `entries_max` keys. A row is one bytes object under the 16-byte fingerprint of the key:
some 200 bytes with an answer of 64, where objects with attributes would take three times that. Rows
live in many small dicts, because a dict rebuilds itself as a whole when it grows, and rebuilding
one of a million keys would hold up everything else.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from struct import Struct
from typing import Final, NamedTuple

from hyperscale.ledger.idempotency.expiry import Expiry
from hyperscale.ledger.idempotency.settings import IdempotencySettings


class State(IntEnum):
    """On disk and in rows for ever."""

    ABSENT = 0
    PENDING = 1
    COMMITTED = 2
    REJECTED = 3


class Trigger(Enum):
    RESERVED = "reserved"
    ACCEPTED = "accepted"
    REFUSED = "refused for good"
    RELEASED = "released"
    EXPIRED = "time is up"


TRANSITIONS: Final[dict[State, dict[Trigger, State]]] = {
    State.ABSENT: {
        Trigger.RESERVED: State.PENDING,
    },
    State.PENDING: {
        Trigger.ACCEPTED: State.COMMITTED,
        Trigger.REFUSED: State.REJECTED,
        Trigger.RELEASED: State.ABSENT,
        Trigger.EXPIRED: State.ABSENT,
    },
    State.COMMITTED: {
        Trigger.EXPIRED: State.ABSENT,
    },
    State.REJECTED: {
        Trigger.EXPIRED: State.ABSENT,
    },
}


class Verdict(Enum):
    NEW = "new"
    """Reserved by this call: decide, then commit, reject or release."""
    PENDING = "pending"
    """Somebody is deciding: wait for the same answer."""
    ANSWERED = "answered"
    """Here is the original answer."""
    CONFLICT = "conflict"
    """The key was used for something else: refuse."""
    FULL = "full"
    """No room to remember another key, so nothing new may be started now."""


class Entry(NamedTuple):
    state: State
    job_id: str
    content: bytes
    answer: bytes
    until: float


class Overdue(NamedTuple):
    """A reservation whose time is up: `key` is its text, to write about it."""

    fingerprint: bytes
    key: str
    job_id: str
    content: bytes


class Swept(NamedTuple):
    looked: int
    overdue: list[Overdue]


class Ruling(NamedTuple):
    verdict: Verdict
    entry: Entry | None = None


class Counts(NamedTuple):
    entries: int
    pending: int
    committed: int
    rejected: int


# state, until, digest of the content, length of the job id; then the job id, then the tail: the
# answer, or while PENDING the record the reservation stands on and the text of the key.
_HEAD: Final = Struct("<Bd16sH")
_unpack_head: Final = _HEAD.unpack_from
_LSN: Final = Struct("<Q")
_STATES: Final = tuple(State)
_PENDING: Final = int(State.PENDING)
_VERDICT_OF: Final = {
    State.PENDING: Verdict.PENDING,
    State.COMMITTED: Verdict.ANSWERED,
    State.REJECTED: Verdict.ANSWERED,
}
_NEW: Final = Ruling(Verdict.NEW)
_FULL: Final = Ruling(Verdict.FULL)
CONTENT_BYTES: Final = 16
SHARDS: Final = 64
"""A million keys make dicts of 16,000, rebuilt in about half a millisecond."""


def _read(now: float, row: bytes) -> Entry | None:
    """What a row says; None: its time is up. A reservation's is not until somebody decides."""
    number, until, content, length = _unpack_head(row)
    end = _HEAD.size + length
    if number == _PENDING:
        return Entry(State.PENDING, row[_HEAD.size : end].decode(), content, b"", until)
    if until <= now:
        return None
    return Entry(_STATES[number], row[_HEAD.size : end].decode(), content, row[end:], until)


class IdempotencyTable:
    def __init__(self, settings: IdempotencySettings) -> None:
        self._settings = settings
        self._ttl_s = {
            State.PENDING: settings.pending_ttl_s,
            State.COMMITTED: settings.committed_ttl_s,
            State.REJECTED: settings.rejected_ttl_s,
        }
        self._shards: tuple[dict[bytes, bytes], ...] = tuple({} for _ in range(SHARDS))
        self._expiry = Expiry()
        self._count = [0] * len(_STATES)

    def __len__(self) -> int:
        return sum(self._count)

    def counts(self) -> Counts:
        return Counts(sum(self._count), *self._count[State.PENDING :])

    def lsn_min(self) -> int | None:
        """Oldest record that a key still stands on; None: there is no key."""
        return self._expiry.lsn_min()

    def look(self, now: float, fingerprint: bytes) -> Entry | None:
        row = self._shards[fingerprint[0] % SHARDS].get(fingerprint)
        return None if row is None else _read(now, row)

    def check(self, now: float, fingerprint: bytes, content: bytes) -> Ruling | None:
        """What is known about a submission; None: nothing, it may be reserved."""
        row = self._shards[fingerprint[0] % SHARDS].get(fingerprint)
        entry = None if row is None else _read(now, row)
        if entry is None:
            return None
        if entry[2] != content:
            return Ruling(Verdict.CONFLICT, entry)
        return Ruling(_VERDICT_OF[entry[0]], entry)

    def reserve(
        self, now: float, fingerprint: bytes, key: str, job_id: str, content: bytes, lsn: int = 0
    ) -> Ruling:
        """Look and reserve in one step, so two equal submissions cannot both be new. `lsn` is a
        record not later than the one the reservation will be written as."""
        known = self.check(now, fingerprint, content)
        if known is not None:
            return known
        if len(self) >= self._settings.entries_max and self._row(fingerprint) is None:
            self.sweep(now, self._settings.sweep_slice)
            if len(self) >= self._settings.entries_max:
                return _FULL
        self._hold(now, fingerprint, key, job_id, content, lsn)
        return _NEW

    def renew(self, now: float, overdue: Overdue, lsn: int) -> bool:
        """The reservation goes on and was written again as `lsn`."""
        if self._state(overdue.fingerprint) is not State.PENDING:
            return False
        self._hold(now, overdue.fingerprint, overdue.key, overdue.job_id, overdue.content, lsn)
        return True

    def commit(
        self, now: float, fingerprint: bytes, answer: bytes, lsn: int = 0, job_id: str = ""
    ) -> bool:
        """`job_id`: of the job that was found to exist, where it is not the one reserved."""
        return self._answer(now, fingerprint, Trigger.ACCEPTED, answer, lsn, job_id)

    def reject(
        self, now: float, fingerprint: bytes, answer: bytes, lsn: int = 0, job_id: str = ""
    ) -> bool:
        return self._answer(now, fingerprint, Trigger.REFUSED, answer, lsn, job_id)

    def release(self, fingerprint: bytes) -> bool:
        return self._remove(fingerprint, Trigger.RELEASED)

    def expire(self, fingerprint: bytes) -> bool:
        return self._remove(fingerprint, Trigger.EXPIRED)

    def restore_reserved(
        self, now: float, fingerprint: bytes, key: str, job_id: str, content: bytes, lsn: int
    ) -> None:
        """A reservation found in the log: whatever was there before had ended."""
        self._hold(now, fingerprint, key, job_id, content, lsn)

    def restore_renewed(
        self, now: float, fingerprint: bytes, key: str, job_id: str, content: bytes, lsn: int
    ) -> None:
        """A reservation written again, the first record of which may be compacted away."""
        entry = self.look(now, fingerprint)
        if entry is None or (entry.state is State.PENDING and entry.job_id == job_id):
            self._hold(now, fingerprint, key, job_id, content, lsn)

    def restore_answer(
        self,
        now: float,
        fingerprint: bytes,
        state: State,
        job_id: str,
        content: bytes,
        answer: bytes,
        lsn: int,
    ) -> None:
        """An answer found in the log, perhaps without its reservation, which may be compacted
        away. The first answer stands."""
        if self._state(fingerprint) in (State.ABSENT, State.PENDING):
            self._put(now, fingerprint, state, job_id.encode(), content, answer, lsn)

    def sweep(self, now: float, limit: int) -> Swept:
        """Look at up to `limit` keys that fell due: forget answers, name overdue reservations (they
        stay, and are named again later)."""
        due = self._expiry.due(now, limit)
        overdue: list[Overdue] = []
        for fingerprint in due:
            row = self._row(fingerprint)
            if row is None or _unpack_head(row)[1] > now:
                continue
            if row[0] == State.PENDING:
                overdue.append(self._overdue(now, fingerprint, row))
            else:
                self.expire(fingerprint)
        return Swept(len(due), overdue)

    def pending(self) -> list[Overdue]:
        """Every reservation, for the moment after a restart."""
        return [
            self._read_pending(fingerprint, row)[0]
            for shard in self._shards
            for fingerprint, row in shard.items()
            if row[0] == State.PENDING
        ]

    def evict(self, now: float, tries: int = 64) -> bool:
        """Forget the answer that would be forgotten next, for a table that may; never a
        reservation."""
        for _ in range(tries):
            oldest = self._expiry.oldest(1)
            if not oldest:
                return False
            row = self._row(oldest[0])
            if row is None:
                continue
            if row[0] != State.PENDING:
                return self.expire(oldest[0])
            self._expiry.add(now + self._settings.pending_ttl_s, oldest[0])
        return False

    def _row(self, fingerprint: bytes) -> bytes | None:
        return self._shards[fingerprint[0] % SHARDS].get(fingerprint)

    def _state(self, fingerprint: bytes) -> State:
        row = self._row(fingerprint)
        return State.ABSENT if row is None else _STATES[row[0]]

    def _hold(
        self, now: float, fingerprint: bytes, key: str, job_id: str, content: bytes, lsn: int
    ) -> None:
        tail = _LSN.pack(lsn) + key.encode()
        self._put(now, fingerprint, State.PENDING, job_id.encode(), content, tail, lsn)

    def _answer(
        self,
        now: float,
        fingerprint: bytes,
        trigger: Trigger,
        answer: bytes,
        lsn: int,
        job_id: str,
    ) -> bool:
        row = self._row(fingerprint)
        if row is None:
            return False
        following = TRANSITIONS[_STATES[row[0]]].get(trigger)
        if following is None:
            return False
        _, _, content, length = _unpack_head(row)
        reserved_for = row[_HEAD.size : _HEAD.size + length]
        self._put(
            now, fingerprint, following, job_id.encode() or reserved_for, content, answer, lsn
        )
        return True

    def _put(
        self,
        now: float,
        fingerprint: bytes,
        state: State,
        job_id: bytes,
        content: bytes,
        tail: bytes,
        lsn: int,
    ) -> None:
        if len(content) != CONTENT_BYTES:
            raise ValueError(f"a digest of {CONTENT_BYTES} bytes is needed, not {len(content)}")
        until = now + self._ttl_s[state]
        shard = self._shards[fingerprint[0] % SHARDS]
        # Taken out first, so that table and expiry share one object as the key.
        before = shard.pop(fingerprint, None)
        if before is not None:
            self._count[before[0]] -= 1
        self._count[state] += 1
        head = _HEAD.pack(state, until, content, len(job_id))
        shard[fingerprint] = b"".join((head, job_id, tail))
        self._expiry.add(until, fingerprint, lsn)

    def _remove(self, fingerprint: bytes, trigger: Trigger) -> bool:
        state = self._state(fingerprint)
        if trigger not in TRANSITIONS[state]:
            return False
        self._count[state] -= 1
        del self._shards[fingerprint[0] % SHARDS][fingerprint]
        return True

    def _overdue(self, now: float, fingerprint: bytes, row: bytes) -> Overdue:
        """Its time begins again, so that it is named once, however many buckets point to it."""
        overdue, lsn = self._read_pending(fingerprint, row)
        key, job_id, content = overdue[1:]
        self._hold(now, fingerprint, key, job_id, content, lsn)
        return overdue

    @staticmethod
    def _read_pending(fingerprint: bytes, row: bytes) -> tuple[Overdue, int]:
        _, _, content, length = _unpack_head(row)
        end = _HEAD.size + length
        job_id, (lsn,) = row[_HEAD.size : end].decode(), _LSN.unpack_from(row, end)
        key = row[end + _LSN.size :].decode()
        return Overdue(fingerprint, key, job_id, content), lsn
