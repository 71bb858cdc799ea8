"""One replica of the log: what it accepts, promises, sends and counts as committed. No I/O.

Calls change the log in memory and leave `Write`s to be put on stable storage in order; `written`
tells how far that is done. An answer of `receive` may be sent only when every write left so far has
been done. The theory is in `states`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from hyperscale.cluster.election import quorum_of
from hyperscale.cluster.invariants import invariant
from hyperscale.ledger.records.api import Record
from hyperscale.ledger.records.entries import Entry, EntryLog
from hyperscale.ledger.records.leadership import Leadership
from hyperscale.ledger.records.messages import (
    Append,
    Appended,
    Fetch,
    Fetched,
    Recover,
    Recovered,
)
from hyperscale.ledger.records.progress import Pace, Progress
from hyperscale.ledger.records.settings import RecordsSettings
from hyperscale.ledger.records.states import Role, Trigger, next_role


class Promise(msgspec.Struct, frozen=True, tag=1, array_like=True):
    """Nothing of an older term is accepted any more."""

    term: int


class Write(msgspec.Struct, frozen=True, tag=2, array_like=True):
    """An entry; it takes the place of every entry from its index on."""

    entry: Entry
    commit_index: int
    """As far as was known then: the entries up to here need no further proof."""


class NewcomerMark(msgspec.Struct, frozen=True, tag=3, array_like=True):
    """Whether this voter began with an empty disk and has not been vouched for since."""

    newcomer: bool


DiskWrite = Promise | Write | NewcomerMark


class Replica:
    def __init__(
        self,
        name: str,
        voters: Iterable[str],
        settings: RecordsSettings,
        log: EntryLog | None = None,
        term: int = 0,
        commit_index: int = 0,
        newcomer: bool = False,
    ) -> None:
        self.name = name
        self.peers = tuple(sorted(set(voters) - {name}))
        self.quorum = quorum_of((name, *self.peers))
        self.role = Role.FOLLOWER
        self.log = log or EntryLog()
        self.term = max(term, self.log.last_term)
        """The highest promised; persisted before it is spoken."""
        self.commit_index = max(commit_index, self.log.base_index)
        self.write = 0
        """The number of the last write left."""
        self._settings = settings
        self._writes: list[DiskWrite] = []
        self._stable_term = self.term
        self._term_write = 0
        self._follows: str | None = None
        self._leadership: Leadership | None = None
        self.newcomer = newcomer
        """It may have forgotten what it promised and confirmed: it does not count."""
        if newcomer:
            self._put_write(NewcomerMark(True))
        invariant(self.commit_index <= self.log.last_index, "what is committed is in the log")

    # -- the disk -----------------------------------------------------------------------------

    def take_writes(self) -> list[DiskWrite]:
        """What was left since the last call; the last of them has the number `write`."""
        taken, self._writes = self._writes, []
        return taken

    def written(self, write: int) -> None:
        """Every write up to this number is on stable storage."""
        self.log.written(write)
        if write >= self._term_write:
            self._stable_term = self.term
        self._count()

    @property
    def applicable_index(self) -> int:
        """Committed and on this replica's own stable storage."""
        return min(self.commit_index, self.log.stable_index)

    # -- following ----------------------------------------------------------------------------

    def recover(self, peer: str, request: Recover) -> Recovered:
        if not self._obeys(peer, request.term):
            return Recovered(self.term, False)
        log = self.log
        return Recovered(
            self.term, True, log.last_index, log.last_term, self.commit_index, self.newcomer
        )

    def append(self, peer: str, request: Append) -> Appended:
        if not self._obeys(peer, request.term):
            return Appended(self.term, False)
        log, at = self.log, request.previous_index
        if at > log.last_index:
            return Appended(self.term, False, log.last_index, self.newcomer)
        if at > log.base_index and log.term_at(at) != request.previous_term:
            invariant(at > self.commit_index, "a committed entry is the same everywhere")
            before = max(log.first_of_term(at) - 1, self.commit_index)
            return Appended(self.term, False, before, self.newcomer)
        self._merge(request.entries)
        # Up to the base everything is committed, so the leader has it whatever it sent.
        index = max(at + len(request.entries), log.base_index)
        self.commit_index = max(self.commit_index, min(request.commit_index, index))
        if request.vouches and log.term_at(min(request.commit_index, index)) == self.term:
            self._belong()  # all that was committed before this leader's first entry is here
        return Appended(self.term, True, index, self.newcomer)

    def fetch(self, peer: str, request: Fetch) -> Fetched:
        if not self.serves(peer, request.term):
            return Fetched(self.term, False)
        if request.first_index <= self.log.base_index:
            return Fetched(self.term, True, dropped=True)
        return Fetched(self.term, True, entries=self._slice(request.first_index))

    def serves(self, peer: str, term: int) -> bool:
        """Whether a leader that has this replica's promise asks: then its log stands still."""
        return term == self.term and self._follows == peer and self._leadership is None

    def accepts(self, peer: str, term: int) -> bool:
        """As `append` judges a leader, for a state that comes in pieces."""
        return self._obeys(peer, term)

    def install(self, index: int, term: int) -> bool:
        """A state up to `index` was received from the leader or a donor. False: older than what is
        here, nothing changed. True: it must replace the state, on disk too, before anything else
        is written."""
        if index <= self.commit_index:
            return False
        self.log.restart(index, term)
        self.commit_index = index
        return True

    # -- leading ------------------------------------------------------------------------------

    def lead(self, term: int) -> bool:
        """Begin to recover, or go on. False when a newer term, or a rival, is known."""
        if self.leads(term):
            return True
        if term <= self.term:
            return False
        self._promise(term)
        self._follows = None
        self._leadership = Leadership(term, self.name, len(self.peers) + 1, self.quorum)
        self.role = next_role(self.role, Trigger.ELECTED)
        return True

    def step_down(self) -> None:
        """Stop leading; what was sent may still be committed."""
        self._leave(Trigger.STEPPED_DOWN)

    def leads(self, term: int) -> bool:
        return self._leadership is not None and self._leadership.term == term

    def answered(self, peer: str, term: int, reply: Recovered) -> None:
        """A voter's answer to the `Recover` of a term."""
        self.learn(reply.term)
        if reply.granted and self._leadership is not None and self._leadership.term == term:
            self._leadership.answers[peer] = reply

    def has_answered(self, peer: str) -> bool:
        return self._leadership is not None and peer in self._leadership.answers

    def unanswered(self, peer: str) -> None:
        """Its log cannot be had: it does not count towards the majority."""
        if self._leadership is not None:
            self._leadership.answers.pop(peer, None)

    def donor(self) -> str | None:
        """Whose log to adopt, once a majority has promised; this replica's own if none is better.
        Its own promise counts when it is on stable storage."""
        leadership = self._leadership
        if leadership is None or self._stable_term < leadership.term:
            return None
        if not leadership.has_majority(self.newcomer):
            return None
        best, best_end = self.name, (self.log.last_term, self.log.last_index)
        for peer, answer in sorted(leadership.answers.items()):
            if (answer.last_term, answer.last_index) > best_end:
                best, best_end = peer, (answer.last_term, answer.last_index)
        return best

    def adopt(self, term: int, reply: Fetched) -> None:
        """Entries of the donor."""
        self.learn(reply.term)
        if reply.granted and self.leads(term) and self.role is Role.RECOVERING:
            self._merge(reply.entries)

    def begin(self) -> Entry:
        """The log of a majority is adopted: lead, with a barrier."""
        leadership = self._leadership
        assert leadership is not None
        self.role = next_role(self.role, Trigger.ADOPTED)
        leadership.begin(self.peers, self.log.last_index, self.newcomer)
        barrier = self._add(Entry(self.log.last_index + 1, leadership.term))
        leadership.barrier = barrier.index
        return barrier

    @property
    def is_leading_or_recovering(self) -> bool:
        """It recovers or leads; nobody else has anything to send."""
        return self._leadership is not None

    @property
    def ready(self) -> bool:
        """It leads, and everything before its term is committed."""
        leadership = self._leadership
        return leadership is not None and 0 < leadership.barrier <= self.commit_index

    def propose(self, record: Record | None = None, forgets: str = "") -> Entry:
        """Write the next entry of the term. The record's index is the log's to give."""
        invariant(self.ready, "only a leader that is ready writes")
        index = self.log.last_index + 1
        if record is not None:
            record = msgspec.structs.replace(record, index=index)
        return self._add(Entry(index, self.term, record, forgets))

    def next_for(self, peer: str, ping: bool = False) -> Append | None:
        """What to send a voter now; None: nothing, or it `lacks` what the log has dropped."""
        leadership, progress = self._leadership, self._progress(peer)
        if leadership is None or progress is None:
            return None
        if not progress.may_send(self._settings.pipeline_max):
            return None
        if progress.next_index <= self.log.base_index:
            return None
        invariant(progress.next_index <= self.log.last_index + 1, "nobody is ahead of the leader")
        entries = self._slice(progress.next_index)
        told = progress.told_commit >= self.commit_index
        if not entries and told and not ping and not leadership.is_wanted(peer, self.newcomer):
            return None
        at = progress.next_index - 1
        previous_term = self.log.term_at(at)
        assert previous_term is not None
        request = Append(
            self.term,
            at,
            previous_term,
            self.commit_index,
            entries,
            leadership.round,
            leadership.vouches(progress, self.newcomer),
        )
        progress.sent(request)
        return request

    def lacks(self, peer: str) -> bool:
        """It needs the state, and nobody is sending it."""
        progress = self._progress(peer)
        if progress is None or progress.pace is Pace.INSTALLING:
            return False
        return progress.next_index <= self.log.base_index and progress.in_flight == 0

    def installing(self, peer: str) -> None:
        progress = self._progress(peer)
        assert progress is not None
        progress.pace = Pace.INSTALLING

    def installed(self, peer: str, term: int, index: int) -> None:
        """The voter has the state up to `index`; 0: it did not get through."""
        progress = self._progress(peer)
        if progress is not None and self.leads(term):
            progress.installed(index)
            self._count()

    def confirmed(self, peer: str, request: Append, reply: Appended) -> None:
        self.learn(reply.term)
        leadership = self._leadership
        if leadership is not None and leadership.barrier and request.term == self.term:
            leadership.note(peer, request, reply)
            self._count()

    def lost(self, peer: str, request: Append) -> None:
        progress = self._progress(peer)
        if progress is not None and request.term == self.term:
            progress.lost(request)

    def learn(self, term: int) -> None:
        """Somebody is in this term: if it is newer, this replica's leadership is over."""
        if term > self.term:
            self._leave(Trigger.HIGHER_TERM)
            self._promise(term)

    def behind(self) -> dict[str, int]:
        if self._leadership is None:
            return {}
        last = self.log.last_index
        return {peer: last - one.match_index for peer, one in self._leadership.progress.items()}

    def newcomers(self) -> list[str]:
        """Voters that are there and do not remember, as far as this leader knows."""
        return [] if self._leadership is None else self._leadership.newcomers(self.newcomer)

    # -- inside -------------------------------------------------------------------------------

    def _belong(self) -> None:
        """What was committed before is here, and no promise was forgotten that matters."""
        if self.newcomer:
            self.newcomer = False
            self._put_write(NewcomerMark(False))

    def _obeys(self, peer: str, term: int) -> bool:
        """A leader of this term speaks; a second one in the same term would be a rival."""
        if term < self.term:
            return False
        if term == self.term and (
            self._leadership is not None or self._follows not in (None, peer)
        ):
            return False
        self.learn(term)
        self._follows = peer
        return True

    def _leave(self, trigger: Trigger) -> None:
        self.role = next_role(self.role, trigger)
        self._follows = None
        self._leadership = None

    def _promise(self, term: int) -> None:
        if term > self.term:
            self.term = term
            self._put_write(Promise(term))
            self._term_write = self.write

    def _merge(self, entries: Sequence[Entry]) -> None:
        log = self.log
        for entry in entries:
            if entry.index <= log.base_index:
                continue
            here = log.term_at(entry.index)
            if here == entry.term:
                continue
            if here is not None:
                invariant(entry.index > self.commit_index, "a committed entry is never replaced")
                log.cut(entry.index)
            self._add(entry)

    def _add(self, entry: Entry) -> Entry:
        self._put_write(Write(entry, self.commit_index))
        self.log.add(entry, self.write)
        return entry

    def _put_write(self, write: DiskWrite) -> None:
        self.write += 1
        self._writes.append(write)

    def _slice(self, first: int) -> tuple[Entry, ...]:
        settings = self._settings
        return self.log.slice(first, settings.batch_records_max, settings.batch_bytes_max)

    def _progress(self, peer: str) -> Progress | None:
        return None if self._leadership is None else self._leadership.progress.get(peer)

    def _count(self) -> None:
        """Commit what a majority has, if it is of this term: older entries follow with it."""
        leadership = self._leadership
        if leadership is None or not leadership.barrier:
            return
        index = leadership.held_by_majority(self.log.stable_index, self.newcomer)
        if index > self.commit_index and self.log.term_at(index) == self.term:
            self.commit_index = index
            self._belong()
