"""The table of keys against a model of a few lines, and the ledger through random restarts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hyperscale.ledger.idempotency import (
    IdempotencyKey,
    IdempotencyLedger,
    IdempotencySettings,
    IdempotencyTable,
    State,
    Verdict,
    content_digest,
    fingerprint,
)
from hyperscale.ledger.journal import rebuild
from hyperscale.runtime.tasks import RealTasks
from tests.fixtures.journals import HandClock, MemoryJournal

SETTINGS = IdempotencySettings(
    pending_ttl_s=6, committed_ttl_s=20, rejected_ttl_s=5, retry_window_s=10, entries_max=4
)
names = st.sampled_from("abcdefg")
contents = st.sampled_from((content_digest(b"1"), content_digest(b"2")))
answers = st.binary(max_size=6)


@dataclass
class Known:
    state: State
    job_id: str
    content: bytes
    answer: bytes
    until: float
    lsn: int


class TableAgainstModel(RuleBasedStateMachine):
    """The model keeps every fact in a plain dict and looks at all of it every time."""

    def __init__(self) -> None:
        super().__init__()
        self.table = IdempotencyTable(SETTINGS)
        self.model: dict[str, Known] = {}
        self.now = 0.0
        self.lsn = 0

    def live(self, name: str) -> Known | None:
        known = self.model.get(name)
        if known and known.state is not State.PENDING and known.until <= self.now:
            return None
        return known

    def next_lsn(self) -> int:
        self.lsn += 1
        return self.lsn

    @rule(seconds=st.floats(0, 10))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(name=names, content=contents)
    def reserve(self, name: str, content: bytes) -> None:
        known, lsn = self.live(name), self.next_lsn()
        job_id = f"job-{lsn}"
        mark = fingerprint(name)
        ruling = self.table.reserve(self.now, mark, name, job_id, content, lsn)
        if known is None:
            assert ruling.verdict in (Verdict.NEW, Verdict.FULL)
            if ruling.verdict is Verdict.NEW:
                until = self.now + SETTINGS.pending_ttl_s
                self.model[name] = Known(State.PENDING, job_id, content, b"", until, lsn)
            else:
                assert len(self.table) >= SETTINGS.entries_max
        elif known.content != content:
            assert ruling.verdict is Verdict.CONFLICT
        elif known.state is State.PENDING:
            assert ruling.verdict is Verdict.PENDING
        else:
            assert ruling.verdict is Verdict.ANSWERED
            assert ruling.entry is not None
            assert (ruling.entry.job_id, ruling.entry.answer) == (known.job_id, known.answer)

    @rule(name=names, answer=answers, accepted=st.booleans())
    def answer(self, name: str, answer: bytes, accepted: bool) -> None:
        known, lsn = self.model.get(name), self.next_lsn()
        finish = self.table.commit if accepted else self.table.reject
        done = finish(self.now, fingerprint(name), answer, lsn)
        assert done is (known is not None and known.state is State.PENDING)
        if done and known is not None:
            known.state = State.COMMITTED if accepted else State.REJECTED
            ttl_s = SETTINGS.committed_ttl_s if accepted else SETTINGS.rejected_ttl_s
            known.answer, known.until, known.lsn = answer, self.now + ttl_s, lsn

    @rule(name=names)
    def release(self, name: str) -> None:
        known = self.model.get(name)
        pending = known is not None and known.state is State.PENDING
        assert self.table.release(fingerprint(name)) is pending
        if pending:
            del self.model[name]

    @rule(limit=st.integers(1, 5))
    def sweep(self, limit: int) -> None:
        for overdue in self.table.sweep(self.now, limit).overdue:
            known = self.model[overdue.key]
            assert known.state is State.PENDING
            assert overdue.job_id == known.job_id
            assert known.until <= self.now
            lsn = self.next_lsn()
            assert self.table.renew(self.now, overdue, lsn)
            known.until, known.lsn = self.now + SETTINGS.pending_ttl_s, lsn

    @invariant()
    def both_say_the_same(self) -> None:
        for name in "abcdefg":
            known, entry = self.live(name), self.table.look(self.now, fingerprint(name))
            assert (known is None) == (entry is None)
            if known is not None and entry is not None:
                assert entry[:4] == (known.state, known.job_id, known.content, known.answer)

    @invariant()
    def nothing_needed_is_given_up(self) -> None:
        needed = [known.lsn for name in self.model if (known := self.live(name))]
        if needed:
            lsn_min = self.table.lsn_min()
            assert lsn_min is not None
            assert lsn_min <= min(needed)

    @invariant()
    def the_limit_holds(self) -> None:
        assert len(self.table) <= SETTINGS.entries_max
        counts = self.table.counts()
        assert counts.entries == counts.pending + counts.committed + counts.rejected


TestTableAgainstModel = TableAgainstModel.TestCase
TestTableAgainstModel.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)

steps = st.lists(
    st.tuples(
        st.sampled_from(("reserve", "commit", "reject", "release", "wait", "sweep", "restart")),
        st.integers(0, 4),
    ),
    max_size=40,
)


@given(steps, st.booleans())
@settings(max_examples=80, deadline=None)
def test_a_restart_and_compaction_change_nothing(
    script: list[tuple[str, int]], compact: bool
) -> None:
    asyncio.run(play(script, compact))


async def play(script: list[tuple[str, int]], compact: bool) -> None:
    journal, tasks, clock = MemoryJournal(), RealTasks(), HandClock(5.0)
    keys = [IdempotencyKey.of("host", number, "0123456789abcdef") for number in range(5)]
    ledger = IdempotencyLedger(journal, clock, tasks, SETTINGS)

    async def job_of(job_id: str) -> bytes | None:
        return job_id.encode()

    for number, (step, which) in enumerate(script):
        match step:
            case "reserve":
                await ledger.reserve(keys[which], f"job-{number}", content_digest(b"1"))
            case "commit":
                await ledger.commit(keys[which], b"yes")
            case "reject":
                await ledger.reject(keys[which], b"no")
            case "release":
                await ledger.release(keys[which])
            case "wait":
                clock.time += which * 2.5
            case "sweep":
                await ledger.sweep(job_of)
            case "restart":
                ledger = await restarted(ledger, journal, clock, keys, compact)
    await restarted(ledger, journal, clock, keys, compact)
    await tasks.stop()


async def restarted(
    ledger: IdempotencyLedger,
    journal: MemoryJournal,
    clock: HandClock,
    keys: list[IdempotencyKey],
    compact: bool,
) -> IdempotencyLedger:
    """Everything known is known afterwards, in the same state; nothing released comes back. Time
    since the last record may have been lost, so an answer may be known a little longer."""
    if compact:
        first = ledger.needed_from()
        journal.records[:] = [record for record in journal.records if record.lsn >= first]
    again = IdempotencyLedger(journal, clock, RealTasks(), SETTINGS)
    await rebuild(journal, [again])
    for key in keys:
        before, after = ledger.look(key), again.look(key)
        if before is not None:
            assert after is not None
            assert before[:4] == after[:4]
        elif after is not None:
            assert after.state is not State.PENDING
    return again
